"""What DuckDB's errors mean, in our own words: what really failed, and what to do.

Its messages may quote what is stored, so none is passed on: only the system's words for an error are found in them.
A ledger is called damaged only when its content is wrong, since that sends people to their backups.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import duckdb
import pyarrow as pa

from sequester.errors import LedgerError, OutOfMemory, Problem, SequesterError
from sequester.ledger.connection import RESTORE, Encrypted, busy, damaged
from sequester.ledger.place import Place
from sequester.memory import is_lack_of_memory

# What DuckDB, and what reads its tables, raises.
ERRORS = (duckdb.Error, pa.ArrowException, UnicodeDecodeError, RuntimeError, MemoryError)

_ROOM = "make room and try again"
_RIGHTS = "see who may read and write the ledger, and the folder it is in"
_DISK = "see whether the disk is well and reachable, and try again"
_SYSTEM = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EPERM: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.EIO: _DISK,
    errno.ESTALE: _DISK,
    errno.ENXIO: _DISK,
    errno.ENODEV: _DISK,
    errno.ETIMEDOUT: _DISK,
    # Before the next, whose words these begin with.
    errno.ENFILE: "close other programs and try again",
    errno.EMFILE: "let this process open more files (`ulimit -n`), and try again",
    errno.ENOLCK: "keep the ledger on a disk that has locks",
    errno.ENOENT: "put it back and try again",
    errno.EISDIR: "give the file of a ledger",
    errno.ENOTDIR: "give the file of a ledger",
    errno.ENAMETOOLONG: "give it a shorter name",
}
_WRONG_CONTENT = (
    "checksum", "corrupt", "deserializ", "failed to read", "not enough bytes",
    "could not read enough", "end of file", "reached the end", "replaying wal", "does not exist", "out of range",
)  # fmt: skip
_WRONG_TYPES = (
    duckdb.SerializationException, duckdb.CatalogException, duckdb.BinderException, duckdb.ConversionException,
    duckdb.TypeMismatchException, duckdb.OutOfRangeException, UnicodeDecodeError, pa.ArrowException,
)  # fmt: skip


def explain(error: Exception, opened: Place, place: Place) -> SequesterError | KeyboardInterrupt:
    """What to raise instead of an error of DuckDB about a file that was opened for the ledger at a place."""
    text = _text(error, opened)
    if isinstance(error, duckdb.InterruptException) or "interrupted" in text:
        return KeyboardInterrupt()
    for words, failure in _KNOWN:
        if any(word in text for word in words):
            return failure(place)
    if is_lack_of_memory(error, text):
        message = "there is not enough memory for this ledger; close other programs, or use a larger machine"
        return OutOfMemory(Problem(f"{message}. Nothing was changed", file=str(place)))
    said = _of_system(text) or _of_disk(text)
    if said is not None:
        what = next((done for word, done in _DONE.items() if word in text), "used")
        return LedgerError(Problem(f"the ledger cannot be {what}: {said}. Nothing was changed", file=str(place)))
    if "invalidated" in text:
        return _problem("the ledger cannot go on after the error before; try again")(place)
    if isinstance(error, _WRONG_TYPES) or any(word in text for word in _WRONG_CONTENT):
        return damaged(place)
    message = (
        f"the ledger cannot be used: DuckDB gave up ({type(error).__name__}). Nothing was changed; try again, and if "
        "it stays, see what `sequester ledger verify` says"
    )
    return LedgerError(Problem(message, file=str(place)))


def _text(error: Exception, place: Place) -> str:
    """What an error says, without names of files, which may be anything."""
    text = str(error)
    for name in (str(place.file.resolve()), str(place.file)):
        text = text.replace(name, "")
    return text.lower()


def of_writing(error: OSError, place: Place) -> LedgerError:
    """What to say when the system refused something beside the file."""
    words, fix = error.strerror or "disk error", _SYSTEM.get(error.errno or 0, "try again")
    return LedgerError(Problem(f"the ledger cannot be written: {words}; {fix}. Nothing was changed", file=str(place)))


def _of_system(text: str) -> str | None:
    """The system's words for what it refused, and what helps."""
    for code, fix in _SYSTEM.items():
        if (words := os.strerror(code)).lower() in text:
            return f"{words}; {fix}"
    return None


def _of_disk(text: str) -> str | None:
    """DuckDB keeps the system's words to itself where a disk loses what it was given."""
    return f"the disk did not keep what was written; {_DISK}" if "fsync failed" in text else None


def _problem(message: str) -> Callable[[Place], SequesterError]:
    return lambda place: LedgerError(Problem(message, file=str(place)))


# The first of these that is said tells what was being done.
_DONE = {
    "commit": "written",
    "checkpoint": "written",
    "cannot open": "opened",
    "could not read": "read",
    "could not": "written",
    "sync": "written",
}
_KNOWN: tuple[tuple[tuple[str, ...], Callable[[Place], SequesterError]], ...] = (
    (("could not set lock", "conflicting lock", "unique file handle conflict", "already attached"), busy),
    (
        ("without a key",),
        lambda place: Encrypted(Problem("the ledger is encrypted; its key is needed", file=str(place))),
    ),
    (("wrong encryption key",), _problem("the key is not the one of this ledger")),
    (
        ("crypto module", "httpfs"),
        _problem(
            "writing an encrypted ledger needs DuckDB's httpfs extension, which has OpenSSL: run `INSTALL httpfs` in "
            "DuckDB once, or keep the ledger on an encrypted disk without `encrypted`"
        ),
    ),
    (("not a valid duckdb", "is not a duckdb"), _problem(f"this is no ledger, or it is damaged; {RESTORE}")),
    (("newer version of duckdb",), _problem("the ledger was written with a newer DuckDB; upgrade the package duckdb")),
)
