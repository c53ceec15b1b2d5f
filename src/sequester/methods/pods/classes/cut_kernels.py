"""Classes as unions of pods, by gain cuts: any position of any attribute, the one that shortens ranges most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import kernel

Places = NDArray[np.float64]


@kernel
def cut_pods(low: Places, high: Places, size: NDArray[np.int64], k: int) -> NDArray[np.int32]:
    """Cut pods, each with a box (pods, attributes) and rows, into classes of at least k rows; every pod's class."""
    pods, axes = low.shape
    member = np.zeros(pods, np.int32)
    order = np.arange(pods)
    stack = [(0, pods)]
    classes = 0
    after = np.empty(pods)
    left_lo, left_hi = np.empty(axes), np.empty(axes)
    while len(stack):
        begin, end = stack.pop()
        own = order[begin:end].copy()
        count = end - begin
        rows = 0
        for pod in own:
            rows += size[pod]
        best, best_axis, best_at = np.inf, -1, 0
        if rows >= 2 * k:
            for axis in range(axes):
                center = np.empty(count)
                for place in range(count):
                    center[place] = low[own[place], axis] + high[own[place], axis]
                ranked = np.argsort(center, kind="mergesort")
                # What the right part would lose, from every place on.
                left_lo[:], left_hi[:] = np.inf, -np.inf
                right = 0
                for place in range(count - 1, 0, -1):
                    pod = own[ranked[place]]
                    right += size[pod]
                    width = 0.0
                    for other in range(axes):
                        left_lo[other] = min(left_lo[other], low[pod, other])
                        left_hi[other] = max(left_hi[other], high[pod, other])
                        width += left_hi[other] - left_lo[other]
                    after[place] = width * right if right >= k else np.inf
                left_lo[:], left_hi[:] = np.inf, -np.inf
                left = 0
                for place in range(count - 1):
                    pod = own[ranked[place]]
                    left += size[pod]
                    width = 0.0
                    for other in range(axes):
                        left_lo[other] = min(left_lo[other], low[pod, other])
                        left_hi[other] = max(left_hi[other], high[pod, other])
                        width += left_hi[other] - left_lo[other]
                    if left < k or after[place + 1] == np.inf:
                        continue
                    lost = width * left + after[place + 1]
                    if lost < best - 1e-12:
                        best, best_axis, best_at = lost, axis, place + 1
        if best_axis < 0:
            for pod in own:
                member[pod] = classes
            classes += 1
            continue
        center = np.empty(count)
        for place in range(count):
            center[place] = low[own[place], best_axis] + high[own[place], best_axis]
        ranked = np.argsort(center, kind="mergesort")
        for place in range(count):
            order[begin + place] = own[ranked[place]]
        stack.append((begin, begin + best_at))
        stack.append((begin + best_at, end))
    return member
