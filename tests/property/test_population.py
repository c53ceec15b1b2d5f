"""Whoever knows a population knows no less than who knows nobody, and uses the people whose class is certain."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.attacks.finding import Finding
from sequester.errors import DataError
from sequester.history.population import locate
from series import Series, series


def rules(k: int = 2, confidence: float = 0.5, attributes: int = 1) -> sq.Policy:
    quasi = {f"q{n}": {"role": "quasi-identifier", "kind": "number", "range": [0, 9]} for n in range(attributes)}
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "tiny",
            "person": "id",
            "attributes": {**quasi, "s": {"role": "sensitive"}},
            "protect": {"k": k, "confidence": confidence},
        }
    )


def rows(*cells: tuple[str, str]) -> pa.Table:
    box, value = zip(*cells, strict=True)
    return pa.table({"q0": list(box), "s": list(value)})


ALICE = (
    rows(("[3-4]", "c"), ("[3-4]", "b"), ("4", "a"), ("4", "c")),
    rows(("[3-4]", "c"), ("[3-4]", "a"), ("4", "c"), ("4", "b")),
)
PEOPLE = pa.table({"id": ["alice", "bob", "carl", "dora"], "q0": [3, 4, 4, 4]})


@pytest.mark.parametrize("against", [["neighbor"], ["insider"], ["all"]])
def test_alice_whose_class_is_certain_is_found_though_others_fit_two_boxes(against: list[str]) -> None:
    found = sq.audit(ALICE, rules(), population=[PEOPLE, PEOPLE], against=against)
    (finding,) = [one for one in found.findings if "alice" in one.people]
    assert (finding.attack, finding.value, finding.observed) == ("intersection", "c", 1.0)
    assert finding.people == ("alice",)
    number = found.findings.index(finding) + 1
    story = found.explain(number)
    assert "alice" in story
    assert "bob" not in story
    assert "[3-4]" in story


def told(finding: Finding) -> tuple[object, ...]:
    return finding.attack, finding.releases, finding.value, finding.classes


def written(truth: Series, release: int) -> pa.Table:
    lo, hi = truth.boxes[release]
    member = truth.member[release]
    present = np.flatnonzero(member >= 0)
    quasi = {
        f"q{axis}": [f"[{lo[axis, c]}-{hi[axis, c]}]" for c in member[present]] for axis in range(lo.shape[0])
    }  # fmt: skip
    return pa.table({**quasi, "s": ["abcdef"[truth.value[p]] for p in present]})


@settings(max_examples=150, deadline=None)
@given(truth=series(releases=(2, 3), people=(3, 8), values=(2, 3)), k=st.integers(2, 4))
def test_every_finding_of_the_outsiders_view_is_found_with_a_population(truth: Series, k: int) -> None:
    assume(all((member >= 0).any() for member in truth.member))
    releases = [written(truth, number) for number in range(len(truth.member))]
    people = []
    for member in truth.member:
        present = np.flatnonzero(member >= 0)
        quasi = {f"q{axis}": truth.points[present, axis] for axis in range(truth.points.shape[1])}
        people.append(pa.table({"id": [f"p{n}" for n in present], **quasi}))
    policy = rules(k, 0.5, truth.points.shape[1])
    outsider = sq.audit(releases, policy, against=["all"])
    found = sq.audit(releases, policy, population=people, against=["all"])
    assert {told(finding) for finding in outsider.findings} <= {told(finding) for finding in found.findings}
    assert set(outsider.tried) <= set(found.tried)
    for number in range(1, len(found.findings) + 1):
        assert found.explain(number)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_class_is_certain_exactly_if_every_way_to_share_people_out_has_it(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 4))
    sides = np.sort(np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=count, max_size=count))))
    lo, hi = sides[:, :1].T.astype(np.int32), sides[:, 1:].T.astype(np.int32)
    true = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=6))
    points = np.array([[data.draw(st.integers(int(lo[0, c]), int(hi[0, c]))) for c in true]], np.int32)
    size = np.bincount(true, minlength=count)
    fits = [[c for c in range(count) if lo[0, c] <= point <= hi[0, c]] for point in points[0]]
    ways = [way for way in product(*fits) if (np.bincount(way, minlength=count) == size).all()]
    found = locate(points, lo, hi, size=size)
    for person in range(len(true)):
        possible = {way[person] for way in ways}
        assert found.certain[person] == (possible.pop() if len(possible) == 1 else -1)
        assert all(found.merged[c] == found.member[person] for c in possible)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_of_a_part_of_the_people_a_class_is_certain_only_if_they_cannot_be_elsewhere(data: st.DataObject) -> None:
    points = np.array(data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=6)), np.int32)[None, :]
    boxes = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted), min_size=1, max_size=3))
    lo, hi = np.array(boxes, np.int32).T[:, None, :]
    fits = [[box for box, (low, high) in enumerate(boxes) if low <= point <= high] for point in points[0].tolist()]
    assume(all(fits))
    true = [data.draw(st.sampled_from(places)) for places in fits]
    size = np.bincount(true, minlength=len(boxes))
    known = data.draw(st.integers(1, len(true) - 1))
    # Others may be anybody: only what those who are known leave free counts.
    ways = [way for way in product(*fits[:known]) if (np.bincount(way, minlength=len(boxes)) <= size).all()]
    found = locate(points[:, :known], lo, hi, size=size)
    assert not found.whole
    sure = [place for place in found.certain.tolist() if place >= 0]
    assert found.ambiguous == known - len(sure)
    for person, place in enumerate(found.certain.tolist()):
        assert place < 0 or {way[person] for way in ways} == {place}
        assert place == fits[person][0] or len(fits[person]) > 1


def test_people_who_cannot_be_shared_out_are_refused() -> None:
    lo, hi = np.array([[0, 0, 1]], np.int32), np.array([[0, 1, 1]], np.int32)
    points = np.array([[0, 0, 0, 1]], np.int32)
    with pytest.raises(DataError, match="cannot be shared out among the published classes"):
        locate(points, lo, hi, size=np.array([1, 1, 2]))
