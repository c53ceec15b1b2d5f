"""Who is nearest, among those who stand near in the order of a neighbourhood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


class Seekers(NamedTuple):
    """Those who look for a host: the number of their box, and among which hosts they look from which place on."""

    box: Longs
    begin: Longs
    end: Longs
    place: Longs  # where the seeker would be among the hosts, which are in the order of the neighbourhood


class Hosts(NamedTuple):
    """Those who are looked for: their boxes (hosts, attributes), and the box of a seeker each is no host for, or -1."""

    of: Longs
    low: Floats
    high: Floats


@helper(inline="always")
def _width_around(low, high, own, hosts, host):
    total = 0.0
    for axis in range(low.shape[1]):
        span = max(high[own, axis], hosts.high[host, axis]) - min(low[own, axis], hosts.low[host, axis])
        total += min(span, 1.0)
    return total


@kernel
def take_nearest(seekers: Seekers, low: Floats, high: Floats, hosts: Hosts, reach: int, once: bool) -> Longs:
    """Per seeker the nearest of the hosts it may have, -1 for none: that with the narrowest box around both.

    low, high  (boxes, attributes) of the seekers
    reach      how many hosts are looked at on either side
    once       whether a host can be taken only once; then boxes grow around the hosts they take
    """
    taken = np.zeros(hosts.of.size, np.bool_)
    nearest = np.full(seekers.box.size, -1, np.int64)
    for seeker in range(seekers.box.size):
        own = seekers.box[seeker]
        least = np.inf
        for direction in (-1, 1):
            host = seekers.place[seeker] if direction > 0 else seekers.place[seeker] - 1
            looks = 0
            while looks < reach and seekers.begin[seeker] <= host < seekers.end[seeker]:
                if not taken[host] and hosts.of[host] != own:
                    looks += 1
                    wide = _width_around(low, high, own, hosts, host)
                    if wide < least:
                        least = wide
                        nearest[seeker] = host
                host += direction
        host = nearest[seeker]
        if once and host >= 0:
            taken[host] = True
            for axis in range(low.shape[1]):
                low[own, axis] = min(low[own, axis], hosts.low[host, axis])
                high[own, axis] = max(high[own, axis], hosts.high[host, axis])
    return nearest
