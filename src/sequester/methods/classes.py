"""What every method returns: which class each record is in, and the box each class is published with."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def suppressed(self) -> int:
        """Records in no class."""
        return int(np.count_nonzero(self.member < 0))

    @property
    def size(self) -> NDArray[np.int64]:
        """Records per class."""
        return np.bincount(self.member[self.member >= 0], minlength=len(self)).astype(np.int64)
