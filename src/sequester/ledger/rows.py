"""All rows of one release as arrays: the form in which they are made, hashed, stored and checked.

A release is `{table: {column: array}}` for the tables of `schema.TABLES`; a column of lists is an array with one row
per list. Rows are in a fixed order, so that equal releases have equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.history.seats import Seats
from sequester.ledger.schema import TABLES
from sequester.ledger.state import HASH, Draft

Columns = dict[str, NDArray[Any]]
Rows = dict[str, Columns]

DTYPES: dict[str, np.dtype[Any]] = {
    "INTEGER": np.dtype(np.int32),
    "BIGINT": np.dtype(np.int64),
    "UBIGINT": np.dtype(np.uint64),
}

# In which order the rows of a release are made and hashed; a database need not keep it.
ORDER: dict[str, tuple[str, ...]] = {
    "classes": ("class",),
    "counts": ("class", "codes"),
    "people": ("person",),
    "trajectories": ("trajectory",),
    "state": ("person",),
    "changes": ("attribute", "person"),
    "queue": ("high", "low"),
    "retained": ("person",),
    "seats": ("person",),
    "pods": ("person",),
}


def make_rows(draft: Draft, before: Codes, joining: Codes) -> Rows:
    """The rows of a draft, given everybody's trajectory before it and what people were first published with.

    joining  (sensitive attributes and insensitive columns, people known before) in the domains of the draft
    """
    known, member = len(before), draft.member
    newcomers = np.arange(known, len(member), dtype=np.int32)
    trajectory, parent, class_of = extend(before, member, draft.lo.shape[1])
    high, low = split_hashes(draft.newcomers)
    kept = draft.kept
    attribute, person = np.nonzero((kept[:, :known] != joining) & (member[:known] >= 0))
    queue_high, queue_low = split_hashes(draft.queue.hashes)
    waiting = np.lexsort((queue_low, queue_high))
    return _typed(
        {
            "classes": {"class": np.arange(draft.lo.shape[1]), "lo": draft.lo.T, "hi": draft.hi.T},
            "counts": count_cells(member, draft.values, [draft.domains[name].size for name in draft.sensitive]),
            "people": {
                "person": newcomers,
                "high": high,
                "low": low,
                "digests": draft.digests.T,
                "codes": kept[:, known:].T,
            },
            "trajectories": {"trajectory": np.arange(len(parent)), "parent": parent, "class": class_of},
            "state": {"person": np.arange(len(member)), "trajectory": trajectory},
            "changes": {"person": person, "attribute": attribute, "code": kept[attribute, person]},
            "queue": {
                "high": queue_high[waiting],
                "low": queue_low[waiting],
                "since": draft.queue.since[waiting],
            },
            "retained": {"person": np.sort(draft.retained)},
            **_seated(draft, known),
        }
    )


def _seated(draft: Draft, known: int) -> dict[str, Columns]:
    """Seats of those who are new and pods of everybody in the release, where there are pods."""
    none = np.zeros(0, np.int32)
    if draft.seats is None:
        return {table: dict.fromkeys(TABLES[table], none) for table in ("seats", "pods")}
    seats, new = draft.seats, np.arange(known, len(draft.member))
    here = np.flatnonzero(draft.member >= 0)
    return {
        "seats": {"person": new, "type": seats.type[new], "seat": seats.seat[new], "decoy": seats.decoy[new]},
        "pods": {"person": here, "pod": seats.pods[-1][here]},
    }


def stacked(releases: Sequence[Columns], column: str) -> NDArray[Any]:
    """The lists of a column in all releases, one below the other. In a release without rows they have no length."""
    given = [rows[column] for rows in releases if len(rows[column])]
    return np.concatenate(given) if given else releases[0][column]


def seats_of(seats: Sequence[Columns], pods: Sequence[Columns], people: int, *, records: Sequence[int]) -> Seats | None:
    """Everybody's seat and pods, from the rows of all releases; None where some of them were made without pods.

    records  per release, how many it has: without any it has no pods either
    """
    if not pods or any(count and not len(rows["person"]) for count, rows in zip(records, pods, strict=True)):
        return None
    person, type_, seat, decoy = (np.concatenate([rows[name] for rows in seats]) for name in TABLES["seats"])
    if not np.array_equal(person, np.arange(people)):
        raise ValueError("rows do not fit together")
    placed = []
    for rows in pods:
        pod = np.full(people, -1, np.int32)
        pod[rows["person"]] = rows["pod"]
        placed.append(pod)
    return Seats(decoy.astype(np.bool_), type_, seat, tuple(placed))


def extend(before: Codes, member: Codes, classes: int) -> tuple[Codes, Codes, Codes]:
    """Everybody's trajectory after one more release, and of each trajectory the one before it and its class.

    Trajectories are numbered in the order in which people first show them, as in `history.Trajectories`.
    """
    parents = np.concatenate([before, np.full(len(member) - len(before), -1, np.int32)]).astype(np.int64)
    pairs = pa.array((parents + 1) * (classes + 1) + member + 1).dictionary_encode()
    pair = pairs.dictionary.to_numpy()
    trajectory = pairs.indices.to_numpy().astype(np.int32)
    parent, class_of = pair // (classes + 1) - 1, pair % (classes + 1) - 1
    return trajectory, parent.astype(np.int32), class_of.astype(np.int32)


def count_cells(member: Codes, values: Codes, sizes: Sequence[int]) -> Columns:
    """How often each combination of values is in each class, sorted by class and then by codes."""
    here = np.flatnonzero(member >= 0)
    group = member[here].astype(np.int64)
    for codes, size in zip(values, sizes, strict=True):
        # Dense numbers after every attribute: their product over many attributes would not fit.
        group = np.unique(group * size + codes[here], return_inverse=True)[1]
    _, first, n = np.unique(group, return_index=True, return_counts=True)
    there = here[first]
    return {"class": member[there], "codes": values[:, there].T, "n": n}


def split_hashes(hashes: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Keyed hashes as two numbers each, which DuckDB stores and finds faster than bytes."""
    halves = np.frombuffer(hashes.buffers()[1], ">u8", count=2 * len(hashes), offset=16 * hashes.offset).reshape(-1, 2)
    return halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64)


def join_hashes(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> pa.Array:
    """The reverse of `split_hashes`."""
    halves = np.stack([high, low], axis=1).astype(">u8")
    return pa.FixedSizeBinaryArray.from_buffers(HASH, len(high), [None, pa.py_buffer(halves.tobytes())])


def problems_of(draft: Draft, known: int, *, empty: bool = False) -> list[str]:
    """What does not fit together in a draft; everything here is a mistake of the caller. One of a part may be empty."""
    people, classes = len(draft.member), draft.lo.shape[1]
    shapes = {
        "lo": (draft.lo.shape, (len(draft.quasi), classes)),
        "hi": (draft.hi.shape, (len(draft.quasi), classes)),
        "values": (draft.values.shape, (len(draft.sensitive), people)),
        "plain": (draft.plain.shape, (len(draft.insensitive), people if draft.insensitive else draft.plain.shape[1])),
        "newcomers": ((len(draft.newcomers),), (people - known,)),
        "digests": (draft.digests.shape[1:], (people - known,)),
        "queue": ((len(draft.queue.hashes),), draft.queue.since.shape),
    }
    problems = [f"{name} has shape {has}, not {needs}" for name, (has, needs) in shapes.items() if has != needs]
    missing = {*draft.quasi, *draft.kept_names} - set(draft.domains)
    problems += ["an attribute has no domain"] if missing else []
    problems += (
        ["hashes are not of the type that identify() gives"]
        if {
            draft.newcomers.type,
            draft.queue.hashes.type,
        }
        != {HASH}
        else []
    )
    if problems:
        return problems
    here = draft.member >= 0
    sizes = np.bincount(draft.member[here], minlength=classes)
    if len(sizes) > classes or (draft.member < -1).any():
        problems.append("somebody is in a class that is not there")
    elif (sizes == 0).any():
        problems.append("a class is empty")
    if not here.any() and not empty:
        problems.append("nobody is in the release")
    if not here[known:].all():
        problems.append("a newcomer is in no class")
    for lo, hi, name in zip(draft.lo, draft.hi, draft.quasi, strict=True):
        if (lo < 0).any() or (hi >= draft.domains[name].size).any() or (lo > hi).any():
            problems.append("a box is not in its domain")
    for codes, name in zip(draft.kept, draft.kept_names, strict=True):
        if (codes[here] < 0).any() or (codes[here] >= draft.domains[name].size).any():
            problems.append("a value is not in its domain")
    gone = draft.retained
    if len(np.unique(gone)) < len(gone) or (gone < 0).any() or (gone >= known).any() or not here[gone].all():
        problems.append("somebody who is retained was not published before, or is not published now")
    if draft.seats is not None:
        problems += _misfits(draft.seats, draft.member)
    for what, hashes in (("newcomers", draft.newcomers), ("queue", draft.queue.hashes)):
        if len(hashes.unique()) < len(hashes):
            problems.append(f"somebody is twice among the {what}")
    return problems


def _misfits(seats: Seats, member: Codes) -> list[str]:
    """What does not fit between the seats of a draft and its classes."""
    if not len(seats) == len(seats.seat) == len(seats.decoy) == len(seats.pods[-1]) == len(member):
        return ["seats are not those of its people"]
    if ((seats.pods[-1] >= 0) != (member >= 0)).any() or (seats.type < 0).any() or (seats.seat < 0).any():
        return ["pods are not those of the people in its classes"]
    return []


def changed_domains(draft: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """The domains, as text, that are new or are not what they were."""
    return {name: text for name, text in draft.items() if before.get(name) != text}


def widths(quasi: int, sensitive: int, insensitive: int) -> dict[tuple[str, str], int | None]:
    """How long the lists of each column are; None for digests, whose number is the caller's choice."""
    return {
        ("classes", "lo"): quasi,
        ("classes", "hi"): quasi,
        ("counts", "codes"): sensitive,
        ("people", "codes"): sensitive + insensitive,
        ("people", "digests"): None,
    }


def to_arrow(columns: Columns, release: int) -> pa.Table:
    """The rows of one table as they are stored."""
    count = len(next(iter(columns.values())))
    arrays: dict[str, pa.Array] = {"release": pa.array(np.full(count, release, np.int32))}
    for name, array in columns.items():
        if array.ndim == 2:
            ends = np.arange(count + 1, dtype=np.int64) * array.shape[1]
            arrays[name] = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(array).ravel()))
        else:
            arrays[name] = pa.array(array)
    return pa.table(arrays)


def from_arrow(table: str, stored: pa.Table, *, quasi: int, sensitive: int, insensitive: int) -> Columns:
    """The rows of one table as they were stored; ValueError when they do not fit together."""
    width = widths(quasi, sensitive, insensitive)
    columns: Columns = {}
    for name, kind in TABLES[table].items():
        column = stored[name].combine_chunks()
        if column.null_count:
            raise ValueError("a number is missing")
        if kind.endswith("[]"):
            flat = column.flatten()
            wide = width[table, name]
            if wide is None:
                wide = len(flat) // max(len(column), 1)
            lengths = np.diff(column.offsets.to_numpy())
            if flat.null_count or (lengths != wide).any():
                raise ValueError("a list has the wrong length")
            columns[name] = flat.to_numpy().astype(DTYPES[kind[:-2]], copy=False).reshape(len(column), wide)
        else:
            columns[name] = column.to_numpy().astype(DTYPES[kind], copy=False)
    return columns


def joining_values(
    people: Sequence[Columns], domains: Sequence[Sequence[Hierarchy]], now: Sequence[Hierarchy]
) -> Codes:
    """(attributes, people): what everybody was first published with, in later domains; given release by release."""
    from sequester.ledger.domains import carry_codes

    codes = np.zeros((len(now), sum(len(rows["person"]) for rows in people)), np.int32)
    at = 0
    for rows, old in zip(people, domains, strict=True):
        count = len(rows["person"])
        for row, (before, after) in enumerate(zip(old, now, strict=True)):
            codes[row, at : at + count] = carry_codes(rows["codes"][:, row], before, after)
        at += count
    return codes


def _typed(rows: Mapping[str, Mapping[str, NDArray[Any]]]) -> Rows:
    """Exactly the columns and types of the schema, whatever the draft had."""
    return {
        table: {
            column: np.ascontiguousarray(rows[table][column], DTYPES[kind.removesuffix("[]")])
            for column, kind in columns.items()
        }
        for table, columns in TABLES.items()
    }
