"""Rows in an order drawn over all parts, without ever having all of them in one place.

Every row of a part draws a key; the release is all rows in the order of their keys. Keys of one range make one file of
the release, so that files can be written one by one, and side by side. What was judged and what was written is compared
by checksums: sums over rows of a hash of all their cells, as text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import ipc, parquet

from sequester.drafts import flush
from sequester.engine.engine import undictionaried
from sequester.errors import DataError, GuaranteeError
from sequester.outputs import OUTPUTS, output_of
from sequester.policy.model import Policy
from sequester.publish.emit import for_file, weighed
from sequester.publish.parts.division import Errand, narrow
from sequester.regular import digest_of

_KEY = "key"
# Rows of one file; a file is put together in memory.
ROWS = 1_500_000
_ODD, _FIRST, _SECOND = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_FEW = 1 << 16

Words = NDArray[np.uint64]


def file_names(policy: Policy, slices: int) -> list[str]:
    """What the files of a release are called."""
    suffix = OUTPUTS[policy.output.format].suffixes[0]
    return [f"data{suffix}"] if slices == 1 else [f"data-{number + 1:04d}{suffix}" for number in range(slices)]


def write_slices(
    path: Path, table: pa.Table, errand: Errand, draws: Sequence[int]
) -> tuple[pa.Schema, tuple[int, ...]]:
    """Write the published rows of one part, file by file of the release; returns their schema and checksums."""
    slices = errand.slices
    key = np.random.default_rng([*draws, 11]).integers(0, 1 << 64, table.num_rows, np.uint64)
    order = np.argsort(key)
    key = key[order]
    plain = undictionaried(for_file(table, file_names(errand.policy, slices)[0], errand.policy)).take(pa.array(order))
    sums, schema = checksums(plain), plain.schema
    small = pa.table([pa.array(key), *map(_narrowed, plain.columns)], names=[_KEY, *plain.column_names])
    # The first key of every file but the first.
    first = np.array([number * (1 << 64) // slices for number in range(1, slices)], np.uint64)
    ends = [*np.searchsorted(key, first).tolist(), len(key)]
    options = ipc.IpcWriteOptions(compression="lz4")
    path.touch(0o600)
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, small.schema, options=options) as writer:
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            rows = small.slice(begin, end - begin).combine_chunks()
            writer.write_batch(rows.to_batches()[0] if end > begin else pa.RecordBatch.from_pylist([], small.schema))
    total = np.concatenate([[np.uint64(0)], np.cumsum(sums, dtype=np.uint64)])
    marks = total[[0, *ends]]
    return schema, tuple((int(after) - int(before)) % (1 << 64) for before, after in pairwise(marks))


@dataclass(frozen=True, eq=False, repr=False)
class WrittenFile:
    """One file of a release."""

    name: str
    rows: int
    digest: str


@dataclass(frozen=True, eq=False, repr=False)
class Writer:
    """Puts files of a release together from the rows of all parts.

    schema  of the rows of all parts
    sums    per file, the checksum of its rows
    weight  how many people a row stands for, where some are decoys
    """

    errand: Errand
    schema: pa.Schema
    sums: tuple[int, ...]
    weight: float | None

    def __call__(self, number: int) -> WrittenFile:
        """Write one file and read it back."""
        errand = self.errand
        parts = [_slice(path, number) for path in sorted(errand.place("rows").glob("*.arrow"))]
        rows = pa.concat_tables(parts, promote_options="permissive")
        rows = rows.take(pa.array(np.argsort(rows[_KEY].to_numpy()))).drop_columns(_KEY)
        rows = rows.select(self.schema.names).cast(self.schema)
        path = errand.place("written") / file_names(errand.policy, errand.slices)[number]
        output_of(path.name).write(weighed(rows, self.weight, errand.policy), path)
        flush(path)
        again = _read(path, self.schema).select(self.schema.names)
        if again.num_rows != rows.num_rows or int(checksums(again).sum(dtype=np.uint64)) != self.sums[number]:
            raise GuaranteeError(
                "the release as it is written does not say what was judged. Publish it as Parquet (`output: {format: "
                "parquet}`), or numbers as intervals. Nothing was published.",
                guarantee="exact-rows",
            )
        return WrittenFile(path.name, rows.num_rows, digest_of(path))


def _slice(path: Path, number: int) -> pa.Table:
    with pa.memory_map(str(path)) as file, ipc.open_file(file) as reader:
        return pa.Table.from_batches([reader.get_batch(number)])


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """A file as anybody reads it, every cell of a text file as text."""
    if not output_of(path.name).is_text:
        return parquet.read_table(path)
    texts = arrow_csv.ConvertOptions(
        column_types={name: pa.string() for name in schema.names}, strings_can_be_null=False
    )
    return arrow_csv.read_csv(
        path, parse_options=arrow_csv.ParseOptions(newlines_in_values=True), convert_options=texts
    )


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The schema that the rows of all parts fit."""
    names = schemas[0].names
    if any(schema.names != names for schema in schemas):
        raise AssertionError("all parts have the same columns")
    return pa.schema([(name, _wider([schema.field(name).type for schema in schemas])) for name in names])


def _wider(kinds: Sequence[pa.DataType]) -> pa.DataType:
    different = set(kinds)
    if len(different) == 1:
        return kinds[0]
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in different):
        return pa.float64()
    if all(pa.types.is_null(kind) or kind in (pa.string(), pa.large_string()) for kind in different):
        return pa.large_string() if pa.large_string() in different else pa.string()
    raise DataError("a column has values of several types; make it one")


def checksums(table: pa.Table) -> Words:
    """Per row, a hash of all its cells; an empty cell and an empty text are the same, as they are in a text file."""
    total = np.zeros(table.num_rows, np.uint64)
    for name, column in zip(table.column_names, table.columns, strict=True):
        salt = _word(f"column {name}")
        total += _mixed(_words(column) + salt)
    return _mixed(total)


def _words(column: pa.ChunkedArray) -> Words:
    """A number per cell, the same for cells of the same text."""
    if pa.types.is_integer(column.type) and not column.null_count and len(column):
        whole = column.to_numpy()
        low, high = int(whole.min()), int(whole.max())
        if high - low < _FEW:
            known: Words = _of_texts([str(value) for value in range(low, high + 1)])[whole.astype(np.int64) - low]
            return known
    cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    texts = pc.cast(cells.dictionary, pa.large_string()).to_pylist()
    words = np.append(_of_texts([text or "" for text in texts]), _of_texts([""]))
    place = pc.fill_null(cells.indices, len(texts)).to_numpy(zero_copy_only=False)
    found: Words = words[place]
    return found


def _of_texts(texts: Sequence[str]) -> Words:
    return np.array([_word(text) for text in texts], np.uint64)


def _word(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def _mixed(words: Words) -> Words:
    """Every bit depends on every other (Steele, Lea and Flood's splitmix64)."""
    words = words + _ODD
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def _narrowed(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Whole numbers in as few bytes as they need, text by dictionary."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.combine_chunks().dictionary_encode()
    if not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return column
    whole = column.to_numpy()
    if whole.min() < 0 or whole.max() >= 1 << 31:
        return column
    return narrow(whole, int(whole.max()) + 1)
