"""Fung, Wang, Fu and Pei, Anonymity for Continuous Data Publishing: Tables 1 and 2 and the examples about them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from sequester.attacks.solvers.buddies import Assignment, Buddies
from sequester.attacks.solvers.comparison import closed_between, closed_unforced, compare
from sequester.history import History
from series import Series, of_partitions
from ways import backward, cross, forward

EXAMPLE = Path(__file__).parents[2] / "examples" / "papers" / "fung"
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


def test_tables_1_and_2_alone_are_no_all_clear() -> None:
    """Alice of Example 1.1 need not exist for somebody who has the tables only: that is undecided, and not safe."""
    releases = [EXAMPLE / "table1.csv", EXAMPLE / "table2.csv"]
    policy = sq.Policy.load(EXAMPLE / "policy.yaml")
    found = sq.audit(releases, policy)
    assert not found.holds
    assert found.undecided[0].attacks == ("forward", "cross", "backward")
    assert "would be left 4 rows, and 5 must be" in found.verdict.split(chr(10))[0]
    protect = policy.protect.model_copy(update={"k": 4})
    assert sq.audit(releases, policy.model_copy(update={"protect": protect})).holds
    assert sq.audit(releases[:1], policy).holds


def test_who_need_not_exist_is_left_what_a_target_in_two_classes_is() -> None:
    """Every target there can be, one by one, and all at once; where somebody is certain to be there, that is told."""
    less = 0
    for seed in range(12):
        releases, rules = cut_twice(seed)
        measures = sq.audit(releases, rules).measures
        fewest = int(min(measures[way] for way in ("forward", "cross", "backward") if way in measures))
        protect = rules.protect.model_copy(update={"k": fewest})
        rules = rules.model_copy(update={"protect": protect})
        least = min(
            seen.left
            for q in range(6)
            for since in (1, 2)
            for seen in sq.audit(releases, rules, target={"q": str(q)}, since=since).target.releases
            if seen.left
        )
        told = [one.why for one in sq.audit(releases, rules).undecided if "people who need not exist" in one.on]
        rows = f"{least} row{'s' * (least > 1)}"
        said = f"somebody whom two classes fit would be left {rows}, and {fewest} must be"
        assert told == ([said] if least < fewest else [])
        less += least < fewest
    assert less >= 3


def cut_twice(seed: int) -> tuple[list[pa.Table], sq.Policy]:
    """Six people and then nine, cut in two at different places."""
    random = np.random.default_rng(seed)
    people, values = random.integers(0, 6, 9), random.choice(["a", "b"], 9)
    releases = []
    for cut, many in zip(random.choice([2, 3, 4], 2, replace=False).tolist(), (6, 9), strict=True):
        boxes = [f"[0-{cut - 1}]" if one < cut else f"[{cut}-5]" for one in people[:many].tolist()]
        releases.append(pa.table({"q": boxes, "d": values[:many].tolist()}))
    attributes = {"q": {"role": "quasi-identifier", "kind": "number", "range": [0, 5]}, "d": {"role": "sensitive"}}
    protect = {"k": 9, "against": ["neighbor"]}
    return releases, sq.Policy.model_validate(
        {"version": 1, "series": "t", "attributes": attributes, "protect": protect}
    )


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


def frames(wards: str = "") -> list[pa.Table]:
    """Three Cold and three Flu of one age, then six newcomers with HIV."""
    values = ["Cold"] * 3 + ["Flu"] * 3 + ["HIV"] * 6
    wards = wards or "w" * 12
    rows = [{"id": str(n), "age": 40, "ward": w, "d": v} for n, (v, w) in enumerate(zip(values, wards, strict=True))]
    return [pa.Table.from_pylist(rows[:6]), pa.Table.from_pylist(rows)]


def asked(**protect: object) -> sq.Policy:
    attributes = {
        "age": {"role": "quasi-identifier", "kind": "number"},
        "ward": {"role": "insensitive"},
        "d": {"role": "sensitive"},
    }
    protect = {"k": 3, "confidence": 0.99, "against": ["neighbor"], **protect}
    return sq.Policy.model_validate(
        {"version": 1, "series": "t", "person": "id", "attributes": attributes, "protect": protect}
    )


@pytest.mark.parametrize("semantics", ["exact", "paper"])
@pytest.mark.parametrize("known", [True, False])
def test_section_7_2_six_rows_are_left_to_each_newcomer_and_all_have_hiv(
    known: bool, semantics: Literal["exact", "paper"]
) -> None:
    """ "We modify these measures to take into account the exclusion of cracked records": confidence, not only k."""
    releases = frames() if known else [table.drop_columns("id") for table in frames()]
    found = sq.audit(releases, asked(confidence=0.5), semantics=semantics)
    (finding,) = found.findings
    assert (finding.attack, finding.attribute, finding.value) == ("backward", "d", "HIV")
    assert (finding.required, finding.observed) == (0.5, 1)
    assert finding.people == (tuple(map(str, range(6, 12))) if known else ())
    assert found.measures["backward"] == 6
    assert "Of these 6, 100% have HIV, and confidence allows 50%." in found.explain(1)
    assert "6 remain" in found.explain(1)


def test_section_7_2_alpha_and_diversity_are_asked_of_the_rows_that_are_left() -> None:
    (alpha,) = sq.audit(frames(), asked(alpha=0.5)).findings[:1]
    assert (alpha.attack, alpha.value, alpha.required, alpha.witness["bound"]) == ("backward", "HIV", 0.5, "alpha")
    found = sq.audit(frames(), asked(diversity={"kind": "distinct", "l": 2}))
    diversity = [finding for finding in found.findings if finding.witness["bound"] == "diversity"]
    assert [(one.attack, one.required, one.observed) for one in diversity] == [("backward", 2, 1)]
    assert "Their diversity is 1, and 2 is required." in found.explain(found.findings.index(diversity[0]) + 1)


def test_section_7_2_rows_that_other_cells_tell_apart_are_added_up_by_their_value() -> None:
    """Labels "HIV, u" and "HIV, v" are a half each of what is left, and HIV is all of it."""
    (finding,) = sq.audit(frames("uvuvuvuvuvuv"), asked(confidence=0.5)).findings
    assert (finding.attack, finding.attribute, finding.value, finding.observed) == ("backward", "d", "HIV", 1)
    assert finding.witness["remaining"]["HIV, u"] == finding.witness["remaining"]["HIV, v"] == 3


def test_section_7_2_what_is_left_after_forward_and_cross_attacks_keeps_the_bound() -> None:
    """Tables 1 and 2 with confidence 3/5: two Flu and two HIV are left of [Europe, Lawyer], which is no more."""
    history = replace(tables(k=4), bounds=(Fraction(3, 5),) * 2)
    assert [attack.find(history).findings for attack in (forward, cross, backward)] == [[], [], []]
    strict = replace(history, bounds=(Fraction(3, 5), Fraction(2, 5)))
    found = forward.find(strict).findings
    assert [(one.value, one.observed, one.classes) for one in found] == [("HIV", 0.5, ((1, 1), (2, 2)))]


def test_where_somebody_left_the_printed_b_attack_may_leave_fewer_than_no_rows_and_nothing_is_asked_of_them() -> None:
    left = of_partitions([[[0, 1]], [[0, 2]]], "aab", points=[[0], [0], [0]])
    found = backward.find(left.history(k=1, c=0.5), semantics="paper")
    assert found.measure == 0
    assert [finding.about_value for finding in found.findings] == [False]
