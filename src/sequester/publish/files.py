"""Files that appear whole or not at all: written beside their place, flushed to disk, then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sequester.drafts import draft_beside, flush
from sequester.errors import DataError, Problem
from sequester.log import tell
from sequester.outputs import output_of
from sequester.regular import digest_of

if TYPE_CHECKING:
    import pyarrow as pa


def write_file(
    table: pa.Table,
    path: Path,
    *,
    force: bool = False,
    check: Callable[[Path], None] | None = None,
    mode: int | None = None,
) -> Path:
    """Write one table; the suffix is the format. `check` may refuse the file before it gets its name; `mode` is who
    may read it, by default as the system has it."""
    return _appear(path, lambda draft: write_data(table, draft), force=force, check=check, mode=mode)


def write_folder(
    path: Path,
    table: pa.Table,
    data: str,
    texts: Mapping[str, str | Callable[[str], str]],
    *,
    force: bool = False,
    known: Collection[str] = (),
    check: Callable[[Path], None] | None = None,
) -> list[Path]:
    """Write a folder with one table and some text files; returns the files.

    A text that is called is given the digest of the table.
    `force` replaces a folder of the same kind only: all the text files, the table, and perhaps what is in `known`.
    `check` may refuse the table before the folder gets its name.
    """
    _refuse_existing(path, force=force)
    if path.exists():
        _refuse_foreign(path, {data, *texts, *known}, needed=set(texts).difference(known))
    # "." and ".." have a name only when they are resolved.
    place = path if path.name else path.resolve()
    with _staged(place) as folder:
        draft = folder / place.name
        draft.mkdir()
        write_data(table, draft / data)
        if check is not None:
            check(draft / data)
        for name, text in texts.items():
            said = text if isinstance(text, str) else text(digest_of(draft / data))
            (draft / name).write_text(said, encoding="utf-8", newline="")
            flush(draft / name)
        if place.exists():
            # A folder cannot replace one that is not empty; the old one goes only when the new one is in its place.
            old = place.rename(folder / "replaced")
            try:
                draft.rename(place)
            except OSError:
                old.rename(place)
                raise
        else:
            draft.rename(place)
    _flush_names(place.parent)
    return [path / name for name in (data, *texts)]


def write_text(path: Path, text: str, *, force: bool = True, mode: int | None = None) -> Path:
    """Write one text file; `mode` is who may read it, by default as the system has it."""

    def write(draft: Path) -> None:
        draft.write_text(text, encoding="utf-8")
        flush(draft)

    return _appear(path, write, force=force, mode=mode)


def _appear(
    path: Path,
    write: Callable[[Path], None],
    *,
    force: bool,
    mode: int | None,
    check: Callable[[Path], None] | None = None,
) -> Path:
    """A file that is written beside its place, and gets its name when it is whole."""
    _refuse_existing(path, force=force)
    with _staged(path) as folder:
        draft = folder / path.name
        write(draft)
        if mode is not None:
            draft.chmod(mode)
        if check is not None:
            check(draft)
        draft.replace(path)
    _flush_names(path.parent)
    return path


def draft_of(path: Path) -> Path:
    """Where a folder is drafted before it is shown: beside its place, under a hidden name that recovery knows."""
    return path.with_name(f".{path.name}.draft")


def show_folder(path: Path) -> Path:
    """Give a drafted folder its name, at once and durably, and let everybody read it whom the system lets.

    To show it again is no error: whoever did may have died before everybody could read it.
    """
    draft = draft_of(path)
    try:
        if not path.exists():
            draft.rename(path)
        path.chmod(0o777 & ~_umask())
    except OSError as error:
        message = f"is recorded, but could not be shown: {error.strerror}. The next command does it"
        raise DataError(Problem(message, file=str(path))) from None
    _flush_names(path.parent)
    tell("files", "shown", folder=path)
    return path


def write_data(table: pa.Table, path: Path) -> None:
    """Write one table, flushed to disk; the suffix is the format."""
    import pyarrow as pa

    fits = True
    try:
        output_of(path.name).write(table, path)
    except MemoryError:  # of Arrow, too
        raise
    except pa.ArrowException:
        fits = False
    # Outside the handler: Arrow quotes cells.
    if not fits:
        raise DataError(f"a column has values that a {path.suffix[1:]} file cannot hold; convert it or leave it out")
    flush(path)
    tell("files", "wrote", file=path, rows=table.num_rows)


@contextlib.contextmanager
def _staged(path: Path) -> Iterator[Path]:
    """A private folder beside the path, gone afterwards whatever happens."""
    message = "cannot be written"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_beside(path) as folder:
            message = "could not be written, nothing was left behind"
            yield folder
    except OSError as error:
        raise DataError(Problem(f"{message}: {error.strerror or 'disk error'}", file=str(path))) from None


def _refuse_existing(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise DataError(Problem("exists already; name another place, or replace it with force=True", file=str(path)))


def _refuse_foreign(path: Path, known: set[str], *, needed: set[str]) -> None:
    """Replacing deletes, so what is deleted must be what was written before, or nothing."""
    entries = {entry.name for entry in path.iterdir()} if path.is_dir() else {""}
    if entries and not (entries <= known and needed <= entries):
        raise DataError(
            Problem("is not something written here before, and is not replaced; choose another place", file=str(path))
        )


def _umask() -> int:
    """What files are made without."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _flush_names(folder: Path) -> None:
    """Make a rename durable, where the system lets us: the files are in place by now."""
    with contextlib.suppress(OSError):
        flush(folder)
