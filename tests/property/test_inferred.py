"""What is inferred across releases has a number of its own: every attack that combines releases, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.attacks import complementary, difference, single, tracing
from sequester.guarantees.anonymity import KAnonymity
from series import Series, of_partitions, series
from tiny import Case, cases
from ways import backward, cross, forward
from worlds import Knowledge, TooMany

ATTACKS: dict[str, Any] = {
    "difference": difference,
    "tracing": tracing,
    "forward": forward,
    "cross": cross,
    "backward": backward,
    "complementary": complementary,
}
numbers = st.integers(1, 5)


@pytest.mark.parametrize("semantics", ["exact", "paper"])
@pytest.mark.parametrize("name", ATTACKS)
@given(truth=series(people=(3, 8)), known=st.booleans(), k=numbers, inferred=numbers)
@settings(max_examples=40, deadline=None)
def test_attacks_ask_for_what_is_inferred_and_never_for_k(
    name: str, semantics: str, truth: Series, known: bool, k: int, inferred: int
) -> None:
    find = ATTACKS[name].find
    history = truth.history(k=k, known=known)
    found = find(replace(history, inferred=inferred), semantics=semantics)
    asked = find(replace(history, k=inferred), semantics=semantics)
    assert found.findings == asked.findings
    assert found.measure == asked.measure
    assert all(finding.required == inferred for finding in found.findings if not finding.about_value)
    event(f"{name} found: {bool(found.findings)}")


@given(truth=series(people=(3, 8)), k=numbers, inferred=numbers)
@settings(max_examples=60, deadline=None)
def test_single_releases_are_asked_for_k(truth: Series, k: int, inferred: int) -> None:
    history = truth.history(k=k)
    found = single.find(replace(history, inferred=inferred), "k", KAnonymity(k))
    few = [finding.observed for finding in found.findings]
    assert sorted(few) == sorted(size for release in history.releases for size in release.size.tolist() if size < k)


@given(case=cases(kinds=("plain", "few", "stays"), releases=(2, 3)), inferred=st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_rows_with_fewer_owners_than_are_asked_for_are_found_by_the_audit(case: Case, inferred: int) -> None:
    policy = case.policy
    protect = policy.protect.model_copy(update={"inferred": inferred})
    found = sq.audit(case.tables(), policy.model_copy(update={"protect": protect}), against=["insider"])
    try:
        fewest = Knowledge(case.published(), 2_000).fewest_owners()
    except TooMany:
        assume(False)
    traced = [finding for finding in found.findings if finding.attack == "tracing"]
    assert all(finding.required == inferred for finding in traced)
    if len(case.releases) == 2:
        assert bool(traced) == (fewest < inferred)
    else:
        assert fewest < inferred or not traced


def test_couples_are_enough_where_two_are_asked_for() -> None:
    """Classes of four, of which two people move on: k 4 is broken by what is inferred, 2 of it is not."""
    truth = of_partitions([[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1, 4, 5], [2, 3, 6, 7]]], "abababab")
    strict, loose = truth.history(k=4), replace(truth.history(k=4), inferred=2)
    assert tracing.find(loose).findings == []
    assert tracing.find(replace(strict, inferred=5)).findings
    assert difference.find(loose).findings == []
