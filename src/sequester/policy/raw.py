"""A policy as it is written, before anything is known to be right: looking into it, and saying what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sequester.policy.document import KeyPath

Issue = tuple[KeyPath, str]


def at(raw: Any, path: KeyPath) -> Any:
    """The value at a path, or None."""
    for part in path:
        if not holds(raw, part):
            return None
        raw = raw[part]
    return raw


def holds(raw: Any, part: str | int) -> bool:
    """Whether there is something at this key or place."""
    if isinstance(raw, list | tuple):
        return isinstance(part, int) and part < len(raw)
    return isinstance(raw, Mapping) and part in raw
