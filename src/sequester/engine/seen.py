"""What all machines of a cluster have to see alike: looked at where work is done, before it is done."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar

from sequester.engine.engine import Means
from sequester.errors import DataError, Problem

Item = TypeVar("Item")
Result = TypeVar("Result")

SAME = "driver and workers need the folders of ledger, spill and tables under the same names"


@dataclass(frozen=True)
class SeenFile:
    """A file as the driver sees it."""

    path: Path
    size: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """A file that is here."""
        return cls(path, path.stat().st_size)

    def find(self) -> Path:
        """Its path, where this machine sees the same file."""
        if not os.access(self.path, os.R_OK):
            raise _refusal("cannot be read", self.path)
        if self.path.stat().st_size != self.size:
            raise _refusal("is not the same file", self.path)
        return self.path


@dataclass(frozen=True, eq=False, repr=False)
class Seeing(Generic[Item, Result]):
    """Work that is begun only where the folders can be seen that it needs."""

    work: Callable[[Item], Result]
    means: Means

    def __call__(self, item: Item) -> Result:
        """Raises DataError where they cannot."""
        refuse_unseen(self.means)
        return self.work(item)


def refuse_unseen(means: Means) -> None:
    """Stop where this machine does not see a folder: what is written there would be seen by nobody else."""
    if not os.access(means.spill, os.R_OK | os.W_OK | os.X_OK):
        raise _refusal("cannot be written to", means.spill)
    for folder in means.folders:
        if not os.access(folder, os.R_OK | os.X_OK):
            raise _refusal("cannot be read", folder)


def _refusal(what: str, path: Path) -> DataError:
    return DataError(Problem(f"{what} on the worker {platform.node()}; {SAME}", file=str(path)))
