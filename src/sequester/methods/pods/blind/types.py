"""The types of newcomers in blind pods: drawn so that permuting the labels of a type leaves its chance as it is."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.methods.pods.classes.grouping import cut
from sequester.methods.pods.task import Least, PodTask

Integers = NDArray[np.int64]
EXACT = 1e-12
"""How far rows of chances may be from one: what is drawn by them then differs by less than anybody could see."""

ROUNDS = 20_000
"""Rounds of scaling until that is reached; beyond, blind pods are refused."""


class Draws(Protocol):
    """Where labels are drawn from."""

    def integers(self, low: int, high: int, /, size: int) -> Any:
        """So many numbers from low to below high."""
        ...

    def choice(self, a: int, /, size: int, *, p: NDArray[np.float64]) -> Any:
        """So many numbers below a, with these chances."""
        ...


def types_of_newcomers(
    task: PodTask, new: Integers, rank: Integers, draws: Draws
) -> tuple[Integers, Integers, Integers]:
    """Per newcomer, her group; the labels of her type in order, -1 after the last; and which of them is hers.

    Labels that nothing is promised about are types of their own: such people are nobody's partners. The others are
    grouped, among those for whom the same is possible, by quasi-identifiers alone.
    """
    needs = task.bounds.needs()
    bounded = needs > 1
    # As many seats as the strictest promise needs, whoever is there.
    seats = int(needs.max(initial=1))
    label = task.label[new].astype(np.int64)
    group = np.arange(len(new), dtype=np.int64)
    rows = np.full((len(new), seats), -1, np.int64)
    rows[:, 0] = label
    clash = task.bounds.clash()
    plain = not (clash & ~np.eye(len(clash), dtype=np.bool_))[np.ix_(bounded, bounded)].any()
    if not plain and seats > 2:
        raise GuaranteeError(
            "blind pods of three and more seats know one sensitive column and no insensitive ones that stay; let "
            "confidence be one half or more, or leave method.blind out. Nothing was published.",
            guarantee="series",
        )
    begin = len(new)
    for here, labels in _alike(task, new, label, bounded):
        code = np.searchsorted(labels, label[here])
        if len(labels) < seats:
            raise GuaranteeError(
                "there are fewer different values than a pod must have; promise less, or call frequent values "
                "ordinary. Nothing was published.",
                guarantee="series",
            )
        if plain:
            place = np.column_stack(
                [d.position[row[new[here]]] for d, row in zip(task.domains, task.codes, strict=True)]
            )
            own = nearest_groups(place, rank[new[here]], seats)
            rows[here] = labels[filled_up(own, code, len(labels), seats, draws)][own]
            group[here] = begin + own
            begin += len(here)
        else:
            other = _partners(code, ~clash[np.ix_(labels, labels)], draws)
            rows[here] = np.sort(labels[np.column_stack([code, other])], axis=1)
    return group, rows, (rows == label[:, None]).argmax(1)


def _alike(
    task: PodTask, new: Integers, label: Integers, bounded: NDArray[np.bool_]
) -> list[tuple[Integers, Integers]]:
    """Newcomers with bounded labels, apart by what is possible for them; and what is."""
    inside = np.flatnonzero(bounded[label])
    if not len(inside):
        return []
    if task.barred is None:
        return [(inside, np.flatnonzero(bounded))]
    can = bounded[None, :] & ~task.barred[new[inside]]
    can[np.arange(len(inside)), label[inside]] = True
    sets, which = np.unique(can, axis=0, return_inverse=True)
    return [(inside[which.ravel() == number], np.flatnonzero(one)) for number, one in enumerate(sets)]


def nearest_groups(place: NDArray[np.float64], rank: Integers, size: int) -> Integers:
    """Groups of `size` who are near each other; those left over at the end are one smaller group."""
    group = np.empty(len(place), np.int64)
    left, begin = np.argsort(rank), 0
    while len(left) >= size:
        spot = place[left]
        leaf = cut(spot, spot, np.ones((len(left), 2), np.int32), Least(size, size))
        count = np.bincount(leaf)
        middle = np.column_stack([np.bincount(leaf, weights=axis) / count for axis in spot.T])
        order = np.lexsort((np.arange(len(left)), np.abs(spot - middle[leaf]).sum(1), leaf))
        within = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
        taken = order[within < size]
        group[left[taken]] = begin + leaf[taken]
        begin += len(count)
        left = left[np.sort(order[within >= size])]
    group[left] = begin
    return np.unique(group, return_inverse=True)[1].ravel().astype(np.int64)


def filled_up(group: Integers, code: Integers, values: int, seats: int, draws: Draws) -> Integers:
    """Per group its different codes and others below `values`, any of them as likely as any other, in order."""
    distinct = np.unique(np.column_stack([group, code]), axis=0)
    count = np.bincount(distinct[:, 0], minlength=int(group.max(initial=-1)) + 1)
    nothing = np.iinfo(np.int64).max
    found = np.full((len(count), seats), nothing, np.int64)
    start = np.cumsum(count) - count
    found[distinct[:, 0], np.arange(len(distinct)) - start[distinct[:, 0]]] = distinct[:, 1]
    for have in range(1, seats):
        short = np.flatnonzero(count == have)
        if len(short):
            drawn = np.asarray(draws.integers(0, values - have, size=len(short)), np.int64)
            for at in range(have):
                drawn += drawn >= found[short, at]
            found[short, have] = drawn
            found[short] = np.sort(found[short], axis=1)
            count[short] += 1
    return found


def _partners(code: Integers, fits: NDArray[np.bool_], draws: Draws) -> Integers:
    """For everybody another label that fits hers: b with a as often as a with b."""
    chance = even_chances(fits)
    found = np.empty(len(code), np.int64)
    for own in np.unique(code).tolist():
        here = np.flatnonzero(code == own)
        found[here] = draws.choice(len(fits), size=len(here), p=chance[own] / chance[own].sum())
    return found


def even_chances(fits: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(labels, labels) symmetric chances where labels fit each other, every row adds up to one."""
    links = _matched(fits & ~np.eye(len(fits), dtype=np.bool_))
    if links.any(1).all():
        scale = 1 / np.sqrt(links.sum(1))
        for _ in range(ROUNDS):
            rows = scale * (links @ scale)
            if np.abs(rows - 1).max() <= EXACT:
                return np.where(links, np.outer(scale, scale), 0.0)
            scale = scale / np.sqrt(rows)
    raise GuaranteeError(
        "some combination of cells has too few others that share none of its values: blind pods cannot draw them as "
        "often as each other. Publish fewer columns, or leave method.blind out. Nothing was published.",
        guarantee="series",
    )


def _matched(links: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Those links that some perfect matching of labels to labels has; all others have no chance. None without one."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    to = maximum_bipartite_matching(csr_array(links.astype(np.int8)), perm_type="column")
    if (to < 0).any():
        return np.zeros_like(links)
    # From a label to whoever is matched to what it could have: links within a circle can be exchanged.
    whose = np.empty(len(to), np.int64)
    whose[to] = np.arange(len(to))
    rows, columns = np.nonzero(links)
    steps = csr_array((np.ones(len(rows), np.int8), (rows, whose[columns])), shape=links.shape)
    circle = connected_components(steps, directed=True, connection="strong")[1]
    found: NDArray[np.bool_] = links & (circle[:, None] == circle[whose][None, :])
    return found
