"""What happens to a series beside its releases, as rows of the log: it is closed, a release is withdrawn.

Each row undoes the one before of its kind, so nothing is ever removed. A reason is in the log alone: whoever wrote it
may have named somebody.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sequester.errors import DataError
from sequester.ledger.state import Event

CLOSED: Final = "closed"
REOPENED: Final = "reopened"
WITHDRAWN: Final = "withdrawn after publication"
RESTORED: Final = "withdrawal undone"
CARRIED: Final = "carried over"

LONGEST_REASON: Final = 1_000


@dataclass(frozen=True)
class Ending:
    """Since when something is so, UTC, and why, in the words of whoever did it."""

    at: str
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def detail(reason: str | None, **facts: str | int) -> str:
    """The detail of a row of the log."""
    if reason is not None and len(reason) > LONGEST_REASON:
        raise DataError(f"a reason has at most {LONGEST_REASON:,} characters")
    return json.dumps({**facts, **({"reason": reason} if reason else {})}, sort_keys=True, separators=(",", ":"))


def closing(events: Sequence[Event]) -> Ending | None:
    """Since when a series is closed, if it is; one that goes on from a closed one is open."""
    last = [event for event in events if event.action in (CLOSED, REOPENED, CARRIED)][-1:]
    return _ending(last[0]) if last and last[0].action == CLOSED else None


def withdrawals(events: Sequence[Event]) -> dict[int, Ending]:
    """The releases that are withdrawn, by number, and since when."""
    found: dict[int, Ending] = {}
    for event in events:
        if event.action == WITHDRAWN and event.release is not None:
            found[event.release] = _ending(event)
        elif event.action == RESTORED and event.release is not None:
            found.pop(event.release, None)
    return found


def ever_withdrawn(events: Sequence[Event]) -> set[int]:
    """The releases that are withdrawn, or were: a command that died may have left their folders at either place."""
    return {event.release for event in events if event.action == WITHDRAWN and event.release is not None}


def release_hash(event: Event) -> str | None:
    """The hash of the release that a withdrawal is about; None for rows about something else."""
    return str(_facts(event).get("hash")) if event.action in (WITHDRAWN, RESTORED) else None


def _ending(event: Event) -> Ending:
    return Ending(event.at, _facts(event).get("reason"))


def _facts(event: Event) -> dict[str, Any]:
    """What the detail of a row says; nothing where the row was changed, which its hash tells."""
    with contextlib.suppress(ValueError):
        facts = json.loads(event.detail)
        return facts if isinstance(facts, dict) else {}
    return {}
