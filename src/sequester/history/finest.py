"""One value of one person, published once as a node and once more exactly: whoever knows her rows knows the finest.

An adversary who knows more has fewer worlds to choose from, so taking the finest value that was ever published about a
person for what every release said of her never gives a row more owners. It can hide how many values a coarser cell may
be, so single releases are judged as they are written, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.domain.nodes import nesting


def finest_values(
    people: int, rows: Sequence[NDArray[np.integer]], codes: Sequence[Codes], domain: Hierarchy
) -> tuple[list[Codes], int]:
    """Per release and row the finest value of its person, and of how many people the values exclude each other.

    rows, codes  per release, the person and the published code of every row
    """
    finest = np.full(people, -1, np.int32)
    apart = np.zeros(people, np.bool_)
    for who, published in zip(rows, codes, strict=True):
        before = finest[who]
        known = before >= 0
        finer, coarser = nesting(domain, before, published)
        apart[who] |= known & ~finer & ~coarser
        finest[who] = np.where(~known | finer, published, before)
    return [finest[who] for who in rows], int(np.count_nonzero(apart))
