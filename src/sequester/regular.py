"""Regular files, read up to a size: a pipe or a device may never end, or never begin."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path


class Unreadable(Exception):
    """Why a file is not read, in words that go after its name."""


class _NoRegularFile(OSError):
    """A folder, a pipe, a device or a socket."""


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read its bytes. Raises OSError, also for what is no regular file."""
    # A pipe that nobody writes to would make an ordinary open wait.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    folder = stat.S_ISDIR(mode)
    what = "this is a folder; name a file in it" if folder else "this is a pipe or a device; name a regular file"
    raise _NoRegularFile(errno.EINVAL, what)


def bytes_of(path: Path) -> bytes:
    """All bytes of a regular file. Raises OSError."""
    with open_regular(path) as stream:
        return stream.read()


def digest_of(path: Path) -> str:
    """SHA-256 of a regular file. Raises OSError."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_regular(path: Path, *, most: int) -> bytes:
    """The bytes of a regular file; Unreadable if it is none, has more than `most` bytes, or cannot be read."""
    try:
        with open_regular(path) as stream:
            data = stream.read(most + 1)
    except FileNotFoundError:
        reason = "there is no such file"
    except ValueError:
        reason = "this is no name of a file"
    except _NoRegularFile as error:
        reason = said(error)
    except OSError as error:
        reason = f"it cannot be read: {said(error)}"
    else:
        if len(data) <= most:
            return data
        reason = f"the file is larger than {size(most)}, the most that is read"
    raise Unreadable(reason)


def said(error: OSError) -> str:
    """What the system says about a file, without its name."""
    return (error.strerror or "unknown error").lower()


def size(amount: int) -> str:
    """A number of bytes in words."""
    return f"{amount >> 20} MB" if amount >= 1 << 20 else f"{amount >> 10} KB"
