"""What every method returns: which class each record is in, and the box each class is published with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """`member` is the class of every record, -1 for one left out; `lo`, `hi` are (attributes, classes) leaf codes.

    `levels` is the level of every attribute, where all classes have the same (full-domain recoding).
    """

    member: NDArray[np.int32]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    levels: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return int(self.lo.shape[1])

    def __repr__(self) -> str:
        return f"<Classes: {len(self)} of {len(self.member)} records, {self.suppressed} left out>"

    @classmethod
    def around(
        cls, member: NDArray[np.integer[Any]], lo: NDArray[np.int32], hi: NDArray[np.int32] | None = None
    ) -> Classes:
        """Classes of records, all in one and numbered without gaps, with the smallest boxes around what each adds.

        `lo`, `hi` are (attributes, records); for codes, which add nothing but themselves, one is enough.
        """
        low, high = hulls(member, lo.T, (lo if hi is None else hi).T)
        return cls(member.astype(np.int32), low, high)

    @property
    def suppressed(self) -> int:
        """Records in no class."""
        return int(np.count_nonzero(self.member < 0))

    @property
    def size(self) -> NDArray[np.int64]:
        """Records per class."""
        return np.bincount(self.member[self.member >= 0], minlength=len(self)).astype(np.int64)


def compact(numbers: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The same numbers without gaps, in the same order."""
    return np.asarray(np.unique(numbers, return_inverse=True)[1].ravel(), np.int64)


def hulls(
    member: NDArray[np.integer[Any]], lo: NDArray[np.int32], hi: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(attributes, classes) the smallest boxes around boxes (records, attributes); every class has a record."""
    order = np.argsort(member, kind="stable")
    start = np.flatnonzero(np.diff(member[order], prepend=-1))
    low, high = np.minimum.reduceat(lo[order], start), np.maximum.reduceat(hi[order], start)
    return np.ascontiguousarray(low.T), np.ascontiguousarray(high.T)
