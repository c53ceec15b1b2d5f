"""The order of numbers, for use inside other kernels: far cheaper to compile than the library's."""

from __future__ import annotations

import numpy as np

from sequester.kernels import helper

# Runs this short are sorted by insertion.
_SHORT = 15


@helper
def rank_keys(key, count, rank, waiting):
    """Write to `rank` where the first `count` keys, none of them NaN, are in ascending order.

    Quicksort as in `np.argsort` of Numba: equal keys come in the same order as there, on which trees depend that were
    made before. `waiting` is room for 200 numbers: the larger side waits, so that few are in it.
    """
    for i in range(count):
        rank[i] = i
    waiting[0], waiting[1] = 0, count - 1
    runs = 1
    while runs > 0:
        runs -= 1
        low, high = waiting[2 * runs], waiting[2 * runs + 1]
        while high - low >= _SHORT:
            middle = _divide(key, rank, low, high)
            if high - middle > middle - low:
                waiting[2 * runs], waiting[2 * runs + 1] = middle + 1, high
                runs += 1
                high = middle - 1
            else:
                if middle > low:
                    waiting[2 * runs], waiting[2 * runs + 1] = low, middle - 1
                    runs += 1
                low = middle + 1
        for i in range(low + 1, high + 1):
            item, j = rank[i], i
            while j > low and key[item] < key[rank[j - 1]]:
                rank[j] = rank[j - 1]
                j -= 1
            rank[j] = item


@helper
def _divide(key, rank, low, high):
    """Part a run around the median of its first, middle and last key; returns where that one is then."""
    middle = (low + high) >> np.int64(1)
    if key[rank[middle]] < key[rank[low]]:
        rank[low], rank[middle] = rank[middle], rank[low]
    if key[rank[high]] < key[rank[middle]]:
        rank[high], rank[middle] = rank[middle], rank[high]
    if key[rank[middle]] < key[rank[low]]:
        rank[low], rank[middle] = rank[middle], rank[low]
    pivot = key[rank[middle]]
    rank[high], rank[middle] = rank[middle], rank[high]
    i, j = low, high - 1
    while True:
        while i < high and key[rank[i]] < pivot:
            i += 1
        while j >= low and pivot < key[rank[j]]:
            j -= 1
        if i >= j:
            break
        rank[i], rank[j] = rank[j], rank[i]
        i += 1
        j -= 1
    rank[i], rank[high] = rank[high], rank[i]
    return i
