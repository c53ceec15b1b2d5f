"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def people(count: int) -> str:
    """`1 person`, `2 people`."""
    return "1 person" if count == 1 else f"{count:,} people"


def amount(count: int, noun: str) -> str:
    """`1 band`, `2 bands`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def percent(share: float) -> str:
    """`33.33%`."""
    return f"{100 * share:.4g}%"


def listed(names: Sequence[object]) -> str:
    """`a, b and c`."""
    said = [str(name) for name in names]
    return " and ".join([", ".join(said[:-1]), said[-1]]) if len(said) > 1 else said[0]
