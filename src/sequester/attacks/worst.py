"""The few findings that somebody should read first."""

from __future__ import annotations

from collections.abc import Sequence

from sequester.attacks.exposed import is_certain
from sequester.attacks.exposure import degree_of
from sequester.attacks.finding import Finding

MOST = 5


def worst_findings(findings: Sequence[Finding], *, most: int = MOST) -> tuple[int, ...]:
    """Their numbers, counted from 1, the worst first.

    What is certain comes before what is likely, known people before classes, values before who somebody is, then what
    misses the bound by the most. The worst of every attack are told before a second one of any, and nobody in the same
    classes twice while there are others.
    """
    ranked = sorted(range(len(findings)), key=lambda place: (*_rank(findings[place]), place))
    told: dict[str, int] = {}
    turns, known = {}, set()
    for place in ranked:
        attack, about = findings[place].attack, (findings[place].classes, findings[place].people)
        if about in known:
            turns[place] = len(findings)
            continue
        known.add(about)
        turns[place] = told[attack] = told.get(attack, 0) + 1
    first = sorted(ranked, key=lambda place: turns[place])[:most]
    return tuple(place + 1 for place in ranked if place in set(first))


def _rank(finding: Finding) -> tuple[bool, bool, bool, float]:
    return not is_certain(finding), not finding.people, not finding.about_value, -degree_of(finding)
