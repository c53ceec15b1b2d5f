"""Regular files, read up to a size: a pipe or a device may never end, or never begin."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


class Unreadable(Exception):
    """Why a file is not read, in words that go after its name."""


def digest_of(path: Path) -> str:
    """SHA-256 of a file. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_regular(path: Path, *, most: int) -> bytes:
    """The bytes of a regular file; Unreadable if it is none, has more than `most` bytes, or cannot be read."""
    try:
        # A pipe that nobody writes to would make an ordinary open wait.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        reason = "there is no such file"
    except ValueError:
        reason = "this is no name of a file"
    except OSError as error:
        reason = f"it cannot be read: {said(error)}"
    else:
        try:
            return _contents(handle, most)
        finally:
            os.close(handle)
    raise Unreadable(reason)


def _contents(handle: int, most: int) -> bytes:
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode):
        raise Unreadable("this is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise Unreadable("this is a pipe or a device; name a regular file")
    parts: list[bytes] = []
    left = most + 1
    try:
        while left and (part := os.read(handle, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        reason = f"it cannot be read: {said(error)}"
    else:
        if left:
            return b"".join(parts)
        reason = f"the file is larger than {size(most)}, the most that is read"
    raise Unreadable(reason)


def said(error: OSError) -> str:
    """What the system says about a file, without its name."""
    return (error.strerror or "unknown error").lower()


def size(amount: int) -> str:
    """A number of bytes in words."""
    return f"{amount >> 20} MB" if amount >= 1 << 20 else f"{amount >> 10} KB"
