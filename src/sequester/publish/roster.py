"""Who is in the next release: the snapshot against everybody published before."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.codec import to_text
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.plain import plain_cells
from sequester.errors import DataError, GuaranteeError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import Entry
from sequester.methods.registry import method_of
from sequester.policy.model import Policy
from sequester.publish.feasible import may_be_hidden
from sequester.publish.plan import Change, Waiting

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Withdrawn:
    """People of the last release who no longer agree to be published: numbers, keyed hashes, and for how many releases
    each has waited already to leave unseen."""

    person: Integers
    hashes: pa.Array
    patience: Integers

    def overdue(self, wait: int) -> Integers:
        """Those who have waited as long as they may."""
        return self.person[self.patience >= wait]


@dataclass(frozen=True, eq=False, repr=False)
class Crowd:
    """The snapshot's people and everybody published before.

    number    per record of the snapshot, its person; -1 for one never published
    last      per person published before, her class of the last release, -1 when absent from it
    values    (sensitive attributes, people published before) codes, in the domains of the snapshot
    plain     (insensitive columns, people published before) codes, likewise
    component per person published before, the people she is tied to by sharing classes, directly or through others
    patience  per record, for how many releases it has waited already
    registered  (quasi-identifiers, people) codes of everybody who may be in a release, where that is all that is known
    withdrawn   people of the last release who no longer agree, where people are asked
    late        people who want their value published as a node after it was published as it is
    decoy       per person published before, whether there is nobody; None: they are all people
    """

    snapshot: Snapshot
    number: Integers
    last: NDArray[np.int32]
    values: NDArray[np.int32]
    plain: NDArray[np.int32]
    component: NDArray[np.int32]
    patience: Integers
    registered: NDArray[np.int32] | None = None
    withdrawn: Withdrawn | None = None
    late: int = 0
    decoy: Mask | None = None

    @property
    def leavers(self) -> Integers:
        """People of the last release who are not in the snapshot."""
        gone = (self.last >= 0) if self.decoy is None else (self.last >= 0) & ~self.decoy
        gone[self.number[self.number >= 0]] = False
        return np.flatnonzero(gone)

    @property
    def newcomers(self) -> Integers:
        """Records of people who were never published."""
        return np.flatnonzero(self.number < 0)

    @property
    def returners(self) -> Integers:
        """Records of people who were published before, but are not in the last release."""
        return np.flatnonzero((self.number >= 0) & (np.append(self.last, np.int32(-1))[self.number] < 0))

    def change(self, *, changed: int) -> Change:
        """How the snapshot differs from the last release."""
        newcomers, returned = len(self.newcomers), len(self.returners)
        return Change(
            newcomers=newcomers,
            returned=returned,
            stayers=len(self.snapshot) - newcomers - returned,
            changed=changed,
            leavers=len(self.leavers),
        )


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


@dataclass(frozen=True, eq=False, repr=False)
class Roster:
    """Who is published: records of the snapshot, then people who left and are published on.

    rows      records of the snapshot that are published
    retained  people published before, not in the snapshot, that are published on
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
        """The same, and these of those who would be published left out; given per record, those published on last."""
        gone = out[: len(self.rows)]
        return Roster(
            self.rows[~gone],
            self.retained[~out[len(self.rows) :]],
            self.held,
            np.sort(np.concatenate([self.left_out, self.rows[gone]])),
        )

    def waiting(self, crowd: Crowd) -> Waiting:
        """The same, counted."""
        return Waiting(
            held=len(self.held),
            retained=len(self.retained),
            left_out=len(self.left_out) + crowd.snapshot.left_out,
            oldest=int(crowd.patience[self.held].max(initial=-1)) + 1,
        )


def must_hide(policy: Policy) -> bool:
    """Whether coming and going has to be hidden; where values change freely, seeing it tells nothing about a value."""
    return "lifetime" not in policy.protect.against or bool({"insider", "neighbor"} & set(policy.protect.against))


def moves(crowd: Crowd, policy: Policy) -> list[Move]:
    """What may be tried, from everybody moving to nobody: with that, the old people stay in their old classes."""
    there = [bool(len(people)) for people in (crowd.newcomers, crowd.leavers, crowd.returners)]
    if not method_of(policy.method).looks_back or not must_hide(policy) or policy.infeasible == "refuse":
        return [Move(*there)]
    ways = product(*([True, False] if any_ else [False] for any_ in there))
    return [Move(*way) for way in sorted(ways, key=sum, reverse=True)]


def roster_of(crowd: Crowd, move: Move, policy: Policy) -> Roster:
    """Who is published if these come and go; the others wait or are left out, as the policy says."""
    nobody = np.zeros(0, np.int64)
    come = np.ones(len(crowd.snapshot), np.bool_)
    come[crowd.newcomers] = move.newcomers
    come[crowd.returners] = move.returners
    stuck = nobody if move.leavers else crowd.leavers
    if policy.infeasible == "suppress":
        come &= ~_with(crowd, stuck)
        return Roster(np.flatnonzero(come), nobody, nobody, np.flatnonzero(~come))
    must = stuck[np.isin(stuck, _overdue(crowd, policy))]
    gone = _with(crowd, must)
    stay = stuck[~np.isin(crowd.component[stuck], crowd.component[must])]
    return Roster(np.flatnonzero(come & ~gone), stay, np.flatnonzero(~come & ~gone), np.flatnonzero(gone))


def may_move(crowd: Crowd, move: Move, requirement: Requirement, policy: Policy) -> bool:
    """Whether some classes might hide who comes and goes: a quick look, before any are made."""
    if not method_of(policy.method).looks_back or not must_hide(policy):
        return True
    rows = [crowd.newcomers] * move.newcomers + [crowd.returners] * move.returners
    entering = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    leaving = crowd.leavers if move.leavers else np.zeros(0, np.int64)
    sets = (crowd.snapshot.sensitive[:, entering], crowd.values[:, leaving])
    guarded, fewest = policy.bounds_values, policy.protect.fewest
    return all(may_be_hidden(requirement, people, guarded=guarded, fewest=fewest) for people in sets)


def delays(crowd: Crowd, move: Move, policy: Policy) -> tuple[str, ...]:
    """What waits, why, and what that costs, in words."""
    kinds = (
        ("newcomers", len(crowd.newcomers), move.newcomers),
        ("people who returned", len(crowd.returners), move.returners),
        ("people who left", len(crowd.leavers), move.leavers),
    )
    stuck = [f"all {kind} ({count:,})" for kind, count, seen in kinds if count and not seen]
    if not stuck:
        return ()
    what = (
        "are left out, and with leavers everybody they were ever published with"
        if (policy.infeasible == "suppress")
        else "wait; those who left are published on as they were"
    )
    return (
        f"{' and '.join(stuck)} cannot be hidden with this release, and {what}. Of one table all come or go, or nobody "
        "does: to choose among them by their values would tell the values. Until then the release is less current than "
        "the table; collecting more changes before publishing helps",
    )


def _overdue(crowd: Crowd, policy: Policy) -> Integers:
    """People who withdrew their consent and may not wait any longer."""
    if crowd.withdrawn is None or policy.consent is None:
        return np.zeros(0, np.int64)
    return crowd.withdrawn.overdue(policy.consent[1].wait)


def _with(crowd: Crowd, leavers: Integers) -> Mask:
    """Records of people who were ever published with one of these, directly or through others.

    Whoever is seen to leave then leaves with all she was ever published with.
    """
    with_them = np.isin(crowd.component, crowd.component[leavers])
    found: Mask = (crowd.number >= 0) & np.append(with_them, False)[crowd.number]
    return found


def refuse_suppression(policy: Policy, people: int) -> None:
    """Stop where a method leaves people out, or their values, and the policy does not want that."""
    if people and policy.infeasible == "refuse":
        raise GuaranteeError(
            f"{people:,} of these people can be in no class that keeps what is promised over all releases. Promise "
            "less, call frequent values ordinary, or leave whole neighborhoods out with `infeasible: suppress`. "
            "Nothing was published.",
            guarantee="lifetime",
        )


def refusal(crowd: Crowd) -> GuaranteeError:
    """Why those who came and went cannot be published together."""
    came, left = len(crowd.newcomers) + len(crowd.returners), len(crowd.leavers)
    who = [f"{came:,} who came" if came else "", f"{left:,} who left" if left else ""]
    return GuaranteeError(
        f"{' and '.join(part for part in who if part)} cannot be hidden: whoever holds the last release sees them "
        "as a set that is too small, or in which a value is too frequent. Collect more changes before publishing, or "
        "let all of them wait with `infeasible: hold-back`. Nothing was published.",
        guarantee="series",
    )


def assemble(crowd: Crowd, roster: Roster, *, corners: NDArray[np.int32]) -> Snapshot:
    """The records of a roster. Of those who left only the class is known: a corner of its box stands for them.

    corners  (quasi-identifiers, classes) the lower ends of the boxes of the last release
    """
    snapshot, rows, gone = crowd.snapshot, roster.rows, roster.retained
    corner = corners[:, crowd.last[gone]]
    chosen = pa.array(rows)
    plain = snapshot.insensitive.take(chosen) if snapshot.insensitive.column_names else snapshot.insensitive
    if len(gone) and plain.column_names:
        columns = zip(plain.columns, snapshot.plain_domains, crowd.plain[:, gone], strict=True)
        cells = [continued(column, domain, codes) for column, domain, codes in columns]
        plain = pa.table(cells, names=plain.column_names)
    person = snapshot.person
    if person is not None:
        person = pa.concat_arrays([person.take(chosen), pa.nulls(len(gone), person.type)])
    return Snapshot(
        quasi_names=snapshot.quasi_names,
        quasi=np.ascontiguousarray(np.hstack([snapshot.quasi[:, rows], corner])),
        quasi_domains=snapshot.quasi_domains,
        sensitive_names=snapshot.sensitive_names,
        sensitive=np.ascontiguousarray(np.hstack([snapshot.sensitive[:, rows], crowd.values[:, gone]])),
        sensitive_domains=snapshot.sensitive_domains,
        person=person,
        insensitive=plain,
        plain=np.ascontiguousarray(np.hstack([snapshot.plain[:, rows], crowd.plain[:, gone]])),
        plain_domains=snapshot.plain_domains,
        left_out=snapshot.left_out + len(roster.held) + len(roster.left_out),
    )


def continued(column: pa.ChunkedArray, domain: Hierarchy, codes: NDArray[np.int32]) -> pa.ChunkedArray:
    """A column and, after it, the cells last published of people who are published on.

    Where these are no cells of the column's type, which was another one then, all of it is published as text.
    """
    try:
        return pa.chunked_array([*column.chunks, plain_cells(domain, codes, column.type)], column.type)
    except pa.ArrowInvalid:
        pass
    texts = [to_text(chunk).cast(pa.string()) for chunk in column.chunks]
    return pa.chunked_array([*texts, plain_cells(domain, codes, pa.string())], pa.string())


def check_registered(
    snapshot: Snapshot, registered: NDArray[np.int32], policy: Policy, *, before: Sequence[Entry]
) -> str:
    """Whoever is in the table must be in the registration list, as far as attributes that do not change can tell.

    The list must be the one of all releases `before`: people who were not in it then diluted nothing. Returns a digest.
    """
    links = [place for place, attribute in enumerate(policy.quasi_identifiers.values()) if not attribute.changes]
    group, first = row_groups(np.hstack([snapshot.quasi[links], registered[links]]))
    here, listed = group[: len(snapshot)], group[len(snapshot) :]
    lacking = np.bincount(here, minlength=len(first)) - np.bincount(listed, minlength=len(first))
    people = int(np.maximum(lacking, 0).sum())
    digest = _list_digest(snapshot, registered, links)
    problem = ""
    if people:
        who = "1 person is" if people == 1 else f"{people:,} people are"
        problem = f"{who} not in it; the list must have everybody who may be in a release, or it hides nobody"
    elif any(entry.summary.get("listed") not in (None, digest) for entry in before):
        problem = (
            "is not the list of the earlier releases, whose promise rests on it: people who were not in it then hid "
            "nobody; put it back"
        )
    if problem:
        raise DataError(Problem(problem, key="protect.lifetime.registered"))
    return digest


def _list_digest(snapshot: Snapshot, registered: NDArray[np.int32], links: Sequence[int]) -> str:
    """Of the list as people by what links them: whatever its order, what else is in it, and which leaves came since."""
    found = hashlib.sha256()
    codes = np.empty((len(links), registered.shape[1]), np.int64)
    for row, place in zip(codes, links, strict=True):
        # Domains only grow, and keep their order: among its own values a list has the same codes for ever.
        used, row[:] = np.unique(registered[place], return_inverse=True)
        names = snapshot.quasi_domains[place].names[0]
        found.update("\0".join(names[code] for code in used.tolist()).encode())
    group, first = row_groups(codes)
    found.update(codes[:, first].tobytes())
    found.update(np.bincount(group).astype(np.int64).tobytes())
    return found.hexdigest()
