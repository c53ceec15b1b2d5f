"""Domains of a series: what the policy declares is fixed, what comes from the data may get new values.

Published boxes are intervals of leaves, so new leaves must not change what an old interval stands for. Numbers, dates
and codes keep their order: `[02138-02141]` holds 02140 whether or not anybody had it before. A flat category has no
order of its own; its published sets list values one by one, so new values come after all known ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.build import observe
from sequester.domain.hierarchy import Codes, Hierarchy, sorted_places
from sequester.domain.kinds import kind_of
from sequester.domain.tree import from_values

if TYPE_CHECKING:
    from sequester.policy.attributes import QuasiIdentifier, Sensitive


def extend(
    attribute: QuasiIdentifier | Sensitive, before: Hierarchy, values: Iterable[str] | NDArray[Any]
) -> Hierarchy:
    """The domain with these values too; the very same object when none is new."""
    known = before.values
    new = np.asarray(values if isinstance(values, np.ndarray) else list(values), known.dtype)
    if not len(np.setdiff1d(new, known)):
        return before
    if not kind_of(before).ordered:
        return from_values(new.tolist(), missing=before.missing, known=known.tolist())
    return observe(attribute, np.concatenate([known, new]))


def places(before: Hierarchy, after: Hierarchy) -> Codes:
    """For every leaf of a domain, its code in a later one, -1 where that lost it; an extension keeps all, in order."""
    if before is after:
        return np.arange(before.size, dtype=np.int32)
    if before.leaves.dtype == object:
        place = {leaf: code for code, leaf in enumerate(after.values.tolist())}
        codes = np.array([place.get(leaf, -1) for leaf in before.values.tolist()], np.int32)
    else:
        codes = sorted_places(after.values, before.values)
    if before.missing:
        codes = np.append(codes, np.int32(after.size - 1 if after.missing else -1)).astype(np.int32)
    return codes


def grows_from(before: Hierarchy, after: Hierarchy) -> bool:
    """Whether a later domain has all leaves of an earlier one, in their order and in the groups that they were in."""
    if (before.kind, before.missing) != (after.kind, after.missing):
        return False
    place = places(before, after)
    if (place < 0).any() or (np.diff(place) <= 0).any():
        return False
    for name, (first, last) in before.labels.items():
        group = after.labels.get(name)
        if group is None or np.searchsorted(place, [group[0], group[1] + 1]).tolist() != [first, last + 1]:
            return False
    return True


def gains(lo: Codes, hi: Codes, place: Codes) -> NDArray[np.bool_]:
    """Which intervals of a domain hold more leaves in a later one, given the `places` of its leaves there.

    New leaves between two known ones come into every interval across them: what it was published for is then less
    than what it covers, and whoever knows when the leaves were added knows that.
    """
    wider: NDArray[np.bool_] = place[hi] - place[lo] != hi - lo
    return wider
