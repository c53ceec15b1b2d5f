"""Policies for tests, from a mapping that is right and what should be different in it."""

from __future__ import annotations

from typing import Any

from sequester.policy import Policy


def changed(raw: dict[str, Any], **changes: Any) -> Policy:
    """A policy with some keys changed: `protect__k=3` is the key k of protect."""
    for path, value in changes.items():
        *above, last = path.split("__")
        place = raw
        for key in above:
            place = place[key]
        place[last] = value
    return Policy.model_validate(raw)
