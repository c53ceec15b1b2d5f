"""Find people in the boxes of a release: by their raw values, where nothing says who is in which class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.errors import DataError
from sequester.history.boxes import intersecting

Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Located:
    """Where the people of one table are.

    member     per row of the table its set of classes, -1 for someone who fits no box
    merged     per class the set it belongs to: a class of its own, unless people fit several boxes
    certain    per row of the table the class she must be in, -1 where only the set is known or she fits no box
    unfit      people who fit no box
    ambiguous  people of whom only the set is known
    whole      whether these are all people of the release; of others nothing is known then
    """

    member: Integers
    merged: Integers
    certain: Integers
    unfit: int
    ambiguous: int
    whole: bool = True


def locate(points: Integers, lo: Integers, hi: Integers, *, size: NDArray[np.int64]) -> Located:
    """The class of every person, given raw codes (attributes, people), boxes (attributes, classes) and class sizes.

    Everybody who fits a box must have a row, so there must not be more of them than rows. With fewer, others are in the
    release whom nobody knows, and a class is certain for who fits no other. Else someone who fits several boxes is in
    one of those that her fellows do not fill, whichever way they are shared out; if that leaves more than one, these
    classes count as one set, of which the members are known but not who is in which.
    """
    person, box = inside(points, lo, hi)
    people = points.shape[1]
    fits = np.bincount(person, minlength=people)
    unfit = int(np.count_nonzero(fits == 0))
    if people - unfit > int(size.sum()):
        raise DataError(
            f"{people - unfit} people of the population fit a published box, but the release has {int(size.sum())} "
            "rows; give only people who are in this release, or audit without a population"
        )
    person, box = _narrow(person, box, size, people=people)
    if people - unfit < int(size.sum()):
        return _locate_some(person, box, size, people=people, unfit=unfit)
    person, box = _share_out(points, person, box, size)
    merged = _merge(person, box, len(size))
    member = np.full(people, -1, np.int32)
    member[person] = merged[box]
    held = np.bincount(member[member >= 0], minlength=merged.max() + 1)
    rows = np.bincount(merged, weights=size, minlength=len(held)).astype(np.int64)
    if wrong := int(np.count_nonzero(held != rows)):
        raise DataError(
            f"in {wrong} classes there are not as many people of the population as rows; give exactly the people who "
            "are in this release, with their values as they were then, or audit without a population"
        )
    several = np.bincount(person, minlength=people) > 1
    certain = np.full(people, -1, np.int32)
    certain[person] = box
    certain[several] = -1
    return Located(member, merged, certain, unfit, int(np.count_nonzero(several)))


def _locate_some(
    person: NDArray[np.int64], box: NDArray[np.int64], size: NDArray[np.int64], *, people: int, unfit: int
) -> Located:
    """Of a part of the people, those who fit one box; the others are in a class that is not known."""
    alone = np.bincount(person, minlength=people)[person] == 1
    if wrong := int(np.count_nonzero(np.bincount(box[alone], minlength=len(size)) > size)):
        raise DataError(
            f"in {wrong} classes there are more people of the population than rows; give only people who are in "
            "this release, with their values as they were then, or audit without a population"
        )
    certain = np.full(people, -1, np.int32)
    certain[person[alone]] = box[alone]
    unknown = people - unfit - int(np.count_nonzero(alone))
    return Located(certain, np.arange(len(size), dtype=np.int32), certain, unfit, unknown, whole=False)


def inside(points: Integers, lo: Integers, hi: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of a point and a box around it: points (attributes, people), boxes (attributes, classes).

    Equal points are looked up once.
    """
    group, first = row_groups(points)
    point, box = intersecting(points[:, first], points[:, first], lo, hi)
    # Back from distinct points to people.
    start = np.searchsorted(point, np.arange(len(first) + 1))
    count = np.diff(start)[group]
    person = np.repeat(np.arange(points.shape[1]), count)
    within = np.arange(len(person)) - np.repeat(np.cumsum(count) - count, count)
    return person, box[start[group[person]] + within].astype(np.int64)


def _narrow(
    person: NDArray[np.int64], box: NDArray[np.int64], size: NDArray[np.int64], *, people: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Without the boxes that people who fit no other box fill: nobody else can be in them."""
    while True:
        sure = np.bincount(person, minlength=people)[person] == 1
        full = np.bincount(box[sure], minlength=len(size)) >= size
        keep = sure | ~full[box]
        if keep.all():
            return person, box
        person, box = person[keep], box[keep]


def _share_out(
    points: Integers, person: NDArray[np.int64], box: NDArray[np.int64], size: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Without the boxes that somebody is in in no way to share out all people.

    People with the same values are one kind. Given one way to share kinds out, another differs from it by cycles, so a
    kind can be in a box if it is there already or if both are in one cycle of what could be exchanged.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, maximum_flow

    choices = np.bincount(person, minlength=points.shape[1])
    open_ = np.flatnonzero(choices[person] > 1)
    if not len(open_):
        return person, box
    sure = choices[person] == 1
    room = size - np.bincount(box[sure], minlength=len(size))
    who = np.unique(person[open_])
    kind, first = row_groups(points[:, who])
    kinds, number = len(first), kind[np.searchsorted(who, person[open_])]
    pairs, of = np.unique(number.astype(np.int64) * len(size) + box[open_], return_inverse=True)
    tail, head = pairs // len(size), pairs % len(size)
    source, sink = kinds + len(size), kinds + len(size) + 1
    amount = np.bincount(kind, minlength=kinds)
    places = np.unique(head)
    arcs = (
        np.concatenate([np.full(kinds, source), tail, kinds + places]),
        np.concatenate([np.arange(kinds), kinds + head, np.full(len(places), sink)]),
    )
    capacity = np.concatenate([amount, amount[tail], np.maximum(room[places], 0)]).astype(np.int32)
    network = coo_array((capacity, arcs), shape=(sink + 1, sink + 1)).tocsr()
    flow = maximum_flow(network, source, sink)
    if flow.flow_value < len(who):
        raise DataError(
            "the people of the population cannot be shared out among the published classes; give exactly the people "
            "who are in this release, with their values as they were then, or audit without a population"
        )
    used = np.asarray(flow.flow[tail, kinds + head]).reshape(-1) > 0
    back = (np.concatenate([tail, kinds + head[used]]), np.concatenate([kinds + head, tail[used]]))
    graph = coo_array((np.ones(len(back[0]), np.int8), back), shape=(sink, sink))
    cycle = connected_components(graph, directed=True, connection="strong")[1]
    can = used | (cycle[tail] == cycle[kinds + head])
    keep = np.ones(len(person), np.bool_)
    keep[open_] = can[of.reshape(-1)]
    return person[keep], box[keep]


def _merge(person: NDArray[np.int64], box: NDArray[np.int64], classes: int) -> Integers:
    """Numbers for the sets of classes that people with several boxes tie together, in the order of the classes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    again = np.flatnonzero(person[1:] == person[:-1])
    ties = coo_array((np.ones(len(again), np.int8), (box[again], box[again + 1])), shape=(classes, classes))
    part: Integers = connected_components(ties, directed=False)[1].astype(np.int32)
    return part
