"""Classes as the table that is published: generalized cells, sensitive values, rows in a fresh random order.

What is judged must be what is published, so classes that print the same cells are one before they are judged
(`as_printed`), and what was written is read back afterwards (`read_back`). Every reader sees cells, not classes: rows
that share all their quasi-identifier cells must be the classes that were judged, with their boxes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain import codec, notation
from sequester.domain.build import declared
from sequester.domain.codec import distinct
from sequester.domain.formulas import escape, escape_name, formulas, is_formula
from sequester.domain.grid import is_whole, snapped
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, GuaranteeError
from sequester.ingest.published import PublishedTable, domains_of, exact_codes, meanings_of, open_table
from sequester.ingest.read import read
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes
from sequester.outputs import WEIGHT, output_of
from sequester.policy.attributes import QuasiIdentifier, Sensitive
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
        columns[name] = codec.spread(snapshot.insensitive[name].take(pa.array(order)))
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


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """The rows of a release as they were judged, in the order in which they are published.

    snapshot  the records, each in one of these classes
    order     of those that are published
    """

    snapshot: Snapshot
    classes: Classes
    order: NDArray[np.int64]
    policy: Policy


def read_back(source: Any, judged: Judged) -> None:
    """Read a written table, a file or what is to become one; refuse it if it does not say what was judged."""
    try:
        told = _difference(source, judged)
    except DataError:
        told = "it cannot be read back"
    if told:
        raise GuaranteeError(
            f"the release as it is written does not say what was judged: {told}. Publish numbers as intervals "
            "(`output: {numbers: interval}`), or another format. Nothing was published.",
            guarantee="exact-rows",
        )


def _difference(source: Any, judged: Judged) -> str | None:
    policy = judged.policy
    # Files are written with commas, whatever else stands in their headers.
    escaped = policy.output.formulas == "escape"
    written = read(source, delimiter=",", missing=policy.input.missing, escaped=escaped)
    table = open_table(written, policy)
    if table.rows != len(judged.order):
        return "it has not as many rows"
    if told := _different_classes(table, judged):
        return told
    records, order = judged.snapshot, judged.order
    if (
        table.sensitive
        and (exact_codes(table.sensitive, records.sensitive_domains) != records.sensitive[:, order]).any()
    ):
        return "a sensitive value is not the one that was judged"
    names, chosen = records.plain_names, pa.array(order)
    if policy.has_weights and WEIGHT in written.column_names and len(written[WEIGHT].unique()) > 1:
        return "rows have different weights"
    if not set(names) <= set(written.column_names):
        return "a column is missing"
    if not all(_same_cells(written[name], records.insensitive[name].take(chosen)) for name in names):
        return "an insensitive cell is not the one that was judged"
    return None


def _different_classes(table: PublishedTable, judged: Judged) -> str | None:
    """Looks at rows only to see that those of one class have one cell each; the rest is about classes."""
    middles = judged.policy.output.numbers == "midpoint"
    classes, domains, member = judged.classes, judged.snapshot.quasi_domains, judged.classes.member[judged.order]
    used = np.flatnonzero(np.bincount(member, minlength=len(classes)))
    row = np.zeros(len(classes), np.int64)
    row[member] = np.arange(len(member))
    meanings = np.empty((len(domains), len(used)), np.int32)
    for axis, (column, domain) in enumerate(zip(table.quasi, domains, strict=True)):
        # A middle need not be a value of the domain.
        middle = middles and kind_of(domain).numeric
        known = domains_of(judged.policy, [column])[0] if middle else domain
        (cells,) = meanings_of(replace(table, quasi=(column,)), [known])
        # To the letter: a number between two values of the domain means what its neighbours do, and tells its row.
        if (column.index != column.index[row][member]).any():
            return "rows of one class do not share their cells"
        own = column.index[row[used]]
        meanings[axis] = cells.meaning[own]
        if not middle and ((cells.lo[own] != classes.lo[axis, used]) | (cells.hi[own] != classes.hi[axis, used])).any():
            return "a cell is not the side of the box that was judged"
    if len(row_groups(meanings)[1]) != len(used):
        return "rows share their cells that were judged in different classes"
    return None


def _matching(one: NDArray[np.integer], other: NDArray[np.integer]) -> NDArray[np.int64] | None:
    """Per number of the one, the number of the other that stands for the same rows, -1 for none; None if none do."""
    place = np.full(int(one.max(initial=-1)) + 1, -1, np.int64)
    place[one] = other
    used = place[place >= 0]
    if (place[one] != other).any() or len(np.unique(used)) != len(used):
        return None
    return place


def _same_cells(written: pa.ChunkedArray, judged: pa.ChunkedArray) -> bool:
    """Whether two columns are equal where both are text, and otherwise whether the same rows share a cell."""
    (texts, index), (others, own) = (_listed(column) for column in (written, judged))
    if codec.is_text(others.type):
        empty = pa.array([""], pa.string())
        known = pa.concat_arrays([others.cast(pa.string()), empty])
        listed = pa.concat_arrays([codec.to_text(texts).cast(pa.string()), empty])
        encoded = listed.dictionary_encode()
        code = pc.index_in(known, value_set=encoded.dictionary).fill_null(-1).to_numpy(zero_copy_only=False)
        return bool((encoded.indices.to_numpy()[index] == code[own]).all())
    return _matching(index + 1, own + 1) is not None


def _listed(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int32]]:
    """Distinct cells and the place of every row's; no value is -1, as the empty text is, which a file may not tell."""
    values, index = codec.distinct(column)
    if codec.is_text(values.type):
        empty = pc.equal(values, "").to_numpy(zero_copy_only=False)
        index = np.where(np.append(empty, False)[index], -1, index).astype(np.int32)
    return values, index


@dataclass(frozen=True)
class Runs:
    """One column: whether its header would run, how many cells of the table, and how many labels of its hierarchy."""

    column: str
    header: bool
    cells: int
    labels: int

    def __str__(self) -> str:
        parts = [
            "its header" if self.header else "",
            f"{self.cells:,} {'cell' if self.cells == 1 else 'cells'}" if self.cells else "",
            f"{self.labels:,} {'label' if self.labels == 1 else 'labels'} of its hierarchy" if self.labels else "",
        ]
        return f"{self.column}: {', '.join(part for part in parts if part)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def runs_in(policy: Policy, snapshot: Snapshot | None) -> list[Runs]:
    """The published columns with something that would run; without a table, as far as the policy alone tells."""
    everything = _of_policy(policy) if snapshot is None else _of_snapshot(snapshot)
    return [runs for runs in everything if runs.header or runs.cells or runs.labels]


def _of_policy(policy: Policy) -> Iterator[Runs]:
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, QuasiIdentifier | Sensitive):
            domain = declared(attribute, policy.path) if attribute.hierarchy is not None else None
            yield Runs(name, is_formula(name), 0, 0 if domain is None else _labels(domain.names))
        elif name in policy.insensitive:
            yield Runs(name, is_formula(name), 0, 0)


def _of_snapshot(snapshot: Snapshot) -> Iterator[Runs]:
    coded = [
        *zip(snapshot.quasi_names, snapshot.quasi_domains, snapshot.quasi, strict=True),
        *zip(snapshot.sensitive_names, snapshot.sensitive_domains, snapshot.sensitive, strict=True),
    ]
    for name, domain, codes in coded:
        would = formulas(pa.array(domain.names[0], pa.string()))
        yield Runs(name, is_formula(name), int(np.count_nonzero(would[codes])), _labels(domain.names[1:]))
    for name in snapshot.insensitive.column_names:
        values, index = distinct(snapshot.insensitive[name])
        would = np.append(formulas(values), False)
        yield Runs(name, is_formula(name), int(np.count_nonzero(would[index])), 0)


def _labels(levels: Sequence[Sequence[str]]) -> int:
    """How many labels would run; with a table, values are counted by the cells that have them."""
    return len({name for names in levels for name in names if is_formula(name)})
