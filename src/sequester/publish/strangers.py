"""Whether the people of a table are those of its series, or only look new because their ids are written otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.people import lookalikes, names, other_spellings
from sequester.errors import DataError, Problem

if TYPE_CHECKING:
    from sequester.ledger import Ledger

# Of those who could have been recognised: the people of the table or of the last release, whichever are fewer.
FEW = 0.05
# So many newcomers are looked up under other spellings of their ids.
_LOOKED_UP = 10_000


def check_known(
    recognised: int, people: int, last: int, *, column: str | None, everybody_is_new: bool, misspelt: int = 0
) -> tuple[str, ...]:
    """Stop where nearly nobody is recognised, unless that was said before; returns what a plan notes then.

    last  people of the last release, or of whatever else the table is held against
    """
    if not last or not people or recognised >= FEW * min(people, last):
        return ()
    table = f"of the {people:,} people in the table"
    known = f"only {recognised:,} {table} are" if recognised else f"none {table} is"
    what = f"{known} recognised, though {last:,} were published last"
    if everybody_is_new:
        return (f"{what}: they were said to be other people, and count as such",)
    cause = (
        f"{misspelt:,} or more of their ids are numbers that were written in another way then (1 and 1.0, 7 and 007)"
        if misspelt
        else "their ids are probably from another column, written in another way, or made with another secret"
    )
    message = (
        f"{what}; {cause}. Published like this, everybody would count twice. Give the ids as they were; if these "
        "really are other people, say so with everybody_is_new=True"
    )
    raise DataError(Problem(message, column=column))


def count_misspelt(ledger: Ledger, ids: pa.Array, number: NDArray[np.int64]) -> int:
    """How many of those who are not recognised would be, were their ids numbers written in another way.

    `number` is -1 for them. Of very many newcomers only some are looked up, so there may be more.
    """
    strangers = np.flatnonzero(number < 0)
    chosen = strangers[:: max(1, -(-len(strangers) // _LOOKED_UP))]
    ways = other_spellings(names(ids.take(pa.array(chosen))))
    row = np.concatenate([np.flatnonzero(way.is_valid().to_numpy(zero_copy_only=False)) for way in ways])
    if not len(row):
        return 0
    known = ledger.match(ledger.identify(pa.concat_arrays([way.drop_null() for way in ways])))
    return len(np.unique(row[known >= 0]))


def note_spelling(ids: pa.Array, misspelt: int = 0) -> tuple[str, ...]:
    """What a steward should know about ids that are numbers written in several ways."""
    notes = []
    if alike := lookalikes(names(ids)):
        notes.append(
            f"{_people(alike)} an id that is a number and written in another way than another one of the table (1 and "
            "1.0, 7 and 007): these count as different people; if they are not, correct the ids"
        )
    if misspelt:
        notes.append(
            f"{_people(misspelt)} an id that is not known, but would be if the number was written in another way (1 "
            "and 1.0, 7 and 007): they count as new people; if they are not, give the ids as they were"
        )
    return tuple(notes)


def _people(count: int) -> str:
    return "1 person has" if count == 1 else f"{count:,} people have"
