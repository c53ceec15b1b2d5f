"""Any input some rows at a time, so that a table that is larger than memory can be passed on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sequester.errors import DataError, Problem
from sequester.ingest import databases
from sequester.ingest.csv import COMPRESSION, stream_delimited
from sequester.ingest.named import InputName, files_of, named
from sequester.ingest.read import DELIMITED, open_source
from sequester.ingest.source import Wanted, quietly
from sequester.policy.model import Input

_ROWS = 1 << 20
# No line has fewer bytes: a cell, a delimiter, another cell, the end.
_SHORTEST = 4


def parquet_files(source: Any) -> list[Path] | None:
    """The files of a table that is Parquet already: a file, a folder of them, or a name with *; None for any other."""
    if not isinstance(source, str | os.PathLike):
        return None
    name = named(source)
    if name.is_address or name.table is not None:
        return None
    path = Path(name.place)
    if path.is_dir():
        return sorted(part for part in path.glob("*.parquet") if part.is_file()) or None
    files = [path] if path.is_file() else files_of(path)
    return files if files and all(file.suffix.lower() == ".parquet" for file in files) else None


def rows_of(source: Any, *, more_than: int) -> int:
    """How many rows an input has, as far as it takes to tell whether it has more than so many; 0 if that is unknown."""
    files = parquet_files(source)
    if files is not None:
        return sum(map(_rows_of_parquet, files))
    if isinstance(source, str | os.PathLike):
        return _lines(named(source), more_than)
    if _is_relation(source):
        found = quietly(lambda: source.aggregate("count(*)").fetchall(), lambda _: "the query cannot be read")
        return int(found[0][0])
    counted = getattr(source, "num_rows", None)
    return counted if isinstance(counted, int) else len(source) if hasattr(source, "__len__") else 0


def _rows_of_parquet(path: Path) -> int:
    wrong = Problem("the file is not Parquet, or is cut off or damaged; get it again", file=str(path))
    return int(quietly(lambda: parquet.read_metadata(path).num_rows, lambda _: wrong))


def _lines(name: InputName, more_than: int) -> int:
    """Lines of delimited files, counted only where they may be enough; tables of databases are asked."""
    if name.is_address or Path(name.place).suffix.lower() in databases.SUFFIXES:
        return databases.count(name)
    path = Path(name.place)
    files = [path] if path.is_file() else files_of(path)
    # Packed text is not unpacked for this: whoever has so much of it has Parquet.
    text = [file for file in files if file.suffix.lower() in DELIMITED]
    if sum(file.stat().st_size for file in text) < _SHORTEST * more_than:
        return 0
    return sum(_newlines(file) for file in text)


def _newlines(path: Path) -> int:
    with path.open("rb", buffering=0) as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 22), b""))


def stream(source: Any, wanted: Wanted, *, form: Input) -> Iterator[pa.Table]:
    """The wanted columns of any input, some rows at a time; what cannot be read so is read whole first."""
    if isinstance(source, str | os.PathLike):
        name = named(source)
        files = files_of(Path(name.place)) if not name.is_address and not Path(name.place).exists() else []
        if files:
            for file in files:
                yield from stream(str(file), wanted, form=form)
            return
        begun = _named(name, wanted, form)
        if begun is not None:
            yield from begun
            return
    elif _is_relation(source):
        yield from _of_relation(source, wanted)
        return
    opened = open_source(source, wanted, form=form)
    columns = wanted.among(opened.names)
    whole = pa.table({column: opened.load(column) for column in columns})
    for batch in whole.to_batches(max_chunksize=_ROWS):
        yield pa.Table.from_batches([batch])


def _named(name: InputName, wanted: Wanted, form: Input) -> Iterator[pa.Table] | None:
    path = Path(name.place)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSION:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if not name.is_address and not path.is_file():
        return None
    if suffix in DELIMITED and not name.is_address:
        return stream_delimited(path, wanted, form=form)
    if not name.is_address and suffix not in databases.SUFFIXES:
        return None
    begun = databases.stream_database(name, wanted)
    return begun if begun is not None else _of_relation(databases.relation(name), wanted)


def _is_relation(source: Any) -> bool:
    return type(source).__name__ == "DuckDBPyRelation"


def _of_relation(relation: Any, wanted: Wanted) -> Iterator[pa.Table]:
    told = Problem("the query cannot be read; try it on its own to see why")
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in wanted.among(relation.columns))
    if not columns:
        raise DataError("none of the columns of the policy is in the table")
    reader = quietly(lambda: relation.project(columns).to_arrow_reader(_ROWS), lambda _: told)
    while (batch := quietly(lambda: next(reader, None), lambda _: told)) is not None:
        yield pa.Table.from_batches([batch])
