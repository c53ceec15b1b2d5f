"""Classes as the table that is published: generalized cells, sensitive values, rows in a fresh random order."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain import notation
from sequester.domain.hierarchy import Hierarchy
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes

Numbers = Literal["interval", "bounds", "midpoint"]


def shuffle_rows(member: NDArray[np.int32], *, seed: int | None) -> NDArray[np.int64]:
    """The published records in random order, so that no order links releases (Sweeney's unsorted matching)."""
    random = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    return random.permutation(np.flatnonzero(member >= 0))


def write_table(snapshot: Snapshot, classes: Classes, order: NDArray[np.int64], *, numbers: Numbers) -> pa.Table:
    """The records in the given order as published: quasi-identifiers, then sensitive, then insensitive columns."""
    member = classes.member[order]
    columns: dict[str, pa.Array] = {}
    for attribute, (name, domain) in enumerate(zip(snapshot.quasi_names, snapshot.quasi_domains, strict=True)):
        lo, hi = classes.lo[attribute], classes.hi[attribute]
        if domain.kind == "number" and numbers != "interval":
            columns |= _numeric(name, domain, lo, hi, member, numbers)
        else:
            level = None if classes.levels is None else classes.levels[attribute]
            columns[name] = _cells(domain, lo, hi, member, level)
    for name, domain, codes in zip(
        snapshot.sensitive_names, snapshot.sensitive_domains, snapshot.sensitive, strict=True
    ):
        columns[name] = _named(codes[order], domain.names[0])
    for name in snapshot.insensitive.column_names:
        columns[name] = _plain(snapshot.insensitive[name].take(pa.array(order)))
    return pa.table(columns)


def check_table(table: pa.Table, snapshot: Snapshot, classes: Classes, order: NDArray[np.int64]) -> None:
    """Read a written table back: every cell must be the side of the box, or the value, that was judged.

    Numbers written as bounds or midpoints are no intervals to read; they are left to the tests.
    """
    member = classes.member[order]
    if table.num_rows != len(order):
        raise AssertionError("the written table has not as many rows as there are records")
    for name, domain, lo, hi in zip(snapshot.quasi_names, snapshot.quasi_domains, classes.lo, classes.hi, strict=True):
        if name not in table.column_names or pa.types.is_floating(table.schema.field(name).type):
            continue
        cells = table[name].combine_chunks()
        first, last, known = notation.read(domain, cells.dictionary.to_pylist())
        place = cells.indices.to_numpy()
        if not known.all() or (first[place] != lo[member]).any() or (last[place] != hi[member]).any():
            raise AssertionError("a written cell does not say what was judged")
    for name, domain, codes in zip(
        snapshot.sensitive_names, snapshot.sensitive_domains, snapshot.sensitive, strict=True
    ):
        cells = table[name].combine_chunks()
        code = {text: place for place, text in enumerate(domain.names[0])}
        meant = np.array([code[text] for text in cells.dictionary.to_pylist()], np.int32)
        if (meant[cells.indices.to_numpy()] != codes[order]).any():
            raise AssertionError("a written value is not the one that was judged")


def _named(codes: NDArray[np.int32], names: Sequence[str]) -> pa.Array:
    """Codes as a dictionary of the names that are used: files keep all of it, also values of records left out."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    place = np.zeros(len(names), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    listed = pa.array([names[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(place[codes]), listed)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary, which lists values in the order of the private rows."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _cells(
    domain: Hierarchy, lo: NDArray[np.int32], hi: NDArray[np.int32], member: NDArray[np.int32], level: int | None
) -> pa.Array:
    """One cell per record, as a dictionary of the distinct published values."""
    if level is not None:
        # A level publishes the names of its groups, also where a group has only one leaf.
        return _named(domain.groups(level)[lo][member], domain.names[level])
    sides, inverse = np.unique(lo.astype(np.int64) * domain.size + hi, return_inverse=True)
    first, last = (sides // domain.size).astype(np.int32), (sides % domain.size).astype(np.int32)
    return _named(inverse.astype(np.int32)[member], notation.write(domain, first, last))


def _numeric(
    name: str,
    domain: Hierarchy,
    lo: NDArray[np.int32],
    hi: NDArray[np.int32],
    member: NDArray[np.int32],
    numbers: Numbers,
) -> dict[str, pa.Array]:
    """Numbers for tools that want numbers: two columns of bounds, or the middle. A missing value has none."""
    low, high = domain.leaves[lo].astype(np.float64), domain.leaves[hi].astype(np.float64)
    if domain.missing:
        high = np.where(hi == domain.size - 1, np.nan, high)
    if numbers == "midpoint":
        return {name: pa.array(((low + high) / 2)[member], from_pandas=True)}
    return {
        f"{name}_min": pa.array(np.where(np.isnan(high), np.nan, low)[member], from_pandas=True),
        f"{name}_max": pa.array(high[member], from_pandas=True),
    }
