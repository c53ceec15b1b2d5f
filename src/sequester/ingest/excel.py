"""Workbooks of spreadsheets: one sheet is one table, its first row the names."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import DataError, MissingLibrary, Problem
from sequester.ingest.source import Source, Wanted, once, quietly

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# A small file may unpack to more than any memory holds.
_LARGEST = 2 << 30


def open_workbook(path: Path, table: str | None, wanted: Wanted) -> Source:
    """Open the sheet of this name, or the only one that has anything in it."""
    try:
        import fastexcel
    except ImportError:
        message = "spreadsheets need the extra `excel`: pip install 'sequester[excel]'"
        raise MissingLibrary(Problem(message, file=str(path))) from None
    # What it says about columns is for nobody who reads a terminal, and not ours to vouch for.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())
    _refuse_bomb(path)
    book = quietly(lambda: fastexcel.read_excel(path), lambda _: _damaged(path))
    sheet = _sheet(path, book, table)
    loaded = quietly(lambda: book.load_sheet(sheet, schema_sample_rows=None), lambda _: _damaged(path))
    names = tuple(str(column.name) for column in loaded.available_columns())

    def read() -> dict[str, pa.ChunkedArray]:
        batch = quietly(loaded.to_arrow, lambda _: _damaged(path))
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return {name: pa.chunked_array([columns[name]]) for name in wanted.among(names)}

    return Source(names, once(read))


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
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(part.file_size for part in packed.infolist())
    if unpacked > _LARGEST:
        raise DataError(Problem(f"unpacks to more than {_LARGEST >> 30} GB; export it as csv", file=str(path)))


def _damaged(path: Path) -> Problem:
    return Problem("is no workbook, is locked by a password, or is damaged; export it as csv", file=str(path))
