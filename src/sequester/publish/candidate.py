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
from sequester.errors import GuaranteeError, PolicyError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.history.history import History
from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes
from sequester.methods.guard import Guard
from sequester.metrics.loss import ail
from sequester.metrics.measure import Measurement
from sequester.policy.model import (
    Cluster,
    Cuts,
    FullDomain,
    Group,
    Grow,
    Merge,
    Mondrian,
    Pods,
    Policy,
    Specialize,
    Static,
)
from sequester.publish.anonymize import static_classes, verify
from sequester.publish.emit import as_printed, write_table
from sequester.publish.exact import Judged
from sequester.publish.kept import with_current_cells
from sequester.publish.recall import rows_of
from sequester.publish.repair import fall_back
from sequester.publish.roster import Crowd, Roster

Progress = Callable[[str, int, int], None]

_REPAIRS = 3
# Records up to which clusters are tried beside cuts where people left.
_CLUSTERED = 300_000


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
    guard: Guard
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
    guard = Guard.of(requirement, records.sensitive)
    printed = partial(as_printed, domains=records.quasi_domains, numbers=policy.output.numbers)
    make = partial(_make, past, records, guard, policy, seed=seed, registered=registered, progress=progress)
    own: Classes | None = None
    merged: Classes | None = None
    notes: list[str] = []
    if made is not None or not _may_be_merged(past, policy):
        classes = printed(made or make())
    else:
        own, merged = _beside_merge(lambda: printed(make()), lambda: printed(_merge(past, records, guard, policy)))
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
        if (audit.holds and not audit.unsolved) or isinstance(policy.method, Static):
            break
        if classes is merged and own is not None and attempt < _REPAIRS:
            # The merge was only cheaper: what the method made may be safe where it is not.
            classes, own, notes = own, None, []
            continue
        if attempt == _REPAIRS or isinstance(policy.method, Group) or (merged is not None and classes is merged):
            raise _unsafe(audit)
        if merged is None:
            merged = printed(_merge(past, records, guard, policy))
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


def _make(
    past: Past,
    records: Snapshot,
    guard: Guard,
    policy: Policy,
    *,
    seed: list[int],
    registered: NDArray[np.int32] | None,
    progress: Progress | None,
) -> Classes:
    codes, domains, against = records.quasi, records.quasi_domains, policy.protect.against
    method = policy.method
    if isinstance(method, Group) and registered is not None:
        from sequester.methods.series.regions import regions

        assert policy.protect.lifetime is not None
        return regions(past, codes, domains, guard, lifetime=policy.protect.lifetime, registered=registered)
    if isinstance(method, Group):
        return _grouped(past, records, guard, policy, seed=seed, progress=progress)
    if isinstance(method, Static) or not len(past.first):
        return static_classes(records, policy, guard, in_series=True)
    match method:
        case Mondrian():
            return _cut(past, records, guard, policy, seed=seed, progress=progress)
        case Merge():
            return _merge(past, records, guard, policy)
        case Cluster():
            from sequester.methods.personal import cluster_next

            noise = int(np.random.default_rng(seed).integers(1 << 31))
            return cluster_next(past, codes, domains, guard, method, against=against, seed=noise, progress=progress)
        case Grow(cuts=cuts):
            from sequester.methods.series.grow import grow

            return grow(past, codes, domains, guard, cuts=cuts)
        case FullDomain(loss=loss, suppression=suppression):
            from sequester.methods.full_domain import full_domain
            from sequester.methods.series.watch import Watch

            if suppression:
                message = "must be 0 in a series: whoever is left out would be seen to leave"
                raise PolicyError(Problem(message, key="method.suppression"))
            watch = Watch.of(past, codes, against=against)
            return full_domain(codes, domains, guard, loss=loss, watch=watch, floor=_floor(past))
        case Specialize():
            from sequester.methods.series.specialize import respecialize
            from sequester.methods.specialize import label_of

            return respecialize(
                past,
                codes,
                domains,
                guard,
                against=against,
                loss=method.loss,
                score=method.score,
                label=label_of(records, method),
                semantics=method.semantics,
                certificate=method.certificate,
                progress=progress,
            )
        case Pods():
            raise AssertionError("everybody is published at once by pods: publish.podded makes them")


def _may_be_merged(past: Past, policy: Policy) -> bool:
    """Whether merge is an alternative: to a later release, of a method that looks back and asks for little loss alone.

    Clusters may have to be similar, or to gain privacy; taxonomy cuts to bear a certificate, or every printed target.
    """
    method = policy.method
    asks_more = (isinstance(method, Cluster) and {method.similarity, method.gain, method.weight} != {None}) or (
        isinstance(method, Specialize) and (method.certificate or method.semantics == "printed")
    )
    return bool(len(past.first)) and not asks_more and not isinstance(method, Static | Group | Merge)


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


def _cut(
    past: Past, records: Snapshot, guard: Guard, policy: Policy, *, seed: list[int], progress: Progress | None
) -> Classes:
    """Mondrian for a series; where people left, or clusters if they lose less.

    Whoever leaves a class must be hidden by others who leave it. Clusters give her place to a newcomer with the same
    values, which cuts cannot.
    """
    from sequester.methods.series.cluster import recluster
    from sequester.methods.series.mondrian import republish

    method, against = policy.method, policy.protect.against
    assert isinstance(method, Mondrian)
    noise, regroup = int(np.random.default_rng(seed).integers(1 << 31)), method.regroups(in_series=True)
    table = (past, records.quasi, records.quasi_domains, guard)
    ways = [
        partial(republish, *table, against=against, cuts=method.cuts, regroup=regroup, seed=noise, progress=progress)
    ]
    if regroup and _somebody_left(past) and len(past) <= _CLUSTERED:
        ways.append(partial(recluster, *table, against=against, seed=noise, progress=progress))
    found: list[Classes] = []
    for way in ways:
        try:
            found.append(way())
        except GuaranteeError as error:
            refused = error
    if not found:
        raise refused
    return min(found, key=lambda classes: ail(classes, records.quasi_domains))


def _somebody_left(past: Past) -> bool:
    """Whether a person of the last release is not in this one."""
    member = past.first.releases[-1].member
    assert member is not None
    return int(np.count_nonzero(member >= 0)) > int(np.count_nonzero(past.last_class() >= 0))


def _grouped(
    past: Past, records: Snapshot, guard: Guard, policy: Policy, *, seed: list[int], progress: Progress | None
) -> Classes:
    lifetime = policy.protect.lifetime
    assert lifetime is not None
    if any(history.permanent for history in past.histories):
        from sequester.methods.series.both import group_both

        return group_both(
            past,
            records.quasi,
            records.quasi_domains,
            guard,
            lifetime=lifetime,
            against=policy.protect.against,
            seed=int(np.random.default_rng(seed).integers(1 << 31)),
            progress=progress,
        )
    from sequester.methods.series.group import group

    return group(past, records.quasi, records.quasi_domains, guard, lifetime=lifetime)


def _floor(past: Past) -> tuple[int, ...]:
    """The lowest levels that cover the boxes of people who left and are published on: nothing finer is known."""
    last, history = past.last_class()[past.retained], past.first
    boxes = history.releases[-1]
    return tuple(
        int(domain.level_of(lo[last], hi[last]).max(initial=0))
        for domain, lo, hi in zip(history.domains, boxes.lo, boxes.hi, strict=True)
    )


def _merge(past: Past, records: Snapshot, guard: Guard, policy: Policy) -> Classes:
    from sequester.methods.series.merge import merge

    method = policy.method
    cuts: Cuts = "gain" if isinstance(method, FullDomain | Group | Specialize | Cluster | Pods) else method.cuts
    return merge(past, records.quasi, records.quasi_domains, guard, against=policy.protect.against, cuts=cuts)


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
