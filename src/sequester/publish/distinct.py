"""One person, one row: asked once more where rows become people, and where people are recorded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.ledger.state import HASH


def check_distinct(hashes: pa.Array) -> None:
    """Stop where two rows are about one person: whatever let them pass, no class may count her twice."""
    if _may_repeat(hashes) and len(hashes) != pc.count_distinct(hashes).as_py():
        raise _refusal("two rows are about one person, so classes would hide fewer people than they have rows")


def _may_repeat(hashes: pa.Array) -> bool:
    """Whether halves of two hashes are alike: sorting them is quicker than comparing all of each."""
    if hashes.type != HASH:
        return True
    halves = np.frombuffer(hashes.buffers()[1], np.uint64)[2 * hashes.offset :][: 2 * len(hashes) : 2]
    ordered = np.sort(halves)
    return bool((ordered[1:] == ordered[:-1]).any())


def check_written(written: int, person: NDArray[np.int64], member: NDArray[np.int32]) -> None:
    """Stop where a release has not one row for each of its people, or not those that are recorded.

    written  rows of the table that others will see
    person   the person of each record, and `member` per person her class, -1 for whoever is not in the release
    """
    if np.bincount(person, minlength=1).max() > 1:
        raise _refusal("two rows are about one person, so classes would hide fewer people than they have rows")
    if not written == len(person) == np.count_nonzero(member >= 0):
        raise _refusal("the rows to publish are not as many as the people to record")


def _refusal(why: str) -> GuaranteeError:
    return GuaranteeError(f"{why}. Nothing was published.", guarantee="series")
