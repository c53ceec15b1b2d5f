"""Workbooks of spreadsheets: one sheet is one table, its first row the names."""

from __future__ import annotations

import logging
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import DataError, MissingLibrary, Problem, SequesterError
from sequester.ingest.source import Source, Wanted, once, quietly

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# A small file may unpack to more than any memory holds.
_LARGEST = 2 << 30
# Of all memory, what a sheet may take while it is read.
_SHARE = 0.5


def open_workbook(path: Path, table: str | None, wanted: Wanted) -> Source:
    """Open the sheet of this name, or the only one that has anything in it."""
    try:
        import fastexcel  # noqa: F401
    except ImportError:
        message = "spreadsheets need the extra `excel`: pip install 'sequester[excel]'"
        raise MissingLibrary(Problem(message, file=str(path))) from None
    # Only where it is needed: it loads what compiles, which the judge must not.
    from sequester.processes import apart

    _refuse_bomb(path)
    read = None
    try:
        # A single cell far away is a sheet of billions, on which the library aborts.
        read = apart(_read, (path, table, wanted))
    except DataError:
        raise
    except SequesterError:
        pass
    if read is None:
        raise DataError(_damaged(path))
    names, columns = read
    return Source(names, once(lambda: dict(zip(columns.column_names, columns.columns, strict=True))))


def _read(asked: tuple[Path, str | None, Wanted]) -> tuple[tuple[str, ...], pa.Table]:
    """The names of all columns, and the wanted ones, in no more than a share of the memory."""
    import fastexcel

    if sys.platform != "win32":
        import resource

        most = int(_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    path, table, wanted = asked
    # What it says about columns is for nobody who reads a terminal, and not ours to vouch for.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())
    book = quietly(lambda: fastexcel.read_excel(path), lambda _: _damaged(path))
    sheet = _sheet(path, book, table)
    loaded = quietly(lambda: book.load_sheet(sheet, schema_sample_rows=None), lambda _: _damaged(path))
    names = tuple(str(column.name) for column in loaded.available_columns())
    batch = quietly(loaded.to_arrow, lambda _: _damaged(path))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return names, pa.table({name: columns[name] for name in wanted.among(names)})


def _sheet(path: Path, book: Any, table: str | None) -> str:
    sheets: list[str] = list(book.sheet_names)
    if table is not None:
        if table in sheets:
            return table
        raise DataError(Problem(f"has no sheet of that name; it has {len(sheets):,}", file=str(path)))
    if len(sheets) == 1:
        return sheets[0]
    full = [name for name in sheets if quietly(lambda name=name: _has_rows(book, name), lambda _: _damaged(path))]  # type: ignore[misc]
    if len(full) == 1:
        return full[0]
    message = f"has {len(full):,} sheets with rows; say which one: {path.name}::SHEET"
    raise DataError(Problem(message, file=str(path)))


def _has_rows(book: Any, name: str) -> bool:
    return int(book.load_sheet(name, n_rows=1).height) > 0


def _refuse_bomb(path: Path) -> None:
    def unpacked() -> int:
        with zipfile.ZipFile(path) as packed:
            return sum(part.file_size for part in packed.infolist())

    if zipfile.is_zipfile(path) and quietly(unpacked, lambda _: _damaged(path)) > _LARGEST:
        raise DataError(Problem(f"unpacks to more than {_LARGEST >> 30} GB; export it as csv", file=str(path)))


def _damaged(path: Path) -> Problem:
    message = "is no workbook, is locked by a password, is damaged, or has a cell too far out; export it as csv"
    return Problem(message, file=str(path))
