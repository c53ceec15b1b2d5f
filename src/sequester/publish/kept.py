"""Rows of people who left and are kept in a release, and of decoys: nothing about them may show that.

What stays with a person is published as it was. What changes cannot be: the last cells of somebody who left grow old,
and a year or a count that nobody else has any more would mark her row. So she shows what somebody who is there shows,
drawn from her class without looking at anything else; whoever compares releases expects it to change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.codec import to_text
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.plain import plain_cells
from sequester.history.sight import permanent_part
from sequester.ingest.snapshot import Snapshot
from sequester.policy.model import Policy


def with_current_cells(
    records: Snapshot, policy: Policy, kept: NDArray[np.bool_], member: NDArray[np.int32], *, seed: list[int]
) -> Snapshot:
    """The records, the changing insensitive cells of those who are kept drawn from others of their class.

    kept    per record, whether it is about somebody who left
    member  per record, its class, -1 for none; of a class of nobody else the cells are drawn from the whole table
    """
    changing = [place for place, name in enumerate(records.plain_names) if name not in policy.lasting]
    if not changing or not kept.any() or kept.all():
        return records
    donor = np.arange(len(records))
    donor[kept] = _donors(np.flatnonzero(~kept & (member >= 0)), member, member[kept], [*seed, 5])
    plain, table = records.plain.copy(), records.insensitive
    for place in changing:
        name = records.plain_names[place]
        plain[place] = plain[place, donor]
        table = table.set_column(table.column_names.index(name), name, table[name].take(pa.array(donor)))
    return replace(records, plain=plain, insensitive=table)


def with_current_values(
    records: Snapshot, policy: Policy, decoy: NDArray[np.bool_], member: NDArray[np.int32], *, seed: list[int]
) -> Snapshot:
    """The records, sensitive values of decoys that change drawn from others of their class who have such a one."""
    sensitive = records.sensitive.copy()
    stays = permanent_part(policy, records.sensitive_domains, sensitive)
    for place, domain in enumerate(records.sensitive_domains):
        changing = stays[place] == domain.size
        donors, wanted = np.flatnonzero(changing & ~decoy & (member >= 0)), np.flatnonzero(changing & decoy)
        if len(donors) and len(wanted):
            drawn = _donors(donors, member, member[wanted], [*seed, 6, place])
            sensitive[place, wanted] = sensitive[place, drawn]
    return replace(records, sensitive=sensitive)


def _donors(
    here: NDArray[np.int64], member: NDArray[np.int32], wanted: NDArray[np.int32], seed: list[int]
) -> NDArray[np.int64]:
    """One of `here` for every wanted class: of that class, or of any where it has none."""
    here = here[np.argsort(member[here], kind="stable")]
    first, last = (np.searchsorted(member[here], wanted, side) for side in ("left", "right"))
    alone = first == last
    first, last = np.where(alone, 0, first), np.where(alone, len(here), last)
    donors: NDArray[np.int64] = here[np.random.default_rng(seed).integers(first, last)]
    return donors


def continued(column: pa.ChunkedArray, domain: Hierarchy, codes: NDArray[np.int32]) -> pa.ChunkedArray:
    """A column and, after it, the cells last published of people who are kept in the release.

    Where these are no cells of the column's type, which was another one then, all of it becomes text.
    """
    try:
        return pa.chunked_array([*column.chunks, plain_cells(domain, codes, column.type)], column.type)
    except pa.ArrowInvalid:
        pass
    texts = [to_text(chunk).cast(pa.string()) for chunk in column.chunks]
    return pa.chunked_array([*texts, plain_cells(domain, codes, pa.string())], pa.string())
