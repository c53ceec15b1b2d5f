"""What the audit found unsafe: the people concerned, and all they are tied to, return to the merge, or (of pods) the
classes concerned are joined with their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Finding
from sequester.deferred import connected_components, csr_array
from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.requirement import Requirement, class_counts
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


ToJoin = dict[int, NDArray[np.bool_] | None]
"""Classes to be joined, and with which others that would help; None: with any."""


def join(classes: Classes, domains: Sequence[Hierarchy], chosen: ToJoin) -> Classes:
    """The classes, those chosen joined each with the one beside which its rows lose least, of those that help."""
    lo, hi = classes.lo.copy(), classes.hi.copy()
    size, into = classes.size, np.arange(len(classes))
    joined = np.zeros(len(classes), np.bool_)
    for number, helps in chosen.items():
        own = into[number]
        if joined[own]:
            # With another already, for another's sake: whether that is enough shows when it is tried again.
            continue
        useful = None if helps is None else np.unique(into[helps])
        there = np.flatnonzero((into == np.arange(len(classes))) & (np.arange(len(classes)) != own))
        if useful is not None and len(useful):
            there = there[np.isin(there, useful)]
        if not len(there):
            continue
        low, high = np.minimum(lo[:, there], lo[:, [own]]), np.maximum(hi[:, there], hi[:, [own]])
        cost = _width(domains, low, high) * (size[there] + size[own]) - _width(domains, lo, hi)[there] * size[there]
        other = there[int(np.argmin(cost))]
        lo[:, other], hi[:, other] = np.minimum(lo[:, other], lo[:, own]), np.maximum(hi[:, other], hi[:, own])
        size[other] += size[own]
        into[into == own] = other
        joined[other] = True
    used, compact = np.unique(into, return_inverse=True)
    return Classes(compact[classes.member].astype(np.int32), lo[:, used], hi[:, used])


def unsafe_classes(past: Past, classes: Classes, findings: Iterable[Finding]) -> ToJoin:
    """Per finding a class of this release to be joined: one whose people cannot have a row, with one that shows it.

    Where that is not told, the smallest class of this release that the finding names; where none names one, all it
    reaches.
    """
    size = classes.size
    joins: ToJoin = {}
    for finding in findings:
        own, helps = _ruled_out(past, classes, finding)
        if len(own):
            joins[int(own[np.lexsort((own, size[own]))[0]])] = helps
    if joins:
        return joins
    return dict.fromkeys(np.unique(classes.member[_concerned(past, classes, findings)]).tolist())


def _ruled_out(past: Past, classes: Classes, finding: Finding) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Classes of this release that take candidates away from a traced row, and which classes show its value."""
    new = len(past.first) + 1
    named = np.array([number - 1 for release, number in finding.classes if release == new], np.int64)
    row, shows = finding.witness.get("row"), _showing(past, classes, finding)
    if row is None or shows is None:
        return named, None
    release, number = int(row[0]), int(row[1]) - 1
    if release == new:
        return np.array([number], np.int64), shows & (np.arange(len(classes)) != number)
    there = np.unique(classes.member[_class_then(past, release) == number]).astype(np.int64)
    lacking = there[~shows[there]]
    return (lacking, shows) if len(lacking) else (named, None)


def _class_then(past: Past, release: int) -> NDArray[np.int32]:
    """Per record, its class of an earlier release, counted from 1; -1 for none."""
    member = past.first.releases[release - 1].member
    if member is None:
        raise AssertionError("of the releases of a series it is known who is in which class")
    then: NDArray[np.int32] = member[past.person]
    return then


def _showing(past: Past, classes: Classes, finding: Finding) -> NDArray[np.bool_] | None:
    """Per class of this release, whether it shows the finding's value; None where that is not one of a view."""
    for history, value in zip(past.histories, past.value, strict=True):
        if history.attribute == finding.attribute and finding.value in history.values:
            code = history.values.index(str(finding.value))
            return np.bincount(classes.member, weights=value == code, minlength=len(classes)) > 0
    return None


def failing(requirement: Requirement, classes: Classes, sensitive: NDArray[np.int32]) -> NDArray[np.int64]:
    """The classes that do not keep what is promised of single releases."""
    fails = classes.size < requirement.k.k
    for view in requirement.views(sensitive) if requirement.names else ():
        for criterion in view.criteria:
            counted = class_counts(classes.member, view, classes=len(classes))
            fails |= np.concatenate([~criterion.holds(counts) for counts in counted])
    return np.flatnonzero(fails)


def as_one(classes: Classes) -> Classes:
    """All records in one class."""
    lo, hi = classes.lo.min(axis=1, keepdims=True), classes.hi.max(axis=1, keepdims=True)
    return Classes(np.zeros_like(classes.member), lo, hi)


def _width(domains: Sequence[Hierarchy], lo: NDArray[np.int32], hi: NDArray[np.int32]) -> NDArray[np.float64]:
    width: NDArray[np.float64] = np.zeros(lo.shape[1])
    for domain, low, high in zip(domains, lo, hi, strict=True):
        width += domain.width(low, high)
    return width


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
            concerned |= np.isin(_class_then(past, release), listed)
    return np.flatnonzero(concerned)
