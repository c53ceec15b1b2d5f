"""Keyed hashes of many people at once: HMAC-SHA256, computed by DuckDB in memory.

Ids are read as `domain.people` says, so that 11 of a Parquet file and "11" of a CSV file are one person.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain.codec import to_text
from sequester.domain.people import names
from sequester.ledger.key import Key
from sequester.ledger.state import HASH

_PERSON, _DIGEST, _DECOY, _FORMER = b"person\0", b"digest\0", b"decoy\0", b"former\0"
_WHOLE = 32


def identify(ids: pa.Array | pa.ChunkedArray, key: Key) -> pa.Array:
    """The keyed hash of every id (`HASH`): the first 16 bytes of `key.sign("person", text)`."""
    texts = names(ids)
    if texts.null_count:
        raise ValueError("a person without an id cannot be recognised")
    return _short(_sign(texts.cast(pa.binary()), key, _PERSON))


def invent(first: int, count: int, key: Key) -> pa.Array:
    """The keyed hash of decoys with these numbers: no id gives any of them."""
    numbers = pa.array(np.arange(first, first + count)).cast(pa.string())
    return _short(_sign(numbers.cast(pa.binary()), key, _DECOY))


def retire(hashes: pa.Array, key: Key) -> pa.Array:
    """In place of the hashes of former ids, others: no id gives any of them."""
    return _short(_sign(hashes.cast(pa.binary()), key, _FORMER))


def digest(hashes: pa.Array, columns: Sequence[pa.Array | pa.ChunkedArray], key: Key) -> NDArray[np.int64]:
    """One number per person that changes when one of these cells does, and says nothing to whoever has not the key.

    The person is part of it, so that equal cells of two people do not show.
    """
    cells = [hashes.cast(pa.binary())]
    for column in columns:
        text = _text(column).cast(pa.binary())
        # With its length before it, a cell cannot pass for a part of its neighbours.
        length = pc.cast(pc.binary_length(text), pa.string()).cast(pa.binary())
        cells.append(pc.binary_join_element_wise(length, text, pa.scalar(b":")).fill_null(b"-"))
    whole = _sign(pc.binary_join_element_wise(*cells, pa.scalar(b"")), key, _DIGEST)
    return np.ascontiguousarray(whole[:, :8]).view("<i8").ravel().astype(np.int64)


def _short(whole: NDArray[np.uint8]) -> pa.Array:
    short = np.ascontiguousarray(whole[:, : HASH.byte_width])
    return pa.FixedSizeBinaryArray.from_buffers(HASH, len(short), [None, pa.py_buffer(short)])


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return to_text(column).cast(pa.string())


def _sign(messages: pa.Array, key: Key, purpose: bytes) -> NDArray[np.uint8]:
    """HMAC-SHA256 of the purpose and each message, (messages, 32)."""
    import duckdb

    inner, outer = key.pads
    database = duckdb.connect(":memory:", config={"temp_directory": "", "python_enable_replacements": False})
    try:
        # Where a table is large it would draw a bar among the results.
        database.execute("SET enable_progress_bar = false")
        database.register("given", pa.table({"message": messages}))
        # DuckDB works on its own tables with all threads, on ours with one.
        database.execute("CREATE TEMP TABLE messages AS SELECT message FROM given").fetchall()
        signed = database.sql(
            "SELECT unhex(sha256($outer::BLOB || unhex(sha256($inner::BLOB || message)))) AS signed FROM messages",
            params={"outer": outer, "inner": inner + purpose},
        ).to_arrow_table()
    finally:
        database.close()
    parts = [
        np.frombuffer(chunk.buffers()[2], np.uint8)[_first(chunk) :][: _WHOLE * len(chunk)].reshape(-1, _WHOLE)
        for chunk in signed["signed"].chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, _WHOLE), np.uint8)


def _first(chunk: pa.Array) -> int:
    """Where the bytes of a chunk begin in its buffer."""
    return int(np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset])
