"""What the library tells of its work, to whoever listens: stages, counts, times and names of files.

It is told by `logging`, to loggers below `sequester`, and nobody listens unless a program, such as the command line,
says so. A log leaves the house more easily than a table: what is told is made of words of our own, numbers and names of
files, and never of a cell, a person's id, the name of a column, a seed, a key or a password.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from sequester.visible import visible

Fact: TypeAlias = int | float | str | Path | None
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is done, how much of it was, and how much there is."""

WHOLE = 1000

ROOT = "sequester"
logging.getLogger(ROOT).addHandler(logging.NullHandler())


def tell(room: str, what: str, **facts: Fact) -> None:
    """Tell that something was done, with facts about it as `name=value`; None is left out."""
    _tell(logging.INFO, room, what, facts)


def tell_begin(room: str, what: str, **facts: Fact) -> None:
    """Tell that something begins, which is told again when it is done."""
    _tell(logging.DEBUG, room, f"{what} begins", facts)


def tell_failure(room: str, what: str, **facts: Fact) -> None:
    """Tell that something failed."""
    _tell(logging.ERROR, room, what, facts)


def _tell(level: int, room: str, what: str, facts: Mapping[str, Fact]) -> None:
    logger = logging.getLogger(f"{ROOT}.{room}")
    if logger.isEnabledFor(level):
        words = [what, *(f"{name}={_word(fact)}" for name, fact in facts.items() if fact is not None)]
        logger.log(level, "%s", " ".join(words))


@contextlib.contextmanager
def timed(room: str, what: str, **facts: Fact) -> Iterator[dict[str, Fact]]:
    """Tell when something is done, and how long it took; what is put into the facts meanwhile is told, too."""
    tell_begin(room, what, **facts)
    begun = time.perf_counter()
    try:
        yield facts
    except BaseException as error:
        # An attempt may be meant to fail: whoever cannot go on tells a failure.
        tell(room, f"{what} stopped", error=type(error).__name__, seconds=_since(begun))
        raise
    tell(room, what, **facts, seconds=_since(begun))


def part_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """Progress of a part of a piece of work, from `begin` to `end` of the whole; told in thousandths of the whole."""
    if progress is None:
        return None
    return lambda what, done, of: progress(what, round(WHOLE * (begin + (end - begin) * done / max(of, 1))), WHOLE)


class Stages:
    """The stages of one piece of work, for whoever listens and for whoever wants to see progress.

    Given the share of the work that each has, about, progress is told in thousandths of all of it, and never goes back;
    otherwise by the number of the stage.
    """

    def __init__(
        self, room: str, names: Sequence[str], progress: Progress | None, *, shares: Sequence[float] = ()
    ) -> None:
        self._room, self._names, self._progress = room, names, progress
        self._ends = [0.0, *accumulate(shares)]
        self._current: int | None = None
        self._begun = 0.0
        self._reached = 0

    def __call__(self, stage: int) -> None:
        """The stage with this number begins, and the one before is done."""
        self.done()
        self._current, self._begun = stage, time.perf_counter()
        tell_begin(self._room, self._names[stage], stage=stage + 1, stages=len(self._names))
        if self._progress is None:
            return
        if len(self._ends) == 1:
            self._progress(self._names[stage], stage, len(self._names))
        elif (tell := self.part(stage)) is not None:
            tell(self._names[stage], 0, 1)

    def part(self, stage: int, begin: float = 0.0, end: float = 1.0) -> Progress | None:
        """Progress of a stage, or of what is from `begin` to `end` of it."""
        if self._progress is None:
            return None
        first, last = self._ends[stage : stage + 2]
        return part_of(self._show, first + begin * (last - first), first + end * (last - first))

    def _show(self, what: str, done: int, of: int) -> None:
        self._reached = max(self._reached, done)
        if self._progress is not None:
            self._progress(what, self._reached, of)

    def done(self, **facts: Fact) -> None:
        """The last stage is done."""
        if self._current is not None:
            tell(self._room, self._names[self._current], **facts, seconds=_since(self._begun))
        self._current = None


def _since(begun: float) -> float:
    return time.perf_counter() - begun


def _word(fact: Fact) -> str:
    """A fact without anything that could pass for another fact or another line."""
    if isinstance(fact, float):
        return f"{fact:.3f}"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    text = visible(str(fact))
    return text if text and not {" ", '"', "="} & {*text} else json.dumps(text, ensure_ascii=False)
