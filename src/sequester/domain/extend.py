"""Domains of a series: what the policy declares is fixed, what comes from the data may get new values.

Published boxes are intervals of leaves, so new leaves must not change what an old interval stands for. Numbers, dates
and codes keep their order: `[02138-02141]` holds 02140 whether or not anybody had it before. A flat category has no
order of its own; its published sets list values one by one, so new values come after all known ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.build import observe
from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.domain.tree import from_values
from sequester.policy.model import QuasiIdentifier, Sensitive


def extend(
    attribute: QuasiIdentifier | Sensitive, before: Hierarchy, values: Iterable[str] | NDArray[Any]
) -> Hierarchy:
    """The domain with these values too; the very same object when none is new."""
    known = _without_missing(before)
    new = np.asarray(list(values) if before.kind in ("category", "code") else values, known.dtype)
    if not len(np.setdiff1d(new, known)):
        return before
    if before.kind == "category":
        return from_values(new.tolist(), missing=before.missing, known=known.tolist())
    return observe(attribute, np.concatenate([known, new]))


def places(before: Hierarchy, after: Hierarchy) -> Codes:
    """For every leaf of a domain, its code in a later one, -1 where that lost it; an extension keeps all, in order."""
    if before is after:
        return np.arange(before.size, dtype=np.int32)
    known, wanted = _without_missing(after), _without_missing(before)
    if before.leaves.dtype.kind == "O":
        place = {leaf: code for code, leaf in enumerate(known.tolist())}
        found = np.array([place.get(leaf, -1) for leaf in wanted.tolist()], np.int32)
    elif not len(known):
        found = np.full(len(wanted), -1, np.int32)
    else:
        found = np.minimum(np.searchsorted(known, wanted), len(known) - 1).astype(np.int32)
        found[known[found] != wanted] = -1
    if before.missing:
        found = np.append(found, np.int32(after.size - 1 if after.missing else -1)).astype(np.int32)
    return found


def same(one: Hierarchy, other: Hierarchy) -> bool:
    """Whether two domains have the same leaves in the same groups, with the same names."""
    return (
        one.kind == other.kind
        and one.missing == other.missing
        and one.names == other.names
        and all(np.array_equal(a, b) for a, b in zip(one.starts, other.starts, strict=True))
    )


def _without_missing(domain: Hierarchy) -> NDArray[Any]:
    return domain.leaves[:-1] if domain.missing else domain.leaves
