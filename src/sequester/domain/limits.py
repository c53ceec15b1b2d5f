"""How large a hierarchy may be: far beyond those that people write, and read in seconds."""

from __future__ import annotations

from sequester.errors import PolicyError, Problem

MOST_LEVELS = 100
_MOST_LABELS = 1_000_000


def refuse_large(leaves: int, levels: int, *, file: str | None = None) -> None:
    """Raise PolicyError if so many leaves with so many labels each are too many."""
    if levels > MOST_LEVELS:
        raise PolicyError(Problem(too_deep(), file=file))
    if leaves * levels > _MOST_LABELS:
        message = f"the hierarchy has more than {_MOST_LABELS:,} labels, counting those of every value"
        raise PolicyError(Problem(f"{message}; leave out values that do not occur, or levels", file=file))


def too_deep() -> str:
    """What is wrong with a hierarchy of too many levels."""
    return f"the hierarchy has more than {MOST_LEVELS} levels; leave some out"
