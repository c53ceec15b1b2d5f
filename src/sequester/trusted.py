"""Whether nobody else can say what is in a folder or a file. Where files have no owners, nothing can be said."""

from __future__ import annotations

import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def is_folder_trusted(folder: str | os.PathLike[str]) -> bool:
    """Whether only this user and root can write to a folder, to those above it, and to those that links lead through.

    In a folder with the sticky bit, such as /tmp, others cannot touch what is this user's.
    """
    if not hasattr(os, "getuid"):
        return True
    path = Path(folder).absolute()
    here, names = Path(path.anchor), deque(path.parts[1:])
    with suppress(OSError):
        # What cannot be looked at, or leads in circles, ends here.
        path.resolve(strict=True)
        while names:
            about, entry = here.lstat(), here / names.popleft()
            found = entry.lstat()
            can_be_turned = about.st_mode & _OTHERS and not about.st_mode & stat.S_ISVTX
            if can_be_turned or not (_is_ours(about) and _is_ours(found)):
                return False
            if not stat.S_ISLNK(found.st_mode):
                here = here.parent if entry.name == ".." else entry
                continue
            target = entry.readlink()
            if target.is_absolute():
                here = Path(target.anchor)
            names.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
        about = here.lstat()
        return stat.S_ISDIR(about.st_mode) and _is_ours(about) and not about.st_mode & _OTHERS
    return False


def is_file_trusted(file: str | os.PathLike[str]) -> bool:
    """Whether only this user and root can have written a file of a trusted folder."""
    if not hasattr(os, "getuid"):
        return True
    with suppress(OSError):
        about = Path(file).lstat()
        return stat.S_ISREG(about.st_mode) and _is_ours(about) and not about.st_mode & _OTHERS
    return False


def _is_ours(about: os.stat_result) -> bool:
    return about.st_uid in (0, os.geteuid())
