"""The audit in the publisher's view, against every world that the releases leave."""

from __future__ import annotations

from hypothesis import assume, event, given, settings

import sequester as sq
from judged import check_audit, check_measure, check_measured
from saved import saving
from tiny import Case, cases
from worlds import CLEAR, Relaxed, TooMany

often = settings(max_examples=60, deadline=None)


def judge(case: Case) -> None:
    try:
        with saving(check_audit, case):
            verdict = check_audit(case)
    except TooMany:
        assume(False)
    for one in verdict.events():
        event(one)


@often
@given(cases(kinds=("plain", "few"), releases=(2, 2)))
def test_one_or_more_plain_attributes_in_two_releases(case: Case) -> None:
    judge(case)


@often
@given(cases(kinds=("plain", "few", "stays", "changes")))
def test_several_columns_in_two_or_three_releases(case: Case) -> None:
    judge(case)


@often
@given(cases(kinds=("plain", "few", "few", "stays"), combine=("joint", "both")))
def test_attributes_that_are_protected_together(case: Case) -> None:
    judge(case)


@often
@given(cases(kinds=("set", "stays")))
def test_sets(case: Case) -> None:
    judge(case)


@often
@given(cases(kinds=("graded", "few", "stays")))
def test_nodes(case: Case) -> None:
    judge(case)


@often
@given(cases(kinds=("starred", "starred set", "stays")))
def test_stars_that_may_hide_any_value(case: Case) -> None:
    judge(case)


@often
@given(cases(kinds=("graded",), differently="Any"))
def test_nodes_that_are_finer_in_another_release(case: Case) -> None:
    judge(case)


@often
@given(cases())
def test_deniability_measures_the_confidence_that_no_belief_gets_below(case: Case) -> None:
    with saving(check_measure, case):
        check_measure(case)


@often
@given(cases(kinds=("plain", "few", "stays", "set", "graded", "starred")))
def test_a_population_tells_of_values_what_the_person_column_tells(case: Case) -> None:
    """Nobody's value is known then, and everybody's class is: the worlds are the same."""
    tables = case.tables()
    population = [table.select(["id", "q"]) for table in tables]
    releases = [table.drop_columns(["id"]) for table in tables]
    found = sq.audit(releases, case.policy, population=population, against=["insider"])
    published = case.published()
    tied = [finding for finding in found.findings if finding.attack == "deniability"]
    assert bool(tied) == (Relaxed(published).strain() > 1 + CLEAR)
    check_measured(found, published)
