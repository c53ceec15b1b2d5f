"""Make the next release of a series and let the audit judge it, before anybody knows of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.attacks.audit import Audit, audit_histories
from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history.history import History
from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.ingest.snapshot import Snapshot
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.registry import merge_next, method_of
from sequester.metrics.loss import ail
from sequester.metrics.measure import Measurement
from sequester.policy.methods import Group
from sequester.policy.model import Policy
from sequester.publish.anonymize import verify
from sequester.publish.emit import as_printed, write_table
from sequester.publish.exact import Judged
from sequester.publish.kept import with_current_cells
from sequester.publish.recall import rows_of
from sequester.publish.repair import fall_back
from sequester.publish.roster import Crowd, Roster
from sequester.publish.tasks import task_of

Progress = Callable[[str, int, int], None]

_REPAIRS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Candidate:
    """A release that is made and judged; private until it is published.

    records          what is published, encoded; `past` says who they are about, `guard` what each class must keep
    order            the published order of the records; `judged` are the rows in it, to hold the written file to
    crowd            the snapshot it was made from
    hashes, digests  keyed, of the snapshot's people and of what must not change about them
    seats            everybody's seat and pods with this release, where pods made it; decoys come last in `records`
    needed, facts    decoys that must be, whatever the pods, and what is told about the choice of pods
    """

    roster: Roster
    records: Snapshot
    past: Past
    guard: ClassGuard
    classes: Classes
    order: NDArray[np.int64]
    table: pa.Table
    measurement: Measurement
    audit: Audit
    notes: tuple[str, ...]
    judged: Judged
    crowd: Crowd | None = None
    hashes: pa.Array | None = None
    digests: NDArray[np.int64] | None = None
    seats: Seats | None = None
    needed: int = 0
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def decoy(self) -> NDArray[np.bool_]:
        """Per record, whether it is about nobody."""
        return np.zeros(len(self.records), np.bool_) if self.seats is None else self.seats.decoy[self.past.person]

    @property
    def of_people(self) -> Classes:
        """The classes of people only."""
        return self.classes if self.seats is None else replace(self.classes, member=self.classes.member[~self.decoy])

    def content(self) -> str:
        """A digest of what will be published."""
        found = hashlib.sha256()
        for array in (self.classes.lo, self.classes.hi, self.classes.member[self.order]):
            found.update(array.tobytes())
        found.update(self.records.sensitive[:, self.order].tobytes())
        return found.hexdigest()


def make_candidate(
    roster: Roster,
    records: Snapshot,
    past: Past,
    policy: Policy,
    *,
    name: str,
    seed: list[int],
    registered: NDArray[np.int32] | None = None,
    progress: Progress | None = None,
    made: Classes | None = None,
) -> Candidate:
    """Make classes as the policy's method says, check them, and have the audit try everything on the series.

    Raises GuaranteeError when no classes of these records are safe; `static` alone may come back with findings.
    `registered` are the codes of everybody who may be in a release, where nobody knows who is. `made` are classes of
    these records that the method has made already, to be judged.
    """
    requirement = Requirement.from_policy(policy, records.sensitive_domains)
    guard = ClassGuard.of(requirement, records.sensitive)
    printed = partial(as_printed, domains=records.quasi_domains, numbers=policy.output.numbers)
    method = method_of(policy.method)
    task = task_of(records, policy, guard, past=past, seed=seed, registered=registered, progress=progress)
    own: Classes | None = None
    merged: Classes | None = None
    notes: list[str] = []
    if made is not None or not len(past.first) or not method.merges(policy.method):
        classes = printed(made or method.next(task))
    else:
        own, merged = _beside_merge(lambda: printed(method.next(task)), lambda: printed(merge_next(task)))
        classes, notes = _cheaper(own, merged, records, policy)
    for attempt in range(_REPAIRS + 1):
        measured = verify(records, classes, requirement, policy)
        _check_retained(past, classes)
        # The row order depends on seed and release number: one seed for a whole series must not repeat an order.
        order = np.random.default_rng(seed).permutation(np.flatnonzero(classes.member >= 0))
        histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=name)
        audit = audit_histories(
            histories,
            policy,
            against=policy.protect.against,
            rows=rows_of(histories, past.labels, policy.protect.against),
            registered=registered,
            progress=progress,
        )
        # What was too large to be decided is not known to be safe.
        if (audit.holds and not audit.unsolved) or not method.looks_back:
            break
        if classes is merged and own is not None and attempt < _REPAIRS:
            # The merge was only cheaper: what the method made may be safe where it is not.
            classes, own, notes = own, None, []
            continue
        if attempt == _REPAIRS or not method.repairs or (merged is not None and classes is merged):
            raise _unsafe(audit)
        if merged is None:
            merged = printed(merge_next(task))
        notes = ["parts of the release were found unsafe by the audit and fell back to their merge"]
        last = attempt == _REPAIRS - 1
        classes = merged if last else printed(fall_back(past, classes, merged, audit.findings))
    records = with_current_cells(records, policy, past.retained, classes.member, seed=seed)
    table = write_table(records, classes, order, numbers=policy.output.numbers)
    if isinstance(policy.method, Group) and registered is None:
        notes += _spent(histories, past, policy)
    return Candidate(
        roster=roster,
        records=records,
        past=past,
        guard=guard,
        classes=classes,
        order=order,
        table=table,
        measurement=measured,
        audit=audit,
        notes=tuple(notes),
        judged=Judged.of(records, classes, order, policy),
    )


def _beside_merge(make: Callable[[], Classes], merge: Callable[[], Classes]) -> tuple[Classes | None, Classes | None]:
    """What the method makes and the merge, None for one that is refused; raises what the method says if both are."""
    own: Classes | None = None
    merged: Classes | None = None
    refused: GuaranteeError | None = None
    try:
        own = make()
    except GuaranteeError as error:
        refused = error
    try:
        merged = merge()
    except GuaranteeError:
        if refused is not None:
            raise refused from None
    return own, merged


def _cheaper(
    own: Classes | None, merged: Classes | None, records: Snapshot, policy: Policy
) -> tuple[Classes, list[str]]:
    """Whichever loses less (AIL), the method's own where they lose the same; and a note where it is the merge."""
    name = policy.method.name
    lost = partial(_loss, domains=records.quasi_domains)
    if merged is None or (own is not None and lost(own) <= lost(merged)):
        assert own is not None
        return own, []
    why = f"the classes of {name} would lose more" if own is not None else f"{name} finds no safe classes"
    return merged, [f"the last release's classes go on as they are (merge): {why}"]


def _loss(classes: Classes, domains: Sequence[Hierarchy]) -> float:
    return ail(classes, domains, suppressed=classes.suppressed)


def _spent(histories: Sequence[History], past: Past, policy: Policy) -> list[str]:
    """Whom a class must not link to a value again: spending everything blocks the future (Wong et al., Theorem 2)."""
    from sequester.publish.ahead import budget_of

    assert policy.protect.lifetime is not None
    blocked = budget_of(histories, past.person, policy.protect.lifetime).blocked
    if not blocked:
        return []
    pairs = "1 pair of a person and a value" if blocked == 1 else f"{blocked:,} pairs of a person and a value"
    return [
        f"after this release {pairs} must not be linked again: what was promised is spent, and whoever has the value "
        "then is left out; plan with --ahead to see how that goes on"
    ]


def _check_retained(past: Past, classes: Classes) -> None:
    """Of people who left only their last box is known: what is published about them must cover it."""
    if not past.retained.any():
        return
    last, new = past.last_class()[past.retained], classes.member[past.retained]
    box = past.first.releases[-1]
    if (classes.lo[:, new] > box.lo[:, last]).any() or (classes.hi[:, new] < box.hi[:, last]).any():
        raise AssertionError("a class does not cover what is known of one of its records")


def _unsafe(audit: Audit) -> GuaranteeError:
    if not audit.findings:
        return GuaranteeError(
            "no classes were found that could be shown to be safe together with the earlier releases: too many people "
            "are linked by their classes to try everything. Use `merge` or `mondrian`, which link fewer. Nothing was "
            "published.",
            guarantee="series",
        )
    worst = audit.findings[0]
    return GuaranteeError(
        f"no classes were found that are safe together with the earlier releases: the {worst.attack} attack reaches "
        f"{worst.observed:.4g} where {worst.required:.4g} is promised. Collect more changes before publishing, or "
        "let people wait with `infeasible: hold-back`. Nothing was published.",
        guarantee=worst.attack,
        required=worst.required,
        observed=worst.observed,
    )
