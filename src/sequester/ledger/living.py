"""What is done to a series beside publishing, in its ledger: each is a row of the log that another one can undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sequester.errors import LedgerError, Problem
from sequester.ledger import aliases, hashing, life, shelf
from sequester.ledger.aliases import Aliases, Renaming
from sequester.ledger.life import Ending
from sequester.ledger.rows import join_hashes
from sequester.ledger.state import HASH, Entry
from sequester.ledger.store import Store

if TYPE_CHECKING:
    from sequester.ledger.ledger import Ledger

Result = TypeVar("Result")


class Life:
    """The life of the series of an open ledger. With `plan` everything is looked at, and nothing is recorded."""

    def __init__(self, ledger: Ledger, store: Store) -> None:
        self._ledger, self._store = ledger, store

    def __repr__(self) -> str:
        return f"<Life of {self._ledger.series}>"

    def aliases(self) -> Aliases:
        """People whose ids are not those that they were recorded with."""
        events = self._ledger.log()
        return self._store.decode(lambda: aliases.load(self._store, events))

    @property
    def closed(self) -> Ending | None:
        """Since when the series is closed, and why; None for one that is open, or was handed over."""
        return self._store.decode(lambda: life.closing(self._ledger.log()))

    def close(self, reason: str | None = None, *, plan: bool = False) -> None:
        """Nothing more is published. To say so again is an error, so that a reason is not lost."""
        self._need_settled()
        self._ledger.check_open()
        self._record(life.CLOSED, None, life.detail(reason), plan=plan)

    def reopen(self, *, plan: bool = False) -> None:
        """Undo that the series was closed."""
        self._need_settled()
        if self._ledger.successor is not None or self.closed is None:
            other = self._ledger.successor is not None
            why = "another series goes on from this one" if other else "the series is not closed"
            raise self._problem(f"{why}; nothing was changed")
        self._record(life.REOPENED, None, life.detail(None), plan=plan)

    @property
    def withdrawals(self) -> dict[int, Ending]:
        """The releases that were withdrawn after they were published, by number; the world knows them all the same."""
        return self._store.decode(lambda: life.withdrawals(self._ledger.log()))

    def withdraw(self, number: int, reason: str | None = None, *, plan: bool = False) -> None:
        """A release that was published is withdrawn. What it told stays known, and every audit counts it."""
        entry = self._published(number)
        if number in self.withdrawals:
            raise self._problem(f"release {number} is withdrawn already")
        self._record(life.WITHDRAWN, number, life.detail(reason, hash=entry.hash), plan=plan)

    def restore(self, number: int, *, plan: bool = False) -> None:
        """Undo that a release was withdrawn."""
        entry = self._published(number)
        if number not in self.withdrawals:
            raise self._problem(f"release {number} is not withdrawn")
        self._record(life.RESTORED, number, life.detail(None, hash=entry.hash), plan=plan)

    def arrange(self, folder: Path) -> list[int]:
        """Move folders of withdrawn releases aside, and others back; returns which were moved. Raises OSError."""
        ever, series = life.ever_withdrawn(self._ledger.log()), self._ledger.series
        if not ever:
            return []
        return shelf.arrange(folder, series, self._ledger.releases(), ever=ever, withdrawn=self.withdrawals)

    def rename(self, old: pa.Array, new: pa.Array, *, plan: bool = False) -> Renaming:
        """People get other ids, one each, none twice; with `plan`, only look whether they can, and count them.

        Seats, trajectories and everything published stay theirs.
        """
        key, entries = self._ledger.key, self._need_settled()
        self._ledger.check_open()
        known_as = self.aliases()
        one, other = (hashing.identify(ids, key) for ids in (old, new))
        who = known_as.resolve(one, key)
        changes, counted = self._in_file(lambda: aliases.renaming(known_as, self._everybody(entries), one, other, key))
        if not plan:
            self._rename(who.filter(changes), other.filter(changes))
        return counted

    def undo_rename(self, *, plan: bool = False) -> Renaming:
        """Undo the last renaming that was not undone: everybody it was about has the id from before."""
        key, entries, events = self._ledger.key, self._need_settled(), self._ledger.log()
        self._ledger.check_open()
        last = aliases.last_change(events)
        if last is None:
            raise self._problem("nobody got another id, or all of that was undone")
        known_as, who = self.aliases(), aliases.changed(self._store, last)
        back = aliases.before(self._store, events, last).names(who)
        named = known_as.names(who)
        counted = self._in_file(lambda: aliases.renaming(known_as, self._everybody(entries), named, back, key))[1]
        if not plan:
            self._rename(who, back, undoes=last.number)
        return counted

    @property
    def renamed(self) -> bool:
        """Whether people got other ids since the last release: the person column may have another name, too."""
        last = [event.action for event in self._ledger.log() if event.action in ("begun", aliases.RENAMED)][-1:]
        return last == [aliases.RENAMED]

    def _rename(self, who: pa.Array, now: pa.Array, **facts: int) -> None:
        with self._store.connection.transaction():
            number = len(self._ledger.log()) + 1
            digest = aliases.append(self._store, number, who, now)
            told = life.detail(None, people=len(who), digest=digest, **facts)
            self._store.record(aliases.RENAMED, None, told)
        self._ledger.remember()

    def _everybody(self, entries: Sequence[Entry]) -> pa.Array:
        """Everybody who was published, and whoever waits, as recorded; decoys have no ids."""
        if not entries:
            return pa.array([], HASH)
        state = self._ledger.load()
        people = self._store.by_release("people", entries)
        hashes = join_hashes(*(np.concatenate([rows[half] for rows in people]) for half in ("high", "low")))
        return pc.unique(pa.concat_arrays([hashes.filter(pa.array(~state.decoy)), state.queue.hashes]))

    def _in_file(self, look: Callable[[], Result]) -> Result:
        """Look at something; what is wrong with it is told with the name of the ledger."""
        try:
            return look()
        except LedgerError as error:
            failure = LedgerError(replace(problem, file=str(self._ledger.place)) for problem in error.problems)
        raise failure

    def _published(self, number: int) -> Entry:
        entries = self._need_settled()
        if not 1 <= number <= len(entries):
            raise self._problem(f"there is no release {number} in the ledger")
        if number <= self._ledger.carried:
            message = f"release {number} is of the series before this one, and can be withdrawn there"
            raise self._problem(message)
        return entries[number - 1]

    def _need_settled(self) -> list[Entry]:
        """All releases, where none is begun and not finished."""
        entries = self._ledger.trusted()
        if entries and entries[-1].status == "begun":
            message = f"release {len(entries)} was begun and not finished; finish or withdraw it first"
            raise self._problem(message)
        return entries

    def _problem(self, message: str) -> LedgerError:
        return LedgerError(Problem(message, file=str(self._ledger.place)))

    def _record(self, action: str, release: int | None, detail: str, *, plan: bool) -> None:
        """One more row of the log; with `plan`, all was looked at, and nothing is recorded."""
        if plan:
            return
        with self._store.connection.transaction():
            self._store.record(action, release, detail)
        self._ledger.remember()
