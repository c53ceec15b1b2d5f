"""Information loss of a release, computed from its boxes.

Records left out count as lost entirely in every metric. N is the number of records with those left out, d the number
of quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of

Integers = NDArray[np.integer[Any]]


class Boxes(Protocol):
    """Boxes of classes: `lo` and `hi` have one row per quasi-identifier and one entry per class."""

    @property
    def lo(self) -> NDArray[np.int32]: ...
    @property
    def hi(self) -> NDArray[np.int32]: ...


class SizedBoxes(Boxes, Protocol):
    """Classes as published, with how many records are in each."""

    @property
    def size(self) -> NDArray[np.int64]: ...


def losses(
    classes: SizedBoxes,
    domains: Sequence[Hierarchy],
    *,
    suppressed: int = 0,
    quasi: Integers | None = None,
) -> dict[str, float]:
    """Every metric by name; `entropy` only with `quasi`, the raw codes of all records."""
    measured = {
        "ail": ail(classes, domains, suppressed=suppressed),
        "ncp": ncp(classes, domains, suppressed=suppressed),
        "dm": dm(classes, suppressed=suppressed),
        "dm_normalized": dm_normalized(classes, suppressed=suppressed),
        "class_size": class_size(classes, suppressed=suppressed),
        "precision": precision(classes, domains, suppressed=suppressed),
    }
    if quasi is not None:
        measured["entropy"] = entropy(classes, domains, quasi=quasi)
    return measured


def ail(classes: SizedBoxes, domains: Sequence[Hierarchy], *, suppressed: int = 0) -> float:
    """Average information loss (Byun et al., Definition 4): summed widths, averaged over records; 0 to d."""
    return _average(widths(classes, domains), classes, suppressed=suppressed, lost=len(domains))


def widths(boxes: Boxes, domains: Sequence[Hierarchy]) -> NDArray[np.float64]:
    """Per box, the summed widths of its sides."""
    width: NDArray[np.float64] = np.zeros(boxes.lo.shape[1])
    for domain, lo, hi in zip(domains, boxes.lo, boxes.hi, strict=True):
        width += domain.width(lo, hi)
    return width


def ncp(classes: SizedBoxes, domains: Sequence[Hierarchy], *, suppressed: int = 0) -> float:
    """Normalized certainty penalty (Xu et al. 2006), averaged over attributes and records; 0 to 1.

    Numbers and dates cost their width. Categories and codes cost nothing when exact, else the share of all leaves.
    """
    penalty: NDArray[np.float64] = np.zeros(len(classes.size))
    for domain, lo, hi in _sides(classes, domains):
        penalty += _penalty(domain, lo, hi)
    return _average(penalty / max(len(domains), 1), classes, suppressed=suppressed, lost=1)


def column_losses(classes: SizedBoxes, domains: Sequence[Hierarchy], *, suppressed: int = 0) -> NDArray[np.float64]:
    """Per quasi-identifier its certainty penalty averaged over the records, 0 (exact) to 1; `ncp` is their mean."""
    sides = [_average(_penalty(*side), classes, suppressed=suppressed, lost=1) for side in _sides(classes, domains)]
    return np.array(sides, np.float64)


def dm(classes: SizedBoxes, *, suppressed: int = 0) -> float:
    """Discernibility (Bayardo and Agrawal 2005): each record costs the size of its class, one left out costs N."""
    return float((classes.size**2).sum() + suppressed * (classes.size.sum() + suppressed))


def dm_normalized(classes: SizedBoxes, *, suppressed: int = 0) -> float:
    """Discernibility over N squared (Fung et al., section 6.2); 0 to 1."""
    return dm(classes, suppressed=suppressed) / max(int(classes.size.sum()) + suppressed, 1) ** 2


def class_size(classes: SizedBoxes, *, suppressed: int = 0) -> float:
    """Average class size: N per published class, so that leaving records out never looks like smaller classes."""
    return float(classes.size.sum() + suppressed) / max(len(classes.size), 1)


def precision(classes: SizedBoxes, domains: Sequence[Hierarchy], *, suppressed: int = 0) -> float:
    """Precision (Sweeney 2002): 1 minus the mean of level over height; 1 is exact.

    A side that is no group of the hierarchy counts as the lowest level at which one group contains it.
    """
    climbed: NDArray[np.float64] = np.zeros(len(classes.size))
    for domain, lo, hi in _sides(classes, domains):
        climbed += domain.level_of(lo, hi) / max(domain.height, 1)
    return 1.0 - _average(climbed / max(len(domains), 1), classes, suppressed=suppressed, lost=1)


def entropy(classes: SizedBoxes, domains: Sequence[Hierarchy], *, quasi: Integers) -> float:
    """Non-uniform entropy (Gionis and Tassa 2009): the bits needed to say which leaf of its box each record has.

    `quasi` are the raw codes of the records in the classes and of those left out, in any order.
    A record with leaf v in a box B loses log(f(B) / f(v)), with the raw table's frequencies f. Summed over records
    the two logarithms part, so it does not matter which record is in which class. Divided by the bits that
    publishing `*` everywhere would lose; 0 to 1.
    """
    lost = all_lost = 0.0
    suppressed = quasi.shape[1] - int(classes.size.sum())
    for (domain, lo, hi), codes in zip(_sides(classes, domains), quasi, strict=True):
        frequency = np.bincount(codes, minlength=domain.size)
        below = np.append(0, np.cumsum(frequency))
        known = float((frequency * np.log2(np.maximum(frequency, 1))).sum())
        everything = np.log2(max(len(codes), 1))
        inside = np.log2(np.maximum(below[hi.astype(np.int64) + 1] - below[lo], 1))
        lost += float((classes.size * inside).sum() + suppressed * everything) - known
        all_lost += len(codes) * everything - known
    return float(max(lost, 0.0) / all_lost) if all_lost > 0 else 0.0


def _sides(
    classes: SizedBoxes, domains: Sequence[Hierarchy]
) -> list[tuple[Hierarchy, NDArray[np.int32], NDArray[np.int32]]]:
    return list(zip(domains, classes.lo, classes.hi, strict=True))


def _penalty(domain: Hierarchy, lo: NDArray[np.int32], hi: NDArray[np.int32]) -> NDArray[np.float64]:
    """Per class, what one of its records loses in one attribute."""
    if kind_of(domain).measured:
        return np.asarray(domain.width(lo, hi), np.float64)
    return np.where(lo == hi, 0.0, (hi - lo + 1) / domain.size)


def _average(cost: NDArray[np.float64], classes: SizedBoxes, *, suppressed: int, lost: float) -> float:
    records = int(classes.size.sum()) + suppressed
    return float((cost * classes.size).sum() + suppressed * lost) / max(records, 1)
