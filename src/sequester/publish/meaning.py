"""What was published keeps its meaning when a hierarchy gets new values."""

from __future__ import annotations

from collections.abc import Mapping

from sequester.domain.extend import gains, places
from sequester.domain.hierarchy import Hierarchy
from sequester.errors import PolicyError, Problem
from sequester.ledger.state import State
from sequester.policy.model import Policy


def check_boxes(state: State, policy: Policy, domains: Mapping[str, Hierarchy]) -> None:
    """Refuse new values that come into boxes published before, where somebody reasons from boxes.

    Nobody in those boxes had the new values. Whoever knows who is in which class (insider, lifetime) uses no boxes;
    what a neighbor can tell, and a registration list, would be reckoned with people who cannot have been there.
    """
    if "neighbor" not in policy.protect.against and policy.registration_list is None:
        return
    problems = []
    for row, (name, attribute) in enumerate(policy.quasi_identifiers.items()):
        if attribute.hierarchy is None or attribute.changes:
            continue
        wider = sum(
            int(gains(memory.lo[row], memory.hi[row], places(memory.domains[name], domains[name])).sum())
            for memory in state.releases
        )
        if wider:
            message = (
                f"new values lie inside {wider:,} boxes published before, where nobody had them; put them before or "
                "after all known values, or in a group that no published box reaches across"
            )
            problems.append(Problem(message, key=f"attributes.{name}.hierarchy"))
    if problems:
        raise PolicyError(problems)
