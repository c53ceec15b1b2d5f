"""A release that is not yet published: what it changes, what it promises, what it costs. No cell, no person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sequester.attacks.attack import Untried
from sequester.causes import Cause, Relaxation
from sequester.errors import DataError, StalePlan
from sequester.ledger.state import Entry, folder_name
from sequester.publish.saved import Seed, plain, read_saved, to_text
from sequester.publish.since_last import SinceLast
from sequester.viewable import Viewable

if TYPE_CHECKING:
    from sequester.publish.candidate import Candidate
    from sequester.publish.parts.prepare import InParts


@dataclass(frozen=True)
class Change:
    """People, counted: how the snapshot differs from the last release."""

    newcomers: int = 0
    returned: int = 0
    stayers: int = 0
    changed: int = 0
    leavers: int = 0


@dataclass(frozen=True)
class Waiting:
    """People who cannot be hidden yet, counted.

    held       newcomers (and people who returned) that are not published yet
    retained   people who left and are kept in the release, in their last class
    left_out   records that are not published and not waited for
    oldest     for how many releases the longest has waited by now
    corrected  people with corrected cells, who are published as they were
    """

    held: int = 0
    retained: int = 0
    left_out: int = 0
    oldest: int = 0
    corrected: int = 0


@dataclass(frozen=True)
class Personal:
    """What people themselves allow, counted.

    withheld   records of the snapshot whose people do not agree to be published
    withdrawn  of those, people of the last release, who leave it; `waiting` of them are kept until enough others
               hide their going
    graded     records published with a node in place of a sensitive value; `raised`, because their people want it
    late       people who want it after their value was published: that stays as it was
    """

    withheld: int = 0
    withdrawn: int = 0
    waiting: int = 0
    graded: int = 0
    raised: int = 0
    late: int = 0


@dataclass(frozen=True)
class PodFigures:
    """The pods of a release, counted; decoys are rows about nobody.

    decoys     rows about nobody; `needed` of them must be, whatever the classes: a value is too frequent, or people are
               fewer than k. `ever`: how many decoys all releases had so far
    pods       groups that share their values out
    fewest     fewest people in a class; `promised`: fewest that every class must have
    lineages   groups of people whose values hang together, `largest` and `mean` their people, over all releases
    returners  people who came back to their seats
    facts      about the choice among pods, by name
    shares     by attribute, how far the share of one of its values is at most from that among people (`most`), and how
               many of its `values` are further off than the policy's `distortion` allows (`beyond`)
    """

    decoys: int
    needed: int
    ever: int
    pods: int
    fewest: int
    lineages: int
    largest: int
    mean: float
    returners: int
    promised: int = 1
    facts: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def distorted(self) -> int:
        """Values whose shares the release changes by more than the policy wants."""
        return int(sum(one["beyond"] for one in self.shares.values()))

    def distortion(self) -> Iterator[str]:
        """How far shares of values are from those of the people, a sentence for every attribute that is off."""
        for name, one in self.shares.items():
            if one["beyond"]:
                values = f"{one['beyond']:,.0f} of {one['values']:,.0f} values"
                yield f"{name}: {100 * one['most']:.2g} points off at most, and more than the policy wants for {values}"
        if self.shares and not self.distorted:
            name, most = max(((name, one["most"]) for name, one in self.shares.items()), key=lambda one: one[1])
            yield f"as the policy wants them: {100 * most:.2g} points off at most, of {name}"


@dataclass(frozen=True)
class Check:
    """One attack that the audit tried: what is required, what it reached, and how far that is from breaking.

    `about` says whether it is a promise about each release on its own, or about all of them together.
    """

    TOLD: ClassVar = ("margin", "about")

    attack: str
    adversary: str
    required: float | None
    reached: float | None
    holds: bool

    @property
    def about(self) -> str:
        """Each release, or the series."""
        return "each release" if self.adversary == "outsider" else "the series"

    @property
    def margin(self) -> float | None:
        """People to spare, or confidence to spare; negative when broken."""
        if self.required is None or self.reached is None:
            return None
        return self.reached - self.required if self.required >= 1 else self.required - self.reached

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the margin among them."""
        values: dict[str, Any] = plain(self)
        return values


# What of a plan is not computed again when it is published.
_OF_PRICE = ("source", "loss", "levers", "notes", "seal", "why", "relaxations", "estimated", "belief")


@dataclass(frozen=True, repr=False, kw_only=True)
class Plan(Viewable):
    """The next release, made and judged but known to nobody.

    head, fingerprint, input_digest  the ledger, the policy and the data it was made for; if one moved it is stale
    content                          digest of the classes and rows that will be published
    loss                             by metric, of this release; of every release on its own (`static`: unsafe, for
                                     comparison); and of Byun's merge
    personal                         what people themselves allow
    belief                           by attribute, the largest belief of somebody without prejudice (`most`), and about
                                     how many people one is above its bound (`beyond`)
    gain                             privacy gain against information loss (Reddy et al.), of quasi-identifiers and of
                                     sensitive values, each from 0 to 1
    untried                          attacks that had nothing to work on: nothing is promised about them
    listed                           digest of the registration list, which must be the same for all releases
    everybody_is_new                 it was said that nobody of the table need be recognised
    repeats                          the release that this very table was published as last
    records, people                  rows, and those of them that are about somebody
    pods                             of a release by pods; its losses are those of people
    source                           where the table is, as it is named from any folder
    seal                             by the key of the ledger, of everything else: a saved plan that was edited does
                                     not bear it
    levers                           expected AIL of the newcomers if published now, or collected with one or two more
                                     increments of the same size
    why                              what makes somebody wait, classes coarse, rows be about nobody
    relaxations                      what keys of the policy would buy if they asked for less, where that was asked for
    since_last                       this release beside the last one
    candidate, parts                 the release itself, whole or in parts; a plan that was loaded has neither
    estimated                        which figures are estimates, made on parts of a large table: losses by the name of
                                     what is compared, or `levers`; the loss of the release itself never is
    """

    TOLD: ClassVar = ("holds",)

    series: str
    number: int
    name: str
    head: str
    fingerprint: str
    source: str | None
    input_digest: str = ""
    content: str = ""
    method: Mapping[str, Any]
    seed: Seed
    recipient: str | None
    purpose: str | None
    change: Change = Change()
    waiting: Waiting = Waiting()
    records: int = 0
    classes: int = 0
    checks: tuple[Check, ...] = ()
    findings: int = 0
    loss: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    levers: Mapping[str, float] = field(default_factory=dict)
    personal: Personal = Personal()
    gain: Mapping[str, float] = field(default_factory=dict)
    listed: str | None = None
    notes: tuple[str, ...] = ()
    untried: tuple[Untried, ...] = ()
    everybody_is_new: bool = False
    repeats: int | None = None
    people: int = 0
    pods: PodFigures | None = None
    seal: str = ""
    why: tuple[Cause, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    since_last: SinceLast | None = None
    estimated: tuple[str, ...] = ()
    belief: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    candidate: Candidate | None = field(default=None, compare=False)
    parts: InParts | None = field(default=None, compare=False)

    @property
    def holds(self) -> bool:
        """Whether no attack works."""
        return not self.findings

    @property
    def is_made(self) -> bool:
        """Whether the release itself is there; otherwise it is made anew when it is published."""
        return self.candidate is not None or self.parts is not None

    @property
    def decoys(self) -> int:
        """Rows about nobody."""
        return self.records - self.people

    @property
    def folder(self) -> str:
        """The name of the release folder."""
        return folder_name(self.number, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the records: counts and digests, no cell and no person."""
        values: dict[str, Any] = plain(self)
        return values

    def signed(self) -> bytes:
        """What the seal is of: everything but itself."""
        raw = self.to_dict()
        del raw["seal"]
        return json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()

    def priced_as(self, plan: Plan) -> Plan:
        """The same release made anew, with what a plan of it says about its price, and where that says the table is."""
        pods = self.pods
        if pods is not None and plan.pods is not None:
            pods = replace(pods, facts=plan.pods.facts)
        return replace(self, pods=pods, **{name: getattr(plan, name) for name in _OF_PRICE})

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> Path:
        """Write the plan to a file that `Plan.load` and `sequester publish` read.

        Only its owner may read it: the seed tells the order of the rows.
        """
        from sequester.publish.files import write_text

        if self.source is None:
            raise DataError("only a plan of a file can be saved: publish this one, or plan from a csv or parquet file")
        return write_text(Path(path), to_text(self), mode=0o600)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a saved plan; the records are made anew from its input when it is published."""
        return read_saved(Path(path), cls)

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else f"{self.findings} findings"
        return f"<Plan {self.folder} of {self.series}: {self.records} records in {self.classes} classes, {verdict}>"


def repeats(entries: Sequence[Entry], input_digest: str) -> Entry | None:
    """The last release of exactly this table, if there is one."""
    return next((entry for entry in reversed(entries) if entry.input_digest == input_digest), None)


def note_repeated(entry: Entry | None) -> tuple[str, ...]:
    """What a plan notes about a table that was published before."""
    return () if entry is None else (f"{_already(entry)}; publish it once more only for somebody who needs it",)


def name_taken(entry: Entry | None) -> str:
    """Why a name cannot be used; given the release of the same table, if there is one."""
    said = "a release of this name is in the ledger already; give this one another name"
    return said if entry is None else f"{_already(entry)}, and {said} if it is to be published once more"


def stale(entries: Sequence[Entry], plan: Plan) -> StalePlan:
    """Why a plan that was not made for the ledger as it is now cannot be published."""
    for entry in entries:
        if (entry.previous, entry.name, entry.input_digest) == (plan.head, plan.name, plan.input_digest):
            return StalePlan(
                f"this plan was published already, as release {entry.number} ({entry.name}); nothing more was published"
            )
    return StalePlan("the ledger has moved on since this release was planned; plan it again")


def overtaken(entry: Entry) -> StalePlan:
    """Why a table that another command published meanwhile is not published once more."""
    return StalePlan(
        f"another command published release {entry.number} ({entry.name}) while this one was at work; look at it, and "
        "publish again if that is still needed"
    )


def _already(entry: Entry) -> str:
    return f"this table was published already as release {entry.number} ({entry.name})"
