"""Cases that something was wrong with, kept as files and tried again with every run of the tests.

While examples are explored (see `explore.py`) a failing one is written to a file of its own test: what Hypothesis
shrinks it to, the next over the one before, and of a story what is left when all goes that need not be there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis.errors import UnsatisfiedAssumption

from tiny import Case, Story, to_json
from worlds import TooMany

CASES = Path(__file__).parent / "property" / "cases"


@contextmanager
def saving(check: Callable[[Any], object], what: Case | Story) -> Iterator[None]:
    """Write what fails to a file; only while SEQUESTER_SAVE says how its name ends."""
    try:
        yield
    except (TooMany, UnsatisfiedAssumption):
        raise
    except Exception as error:
        name = os.environ.get("SEQUESTER_SAVE")
        if name:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1].split(" ")[0]
            words = "".join(letter if letter.isalnum() else "-" for letter in test.removeprefix("test_"))
            CASES.mkdir(exist_ok=True)
            least = shrunk(check, what, type(error)) if isinstance(what, Story) else what
            (CASES / f"{check.__name__}-{words.strip('-')}-{name}.json").write_text(to_json(least))
        raise


def shrunk(check: Callable[[Any], object], story: Story, error: type[Exception]) -> Story:
    """The story without releases, people and columns that the same error does not need."""
    for smaller in _smaller(story):
        try:
            with suppress(TooMany):
                check(smaller)
        except error:
            return shrunk(check, smaller, error)
        except Exception:  # noqa: BLE001 - another error is another case
            continue
    return story


def _smaller(story: Story) -> Iterator[Story]:
    """Every story with one thing less."""
    for at in range(len(story.present) if len(story.present) > 1 else 0):
        yield replace(story, present=[table for number, table in enumerate(story.present) if number != at])
    for gone in story.cells:
        yield replace(
            story,
            cells={who: cells for who, cells in story.cells.items() if who != gone},
            points={who: point for who, point in story.points.items() if who != gone},
            present=[[who for who in table if who != gone] for table in story.present],
        )
    for name in list(story.columns)[1:]:
        yield replace(
            story,
            columns={other: column for other, column in story.columns.items() if other != name},
            cells={who: {n: cell for n, cell in cells.items() if n != name} for who, cells in story.cells.items()},
        )
