"""Who is who over the waves: the column that says it, who joins, leaves and returns, and what changes about people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain.codec import to_text
from sequester.errors import DataError, Problem
from sequester.ingest.propose.hints import KNOWN, NUMBERED, PEOPLE, SENSITIVE, is_identifying, words_of
from sequester.ingest.propose.profile import Profile, as_numbers, no_values, profile, together
from sequester.ingest.propose.waves import Waves
from sequester.ingest.suited import suited

Codes = NDArray[np.int64]

_FEW = 50
"""Columns with at most so many values show whether rows are about the same people: others agree by chance only."""


@dataclass(frozen=True)
class Turnover:
    """How one wave differs from the one before, in people."""

    stayed: int
    joined: int
    returned: int
    left: int


@dataclass(frozen=True)
class Seen:
    """A column over the waves.

    together  of all waves that have it
    waves     of each; None where it is absent
    moves     what happens to it within people; None where there is one wave, or it is not in all of them
    """

    together: Profile
    waves: tuple[Profile | None, ...]
    moves: Moves | None = None

    @property
    def name(self) -> str:
        """Of the column."""
        return self.together.name

    @property
    def changes(self) -> bool:
        """Whether anybody has different cells at different times."""
        return self.moves is not None and self.moves.changed > 0

    @property
    def dated(self) -> bool:
        """Whether it says which wave this is: one value in every wave, and not the same one."""
        return (
            len(self.waves) > 1
            and self.together.distinct > 1
            and all(wave is not None and wave.distinct == 1 and not wave.missing for wave in self.waves)
        )

    @property
    def share(self) -> float:
        """Of the commonest value, in the wave in which that is most."""
        return max(wave.share for wave in self.waves if wave is not None)


@dataclass(frozen=True)
class Moves:
    """What happens to a column within people who are in at least two waves.

    changed    people who have different cells at some time; a cell without a value is different from one with
    low, high  numbers: the least and the most that one moves from wave to wave; None where none can be compared
    """

    people: int
    changed: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Rows of all waves, one after the other, in an order in which those of a person are together.

    person, wave  of every row
    order         rows by person, then by wave
    linked        per row of the order but the first, whether it is of the same person as the one before
    """

    waves: int
    person: Codes
    wave: Codes
    order: Codes
    linked: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray]) -> Panel:
        """People by a column, in the order of waves."""
        texts = pc.utf8_trim_whitespace(to_text(together(columns).combine_chunks()))
        person = texts.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        wave = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
        order = np.lexsort((wave, person))
        return cls(len(columns), person, wave, order, np.diff(person[order]) == 0)

    @property
    def people(self) -> int:
        """How many there are in all waves."""
        return len(self.order) - int(np.count_nonzero(self.linked))

    @property
    def flows(self) -> list[Turnover]:
        """Every wave but the first, and the one before."""
        there = np.zeros((int(self.person.max()) + 1, self.waves), np.bool_)
        there[self.person, self.wave] = True
        flows = []
        for number in range(1, self.waves):
            now, last, ever = there[:, number], there[:, number - 1], there[:, :number].any(axis=1)
            masks = (now & last, now & ~ever, now & ever & ~last, last & ~now)
            flows.append(Turnover(*(int(np.count_nonzero(mask)) for mask in masks)))
        return flows

    @property
    def leaving(self) -> float:
        """The share of people of a wave who are not in the next, on average."""
        flows = self.flows
        return float(np.mean([flow.left / max(flow.left + flow.stayed, 1) for flow in flows])) if flows else 0.0

    def moves(self, look: Profile, columns: Sequence[pa.ChunkedArray]) -> Moves:
        """What happens to a column that every wave has."""
        codes, numbers = cells_of(look, columns)
        rows = self.order
        before, after = rows[:-1][self.linked], rows[1:][self.linked]
        changed = np.unique(self.person[after[codes[before] != codes[after]]])
        people = len(np.unique(self.person[after]))
        if numbers is None:
            return Moves(people, len(changed))
        with np.errstate(invalid="ignore"):  # of two infinite numbers
            steps = (numbers[after] - numbers[before]) / (self.wave[after] - self.wave[before])
        steps = steps[np.isfinite(steps)]
        if not len(steps):
            return Moves(people, len(changed))
        return Moves(people, len(changed), float(steps.min()), float(steps.max()))

    def agreement(self, looks: Sequence[Profile], waves: Waves) -> float:
        """How many cells are as they were, in columns with few values: nearly all if this column tells people apart."""
        few = [look for look in looks if 1 < look.distinct <= _FEW]
        shares = []
        for look in few:
            moves = self.moves(look, waves.column(look.name))
            shares.append(1 - moves.changed / max(moves.people, 1))
        return float(np.mean(shares)) if shares else 0.0


def cells_of(look: Profile, columns: Sequence[pa.ChunkedArray]) -> tuple[Codes, NDArray[np.float64] | None]:
    """Codes of the cells of all waves, -1 for none, equal for equal values; and the numbers, if these are numbers."""
    column = together(columns).combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    empty = no_values(column)[0].to_numpy(zero_copy_only=False)
    if look.looks == "number":
        blank = pc.if_else(pa.array(empty), pa.scalar(None, column.type), column)
        numbers = as_numbers(blank).to_numpy(zero_copy_only=False).astype(np.float64)
        codes = np.unique(np.where(empty, 0.0, numbers), return_inverse=True)[1].astype(np.int64)
        return np.where(empty, -1, codes), np.where(empty, np.nan, numbers)
    texts = pc.utf8_trim_whitespace(to_text(column)).fill_null("")
    codes = texts.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where(empty, -1, codes), None


def person_of_table(looks: Sequence[Profile]) -> Profile | None:
    """The column that says who a record of a single table is about: unique and named like one, else any that could."""
    unique = [look for look in looks if look.unique and not words_of(look.name) & (KNOWN | SENSITIVE)]
    numbered = [look for look in unique if words_of(look.name) & (NUMBERED | PEOPLE)]
    # A person id that repeats is still who the records are about: `check` will then ask for one row per person.
    repeated = [
        look
        for look in looks
        if words_of(look.name) & PEOPLE and words_of(look.name) & NUMBERED and look.looks != "nothing"
    ]
    other = [look for look in unique if look.looks in ("category", "code") or _counts_up(look)]
    named = [look for look in other if not is_identifying(look.name)]
    return next(iter([*numbered, *repeated, *named, *other]), None)


def person_of_waves(waves: Waves, looks: Sequence[Seen]) -> str:
    """The column that is different in every row of a wave and recurs in others. DataError where there is none.

    Of several it is the one by which people are most alike over the waves: the number of a row recurs, too.
    """
    found = []
    for seen in looks:
        words = words_of(seen.name)
        unique = all(wave is not None and wave.unique and wave.looks != "text" for wave in seen.waves)
        if not unique or words & (KNOWN | SENSITIVE):
            continue
        panel = Panel.of(waves.column(seen.name))
        if panel.linked.any():
            found.append((seen, panel, bool(words & (NUMBERED | PEOPLE)) and not is_identifying(seen.name)))
    if not found:
        raise DataError(
            "no column tells people apart in every wave and recurs in the next, so nobody can be followed; name the "
            "person column, or give each wave as a table of one row per person"
        )
    if len(found) == 1:
        return found[0][0].name
    others = [seen.together for seen in looks if all(wave is not None for wave in seen.waves)]
    best = max(found, key=lambda one: (round(one[1].agreement(others, waves), 2), one[2]))
    return best[0].name


def _counts_up(look: Profile) -> bool:
    """A running number: as many whole values as rows, without large gaps."""
    return look.looks == "number" and look.high - look.low == look.rows - 1


def panel_of(waves: Waves, name: str) -> Panel:
    """People by a column. DataError where it does not tell them apart."""
    if name not in waves.common:
        reason = "is in no wave" if name not in waves.names else "is not in every wave"
        raise DataError(Problem(f"{reason}, so it cannot be the person column", column=name))
    columns = [suited(column, name) for column in waves.column(name)]
    look = profile(name, *columns)
    if look.missing:
        raise DataError(Problem("has cells without a value, so it cannot be the person column", column=name))
    panel = Panel.of(columns)
    twice = len(panel.order) - len(np.unique(panel.person * len(waves) + panel.wave))
    if twice:
        message = f"{twice:,} rows are about somebody who has another row in the same wave; a wave has one per person"
        raise DataError(Problem(message, column=name, rows=twice))
    return panel
