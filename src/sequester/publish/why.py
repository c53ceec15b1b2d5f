"""Why a release is less than the table: who waits for whom, what the audit sent back, what every promise costs.

Who waits and what was joined is known from making the release. What classes are coarse for is found by leaving it out:
the same records cut with k alone, with each further promise about single releases, and as if nothing had been
published before; of the last, the audit says which attacks would work, on how many classes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.audit import Audit
from sequester.causes import SERIES, Cause
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history.sight import sights_of
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.method import Task
from sequester.metrics.loss import widths
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate, audited
from sequester.publish.keys import all_keys, by_attack, confidence_keys, declared, keys_of
from sequester.publish.remedy import failing

# Records of the largest table that is cut and audited once more for every plan; of a larger one when asked.
MOST_ASKED = 50_000
# Promises about single releases that are looked at one by one.
_MOST_PROMISES = 6
_SLIGHT = 1e-9

Widths = NDArray[np.float64]


def what_if(candidate: Candidate, brief: Brief, make: Callable[[Task], Classes]) -> Classes | None:
    """The records of a release in classes made otherwise, as they would be written; None where none are safe."""
    with contextlib.suppress(GuaranteeError):
        return brief.printed(make(candidate.task), candidate.records)
    return None


def causes_of(
    candidate: Candidate, brief: Brief, *, static: Classes | None, thorough: bool = False
) -> tuple[Cause, ...]:
    """Everything that makes this release less than the table, what matters most first.

    static    the same records as if nothing had been published before, where that was made
    thorough  whether a large table is cut and audited once more, too
    """
    release = len(candidate.histories[0])
    # What works on a release that is planned all the same: its method does not look back.
    found = [*by_attack("refused", candidate.audit, brief.policy, release=release, keys=["method"])]
    found += [*candidate.causes, *_left_out(candidate, brief), *_joined_at_once(candidate, brief)]
    found += _decoys(candidate, brief)
    if thorough or len(candidate.records) <= MOST_ASKED:
        found += _coarse(candidate, brief, static)
    return tuple(found)


def _decoys(candidate: Candidate, brief: Brief) -> Iterator[Cause]:
    """Why some rows are about nobody."""
    count, policy, snapshot = int(candidate.decoy.sum()), brief.policy, candidate.census.snapshot
    if needed := min(candidate.needed, count):
        few = policy.protect.k - len(snapshot) >= needed
        attribute = "" if few else _most_frequent(brief.requirement, policy, snapshot.sensitive)
        keys = ("protect.k",) if few else tuple(confidence_keys(policy, attribute))
        yield Cause("decoys", "k" if few else "confidence", attribute, observed=needed, keys=keys)
    if count > needed:
        keys = (*confidence_keys(policy, ""), "decoys")
        yield Cause("decoys", "deniability", observed=count - needed, keys=tuple(dict.fromkeys(keys)))


def _most_frequent(requirement: Requirement, policy: Policy, sensitive: NDArray[np.int32]) -> str:
    """The attribute of whose values one is the most too frequent among these people."""
    worst, attribute = 0.0, ""
    for sight in sights_of(requirement, policy, sensitive, compact=False):
        counts = np.bincount(sight.codes, minlength=len(sight.bounds))
        bounds = np.array([float(bound) for bound in sight.bounds])
        rows = float(np.where(bounds < 1, counts / bounds, 0).max(initial=0))
        if sight.permanent and rows > worst:
            worst, attribute = rows, sight.view.name
    return attribute


def _left_out(candidate: Candidate, brief: Brief) -> Iterator[Cause]:
    """People whom a method left out; of those who wait the roster tells."""
    told = sum(cause.people for cause in candidate.causes if cause.what in ("waiting", "left out"))
    count = len(candidate.roster.left_out)
    if not count or told:
        return
    attack = "breach" if brief.policy.protect.lifetime is not None else "difference"
    keys = keys_of(brief.policy, attack)
    consent = brief.policy.consent
    if consent is not None and candidate.census.withdrawn is not None and len(candidate.census.withdrawn.person):
        keys = (*keys, f"attributes.{consent[0]}.wait")
    yield Cause("left out", attack, people=count, keys=keys)


def _joined_at_once(candidate: Candidate, brief: Brief) -> Iterator[Cause]:
    """Classes of pods that were joined because of what else is promised of single releases."""
    seated = candidate.seated
    if seated is None:
        return
    records = candidate.records
    printed = brief.printed(seated, records)
    bad = failing(brief.requirement, printed, records.sensitive)
    if not len(bad):
        return
    people = int(np.count_nonzero(np.isin(printed.member, bad) & ~candidate.decoy))
    for outcome in brief.requirement.check(printed.member, records.sensitive):
        if not outcome.holds:
            view = outcome.view or ""
            keys = keys_of(brief.policy, outcome.name, declared(brief.policy, view))
            yield Cause("merged", outcome.name, view, people=people, classes=len(bad), keys=keys)


def _coarse(candidate: Candidate, brief: Brief, static: Classes | None) -> Iterator[Cause]:
    """What classes are coarse for, step by step from k alone to this release."""
    policy, release, by_pods = brief.policy, candidate.of_people, candidate.seats is not None
    # What those groups are made by that keep a promise for life is not in the guard of single classes.
    if policy.protect.lifetime is None:
        yield from _single(candidate, brief, static)
    if static is None or not brief.method.looks_back:
        return
    spared = ("decoys", "protect.lineage") if by_pods else ("method",)
    more = _widths(candidate, release) - _widths(candidate, static)
    before = len(candidate.past.first) > 0
    who = "what was published before" if before else "pods, for the sake of all releases to come"
    who += ", and pods" if before and by_pods else ""
    yield from _lost(release, more, Cause("coarse", SERIES, who=who, keys=(*all_keys(policy), *spared)))
    if before:
        audit = _without_memory(candidate, brief, static)
        yield from by_attack("coarse", audit, policy, release=len(candidate.histories[0]), keys=spared)


def _lost(classes: Classes, more: Widths, cause: Cause) -> Iterator[Cause]:
    """The cause with what it costs; nothing where that is nothing. `more` is what every record loses by it."""
    size = classes.size
    mean = np.bincount(classes.member, weights=more, minlength=len(classes)) / np.maximum(size, 1)
    coarser = mean > _SLIGHT
    if coarser.any() and more.mean() > _SLIGHT:
        count, people = int(coarser.sum()), int(size[coarser].sum())
        yield replace(cause, people=people, classes=count, lost=float(more.mean()))


def _single(candidate: Candidate, brief: Brief, static: Classes | None) -> Iterator[Cause]:
    """What single releases are coarse for: k, then each further promise by itself beside it."""
    policy, release = brief.policy, candidate.of_people
    alone, whole = _cut(candidate, brief, lambda _name, _promise: False), static
    if candidate.seats is None and not len(candidate.past.first):
        whole = candidate.classes
    if alone is None:
        return
    # Cuts are no optimum: what keeps more promises keeps k, too, and sometimes loses less than what was cut for k.
    versions = [_widths(candidate, one) for one in (alone, whole) if one is not None]
    floor = min(versions, key=lambda widths: float(widths.mean()))
    small = candidate.classes.size < 2 * policy.protect.k
    if small.any() and floor.mean() > _SLIGHT:
        people, lost = int(release.size[small].sum()), float(floor.mean())
        yield Cause("coarse", "k", people=people, classes=int(small.sum()), lost=lost, keys=("protect.k",))
    for attribute, promises, version in _by_promise(candidate, brief, whole):
        keys = tuple(dict.fromkeys(key for promise in promises for key in keys_of(policy, promise, attribute)))
        cause = Cause("coarse", " and ".join(promises), attribute, keys=keys)
        yield from _lost(release, _widths(candidate, version) - floor, cause)


def _by_promise(
    candidate: Candidate, brief: Brief, whole: Classes | None
) -> Iterator[tuple[str, tuple[str, ...], Classes]]:
    """Attribute by attribute each promise beside k, and the records cut for it; all of them at once where they are
    many, or about several attributes together. `whole` are the records cut for all of them."""
    requirement = brief.requirement
    promises = [(one.name, criterion.name) for one in requirement.sensitive for criterion in one.criteria]
    if len(promises) == 1 and whole is not None:
        ((attribute, promise),) = promises
        yield attribute, (promise,), whole
    elif len(promises) > _MOST_PROMISES or requirement.combine != "each":
        if whole is not None:
            yield "", tuple(dict.fromkeys(promise for _, promise in promises)), whole
    else:
        for only in promises:
            if (version := _cut(candidate, brief, lambda *one, only=only: one == only)) is not None:
                yield only[0], (only[1],), version


def _cut(candidate: Candidate, brief: Brief, keeps: Callable[[str, str], bool]) -> Classes | None:
    """The same records on their own, by the same method, for k and those promises about attributes that are kept."""
    promised = tuple(
        replace(one, criteria=tuple(criterion for criterion in one.criteria if keeps(one.name, criterion.name)))
        for one in brief.requirement.sensitive
    )
    requirement = replace(brief.requirement, sensitive=promised, k_map=None)

    def make(task: Task) -> Classes:
        records = candidate.records.sensitive[:, : task.codes.shape[1]]
        return brief.method.first(replace(task, guard=ClassGuard.of(requirement, records), past=None))

    return what_if(candidate, brief, make)


def _widths(candidate: Candidate, classes: Classes) -> Widths:
    """Per record about somebody, the summed widths of its box (AIL); one left out loses everything."""
    domains = candidate.records.quasi_domains
    member = classes.member if len(classes.member) != len(candidate.decoy) else classes.member[~candidate.decoy]
    found: Widths = np.append(widths(classes, domains), float(len(domains)))[member]
    return found


def _without_memory(candidate: Candidate, brief: Brief, static: Classes) -> Audit:
    """What the audit would say if the records were published as if nothing had been before."""
    past, count = candidate.past, len(static.member)
    values = tuple(value[:count] for value in past.value)
    known = replace(past, person=past.person[:count], value=values, retained=past.retained[:count])
    return audited(known, static, np.flatnonzero(static.member >= 0), brief)[1]
