"""The rows of the next release beside everything published before: what is put into classes, and then judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.methods.classes import Classes
from sequester.methods.method import Seated, Task
from sequester.publish.brief import Brief
from sequester.publish.census import Census
from sequester.publish.kept import continued
from sequester.publish.recall import boxes_of, recall
from sequester.publish.roster import Roster


@dataclass(frozen=True, eq=False, repr=False)
class Lineup:
    """Everybody who is in the release.

    records  the rows to publish: of the table, then of people who left and are kept, or decoys
    past     who they are about, and everything published before
    task     what the method is given
    seats    everybody's seat and pods with this release, where people are seated: decoys come last in `records`
    seated   what the method made of the table, which is made before it is known how many rows there are
    classes  the same, larger where single classes would not keep what is promised
    needed   decoys that must be, whatever the classes
    """

    roster: Roster
    records: Snapshot
    past: Past
    task: Task
    seats: Seats | None = None
    seated: Seated | None = None
    classes: Classes | None = None
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
    values = np.hstack([census.values, records.sensitive[:, new]])
    values[:, person] = records.sensitive
    plain = np.hstack([census.plain, records.plain[:, new]])
    plain[:, person] = records.plain
    known = recall(state, brief.policy, records.domains, requirement=brief.requirement, values=values, plain=plain)
    return Past(known.histories, person, tuple(codes[person] for codes in known.codes), kept, known.labels)


def _assemble(census: Census, roster: Roster, *, corners: NDArray[np.int32]) -> Snapshot:
    """The records of a roster. Of those who left only the class is known: a corner of its box stands for them.

    corners  (quasi-identifiers, classes) the lower ends of the boxes of the last release
    """
    snapshot, rows, gone = census.snapshot, roster.rows, roster.retained
    corner = corners[:, census.last[gone]]
    chosen = pa.array(rows)
    plain = snapshot.insensitive.take(chosen) if snapshot.insensitive.column_names else snapshot.insensitive
    if len(gone) and plain.column_names:
        columns = zip(plain.columns, snapshot.plain_domains, census.plain[:, gone], strict=True)
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
        sensitive=np.ascontiguousarray(np.hstack([snapshot.sensitive[:, rows], census.values[:, gone]])),
        sensitive_domains=snapshot.sensitive_domains,
        person=person,
        insensitive=plain,
        plain=np.ascontiguousarray(np.hstack([snapshot.plain[:, rows], census.plain[:, gone]])),
        plain_domains=snapshot.plain_domains,
        left_out=snapshot.left_out + len(roster.held) + len(roster.left_out),
    )
