"""Everything that a method could draw, one way after the other, with its chance: randomness without sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")


class Script:
    """Stands in for a generator: draws what is written, then the first of what is possible, and notes what it did."""

    def __init__(self, written: Sequence[int]) -> None:
        self.written = list(written)
        self.at = 0
        self.chances: list[list[Fraction]] = []

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Always the same order: whoever reads is told it."""
        return np.arange(n)

    def integers(self, low: int, high: int, size: int) -> NDArray[np.int64]:
        """Each of the numbers as often."""
        return np.array([low + self._next([Fraction(1, high - low)] * (high - low)) for _ in range(size)], np.int64)

    def choice(self, a: int, size: int, *, p: NDArray[Any]) -> NDArray[np.int64]:
        """With these chances."""
        given = [Fraction(float(one)).limit_denominator(10_000) for one in p]
        assert len(given) == a
        assert sum(given) == 1
        return np.array([self._next(given) for _ in range(size)], np.int64)

    def _next(self, chances: list[Fraction]) -> int:
        if self.at == len(self.written):
            self.written.append(next(number for number, chance in enumerate(chances) if chance))
        self.chances.append(chances)
        self.at += 1
        return self.written[self.at - 1]


class Exactly(Script):
    """Draws with chances that need not be simple fractions."""

    def choice(self, a: int, size: int, *, p: NDArray[Any]) -> NDArray[np.int64]:
        """With these chances."""
        assert len(p) == a
        assert abs(p.sum() - 1) < 1e-12
        return np.array([self._next([Fraction(float(one)) for one in p]) for _ in range(size)], np.int64)


def every(run: Callable[[Script], Result], script_of: type[Script] = Script) -> Iterator[tuple[Fraction, Result]]:
    """What comes of all that could be drawn, with its chance."""
    written: list[int] | None = []
    while written is not None:
        script = script_of(written)
        result = run(script)
        chance = Fraction(1)
        for number, chances in zip(script.written, script.chances, strict=True):
            chance *= chances[number]
        yield chance, result
        written = _after(script)


def _after(script: Script) -> list[int] | None:
    """What to draw next time: the last choice that had another possibility takes it."""
    for at in range(len(script.written) - 1, -1, -1):
        later = range(script.written[at] + 1, len(script.chances[at]))
        another = next((number for number in later if script.chances[at][number]), None)
        if another is not None:
            return [*script.written[:at], another]
    return None
