"""Classes as the table that is published: generalized cells, sensitive values, rows in a fresh random order.

What is judged must be what is published, so classes that print the same cells are one before they are judged
(`as_printed`), and what was written is read back afterwards (`exact`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain import notation
from sequester.domain.formulas import escape, escape_name
from sequester.domain.grid import is_whole, snapped
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of
from sequester.errors import DataError
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes
from sequester.outputs import WEIGHT, output_of
from sequester.policy.model import Policy

Numbers = Literal["interval", "bounds", "midpoint"]
Floats = NDArray[np.float64]


def shuffle_rows(member: NDArray[np.int32], *, seed: int | None) -> NDArray[np.int64]:
    """The published records in random order, so that no order links releases (Sweeney's unsorted matching)."""
    random = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    return random.permutation(np.flatnonzero(member >= 0))


def as_printed(classes: Classes, domains: Sequence[Hierarchy], *, numbers: Numbers) -> Classes:
    """The classes that can be told apart once they are written: those with the same cells are one, with both boxes.

    The ends of intervals are moved outwards to the grid of their domain, so that they are nobody's own value; what is
    written by the name of a group shows no end. Two intervals may have the same middle. A number that may be missing is
    written as bounds or a middle that are empty, which excludes no value: its side is everything.
    """
    lo, hi = _snapped(classes, domains, numbers)
    keys = np.empty((2 * len(domains), len(classes)), np.int32)
    for axis, domain in enumerate(domains):
        keys[2 * axis], keys[2 * axis + 1] = lo[axis], hi[axis]
        if not kind_of(domain).numeric or numbers == "interval":
            continue
        if domain.missing and (lost := hi[axis] == domain.size - 1).any():
            lo = lo.copy()
            lo[axis, lost] = keys[2 * axis, lost] = 0
        if numbers == "midpoint":
            keys[2 * axis] = np.unique(_middle(domain, lo[axis], hi[axis]), return_inverse=True)[1]
            keys[2 * axis + 1] = 0
    group, first = row_groups(keys)
    if len(first) == len(classes):
        return replace(classes, lo=lo, hi=hi)
    low, high = lo[:, first], hi[:, first]
    for axis in range(len(domains)):
        np.minimum.at(low[axis], group, lo[axis])
        np.maximum.at(high[axis], group, hi[axis])
    member = np.append(group, -1).astype(np.int32)[classes.member]
    return replace(classes, member=member, lo=low, hi=high)


def _snapped(
    classes: Classes, domains: Sequence[Hierarchy], numbers: Numbers
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The boxes of classes, with ends of intervals on the grid."""
    lo, hi = classes.lo.copy(), classes.hi.copy()
    for axis, domain in enumerate(domains):
        by_name = not kind_of(domain).numeric or numbers == "interval"
        if by_name and classes.levels is not None:
            continue
        low, high = snapped(domain, lo[axis], hi[axis])
        named = by_name & domain.is_group(lo[axis], hi[axis])
        lo[axis], hi[axis] = np.where(named, lo[axis], low), np.where(named, hi[axis], high)
    return lo, hi


def write_table(snapshot: Snapshot, classes: Classes, order: NDArray[np.int64], *, numbers: Numbers) -> pa.Table:
    """The records in the given order as published: quasi-identifiers, then sensitive, then insensitive columns."""
    member = classes.member[order]
    columns: dict[str, pa.Array] = {}
    for attribute, (name, domain) in enumerate(zip(snapshot.quasi_names, snapshot.quasi_domains, strict=True)):
        lo, hi = classes.lo[attribute], classes.hi[attribute]
        if kind_of(domain).numeric and numbers != "interval":
            columns |= _numeric(name, domain, lo, hi, member, numbers)
        else:
            level = None if classes.levels is None else classes.levels[attribute]
            try:
                columns[name] = _cells(domain, lo, hi, member, level)
            except DataError as error:
                raise DataError(replace(problem, column=name) for problem in error.problems) from None
    for name, domain, codes in zip(
        snapshot.sensitive_names, snapshot.sensitive_domains, snapshot.sensitive, strict=True
    ):
        columns[name] = _named(codes[order], domain.names[0])
    for name in snapshot.insensitive.column_names:
        columns[name] = _plain(snapshot.insensitive[name].take(pa.array(order)))
    return pa.table(columns)


def weighed(table: pa.Table, weight: float | None, policy: Policy) -> pa.Table:
    """The table with a last column of how many people a row stands for, where its policy has one.

    It is the same number in every row: one for a class would tell how many people are in it.
    """
    if weight is None or not policy.has_weights:
        return table
    return table.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.float64()), table.num_rows))


def for_file(table: pa.Table, file: str, policy: Policy) -> pa.Table:
    """The table as it is written into a file of this name; `ingest.published` reads it back as it was."""
    if policy.output.formulas == "keep" or not output_of(file).is_text:
        return table
    return pa.table([escape(column) for column in table.columns], names=list(map(escape_name, table.column_names)))


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
    if numbers == "midpoint":
        return {name: pa.array(_middle(domain, lo, hi)[member], from_pandas=True)}
    low, high = _ends(domain, lo, hi)
    sides = {f"{name}_min": low[member], f"{name}_max": high[member]}
    # By what is published alone: others may have fractions.
    whole = all(is_whole(side[~np.isnan(side)]) for side in sides.values())
    return {
        end: pa.array(side, from_pandas=True).cast(pa.int64() if whole else pa.float64()) for end, side in sides.items()
    }


def _ends(domain: Hierarchy, lo: NDArray[np.int32], hi: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """The first and the last number of intervals; none where the number may be missing."""
    leaves = domain.leaves.astype(np.float64)
    lost = (hi == domain.size - 1) & domain.missing
    return np.where(lost, np.nan, leaves[lo]), np.where(lost, np.nan, leaves[hi])


def _middle(domain: Hierarchy, lo: NDArray[np.int32], hi: NDArray[np.int32]) -> Floats:
    low, high = _ends(domain, lo, hi)
    # Fifteen digits are what a decimal number keeps: the sum of two may have noise behind them.
    middles, place = np.unique(low / 2 + high / 2, return_inverse=True)
    return np.array([float(f"{middle:.15g}") for middle in middles.tolist()])[place]
