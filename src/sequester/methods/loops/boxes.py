"""Boxes in compiled loops."""

from __future__ import annotations

from sequester.kernels import helper


@helper
def width(lo, hi, position, first_leaf):
    """The summed widths of a box; the positions of all attributes lie side by side."""
    total = 0.0
    for a in range(lo.size):
        total += min(position[first_leaf[a] + hi[a]] - position[first_leaf[a] + lo[a]], 1.0)
    return total
