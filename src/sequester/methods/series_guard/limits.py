"""What a series requires of classes, in the form the compiled search reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SeriesLimits(NamedTuple):
    """What must hold given everything published before: values of all permanent views are numbered through.

    k                       fewest rows that anything inferred may come down to
    first                   views + 1: where the values of each view begin
    numerator, denominator  per value, the largest share it may have
    insider, neighbor       whom to fear
    """

    k: int
    first: NDArray[np.int64]
    numerator: NDArray[np.int64]
    denominator: NDArray[np.int64]
    insider: bool
    neighbor: bool
