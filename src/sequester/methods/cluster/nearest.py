"""Who is nearest to whom, and how wide the boxes around them are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

REACH = 256
"""Newcomers looked at on either side for one who takes a place; and clusters, for one to join."""


class Spots(NamedTuple):
    """Boxes by where they lie, (boxes, attributes), and the number of the neighbourhood of each."""

    low: Floats
    high: Floats
    run: Longs

    def take(self, which: Longs) -> Spots:
        """Some of them."""
        return Spots(self.low[which], self.high[which], self.run[which])


class Wish(NamedTuple):
    """Per seeker what a host must have; per host what it has, and the number of the box it belongs to itself."""

    wanted: Longs
    have: Longs
    of: Longs


def nearest(seekers: Longs, boxes: Spots, hosts: Spots, *, wish: Wish | None = None, once: bool = False) -> Longs:
    """Per seeker, with one of the boxes, the nearest host that has what is wanted; -1 for none.

    `once`: a host can be taken only once, and the box of the seeker grows around it.
    """
    from sequester.methods.cluster.near_kernels import Hosts, Seekers, take_nearest

    runs = int(max(boxes.run.max(initial=0), hosts.run.max(initial=0))) + 1
    if wish is None:
        nothing = np.zeros(len(hosts.run), np.int64)
        wish = Wish(np.zeros(len(seekers), np.int64), nothing, nothing - 1)
    key = wish.have * runs + hosts.run
    order = np.argsort(key, kind="stable")
    key, start = key[order], wish.wanted * runs
    begin, end, place = (np.searchsorted(key, start + step) for step in (0, runs, boxes.run[seekers]))
    sorted_hosts = Hosts(wish.of[order], hosts.low[order], hosts.high[order])
    low, high = boxes.low.copy(), boxes.high.copy()
    taken = take_nearest(Seekers(seekers, begin, end, place), low, high, sorted_hosts, REACH, once)
    return np.where(taken >= 0, order[taken], -1)


def summed_widths(low: Floats, high: Floats) -> Floats:
    """Per box (boxes, attributes), its widths of all attributes together."""
    widths: Floats = np.minimum(high - low, 1.0).sum(axis=1)
    return widths


def widths_around(low: Floats, high: Floats, at: Floats) -> Floats:
    """(boxes, points) the summed widths of the boxes around each of both."""
    widths = np.zeros((len(low), len(at)))
    for axis in range(low.shape[1]):
        span = np.maximum(high[:, axis, None], at[:, axis]) - np.minimum(low[:, axis, None], at[:, axis])
        widths += np.minimum(span, 1.0)
    return widths
