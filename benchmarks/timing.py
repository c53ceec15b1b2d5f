"""The one place that measures time."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long one call takes, and what it returns."""
    gc.collect()
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def medians(repeats: int, **calls: Callable[[], Any]) -> dict[str, float]:
    """The median seconds of every call, in turns, so that a busy machine slows all of them alike.

    Every call is made once before the clock starts: kernels are compiled and caches are warm.
    """
    for call in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            taken[name].append(seconds(call)[0])
    return {name: statistics.median(times) for name, times in taken.items()}
