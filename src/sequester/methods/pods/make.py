"""The next release by pods: everybody who is in the table, at once, beside decoys for those who are missing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.company import complete
from sequester.methods.pods.classes.one_type import add_company
from sequester.methods.pods.draws import Spread, draw_labels
from sequester.methods.pods.pairing.couples import PodPeople, cells_of, pair
from sequester.methods.pods.pairing.larger import gather, settled
from sequester.methods.pods.pairing.quick import pair_many
from sequester.methods.pods.pairing.seats import PodSeats, attach, join, new_pods, seat_again, take_seats
from sequester.methods.pods.seated import Types, classes_of
from sequester.methods.pods.task import MadePods, PodTask

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_DEAREST = 1e3
"""A price at which nobody has a decoy who could have a partner."""

_TRIALS = 7
"""Halvings of the price of a decoy, each of which pairs everybody once: it is then known to a 128th of the range."""

_WIDE = 6
"""Times as many of the nearest are looked at where decoys are above the budget whatever they cost."""

_SAMPLE = 5_000
"""People up to whom the price of a decoy is found by trying; of more, on neighborhoods with so many, to save time."""

_DEARER = (1.0, 1.3)
"""Times the price that a sample told, until the whole table keeps the budget, too; then none but the needed decoys."""

_ANEW = 60_000
"""People up to whom all couples are made anew; of more, those who are both here stay together, and are exchanged."""

MANY = 60_000
"""People beyond whom couples are made by quick loops, one pass over a matching that others improve."""


def make(task: PodTask) -> MadePods:
    """Pods and classes of the records of a task."""
    if task.blind:
        from sequester.methods.pods.blind.make import make_blind

        return make_blind(task)
    types = Types(task.before, task.label_before)
    people = _people(task, types, _place_of(task))
    filled = _beside(task, types, people, settled(task, people))
    share = np.bincount(task.label, minlength=len(task.bounds)) / len(task)
    draw_labels(filled, task.bounds, share, task.barred, Spread(np.random.default_rng(task.seed)))
    if task.accompanied:
        complete(filled, task.inferred)
    if task.one_type:
        add_company(filled, task.k)
    elif (lacking := task.k - int(np.count_nonzero(filled.taken >= -1))) > 0:
        first = filled.label[:1]
        filled.add_decoys(np.repeat(first, -(-lacking // int((first >= 0).sum())), axis=0))
    return classes_of(task, types, people, filled, large=_is_large(task))


def _is_large(task: PodTask) -> bool:
    return task.part_of_many or len(task) > MANY


def _place_of(task: PodTask) -> Places:
    """(records, attributes) where everybody is."""
    place = np.empty((len(task), len(task.domains)))
    for axis, (domain, row) in enumerate(zip(task.domains, task.codes, strict=True)):
        place[:, axis] = domain.position[row]
    return place


def _people(task: PodTask, types: Types, place: Places) -> PodPeople:
    """Everybody, with what she brings from before."""
    records = len(task)
    want, kind, seat = (np.full(records, -1, np.int64) for _ in range(3))
    lineage, linked = np.full(records, -1, np.int64), np.ones(records, np.int64)
    old = np.flatnonzero(task.person >= 0)
    if len(old):
        person = task.person[old]
        kind[old], seat[old] = task.before.type[person], task.before.seat[person]
        others = np.array([labels[1::-1] if len(labels) == 2 else (-1, -1) for labels in types], np.int64)
        want[old] = others[kind[old], np.minimum(seat[old], 1)]
        if task.lineage is not None:
            of = task.before.lineages()
            lineage[old] = of[person]
            linked[old] = np.bincount(of[~task.before.decoy], minlength=int(of.max()) + 1)[lineage[old]]
    alone = np.full(records, _DEAREST)
    label = task.label.astype(np.int64)
    return PodPeople(place, label, want, kind, seat, lineage, linked, alone, leaving=_leaving(task))


def _leaving(task: PodTask) -> float:
    """The share of people of a release who are not in the next, over all so far and this one."""
    before = task.before
    here = np.zeros(len(before), np.bool_)
    here[task.person[task.person >= 0]] = True
    tables = [*((pods >= 0) & ~before.decoy for pods in before.pods), here]
    left = sum(int((one & ~other).sum()) for one, other in pairwise(tables))
    return left / max(sum(int(one.sum()) for one in tables[:-1]), 1)


def _beside(task: PodTask, types: Types, people: PodPeople, filled: PodSeats) -> PodSeats:
    """These pods, and those of everybody who is in none of them."""
    free = np.ones(len(task), np.bool_)
    free[filled.taken[filled.taken >= 0]] = False
    rest = np.flatnonzero(free)
    if len(rest) == len(task):
        return _within_budget(task, types, people)
    if len(rest):
        found = _within_budget(task.of(rest), types, people.of(rest, _DEAREST))
        filled.add(np.where(found.taken >= 0, rest[np.maximum(found.taken, 0)], found.taken), found.label)
    return filled


def _within_budget(task: PodTask, types: Types, people: PodPeople) -> PodSeats:
    """Pods at the lowest price of a decoy that keeps the budget; at the highest, if that does not."""
    if _is_large(task):
        # Many people are paired once, and what is left of the budget is spent on those who are farthest apart.
        return _share(task, types, people, _DEAREST)
    part, some = (task, people) if len(task) <= _SAMPLE else _sampled(task, people)
    best = _share(part, types, some, _DEAREST)
    if _decoys(best) < task.decoys:
        low, high = 0.0, float(people.place.shape[1])
        for _ in range(_TRIALS):
            middle = (low + high) / 2
            found = _share(part, types, some, middle)
            if _decoys(found) > task.decoys:
                low = middle
            else:
                high, best = middle, found
        if part is task:
            return best
        for dearer in _DEARER:
            best = _share(task, types, people, dearer * high)
            if _decoys(best) <= task.decoys:
                return best
    if part is not task:
        best = _share(task, types, people, _DEAREST)
    if _decoys(best) >= task.decoys:
        best = min(best, _share(task, types, people, _DEAREST, wide=_WIDE), key=_decoys)
        if task.lineage is None or task.lineage > 2:
            best = attach(best, people.place, people.label, people.kind < 0, task.bounds, task.barred)
    return best


def _sampled(task: PodTask, people: PodPeople) -> tuple[PodTask, PodPeople]:
    """Some neighborhoods of a large table, to find a price by."""
    cells = cells_of(people.place, np.arange(len(task)), _SAMPLE // 8, 0)
    draws = np.random.default_rng([task.seed, 1])
    rows = np.sort(np.concatenate([cells[place] for place in draws.permutation(len(cells))[:8].tolist()]))
    return task.of(rows), people.of(rows, _DEAREST)


def _decoys(filled: PodSeats) -> float:
    """The share of rows that are about nobody."""
    return float(np.count_nonzero(filled.taken == -1) / np.count_nonzero(filled.taken >= -1))


def _share(task: PodTask, types: Types, people: PodPeople, price: float, *, wide: int = 1) -> PodSeats:
    """Everybody in a pod: who has a seat with others of her type, newcomers at empty seats or in pods of their own."""
    label, place = people.label, people.place
    seats = np.array([len(labels) for labels in types], np.int64)
    of_type = np.where(people.kind >= 0, np.append(seats, 0)[people.kind], 0)
    new = np.flatnonzero(people.kind < 0)
    needs = np.maximum(task.bounds.seats(), min(task.inferred, 2))
    key = people.kind if task.lineage is None else people.lineage
    large = np.flatnonzero(of_type > 2)
    filled = seat_again(place, large, people.kind, people.seat, key, list(types), price)
    if len(filled):
        room = None if task.lineage is None else _room(filled, people, task.lineage)
        new = take_seats(filled, place, new, label, room, price, task.barred)
    if task.accompanied:
        gathered, new = gather(task, place, label, new)
        filled.add(gathered.taken, gathered.label)
    for most in sorted({int(one) for one in needs[label[new]]} - {1, 2}, reverse=True):
        first = new[needs[label[new]] == most]
        # Whoever needs fewer seats may sit with them, but need not: only as many as are missing.
        rest = new[needs[label[new]] < most]
        found = new_pods(place, first, label, task.bounds, most, price, task.barred)
        found_rest = _fill_up(found, place, rest, label, task, price)
        filled.add(found.taken, found.label)
        new = found_rest
    alone = np.concatenate([np.flatnonzero(of_type == 1), new[needs[label[new]] == 1]])
    filled.add(alone[:, None], label[alone][:, None])
    pairs = np.concatenate([np.flatnonzero(of_type == 2), new[needs[label[new]] == 2]])
    filled.add(*_couples(task, types, people, np.sort(pairs), price, wide=wide))
    return filled


def _fill_up(filled: PodSeats, place: Places, rest: Integers, label: Integers, task: PodTask, price: float) -> Integers:
    """Others sit where seats of new pods are empty; returns who does not."""
    while len(rest) and (filled.taken == -1).any():
        after = join(filled, place, rest, label, task.bounds, price, task.barred)
        if len(after) == len(rest):
            break
        rest = after
    return rest


def _room(filled: PodSeats, people: PodPeople, most: int) -> Integers:
    """How many newcomers each pod may take; a lineage of several pods gives its room to the first of them."""
    anybody = filled.taken[np.arange(len(filled)), (filled.taken >= 0).argmax(axis=1)]
    room = np.maximum(most - people.linked[anybody], 0)
    _, first = np.unique(people.lineage[anybody], return_index=True)
    found = np.zeros(len(filled), np.int64)
    found[first] = room[first]
    return found


def _couples(
    task: PodTask, types: Types, people: PodPeople, chosen: Integers, price: float, *, wide: int
) -> tuple[Integers, Integers]:
    """Pods of two seats of these people: who sits there, and the labels of the seats."""
    everybody = len(chosen) == len(people)
    part = replace(people, alone=np.full(len(people), price)) if everybody else people.of(chosen, price)
    barred = None if task.barred is None else task.barred[chosen]
    kept = None if len(chosen) <= _ANEW else _intact(task, chosen)
    if not _is_large(task):
        partner = pair(part, task.bounds, barred, task.lineage, kept=kept, wide=wide)
    else:
        # A share of all rows, decoys included; there is never more than one for everybody.
        budget = int(task.decoys / max(1 - task.decoys, task.decoys) * len(chosen))
        partner = pair_many(part, task.bounds, barred, task.lineage, kept=kept, budget=budget)
    first = np.flatnonzero((partner < 0) | (partner > np.arange(len(chosen))))
    second = partner[first]
    # Whoever has a seat says which is whose; of two newcomers anybody sits first.
    led = np.where((part.kind[first] < 0) & (second >= 0), second, first)
    lead = np.where(part.kind[led] >= 0, led, first)
    other = np.where(lead == first, second, first)
    kind, seat = part.kind[lead], np.maximum(part.seat[lead], 0)
    taken = np.full((len(first), 2), -1, np.int64)
    rows = np.arange(len(first))
    taken[rows, seat] = chosen[lead]
    taken[rows, 1 - seat] = np.where(other >= 0, np.append(chosen, -1)[other], -1)
    labels = np.where(taken >= 0, people.label[taken], -1)
    known = np.array([labels if len(labels) == 2 else (-1, -1) for labels in types], np.int64).reshape(-1, 2)
    if len(known):
        labels = np.where((kind >= 0)[:, None], known[kind], labels)
    return taken, labels


def _intact(task: PodTask, chosen: Integers) -> Integers:
    """Partners of the last release who are both here, by their places among these records; -1 for the others."""
    found = np.full(len(chosen), -1, np.int64)
    if not task.before.pods:
        return found
    person = task.person[chosen]
    pod = np.where(person >= 0, task.before.pods[-1][person], -1)
    here = np.flatnonzero(pod >= 0)
    last = np.zeros(int(pod.max(initial=-1)) + 1, np.int64)
    last[pod[here]] = here
    # Nobody here was in a pod of more than two seats.
    one = here[last[pod[here]] != here]
    found[one], found[last[pod[one]]] = last[pod[one]], one
    return found
