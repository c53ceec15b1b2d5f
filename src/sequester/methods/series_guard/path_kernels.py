"""What all releases together tell about people with one history: values in common, and who is determined."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import kernel


@kernel
def shared_values(path: Any, table: Any, after: Any, after_counts: Any, numerator: Any, denominator: int):
    """Per trajectory, whether its later class and some of its earlier ones leave too much of a value (Byun, 4.4).

    path   (trajectories, releases) rows of `table`, -1 for absence; `after` is the class of the new release
    """
    count, releases = path.shape
    values = table.shape[1]
    bad = np.zeros(count, np.bool_)
    order = np.empty(releases, np.int64)
    meet = np.empty(values, np.int64)
    for t in range(count):
        if after[t] < 0:
            continue
        for value in range(values):
            here = after_counts[after[t], value]
            if numerator[value] >= denominator or here == 0 or bad[t]:
                continue
            found = 0
            for release in range(releases):
                row = path[t, release]
                if row < 0 or table[row, value] == 0:
                    continue
                place = found
                while place > 0 and table[order[place - 1], value] < table[row, value]:
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = row
                found += 1
            for v in range(values):
                meet[v] = after_counts[after[t], v]
            for i in range(found):
                for v in range(values):
                    meet[v] = min(meet[v], table[order[i], v])
                if i + 1 < found and table[order[i + 1], value] >= min(here, table[order[i], value]):
                    continue
                left = 0
                for v in range(values):
                    left += meet[v]
                if meet[value] * denominator > left * numerator[value]:
                    bad[t] = True
                    break
    return bad


@kernel
def determined_people(start: Any, columns: Any, small: Any):
    """Per trajectory, whether sums and differences of classes determine it; in small ones only (a mask).

    start    where the trajectories of every component begin, and where the last one ends
    columns  (trajectories, releases) the class, -1 for absence; those of a component have numbers in a row

    Elimination modulo a prime: what rational combinations determine is found, and nothing else in practice.
    """
    prime = (1 << 31) - 1
    found = np.zeros(columns.shape[0], np.bool_)
    for component in range(start.size - 1):
        begin, width = start[component], start[component + 1] - start[component]
        lowest, highest = columns.max(), np.int64(-1)
        for i in range(begin, begin + width):
            for release in range(columns.shape[1]):
                if columns[i, release] >= 0:
                    lowest, highest = min(lowest, columns[i, release]), max(highest, columns[i, release])
        height = highest - lowest + 1
        matrix = np.zeros((height, width), np.int64)
        for i in range(width):
            for release in range(columns.shape[1]):
                if columns[begin + i, release] >= 0:
                    matrix[columns[begin + i, release] - lowest, i] = 1
        rank = 0
        pivots = np.empty(min(width, height), np.int64)
        for column in range(width):
            pivot = rank
            while pivot < height and matrix[pivot, column] == 0:
                pivot += 1
            if pivot == height:
                continue
            for i in range(width):
                matrix[pivot, i], matrix[rank, i] = matrix[rank, i], matrix[pivot, i]
            own = matrix[rank, column]
            for row in range(height):
                factor = matrix[row, column]
                if row != rank and factor != 0:
                    for i in range(width):
                        matrix[row, i] = (matrix[row, i] * own - factor * matrix[rank, i]) % prime
            pivots[rank] = column
            rank += 1
            if rank == height:
                break
        for row in range(rank):
            others = 0
            for i in range(width):
                others += matrix[row, i] != 0
            found[begin + pivots[row]] = small[begin + pivots[row]] and others == 1
    return found
