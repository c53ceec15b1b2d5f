"""Whether a table, or a plan, was published before."""

from __future__ import annotations

from collections.abc import Sequence

from sequester.errors import StalePlan
from sequester.ledger.state import Entry
from sequester.publish.plan import Plan


def repeats(entries: Sequence[Entry], input_digest: str) -> Entry | None:
    """The last release of exactly this table, if there is one."""
    return next((entry for entry in reversed(entries) if entry.input_digest == input_digest), None)


def note_repeated(entry: Entry | None) -> tuple[str, ...]:
    """What a plan notes about a table that was published before."""
    return () if entry is None else (f"{_already(entry)}; publish it once more only for somebody who needs it",)


def name_taken(entry: Entry | None) -> str:
    """Why a name cannot be used; given the release of the same table, if there is one."""
    said = "a release of this name is in the ledger already; give this one another name"
    return said if entry is None else f"{_already(entry)}, and {said} if it is to be published once more"


def stale(entries: Sequence[Entry], plan: Plan) -> StalePlan:
    """Why a plan that was not made for the ledger as it is now cannot be published."""
    for entry in entries:
        if (entry.previous, entry.name, entry.input_digest) == (plan.head, plan.name, plan.input_digest):
            return StalePlan(
                f"this plan was published already, as release {entry.number} ({entry.name}); nothing more was published"
            )
    return StalePlan("the ledger has moved on since this release was planned; plan it again")


def overtaken(entry: Entry) -> StalePlan:
    """Why a table that another command published meanwhile is not published once more."""
    return StalePlan(
        f"another command published release {entry.number} ({entry.name}) while this one was at work; look at it, and "
        "publish again if that is still needed"
    )


def _already(entry: Entry) -> str:
    return f"this table was published already as release {entry.number} ({entry.name})"
