"""Who is in the next release, of the table and of those who left, and their rows beside everything published before.

Whoever holds two releases knows who came and who left in between, as a set. If those who came (or left) are fewer
than may be inferred, or too many of them have one value with a bound, then no release of the whole table hides them:
the table as one class shows it (docs/theory.md, section 5). That looks at all of them together and says yes or no; it
never says who: to choose people by their values would publish these values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.causes import SERIES, Cause, What
from sequester.errors import GuaranteeError
from sequester.guarantees.confidence import Confidence
from sequester.guarantees.requirement import Requirement
from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.methods.classes import Classes
from sequester.methods.method import Seated, Task
from sequester.methods.registry import method_of
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.census import Census
from sequester.publish.keys import all_keys, declared, keys_of
from sequester.publish.plan import Waiting
from sequester.publish.recall import boxes_of, followed_by, recall

Integers = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Move:
    """Which people are seen to come and go in a release: of each kind all of them or nobody.

    Nothing in between: whoever knows the people of the raw table sees who waits, and if that depends on values it tells
    them (four newcomers of six with one value, and c = 1/2: the two who wait have it).
    """

    newcomers: bool
    leavers: bool
    returners: bool

    @property
    def nobody(self) -> bool:
        """Whether nobody comes or goes."""
        return not (self.newcomers or self.leavers or self.returners)

    def of_those_in(self, census: Census) -> Move:
        """The same where some kinds of people are not there."""
        newcomers, leavers, returners = _there(census)
        return Move(self.newcomers and newcomers, self.leavers and leavers, self.returners and returners)


@dataclass(frozen=True, eq=False, repr=False)
class Roster:
    """Who is published: records of the table, then people who left and are kept in the release.

    rows      records of the table that are published
    retained  people published before, not in the table, who are kept in the release
    held      records that wait
    left_out  records that are not published and not waited for
    """

    rows: Integers
    retained: Integers
    held: Integers
    left_out: Integers

    def __len__(self) -> int:
        return len(self.rows) + len(self.retained)

    def without(self, out: Mask) -> Roster:
        """The same, and these of those who would be published left out; given per record, those who left last."""
        gone = out[: len(self.rows)]
        return Roster(
            self.rows[~gone],
            self.retained[~out[len(self.rows) :]],
            self.held,
            np.sort(np.concatenate([self.left_out, self.rows[gone]])),
        )

    def waiting(self, census: Census) -> Waiting:
        """The same, counted."""
        return Waiting(
            held=len(self.held),
            retained=len(self.retained),
            left_out=len(self.left_out) + census.snapshot.left_out,
            oldest=int(census.patience[self.held].max(initial=-1)) + 1,
            corrected=census.corrected,
        )


def must_hide(policy: Policy) -> bool:
    """Whether coming and going has to be hidden; where values change freely, seeing it tells nothing about a value."""
    return "lifetime" not in policy.protect.against or bool({"insider", "neighbor"} & set(policy.protect.against))


def _hides(policy: Policy) -> bool:
    """Whether it matters who comes and goes: where everybody is seated at once, decoys stand in for who is missing."""
    method = method_of(policy.method)
    return method.looks_back and not method.seats and must_hide(policy)


def moves(census: Census, brief: Brief) -> list[Move]:
    """What may be tried, from everybody moving to nobody: with that, the old people stay in their old classes."""
    return moves_of(_there(census), brief.policy)


def moves_of(there: Sequence[bool], policy: Policy) -> list[Move]:
    """The same by which kinds of people are there: newcomers, leavers, people who return."""
    if not _hides(policy) or policy.infeasible == "refuse":
        return [Move(*there)]
    ways = product(*([True, False] if any_ else [False] for any_ in there))
    return [Move(*way) for way in sorted(ways, key=sum, reverse=True)]


def _there(census: Census) -> list[bool]:
    return [bool(len(people)) for people in (census.newcomers, census.leavers, census.returners)]


def roster_of(census: Census, move: Move, policy: Policy) -> Roster:
    """Who is published if these come and go; the others wait or are left out, as the policy says."""
    nobody = np.zeros(0, np.int64)
    come = np.ones(len(census.snapshot), np.bool_)
    come[census.newcomers] = move.newcomers
    come[census.returners] = move.returners
    stuck = nobody if move.leavers else census.leavers
    if policy.infeasible == "suppress":
        come &= ~_with(census, stuck)
        return Roster(np.flatnonzero(come), nobody, nobody, np.flatnonzero(~come))
    withdrawn, consent, must = census.withdrawn, policy.consent, nobody
    if withdrawn is not None and consent is not None:
        # Who has waited to leave as long as she may.
        must = stuck[np.isin(stuck, withdrawn.person[withdrawn.patience >= consent[1].wait])]
    gone = _with(census, must)
    stay = stuck[~np.isin(census.component[stuck], census.component[must])]
    return Roster(np.flatnonzero(come & ~gone), stay, np.flatnonzero(~come & ~gone), np.flatnonzero(gone))


def may_move(census: Census, move: Move, brief: Brief) -> bool:
    """Whether some classes might hide who comes and goes: a quick look, before any are made."""
    if not _hides(brief.policy):
        return True
    rows = [census.newcomers] * move.newcomers + [census.returners] * move.returners
    entering = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    leaving = census.leavers if move.leavers else np.zeros(0, np.int64)
    sets = (census.snapshot.sensitive[:, entering], census.values[:, leaving])
    guarded, fewest = brief.policy.bounds_values, brief.policy.fewest
    return all(may_be_hidden(brief.requirement, people, guarded=guarded, fewest=fewest) for people in sets)


def _kinds(census: Census, move: Move | None = None) -> list[tuple[str, NDArray[np.int32]]]:
    """Kinds of people who come or go, and their sensitive codes; with a move, those that it does not let."""
    now, before = census.snapshot.sensitive, census.values
    kinds = (
        ("newcomers", now[:, census.newcomers], move is None or not move.newcomers),
        ("people who returned", now[:, census.returners], move is None or not move.returners),
        ("people who left", before[:, census.leavers], move is None or not move.leavers),
    )
    return [(kind, codes) for kind, codes, stuck in kinds if stuck]


def waits(census: Census, move: Move, brief: Brief, refused: GuaranteeError | None) -> tuple[Cause, ...]:
    """Why those wait whom a move does not let come or go; `refused` is what became of one that would have."""
    what: What = "left out" if brief.policy.infeasible == "suppress" else "waiting"
    causes: list[Cause] = []
    for kind, codes in _kinds(census, move):
        if codes.shape[1]:
            # Where they could be seen as a set: what works even on one class with them, or that no classes were found.
            alike = refused.causes if refused is not None else ()
            alike = alike or (Cause(what, SERIES, keys=all_keys(brief.policy)),)
            causes += _in_the_way(what, kind, codes, brief) or [
                Cause(what, one.attack, one.attribute, who=kind, people=codes.shape[1], keys=one.keys) for one in alike
            ]
    return tuple(causes)


def _in_the_way(what: What, kind: str, codes: NDArray[np.int32], brief: Brief) -> list[Cause]:
    """What keeps people of one kind from being seen as a set."""
    policy = brief.policy
    found = obstacles(brief.requirement, codes, guarded=policy.bounds_values, fewest=policy.fewest)
    # Elements of one attribute are not told apart: their names are values.
    worst: dict[str, Obstacle] = {}
    for one in found:
        if one.attribute not in worst or one.observed > worst[one.attribute].observed:
            worst[one.attribute] = one
    return [
        Cause(
            what,
            "difference",
            one.attribute,
            who=kind,
            people=codes.shape[1],
            required=one.required,
            observed=None if one.attribute else one.observed,
            keys=keys_of(policy, "difference", declared(policy, one.attribute), about_value=bool(one.attribute)),
        )
        for one in worst.values()
    ]


def explain(error: GuaranteeError, census: Census, brief: Brief) -> GuaranteeError:
    """A refusal with what is in the way: of who comes and goes, of the table as one class, or what it says itself."""
    if error.causes:
        return error
    policy, causes = brief.policy, []
    if _hides(brief.policy) and len(census.last):
        for kind, codes in _kinds(census):
            causes += _in_the_way("refused", kind, codes, brief)
    if policy.infeasible == "refuse":
        causes = [replace(one, keys=(*one.keys, "infeasible")) for one in causes]
    snapshot = census.snapshot
    whole = replace(brief.requirement, k_map=None).check(np.zeros(len(snapshot), np.int32), snapshot.sensitive)
    for outcome in whole if len(snapshot) else ():
        if not outcome.holds:
            view = outcome.view or ""
            keys = keys_of(policy, outcome.name, declared(policy, view))
            cause = Cause("refused", outcome.name, view, who="the table as one class", keys=keys)
            causes.append(replace(cause, required=outcome.required, observed=outcome.observed))
    if not causes:
        required, observed = (one if isinstance(one, int | float) else None for one in (error.required, error.observed))
        own = error.guarantee in ("lineage", "people")
        keys = (f"protect.{error.guarantee}",) if own else all_keys(policy)
        causes = [Cause("refused", error.guarantee, required=required, observed=observed, keys=keys)]
    return error.explained(causes)


def delays(census: Census, move: Move, policy: Policy) -> tuple[str, ...]:
    """What waits, why, and what that costs, in words."""
    stuck = [f"all {kind} ({codes.shape[1]:,})" for kind, codes in _kinds(census, move) if codes.shape[1]]
    if not stuck:
        return ()
    what = (
        "are left out, and with leavers everybody they were ever published with"
        if policy.infeasible == "suppress"
        else "wait; those who left are kept in the release as they were"
    )
    return (
        f"{' and '.join(stuck)} cannot be hidden with this release, and {what}. Of one table all come or go, or nobody "
        "does: to choose among them by their values would tell the values. Until then the release is less current than "
        "the table; collecting more changes before publishing helps",
    )


def _with(census: Census, leavers: Integers) -> Mask:
    """Records of people who were ever published with one of these, directly or through others.

    Whoever is seen to leave then leaves with all she was ever published with.
    """
    with_them = np.isin(census.component, census.component[leavers])
    records: Mask = (census.number >= 0) & np.append(with_them, False)[census.number]
    return records


def refuse_suppression(policy: Policy, people: int) -> None:
    """Stop where a method leaves people out, or their values, and the policy does not want that."""
    if people and policy.infeasible == "refuse":
        raise GuaranteeError(
            f"{people:,} of these people can be in no class that keeps what is promised over all releases. Promise "
            "less, call frequent values ordinary, or leave whole neighborhoods out with `infeasible: suppress`. "
            "Nothing was published.",
            guarantee="lifetime",
        )


def refusal(census: Census) -> GuaranteeError:
    """Why those who came and went cannot be published together."""
    came, left = len(census.newcomers) + len(census.returners), len(census.leavers)
    who = [f"{came:,} who came" if came else "", f"{left:,} who left" if left else ""]
    return GuaranteeError(
        f"{' and '.join(part for part in who if part)} cannot be hidden: whoever holds the last release sees them "
        "as a set that is too small, or in which a value is too frequent. Collect more changes before publishing, or "
        "let all of them wait with `infeasible: hold-back`. Nothing was published.",
        guarantee="series",
    )


def nobody(census: Census | None) -> GuaranteeError:
    """Why no record is left to publish; without a census, in any part."""
    if census is not None and census.withdrawn is not None and len(census.withdrawn.person):
        return GuaranteeError(
            "nobody can be published: some withdrew their consent, too few or too similar for their going not to "
            "show, and everybody else was published with them. Let withdrawals wait for others with `wait`. "
            "Nothing was published.",
            guarantee="series",
        )
    return GuaranteeError(
        "nobody can be published yet: these people are too few, or too similar, to hide each other; collect "
        "more records, require less, or call frequent values ordinary. Nothing was published.",
        guarantee="series",
    )


class Obstacle(NamedTuple):
    """Why people cannot be seen as a set: too few are `observed`, or the share of a value of an attribute is."""

    attribute: str
    required: float
    observed: float


def obstacles(
    requirement: Requirement, sensitive: NDArray[np.int32], *, guarded: bool, fewest: int
) -> tuple[Obstacle, ...]:
    """What keeps these people, given by their (attributes, people) codes, from being seen to come or go as a set.

    Less than the `fewest` that may be inferred may where none of them has a bounded value, though values are bounded
    (`guarded`). Nobody always may.
    """
    people = sensitive.shape[1]
    views = requirement.views(sensitive) if requirement.names and people else []
    bounds = [(view, bound) for view in views if (bound := view.criterion(Confidence)) is not None]
    if 0 < people < fewest:
        limits = [np.array([bound < 1 for bound in confidence.bounds])[view.codes] for view, confidence in bounds]
        may = guarded and not any(limit.any() for limit in limits)
        return () if may else (Obstacle("", float(fewest), float(people)),)
    found = []
    for view, confidence in bounds:
        counts = np.bincount(view.codes, minlength=view.size)[None, :]
        if not bool(confidence.holds(counts).all()):
            found.append(Obstacle(view.name, *confidence.worst(counts)))
    return tuple(found)


def may_be_hidden(requirement: Requirement, sensitive: NDArray[np.int32], *, guarded: bool, fewest: int) -> bool:
    """Whether nothing keeps these people from being seen to come or go as a set."""
    return not obstacles(requirement, sensitive, guarded=guarded, fewest=fewest)


@dataclass(frozen=True, eq=False, repr=False)
class Lineup:
    """Everybody who is in the release.

    records  the rows to publish: of the table, then of people who left and are kept, or decoys
    past     who they are about, and everything published before
    task     what the method is given
    seats    everybody's seat and pods with this release, where people are seated: decoys come last in `records`
    seated   what the method made of the table, which is made before it is known how many rows there are
    joined   the same, larger where single classes would not keep what is promised
    needed   decoys that must be, whatever the classes
    """

    roster: Roster
    records: Snapshot
    past: Past
    task: Task
    seats: Seats | None = None
    seated: Seated | None = None
    joined: Classes | None = None
    needed: int = 0

    @property
    def decoy(self) -> NDArray[np.bool_]:
        """Per record, whether it is about nobody."""
        return np.zeros(len(self.records), np.bool_) if self.seats is None else self.seats.decoy[self.past.person]

    @property
    def people(self) -> NDArray[np.bool_] | None:
        """Per record, whether it is about somebody; None where all are."""
        return None if self.seats is None else ~self.decoy


def line_up(census: Census, roster: Roster, state: State, brief: Brief) -> Lineup:
    """The rows of a roster, as they are given to a method."""
    corners = np.zeros((len(census.snapshot.quasi), 0), np.int32)
    if state.releases:
        corners = boxes_of(state.releases[-1], census.snapshot.quasi_names, census.snapshot.domains)[0]
    records = _assemble(census, roster, corners=corners)
    kept = np.arange(len(records)) >= len(roster.rows)
    person = np.concatenate([census.number[roster.rows], roster.retained])
    past = past_of(census, records, person, state, brief, kept=kept)
    return Lineup(roster, records, past, replace(brief.task(records), past=past))


def past_of(
    census: Census,
    records: Snapshot,
    person: NDArray[np.int64],
    state: State,
    brief: Brief,
    *,
    kept: NDArray[np.bool_],
) -> Past:
    """Everything published before beside these records; people who are new, -1 as persons, are numbered on.

    kept  per record, whether it is about somebody who left
    """
    person, new = person.copy(), np.flatnonzero(person < 0)
    person[new] = state.people + np.arange(len(new))
    values, plain = of_everybody(census, records, person, state.people + len(new))
    known = recall(state, brief.policy, records.domains, requirement=brief.requirement, values=values, plain=plain)
    return Past(known.histories, person, tuple(codes[person] for codes in known.codes), kept, known.labels)


def of_everybody(census: Census, records: Snapshot, person: NDArray[np.int64], people: int) -> tuple[Codes, Codes]:
    """Sensitive and insensitive codes of everybody: as they were published before, and of these persons as now."""
    before, now = (census.values, census.plain), (records.sensitive, records.plain)
    values, plain = (np.zeros((len(codes), people), np.int32) for codes in now)
    for codes, then, own in zip((values, plain), before, now, strict=True):
        codes[:, : then.shape[1]] = then
        codes[:, person] = own
    return values, plain


def _assemble(census: Census, roster: Roster, *, corners: Codes) -> Snapshot:
    """The records of a roster. Of those who left only the class is known: a corner of its box stands for them.

    corners  (quasi-identifiers, classes) the lower ends of the boxes of the last release
    """
    snapshot, gone = census.snapshot, roster.retained
    corner = corners[:, census.last[gone]]
    records = followed_by(snapshot.take(roster.rows), corner, census.values[:, gone], census.plain[:, gone])
    return replace(records, left_out=snapshot.left_out + len(roster.held) + len(roster.left_out))
