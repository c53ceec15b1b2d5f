"""Whether a table is made whole or in parts: by how many rows it has, by what was done before, and by its policy."""

from __future__ import annotations

from typing import Any

from sequester.errors import PolicyError, Problem
from sequester.ingest.stream import rows_of
from sequester.ledger import Ledger
from sequester.ledger.parts import is_parted
from sequester.log import tell
from sequester.methods.registry import method_of
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.model import Policy

# A first table of so many parts or fewer is made whole: then parts save nothing.
FEWEST_PARTS = 4


def is_for_parts(ledger: Ledger, policy: Policy, source: Any) -> bool:
    """Whether the next table of a series is made in parts: as those before, or since a first one is large."""
    entries = ledger.releases()
    why_not = whole_because(policy)
    if entries:
        if is_parted(entries) and why_not is not None:
            raise PolicyError(Problem(f"the series is made in parts, which cannot be where {why_not}", key="method"))
        return is_parted(entries)
    if policy.engine.name == "spark" or type(source).__module__.startswith("pyspark."):
        if why_not is not None:
            raise PolicyError(Problem(f"spark makes tables in parts, which cannot be where {why_not}", key="engine"))
        return True
    most = FEWEST_PARTS * policy.engine.part
    if not ledger.place.is_file or ledger.encrypted or rows_of(source, more_than=most) <= most:
        return False
    if why_not is not None:
        tell("publish", "is made whole", because=why_not)
    return why_not is None


def whole_because(policy: Policy) -> str | None:
    """Why tables of a policy cannot be made in parts; None where they can."""
    protect, quasi, sensitive = policy.protect, policy.quasi_identifiers.values(), policy.sensitive.values()
    read: list[QuasiIdentifier | Sensitive] = [*quasi, *sensitive]
    reasons = {
        "the method recodes the whole table alike": not method_of(policy.method).in_parts,
        "consent is asked": policy.consent is not None,
        "there is a registration list": policy.registration_list is not None,
        "closeness compares classes with the whole table": protect.closeness is not None,
        "k_map compares with a population": protect.k_map is not None,
        "rows are left out by `missing: suppress`": any(a.missing == "suppress" for a in read),
        "sensitive values are graded": any(a.is_graded for a in sensitive),
        "every quasi-identifier may change": all(a.changes for a in quasi),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
