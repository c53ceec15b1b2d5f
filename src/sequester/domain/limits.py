"""How large a domain may be: far beyond those that people write, and read in seconds."""

from __future__ import annotations

from sequester.errors import DataError, PolicyError, Problem

# Of a category without a hierarchy: classes list their values one by one, so that many values are written many times.
MOST_VALUES = 100_000
MOST_LISTED = 1 << 26
MOST_LEVELS = 100
_MOST_LABELS = 1_000_000
_SHORTEN = "which nobody can read; give it a hierarchy or fewer values, make it `kind: code`, or leave it out"


def refuse_large(leaves: int, levels: int, *, file: str | None = None) -> None:
    """Raise PolicyError if so many leaves with so many labels each are too many."""
    if levels > MOST_LEVELS:
        raise PolicyError(Problem(too_deep(), file=file))
    if leaves * levels > _MOST_LABELS:
        message = f"the hierarchy has more than {_MOST_LABELS:,} labels, counting those of every value"
        raise PolicyError(Problem(f"{message}; leave out values that do not occur, or levels", file=file))


def refuse_many(values: int) -> None:
    """Raise DataError if a category without a hierarchy has too many different values."""
    if values > MOST_VALUES:
        raise DataError(f"has {values:,} different values and no hierarchy, {_SHORTEN}")


def refuse_listing(listed: int) -> None:
    """Raise DataError if the sets of values that classes publish are too long, all together."""
    if listed > MOST_LISTED:
        raise DataError(f"would be published as sets of more than {MOST_LISTED:,} values in all, {_SHORTEN}")


def too_deep() -> str:
    """What is wrong with a hierarchy of too many levels."""
    return f"the hierarchy has more than {MOST_LEVELS} levels; leave some out"
