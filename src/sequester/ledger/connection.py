"""What a ledger is kept in: one open connection, its transactions, and errors in our own words.

`duck` keeps a ledger in a file, `postgres` in a database of a server. Messages of a database may quote what is stored,
so none of them is passed on.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from sequester.errors import Busy, LedgerError, Problem
from sequester.ledger.place import Place

# Whoever restores an old one would publish what its releases since then do not allow.
RESTORE = (
    "restore it from a backup or an export, the newest: one that is older than the release folders is refused. Nothing "
    "was changed"
)

# What helps where something else is in place of a table.
PUT_BACK = "put the table back, from a backup or an export"


class Connection(ABC):
    """An open ledger: nobody else writes to it while this one may."""

    place: Place
    read_only: bool
    # Whether rows come back in the order in which they were put in, unless something happened to the file.
    keeps_order = False

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, with `?` for each parameter."""

    @abstractmethod
    def table(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """The rows of a query, of the types of `schema`."""

    @abstractmethod
    def insert(self, name: str, rows: pa.Table) -> None:
        """Append rows to a table; columns in its order."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """All of it or nothing; durable when it ends."""

    @abstractmethod
    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""

    @abstractmethod
    def close(self) -> None:
        """Let others have the ledger."""

    @abstractmethod
    def unfit(self) -> dict[str, str]:
        """The tables of the ledger that need not keep what is put into them, each with what it is or has."""

    def refuse_unfit(self) -> None:
        """Raise LedgerError unless every table is a plain one: what is written to another may be changed or lost."""
        if found := self.unfit():
            raise LedgerError(
                Problem(f"the table {table} of the ledger {what}. Nothing was changed", file=str(self.place))
                for table, what in sorted(found.items())
            )

    def damaged(self, what: str = "") -> LedgerError:
        """What to say when rows are not what was written."""
        return damaged(self.place, what)

    def not_kept(self, what: str) -> LedgerError:
        """What to say when something that was just written is not there."""
        message = (
            f"the ledger did not keep what was written to it ({what}), though nothing was said to have failed; see "
            "that its tables are as Sequester made them, and its disk. This step was not recorded"
        )
        return LedgerError(Problem(message, file=str(self.place)))


class Encrypted(LedgerError):
    """The ledger is encrypted, and was opened without a key."""


class Damaged(LedgerError):
    """What is stored cannot be what was written."""


def busy(place: Place | str) -> Busy:
    """What to say while another command has the ledger."""
    return Busy(f"{place}: another command has the ledger; wait until it is done, or try again")


def damaged(place: Place, what: str = "") -> Damaged:
    """What to say when what is stored cannot be what was written."""
    reason = f": {what}" if what else ""
    return Damaged(Problem(f"the ledger is damaged{reason}; {RESTORE}", file=str(place)))


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Files that are made meanwhile are for their owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
