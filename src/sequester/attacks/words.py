"""Words that stories share: people and shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sequester.attacks.finding import Finding

if TYPE_CHECKING:
    from sequester.history import History

_PEOPLE_SHOWN = 8


def names(people: Sequence[object]) -> str:
    """Some of these people, and how many more."""
    if not people:
        return "somebody"
    shown = [str(person) for person in people[:_PEOPLE_SHOWN]]
    rest = f" and {len(people) - _PEOPLE_SHOWN} more" if len(people) > _PEOPLE_SHOWN else ""
    return ", ".join(shown) + rest


def people(number: float) -> str:
    """So many people."""
    return "1 person" if number == 1 else f"{number:g} people"


def share(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.3g}%"


def tell_plainly(finding: Finding, history: History) -> str:
    """What was reached, and what is required."""
    if "bound" in finding.witness:
        allowed = f"{finding.witness['bound']} allows {share(finding.required)}"
        return f"Of the class below, {share(finding.observed)} have {finding.value}, and {allowed}."
    if "people" in finding.witness and finding.attack == "k":
        told = f"{people(finding.observed)} among its {finding.witness['rows']:,} rows; the others are decoys"
        return f"The class below has {told}, and {people(finding.required)} must be in every class."
    return f"The classes below reach {finding.observed:g}, and {finding.required:g} is required."
