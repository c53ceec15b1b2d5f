"""Full-domain recoding of Adult over the whole ARX lattice: time of the search, and proof that it finds the optimum.

Every node is judged once one by one, and once more from the definitions with nothing of the method's code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks import adult
from benchmarks.figures import Figure
from benchmarks.timing import medians, seconds
from sequester.errors import GuaranteeError
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.full_domain import lattice
from sequester.methods.full_domain import search as method
from sequester.methods.full_domain.lattice import Optimum

K, L = 5, 3
ROUNDING = 1e-9


@dataclass(frozen=True)
class Case:
    """One search that has a target."""

    loss: str
    suppression: float
    most: float  # milliseconds

    def __str__(self) -> str:
        return f"{self.loss.upper()}, {'full' if self.suppression else 'no'} suppression"


CASES = (Case("dm", 0.0, 50), Case("ncp", 1.0, 500))
PROMISES: dict[str, dict[str, Any]] = {
    "distinct 3-diversity": {"diversity": {"kind": "distinct", "l": 3}},
    "entropy 3-diversity": {"diversity": {"kind": "entropy", "l": 3}},
    "recursive (3,3)-diversity": {"diversity": {"kind": "recursive", "c": 3, "l": 3}},
    "confidence .5": {"confidence": 0.5},
    "closeness .2": {"closeness": {"t": 0.2}},
}
SOME, RATIO = 0.04, 3
"""What may be left out beside these promises, and how many times as long as k alone each may take."""


def run() -> list[Figure]:
    """Both searches, each against all nodes one by one and against the definitions."""
    adult.require_hierarchies()
    data = adult.load(numbers_as_hierarchies=True)
    guard = data.guard(k=K, diversity={"kind": "distinct", "l": L}, against=["outsider"])
    least = _from_definitions(data)
    targets = [figure for case in CASES for figure in _compare(case, data, guard, least[case.loss])]
    return [*targets, *_promised(data)]


def _promised(data: adult.Adult) -> list[Figure]:
    """Promises beside k against k alone, and one that no levels keep."""

    def search(**promised: Any) -> Callable[[], None]:
        guard = data.guard(k=K, against=["outsider"], **promised)

        def run() -> None:
            with suppress(GuaranteeError):
                method.full_domain(data.codes, data.domains, guard, suppression=SOME)

        return run

    none = search(diversity={"kind": "entropy", "l": 12})
    taken = medians(7, alone=search(), none=none, **{name: search(**given) for name, given in PROMISES.items()})
    return [
        Figure(f"k alone, {SOME:.0%} suppression: full_domain", taken["alone"] * 1000, "ms"),
        *(Figure(f"{name} / k alone", taken[name] / taken["alone"], at_most=RATIO) for name in PROMISES),
        Figure("entropy 12-diversity, which no levels keep", taken["none"] * 1000, "ms", at_most=20),
    ]


def _compare(case: Case, data: adult.Adult, guard: ClassGuard, least: float) -> list[Figure]:
    def search() -> None:
        method.full_domain(data.codes, data.domains, guard, loss=case.loss, suppression=case.suppression)

    judge, found = _watch(search)
    nodes = list(product(*(range(domain.height + 1) for domain in data.domains)))
    judge(nodes[0])
    exhaustive, costs = seconds(lambda: [judge(node).cost for node in nodes])
    taken = medians(15, search=search)["search"]
    levels = ", ".join(f"{name} {level}" for name, level in zip(data.names, found.node, strict=True))
    return [
        Figure(f"{case}: full_domain", taken * 1000, "ms", at_most=case.most),
        Figure(f"{case}: nodes judged", found.judged, note=f"of {len(nodes):,}"),
        Figure(f"{case}: every node one by one", exhaustive, "s"),
        Figure(f"{case}: every node / full_domain", exhaustive / taken),
        Figure(f"{case}: off the cheapest of all nodes", _off(found.cost, min(costs)), at_most=ROUNDING, note=levels),
        Figure(f"{case}: off the optimum by the definitions", _off(found.cost, least), at_most=ROUNDING),
    ]


def _off(cost: float, least: float) -> float:
    return abs(cost / least - 1)


def _watch(search: Callable[[], None]) -> tuple[method.Judge, Optimum]:
    """What a search was made with and what it found; the judge draws no more conclusions about other nodes."""
    seen: list[tuple[method.Judge, Optimum]] = []

    def cheapest(shape: tuple[int, ...], judge: method.Judge, **options: Any) -> Optimum | None:
        found = lattice.cheapest(shape, judge, **options)
        assert found is not None
        seen.append((judge, found))
        return found

    with mock.patch.object(method, "cheapest", cheapest):
        search()
    judge, found = seen[0]
    judge._forbidden = lambda *_, **__: None  # type: ignore[method-assign]
    return judge, found


def _from_definitions(data: adult.Adult) -> dict[str, float]:
    """The least DM without suppression and the least summed NCP with it, over all nodes."""
    dm, ncp = [np.inf], [np.inf]
    for unsafe, size, penalty in _recode_everywhere(data):
        if not unsafe.any():
            dm.append(float((size**2).sum()))
        # A record left out loses all its attributes.
        ncp.append(float(np.where(unsafe, len(data.domains) * size, penalty).sum()))
    return {"dm": min(dm), "ncp": min(ncp)}


def _recode_everywhere(
    data: adult.Adult,
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]]:
    """Per node: which classes are unsafe, their sizes, and the summed penalty of their records."""
    table = np.vstack([data.codes, data.sensitive])
    cells, first, weight = np.unique(table, axis=1, return_index=True, return_counts=True)
    values = data.occupations.size
    groups = [[domain.groups(level) for level in range(domain.height + 1)] for domain in data.domains]
    shares = [[_share(group) for group in levels] for levels in groups]
    for node in product(*(range(len(levels)) for levels in groups)):
        key = np.zeros(len(first), np.int64)
        penalty = np.zeros(len(first))
        for codes, levels, lost, level in zip(cells, groups, shares, node, strict=False):
            key = key * (int(levels[level][-1]) + 1) + levels[level][codes]
            penalty += lost[level][codes]
        _, member = np.unique(key, return_inverse=True)
        pairs = np.unique(member * values + cells[-1])
        size = np.bincount(member, weight).astype(np.int64)
        distinct = np.bincount(pairs // values)
        yield (size < K) | (distinct < L), size, np.bincount(member, penalty * weight).astype(np.float64)


def _share(group: NDArray[np.int32]) -> NDArray[np.float64]:
    """Per leaf of a category, the penalty of its group: nothing when alone, else the group's share of all leaves."""
    size = np.bincount(group)[group]
    return np.where(size > 1, size / len(group), 0.0)
