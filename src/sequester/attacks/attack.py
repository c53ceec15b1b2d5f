"""What an attack is: a declaration. Checks, measures, notes, stories and rows of reports are derived from it.

Every module of an attack ends with its declaration, and `registry` lists them: a new attack is one file and one line.
What of them could not be tried is told too (`Untried`): `holds` says nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.words import tell_plainly
from sequester.history import History
from sequester.history.label import WHOLE_ROW, Labels, Rows
from sequester.policy.adversaries import AdversaryName
from sequester.policy.model import Policy
from sequester.policy.words import listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sequester.attacks.belief import Beliefs
    from sequester.attacks.pods import PodProof


PEOPLE = "the person column in the releases, or a population (`population=...`)"
"""What to give to an attack that asks who is in which class."""


class Reason(NamedTuple):
    """Why an attack had nothing to work on, and what to give so that it has; nothing where nothing would help."""

    why: str
    give: str = ""


@dataclass(frozen=True)
class Untried:
    """Attacks without anything to work on, and why, without cells; `on` are the attributes, where not on all.

    `give` is what they lack: with it they can be tried, and without it what was asked is undecided. It is empty where
    there is nothing to try.
    """

    attacks: tuple[str, ...]
    why: str
    on: tuple[str, ...] = ()
    give: str = ""

    def __str__(self) -> str:
        on = f" on {listed(self.on)}" if self.on else ""
        give = f"; give {self.give}" if self.give else ""
        return f"{listed(self.attacks)} {'was' if len(self.attacks) == 1 else 'were'} not tried{on}: {self.why}{give}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"attacks": list(self.attacks), "why": self.why, "on": list(self.on), "give": self.give}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Untried:
        """The reverse of `to_dict`."""
        return cls(tuple(raw["attacks"]), raw["why"], tuple(raw["on"]), raw.get("give", ""))


ONE_RELEASE = "there is only one release"
NOBODY_IN_COMMON = "no two releases have anybody in common"
UNKNOWN_PEOPLE = "who is in which class is not known"
TOO_MANY_ROWS = "there are too many different rows to count them"
UNPROMISED = "the policy promises nothing of the kind"


@dataclass(frozen=True)
class Audited:
    """An audit before, which held: of so many releases, the first ones, by the same pods, and what it measured."""

    releases: int
    measures: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Setting:
    """What is the same for all attacks of one audit.

    registered  (quasi-identifiers, people) codes of a registration list
    labels      what rows show beside a single attribute, where that is more
    pods        those that were checked and hold; `decoy` says who is nobody, to somebody who knows the true totals
    nobody      who of everybody is a decoy, as the maker recorded it
    """

    policy: Policy
    semantics: Semantics
    registered: NDArray[np.int32] | None
    labels: Labels | None
    pods: PodProof | None = None
    decoy: NDArray[np.bool_] | None = None
    nobody: NDArray[np.bool_] | None = None
    before: Audited | None = None
    beliefs: Beliefs = field(kw_only=True)

    def labels_of(self, history: History) -> Labels | None:
        """What rows show, where a history is about whole rows."""
        return self.labels if history.attribute == WHOLE_ROW else None

    def since(self, attack: str) -> int:
        """How many releases, the first ones, an audit before has measured."""
        return self.before.releases if self.before is not None and attack in self.before.measures else 0


def each_attribute(histories: Sequence[History], rows: Rows) -> Sequence[History]:
    """Every sensitive attribute by itself."""
    return histories


def whole_rows(histories: Sequence[History], rows: Rows) -> Sequence[History]:
    """Rows with all their cells, which tell at least as much as any attribute; attributes where rows are too many."""
    return histories if rows.counted is None else (rows.counted,)


def attributes_and_rows(histories: Sequence[History], rows: Rows) -> Sequence[History]:
    """Every attribute, then rows with all their cells."""
    return histories if rows.counted is None else (*histories, rows.counted)


def fewest(policy: Policy, bound: float | None) -> float | None:
    """Required are so many people or rows, of whatever is inferred."""
    return float(policy.fewest)


def largest_share(policy: Policy, bound: float | None) -> float | None:
    """Required is the bound on shares, if all values have the same."""
    return bound


def no_number(policy: Policy, bound: float | None) -> float | None:
    """What is required is not one number."""
    return None


def unbounded(history: History) -> str | None:
    """Why there is nothing to ask, where no value has a bound."""
    return "no value has a bound" if all(bound >= 1 for bound in history.bounds) else None


@dataclass(frozen=True)
class Attack:
    """One way to use what was published.

    title         of its row in a report
    find          findings and the measure, of one history; not asked where `values` or pods rule it out
    smallest      whether fewer is worse: people or rows that remain. Otherwise more is: a share, or a chance. A
                  function where that depends on what the policy asks
    required      what the policy demands of the measure, given the bound on shares where there is only one
    values        whether it needs values that stay with a person, or ones that change
    releases      the fewest releases it can be tried on
    knows_people  whether it needs to know who is in which class
    knows_values  whether it needs to know who has which value
    classes_only  whether it looks at published classes and not at people, even where they are known
    looks_at      what it is tried on where rows show more than one attribute
    by_pods       what pods that hold prove of it, given how many releases, the first ones, were measured before; None
                  where it must be tried as on any releases
    besides       what is tried in addition, whatever pods prove; None where there is nothing
    by_certain    whether it can use people whose class is certain while that of others is not
    by_chance     what its measure is called where nothing is found, if a number would say too much
    unpromised    why it is not tried by a policy; None where it is
    settled       why there is nothing to try, whatever is known; None where knowing more would help
    nothing       why there was nothing to work on, where none of the above is the reason
    """

    name: str
    adversary: AdversaryName
    title: str
    find: Callable[[History, Setting], Result]
    smallest: bool | Callable[[Policy], bool]
    required: Callable[[Policy, float | None], float | None] = no_number
    values: Literal["permanent", "transient", "any"] = "any"
    releases: int = 2
    knows_people: bool = False
    knows_values: bool = False
    classes_only: bool = False
    looks_at: Callable[[Sequence[History], Rows], Sequence[History]] = each_attribute
    story: Callable[[Finding, History], str] = tell_plainly
    by_pods: Callable[[History, PodProof, int], Result | None] = lambda history, pods, since: None
    besides: Callable[[History, Setting], Result | None] = lambda history, asked: None
    by_certain: bool = False
    by_chance: str | None = None
    unpromised: Callable[[Policy], str | None] = lambda policy: None
    settled: Callable[[History], str | None] = lambda history: None
    nothing: Callable[[History], str] = lambda history: NOBODY_IN_COMMON

    def wants_more(self, policy: Policy) -> bool:
        """Whether fewer is worse, as the policy asks."""
        return self.smallest if isinstance(self.smallest, bool) else self.smallest(policy)

    def worse(self, policy: Policy) -> Callable[..., float]:
        """Which of several measures is the worst."""
        return min if self.wants_more(policy) else max

    def why_untried(self, history: History, policy: Policy, *, named: bool = False) -> Reason:
        """Why it had nothing to work on, in a few words without cells; `named`: asked for without a promise."""
        unpromised = None if named else self.unpromised(policy)
        if unpromised is not None:
            return Reason(unpromised)
        if self.values == "transient" and history.permanent:
            return Reason("values stay, so that releases do not add up")
        if len(history) < self.releases:
            return Reason(ONE_RELEASE)
        if self.values == "permanent" and not history.permanent:
            return Reason("values may change from release to release")
        settled = self.settled(history)
        if settled is not None:
            return Reason(settled)
        if history.trajectories is None and not self.classes_only:
            also = ", or a registration list (`registered=...`)" if self.values == "transient" else ""
            return Reason(UNKNOWN_PEOPLE if self.knows_people else self.nothing(history), f"{PEOPLE}{also}")
        if self.knows_values and history.value is None:
            return Reason("who has which value is not known", "the person column in the releases")
        return Reason(self.nothing(history))
