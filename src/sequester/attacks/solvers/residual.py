"""Shortest augmenting paths from one known assignment of rows to buddies, for one sensitive value.

A question about a class changes a known assignment by a few rows only, and the rows that have to move are near it, so
short searches from the class beat a new maximum flow over all classes. Every answer restores what it changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Step = tuple[int, int, int]
"""One origin's rows leave a later class for another: (origin, from, to)."""


class Residual:
    """Rows of one value: where those of every earlier class are, and what every later class has to spare.

    near    per earlier class, the later classes it is comparable with
    held    per later class, rows by the earlier class they came from
    loose   per later class, rows without a buddy
    """

    def __init__(self, near: Sequence[Sequence[int]], held: dict[int, dict[int, int]], loose: list[int]) -> None:
        self._near = near
        self._held = held
        self._loose = loose
        self._undo: list[tuple[int, int, int]] = []

    def bring(self, origin: int, place: int, *, most: int) -> int:
        """The most rows of an earlier class that can be in a comparable later class at once."""
        reached = self._held.get(place, {}).get(origin, 0)
        while reached < most and (path := self._search(place, origin)) is not None:
            steps, end = path
            room = self._room(steps, most - reached)
            home = self._held.get(end, {}).get(origin, 0) if end != place else 0
            if home == 0:
                # The path ends in a spare place, and any other class can give up a row of this origin for it.
                home = self._elsewhere(origin, place)
                room = min(room, self._loose[end], self._held[home][origin])
                self._shift(steps, room)
                self._spare(end, -room)
                self._spare(home, room)
                self._shift([(origin, home, place)], room)
            else:
                room = min(room, home)
                self._shift(steps, room)
                self._shift([(origin, end, place)], room)
            reached += room
        self._restore()
        return reached

    def empty(self, place: int, *, most: int) -> int:
        """The most rows of a later class that can be without a buddy at once."""
        reached = self._loose[place]
        while reached < most and (path := self._search(place, None)) is not None:
            steps, end = path
            room = min(self._room(steps, most - reached), self._loose[end])
            self._shift(steps, room)
            self._spare(end, -room)
            reached += room
        self._restore()
        return reached

    def keep(self, origin: int, place: int) -> int:
        """The fewest rows of an earlier class that can be in a comparable later class."""
        left = self._held.get(place, {}).get(origin, 0)
        while left and (path := self._detour(place, origin)) is not None:
            steps, end = path
            room = self._room(steps, left)
            if end != place:
                room = min(room, self._loose[end])
                self._spare(end, -room)
                self._spare(place, room)
            self._shift(steps, room)
            left -= room
        self._restore()
        return left

    def _detour(self, place: int, origin: int) -> tuple[list[Step], int] | None:
        """Moves that let rows of `origin` leave `place`, and where they end: a spare row, or the place left free."""
        came: dict[int, Step | None] = {place: None}
        queue: deque[int] = deque()
        moved: set[int] = set()
        reached = [(origin, place)]
        while reached:
            source, here = reached.pop()
            moved.add(source)
            for there in self._near[source]:
                if there == place and source != origin:
                    return [(source, here, place), *self._trace(came, here)], place
                if there not in came:
                    came[there] = (source, here, there)
                    if self._loose[there] > 0:
                        return self._trace(came, there), there
                    queue.append(there)
            while queue and not reached:
                here = queue.popleft()
                held = self._held.get(here, {})
                reached = [(source, here) for source, rows in held.items() if rows and source not in moved]
        return None

    def _search(self, place: int, origin: int | None) -> tuple[list[Step], int] | None:
        """Moves that make room in `place`, and the class they end in: with a spare row, or with rows of `origin`."""
        if origin is not None and self._loose[place] > 0:
            return [], place
        came: dict[int, Step | None] = {place: None}
        moved = set() if origin is None else {origin}
        queue = deque([place])
        while queue:
            here = queue.popleft()
            for source, rows in self._held.get(here, {}).items():
                if rows == 0 or source in moved:
                    continue
                moved.add(source)
                for there in self._near[source]:
                    if there in came:
                        continue
                    came[there] = (source, here, there)
                    held = self._held.get(there)
                    if self._loose[there] > 0 or (origin is not None and held is not None and held.get(origin, 0) > 0):
                        return self._trace(came, there), there
                    if held is not None:
                        queue.append(there)
        return None

    @staticmethod
    def _trace(came: dict[int, Step | None], end: int) -> list[Step]:
        steps = []
        step = came[end]
        while step is not None:
            steps.append(step)
            step = came[step[1]]
        return steps

    def _room(self, steps: list[Step], most: int) -> int:
        return min([most, *(self._held[here][source] for source, here, _ in steps)])

    def _elsewhere(self, origin: int, place: int) -> int:
        return next(
            there for there in self._near[origin] if there != place and self._held.get(there, {}).get(origin, 0) > 0
        )

    def _shift(self, steps: list[Step], rows: int) -> None:
        for source, here, there in steps:
            self._put(source, here, -rows)
            self._put(source, there, rows)

    def _put(self, source: int, place: int, rows: int) -> None:
        held = self._held.setdefault(place, {})
        held[source] = held.get(source, 0) + rows
        self._undo.append((source, place, rows))

    def _spare(self, place: int, rows: int) -> None:
        self._loose[place] += rows
        self._undo.append((-1, place, rows))

    def _restore(self) -> None:
        for source, place, rows in reversed(self._undo):
            if source < 0:
                self._loose[place] -= rows
            else:
                self._held[place][source] -= rows
                if self._held[place][source] == 0:
                    del self._held[place][source]
        self._undo.clear()
