"""Keyed hashes of many people at once: HMAC-SHA256, of few rows by `hashlib`, of many by a kernel on all processors.

Ids are read as `domain.people` says, so that 11 of a Parquet file and "11" of a CSV file are one person.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
# Of fewer rows, `hashlib` takes less time (two microseconds each) than the kernel takes to be found on disk.
_FEW = 20_000
# Longer messages are hashed one by one: the kernel has room for sixteen of the longest.
_LONGEST = 4096
# Rows that a thread takes at once.
_SHARE = 1 << 16
# Fewer take a tenth of a second without threads; in one that gets no memory Numba dies (`string_writer_ensure`).
_FEW_FOR_THREADS = 500_000


def identify(ids: pa.Array | pa.ChunkedArray, key: Key) -> pa.Array:
    """The keyed hash of every id (`HASH`): the first 16 bytes of `key.sign("person", text)`."""
    texts = names(ids)
    if texts.null_count:
        raise ValueError("a person without an id cannot be recognised")
    return _short(_sign(_Rows(texts), key, _PERSON))


def invent(first: int, count: int, key: Key) -> pa.Array:
    """The keyed hash of decoys with these numbers: no id gives any of them."""
    return _short(_sign(_Rows(pa.array(np.arange(first, first + count)).cast(pa.string())), key, _DECOY))


def retire(hashes: pa.Array, key: Key) -> pa.Array:
    """In place of the hashes of former ids, others: no id gives any of them."""
    return _short(_sign(_Rows(hashes), key, _FORMER))


def digest(hashes: pa.Array, columns: Sequence[pa.Array | pa.ChunkedArray], key: Key) -> NDArray[np.int64]:
    """One number per person that changes when one of these cells does, and says nothing to whoever has not the key.

    The person is part of it, so that equal cells of two people do not show. Columns with a dictionary cost least.
    """
    whole = _sign(_Rows(hashes, tuple(map(_CellTexts.of, columns))), key, _DIGEST)
    return np.ascontiguousarray(whole[:, :8]).view("<i8").ravel().astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _CellTexts:
    """A column as its distinct cells, as they stand in a message, and the place of every row's."""

    values: list[bytes]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> _CellTexts:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if not pa.types.is_dictionary(column.type):
            column = to_text(column).cast(pa.string()).dictionary_encode()
        texts = to_text(column.dictionary).cast(pa.binary()).to_pylist()
        # With its length before it, a cell cannot pass for a part of its neighbours. The last is of no value.
        written = [b"-" if text is None else b"%d:%b" % (len(text), text) for text in [*texts, None]]
        codes = column.indices.cast(pa.int32())
        if codes.null_count:
            codes = pc.fill_null(codes, len(texts))
        return cls(written, codes.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """Messages: what is a row's own, text or bytes, and its cells after that."""

    own: pa.Array
    cells: tuple[_CellTexts, ...] = ()

    @property
    def longest(self) -> int:
        own = pc.max(pc.binary_length(self.own)).as_py() or 0
        return int(own) + sum(max(map(len, column.values)) for column in self.cells)

    def messages(self) -> list[bytes]:
        """Whole, one by one."""
        own: list[bytes] = self.own.cast(pa.binary()).to_pylist()
        if not self.cells:
            return own
        columns = [[column.values[code] for code in column.codes.tolist()] for column in self.cells]
        return [b"".join(parts) for parts in zip(own, *columns, strict=True)]


def _sign(rows: _Rows, key: Key, purpose: bytes) -> NDArray[np.uint8]:
    """HMAC-SHA256 of the purpose and each message, (messages, 32)."""
    if len(rows.own) < _FEW or rows.longest > _LONGEST:
        return _sign_few(rows, key, purpose)
    return _sign_many(rows, key, purpose)


def _sign_few(rows: _Rows, key: Key, purpose: bytes) -> NDArray[np.uint8]:
    pads = key.pads
    begun, ended = hashlib.sha256(pads[0] + purpose), hashlib.sha256(pads[1])
    signed = bytearray()
    for message in rows.messages():
        inner, outer = begun.copy(), ended.copy()
        inner.update(message)
        outer.update(inner.digest())
        signed += outer.digest()
    return np.frombuffer(signed, np.uint8).reshape(-1, _WHOLE)


def _sign_many(rows: _Rows, key: Key, purpose: bytes) -> NDArray[np.uint8]:
    from sequester.ledger.hash_kernels import Bench, Messages, sign_rows

    own, start = _bytes_of(rows.own.cast(pa.large_binary()))
    values = [value for column in rows.cells for value in column.values]
    messages = Messages(
        before=np.frombuffer(purpose, np.uint8),
        own=own,
        start=start,
        cells=np.frombuffer(b"".join(values) or b"\0", np.uint8),
        cell=_after([len(value) for value in values]),
        first=_after([len(column.values) for column in rows.cells])[:-1].copy(),
        codes=_stacked(rows),
    )
    pads = np.frombuffer(b"".join(key.pads), "<u4").reshape(2, -1)
    count, longest = len(rows.own), len(purpose) + rows.longest
    signed = np.empty((count, _WHOLE // 4), np.uint32)

    def sign(begin: int) -> None:
        sign_rows(messages, pads, np.array([begin, min(begin + _SHARE, count)]), Bench.for_messages(longest), signed)

    shares = range(0, count, _SHARE)
    if count < _FEW_FOR_THREADS:
        for begin in shares:
            sign(begin)
    else:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(sign, shares))
    return signed.astype(">u4").view(np.uint8).reshape(-1, _WHOLE)


def _after(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Where each of several parts begins when they stand one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _stacked(rows: _Rows) -> NDArray[np.int32]:
    codes = [column.codes for column in rows.cells]
    return np.stack(codes) if codes else np.zeros((0, len(rows.own)), np.int32)


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of values one after the other, and where each begins."""
    _, places, data = values.buffers()
    start = np.frombuffer(places, np.int64)[values.offset :][: len(values) + 1]
    return np.frombuffer(data, np.uint8), start


def _short(whole: NDArray[np.uint8]) -> pa.Array:
    short = np.ascontiguousarray(whole[:, : HASH.byte_width])
    return pa.FixedSizeBinaryArray.from_buffers(HASH, len(short), [None, pa.py_buffer(short)])
