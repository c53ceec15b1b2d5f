"""What forces a release to be less than the table: somebody waits, classes are coarse, rows are about nobody.

A cause counts and names keys of the policy; it holds no cell and no person. What one of these keys would buy, if it
asked for less, is a relaxation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

What = Literal["refused", "waiting", "left out", "merged", "decoys", "coarse"]

SERIES = "series"
"""In place of an attack: everything that is promised of all releases together."""


@dataclass(frozen=True)
class Cause:
    """One reason.

    what       that comes of it
    attack     whose success would follow otherwise, or the promise that a single release must keep
    attribute  that is told otherwise; empty where it is about who people are, or about all of them
    who        the people it is about, as a set
    people     how many they are, and `classes` in how many classes of this release
    required   what is promised, and `observed` what would be; of values of a few people that is not told
    lost       loss (AIL) that it brings
    keys       of the policy, that would relax it
    """

    TOLD: ClassVar = ("text",)

    what: What
    attack: str
    attribute: str = ""
    who: str = ""
    people: int = 0
    classes: int = 0
    required: float | None = None
    observed: float | None = None
    lost: float | None = None
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One sentence, without what would relax it."""
        return _SAID[self.what](self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, and the sentence (`text`)."""
        return {**asdict(self), "keys": list(self.keys), "text": str(self)}


@dataclass(frozen=True)
class Relaxation:
    """What the release would be if one key of the policy asked for one step less: made and audited, never published.

    key      as it stands in the policy; `now` and `then` are what it says, no value of the table among it
    running  whether a series that has begun may take it; otherwise one that goes on from it (`after`)
    made     whether there is a release then; the rest is empty where there is none, or where it was not tried
    tried    whether that was tried
    loss     by metric, and in how many `classes`; `decoys` among the rows, and people `waiting` or left out
    """

    key: str
    now: str
    then: str
    running: bool
    tried: bool = False
    made: bool = False
    loss: Mapping[str, float] = field(default_factory=dict)
    classes: int = 0
    decoys: int = 0
    waiting: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "loss": dict(self.loss)}


def because(causes: Iterable[Cause]) -> str:
    """Causes as one sentence with the keys that would relax each; empty without any."""
    said = [f"{cause} ({', '.join(cause.keys)})" if cause.keys else str(cause) for cause in causes]
    return f"What is in the way, and the keys that would relax it: {'; '.join(said)}." if said else ""


def _of(cause: Cause) -> str:
    return f"{cause.attack} of {cause.attribute}" if cause.attribute else cause.attack


def _as_a_set(cause: Cause) -> str:
    """Why some people cannot be published together, or not be seen to come or go."""
    who = f"{cause.who} ({cause.people:,})" if cause.people else cause.who or "this release"
    if cause.required is None:
        safe = "together with the earlier releases" if cause.attack == SERIES else f"from {_of(cause)}"
        return f"{who}: no classes were found that are safe {safe}"
    if cause.attack != "difference":
        return f"{who}: {_of(cause)} would come to {cause.observed or 0:,.3g}, and {cause.required:,.3g} is promised"
    # How frequent is not told: of a few people that would be too much.
    asked = f"at least {cause.required:,.0f} must be"
    if cause.attribute:
        asked = f"a value of {cause.attribute} is more frequent among them than {cause.required:.3g}"
    return f"{who}: they are seen as a set (difference), and {asked}"


def _refused(cause: Cause) -> str:
    if cause.classes or (cause.people and not cause.who):
        return f"{_of(cause)} would reach {_classes(cause.classes)} and {_people(cause.people)}"
    return _as_a_set(cause)


def _left_out(cause: Cause) -> str:
    records = "1 record fits" if cause.people == 1 else f"{cause.people:,} records fit"
    return f"{records} into no class that keeps the promise ({_of(cause)})"


def _merged(cause: Cause) -> str:
    reached = f"{_of(cause)} would have reached {_classes(cause.classes)} and {_people(cause.people)}"
    return f"classes were joined, or kept as they were: {reached}" if cause.people or cause.classes else cause.who


def _decoys(cause: Cause) -> str:
    rows = f"{cause.observed or 0:,.0f} rows about nobody"
    if cause.attack == "k":
        return f"{rows}: people are fewer than k"
    if cause.attribute:
        return f"{rows}: a value of {cause.attribute} is too frequent to be shared out"
    return f"{rows}: they stand in for partners who left, or who are far away"


def _coarse(cause: Cause) -> str:
    cost = "" if cause.lost is None else f", loss (AIL) +{cause.lost:.3g}"
    if cause.attack == "k":
        return f"k: {_classes(cause.classes)} are too small to be cut{cost}"
    if cause.attack == SERIES:
        return f"{cause.who}: {_classes(cause.classes)} are coarser for it{cost}"
    if cause.lost is None:
        return f"{_of(cause)}: without a memory it would reach {_classes(cause.classes)} and {_people(cause.people)}"
    return f"{_of(cause)}: {_classes(cause.classes)} are coarser for it{cost}"


def _classes(count: int) -> str:
    return "1 class" if count == 1 else f"{count:,} classes"


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


_SAID = {
    "refused": _refused,
    "waiting": _as_a_set,
    "left out": _left_out,
    "merged": _merged,
    "decoys": _decoys,
    "coarse": _coarse,
}
