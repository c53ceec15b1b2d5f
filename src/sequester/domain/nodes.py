"""Sensitive values that are published as nodes of their taxonomy: every inner node is one more leaf of the domain.

`Respiratory` as a published value says that a person has one of the values below it, and not which. As a leaf of its
own, beside those, it has a code like any other value, and boxes, counts, ledgers and files know nothing of it. Only two
things do: which node a value is published as (`grade`), and which values a published one may stand for (`may_be`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING, Codes, Hierarchy
from sequester.errors import PolicyError, Problem

LOW, HIGH = "low", "high"


def with_nodes(domain: Hierarchy) -> Hierarchy:
    """The domain with a leaf for every inner node, at the end of the node and named like it.

    The root is named by its label where it has one, else `*`.
    """
    nodes = _nodes(domain)
    last = domain.size - 2 if domain.missing else domain.size - 1
    items: list[tuple[float, float, int]] = [(code, 0.0, -1) for code in range(domain.size)]
    for number, (_, high, _, depth) in enumerate(nodes):
        items.append((min(high, last), depth, number))
    items.sort(key=lambda item: item[:2])
    place = {item[2]: spot for spot, item in enumerate(items) if item[2] >= 0}
    moved = np.array([spot for spot, item in enumerate(items) if item[2] < 0], np.int32)
    leaves = np.empty(len(items), object)
    position = np.zeros(len(items))
    leaves[moved], position[moved] = domain.leaves, domain.position
    for number, (low, _, label, _) in enumerate(nodes):
        leaves[place[number]], position[place[number]] = label, domain.position[low]
    starts, names = [np.arange(len(items), dtype=np.int32)], [tuple(str(leaf) for leaf in leaves)]
    for level in range(1, domain.height + 1):
        groups = domain.groups(level)
        # Below its own level a node is a group of its own.
        group = np.empty(len(items), np.int64)
        group[moved] = groups
        for number, (low, _, _, depth) in enumerate(nodes):
            group[place[number]] = groups[low] if depth <= level else -1 - number
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1])).astype(np.int32)
        called = [domain.names[level][g] if g >= 0 else nodes[-1 - g][2] for g in group[first].tolist()]
        starts.append(first)
        names.append(tuple(called))
    spans = {label: number for number, (_, _, label, _) in enumerate(nodes)}
    aliases = {
        label: (int(moved[low]), place[spans[label]] if label in spans else int(moved[high]))
        for label, (low, high) in domain.aliases.items()
    }
    return Hierarchy("category", leaves, tuple(starts), tuple(names), position, domain.missing, aliases)


def may_be(domain: Hierarchy) -> NDArray[np.bool_]:
    """(codes, codes) whether a value published as the first may be the second; nodes stand for all that is below.

    A node below a node is one of the values that it stands for: a cell may have said no more than that.
    """
    low, high = spans(domain)
    codes = np.arange(domain.size)
    inside: NDArray[np.bool_] = (codes >= low[:, None]) & (codes <= high[:, None])
    return inside


def spans(domain: Hierarchy) -> tuple[Codes, Codes]:
    """Per code, the first and last code of the node that it stands for; of a leaf, itself."""
    named: dict[str, tuple[int, int]] = {}
    # Below its own level a node is a group of one: the widest group of its name is the node.
    for level in range(1, domain.height + 1):
        first, last = domain.bounds(level)
        named |= dict(zip(domain.names[level], zip(first.tolist(), last.tolist(), strict=True), strict=True))
    named |= domain.aliases
    low = np.arange(domain.size, dtype=np.int32)
    high = low.copy()
    for code, name in enumerate(domain.names[0]):
        start, end = named.get(name, (code, code))
        if start < code <= end:
            low[code] = start
    return low, high


def is_value(domain: Hierarchy) -> NDArray[np.bool_]:
    """Per code, whether it is a value that a person may have, and not a node or `*`."""
    low, high = spans(domain)
    single: NDArray[np.bool_] = (low == high) & np.array([name != EVERYTHING for name in domain.names[0]])
    return single


def grade(domain: Hierarchy, grades: Mapping[str, str] | None) -> Codes:
    """Per code of a domain with nodes, the code that it is published as.

    A grade is `low` (as it is), `high` (the node above it) or the name of a node above it, for a value or for all below
    a node; `*` is for the others, which are low. The nearest name counts. Raises PolicyError with all that is wrong.
    """
    low, high = spans(domain)
    published = np.arange(domain.size, dtype=np.int32)
    problems = []
    places = {name: code for code, name in enumerate(domain.names[0])}
    given = dict(grades or {})
    rest = given.pop(EVERYTHING, LOW)
    asked, by = [rest] * domain.size, [EVERYTHING] * domain.size
    # The nearest name counts: wide ones first, so that narrow ones overrule them.
    for name in sorted(given, key=lambda name: -_width(places, name, low, high)):
        if name not in places:
            problems.append(Problem("names a value that the hierarchy does not have", key=f"grades.{name}"))
            continue
        for code in range(low[places[name]], high[places[name]] + 1):
            asked[code], by[code] = given[name], name
    for code in range(domain.size):
        target = _target(domain, places, low, high, code, asked[code])
        if target is not None:
            published[code] = target
        elif low[code] == high[code]:
            message = f"'{asked[code]}' is no node above it; use low, high or such a node"
            problems.append(Problem(message, key=f"grades.{by[code]}"))
    if problems:
        raise PolicyError(dict.fromkeys(problems))
    return published


def coarser(domain: Hierarchy, one: Codes, other: Codes) -> tuple[Codes, NDArray[np.bool_]]:
    """Of two nodes each, the one above, and whether one of them is above (or is) the other."""
    above, below = nesting(domain, one, other)
    return np.where(above, one, other).astype(np.int32), above | below


def nesting(domain: Hierarchy, one: Codes, other: Codes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of two nodes each, whether the first is above the second, and whether it is below it; both where they are one."""
    low, high = spans(domain)
    return (low[one] <= low[other]) & (high[one] >= high[other]), (low[other] <= low[one]) & (high[other] >= high[one])


def generality(domain: Hierarchy) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per code of a domain with nodes: its descendants, and its height, each as a share of the root's.

    That is the privacy gain and the information loss of a published sensitive value (Reddy et al., equations 3 and 5,
    as they can only be meant): 0 of a leaf, 1 of the root.
    """
    low, high = spans(domain)
    below = (high - low).astype(np.float64)
    height = np.zeros(domain.size)
    for code in np.argsort(below, kind="stable").tolist():
        if below[code]:
            inside = np.arange(low[code], high[code] + 1)
            height[code] = 1 + height[inside[inside != code]].max()
    return below / max(below.max(), 1.0), height / max(height.max(), 1.0)


def _nodes(domain: Hierarchy) -> list[tuple[int, int, str, float]]:
    """First and last code, name and depth of every inner node; finest first."""
    nodes: dict[str, tuple[int, int, str, float]] = {}
    for level in range(1, domain.height):
        first, last = domain.bounds(level)
        for name, low, high in zip(domain.names[level], first.tolist(), last.tolist(), strict=True):
            if domain.names[0][low] != name:
                nodes.setdefault(name, (low, high, name, float(level)))
    whole = domain.size - 1
    for name, (low, high) in domain.aliases.items():
        if domain.names[0][low] != name:
            level = int(domain.level_of(np.array([low]), np.array([high]))[0])
            nodes.setdefault(name, (low, high, name, level + (0.0 if low == 0 and high == whole else 0.5)))
    if not any(low == 0 and high >= whole - domain.missing for low, high, _, _ in nodes.values()):
        nodes[EVERYTHING] = (0, whole, EVERYTHING, float(max(domain.height, 1)))
    return list(nodes.values())


def _width(places: Mapping[str, int], name: str, low: Codes, high: Codes) -> int:
    return int(high[places[name]] - low[places[name]]) if name in places else 0


def _target(domain: Hierarchy, places: Mapping[str, int], low: Codes, high: Codes, code: int, asked: str) -> int | None:
    """The code that a value is published as under a grade; None when that is no node above it."""
    if asked == LOW:
        return code
    if domain.missing and code == domain.size - 1:
        return code
    if asked == HIGH:
        above = np.flatnonzero((low <= low[code]) & (high >= high[code]) & (high - low > high[code] - low[code]))
        return int(above[np.argmin(high[above] - low[above])]) if len(above) else code
    if asked not in places:
        return None
    target = places[asked]
    # What is above the guarding node already stays there.
    if low[code] <= low[target] and high[code] >= high[target]:
        return code
    return target if low[target] <= low[code] and high[target] >= high[code] else None
