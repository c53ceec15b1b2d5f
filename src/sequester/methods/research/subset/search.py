"""The subset of attributes of one cluster with least loss and enough gain, where there are too many to try all."""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Over = Literal["all", "subset"]

TOLERANCE = 1e-9
"""Scores that differ by less are equal: they are sums of a few fractions."""

LONGEST_SEARCH = 20_000
"""Sets of attributes looked at for one cluster before the best one found is taken."""


class SubsetSearch:
    """Branch and bound, best bound first, for the subset of one cluster with least loss and enough gain.

    Enough is a sum of gains: of gain - threshold in an average over the subset, which has to reach 0. With a price of
    gain, a subset that gains enough loses at least the sum (or average) of loss - price * gain, plus price times what
    has to be reached: so the least of that over all ways to complete a set bounds what it can lose. The price is the
    one with the highest bound at the beginning. An attribute that another beats in both gain and loss is never taken
    without that other.
    """

    def __init__(self, gain: Floats, loss: Floats, threshold: float, *, over: Over) -> None:
        count = len(gain)
        self.count, self.per_subset = count, over == "subset"
        self.need = 0.0 if self.per_subset else threshold
        own, lost = (gain - threshold, loss) if self.per_subset else (gain / count, loss / count)
        self.price = self._best_price(own, lost)
        cost = lost - self.price * own
        # What gains nothing is of no use in an average over all.
        useful = np.flatnonzero(gain > 0) if self.need > TOLERANCE else np.arange(count)
        order = useful[np.argsort(cost[useful], kind="stable")]
        self.order: list[int] = order.tolist()
        self.own: list[float] = own.tolist()
        self.lost: list[float] = lost.tolist()
        self.cost: list[float] = cost.tolist()
        before = np.arange(count)[:, None] < np.arange(count)
        beats = (gain[:, None] >= gain) & (loss[:, None] <= loss) & ((loss[:, None] < loss) | before)
        self.beaten_by = [int.from_bytes(bits.tobytes(), "little") for bits in np.packbits(beats.T, 1, "little")]
        # What the attributes from a place in the order on can still add to the gain, and take from the cost.
        self.more: list[float] = [*np.cumsum(np.maximum(own[order], 0)[::-1])[::-1].tolist(), 0.0]
        self.less: list[float] = [*np.cumsum(np.minimum(cost[order], 0)[::-1])[::-1].tolist(), 0.0]
        self.best: tuple[float, int, tuple[int, ...]] | None = None

    def run(self) -> Mask:
        """The attributes of the subset; all if no subset gains enough."""
        # Bound, the latest first among equal ones, place in the order, what is taken, what is not, gain and cost.
        queue: list[tuple[float, int, int, tuple[int, ...], int, float, float]] = []
        heapq.heappush(queue, (self._bound(0, 0, 0.0), 0, 0, (), 0, 0.0, 0.0))
        if self.per_subset:
            most = int(np.argmax(self.own))
            self._offer((most,), self.own[most])
        looked = 0
        while queue and looked < LONGEST_SEARCH:
            bound, _, place, taken, out, own, cost = heapq.heappop(queue)
            if self.best is not None and bound > self.best[0] + TOLERANCE:
                break
            if place == len(self.order):
                continue
            a = self.order[place]
            children = [(taken, out | 1 << a, own, cost)]
            if not self.beaten_by[a] & out:
                children.append(((*taken, a), out, own + self.own[a], cost + self.cost[a]))
                # More attributes only lose more in an average over all.
                if self._offer(children[-1][0], own + self.own[a]) and not self.per_subset:
                    children.pop()
            for taken, out, own, cost in children:
                looked += 1
                if own + self.more[place + 1] >= self.need - self._slack(len(self.order)):
                    reach = self._bound(place + 1, len(taken), cost)
                    heapq.heappush(queue, (reach, -looked, place + 1, taken, out, own, cost))
        chosen = np.full(self.count, self.best is None)
        chosen[list(() if self.best is None else self.best[2])] = True
        return chosen

    def _offer(self, taken: tuple[int, ...], own: float) -> bool:
        """Whether a set gains enough; it is kept if it loses less than the best, or is as good and comes first."""
        if own < self.need - self._slack(len(taken)):
            return False
        lost = sum(self.lost[a] for a in taken) / (len(taken) if self.per_subset else 1)
        key = (len(taken), tuple(sorted(taken)))
        least, *first = self.best or (np.inf, 0, ())
        if lost < least - TOLERANCE or (lost <= least + TOLERANCE and key < tuple(first)):
            self.best = (lost, *key)
        return True

    def _slack(self, taken: int) -> float:
        return TOLERANCE * taken if self.per_subset else TOLERANCE

    def _bound(self, place: int, taken: int, cost: float) -> float:
        """No set that begins like this, and gains enough, loses less."""
        if not self.per_subset:
            return self.price * (self.need - TOLERANCE) + cost + self.less[place]
        least = cost / taken if taken else np.inf
        for a in self.order[place:]:
            if self.cost[a] >= least:
                break
            taken, cost = taken + 1, cost + self.cost[a]
            least = cost / taken
        return least - self.price * TOLERANCE

    def _best_price(self, own: Floats, lost: Floats) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            prices = ((lost[:, None] - lost) / (own[:, None] - own)).ravel() if self.per_subset else lost / own
        prices = np.append(prices[np.isfinite(prices) & (prices > 0)], 0.0)
        cost = lost - prices[:, None] * own
        bound = cost.min(axis=1) if self.per_subset else prices * self.need + np.minimum(cost, 0).sum(axis=1)
        return float(prices[np.argmax(bound)])
