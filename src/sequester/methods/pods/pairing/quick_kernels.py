"""The compiled loops that pair many people: who is nearest of those who fit, and who gets whom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Integers = NDArray[np.int64]
Places = NDArray[np.float64]
Answers = NDArray[np.int32]
Flags = NDArray[np.bool_]


WHOLE = np.int32(1 << 20)
"""What a whole axis is long, where places are whole numbers: of these, processors compare eight at a time."""

_PASSED = 8
"""Times as many are passed over who do not fit as are looked at who do: somebody with a rare wish looks farther."""


class NearOrder(NamedTuple):
    """People in an order in which those who are near stand near.

    place   (people, attributes) in whole numbers, `WHOLE` for 1
    label   everything permanent that their rows show
    old     whether they have a seat already
    linked  how many people are in their lineage, by the first of them: `leader`
    often   per label, how often a type with it is expected to be found again, as a root
    """

    place: NDArray[np.int32]
    label: Integers
    old: NDArray[np.bool_]
    leader: Integers
    linked: Integers
    often: Places


class PairRules(NamedTuple):
    """Who may be whose partner.

    answers  (views, labels) the bounded answers of labels, -1 for none
    heavy    per label, whether it is so frequent that only pairs of one such and one other are made now; empty: no
    barred   (people, labels) what cannot be; empty: nothing is
    most     people of a lineage, 0 for no limit; `link` is what each costs whom a new link adds
    rare     what a new type costs that is found once
    """

    answers: NDArray[np.int32]
    heavy: NDArray[np.bool_]
    barred: NDArray[np.bool_]
    most: int
    link: float
    rare: float


class CandidateLists(NamedTuple):
    """Free people by what they are looked for, in order: list i are the items from start[i] to start[i + 1].

    place  (items, attributes) where they are, and `label`: who is near in a list is near in memory
    asked  (people, 2) the lists in which somebody looks, -1 for none
    own    per person, the list in which others look for her
    """

    start: Integers
    items: Integers
    place: NDArray[np.int32]
    label: Integers
    asked: Integers
    own: Integers


class Nearest(NamedTuple):
    """(people, any) who is nearest to somebody, and at which cost: the cheapest first, -1 where there are no more."""

    who: NDArray[np.int32]
    cost: NDArray[np.float32]


@helper
def _leader(leader: Integers, person: int) -> int:
    while leader[person] != person:
        person = leader[person]
    return person


@helper
def _clash(answers: Answers, heavy: Flags, first: int, second: int) -> bool:
    """Whether two newcomers with these labels are no pair."""
    for view in range(answers.shape[0]):
        if answers[view, first] >= 0 and answers[view, first] == answers[view, second]:
            return True
    return heavy.size > 0 and heavy[first] == heavy[second]


@helper
def _apart(place: Answers, one: int, places: Answers, other: int) -> np.int32:
    """The way between two people."""
    way = np.int32(0)
    for axis in range(place.shape[1]):
        way += min(np.int32(abs(np.int32(place[one, axis] - places[other, axis]))), WHOLE)
    return way


@helper
def _insert(nearest: Nearest, place: int, other: int, more: float) -> None:
    """Put somebody among the nearest, in order."""
    who, cost = nearest.who, nearest.cost
    rank = who.shape[1] - 1
    while rank > 0 and cost[place, rank - 1] > more:
        who[place, rank], cost[place, rank] = who[place, rank - 1], cost[place, rank - 1]
        rank -= 1
    who[place, rank], cost[place, rank] = other, more


@helper
def _look(  # noqa: PLR0913 - a compiled loop over plain arrays
    crowd: NearOrder,
    rules: PairRules,
    lists: CandidateLists,
    one: int,
    asked: int,
    at: int,
    step: int,
    reach: int,
    nearest: Nearest,
    place: int,
) -> None:
    """Look along a list in one direction for those nearest to somebody who fit. Changes `nearest`."""
    # Arrays by themselves: a tuple of arrays in the innermost loop counts references.
    leader, linked, often, own_place = crowd.leader, crowd.linked, crowd.often, crowd.place
    answers, heavy, barred, cost = rules.answers, rules.heavy, rules.barred, nearest.cost
    items, places, labels = lists.items, lists.place, lists.label
    most, rare, is_barred, last_rank = rules.most, rules.rare, barred.size > 0, cost.shape[1] - 1
    # Newcomers look among newcomers only; whoever has a seat looks where everybody has the label that she wants.
    mine, is_new, lead = crowd.label[one], not crowd.old[one], _leader(leader, np.int64(one))
    first, last = lists.start[asked], lists.start[asked + 1]
    looked, passed = 0, 0
    while first <= at < last and looked < reach and passed < _PASSED * reach:
        here, other = at, items[at]
        at += step
        passed += 1
        if is_barred and (barred[one, labels[here]] or barred[other, mine]):
            continue
        more = 0.0
        if is_new:
            if other == one or _clash(answers, heavy, mine, labels[here]):
                continue
            if rare > 0:
                more = rare / max(often[mine] * often[labels[here]], 1.0)
        elif most:
            follow = _leader(leader, np.int64(other))
            if lead != follow:
                if linked[lead] + linked[follow] > most:
                    continue
                more = rules.link * (linked[lead] + linked[follow] - 2)
        looked += 1
        more += _apart(own_place, one, places, here) / WHOLE
        if more < cost[place, last_rank]:
            _insert(nearest, place, other, more)


@kernel
def search(
    crowd: NearOrder, rules: PairRules, lists: CandidateLists, seekers: Integers, reach: int, nearest: Nearest
) -> None:
    """For each of some people, the nearest who fit of those who stand near in her lists. Changes `nearest`.

    reach  so many who fit are looked at to each side
    """
    for place in range(seekers.size):
        one = seekers[place]
        for rank in range(nearest.who.shape[1]):
            nearest.who[place, rank], nearest.cost[place, rank] = -1, np.inf
        for choice in range(2):
            asked = lists.asked[one, choice]
            if asked < 0:
                continue
            first, last = lists.start[asked], lists.start[asked + 1]
            middle = first + np.searchsorted(lists.items[first:last], one)
            _look(crowd, rules, lists, one, asked, middle - 1, -1, reach, nearest, place)
            _look(crowd, rules, lists, one, asked, middle, 1, reach, nearest, place)


@kernel
def accept(leader: Integers, linked: Integers, most: int, one: Integers, other: Answers, partner: Integers) -> int:
    """Pair people in this order where both are free and no lineage gets too long; returns how many pairs there are.

    Changes `partner`, and who leads whose lineage and how many are in it; `most` 0: no limit.
    """
    pairs = 0
    for place in range(one.size):
        first, second = one[place], other[place]
        if partner[first] >= 0 or partner[second] >= 0:
            continue
        if most:
            lead, follow = _leader(leader, np.int64(first)), _leader(leader, np.int64(second))
            if lead != follow:
                if linked[lead] + linked[follow] > most:
                    continue
                leader[follow] = lead
                linked[lead] += linked[follow]
        partner[first], partner[second] = second, first
        pairs += 1
    return pairs


@kernel
def unlink(crowd: NearOrder, newcomers: Integers) -> None:
    """Take newcomers out of the lineages that they joined; they lead nobody. Changes who leads whose lineage."""
    for one in newcomers:
        crowd.linked[_leader(crowd.leader, np.int64(one))] -= 1
        crowd.leader[one], crowd.linked[one] = one, 1


@kernel
def break_up(crowd: NearOrder, rules: PairRules, alone: Integers, reach: int, partner: Integers) -> int:
    """Two newcomers who are left and do not fit take those of a couple of newcomers nearby; returns how often."""
    count, done, label, old = partner.size, 0, crowd.label, crowd.old
    answers, heavy, barred = rules.answers, rules.heavy, rules.barred
    for place in range(0, alone.size - 1, 2):
        one, other = alone[place], alone[place + 1]
        best, left, right = np.int64(1) << 60, -1, -1
        for at in range(max(one - reach, 0), min(one + reach + 1, count)):
            mate = partner[at]
            if mate < 0 or old[at] or old[mate] or _clash(answers, heavy, label[one], label[at]):
                continue
            if _clash(answers, heavy, label[other], label[mate]):
                continue
            if barred.size and (
                barred[one, label[at]]
                or barred[at, label[one]]
                or barred[other, label[mate]]
                or barred[mate, label[other]]
            ):
                continue
            cost = _apart(crowd.place, one, crowd.place, at) + _apart(crowd.place, other, crowd.place, mate)
            if cost < best:
                best, left, right = cost, at, mate
        if left >= 0:
            partner[one], partner[left] = left, one
            partner[other], partner[right] = right, other
            done += 1
    return done


@helper
def _may(crowd: NearOrder, rules: PairRules, lists: CandidateLists, one: int, other: int) -> bool:
    """Whether these two may share a pod, whatever their lineages."""
    first, second = crowd.label[one], crowd.label[other]
    if crowd.old[one]:
        if lists.own[other] != lists.asked[one, 0] and lists.own[other] != lists.asked[one, 1]:
            return False
    elif crowd.old[other]:
        if lists.own[one] != lists.asked[other, 0]:
            return False
    elif _clash(rules.answers, rules.heavy, first, second):
        return False
    return not (rules.barred.size and (rules.barred[one, second] or rules.barred[other, first]))


@kernel
def trade(
    crowd: NearOrder, rules: PairRules, lists: CandidateLists, some: Integers, reach: int, partner: Integers
) -> int:
    """Two couples exchange partners where both are nearer then; returns how often. Changes `partner`.

    some  who looks for a better partner, in this order; where lineages are bounded, only newcomers are exchanged
    """
    old, own_place, start, items, places = crowd.old, crowd.place, lists.start, lists.items, lists.place
    done, most = 0, rules.most
    for place in range(some.size):
        one = some[place]
        mine = partner[one]
        if mine < 0 or (most and old[mine]):
            continue
        now = _apart(own_place, one, own_place, mine)
        best, best_other = 0, -1
        for choice in range(2):
            asked = lists.asked[one, choice]
            if asked < 0:
                continue
            first, last = start[asked], start[asked + 1]
            middle = first + np.searchsorted(items[first:last], one)
            for at in range(max(middle - reach, first), min(middle + reach, last)):
                other = items[at]
                theirs = partner[other]
                if theirs < 0 or theirs == one or other == one or (most and old[other]):
                    continue
                near = _apart(own_place, one, places, at)
                if near >= now:
                    continue
                gain = near - now - _apart(own_place, other, own_place, theirs)
                gain += _apart(own_place, theirs, own_place, mine)
                if gain < best and _may(crowd, rules, lists, one, other) and _may(crowd, rules, lists, theirs, mine):
                    best, best_other = gain, other
        if best_other >= 0:
            other, theirs = best_other, partner[best_other]
            partner[one], partner[other] = other, one
            partner[theirs], partner[mine] = mine, theirs
            crowd.leader[mine], crowd.leader[other] = crowd.leader[other], crowd.leader[mine]
            done += 1
    return done
