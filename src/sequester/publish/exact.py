"""What was written, read back as anybody will read it: rows must say what was judged, and nothing else.

Every reader sees cells, not classes. So the file is read through the public reader, and rows that share all their
quasi-identifier cells must be the classes that were judged, with their boxes; the sensitive and insensitive cells
must be those of the same records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain import codec
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, GuaranteeError
from sequester.ingest.published import PublishedTable, domains_of, exact_codes, meanings_of, open_table
from sequester.ingest.read import read
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes
from sequester.outputs import WEIGHT
from sequester.policy.model import Policy


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """The rows of a release as they were judged, in the order in which they are published.

    lo, hi       (quasi-identifiers, classes) boxes, and `member` the class of every row
    sensitive    (sensitive attributes, rows) codes
    insensitive  the columns that are published as they are
    """

    policy: Policy
    domains: tuple[Hierarchy, ...]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    member: NDArray[np.int32]
    sensitive_domains: tuple[Hierarchy, ...]
    sensitive: NDArray[np.int32]
    insensitive: pa.Table

    @classmethod
    def of(cls, snapshot: Snapshot, classes: Classes, order: NDArray[np.int64], policy: Policy) -> Judged:
        """The records of a snapshot in these classes and this order."""
        return cls(
            policy=policy,
            domains=tuple(snapshot.quasi_domains),
            lo=classes.lo,
            hi=classes.hi,
            member=classes.member[order],
            sensitive_domains=tuple(snapshot.sensitive_domains),
            sensitive=snapshot.sensitive[:, order],
            insensitive=snapshot.insensitive.take(pa.array(order)),
        )

    def __len__(self) -> int:
        return len(self.member)


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
    if table.rows != len(judged):
        return "it has not as many rows"
    if told := _different_classes(table, judged):
        return told
    if table.sensitive and (exact_codes(table.sensitive, judged.sensitive_domains) != judged.sensitive).any():
        return "a sensitive value is not the one that was judged"
    names = judged.insensitive.column_names
    if policy.has_weights and WEIGHT in written.column_names and len(written[WEIGHT].unique()) > 1:
        return "rows have different weights"
    if not set(names) <= set(written.column_names):
        return "a column is missing"
    if not all(_same_cells(written[name], judged.insensitive[name]) for name in names):
        return "an insensitive cell is not the one that was judged"
    return None


def _different_classes(table: PublishedTable, judged: Judged) -> str | None:
    """Looks at rows only to see that those of one class have one cell each; the rest is about classes."""
    middles = judged.policy.output.numbers == "midpoint"
    used = np.flatnonzero(np.bincount(judged.member, minlength=judged.lo.shape[1]))
    row = np.zeros(judged.lo.shape[1], np.int64)
    row[judged.member] = np.arange(len(judged))
    meanings = np.empty((len(judged.domains), len(used)), np.int32)
    for axis, (column, domain) in enumerate(zip(table.quasi, judged.domains, strict=True)):
        # A middle need not be a value of the domain.
        middle = middles and kind_of(domain).numeric
        known = domains_of(judged.policy, [column])[0] if middle else domain
        (cells,) = meanings_of(replace(table, quasi=(column,)), [known])
        # To the letter: a number between two values of the domain means what its neighbours do, and tells its row.
        if (column.index != column.index[row][judged.member]).any():
            return "rows of one class do not share their cells"
        own = column.index[row[used]]
        meanings[axis] = cells.meaning[own]
        if not middle and ((cells.lo[own] != judged.lo[axis, used]) | (cells.hi[own] != judged.hi[axis, used])).any():
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
    (texts, index), (others, own) = (_cells(column) for column in (written, judged))
    if codec.is_text(others.type):
        empty = pa.array([""], pa.string())
        known = pa.concat_arrays([others.cast(pa.string()), empty])
        listed = pa.concat_arrays([codec.to_text(texts).cast(pa.string()), empty])
        encoded = listed.dictionary_encode()
        code = pc.index_in(known, value_set=encoded.dictionary).fill_null(-1).to_numpy(zero_copy_only=False)
        return bool((encoded.indices.to_numpy()[index] == code[own]).all())
    return _matching(index + 1, own + 1) is not None


def _cells(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int32]]:
    """Distinct cells and the place of every row's; no value is -1, as the empty text is, which a file may not tell."""
    values, index = codec.distinct(column)
    if codec.is_text(values.type):
        empty = pc.equal(values, "").to_numpy(zero_copy_only=False)
        index = np.where(np.append(empty, False)[index], -1, index).astype(np.int32)
    return values, index
