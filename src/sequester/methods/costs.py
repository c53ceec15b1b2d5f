"""What publishing a record with an interval loses in one attribute, for the methods to minimize.

`metrics` says the same from the definitions, for whole releases, and judges the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of


def penalty(
    loss: str, domain: Hierarchy, lo: NDArray[np.integer[Any]], hi: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Per interval, the loss of one record: `ncp`, `ail` or `precision`."""
    if loss == "ail" or (loss == "ncp" and kind_of(domain).measured):
        return domain.width(lo, hi)
    if loss == "ncp":
        return np.where(hi > lo, (hi - lo + 1) / domain.size, 0.0)
    if loss == "precision":
        return domain.level_of(lo, hi) / max(domain.height, 1)
    raise ValueError(f"{loss} is not a sum over the cells of a table")
