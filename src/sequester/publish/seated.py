"""The next release by pods: everybody in the table, at once, beside decoys for those who are missing.

Who is in the release is who is in the table, so nothing about coming and going has to be hidden by waiting. A decoy is
a person like any other in histories and ledger; only what speaks about people leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, GuaranteeError, PolicyError, Problem
from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.methods.classes import Classes
from sequester.methods.method import Seated, Task
from sequester.methods.pods.task import LabelBounds, MadePods, PodTask
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.census import Census
from sequester.publish.kept import continued, with_current_cells, with_current_values
from sequester.publish.labelled import Labelled, barred
from sequester.publish.lineup import Lineup, past_of
from sequester.publish.repair import failing, join
from sequester.publish.roster import Roster

# Columns with more different cells than this share of the people, of so many people at least, tell people apart.
_UNIQUE = 0.5
_FEW = 10


@dataclass(frozen=True, eq=False, repr=False)
class SeatedTable:
    """Records and decoys in classes.

    records  the rows to publish: those of the table, then decoys
    classes  their classes
    task     what they were made from
    seated   what the method made of it
    needed   decoys without which no pods are possible
    """

    records: Snapshot
    classes: Classes
    task: Task
    seated: Seated
    needed: int

    @property
    def made(self) -> MadePods:
        """The pods."""
        return self.seated.made

    @property
    def decoy(self) -> NDArray[np.bool_]:
        """Per row, whether it is about nobody."""
        return np.arange(len(self.records)) >= len(self.records) - len(self.made.decoy_label)


def _refuse_unlisted(policy: Policy) -> None:
    """Stop where blind pods would draw from what people have: a decoy would tell that somebody has its value."""
    told = (
        "blind pods draw the values of decoys from all that there can be, and only a list of them from outside the "
        "table tells nothing about it: "
    )
    problems = [
        Problem(told + "cells of several values have none", key=f"attributes.{name}.kind")
        if kind_of(attribute).several
        else Problem(told + "name them in a hierarchy", key=f"attributes.{name}.hierarchy")
        for name, attribute in policy.sensitive.items()
        if attribute.hierarchy is None and attribute.bands is None
    ]
    problems += [
        Problem(told + "a column that stays has none; say `changes: true`, or leave it out", key=f"attributes.{name}")
        for name in policy.lasting
    ]
    if problems:
        raise PolicyError(problems)


def seat_everybody(census: Census, roster: Roster, state: State, brief: Brief) -> Lineup:
    """Everybody in the table, seated beside those published before; GuaranteeError where too many hang together."""
    before = state.seats or Seats.none()
    if len(before) != state.people:
        raise PolicyError(Problem("what was published so far was not made by pods, so nobody has a seat", key="method"))
    table = seat_table(census.snapshot, brief, before=(census, before))
    records, made = table.records, table.made
    person = np.concatenate([census.number, made.decoy_person])
    past = past_of(census, records, person, state, brief, kept=np.zeros(len(person), np.bool_))
    seats = _seats(before, table, past)
    _check_lineages(seats, brief.policy)
    task = replace(table.task, past=past)
    return Lineup(roster, records, past, task, seats, table.seated, table.classes, table.needed)


def _rows_of_a_class(brief: Brief, bounds: LabelBounds, people: int) -> int:
    """Fewest rows of a class. Where more is promised of what is inferred than pods prove, classes of other pods see to
    the company of every label; those of blind ones must not look at labels, and are larger from the beginning: then few
    have to be joined."""
    k, fewest = brief.policy.protect.k, brief.policy.fewest
    if not _is_blind(brief) or fewest <= int(bounds.seats().min(initial=fewest)):
        return k
    return max(k, min(3 * fewest + 1, people))


def _is_blind(brief: Brief) -> bool:
    return brief.method.blind(brief.policy.method)


def _check_lineages(seats: Seats, policy: Policy) -> None:
    """Stop where more people hang together than is promised."""
    largest = int(np.bincount(seats.lineages()[~seats.decoy]).max(initial=0))
    if policy.linked is not None and largest > policy.linked:
        raise GuaranteeError(
            f"{largest:,} people would hang together through pods, and at most {policy.linked:,} may; allow more with "
            "protect.lineage. Nothing was published.",
            guarantee="lineage",
            required=policy.linked,
            observed=largest,
        )


def seat_table(snapshot: Snapshot, brief: Brief, *, before: tuple[Census, Seats] | None = None) -> SeatedTable:
    """The records of a table in pods and classes, beside those published before, and decoys with all their cells."""
    policy, people = brief.policy, len(snapshot)
    _refuse_few(policy, people)
    _refuse_telling(snapshot, policy)
    if _is_blind(brief):
        _refuse_unlisted(policy)
    labelled = Labelled.of(snapshot, brief, before=None if before is None else before[0])
    number = np.full(people, -1, np.int64)
    if before is not None:
        number = before[0].number
        known = number >= 0
        if (labelled.before[number[known]] != labelled.now[known]).any():
            raise AssertionError("whoever has another label than she was published with is left out before")
    seating = PodTask(
        codes=snapshot.quasi,
        domains=tuple(snapshot.quasi_domains),
        label=labelled.now,
        bounds=labelled.bounds,
        person=number,
        before=Seats.none() if before is None else before[1],
        label_before=labelled.before,
        k=_rows_of_a_class(brief, labelled.bounds, people),
        people=policy.fewest_people,
        inferred=policy.fewest,
        decoys=policy.decoys,
        lineage=policy.linked,
        barred=barred(snapshot, brief, labelled),
        seed=int(np.random.default_rng([*brief.draws, 7]).integers(1 << 62)),
    )
    task = replace(brief.task(snapshot), seating=seating)
    seated = brief.method.following(task)
    if not isinstance(seated, Seated):
        raise AssertionError("a method that seats people says who has which seat")
    classes = brief.printed(seated, snapshot)
    records = _with_decoys(snapshot, labelled, seated.made)
    decoy = np.arange(len(records)) >= people
    records = with_current_cells(records, policy, decoy, classes.member, seed=brief.draws)
    records = with_current_values(records, policy, decoy, classes.member, seed=brief.draws)
    # Pods bound values that stay; what else is promised of a class is kept by larger ones.
    while len(bad := _failing(brief, classes, records, decoy)) and len(classes) > 1:
        classes = brief.printed(join(classes, records.quasi_domains, dict.fromkeys(bad.tolist())), records)
    return SeatedTable(records, classes, task, seated, max(labelled.needed, policy.protect.k - people))


def _failing(brief: Brief, classes: Classes, records: Snapshot, decoy: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The classes that do not keep what is promised of single releases, or have too few people."""
    people = np.bincount(classes.member[~decoy], minlength=len(classes))
    few = np.flatnonzero(people < brief.policy.fewest_people)
    return np.union1d(failing(brief.requirement, classes, records.sensitive), few)


def _refuse_few(policy: Policy, people: int) -> None:
    """Stop where even one class of the whole table has too few people."""
    fewest = policy.fewest_people
    if 0 < people < fewest:
        raise GuaranteeError(
            f"the table, or a part of it, has fewer than the {fewest:,} people that every class must have; collect "
            "more, or promise less with protect.people. Nothing was published.",
            guarantee="people",
            required=fewest,
            observed=people,
        )


def _with_decoys(snapshot: Snapshot, labelled: Labelled, made: MadePods) -> Snapshot:
    """The records and decoys: quasi-identifiers as those of somebody near, and the cells of the label."""
    like, label = made.decoy_like, made.decoy_label
    sensitive, plain = labelled.sensitive[:, label], labelled.plain[:, label]
    insensitive = snapshot.insensitive
    if len(like) and insensitive.column_names:
        columns = zip(insensitive.columns, snapshot.plain_domains, plain, strict=True)
        cells = [continued(column, domain, codes) for column, domain, codes in columns]
        insensitive = pa.table(cells, names=insensitive.column_names)
    person = snapshot.person
    if person is not None:
        person = pa.concat_arrays([person, pa.nulls(len(like), person.type)])
    return replace(
        snapshot,
        quasi=np.ascontiguousarray(np.hstack([snapshot.quasi, snapshot.quasi[:, like]])),
        sensitive=np.ascontiguousarray(np.hstack([snapshot.sensitive, sensitive])),
        insensitive=insensitive,
        plain=np.ascontiguousarray(np.hstack([snapshot.plain, plain])),
        person=person,
        exact=None,
    )


def _seats(before: Seats, table: SeatedTable, past: Past) -> Seats:
    """Everybody's seat and pods after this release."""
    made, known = table.made, len(before)
    new = np.flatnonzero(past.person >= known)
    pod = np.full(len(past.first.people), -1, np.int32)
    pod[past.person] = made.pod
    return before.extend(table.decoy[new], made.type[new], made.seat[new], pod)


def _refuse_telling(snapshot: Snapshot, policy: Policy) -> None:
    """Stop where columns would tell decoys: nearly everybody has a cell of her own in one, or in those that stay."""
    people, names = len(snapshot), snapshot.plain_names
    if people < _FEW:
        return
    telling: list[tuple[str, ...]] = [
        (name,) for name, codes in zip(names, snapshot.plain, strict=True) if _tells(codes[None])
    ]
    lasting = [place for place, name in enumerate(names) if name in policy.lasting]
    if not telling and len(lasting) > 1 and _tells(snapshot.plain[lasting]):
        telling = [tuple(names[place] for place in lasting)]
    if telling:
        message = (
            "nearly everybody has a cell of her own{together}, and a decoy would have somebody else's: whoever sees it "
            "twice knows the decoy; make {it} an identifier, or a quasi-identifier"
        )
        raise DataError(
            Problem(
                message.format(
                    together=" in these together" if len(some) > 1 else "", it="one" if len(some) > 1 else "it"
                ),
                column=", ".join(some),
            )
            for some in telling
        )


def _tells(cells: NDArray[np.int32]) -> bool:
    return bool(len(row_groups(cells)[1]) > _UNIQUE * cells.shape[1])
