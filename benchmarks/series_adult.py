"""What safety costs on a growing Adult: six releases against an insider, and against a neighbor as well.

The price of a release is where its information loss (AIL of tight boxes) lies between two tables of the same records:
0 is Mondrian of that table alone, which is not safe in a series, and 1 is the merge approach of Byun et al.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import adult
from benchmarks.figures import Figure
from benchmarks.timing import seconds
from sequester.attacks.audit import audit_histories
from sequester.history import History
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.republish import republish
from sequester.metrics.loss import ail

K, C = 5, 0.7
SIZES = tuple(range(5_000, 30_001, 5_000))
# The price of the second and of the last release that must be reached, by adversaries.
TARGETS = {("insider",): (0.75, 0.88), ("insider", "neighbor"): (0.90, 0.95)}


@dataclass(frozen=True)
class Step:
    """One release of a series: its loss, how long it took, and the history after it."""

    loss: float
    taken: float
    history: History


def run() -> list[Figure]:
    """Prices and times for both groups of adversaries, and what many earlier releases cost."""
    data = adult.load().take(np.random.default_rng(1).permutation(30_162)[:30_000].astype(np.int64))
    static = [_static(data, size) for size in SIZES]
    merged = [step.loss for step in _series(data, SIZES, against=("insider",), method=merge)]
    figures = [
        Figure("AIL of Mondrian alone, 30,000 rows", static[-1]),
        Figure("AIL of merge, 30,000 rows", merged[-1]),
    ]
    for against, (second, last) in TARGETS.items():
        list(_series(data, SIZES[:3], against=against))  # kernels are compiled and warm
        steps = list(_series(data, SIZES, against=against))
        whom = " + ".join(against)
        prices = [
            (step.loss - alone) / (worst - alone)
            for step, alone, worst in zip(steps[1:], static[1:], merged[1:], strict=True)
        ]
        audited = audit_histories(
            [steps[-1].history], adult.policy(data.names, k=K, confidence=C), against=list(against)
        )
        figures += [
            Figure(f"price against {whom}, 10,000 rows", prices[0], at_most=second),
            *(
                Figure(f"price against {whom}, {size:,} rows", price, at_most=1.0)
                for size, price in zip(SIZES[2:-1], prices[1:-1], strict=True)
            ),
            Figure(f"price against {whom}, 30,000 rows", prices[-1], at_most=last, note=f"AIL {steps[-1].loss:.3f}"),
            Figure(f"release of 30,000 rows against {whom}", steps[-1].taken, "s", at_most=3.0),
            Figure(f"findings of the audit of all six, {whom}", len(audited.findings), at_most=0),
        ]
    return [*figures, _many(data)]


def _many(data: adult.Adult) -> Figure:
    """The twentieth release against the third, of as many rows with as many newcomers."""
    times = []
    for sizes in ([27_000, 28_500, 30_000], list(range(1_500, 30_001, 1_500))):
        *_, last = _series(data, sizes, against=("insider",), repeats=3)
        times.append(last.taken)
    return Figure("release 20 / release 3, 1,500 newcomers to 28,500", times[1] / times[0], at_most=1.5)


def _series(
    data: adult.Adult, sizes: Sequence[int], *, against: tuple[str, ...], method: object = republish, repeats: int = 1
) -> Iterator[Step]:
    """Releases of so many records each, safe against these; the last is timed several times, and the best counts."""
    history = data.history(sizes[-1], k=K, confidence=C)
    for size in sizes:
        part = data.take(np.arange(size))
        past = part.past(history)
        guard = part.guard(k=K, confidence=C)
        times = []
        for _ in range(repeats if size == sizes[-1] else 1):
            taken, classes = seconds(lambda: method(past, part.codes, part.domains, guard, against=against))  # type: ignore[operator]  # noqa: B023 - called at once
            times.append(taken)
        history = adult.publish(past, classes)
        yield Step(ail(classes, data.domains), min(times), history)


def _static(data: adult.Adult, size: int) -> float:
    part = data.take(np.arange(size))
    return ail(mondrian(part.codes, part.domains, part.guard(k=K, confidence=C)), data.domains)
