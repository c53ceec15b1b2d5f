"""All criteria of single releases, in the order in which they are judged and told."""

from __future__ import annotations

from sequester.guarantees import anonymity, closeness, confidence, diversity
from sequester.guarantees.criterion import Declaration

CRITERIA: tuple[Declaration, ...] = (
    *anonymity.CRITERIA,
    *confidence.CRITERIA,
    diversity.CRITERION,
    closeness.CRITERION,
)
