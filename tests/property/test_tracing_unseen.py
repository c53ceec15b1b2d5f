"""Tracing with raw tables of everybody's quasi-identifiers and nobody's value, against all worlds."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.attacks.solvers import pairs as solver
from worlds import Class, Column, Knowledge, Published, Relaxed

K = 3
CLASSES = 3


def rules(releases: int) -> sq.Policy:
    """What a class of a release is called is an attribute of its own, hidden in all other releases."""
    names = [str(number) for number in range(CLASSES)]
    columns = {f"x{r}": {"role": "quasi-identifier", "hierarchy": {"any": names}} for r in range(releases)}
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "person": "who",
            "attributes": {**columns, "s": {"role": "sensitive"}, "t": {"role": "insensitive"}},
            "protect": {"k": K, "inferred": K},
        }
    )


@st.composite
def histories(draw: st.DrawFn, *, releases: tuple[int, int]) -> Published:
    count, size = draw(st.integers(*releases)), draw(st.integers(2, 7))
    labels = [(draw(st.sampled_from("abc")), draw(st.sampled_from("tu"))) for _ in range(size)]
    tables = []
    for _ in range(count):
        place = [draw(st.integers(-1, CLASSES - 1)) for _ in range(size)]
        place[draw(st.integers(0, size - 1))] = 0
        classes = [[one for one in range(size) if place[one] == number] for number in range(CLASSES)]
        tables.append(tuple(Class(tuple(c), tuple(labels[one] for one in c)) for c in classes if c))
    return Published((Column(), Column()), tuple(tables))


def audited(published: Published) -> sq.Audit:
    count = len(published.releases)
    releases, people = [], []
    for number, release in enumerate(published.releases):
        rows = [(str(place), label) for place, one in enumerate(release) for label in sorted(one.labels)]
        shown = {f"x{r}": [place if r == number else "any" for place, _ in rows] for r in range(count)}
        cells = {"s": [label[0] for _, label in rows], "t": [label[1] for _, label in rows]}
        releases.append(pa.table({**shown, **cells}))
        here = [one for cls in release for one in cls.occupants]
        raw = {f"x{r}": [str(max(published.path[one][r], 0)) for one in here] for r in range(count)}
        people.append(pa.table({"who": [f"p{one}" for one in here], **raw}))
    return sq.audit(releases, rules(count), population=people, against=["insider"])


def traced(found: sq.Audit) -> set[tuple[str | None, frozenset[str]]]:
    return {(f.value, frozenset(f.people)) for f in found.findings if f.attack == "tracing"}


def few(owners: dict) -> set[tuple[str, frozenset[str]]]:
    named = {row: frozenset(f"p{one}" for one in people) for row, people in owners.items()}
    return {(", ".join(label), people) for (_, _, label), people in named.items() if len(people) < K}


@settings(max_examples=120, deadline=None)
@given(histories(releases=(2, 3)))
def test_candidates_are_those_that_can_be_expected_to_have_the_row(published: Published) -> None:
    found, owners = audited(published), Relaxed(published).owners()
    assert traced(found) == few(owners)
    assert found.measures["tracing"] == min(map(len, owners.values()))


@settings(max_examples=60, deadline=None)
@given(histories(releases=(2, 3)))
def test_nobody_is_left_out_who_has_the_row_in_a_world(published: Published) -> None:
    owners = Knowledge(published).owners()
    told = traced(audited(published))
    for value, people in told:
        rows = [
            frozenset(f"p{one}" for one in own) for (_, _, label), own in owners.items() if ", ".join(label) == value
        ]
        assert any(own <= people for own in rows)


@settings(max_examples=60, deadline=None)
@given(histories(releases=(2, 2)))
def test_parts_too_large_for_the_program_are_judged_by_every_two_releases(published: Published) -> None:
    """What two releases exclude for one label against all others is excluded, and nothing that is possible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "LARGEST_UNSEEN", 0)
        found = audited(published)
    owners = Relaxed(published).owners()
    assert found.measures["tracing"] >= min(map(len, owners.values()))
    expected = {
        (number, place, label): Relaxed(published.against_rest(label)).owners()[number, place, ("it",)]
        for number, place, label in published.shown
    }
    assert traced(found) == few(expected)
