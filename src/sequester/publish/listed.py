"""The registration list: everybody who may be in a release, where that is all that anybody knows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.errors import DataError, Problem
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import Entry
from sequester.policy.model import Policy


def check_registered(
    snapshot: Snapshot, registered: NDArray[np.int32], policy: Policy, *, before: Sequence[Entry]
) -> str:
    """Whoever is in the table must be in the registration list, as far as attributes that do not change can tell.

    The list must be the one of all releases `before`: people who were not in it then diluted nothing. Returns a digest.
    """
    links = [place for place, attribute in enumerate(policy.quasi_identifiers.values()) if not attribute.changes]
    group, first = row_groups(np.hstack([snapshot.quasi[links], registered[links]]))
    here, listed = group[: len(snapshot)], group[len(snapshot) :]
    lacking = np.bincount(here, minlength=len(first)) - np.bincount(listed, minlength=len(first))
    people = int(np.maximum(lacking, 0).sum())
    digest = _list_digest(snapshot, registered, links)
    problem = ""
    if people:
        who = "1 person is" if people == 1 else f"{people:,} people are"
        problem = f"{who} not in it; the list must have everybody who may be in a release, or it hides nobody"
    elif any(entry.summary.get("listed") not in (None, digest) for entry in before):
        problem = (
            "is not the list of the earlier releases, whose promise rests on it: people who were not in it then hid "
            "nobody; put it back"
        )
    if problem:
        raise DataError(Problem(problem, key="protect.lifetime.registered"))
    return digest


def _list_digest(snapshot: Snapshot, registered: NDArray[np.int32], links: Sequence[int]) -> str:
    """Of the list as people by what links them: whatever its order, what else is in it, and which leaves came since."""
    digest = hashlib.sha256()
    codes = np.empty((len(links), registered.shape[1]), np.int64)
    for row, place in zip(codes, links, strict=True):
        # Domains only grow, and keep their order: among its own values a list has the same codes for ever.
        used, row[:] = np.unique(registered[place], return_inverse=True)
        names = snapshot.quasi_domains[place].names[0]
        digest.update("\0".join(names[code] for code in used.tolist()).encode())
    group, first = row_groups(codes)
    digest.update(codes[:, first].tobytes())
    digest.update(np.bincount(group).astype(np.int64).tobytes())
    return digest.hexdigest()
