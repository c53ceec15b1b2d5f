"""Open and read any input: files by their suffix, tables of databases by their name, frames by their type."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import DataError, Problem
from sequester.ingest import databases, excel, statistics
from sequester.ingest.csv import COMPRESSION, open_delimited
from sequester.ingest.escaped import open_escaped
from sequester.ingest.frames import open_frame
from sequester.ingest.named import InputName, files_of, named
from sequester.ingest.parquet import open_parquet
from sequester.ingest.source import Opener, Source, Wanted, quietly, same_names
from sequester.ingest.suited import only_suited
from sequester.log import tell
from sequester.policy.model import Input
from sequester.regular import said

DELIMITED = (".csv", ".tsv", ".txt")
FORMATS: dict[str, Opener] = {
    **dict.fromkeys(DELIMITED, open_delimited),
    ".parquet": lambda path, wanted, form: open_parquet([path], wanted),
    **dict.fromkeys(statistics.READERS, lambda path, wanted, form: statistics.open_statistics(path, wanted)),
}
"""How a file is opened, by its suffix."""
TABLED: dict[str, Callable[[InputName, Wanted], Source]] = {
    **dict.fromkeys(excel.SUFFIXES, lambda name, wanted: excel.open_workbook(Path(name.place), name.table, wanted)),
    **dict.fromkeys(databases.SUFFIXES, databases.open_database),
}
"""How one table of a file that has several is opened, by the suffix of the file."""
ACCEPTED = "a path, a pandas or polars frame, an Arrow table or stream, or a DuckDB relation"


def read(
    source: Any,
    *,
    delimiter: str | None = None,
    quote: str = '"',
    encoding: str = "utf-8",
    missing: Sequence[str] = ("",),
    columns: Sequence[str] | None = None,
    escaped: bool = False,
) -> pa.Table:
    """Read a table as it is; of a delimited file every cell is text and the cells in `missing` are null.

    `columns` limits what is read to those of the names that exist. `escaped` says that a delimited file is a release
    of a policy with `formulas: escape`.
    """
    form = Input(delimiter=delimiter, quote=quote, encoding=encoding, missing=tuple(missing))
    wanted = Wanted(None if columns is None else tuple(columns))
    opened = open_source(source, wanted, form=form, escaped=escaped)
    return pa.table({name: opened.load(name) for name in wanted.among(opened.names)})


def open_source(source: Any, wanted: Wanted, *, form: Input, any_kind: bool = False, escaped: bool = False) -> Source:
    """Open an input without reading its rows. Columns are of the kinds that can be used, unless `any_kind`."""
    if isinstance(source, str | os.PathLike):
        opened: Source | None = _open_named(named(source), wanted, form, escaped=escaped)
    else:
        opened = open_frame(source, wanted)
    if opened is None:
        raise DataError(f"cannot read a table from an object of type {type(source).__name__}; give {ACCEPTED}")
    problem = same_names(opened.names, wanted.columns)
    if problem:
        raise DataError(problem)
    return opened if any_kind else only_suited(opened)


def _open_named(name: InputName, wanted: Wanted, form: Input, *, escaped: bool) -> Source:
    if name.is_address:
        return databases.open_database(name, wanted)
    path = Path(name.place)
    try:
        status = path.stat()
    except FileNotFoundError:
        if several := files_of(path):
            return _open_together(several, wanted, form, escaped=escaped)
        reason = "there is no such file"
    except ValueError:
        reason = "this is no name of a file"
    except OSError as error:
        reason = f"cannot be read: {said(error)}"
    else:
        return _open_existing(name, status, wanted, form, escaped=escaped)
    raise DataError(Problem(reason, file=str(path)))


def _open_together(files: Sequence[Path], wanted: Wanted, form: Input, *, escaped: bool) -> Source:
    """Several files with the same columns as one table, in the order of their names."""
    parts = [_open_named(InputName(str(path)), wanted, form, escaped=escaped) for path in files]
    others = [path for path, part in zip(files, parts, strict=True) if set(part.names) != set(parts[0].names)]
    if others:
        message = f"{len(others)} of {len(files)} files have other columns than {files[0].name}"
        raise DataError(Problem(message, file=str(others[0])))

    def load(name: str) -> pa.ChunkedArray:
        columns = [pa.table({name: part.load(name)}) for part in parts]
        mixed = Problem("has types that do not go together in these files", column=name)
        return quietly(lambda: pa.concat_tables(columns, promote_options="permissive"), lambda _: mixed).column(0)

    return Source(parts[0].names, load)


def _open_existing(name: InputName, status: os.stat_result, wanted: Wanted, form: Input, *, escaped: bool) -> Source:
    path = Path(name.place)
    if stat.S_ISDIR(status.st_mode):
        parts = sorted(part for part in path.glob("*.parquet") if part.is_file())
        if not parts:
            raise DataError(Problem("is a folder without .parquet files; name a file", file=str(path)))
        return open_parquet(parts, wanted)
    if not stat.S_ISREG(status.st_mode):
        raise DataError(Problem("is a pipe or a device; name a regular file", file=str(path)))
    if not os.access(path, os.R_OK):
        raise DataError(Problem("may not be read by this user", file=str(path)))
    if status.st_size == 0:
        raise DataError(Problem("the file is empty", file=str(path)))
    tell("ingest", "opens", file=path, bytes=status.st_size)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSION
    suffix = next(iter(suffixes[-2:-1] if packed else suffixes[-1:]), "")
    if suffix in TABLED and not packed:
        return TABLED[suffix](name, wanted)
    if name.table is not None:
        raise DataError(Problem("is one table: leave out what is behind ::", file=str(path)))
    if suffix in DELIMITED and escaped:
        return open_escaped(path, wanted, form=form)
    if suffix in FORMATS and (suffix in DELIMITED or not packed):
        return FORMATS[suffix](path, wanted, form=form)
    known = f"known are {', '.join((*FORMATS, *TABLED))}, and text packed as {', '.join(COMPRESSION)}"
    raise DataError(Problem(f"unknown kind of file; {known}", file=str(path)))
