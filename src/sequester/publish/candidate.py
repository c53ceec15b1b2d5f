"""Make the next release of a series and let the audit judge it, before anybody knows of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.attacks.audit import Audit, audit_histories
from sequester.causes import Cause
from sequester.errors import GuaranteeError
from sequester.history.history import History
from sequester.history.past import Past
from sequester.ledger.state import State
from sequester.methods.classes import Classes
from sequester.methods.registry import merge_next
from sequester.metrics.measure import Measurement
from sequester.policy.model import Policy
from sequester.publish.anonymize import verify
from sequester.publish.brief import Brief
from sequester.publish.census import Census
from sequester.publish.emit import Judged, write_table
from sequester.publish.keys import by_attack
from sequester.publish.recall import rows_of, with_current_cells
from sequester.publish.remedy import remedy_of
from sequester.publish.roster import (
    Lineup,
    Move,
    Roster,
    delays,
    explain,
    line_up,
    may_move,
    moves,
    nobody,
    refusal,
    refuse_suppression,
    roster_of,
    waits,
)
from sequester.publish.seated import seat_everybody


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Candidate(Lineup):
    """A release that is made and judged, of those who are in it; private until it is published.

    census     the people it was made from
    records    what is published, encoded
    classes    of the records
    histories  of all releases with this one
    merged     Byun's merge of the same rows, where it was made for comparison
    order      the published order of the records; `judged` are the rows in it, to hold the written file to
    causes     why somebody waits, or classes are not those that the method made
    """

    census: Census
    classes: Classes
    histories: tuple[History, ...]
    order: NDArray[np.int64]
    table: pa.Table
    measurement: Measurement
    audit: Audit
    judged: Judged
    merged: Classes | None = None
    notes: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()

    @property
    def of_people(self) -> Classes:
        """The classes of people only."""
        return self.classes if self.seats is None else replace(self.classes, member=self.classes.member[~self.decoy])

    def content(self) -> str:
        """A digest of what will be published."""
        digest = hashlib.sha256()
        for array in (self.classes.lo, self.classes.hi, self.classes.member[self.order]):
            digest.update(array.tobytes())
        digest.update(self.records.sensitive[:, self.order].tobytes())
        return digest.hexdigest()


def make_candidate(census: Census, state: State, brief: Brief, *, only: Move | None = None) -> Candidate:
    """The release in which as many kinds of people come and go as can be hidden: of each kind all, or nobody.

    only  who may come and go in a part, where that is decided for all of them; it may be that nobody is in it
    """
    policy, refused = brief.policy, None
    for move in moves(census, brief) if only is None else (only.of_those_in(census),):
        roster = roster_of(census, move, policy)
        if not len(roster):
            if only is not None:
                return _of_nobody(census, roster, state, brief)
            continue
        if not may_move(census, move, brief):
            refused = refusal(census) if state.people and policy.infeasible == "refuse" else refused
            continue
        try:
            made = _of_roster(census, roster, state, brief, as_before=move.nobody)
        except GuaranteeError as error:
            refused = error if error.causes else error.explained(_even_as_one_class(census, roster, state, brief))
        else:
            notes, causes = delays(census, move, policy), waits(census, move, brief, refused)
            return replace(made, notes=(*made.notes, *notes), causes=(*causes, *made.causes))
    raise explain(nobody(census) if refused is None else refused, census, brief)


def _even_as_one_class(census: Census, roster: Roster, state: State, brief: Brief) -> tuple[Cause, ...]:
    """What works on the people of a roster in one class: then no classes of theirs are safe. Nothing where a method
    found none, or where people are seated, which is another matter."""
    if brief.method.seats or not state.releases:
        return ()
    lineup = line_up(census, roster, state, brief)
    past, top = lineup.past, np.array([[domain.size - 1] for domain in lineup.records.quasi_domains], np.int32)
    whole = Classes(np.zeros(len(past), np.int32), np.zeros_like(top), top)
    histories, audit = audited(past, whole, np.arange(len(past)), brief)
    return by_attack("refused", audit, brief.policy, release=len(histories[0]))


def _of_nobody(census: Census, roster: Roster, state: State, brief: Brief) -> Candidate:
    """The release of a part that everybody left, or that nobody may enter yet: it has no classes."""
    lineup = line_up(census, roster, state, brief)
    if brief.method.seats and state.seats is not None:
        none = np.zeros(0, np.int32)
        absent = np.full(len(state.seats), -1, np.int32)
        lineup = replace(lineup, seats=state.seats.extend(none.astype(np.bool_), none, none, absent))
    records, nobody_ = lineup.records, np.zeros(0, np.int64)
    boxes = np.zeros((len(records.quasi), 0), np.int32)
    classes = Classes(np.zeros(0, np.int32), boxes, boxes)
    histories, audit = _audited(lineup, classes, nobody_, brief)
    if brief.method.looks_back and not audit.holds:
        raise refusal(census)
    measured = Measurement(0, 0, 0, None, None, None, None, loss={}, promises=())
    made = {"census": census, "histories": histories, "audit": audit, "measurement": measured}
    return _candidate(lineup, classes, nobody_, brief.policy, **made)


def _of_roster(census: Census, roster: Roster, state: State, brief: Brief, *, as_before: bool) -> Candidate:
    """The release of a roster; GuaranteeError when no classes of it are safe.

    `as_before`: nobody comes or goes, so that the last release as it is tells nothing new, whatever the method says.
    """
    lineup = (seat_everybody if brief.method.seats else line_up)(census, roster, state, brief)
    try:
        made = _judged(census, lineup, brief)
    except GuaranteeError:
        if not (as_before and state.releases) or brief.method.repairs != "fall back":
            raise
        made = _judged(census, lineup, brief, given=merge_next(lineup.task))
    refuse_suppression(brief.policy, made.classes.suppressed)
    if not made.classes.suppressed:
        return made
    # Whoever the method left out is not in the release: as if she were not in the table.
    out = made.classes.member < 0
    lineup = line_up(census, roster.without(out), state, brief)
    return _judged(census, lineup, brief, given=replace(made.classes, member=made.classes.member[~out]))


def _judged(census: Census, lineup: Lineup, brief: Brief, *, given: Classes | None = None) -> Candidate:
    """Make classes as the method says, check them, and have the audit try everything on the series.

    Raises GuaranteeError when no classes of these records are safe; a method that does not look back may come back
    with findings. `given` are classes of these records that are there already, to be judged.
    """
    policy, past, records = brief.policy, lineup.past, lineup.records
    remedy = remedy_of(lineup, brief, given)
    while True:
        classes = remedy.classes
        measured = verify(records, classes, brief.requirement, policy, people=lineup.people)
        _check_retained(past, classes)
        # The row order depends on seed and release number: one seed for a whole series must not repeat an order.
        order = np.random.default_rng(brief.draws).permutation(np.flatnonzero(classes.member >= 0))
        histories, audit = _audited(lineup, classes, order, brief)
        # What was too large to be decided is not known to be safe.
        if audit.holds or not brief.method.looks_back:
            break
        remedy.improve(audit)
    records = with_current_cells(records, policy, past.retained, classes.member, seed=brief.draws)
    made = {"census": census, "histories": histories, "audit": audit, "measurement": measured}
    told = {"merged": remedy.merged, "notes": remedy.notes, "causes": remedy.causes}
    return _candidate(replace(lineup, records=records), classes, order, policy, **made, **told)


def _candidate(lineup: Lineup, classes: Classes, order: NDArray[np.int64], policy: Policy, **made: Any) -> Candidate:
    """The records of a lineup in these classes as they will be published, and what else was made of them."""
    records = lineup.records
    table = write_table(records, classes, order, numbers=policy.output.numbers)
    judged = Judged(records, classes, order, policy)
    return Candidate(**vars(lineup), classes=classes, order=order, table=table, judged=judged, **made)


def audited(
    past: Past, classes: Classes, order: NDArray[np.int64], brief: Brief, **more: Any
) -> tuple[tuple[History, ...], Audit]:
    """The histories of all releases with these classes as the next, and what the audit says about them, given more."""
    against = brief.policy.protect.against
    histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=brief.name)
    rows = rows_of(histories, past.labels, against)
    return histories, audit_histories(
        histories, brief.policy, against=against, rows=rows, registered=brief.registered, **more
    )


def _audited(
    lineup: Lineup, classes: Classes, order: NDArray[np.int64], brief: Brief
) -> tuple[tuple[History, ...], Audit]:
    """The same of the people of a release, with everything that is known about them."""
    more = {"progress": brief.judging, "seats": lineup.seats, "before": brief.audited}
    return audited(lineup.past, classes, order, brief, **more)


def _check_retained(past: Past, classes: Classes) -> None:
    """Of people who left only their last box is known: what is published about them must cover it."""
    if not past.retained.any():
        return
    last, new = past.last_class()[past.retained], classes.member[past.retained]
    box = past.first.releases[-1]
    if (classes.lo[:, new] > box.lo[:, last]).any() or (classes.hi[:, new] < box.hi[:, last]).any():
        raise AssertionError("a class does not cover what is known of one of its records")
