"""Folders in which something is made before it gets its name, and which a kill does not leave behind for good.

Each lies beside what is made in it, is for its owner alone, and is locked by whoever works in it. A lock ends with its
process, so a draft that nobody has locked is one whose maker died: the next that makes the same thing sweeps it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from sequester.regular import bytes_of

if sys.platform != "win32":
    import fcntl

_ELSEWHERE = "elsewhere"


@contextlib.contextmanager
def draft_elsewhere(path: Path, folder: Path) -> Iterator[Path]:
    """As `draft_beside`, but in another folder; a draft beside the path remembers where. Raises OSError."""
    if folder.resolve() == path.parent.resolve():
        with draft_beside(path) as draft:
            yield draft
        return
    folder.mkdir(parents=True, exist_ok=True)
    there = folder.resolve() / path.name
    with draft_beside(path) as mark:
        write_whole(mark / _ELSEWHERE, os.fsencode(there))
        with draft_beside(there) as draft:
            yield draft


@contextlib.contextmanager
def draft_beside(path: Path) -> Iterator[Path]:
    """An empty private folder beside a path, gone afterwards whatever happens. Raises OSError."""
    sweep(path)
    folder, lock = _new(path)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(path: Path) -> list[Path]:
    """Remove what others left who died while they made this; returns the folders of what cannot be removed."""
    left: list[Path] = []
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    with contextlib.suppress(OSError):
        for folder in [place for place in path.parent.iterdir() if pattern.fullmatch(place.name)]:
            # Whoever is at work has locked it; or it is gone since.
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                lock = _lock(folder)
                if lock is not None:
                    left += _remove(folder)
                    os.close(lock)
    return left


def _remove(folder: Path) -> list[Path]:
    """Remove a draft that nobody works in, first what it says is elsewhere; returns the folders of what is left."""
    there = None
    with contextlib.suppress(OSError):
        there = Path(os.fsdecode(bytes_of(folder / _ELSEWHERE)))
    if there is not None and (not there.parent.is_dir() or sweep(there)):
        return [there.parent]
    shutil.rmtree(folder, ignore_errors=True)
    return [folder.parent] if folder.exists() else []


def remove(path: Path) -> None:
    """Remove a folder, or whatever has its name: to look into a pipe would wait for somebody to write to it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        path.unlink()


def write_whole(path: Path, data: bytes) -> None:
    """A new file with these bytes, all of them, on disk, that only its owner may read. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # A disk that is nearly full takes a part, and says so only when it is offered the rest.
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def flush(path: Path) -> None:
    """Make sure a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _new(path: Path) -> tuple[Path, int | None]:
    """A new folder and its lock, if the file system has locks."""
    while True:
        folder = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        folder.mkdir(mode=0o700)
        # Somebody who sweeps just then may take it for a dead one's; then there is another name.
        with contextlib.suppress(BlockingIOError):
            lock = _lock(folder)
            if folder.exists():
                return folder, lock
            if lock is not None:
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder; None when it cannot be locked. Raises BlockingIOError when somebody else has it."""
    if sys.platform == "win32":
        return None
    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return handle
    except OSError as error:
        if handle is not None:
            os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None
