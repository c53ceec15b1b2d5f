"""The next release by pods: everybody who is in the table, at once, beside decoys for those who are missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.methods.pods.classes.boxes import boxes_of
from sequester.methods.pods.classes.company import complete, group_company, spared
from sequester.methods.pods.classes.grouping import group
from sequester.methods.pods.classes.one_type import add_company, group_types
from sequester.methods.pods.many.company import group_types_of_many
from sequester.methods.pods.many.couples import pair_many
from sequester.methods.pods.many.grouping import group_many
from sequester.methods.pods.pairing.benches import Benches, attach, join, may_join, new_pods, seat_again, take_seats
from sequester.methods.pods.pairing.couples import Singles, cells_of, pair
from sequester.methods.pods.pairing.gather import gather
from sequester.methods.pods.pairing.settled import settled
from sequester.methods.pods.task import Made, Task
from sequester.methods.pods.types import Types

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_DEAREST = 1e3
"""A price at which nobody has a decoy who could have a partner."""

_TRIALS = 7
_WIDE = 6
_SAMPLE = 10_000
"""People up to whom the price of a decoy is found by trying; of more, on neighborhoods with so many."""
_ANEW = 60_000
"""People up to whom all couples are made anew; of more, those who are both here stay together, and are exchanged."""
MANY = 60_000
"""People beyond whom couples and classes are made by quick loops, one pass over a matching that others improve."""


def make(task: Task) -> Made:
    """Pods and classes of the records of a task."""
    if task.blind:
        from sequester.methods.pods.blind.make import make_blind

        return make_blind(task)
    types = Types(task.before, task.label_before)
    people = _singles(task, types, place_of(task))
    benches = _beside(task, types, people, settled(task, people))
    _decide_labels(benches, task, np.random.default_rng(task.seed))
    if task.accompanied:
        complete(benches, task.inferred)
    if task.one_type:
        add_company(benches, task.k)
    else:
        _add_company(benches, task.k)
    return _classes(task, types, people, benches)


def _is_large(task: Task) -> bool:
    return task.part_of_many or len(task) > MANY


def place_of(task: Task) -> Places:
    """(records, attributes) where everybody is."""
    place = np.empty((len(task), len(task.domains)))
    for axis, (domain, row) in enumerate(zip(task.domains, task.codes, strict=True)):
        place[:, axis] = domain.position[row]
    return place


def _singles(task: Task, types: Types, place: Places) -> Singles:
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
    return Singles(place, label, want, kind, seat, lineage, linked, alone, leaving=_leaving(task))


def _leaving(task: Task) -> float:
    """The share of people of the last release who are not in this one."""
    if not task.before.pods:
        return 0.0
    last = (task.before.pods[-1] >= 0) & ~task.before.decoy
    here = np.zeros(len(last), np.bool_)
    here[task.person[task.person >= 0]] = True
    return int((last & ~here).sum()) / max(int(last.sum()), 1)


def _beside(task: Task, types: Types, people: Singles, benches: Benches) -> Benches:
    """These pods, and those of everybody who is in none of them."""
    rest = np.setdiff1d(np.arange(len(task)), benches.taken[benches.taken >= 0])
    if len(rest) == len(task):
        return _within_budget(task, types, people)
    if len(rest):
        found = _within_budget(task.of(rest), types, people.of(rest, _DEAREST))
        benches.add(np.where(found.taken >= 0, rest[np.maximum(found.taken, 0)], found.taken), found.label)
    return benches


def _within_budget(task: Task, types: Types, people: Singles) -> Benches:
    """Pods at the lowest price of a decoy that keeps the budget; at the highest, if that does not."""
    best = _share(task, types, people, _DEAREST)
    if _is_large(task):
        # Many people are paired once, and what is left of the budget is spent on those who are farthest apart.
        return best
    low, high = 0.0, float(people.place.shape[1])
    if _decoys(best) >= task.decoys:
        best = min(best, _share(task, types, people, _DEAREST, wide=_WIDE), key=_decoys)
        if task.lineage is None or task.lineage > 2:
            best = attach(best, people.place, people.label, people.kind < 0, task.bounds, task.barred)
        return best
    part, some = (task, people) if len(task) <= _SAMPLE else _sampled(task, people)
    for _ in range(_TRIALS):
        middle = (low + high) / 2
        found = _share(part, types, some, middle)
        if _decoys(found) > task.decoys:
            low = middle
        else:
            high, best = middle, found if part is task else best
    if part is task:
        return best
    for dearer in (1.0, 1.3):
        found = _share(task, types, people, dearer * high)
        if _decoys(found) <= task.decoys:
            return found
    return best


def _sampled(task: Task, people: Singles) -> tuple[Task, Singles]:
    """Some neighborhoods of a large table, to find a price by."""
    cells = cells_of(people.place, np.arange(len(task)), _SAMPLE // 8, 0)
    draws = np.random.default_rng([task.seed, 1])
    rows = np.sort(np.concatenate([cells[place] for place in draws.permutation(len(cells))[:8].tolist()]))
    return task.of(rows), people.of(rows, _DEAREST)


def _decoys(benches: Benches) -> float:
    """The share of rows that are about nobody."""
    return float(np.count_nonzero(benches.taken == -1) / np.count_nonzero(benches.taken >= -1))


def _share(task: Task, types: Types, people: Singles, price: float, *, wide: int = 1) -> Benches:
    """Everybody in a pod: who has a seat with others of her type, newcomers at empty seats or in pods of their own."""
    label, place = people.label, people.place
    seats = np.array([len(labels) for labels in types], np.int64)
    of_type = np.where(people.kind >= 0, np.append(seats, 0)[people.kind], 0)
    new = np.flatnonzero(people.kind < 0)
    needs = np.maximum(task.bounds.seats(), min(task.inferred, 2))
    key = people.kind if task.lineage is None else people.lineage
    large = np.flatnonzero(of_type > 2)
    benches = seat_again(place, large, people.kind, people.seat, key, list(types), price)
    if len(benches):
        room = None if task.lineage is None else _room(benches, people, task.lineage)
        new = take_seats(benches, place, new, label, room, price, task.barred)
    if task.accompanied:
        gathered, new = gather(task, place, label, new)
        benches.add(gathered.taken, gathered.label)
    for most in sorted({int(one) for one in needs[label[new]]} - {1, 2}, reverse=True):
        first = new[needs[label[new]] == most]
        # Whoever needs fewer seats may sit with them, but need not: only as many as are missing.
        rest = new[needs[label[new]] < most]
        found = new_pods(place, first, label, task.bounds, most, price, task.barred)
        found_rest = _fill_up(found, place, rest, label, task, price)
        benches.add(found.taken, found.label)
        new = found_rest
    alone = np.concatenate([np.flatnonzero(of_type == 1), new[needs[label[new]] == 1]])
    benches.add(alone[:, None], label[alone][:, None])
    pairs = np.concatenate([np.flatnonzero(of_type == 2), new[needs[label[new]] == 2]])
    benches.add(*_couples(task, types, people, np.sort(pairs), price, wide=wide))
    return benches


def _fill_up(benches: Benches, place: Places, rest: Integers, label: Integers, task: Task, price: float) -> Integers:
    """Others sit where seats of new pods are empty; returns who does not."""
    while len(rest) and (benches.taken == -1).any():
        after = join(benches, place, rest, label, task.bounds, price, task.barred)
        if len(after) == len(rest):
            break
        rest = after
    return rest


def _room(benches: Benches, people: Singles, most: int) -> Integers:
    """How many newcomers each pod may take; a lineage of several pods gives its room to the first of them."""
    anybody = benches.taken[np.arange(len(benches)), (benches.taken >= 0).argmax(axis=1)]
    room = np.maximum(most - people.linked[anybody], 0)
    _, first = np.unique(people.lineage[anybody], return_index=True)
    found = np.zeros(len(benches), np.int64)
    found[first] = room[first]
    return found


def _couples(
    task: Task, types: Types, people: Singles, chosen: Integers, price: float, *, wide: int
) -> tuple[Integers, Integers]:
    """Pods of two seats of these people: who sits there, and the labels of the seats."""
    everybody = len(chosen) == len(people)
    part = replace(people, alone=np.full(len(people), price)) if everybody else people.of(chosen, price)
    barred = None if task.barred is None else task.barred[chosen]
    kept = None if len(chosen) <= _ANEW else _intact(task, chosen)
    if not _is_large(task):
        partner = pair(part, task.bounds, barred, task.lineage, kept=kept, wide=wide)
    else:
        budget = int(task.decoys * len(chosen))
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


def _intact(task: Task, chosen: Integers) -> Integers:
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


def _decide_labels(benches: Benches, task: Task, draws: np.random.Generator) -> None:
    """The labels of new pods' empty seats, each drawn evenly among those that fit: never by how frequent they are."""
    offered = np.arange(len(task.bounds))
    known: dict[bytes, NDArray[np.bool_]] = {}
    for pod, seat in zip(*np.nonzero((benches.taken == -1) & (benches.label == -1)), strict=True):
        one = Benches(benches.taken[pod : pod + 1], benches.label[pod : pod + 1])
        # Which labels fit depends on those that are there alone.
        fits = known.get(key := one.label.tobytes())
        if fits is None:
            fits = known[key] = may_join(one, np.zeros(len(offered), np.int64), offered, task.bounds)
        if task.barred is not None:
            sits = one.taken[one.taken >= 0]
            able = fits & ~task.barred[sits].any(axis=0)
            fits = able if able.any() else fits
        if not fits.any():
            raise GuaranteeError(
                "there are fewer different values than a pod must have; promise less, or call frequent values "
                "ordinary. Nothing was published.",
                guarantee="series",
            )
        benches.label[pod, seat] = draws.choice(offered[fits])


def _add_company(benches: Benches, k: int) -> None:
    """Where the whole table has fewer than k rows, pods of decoys beside it."""
    lacking = k - int(np.count_nonzero(benches.taken >= -1))
    while lacking > 0:
        seats = benches.label[:1]
        benches.add(np.where(seats == -2, -2, -1), seats)
        lacking -= int(np.count_nonzero(seats >= 0))


@dataclass(frozen=True, eq=False, repr=False)
class _Seated:
    """Rows by pod: records, then decoys."""

    pod: Integers
    kind: Integers
    seat: Integers
    decoy_label: Integers


def _seated(benches: Benches, types: Types, people: Singles) -> _Seated:
    """Every row's pod, type and seat. New pods get a type: their labels in order."""
    records = len(people)
    order = np.argsort(np.where(benches.label >= 0, benches.label, 1 << 40), axis=1, kind="stable")
    kind = np.full(len(benches), -1, np.int64)
    for who in benches.taken.T:
        kind = np.maximum(kind, np.where(who >= 0, people.kind[np.maximum(who, 0)], -1))
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    fresh = np.flatnonzero(kind < 0)
    if len(fresh):
        ordered = np.take_along_axis(benches.label[fresh], order[fresh], axis=1)
        unique, which = _different(ordered)
        numbers = [types.number([one for one in row if one >= 0]) for row in unique.tolist()]
        kind[fresh] = np.array(numbers, np.int64)[which]
    # The benches of those who have a seat are in the order of their type.
    seat = np.broadcast_to(np.arange(order.shape[1]), order.shape).copy()
    seat[fresh] = rank[fresh]
    pod, column = np.nonzero(benches.taken >= -1)
    sits = benches.taken[pod, column]
    decoy = np.flatnonzero(sits < 0)
    sits[decoy] = records + np.arange(len(decoy))
    row = np.empty_like(sits)
    row[sits] = np.arange(len(sits))
    pod, column = pod[row], column[row]
    return _Seated(pod, kind[pod], seat[pod, column], benches.label[pod[records:], column[records:]])


def _different(rows: Integers) -> tuple[Integers, Integers]:
    """The different rows in order, and which of them each is; one number per row where there are few of them."""
    least, wide = int(rows.min()), int(rows.max()) - int(rows.min()) + 1
    if wide ** rows.shape[1] > 1 << 24:
        unique, which = np.unique(rows, axis=0, return_inverse=True)
        return unique, which.ravel()
    key = np.zeros(len(rows), np.int64)
    for column in rows.T:
        key = key * wide + (column - least)
    there = np.bincount(key, minlength=wide ** rows.shape[1]) > 0
    found = np.flatnonzero(there)
    digits = found[:, None] // wide ** np.arange(rows.shape[1] - 1, -1, -1) % wide
    return digits + least, (np.cumsum(there) - 1)[key]


def _classes(task: Task, types: Types, people: Singles, benches: Benches) -> Made:
    """Classes of the pods, and everything there is to say about them."""
    seated = _seated(benches, types, people)
    records, rows = len(task), len(seated.pod)
    real = np.arange(rows) < records
    width = max(len(labels) for labels in types)
    key = seated.kind * width + seated.seat
    if task.lineage is not None:
        linked = _linked_now(people, seated.pod)
        key = np.unique(key * (int(linked.max()) + 1) + linked, return_inverse=True)[1].ravel()
    shown = np.concatenate([people.label, seated.decoy_label])
    if _is_large(task) and task.accompanied:
        need = max(task.k, task.inferred)
        member, pod = group_types_of_many(people.place, seated.pod, seated.kind, shown, need), seated.pod
    elif _is_large(task) and not task.one_type:
        member, pod = group_many(people.place, seated.pod, task.k), seated.pod
    else:
        where = np.vstack([people.place, people.place[_like(seated.pod, records)]])
        if task.one_type:
            member, pod = group_types(where, real, seated.pod, key, task.k, seated.kind)
        elif task.accompanied:
            member, pod = group_company(where, real, seated.pod, key, shown, task.k, task.inferred)
        else:
            member, pod = group(where, real, seated.pod, key, task.k)
    idle = _idle(member, pod, real, task.k)
    if task.accompanied and idle.any():
        idle = spared(member, pod, shown, idle, task.inferred)
    kept = np.flatnonzero(~idle)
    rows = len(kept)
    member, pod = (_numbered(one[kept]) for one in (member, pod))
    lonely = np.bincount(pod[:records], minlength=int(pod.max()) + 1)[pod[records:]] == 0
    like = np.where(lonely, _like(member, records), _like(pod, records))
    lo, hi = boxes_of(member[:records], task.codes.T)
    return Made(
        member=member.astype(np.int32),
        lo=np.ascontiguousarray(lo.T),
        hi=np.ascontiguousarray(hi.T),
        pod=pod.astype(np.int32),
        type=seated.kind[kept].astype(np.int32),
        seat=seated.seat[kept].astype(np.int32),
        decoy_person=np.full(rows - records, -1, np.int64),
        decoy_label=seated.decoy_label[kept[records:] - records].astype(np.int32),
        decoy_like=like,
        facts={"decoys": float(rows - records)},
    )


def _numbered(keys: Integers) -> Integers:
    """The same keys, from 0 on and without gaps."""
    there = np.zeros(int(keys.max()) + 1, np.bool_)
    there[keys] = True
    return np.asarray((np.cumsum(there) - 1)[keys])


def _idle(member: Integers, pod: Integers, real: NDArray[np.bool_], k: int) -> NDArray[np.bool_]:
    """Rows of pods in which people have found each other and left decoys alone, where the class has k rows without."""
    size, people = np.bincount(pod), np.bincount(pod[real], minlength=int(pod.max()) + 1)
    rows, of_pod = np.bincount(member), np.zeros(len(size), np.int64)
    of_pod[pod] = member
    idle = np.zeros(len(size), np.bool_)
    for one in np.flatnonzero((people == 0) & (size > 0)).tolist():
        if rows[of_pod[one]] - size[one] >= k:
            idle[one] = True
            rows[of_pod[one]] -= size[one]
    return np.asarray(idle[pod])


def _like(pod: Integers, records: int) -> Integers:
    """Per decoy, a record of its pod; anybody where there is none."""
    of = np.zeros(int(pod.max(initial=-1)) + 1, np.int64)
    of[pod[:records][::-1]] = np.arange(records)[::-1]
    found: Integers = of[pod[records:]]
    return found


def _linked_now(people: Singles, pod: Integers) -> Integers:
    """The lineage of every row, this release's pods included."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pods, rows = int(pod.max()) + 1, len(pod)
    old = np.flatnonzero(people.lineage >= 0)
    one = np.concatenate([np.arange(rows), old])
    other = np.concatenate([rows + pod, rows + pods + people.lineage[old]])
    size = rows + pods + int(people.lineage.max(initial=-1)) + 1
    links = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    found: Integers = connected_components(links, directed=False)[1][:rows].astype(np.int64)
    return found
