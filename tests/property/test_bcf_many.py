"""Many random series of more people: always safe for whom it was made for, and refined wherever it can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chains import Chain, cut_of, finer_cuts, random_chain
from sequester.attacks import intersection
from sequester.attacks.audit import audit_histories
from sequester.domain.tree import from_tree
from sequester.errors import GuaranteeError
from sequester.history.past import Past
from sequester.methods.classes import Classes
from sequester.methods.specialize.respecialize import respecialize
from strategies import flat
from ways import backward, cross, forward


def releases(chain: Chain, *, retain: bool = False, **how: object) -> Iterator[tuple[Past, Classes]]:
    """Everything that can be published, one release after the other; each is published before the next is made."""
    while len(chain.history) < len(chain.present):
        past, codes, guard = chain.past(retain=retain)
        try:
            classes = respecialize(past, codes, chain.domains, guard, **how)  # type: ignore[arg-type]
        except GuaranteeError as error:
            assert error.guarantee == "series"  # noqa: PT017 - the error ends the series
            return
        if not len(chain.history) and not chain.promises(past, classes):
            return  # the first table breaks its promise as a whole
        assert chain.promises(past, classes)
        chain.publish(past, classes)
        yield past, classes


CRACKS = ("forward", "cross", "backward")


def findings(chain: Chain, against: list[str]) -> list[str]:
    """What the audit finds, but for what it alone looks for: diversity, and shares that several cracks leave."""
    found = audit_histories([chain.history], chain.policy, against=against).findings
    guarded = []
    for one in found:
        bound = one.witness.get("bound") if one.attack in CRACKS else None
        if one.attack != "row-order" and (bound is None or (bound == "confidence" and len(one.releases) == 2)):
            guarded.append(one.attack)
    return guarded


@pytest.mark.parametrize("against", [["neighbor"], ["insider"], ["insider", "neighbor"]], ids="-".join)
@pytest.mark.parametrize(
    ("leaving", "returning", "retain"),
    [(0.0, 0.0, False), (0.3, 0.0, False), (0.0, 0.3, False), (0.2, 0.0, True)],
    ids=["joining", "leaving", "returning", "retained"],
)
def test_nothing_published_is_attacked(against: list[str], leaving: float, returning: float, retain: bool) -> None:
    several = 0
    for seed in range(30 if against == ["neighbor"] else 12):
        chain = random_chain(seed, people=(15, 60), leaving=leaving, returning=returning)
        for _, classes in releases(chain, against=against, retain=retain):
            assert findings(chain, against) == []
            several += len(chain.history) > 1 and len(classes) > 1
    assert several >= 3


def test_no_safe_specialization_is_left() -> None:
    tried = 0
    for seed in range(40):
        chain = random_chain(100 + seed, people=(12, 40), releases=(2, 4))
        for number in range(len(chain.present)):
            past, codes, guard = chain.past()
            taxonomies, before = chain.taxonomies(codes), chain.history
            if next(releases(chain, against=["neighbor"]), None) is None:
                break
            if number == 0:
                continue
            made, chain.history = chain.history, before
            last = made.releases[-1]
            assert last.member is not None
            for finer in finer_cuts(taxonomies, cut_of(taxonomies, Classes(last.member, last.lo, last.hi))):
                classes = chain.classes_of(finer, codes, guard)
                history = chain.extended(past, classes)
                safe = (
                    chain.promises(past, classes)
                    and not any(attack.find(history).findings for attack in (forward, cross, backward, intersection))
                    and chain.diverse(history)
                )
                assert not safe
                tried += 1
            chain.history = made
    assert tried > 50


def test_what_the_intersection_forbids_at_first_is_done_once_another_split_allows_it() -> None:
    """One class {a, b, c, a} before. Splitting p first leaves {a, a, b} for two people; after q it leaves {a, b}."""
    bit = flat(2)
    points = np.array([[0, 1], [0, 1], [1, 1], [1, 1], [0, 0], [0, 0]], np.int32)
    present = np.array([[True] * 4 + [False] * 2, [True] * 6])
    protect: dict[str, Any] = {"k": 2, "confidence": 0.5}
    chain = Chain((bit, bit), points, np.array([0, 1, 2, 0, 1, 0], np.int32), present, protect, np.ones(2, np.bool_))
    past, codes, guard = chain.past()
    chain.publish(past, chain.classes_of([[(0, 1)], [(0, 1)]], codes, guard))
    past, codes, guard = chain.past()
    first = chain.classes_of([[(0, 0), (1, 1)], [(0, 1)]], codes, guard)
    assert intersection.find(chain.extended(past, first)).findings != []
    made = respecialize(past, codes, chain.domains, guard, against=["neighbor"], score="discernibility")
    assert len(made) == 3
    assert intersection.find(chain.extended(past, made)).findings == []


def test_three_classes_that_have_one_value_in_common_only_together_are_not_published() -> None:
    """abc, abd and acd: every two of them leave two values, all three leave a (docs/theory.md, section 9)."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], *[[1, 1, 1]] * 8], np.int32)  # z, x, y
    value = np.array([0, 1, 2, 3, *(0, 1, 2, 3) * 2], np.int32)
    present = np.ones((3, 12), np.bool_)
    protect = {"k": 1, "confidence": 0.5}
    chain = Chain((flat(2),) * 3, points, value, present, protect, np.ones(3, np.bool_))
    whole, cut = [(0, 1)], [(0, 0), (1, 1)]
    for before in ([whole, cut, whole], [whole, whole, cut]):
        past, codes, guard = chain.past()
        chain.publish(past, chain.classes_of(before, codes, guard))
        assert findings(chain, ["neighbor"]) == []
    past, codes, guard = chain.past()
    third = chain.classes_of([cut, whole, whole], codes, guard)
    assert {len(found.releases) for found in intersection.find(chain.extended(past, third)).findings} == {3}
    chain.publish(past, respecialize(past, codes, chain.domains, guard, against=["neighbor"], score="discernibility"))
    assert findings(chain, ["neighbor"]) == []
    assert len(chain.history.releases[-1]) > 1


def test_values_before_may_be_several_children_together() -> None:
    """Of three siblings two were published as one value, as happens when a taxonomy grows: they stay one group."""
    domain = flat(3)
    points = np.array([[0], [1], [1], [2], [0], [1], [2], [2]], np.int32)
    value, present = np.array([0, 0, 1, 0, 1, 0, 1, 0], np.int32), np.array([[True] * 4 + [False] * 4, [True] * 8])
    chain = Chain((domain,), points, value, present, {"k": 1}, np.ones(1, np.bool_))
    past, codes, guard = chain.past()
    chain.publish(past, chain.classes_of([[(0, 1), (2, 2)]], codes, guard))
    past, codes, guard = chain.past()
    made = respecialize(past, codes, chain.domains, guard, against=["neighbor"])
    assert len(made) == 3
    assert backward.find(chain.extended(past, made)).measure == 2


def test_a_split_among_companions_is_refused_when_it_exposes_somebody_in_another_class() -> None:
    """The classes {1, 2} and {3, 4} are fine by themselves, but {0, 1, 2} was published: without {1, 2} it is 0."""
    tree = from_tree({"*": ["a", {"g": ["b", "c"]}]})
    points = np.array([[0, 0], [1, 0], [1, 0], [2, 1], [2, 1], [0, 1], [0, 1]], np.int32)
    value = np.array([0, 1, 0, 1, 0, 1, 0], np.int32)
    chain = Chain((tree, flat(2)), points, value, np.ones((2, 7), np.bool_), {"k": 2}, np.ones(2, np.bool_))
    past, codes, guard = chain.past()
    chain.publish(past, chain.classes_of([[(0, 2)], [(0, 0), (1, 1)]], codes, guard))
    past, codes, guard = chain.past()
    made = respecialize(past, codes, chain.domains, guard, against=["insider"], score="discernibility")
    chain.publish(past, made)
    assert findings(chain, ["insider"]) == []
    assert sorted(made.size.tolist()) == [3, 4]
