"""Rows that were dealt out to parts: written by engines, read by whoever makes a part."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from sequester.engine.engine import PART


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
        part = rows[PART].to_numpy()
        order = np.argsort(part, kind="stable")
        rows = rows.drop_columns(PART).take(pa.array(order)).combine_chunks()
        parts, first = np.unique(part[order], return_index=True)
        for number, begin, end in zip(parts.tolist(), first.tolist(), [*first[1:].tolist(), len(part)], strict=True):
            self._writer(number, rows.schema).write_table(rows.slice(begin, end - begin))
        self.count += len(part)

    def _writer(self, part: int, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        if part not in self._writers:
            file = pa.OSFile(str(self._folder / f"{part:05d}.arrow"), "wb")
            options = ipc.IpcWriteOptions(compression="lz4")
            self._writers[part] = (file, ipc.new_stream(file, schema, options=options))
        return self._writers[part][1]


def read_dealt(folder: Path, part: int) -> pa.Table | None:
    """The rows of one part, in any order; None where it has none."""
    file = folder / f"{part:05d}.arrow"
    if file.exists():
        with pa.OSFile(str(file)) as stream, ipc.open_stream(stream) as reader:
            return reader.read_all()
    files = sorted((folder / f"{PART}={part}").glob("*.parquet"))
    if not files:
        return None
    return pa.concat_tables([parquet.ParquetFile(one).read() for one in files])
