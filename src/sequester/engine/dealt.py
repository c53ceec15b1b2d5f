"""Rows that were dealt out to parts: written by engines, read by whoever makes a part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from sequester.engine.engine import COUNT, PART

PACKED = f"{PART} int, {COUNT} bigint, rows binary"
"""Columns of packed rows: their part, how many there are, and they themselves."""
Packed = tuple[int, int, bytearray]
_ROWS = "rows"
# Rows in one cell: a few megabytes.
_PACKED = 1 << 16


class Dealer:
    """Writes rows of many parts, a file each, as they come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[int, tuple[pa.OSFile, ipc.RecordBatchStreamWriter]] = {}
        self.count = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file, writer in self._writers.values():
            writer.close()
            file.close()

    def deal(self, rows: pa.Table) -> None:
        """Write rows to the files of their parts."""
        for number, some in _by_part(rows):
            self._writer(number, some.schema).write_table(some)
        self.count += rows.num_rows

    def _writer(self, part: int, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        if part not in self._writers:
            place = self._folder / f"{part:05d}.arrow"
            place.touch(0o600)
            file = pa.OSFile(str(place), "wb")
            options = ipc.IpcWriteOptions(compression="lz4")
            self._writers[part] = (file, ipc.new_stream(file, schema, options=options))
        return self._writers[part][1]


def packed(rows: pa.Table) -> Iterator[Packed]:
    """Rows of many parts as a few cells of bytes (`PACKED`): carried by whatever moves and writes tables.

    In these bytes every column keeps its type; what carries them need not know it.
    """
    for number, some in _by_part(rows):
        for at in range(0, some.num_rows, _PACKED):
            few = some.slice(at, _PACKED)
            yield number, few.num_rows, _to_bytes(few)


def _by_part(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of every part that has any."""
    part = rows[PART].to_numpy()
    order = np.argsort(part, kind="stable")
    rows = rows.drop_columns(PART).take(pa.array(order)).combine_chunks()
    parts, first = np.unique(part[order], return_index=True)
    for number, begin, end in zip(parts.tolist(), first.tolist(), [*first[1:].tolist(), len(part)], strict=True):
        yield number, rows.slice(begin, end - begin)


def _to_bytes(rows: pa.Table) -> bytearray:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, rows.schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(rows)
    return bytearray(sink.getvalue())


def read_words(folder: Path, part: int) -> list[bytes]:
    """What is packed for one part, in any order."""
    files = sorted((folder / f"{PART}={part}").glob("*.parquet"))
    return [word for file in files for word in parquet.ParquetFile(file).read(columns=[_ROWS])[_ROWS].to_pylist()]


def read_dealt(folder: Path, part: int) -> pa.Table | None:
    """The rows of one part, in any order; None where it has none."""
    file = folder / f"{part:05d}.arrow"
    if file.exists():
        with pa.OSFile(str(file)) as stream, ipc.open_stream(stream) as reader:
            return reader.read_all()
    words = read_words(folder, part)
    if not words:
        return None
    return pa.concat_tables([ipc.open_stream(word).read_all() for word in words], promote_options="permissive")
