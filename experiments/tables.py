"""Small tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers with three digits behind the point, or with commas."""
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---' for _ in heads)}|"]
    lines += [f"| {' | '.join(map(_text, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3f}"
    return f"{value:,.0f}" if isinstance(value, float | int) else str(value)
