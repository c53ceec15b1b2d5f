"""Sets of values, and values that stay among values that change: against every possible world, and through a series."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from churn import NAMES, SHARES, Ward, rules
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")
STAYS = ("x", "y")


def policy_of(**sensitive: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "worlds",
            "person": "id",
            "attributes": {
                "q": {"role": "quasi-identifier", "changes": True},
                "s": {"role": "sensitive", **sensitive},
            },
            "protect": {"k": 1, "lifetime": {"l": 2, "releases": 3}, "against": ["lifetime"]},
        }
    )


Release = list[tuple[str, list[tuple[int, str]]]]
"""Classes by the text of their box, each with its people and their cells."""


def tables_of(releases: list[Release]) -> list[pa.Table]:
    return [
        pa.table(
            {
                "id": [str(person) for _, rows in release for person, _ in rows],
                "q": [box for box, rows in release for _ in rows],
                "s": [cell for _, rows in release for _, cell in rows],
            }
        )
        for release in releases
    ]


def worlds_of(releases: list[Release]) -> list[list[dict[int, str]]]:
    """Per release every way to hand the cells of each class to its people, as often as there are ways."""
    found = []
    for release in releases:
        ways: list[list[dict[int, str]]] = []
        for _, rows in release:
            people, cells = [person for person, _ in rows], [cell for _, cell in rows]
            ways.append([dict(zip(people, order, strict=True)) for order in permutations(cells)])
        found.append([{k: v for part in choice for k, v in part.items()} for choice in product(*ways)])
    return found


@st.composite
def releases_of(draw: st.DrawFn, cells: st.SearchStrategy[str], *, stays: bool) -> list[Release]:
    fixed = {person: draw(st.sampled_from([*STAYS, None, None])) for person in range(4)} if stays else {}
    releases = []
    for _ in range(2):
        present = [person for person in range(4) if draw(st.integers(0, 4))] or [0, 1]
        classes: dict[str, list[tuple[int, str]]] = {}
        for person in present:
            cell = fixed.get(person) or draw(cells)
            classes.setdefault(draw(st.sampled_from("mn")), []).append((person, cell))
        releases.append(list(classes.items()))
    return releases


SETS = st.sampled_from(["a", "b", "a;b", "b;c", "c", "none"])


@given(releases_of(SETS, stays=False))
@settings(max_examples=60, deadline=None)
def test_the_chance_to_have_had_an_element_is_its_share_of_the_worlds(releases: list[Release]) -> None:
    policy = policy_of(kind="set", values="transient", ordinary=["none"])
    found = sq.audit(tables_of(releases), policy)
    worst = Fraction(0)
    first, second = worlds_of(releases)
    everybody = {person for release in releases for _, rows in release for person, _ in rows}
    for person, element in product(everybody, "abc"):
        had = sum(any(element in world.get(person, "").split(";") for world in pair) for pair in product(first, second))
        worst = max(worst, Fraction(had, len(first) * len(second)))
    assert found.measures.get("breach", 0.0) == pytest.approx(float(worst))
    assert found.holds == (worst <= Fraction(1, 2))


@given(releases_of(st.sampled_from("abc"), stays=True))
@settings(max_examples=60, deadline=None)
def test_given_who_has_what_stays_the_others_are_bound_exactly_and_tell_nothing_about_who(
    releases: list[Release],
) -> None:
    policy = policy_of(values="transient", permanent=list(STAYS))
    found = sq.audit(tables_of(releases), policy)
    first, second = worlds_of(releases)
    everybody = sorted({person for release in releases for _, rows in release for person, _ in rows})

    def fixed(world: dict[int, str]) -> dict[int, str | None]:
        return {person: cell if cell in STAYS else None for person, cell in world.items()}

    # What stays, stays: in both releases, or in neither.
    pairs = [
        pair
        for pair in product(first, second)
        if all(fixed(pair[0])[person] == fixed(pair[1])[person] for person in pair[0].keys() & pair[1].keys())
    ]
    assert pairs, "what happened is one of the worlds"
    by_fixed: dict[tuple[str | None, ...], list[Any]] = {}
    for pair in pairs:
        both = fixed(pair[0]) | fixed(pair[1])
        by_fixed.setdefault(tuple(both[person] for person in everybody), []).append(pair)
    # Every assignment of what stays has as many worlds as any other: the changing rows say nothing about it.
    assert len(set(map(len, by_fixed.values()))) == 1
    worst = Fraction(0)
    for person, value in product(everybody, "abc"):
        chances = []
        for assignment, mine in by_fixed.items():
            had = Fraction(sum(any(world.get(person) == value for world in pair) for pair in mine), len(mine))
            if assignment[everybody.index(person)] is None:
                chances.append(had)
            else:
                assert had == 0
        # Whoever knows who has a value that stays is bound by the same number, whoever they are.
        assert len(set(chances)) <= 1
        overall = sum(any(world.get(person) == value for world in pair) for pair in pairs)
        assert Fraction(overall, len(pairs)) <= max(chances, default=Fraction(0))
        if chances:
            worst = max(worst, chances[0])
    measure = found.measures.get("breach", 0.0)
    # The audit asks about everybody, also about people who must have a value that stays.
    assert measure >= float(worst) - 1e-12
    if all(any(a[place] is None for a in by_fixed) for place in range(len(everybody))):
        assert measure == pytest.approx(float(worst))


def test_a_series_of_sets_is_published_and_every_element_keeps_its_promise(tmp_path: Path) -> None:
    policy = rules(
        attributes__value={
            "role": "sensitive", "kind": "set", "separator": "|", "values": "transient", "ordinary": ["none"],
        },
        protect__lifetime={"l": 2.0, "releases": 4},
    )  # fmt: skip
    series = sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY)
    ward = Ward(11)
    for number in range(4):
        table = ward.next()
        other = ward.random.choice(NAMES, table.num_rows, p=SHARES)
        cells = [f" {a}|{b}" for a, b in zip(table["value"].to_pylist(), other, strict=True)]
        plan = series.plan(table.set_column(3, "value", pa.array(cells)), name=f"r{number}", seed=2**63 + number)
        assert plan.holds
        release = series.publish(plan)
    found = series.audit()
    assert {history.values[0] for history in found.histories} == set(NAMES) - {"none"}
    assert found.holds
    assert 0 < found.measures["breach"] <= 0.5
    # Sets are written one way, whatever way they came in.
    written = set(release.table["value"].to_pylist())
    assert all("|".join(sorted(set(cell.split("|")))) == cell for cell in written)


MIXED = {
    "attributes__value": {
        "role": "sensitive", "values": "transient", "permanent": ["hiv"], "ordinary": ["none"],
    },
    "protect__confidence": 0.5,
    "protect__against": ["insider", "lifetime"],
}  # fmt: skip


class Clinic(Ward):
    """The same, but a tenth have a value that stays."""

    def __init__(self, seed: int, people: int = 300) -> None:
        super().__init__(seed, people)
        self.has = self.random.random(people) < 0.1

    def table(self, numbers: np.ndarray) -> pa.Table:
        table = super().table(numbers)
        cells = np.where(self.has[numbers], "hiv", self.value[numbers])
        return table.set_column(3, "value", pa.array(cells))


@pytest.mark.parametrize("seed", range(3))
def test_what_stays_and_what_changes_are_both_kept_in_one_series(tmp_path: Path, seed: int) -> None:
    series = sq.Series.open(tmp_path / "ward.ledger", rules(**MIXED), key=KEY)
    ward = Clinic(seed)
    published: list[pa.Table] = []
    for number in range(4):
        table = ward.next()
        plan = series.plan(table, name=f"r{number}", seed=2**63 + number)
        assert plan.holds
        assert plan.waiting.left_out == 0
        release = series.publish(plan)
        assert "*" not in release.table["value"].to_pylist()
        published.append(release.table)
    found = series.audit()
    assert found.holds
    assert {"difference", "tracing", "deniability", "breach"} <= set(found.tried)
    stays, changes = found.histories
    assert (stays.permanent, changes.permanent) == (True, False)
    assert stays.values == ("hiv", "another value")
    assert "hiv" not in changes.values
    assert changes.kept is not None
    # By hand, in whole numbers: rows with the value that stays are nobody's row of another.
    assert changes.trajectories is not None
    for path in changes.trajectories.path.tolist():
        for value, bound in enumerate(changes.bounds):
            if bound < 1:
                escaped = Fraction(1)
                for told, place in zip(changes.releases, path, strict=True):
                    if place >= 0:
                        counts = told.counts[place].tolist()
                        rest = sum(counts) - counts[changes.kept]
                        escaped *= Fraction(rest - counts[value], rest) if rest else 1
                assert 1 - escaped <= Fraction(1, 2)


def test_a_person_cannot_lose_or_gain_a_value_that_stays(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "ward.ledger", rules(**MIXED), key=KEY)
    ward = Clinic(1)
    series.publish(ward.table(np.arange(300)), name="first", seed=2**63 + 1)
    ward.has[:5] = ~ward.has[:5]
    with pytest.raises(sq.DataError, match="5 people have other values"):
        series.plan(ward.table(np.arange(300)), name="second", seed=2**63 + 1)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({**MIXED, "protect__against": ["lifetime"]}, "protect.against", "needs insider"),
        ({**MIXED, "protect__diversity": {"kind": "distinct", "l": 2}}, "protect.diversity", "one value in a cell"),
        (
            {**MIXED, "attributes__value": {"role": "sensitive", "permanent": ["hiv"]}, "method": {"name": "mondrian"}},
            "attributes.value.permanent",
            "only goes with values: transient",
        ),
        ({"attributes__value": {"role": "sensitive", "values": "transient", "separator": "|"}},
         "attributes.value.separator", "only goes with kind: set"),
    ],
)  # fmt: skip
def test_what_cannot_be_promised_is_refused(changes: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(sq.PolicyError, match=message) as caught:
        rules(**changes)
    assert key in [problem.key for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("cells", "message"),
    [(["a", "; ;", "b"], "1 row is a set of nothing"), (["a", "*", "b"], "stands for no value")],
)
def test_cells_that_are_no_sets_are_refused(cells: list[str], message: str) -> None:
    policy = policy_of(kind="set", values="transient")
    table = pa.table({"id": ["1", "2", "3"], "q": ["m", "m", "m"], "s": cells})
    with pytest.raises(sq.DataError, match=message):
        sq.anonymize(table, policy)


def test_sets_are_bounded_element_by_element_in_one_table() -> None:
    raw = {
        "version": 1, "series": "one",
        "output": {"numbers": "interval"},
        "attributes": {"q": {"role": "quasi-identifier", "kind": "number"}, "s": {"role": "sensitive", "kind": "set"}},
        "protect": {"k": 2, "confidence": 0.5},
    }  # fmt: skip
    table = pa.table({"q": [1, 1, 2, 2, 3, 3], "s": ["a;b", "c", "a", "b", "b", "d;c"]})
    release = sq.anonymize(table, sq.Policy.model_validate(raw), seed=1)
    for cell in set(release.table["q"].to_pylist()):
        rows = [
            s.split(";")
            for q, s in zip(*map(pa.ChunkedArray.to_pylist, release.table.columns), strict=True)
            if q == cell
        ]
        counts = Counter(element for row in rows for element in row)
        assert max(counts.values()) * 2 <= len(rows)
    with pytest.raises(sq.GuaranteeError, match="the promise of s that"):
        sq.anonymize(pa.table({"q": [1, 1], "s": ["a;b", "a"]}), sq.Policy.model_validate(raw))


def test_alpha_bounds_ordinary_elements_too() -> None:
    raw = {
        "version": 1, "series": "one",
        "attributes": {
            "q": {"role": "quasi-identifier", "kind": "number"},
            "s": {"role": "sensitive", "kind": "set", "ordinary": ["a"]},
        },
        "protect": {"k": 2, "alpha": 0.5, "against": ["outsider"]},
    }  # fmt: skip
    with pytest.raises(sq.GuaranteeError, match="the promise of s that no value has more than alpha"):
        sq.anonymize(pa.table({"q": [1, 1], "s": ["a;b", "a"]}), sq.Policy.model_validate(raw))
