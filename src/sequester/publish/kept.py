"""Rows of people who left and are kept in a release: nothing about them may show that.

What stays with a person is published as it was. What changes cannot be: the last cells of somebody who left grow old,
and a year or a count that nobody else has any more would mark her row. So she shows what somebody who is there shows,
drawn from her class without looking at anything else; whoever compares releases expects it to change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
    random = np.random.default_rng([*seed, 5])
    here = np.flatnonzero(~kept & (member >= 0))
    here = here[np.argsort(member[here], kind="stable")]
    gone = np.flatnonzero(kept)
    first, last = (np.searchsorted(member[here], member[gone], side) for side in ("left", "right"))
    alone = first == last
    first, last = np.where(alone, 0, first), np.where(alone, len(here), last)
    donor = np.arange(len(records))
    donor[gone] = here[random.integers(first, last)]
    plain, table = records.plain.copy(), records.insensitive
    for place in changing:
        name = records.plain_names[place]
        plain[place] = plain[place, donor]
        table = table.set_column(table.column_names.index(name), name, table[name].take(pa.array(donor)))
    return replace(records, plain=plain, insensitive=table)
