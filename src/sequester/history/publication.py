"""One release as the world sees it: classes with a box, a size and value counts, and rows in their published order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """Published classes, and who is in which where that is known.

    lo, hi     (quasi-identifiers, classes) leaf codes of the boxes
    counts     (classes, values) how often each sensitive value is published in each class
    row_class  per published row, in published order, its class
    row_value  per published row, the code of its sensitive value
    member     per person of the history, the class she is in, -1 when absent; None when nobody's class is known
    value      per person of the history, the code of her sensitive value here, -1 when absent; None when not known
    certain    where not everybody's class is known: per person the class she must be in, -1 when absent or not known
    """

    name: str
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    counts: NDArray[np.int64]
    row_class: NDArray[np.int32]
    row_value: NDArray[np.int32]
    member: NDArray[np.int32] | None = None
    value: NDArray[np.int32] | None = None
    certain: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[0])

    def __repr__(self) -> str:
        return f"<Publication {self.name}: {int(self.size.sum())} rows in {len(self)} classes>"

    @property
    def size(self) -> NDArray[np.int64]:
        """Rows per class."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def known_member(self) -> NDArray[np.int32]:
        """The class of everybody, of a release that is known to say it."""
        if self.member is None:
            raise ValueError("who is in which class is not known")
        return self.member
