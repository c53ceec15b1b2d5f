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
def determined_people(start: Any, members: Any, columns: Any, small: Any, first_row: Any):
    """Per trajectory, whether sums and differences of classes determine it; in small ones only (a mask).

    start, members   components: which trajectories each has
    columns          (trajectories, releases) the class, numbered within the component, -1 for absence
    first_row        per component, how many classes it has

    Elimination modulo a prime: what rational combinations determine is found, and nothing else in practice.
    """
    prime = (1 << 31) - 1
    found = np.zeros(columns.shape[0], np.bool_)
    for component in range(start.size - 1):
        begin, stop = start[component], start[component + 1]
        width, height = stop - begin, first_row[component]
        matrix = np.zeros((height, width), np.int64)
        for i in range(width):
            for release in range(columns.shape[1]):
                if columns[members[begin + i], release] >= 0:
                    matrix[columns[members[begin + i], release], i] = 1
        rank = 0
        pivots = np.empty(min(width, height), np.int64)
        for column in range(width):
            pivot = -1
            for row in range(rank, height):
                if matrix[row, column] != 0:
                    pivot = row
                    break
            if pivot < 0:
                continue
            for i in range(width):
                matrix[pivot, i], matrix[rank, i] = matrix[rank, i], matrix[pivot, i]
            inverse, base, power = 1, matrix[rank, column], prime - 2
            while power > 0:
                if power & 1:
                    inverse = inverse * base % prime
                base = base * base % prime
                power >>= 1
            for i in range(width):
                matrix[rank, i] = matrix[rank, i] * inverse % prime
            for row in range(height):
                factor = matrix[row, column]
                if row != rank and factor != 0:
                    for i in range(width):
                        matrix[row, i] = (matrix[row, i] - factor * matrix[rank, i]) % prime
            pivots[rank] = column
            rank += 1
            if rank == height:
                break
        for row in range(rank):
            if not small[members[begin + pivots[row]]]:
                continue
            others = 0
            for i in range(width):
                others += matrix[row, i] != 0
            found[members[begin + pivots[row]]] = others == 1
    return found
