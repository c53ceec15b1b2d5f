"""Codes of fixed length, generalized by their prefixes: 02139, 0213*, 021*, ..., *."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from sequester.domain.hierarchy import EVERYTHING, MISSING, Codes, Hierarchy, nested
from sequester.errors import DataError, Problem


def from_codes(values: Iterable[str], *, length: int, missing: bool = False) -> Hierarchy:
    """The distinct codes in sorted order; level i keeps all but the last i characters."""
    leaves = sorted({str(value) for value in values})
    problems = []
    if not leaves:
        problems.append(Problem("there is no code to build a domain from"))
    if wrong := sum(len(leaf) != length for leaf in leaves):
        problems.append(Problem(f"{wrong} distinct codes are not {length} characters long; correct the length"))
    if starred := sum(EVERYTHING in leaf for leaf in leaves):
        problems.append(Problem(f"{starred} distinct codes contain '*', which stands for any character"))
    if missing and MISSING in leaves:
        problems.append(Problem(f"'{MISSING}' occurs as a code; add it to input.missing, or give it another name"))
    if problems:
        raise DataError(problems)
    levels = [(np.arange(len(leaves), dtype=np.int32), tuple(leaves))]
    levels += [_masked(leaves, kept) for kept in range(length - 1, 0, -1)]
    return nested("code", np.array(leaves, object), levels, missing=missing)


def _masked(leaves: list[str], kept: int) -> tuple[Codes, tuple[str, ...]]:
    """First code and name of every group of codes that share their first characters."""
    runs = groupby(enumerate(leaves), key=lambda item: item[1][:kept])
    groups = [(next(run)[0], prefix + EVERYTHING) for prefix, run in runs]
    return np.array([start for start, _ in groups], np.int32), tuple(name for _, name in groups)
