"""Take back what the audit found unsafe: the people concerned, and all they are tied to, return to the merge."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from sequester.attacks.finding import Finding
from sequester.history.past import Past
from sequester.methods.classes import Classes


def fall_back(past: Past, classes: Classes, merged: Classes, findings: Iterable[Finding]) -> Classes:
    """The classes with those of the merge wherever a finding reaches.

    People who ever shared a class, or share one in either version, go together: an attack never crosses them.
    """
    part = _parts(past, classes, merged)
    hit = np.zeros(int(part.max(initial=-1)) + 2, np.bool_)
    hit[part[_concerned(past, classes, findings)]] = True
    back = hit[part]
    member = np.where(back, merged.member + len(classes), classes.member).astype(np.int32)
    used, compact = np.unique(member, return_inverse=True)
    lo, hi = np.hstack([classes.lo, merged.lo]), np.hstack([classes.hi, merged.hi])
    return Classes(compact.astype(np.int32), lo[:, used], hi[:, used])


def _parts(past: Past, classes: Classes, merged: Classes) -> NDArray[np.int32]:
    """Per record, the number of its connected part."""
    records, known = np.arange(len(past)), past.first.trajectories
    edges = [(records, classes.member, len(classes)), (records, merged.member, len(merged))]
    if known is not None:
        trajectories = len(past) + np.arange(len(known))
        edges.append((records, known.of[past.person], len(known)))
        edges += [(trajectories, known.path[:, i], len(release)) for i, release in enumerate(past.first.releases)]
    # Trajectories come right after the records, so that their number as an end is their number as a start.
    order = [2, 0, 1, *range(3, len(edges))] if known is not None else [0, 1]
    first, tails, heads = len(past), [], []
    for tail, head, count in (edges[place] for place in order):
        there = head >= 0
        tails.append(tail[there])
        heads.append(head[there] + first)
        first += count
    start, end = np.concatenate(tails), np.concatenate(heads)
    graph = csr_array((np.ones(len(start), np.int8), (start, end)), shape=(first, first))
    label: NDArray[np.int32] = connected_components(graph, directed=False)[1][: len(past)]
    return label


def _concerned(past: Past, classes: Classes, findings: Iterable[Finding]) -> NDArray[np.int64]:
    """Records of the people and classes that the findings name."""
    new = len(past.first) + 1
    people: set[int] = set()
    named: dict[int, set[int]] = {}
    for finding in findings:
        people.update(finding.people)
        for release, number in finding.classes:
            named.setdefault(release, set()).add(number - 1)
    concerned = np.isin(past.person, np.array(sorted(people), np.int64))
    for release, numbers in named.items():
        listed = np.array(sorted(numbers), np.int64)
        if release == new:
            concerned |= np.isin(classes.member, listed)
        else:
            member = past.first.releases[release - 1].member
            assert member is not None
            concerned |= np.isin(member[past.person], listed)
    return np.flatnonzero(concerned)
