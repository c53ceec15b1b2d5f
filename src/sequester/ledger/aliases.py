"""People who got another id: the ledger goes on to know them by the hash that they were first recorded with.

Whoever stands in a table with the new id is found by it. An id that somebody had and has not any more is nobody's: who
it is about now, the old person or another, nobody can tell, and so tables with such ids are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.errors import LedgerError, Problem
from sequester.ledger import chain, hashing, schema
from sequester.ledger.key import Key
from sequester.ledger.rows import DTYPES, Columns, join_hashes, split_hashes
from sequester.ledger.state import HASH, Event
from sequester.ledger.store import Store, must, quoted

RENAMED: Final = "people renamed"


@dataclass(frozen=True)
class Renaming:
    """People who get another id, counted.

    people     whose id changes
    unchanged  in the mapping with the id that they have
    unknown    in the mapping, and never published
    others     known, and not in the mapping: they keep their ids
    """

    people: int
    unchanged: int
    unknown: int
    others: int


@dataclass(frozen=True, eq=False, repr=False)
class Aliases:
    """Everybody whose id is not the one that she was recorded with.

    recorded, now  her hash then, and the one of her id now
    former         hashes of ids that somebody had and has no more
    """

    recorded: pa.Array
    now: pa.Array
    former: pa.Array

    @classmethod
    def of(cls, changes: Sequence[tuple[pa.Array, pa.Array]]) -> Aliases:
        """After these changes, one after the other: who, and by which hash from then on."""
        none = pa.array([], HASH)
        if not changes:
            return cls(none, none, none)
        recorded = pa.concat_arrays([who for who, _ in changes])
        now = pa.concat_arrays([name for _, name in changes])
        place = pa.table({"who": recorded, "at": np.arange(len(recorded))})
        last = np.sort(place.group_by("who").aggregate([("at", "max")])["at_max"].to_numpy())
        held = now.take(pa.array(last))
        every = pc.unique(pa.concat_arrays([recorded, now]))
        former = every.filter(pc.invert(pc.is_in(every, value_set=held)))
        return cls(recorded.take(pa.array(last)), held, former)

    def __len__(self) -> int:
        return len(self.recorded)

    def resolve(self, hashes: pa.Array, key: Key) -> pa.Array:
        """The hashes that people with these ids are recorded with; of a former id, one that is nobody's."""
        if not len(self):
            return hashes
        place = pc.index_in(hashes, value_set=self.now)
        known = pc.if_else(place.is_valid(), self.recorded.take(place), hashes)
        return pc.if_else(self.is_former(hashes), hashing.retire(hashes, key), known)

    def is_former(self, hashes: pa.Array) -> pa.Array:
        """Which of these are of ids that somebody had and has no more."""
        return pc.is_in(hashes, value_set=self.former)

    def names(self, recorded: pa.Array) -> pa.Array:
        """The hashes of the ids that these people have now."""
        place = pc.index_in(recorded, value_set=self.recorded)
        return pc.if_else(place.is_valid(), self.now.take(place), recorded)


def load(store: Store, events: Sequence[Event]) -> Aliases:
    """The aliases of an open ledger; they are what the log says."""
    changes = {event.number: json.loads(event.detail) for event in events if event.action == RENAMED}
    if not changes:
        return Aliases.of(())
    rows = _rows(store)
    for number, told in changes.items():
        if told["digest"] != digest(_of(rows, number)):
            raise store.connection.damaged("what is recorded of people with other ids was changed")
    return Aliases.of([_pair(_of(rows, number)) for number in changes])


def problems(store: Store, events: Sequence[Event]) -> list[str]:
    """What is wrong with the aliases."""
    numbers = {event.number for event in events if event.action == RENAMED}
    rows = store.decode(lambda: _rows(store))
    strays = int(np.count_nonzero(~np.isin(rows["change"], list(numbers))))
    found = [f"{strays} rows of aliases belong to no row of the log"] if strays else []
    try:
        load(store, events)
    except LedgerError:
        found.append("what is recorded of people with other ids was changed")
    return found


def renaming(aliases: Aliases, known: pa.Array, old: pa.Array, new: pa.Array, key: Key) -> tuple[pa.Array, Renaming]:
    """Which pairs of ids (hashes) rename somebody, as a mask, and all of them counted; LedgerError if they cannot be.

    known  everybody who was published or waits, as recorded
    """
    who = aliases.resolve(old, key)
    there = pc.is_in(who, value_set=known)
    changes = pc.and_(there, pc.not_equal(new, aliases.names(who)))
    count, unknown = (int(pc.sum(mask).as_py() or 0) for mask in (changes, pc.invert(there)))
    if not count:
        message = (
            "none of the old ids is known"
            if unknown == len(old)
            else "all of these people have the new ids already; there is nothing to do"
        )
        raise LedgerError(Problem(message))
    taken = aliases.resolve(new.filter(changes), key)
    clash = pc.and_(pc.is_in(taken, value_set=known), pc.invert(pc.is_in(taken, value_set=who.filter(changes))))
    if twice := int(pc.sum(clash).as_py() or 0):
        message = (
            f"{twice:,} of the new ids are those of other people, who keep theirs; nobody can tell them apart then. "
            "Correct the mapping, or map these people, too"
        )
        raise LedgerError(Problem(message))
    unchanged = len(old) - unknown - count
    return changes, Renaming(count, unchanged, unknown, len(known) - count - unchanged)


def last_change(events: Sequence[Event]) -> Event | None:
    """The last renaming that was not undone."""
    done: list[Event] = []
    for event in events:
        if event.action == RENAMED and json.loads(event.detail).get("undoes") is None:
            done.append(event)
        elif event.action == RENAMED:
            done.pop()
    return done[-1] if done else None


def changed(store: Store, event: Event) -> pa.Array:
    """Whom a renaming is about, as recorded."""
    return _pair(_of(_rows(store), event.number))[0]


def before(store: Store, events: Sequence[Event], event: Event) -> Aliases:
    """The aliases before a renaming."""
    return load(store, [one for one in events if one.number < event.number])


def append(store: Store, number: int, recorded: pa.Array, now: pa.Array) -> str:
    """The rows of one renaming, in the current transaction; returns their digest, for the row of the log."""
    (high, low), (now_high, now_low) = split_hashes(recorded), split_hashes(now)
    order = np.lexsort((low, high))
    change = np.full(len(order), number, np.int32)
    given: Columns = {"change": change, "high": high, "low": low, "now_high": now_high, "now_low": now_low}
    rows: Columns = {name: np.ascontiguousarray(array[order]) for name, array in given.items()}
    store.connection.insert("aliases", pa.table(rows))
    if digest(_of(_rows(store), number)) != digest(rows):
        raise store.connection.not_kept("aliases")
    return digest(rows)


def digest(rows: Columns) -> str:
    """Of the rows of one renaming."""
    return chain.of_columns("aliases", schema.ALIASES, rows)


def _rows(store: Store) -> Columns:
    stored = store.connection.table(f"SELECT {quoted(schema.ALIASES)} FROM aliases ORDER BY change, high, low")
    columns: dict[str, NDArray[np.generic]] = {}
    for name, kind in schema.ALIASES.items():
        column = stored[name].combine_chunks()
        must(not column.null_count)
        columns[name] = column.to_numpy().astype(DTYPES[kind], copy=False)
    return columns


def _of(rows: Mapping[str, NDArray[np.generic]], number: int) -> Columns:
    first, last = np.searchsorted(rows["change"], [number, number + 1])
    return {name: array[first:last] for name, array in rows.items()}


def _pair(rows: Columns) -> tuple[pa.Array, pa.Array]:
    return join_hashes(rows["high"], rows["low"]), join_hashes(rows["now_high"], rows["now_low"])
