"""Cases that something was wrong with, kept as files and tried again with every run of the tests.

While examples are explored (see `explore.py`) every failing one is written to a file of its own test, the next over the
one before: what stays is what Hypothesis shrank it to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis.errors import UnsatisfiedAssumption

from tiny import Case, Story, to_json
from worlds import TooMany

CASES = Path(__file__).parent / "property" / "cases"


@contextmanager
def saving(check: Callable[[Any], object], what: Case | Story) -> Iterator[None]:
    """Write what fails to the file that SEQUESTER_SAVE names; nothing without it."""
    try:
        yield
    except (TooMany, UnsatisfiedAssumption):
        raise
    except Exception:
        name = os.environ.get("SEQUESTER_SAVE")
        if name:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1].split(" ")[0]
            words = "".join(letter if letter.isalnum() else "-" for letter in test.removeprefix("test_"))
            CASES.mkdir(exist_ok=True)
            (CASES / f"{check.__name__}-{words.strip('-')}-{name}.json").write_text(to_json(what))
        raise
