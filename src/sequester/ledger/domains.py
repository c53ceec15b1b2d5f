"""Domains as text to keep, and codes of an earlier domain in a later one.

A series keeps its domains, but those that come from the data may gain leaves in a later release, and then the codes
of the leaves after them shift. A domain never loses a leaf.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.extend import places
from sequester.domain.hierarchy import Codes, Hierarchy

_LEAVES = {"O": "text", "f": "number", "M": "day"}


def to_json(domain: Hierarchy) -> str:
    """A domain as text; `from_json` gives the same domain back, to the last bit."""
    return json.dumps(
        {
            "kind": domain.kind,
            "missing": domain.missing,
            "type": _LEAVES[domain.leaves.dtype.kind],
            "leaves": _plain(domain.leaves),
            "starts": [start.tolist() for start in domain.starts],
            "names": [list(names) for names in domain.names],
            "position": domain.position.tolist(),
            "aliases": {name: list(span) for name, span in domain.aliases.items()},
        },
        separators=(",", ":"),
        allow_nan=False,
    )


def from_json(text: str) -> Hierarchy:
    """The domain that was written as this text; ValueError, KeyError or TypeError when it is none."""
    kept: dict[str, Any] = json.loads(text)
    starts = tuple(np.array(start, np.int32) for start in kept["starts"])
    leaves = _leaves(kept["leaves"], kept["type"])
    names = tuple(tuple(names) for names in kept["names"])
    position = np.array(kept["position"], np.float64)
    if not len(leaves) == len(position) == len(starts[0]) or [*map(len, starts)] != [*map(len, names)]:
        raise ValueError("a domain does not fit together")
    return Hierarchy(
        kind=kept["kind"],
        leaves=leaves,
        starts=starts,
        names=names,
        position=position,
        missing=kept["missing"],
        aliases={name: (span[0], span[1]) for name, span in kept["aliases"].items()},
    )


def carry_codes(codes: Codes, old: Hierarchy, new: Hierarchy) -> Codes:
    """Codes of leaves of a domain as codes of a later one; -1 stays -1."""
    if old is new:
        return codes
    # Place -1 is the last of the map.
    carried: Codes = np.append(places(old, new), np.int32(-1))[codes].astype(np.int32)
    return carried


def lost_leaves(old: Mapping[str, Hierarchy], new: Mapping[str, Hierarchy]) -> dict[str, int]:
    """How many leaves each attribute's domain lost; only those that lost any."""
    lost = {
        name: domain.size if name not in new else int(np.count_nonzero(places(domain, new[name]) < 0))
        for name, domain in old.items()
    }
    return {name: count for name, count in lost.items() if count}


def _plain(leaves: NDArray[Any]) -> list[Any]:
    if leaves.dtype.kind == "M":
        days = leaves.astype("datetime64[D]")
        return [
            None if absent else day for day, absent in zip(days.astype(np.int64).tolist(), np.isnat(days), strict=True)
        ]
    if leaves.dtype.kind == "f":
        return [None if number != number else number for number in leaves.tolist()]
    return [str(leaf) for leaf in leaves.tolist()]


def _leaves(values: list[Any], stored_as: str) -> NDArray[Any]:
    if stored_as == "day":
        days = np.array([0 if value is None else value for value in values], np.int64).astype("datetime64[D]")
        days[[value is None for value in values]] = np.datetime64("NaT")
        return days
    if stored_as == "number":
        return np.array([np.nan if value is None else value for value in values], np.float64)
    cells = np.empty(len(values), object)
    cells[:] = values
    return cells
