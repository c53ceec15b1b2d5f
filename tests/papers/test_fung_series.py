"""Fung, Wang, Fu and Pei: the release their Tables 1 and 2 should have been, and where their algorithm stops short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.tree import from_tree
from sequester.errors import GuaranteeError
from sequester.guarantees.anonymity import KAnonymity
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.specialize.refine import specialize
from sequester.methods.specialize.respecialize import respecialize
from ways import backward, cross, forward

BIRTHPLACE = from_tree({"Europe": ["UK", "France"]})
JOB = from_tree({"Professional": ["Lawyer", "Doctor"]})
UK, FRANCE, LAWYER, DOCTOR, FLU, HIV = 0, 1, 0, 1, 0, 1
RECORDS = [
    (UK, LAWYER, FLU), (UK, LAWYER, FLU), (UK, LAWYER, FLU), (FRANCE, LAWYER, HIV), (FRANCE, LAWYER, HIV),
    (FRANCE, LAWYER, HIV), (FRANCE, DOCTOR, FLU), (FRANCE, DOCTOR, FLU), (UK, DOCTOR, HIV), (UK, LAWYER, HIV),
]  # fmt: skip


def start(domains: tuple[Hierarchy, ...], people: int, k: int, kinds: int = 2) -> History:
    return History(
        attribute="disease",
        values=tuple("abcd"[:kinds]),
        k=k,
        bounds=(Fraction(1),) * kinds,
        domains=domains,
        quasi_names=tuple(f"q{place}" for place in range(len(domains))),
        links=np.ones(len(domains), np.bool_),
        people=tuple(range(people)),
    )


def next_table(
    history: History, records: Sequence[tuple[int, ...]], *, people: int
) -> tuple[Past, np.ndarray, ClassGuard]:
    """The first so many records as the next table; the last number of each is the sensitive value."""
    table = np.array(records[:people], np.int32)
    past = Past((history,), np.arange(people), (table[:, -1].copy(),), np.zeros(people, np.bool_))
    requirement = Requirement(KAnonymity(history.k))
    return past, np.ascontiguousarray(table[:, :-1].T), ClassGuard.of(requirement, np.zeros((0, people), np.int32))


def after(past: Past, classes: Classes) -> History:
    return past.extend(classes.member, classes.lo, classes.hi, order=np.arange(len(past)), name="R")[0]


def table_1(k: int) -> History:
    """R1: the five records of the first month as [Europe, Lawyer]."""
    past, codes, guard = next_table(start((BIRTHPLACE, JOB), 10, 5), RECORDS, people=5)
    history = after(past, specialize(codes, (BIRTHPLACE, JOB), guard))
    assert history.releases[0].lo.T.tolist() == [[UK, LAWYER]]
    assert history.releases[0].hi.T.tolist() == [[FRANCE, LAWYER]]
    return History(**{**vars(history), "k": k})


def boxes(classes: Classes) -> set[tuple[tuple[int, int], ...]]:
    sides = np.stack([classes.lo, classes.hi], axis=-1).transpose(1, 0, 2).tolist()
    return {tuple((lo, hi) for lo, hi in box) for box in sides}


def publish(history: History, **how: object) -> Classes:
    past, codes, guard = next_table(history, RECORDS, people=10)
    return respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"], **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("semantics", ["realised", "printed"])
def test_example_1_1_table_2_is_not_published_for_k_5(semantics: str) -> None:
    assert boxes(publish(table_1(5), semantics=semantics)) == {((UK, FRANCE), (LAWYER, DOCTOR))}


@pytest.mark.parametrize("semantics", ["realised", "printed"])
def test_example_1_1_table_2_is_what_is_published_for_k_4(semantics: str) -> None:
    assert boxes(publish(table_1(4), semantics=semantics)) == {
        ((UK, UK), (LAWYER, DOCTOR)),
        ((FRANCE, FRANCE), (LAWYER, DOCTOR)),
    }


def test_examples_3_2_to_4_3_crack_sizes_are_counted_class_by_class() -> None:
    """Flu of [Europe, Lawyer] has crack size 1 for the French; Flu of [UK, Professional] has for newcomers."""
    past, codes, guard = next_table(table_1(4), RECORDS, people=10)
    history = after(past, respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"]))
    assert [attack.find(history).measure for attack in (forward, cross, backward)] == [4, 4, 4]
    asked = History(**{**vars(history), "k": 5})
    cracked = {
        person for attack in (forward, backward) for found in attack.find(asked).findings for person in found.people
    }
    assert cracked == {3, 4, *range(8, 10)}


def test_table_3_targets_of_the_first_month_are_cracked_in_both_releases_newcomers_only_in_the_second() -> None:
    past, codes, guard = next_table(table_1(4), RECORDS, people=10)
    history = after(past, respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"]))
    asked = History(**{**vars(history), "k": 5})
    assert {person for found in forward.find(asked).findings for person in found.people} <= set(range(5))
    assert {person for found in cross.find(asked).findings for person in found.people} <= set(range(5))
    assert {person for found in backward.find(asked).findings for person in found.people} <= set(range(5, 10))
    assert [attack.find(history).findings for attack in (forward, cross, backward)] == [[], [], []]


XY = from_tree({"*": [{"01": ["0", "1"]}, "2"]})
SHORT = [(0, 2, 1), (2, 0, 0), (0, 2, 1)]  # (y, x, value): D1 is the first; y is tried first


def short(**how: object) -> tuple[Past, Classes, np.ndarray, ClassGuard]:
    history = start((XY, XY), 3, 1)
    past, codes, guard = next_table(history, SHORT, people=1)
    only = Classes(np.zeros(1, np.int32), np.array([[0], [2]], np.int32), np.array([[2], [2]], np.int32))
    past, codes, guard = next_table(after(past, only), SHORT, people=3)
    classes = respecialize(past, codes, (XY, XY), guard, against=["neighbor"], **how)  # type: ignore[arg-type]
    return past, classes, codes, guard


def algorithm_1(is_safe: Callable[[list[int]], bool], order: list[int]) -> list[int]:
    """Lines 4 to 14 for two attributes of one step: a candidate that is not valid is dropped for ever."""
    done: list[int] = []
    for attribute in order:
        if is_safe([*done, attribute]):
            done.append(attribute)
    return done


def test_algorithm_1_stops_short_where_a_rejected_specialization_becomes_valid() -> None:
    """At the start all candidates have the same score, so y is tried first; it is valid only after x."""
    past, classes, codes, _ = short(semantics="printed", score="discernibility")

    def printed(done: list[int]) -> bool:
        lo = np.array([np.where(row == 2, 2, 0) if place in done else row * 0 for place, row in enumerate(codes)])
        hi = np.array([np.where(row == 2, 2, 1) if place in done else row * 0 + 2 for place, row in enumerate(codes)])
        sides, member = np.unique(np.vstack([lo, hi]), axis=1, return_inverse=True)
        below, above = (part.astype(np.int32) for part in np.split(sides, 2))
        made = Classes(member.ravel().astype(np.int32), below, above)
        measures = [attack.find(after(past, made), semantics="paper").measure for attack in (forward, backward)]
        return all(measure is not None and measure >= 1 for measure in measures)

    assert algorithm_1(printed, [0, 1]) == [1]
    assert printed([0, 1])
    assert boxes(classes) == {((0, 0), (2, 2)), ((2, 2), (0, 0))}


def test_with_targets_who_exist_nothing_has_to_be_tried_twice() -> None:
    _, classes, _, _ = short()
    assert boxes(classes) == {((0, 0), (2, 2)), ((2, 2), (0, 0))}


def test_a_second_recoding_of_the_same_people_is_possible_unless_targets_are_as_printed() -> None:
    """Section 1.1, multi-purpose publishing: D2 is empty, and the printed B-anonymity is 0 whatever is published."""
    first, codes, guard = next_table(start((BIRTHPLACE, JOB), 10, 2), RECORDS, people=10)
    whole = Classes(np.zeros(10, np.int32), np.zeros((2, 1), np.int32), np.ones((2, 1), np.int32))
    past = Past((after(first, whole),), first.person, first.value, first.retained)
    again = respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"])
    assert len(again) > 1
    history = after(past, again)
    assert backward.find(history).measure is None
    assert forward.find(history).findings == cross.find(history).findings == []
    with pytest.raises(GuaranteeError, match="the table as one class is not"):
        respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"], semantics="printed")


def test_corollary_5_1_fewer_than_k_newcomers_cannot_be_hidden_by_any_recoding() -> None:
    history = table_1(5)
    for people, hidden in ((6, False), (9, False), (10, True)):
        past, codes, guard = next_table(history, RECORDS, people=people)
        if hidden:
            assert len(respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"])) == 1
        else:
            with pytest.raises(GuaranteeError, match="the table as one class is not"):
                respecialize(past, codes, (BIRTHPLACE, JOB), guard, against=["neighbor"])


def test_section_7_1_the_certificate_refuses_what_only_three_releases_together_tell() -> None:
    """Four flu records; R1 hides the third attribute, R2 the first. Hiding the second leaves one row for 000."""
    bit = from_tree({"*": ["0", "1"]})
    points = [(0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0)]
    history = start((bit,) * 3, 4, 1, kinds=1)
    for hidden in (2, 0):
        past, codes, _ = next_table(history, points, people=4)
        lo, hi = codes.copy(), codes.copy()
        lo[hidden], hi[hidden] = 0, 1
        sides, member = np.unique(np.vstack([lo, hi]), axis=1, return_inverse=True)
        history = after(past, Classes(member.ravel().astype(np.int32), sides[:3], sides[3:]))
    past, codes, guard = next_table(History(**{**vars(history), "k": 1}), points, people=4)
    assert len(respecialize(past, codes, (bit,) * 3, guard, against=["neighbor"])) == 4
    strict = History(**{**vars(history), "k": 2})
    past, codes, guard = next_table(strict, points, people=4)
    with pytest.raises(GuaranteeError, match="the table as one class is not"):
        respecialize(past, codes, (bit,) * 3, guard, against=["neighbor"], certificate=True)
