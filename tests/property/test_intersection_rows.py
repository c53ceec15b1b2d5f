"""Intersection of whole rows against the definition: every subset of the releases, one person after the other."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sequester.attacks.intersection import find_rows
from sequester.history.label import Answers, Labels, Rows
from series import Series, series


def labelled(truth: Series, beside: list[int], bound: Fraction) -> tuple[Rows, list[tuple[int, int]]]:
    """Rows with the value and one more column, both bounded; and everybody's label."""
    history = truth.history(k=2, c=bound)
    own, other = truth.value.astype(np.int32), np.array(beside[: len(truth.value)], np.int32)
    answers = [
        Answers("s", own, history.values, history.bounds),
        Answers("z", other, ("x", "y", "z"), (bound, bound, Fraction(1))),
    ]
    labels = Labels.of_cells(("s", "z"), np.array([own, other]), (history.values, ("x", "y", "z")), answers)
    return Rows.of_people(history, labels, counted=True), list(zip(own.tolist(), other.tolist(), strict=True))


def shares(truth: Series, cells: list[tuple[int, int]], person: int) -> dict[tuple[int, int], Fraction]:
    """Per (column, value) the largest share of it in what some releases leave for a person."""
    here = [r for r, member in enumerate(truth.member) if member[person] >= 0]
    found: dict[tuple[int, int], Fraction] = {}
    for size in range(2, len(here) + 1):
        for theta in combinations(here, size):
            meet: Counter[tuple[int, int]] | None = None
            for release in theta:
                fellows = np.flatnonzero(truth.member[release] == truth.member[release][person])
                rows = Counter(cells[fellow] for fellow in fellows.tolist())
                meet = rows if meet is None else meet & rows
            assert meet is not None
            for column in (0, 1):
                for value in range(4):
                    having = sum(n for label, n in meet.items() if label[column] == value)
                    share = Fraction(having, meet.total())
                    found[column, value] = max(found.get((column, value), Fraction(0)), share)
    return found


@given(series(people=(3, 9), releases=(2, 3)), st.lists(st.integers(0, 2), min_size=9, max_size=9), st.data())
@settings(max_examples=200, deadline=None)
def test_shares_of_whole_rows_are_those_of_the_definition(
    truth: Series, beside: list[int], data: st.DataObject
) -> None:
    bound = data.draw(st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(1, 3)]))
    rows, cells = labelled(truth, beside, bound)
    assert rows.counted is not None
    result = find_rows(rows.counted, rows.labels)
    people = [p for p in range(truth.member.shape[1]) if (truth.member[:, p] >= 0).sum() >= 2]
    asked = {p: {key: s for key, s in shares(truth, cells, p).items() if key != (1, 2)} for p in people}
    most = [share for found in asked.values() for share in found.values()]
    assert (result.measure is None) == (not most)
    if most:
        assert result.measure == float(max(most))
    exposed = {(p, *key) for p, found in asked.items() for key, share in found.items() if share > bound}
    names = {"s": rows.labels.texts[0], "z": ("x", "y", "z")}
    told = {
        (p, "sz".index(f.attribute or ""), names[f.attribute or ""].index(f.value or ""))
        for f in result.findings
        for p in f.people
    }
    assert told == exposed
    event("exposed" if exposed else "safe")
