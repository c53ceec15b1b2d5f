"""What a method is: how a table becomes classes, on its own and after others, and what may be done with the result.

Every method ends with its declaration, and `registry` lists them: a new method is its folder, a line there, and its
options in `policy/methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes

if TYPE_CHECKING:
    from sequester.ingest.snapshot import Snapshot
    from sequester.methods.pods.task import MadePods, PodTask
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
    records     the encoded table, for methods that look at a column by its name
    seating     what rows show beside their boxes and who shares values with whom, for methods that seat people
    """

    codes: Ints
    domains: tuple[Hierarchy, ...]
    guard: ClassGuard
    options: Any
    past: Past | None = None
    against: Collection[str] = ()
    lifetime: Lifetime | None = None
    registered: Ints | None = None
    records: Snapshot | None = None
    seating: PodTask | None = None
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
        return {"against": self.against, "progress": self.progress}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Seated(Classes):
    """Classes of the records and, after them, of decoys: rows about nobody. `made` has everybody's seat."""

    made: MadePods


Asks = Callable[[Any], bool]
"""Something that depends on the method's part of the policy."""


def always(options: Any) -> bool:
    """Whatever the options."""
    return True


def never(options: Any) -> bool:
    """Whatever the options."""
    return False


def _nothing_to_say(task: Task, classes: Classes, histories: tuple[History, ...]) -> tuple[str, ...]:
    return ()


def _no_others(task: Task, classes: Classes) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True)
class Method:
    """One way to make classes.

    first           of a table on its own, or the first of a series
    following       of the next table of a series
    looks_back      whether it heeds what was published before, and must be safe with it
    from_the_first  whether the first table of a series is made as those that follow
    seats           whether everybody in the table is published at once, beside decoys (`Seated`): nobody waits
    blind           given its options, whether decoys show any value there can be, so that all must be listed
    leaves_out      given its options, whether some people of a table on its own may be left out
    merges          given its options, whether Byun's merge may take its place where that loses less or is safe
    repairs         what becomes of classes that the audit finds unsafe: the merge in their place, or larger ones
    together        whether newcomers who are published together stay together, so that waiting for more may pay
    regroups        given its options, whether classes of a series are regrouped once they are cut
    notes           what a plan should say about these classes, given the histories with them
    others          figures of this release and of others nearby, by name
    by_levels       whether it only climbs the levels of attributes, so that some attribute must have levels
    lifelong        whether it keeps what is promised of values that change, over all releases
    settings        numbers of a policy that are worth trying beside its own, by name, when a series is rehearsed
    most            records of all tables together beyond which a rehearsal does without it, since it takes too long
    in_parts        whether parts of a large table can be made apart; not where the whole table is recoded alike
    """

    name: str
    first: Callable[[Task], Classes]
    following: Callable[[Task], Classes]
    looks_back: bool = True
    from_the_first: bool = False
    seats: bool = False
    blind: Asks = never
    leaves_out: Asks = never
    merges: Asks = always
    repairs: Literal["fall back", "join"] | None = "fall back"
    together: bool = False
    regroups: Asks = never
    notes: Callable[[Task, Classes, tuple[History, ...]], tuple[str, ...]] = _nothing_to_say
    others: Callable[[Task, Classes], Mapping[str, float]] = _no_others
    by_levels: bool = False
    lifelong: bool = False
    settings: tuple[Mapping[str, float], ...] = ()
    most: int | None = None
    in_parts: bool = True

    def next(self, task: Task) -> Classes:
        """Classes of the next table of a series."""
        return (self.following if self.from_the_first or len(task.history.first) else self.first)(task)
