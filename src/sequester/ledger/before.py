"""The file of a ledger as it was before something is recorded, kept beside it until that is done.

DuckDB rewrites some blocks of its file where they are. If the machine stops in the middle of such a block, the file
cannot be read any more; what was kept, together with DuckDB's own log, is the ledger before or after what was being
recorded. The file is read through the handle that DuckDB has: to open it once more, and close it, would drop the locks
that DuckDB holds on it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from sequester.ledger.key import flush_names

if sys.platform != "win32":
    import fcntl

_PART = 1 << 23


def place_of(path: Path) -> Path:
    """Where it is kept."""
    return path.with_name(f".{path.name}.before")


def keep(path: Path) -> None:
    """Copy an open ledger, to the disk; where the system does not show handles, nothing is kept. Raises OSError."""
    handle = _handle_of(path)
    if handle is None:
        return
    kept = place_of(path)
    draft = kept.with_name(f"{kept.name}.draft")
    copy = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        at = 0
        while part := os.pread(handle, _PART, at):
            at += len(part)
            while part:
                part = part[os.write(copy, part) :]
        os.fsync(copy)
    finally:
        os.close(copy)
    draft.replace(kept)
    flush_names(path.parent)


def drop(path: Path) -> None:
    """What was recorded is safe: nothing need be kept."""
    for name in (place_of(path), place_of(path).with_name(f"{place_of(path).name}.draft")):
        with contextlib.suppress(OSError):
            name.unlink()


def put_back(path: Path) -> None:
    """Make what was kept the ledger again. Raises OSError."""
    place_of(path).replace(path)
    flush_names(path.parent)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nobody else puts a ledger of this folder back meanwhile."""
    if sys.platform == "win32":
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _handle_of(path: Path) -> int | None:
    """The number of the handle by which this process has a file open."""
    with contextlib.suppress(OSError):
        wanted = path.stat()
        for handle in map(int, (entry.name for entry in Path("/proc/self/fd").iterdir())):
            with contextlib.suppress(OSError):
                there = os.fstat(handle)
                if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return handle
    return None
