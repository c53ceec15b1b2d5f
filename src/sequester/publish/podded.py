"""The next release by pods: everybody in the table, at once, beside decoys for those who are missing.

Who is in the release is who is in the table, so nothing about coming and going has to be hidden by waiting. A decoy is
a person like any other in histories and ledger; only what speaks about people leaves it out.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.attacks.attack import Audited
from sequester.attacks.audit import Audit, audit_histories
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, GuaranteeError, PolicyError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.pods.frontier import frontier
from sequester.methods.pods.make import make
from sequester.methods.pods.task import LabelBounds, MadePods, PodTask
from sequester.policy.methods import Pods
from sequester.policy.model import Policy
from sequester.publish.anonymize import verify, written
from sequester.publish.candidate import Candidate
from sequester.publish.emit import as_printed, write_table
from sequester.publish.exact import Judged
from sequester.publish.kept import with_current_cells, with_current_values
from sequester.publish.labelled import Labelled, barred
from sequester.publish.recall import recall, recall_labels, rows_of
from sequester.publish.release import Release, weights
from sequester.publish.repair import as_one, failing, found_in, join
from sequester.publish.roster import Crowd, Roster, continued

Progress = Callable[[str, int, int], None]

# Columns with more different cells than this share of the people, of so many people at least, tell people apart.
_UNIQUE = 0.5
_FEW = 10
# How often classes are joined where the audit finds something; the last time all of them are.
_REPAIRS = 24


@dataclass(frozen=True, eq=False, repr=False)
class Podded:
    """Records and decoys in classes.

    records  the rows to publish: those of the table, then decoys
    classes  their classes
    made     the pods
    needed   decoys without which no pods are possible
    facts    about the choice made
    """

    records: Snapshot
    classes: Classes
    made: MadePods
    needed: int
    facts: Mapping[str, float]

    @property
    def decoy(self) -> NDArray[np.bool_]:
        """Per row, whether it is about nobody."""
        found = np.ones(len(self.records), np.bool_)
        found[: len(self.records) - len(self.made.decoy_label)] = False
        return found


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


def make_podded(
    crowd: Crowd,
    state: State,
    policy: Policy,
    *,
    name: str,
    seed: list[int],
    audited: Audited | None,
    progress: Progress | None,
) -> Candidate:
    """The release of everybody in the table, judged; GuaranteeError when what is promised cannot be kept.

    `audited` is what was found of the releases before, under the same policy.
    """
    snapshot, before = crowd.snapshot, state.seats or Seats.none()
    if len(before) != state.people:
        raise PolicyError(Problem("what was published so far was not made by pods, so nobody has a seat", key="method"))
    found = seat_records(snapshot, policy, before=(crowd, before), seed=seed)
    past = _past(crowd, found, state, policy)
    requirement = Requirement.from_policy(policy, snapshot.sensitive_domains)
    records, classes, decoy = found.records, found.classes, found.decoy
    order = np.random.default_rng(seed).permutation(len(records))
    seats = _seats(before, found, past)
    _check_lineages(seats, policy)
    printed = partial(as_printed, domains=records.quasi_domains, numbers=policy.output.numbers)
    joined = 0
    for attempt in range(_REPAIRS + 1):
        measured = verify(records, classes, requirement, policy, people=~decoy)
        histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=name)
        audit = audit_histories(
            histories,
            policy,
            against=policy.protect.against,
            rows=rows_of(histories, past.labels, policy.protect.against),
            progress=progress,
            seats=seats,
            before=audited,
        )
        if audit.holds and not audit.unsolved:
            break
        if attempt == _REPAIRS or len(classes) == 1:
            raise _unsafe(audit)
        whole = attempt == _REPAIRS - 1 or not audit.findings
        hit = found_in(past, classes, audit.findings)
        coarser = as_one(classes) if whole else join(classes, records.quasi_domains, hit)
        joined += len(classes) - len(coarser)
        classes = printed(coarser)
    nobody = np.zeros(0, np.int64)
    return Candidate(
        roster=Roster(np.arange(len(snapshot)), nobody, nobody, nobody),
        records=records,
        past=past,
        guard=ClassGuard.of(requirement, records.sensitive),
        classes=classes,
        order=order,
        table=write_table(records, classes, order, numbers=policy.output.numbers),
        measurement=measured,
        audit=audit,
        notes=_notes(policy, joined),
        judged=Judged.of(records, classes, order, policy),
        seats=seats,
        needed=found.needed,
        facts=dict(found.facts),
    )


def _rows_of_a_class(policy: Policy, bounds: LabelBounds, people: int) -> int:
    """Fewest rows of a class. Where more is promised of what is inferred than pods prove, classes of other pods see to
    the company of every label; those of blind ones must not look at labels, and are larger from the beginning: then few
    have to be joined."""
    k, fewest = policy.protect.k, policy.protect.fewest
    blind = isinstance(policy.method, Pods) and policy.method.blind
    if not blind or fewest <= int(bounds.seats().min(initial=fewest)):
        return k
    return max(k, min(3 * fewest + 1, people))


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


def anonymize_podded(snapshot: Snapshot, policy: Policy, *, seed: int | None) -> Release:
    """One table with no history, in pods."""
    draws = [secrets.randbits(128) if seed is None else seed]
    found = seat_records(snapshot, policy, seed=draws)
    records, classes, people = found.records, found.classes, ~found.decoy
    requirement = Requirement.from_policy(policy, snapshot.sensitive_domains)
    measured = verify(records, classes, requirement, policy, people=people)
    order = np.random.default_rng(draws).permutation(len(records))
    table, judged = written(records, classes, order, policy)
    return Release(
        table=table,
        measurement=measured,
        policy=policy,
        person=snapshot.person,
        classes=replace(classes, member=classes.member[people]),
        judged=judged,
        weights=weights(classes, people, order, policy),
    )


def seat_records(
    snapshot: Snapshot, policy: Policy, *, before: tuple[Crowd, Seats] | None = None, seed: list[int]
) -> Podded:
    """The records of a table in pods and classes, beside those published before, and decoys with all their cells."""
    _refuse_telling(snapshot, policy)
    if isinstance(policy.method, Pods) and policy.method.blind:
        _refuse_unlisted(policy)
    labelled = Labelled.of(snapshot, policy, before=None if before is None else before[0])
    people = len(snapshot)
    if before is not None:
        known = before[0].number >= 0
        # Whoever has another label than she was published with was found before, and is not here.
        assert (labelled.before[before[0].number[known]] == labelled.now[known]).all()
    task = PodTask(
        codes=snapshot.quasi,
        domains=tuple(snapshot.quasi_domains),
        label=labelled.now,
        bounds=labelled.bounds,
        person=np.full(people, -1, np.int64) if before is None else before[0].number,
        before=Seats.none() if before is None else before[1],
        label_before=labelled.before,
        k=_rows_of_a_class(policy, labelled.bounds, people),
        inferred=policy.protect.fewest,
        decoys=policy.decoys,
        lineage=policy.linked,
        barred=barred(snapshot, policy, labelled),
        blind=isinstance(policy.method, Pods) and policy.method.blind,
        one_type=isinstance(policy.method, Pods) and policy.method.classes == "one-type",
        leaving=policy.method.leaving if isinstance(policy.method, Pods) else None,
        seed=int(np.random.default_rng([*seed, 7]).integers(1 << 62)),
    )
    made = make(task)
    printed = partial(as_printed, domains=snapshot.quasi_domains, numbers=policy.output.numbers)
    classes = printed(Classes(made.member, made.lo, made.hi))
    records = _with_decoys(snapshot, labelled, made)
    decoy = np.arange(len(records)) >= people
    records = with_current_cells(records, policy, decoy, classes.member, seed=seed)
    records = with_current_values(records, policy, decoy, classes.member, seed=seed)
    # Pods bound values that stay; what else is promised of a class is kept by larger ones.
    requirement = Requirement.from_policy(policy, snapshot.sensitive_domains)
    while len(bad := failing(requirement, classes, records.sensitive)) and len(classes) > 1:
        classes = printed(join(classes, records.quasi_domains, dict.fromkeys(bad.tolist())))
    facts = {**made.facts, **(frontier(task, made) if before is not None else {})}
    return Podded(records, classes, made, max(labelled.needed, policy.protect.k - people), facts)


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


def _past(crowd: Crowd, found: Podded, state: State, policy: Policy) -> Past:
    """Everything published before beside the rows to publish; those who are new are numbered on, decoys last."""
    records = found.records
    person = np.concatenate([crowd.number, found.made.decoy_person])
    new = np.flatnonzero(person < 0)
    person[new] = state.people + np.arange(len(new))
    values = np.hstack([crowd.values, records.sensitive[:, new]])
    values[:, person] = records.sensitive
    plain = np.hstack([crowd.plain, records.plain[:, new]])
    plain[:, person] = records.plain
    histories, codes = recall(state, policy, records.domains, values=values)
    labels = recall_labels(state, policy, records.domains, values=values, plain=plain)
    nobody = np.zeros(len(person), np.bool_)
    return Past(histories, person, tuple(code[person] for code in codes), nobody, labels)


def _seats(before: Seats, found: Podded, past: Past) -> Seats:
    """Everybody's seat and pods after this release."""
    made, known = found.made, len(before)
    new = np.flatnonzero(past.person >= known)
    pod = np.full(len(past.first.people), -1, np.int32)
    pod[past.person] = made.pod
    return before.extend(found.decoy[new], made.type[new], made.seat[new], pod)


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


def _notes(policy: Policy, joined: int) -> tuple[str, ...]:
    found = []
    if joined:
        classes = "1 class was" if joined == 1 else f"{joined:,} classes were"
        found.append(f"{classes} joined with others, where the audit found less than is promised of all releases")
    if policy.consent is not None and policy.consent[1].wait:
        found.append("withdrawals of consent take effect at once: with pods nobody has to wait (`wait` is not used)")
    return tuple(found)


def _unsafe(audit: Audit) -> GuaranteeError:
    worst = audit.findings[0] if audit.findings else None
    reached = "" if worst is None else f": {worst.attack} reaches {worst.observed:.4g} for {worst.required:.4g}"
    return GuaranteeError(
        f"no classes of whole pods were found that keep what is promised of all releases{reached}. Promise less, or "
        "against fewer. Nothing was published.",
        guarantee="series" if worst is None else worst.attack,
        required=None if worst is None else worst.required,
        observed=None if worst is None else worst.observed,
    )
