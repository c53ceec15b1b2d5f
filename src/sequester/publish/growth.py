"""What a policy allows that it did not in the last release: wider ranges, new values in hierarchies."""

from __future__ import annotations

from collections.abc import Mapping

from sequester.domain.hierarchy import Hierarchy
from sequester.ingest.encode import check_domains
from sequester.policy.fingerprint import growth
from sequester.policy.model import Policy


def growth_of(policy: Policy, text: str, before: Mapping[str, Hierarchy]) -> list[str]:
    """In words, names of columns and counts only; PolicyError where a hierarchy lost values, or moved some.

    text    the policy of the last release
    before  the domains of its columns then
    """
    told = growth(policy, text)
    for name, domain in check_domains(policy, before).known.items():
        if new := domain.size - before[name].size:
            values = "1 new value" if new == 1 else f"{new:,} new values"
            told.append(f"the hierarchy of {name} has {values}")
    return told
