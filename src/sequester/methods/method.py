"""What a method is: how a table becomes classes, on its own and after others, and what may be done with the result.

Every method ends with its declaration, and `registry` lists them: a new method is its folder, a line there, and its
options in `policy/methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """A table to be put into classes, and everything that a method may know about it.

    codes       (attributes, records)
    guard       what every class must keep
    options     the method's part of the policy
    past        who the records are about, and everything published before; None for a table on its own
    against     the adversaries to be safe from
    lifetime    what is promised of values that change
    registered  codes of everybody who may be in a release, where nobody knows who is
    label       asks for the column that refinements should tell about
    noise       a seed for what is drawn
    """

    codes: Ints
    domains: tuple[Hierarchy, ...]
    guard: ClassGuard
    options: Any
    past: Past | None = None
    against: Collection[str] = ()
    lifetime: Lifetime | None = None
    registered: Ints | None = None
    label: Callable[[], Ints | None] = lambda: None
    noise: int = 0
    progress: Progress | None = None

    @property
    def history(self) -> Past:
        """The past of a table that has one."""
        if self.past is None:
            raise AssertionError("a table on its own has no past")
        return self.past

    @property
    def table(self) -> tuple[Ints, tuple[Hierarchy, ...], ClassGuard]:
        """What every method begins with."""
        return self.codes, self.domains, self.guard

    @property
    def shared(self) -> dict[str, Any]:
        """What methods that heed the past take by keyword."""
        return {"against": self.against, "seed": self.noise, "progress": self.progress}


def always(options: Any) -> bool:
    """Whatever the options are."""
    return True


def never(options: Any) -> bool:
    """With no options."""
    return False


@dataclass(frozen=True)
class Method:
    """One way to make classes.

    first           of a table on its own, or the first of a series
    following       of the next table of a series
    looks_back      whether it heeds what was published before, and must be safe with it
    from_the_first  whether the first table of a series is made as those that follow
    merges          given its options, whether Byun's merge may take its place where that loses less or is safe
    repairs         whether parts that the audit finds unsafe may fall back to their merge
    together        whether newcomers who are published together stay together, so that waiting for more may pay
    """

    name: str
    first: Callable[[Task], Classes]
    following: Callable[[Task], Classes]
    looks_back: bool = True
    from_the_first: bool = False
    merges: Callable[[Any], bool] = always
    repairs: bool = True
    together: bool = False

    def next(self, task: Task) -> Classes:
        """Classes of the next table of a series."""
        begun = bool(len(task.history.first))
        return (self.following if begun or self.from_the_first else self.first)(task)
