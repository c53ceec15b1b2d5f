"""Fung, Wang, Fu and Pei, Anonymity for Continuous Data Publishing: Tables 1 and 2 and the examples about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sequester.attacks.cracks import backward, cross, forward
from sequester.attacks.cracks.comparison import closed_between, closed_unforced, compare
from sequester.attacks.solvers.buddies import Assignment, Buddies
from sequester.history import History
from series import Series

UK, FRANCE = 0, 1
LAWYER, DOCTOR = 0, 1
FLU, HIV = 0, 1
NAMES = ("a1", "a2", "a3", "a4", "a5", "b6", "b7", "b8", "b9", "b10")
PEOPLE = [
    (UK, LAWYER, FLU), (UK, LAWYER, FLU), (UK, LAWYER, FLU), (FRANCE, LAWYER, HIV), (FRANCE, LAWYER, HIV),
    (FRANCE, LAWYER, HIV), (FRANCE, DOCTOR, FLU), (FRANCE, DOCTOR, FLU), (UK, DOCTOR, HIV), (UK, LAWYER, HIV),
]  # fmt: skip
ABSENT = -1


def tables(*, known: bool = True, k: int = 5) -> History:
    """R1 publishes [Europe, Lawyer]; R2 publishes [UK, Professional] (class 0) and [France, Professional] (class 1)."""
    table = np.array(PEOPLE, np.int32)
    member = np.array([[0] * 5 + [ABSENT] * 5, table[:, 0]], np.int32)
    boxes = (
        (np.array([[UK], [LAWYER]], np.int32), np.array([[FRANCE], [LAWYER]], np.int32)),
        (
            np.array([[UK, FRANCE], [LAWYER, LAWYER]], np.int32),
            np.array([[UK, FRANCE], [DOCTOR, DOCTOR]], np.int32),
        ),
    )
    history = Series(table[:, :2], table[:, 2], member, boxes, 2, (2, 2)).history(k=k, known=known)
    return replace(history, values=("Flu", "HIV"), people=NAMES if known else ())


def test_scenario_1_the_forward_attack_leaves_four_rows_of_the_french_lawyers() -> None:
    (finding,) = forward.find(tables()).findings
    assert finding.classes == ((1, 1), (2, 2))
    assert finding.witness == {"rows": {"Flu": [3, 2], "HIV": [2, 3]}, "remaining": {"Flu": 2, "HIV": 2}}
    assert (finding.observed, finding.required, finding.adversary) == (4, 5, "neighbor")
    assert finding.people == ("a4", "a5")


def test_scenario_2_the_cross_attack_excludes_one_of_three_hiv_rows() -> None:
    (finding,) = cross.find(tables()).findings
    assert finding.classes == ((1, 1), (2, 2))
    assert finding.witness["rows"]["HIV"][1] - finding.witness["remaining"]["HIV"] == 1
    assert finding.witness["rows"]["Flu"][1] - finding.witness["remaining"]["Flu"] == 0
    assert finding.observed == 4


def test_scenario_3_the_backward_attack_excludes_one_flu_row_of_the_british() -> None:
    (finding,) = backward.find(tables()).findings
    assert finding.classes == ((2, 1),)
    assert finding.releases == (1, 2)
    assert finding.witness == {"rows": {"Flu": [3], "HIV": [2]}, "remaining": {"Flu": 2, "HIV": 2}}
    assert finding.people == ("b9", "b10")
    assert finding.observed == 4


@pytest.mark.parametrize(("known", "semantics"), [(True, "exact"), (True, "paper"), (False, "paper")])
@pytest.mark.parametrize("attack", [forward, cross, backward])
def test_all_three_anonymities_of_tables_1_and_2_are_four_where_people_are_known_or_as_printed(
    attack, known, semantics
) -> None:
    assert attack.find(tables(known=known), semantics=semantics).measure == 4


@pytest.mark.parametrize("attack", [forward, cross, backward])
def test_whoever_knows_nobody_cannot_be_sure_that_the_target_of_four_rows_exists(attack) -> None:
    assert attack.find(tables(known=False)).measure == 5


def test_four_rows_are_enough_for_4_anonymity() -> None:
    for attack in (forward, cross, backward):
        assert attack.find(tables(k=4)).findings == []


def test_examples_3_1_and_4_1_to_4_3_any_generator_gives_the_same_crack_sizes() -> None:
    history = tables()
    (comparison,) = compare(history)
    first, second = np.array([0, 0], np.int32), np.array([0, 1], np.int32)
    generators = ([[3, 0], [0, 2]], [[1, 1], [2, 1]])  # rows (UK, France) of Flu, HIV: the two of Example 3.1
    for rows in generators:
        buddies = Buddies(
            comparison.before, comparison.after, comparison.comparable, Assignment(first, second, np.array(rows))
        )
        assert (comparison.before[first] - buddies.between(first, second)).tolist() == [[0, 0], [1, 0]]
        assert (comparison.after - buddies.between(first, second)).tolist() == [[0, 0], [0, 1]]
        assert (comparison.after - buddies.unforced(second)).tolist() == [[1, 0], [0, 0]]


def test_theorems_4_2_to_4_4_as_printed_give_the_crack_sizes_of_the_examples() -> None:
    history = tables()
    (comparison,) = compare(history)
    first, second = comparison.comparable
    assert second.tolist() == [0, 1]
    assert (comparison.before[first] - closed_between(comparison)).tolist() == [[0, 0], [1, 0]]
    assert (comparison.after[second] - closed_between(comparison)).tolist() == [[0, 0], [0, 1]]
    assert (comparison.after - closed_unforced(comparison)).tolist() == [[1, 0], [0, 0]]


def test_with_nobody_new_all_rows_are_old_and_the_printed_b_anonymity_is_zero() -> None:
    history = tables()
    only = History(**{**vars(history), "releases": (), "trajectories": None, "value": None})
    twice = only.extend(history.releases[0]).extend(history.releases[0])
    assert backward.find(twice, semantics="paper").measure == 0
    assert backward.find(twice).measure is None
    assert backward.find(twice).findings == []
    assert forward.find(twice).measure == 5
