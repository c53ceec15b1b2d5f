"""Why a release is less than the table: who waits for whom, what the audit sent back, what every promise costs.

Who waits and what was joined is known from making the release. What classes are coarse for is found by leaving it out:
the same records cut with k alone, with each further promise about single releases, and as if nothing had been
published before; of the last, the audit says which attacks would work, on how many classes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.audit import Audit, audit_histories
from sequester.causes import SERIES, Cause
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history.past import Past
from sequester.history.sight import sights_of
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate
from sequester.publish.keys import all_keys, by_attack, confidence_keys, declared, keys_of
from sequester.publish.recall import rows_of
from sequester.publish.repair import failing

# Records of the largest table that is cut and audited once more for every plan; of a larger one when asked.
MOST_ASKED = 50_000
# Promises about single releases that are looked at one by one.
_MOST_PROMISES = 6
_SLIGHT = 1e-9

Widths = NDArray[np.float64]


def causes_of(
    candidate: Candidate, brief: Brief, *, static: Classes | None, thorough: bool = False
) -> tuple[Cause, ...]:
    """Everything that makes this release less than the table, what matters most first.

    static    the same records as if nothing had been published before, where that was made
    thorough  whether a large table is cut and audited once more, too
    """
    found = [*unsafe(candidate, brief.policy), *candidate.causes, *_left_out(candidate, brief)]
    found += [*_joined_at_once(candidate, brief), *decoys(candidate, brief)]
    if thorough or len(candidate.records) <= MOST_ASKED:
        found += _coarse(candidate, brief, static)
    return tuple(found)


def unsafe(candidate: Candidate, policy: Policy) -> tuple[Cause, ...]:
    """What works on a release that is planned all the same: its method does not look back."""
    return by_attack("refused", candidate.audit, policy, release=len(candidate.histories[0]), keys=["method"])


def decoys(candidate: Candidate, brief: Brief) -> Iterator[Cause]:
    """Why some rows are about nobody."""
    count, needed = int(candidate.decoy.sum()), min(candidate.lineup.needed, int(candidate.decoy.sum()))
    if not count:
        return
    policy, people = brief.policy, len(candidate.census.snapshot)
    if needed:
        attribute = _most_frequent(brief.requirement, policy, candidate.census.snapshot.sensitive)
        few = policy.protect.k - people >= needed
        keys = ("protect.k",) if few else tuple(confidence_keys(policy, attribute))
        yield Cause("decoys", "k" if few else "confidence", "" if few else attribute, observed=needed, keys=keys)
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
    seated = candidate.lineup.seated
    if seated is None:
        return
    records = candidate.lineup.records
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
    policy, release = brief.policy, candidate.of_people
    own = _widths(candidate, release)
    yield from _single(candidate, brief, static)
    if static is None or not brief.method.looks_back:
        return
    more = own - _widths(candidate, static)
    count, people = _coarser(release, more)
    if count and more.mean() > _SLIGHT:
        yield Cause(
            "coarse",
            SERIES,
            who=_what_looks_back(candidate, brief),
            people=people,
            classes=count,
            lost=float(more.mean()),
            keys=_series_keys(candidate, brief),
        )
    if len(candidate.past.first):
        audit = _without_memory(candidate, brief, static)
        keys = ("decoys", "protect.lineage") if candidate.seats is not None else ("method",)
        yield from by_attack("coarse", audit, policy, release=len(candidate.histories[0]), keys=keys)


def _what_looks_back(candidate: Candidate, brief: Brief) -> str:
    if not len(candidate.past.first):
        return "pods, for the sake of all releases to come"
    return "what was published before" + (", and pods" if candidate.seats is not None else "")


def _series_keys(candidate: Candidate, brief: Brief) -> tuple[str, ...]:
    spared = ("decoys", "protect.lineage") if candidate.seats is not None else ("method",)
    return (*all_keys(brief.policy), *spared)


def _single(candidate: Candidate, brief: Brief, static: Classes | None) -> Iterator[Cause]:
    """What single releases are coarse for: k, then each further promise by itself beside it."""
    policy, requirement, release = brief.policy, brief.requirement, candidate.of_people
    if policy.protect.lifetime is not None:
        # What those groups are made by is not in the guard of single classes.
        return
    bare = replace(requirement, sensitive=tuple(replace(one, criteria=()) for one in requirement.sensitive))
    alone, whole = _cut(candidate, brief, bare), static
    if candidate.seats is None and not len(candidate.past.first):
        whole = candidate.classes
    # Cuts are no optimum: what keeps more promises keeps k, too, and sometimes loses less than what was cut for k.
    versions = [_widths(candidate, one) for one in (alone, whole) if one is not None]
    if alone is None:
        return
    floor = min(versions, key=lambda widths: float(widths.mean()))
    rows = candidate.classes.size
    small = rows < 2 * policy.protect.k
    if small.any() and floor.mean() > _SLIGHT:
        people = int(release.size[small].sum())
        lost = float(floor.mean())
        yield Cause("coarse", "k", people=people, classes=int(small.sum()), lost=lost, keys=("protect.k",))
    for attribute, promises, version in _by_promise(candidate, brief, whole):
        more = _widths(candidate, version) - floor
        count, people = _coarser(release, more)
        if more.mean() > _SLIGHT and count:
            keys = tuple(dict.fromkeys(key for promise in promises for key in keys_of(policy, promise, attribute)))
            cause = Cause("coarse", " and ".join(promises), attribute, people=people, classes=count, keys=keys)
            yield replace(cause, lost=float(more.mean()))


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
        for attribute, promise in promises:
            if (version := _cut(candidate, brief, _only(requirement, attribute, promise))) is not None:
                yield attribute, (promise,), version


def _only(requirement: Requirement, attribute: str, promise: str) -> Requirement:
    """The requirement with one promise about one attribute beside k."""
    return replace(
        requirement,
        sensitive=tuple(
            replace(one, criteria=tuple(c for c in one.criteria if one.name == attribute and c.name == promise))
            for one in requirement.sensitive
        ),
    )


def _cut(candidate: Candidate, brief: Brief, requirement: Requirement) -> Classes | None:
    """The same records on their own, by the same method, under another requirement, as they would be written."""
    task = candidate.lineup.task
    records = candidate.lineup.records.sensitive[:, : task.codes.shape[1]]
    guard = ClassGuard.of(replace(requirement, k_map=None), records)
    with contextlib.suppress(GuaranteeError):
        return brief.printed(brief.method.first(replace(task, guard=guard, past=None)), candidate.records)
    return None


def _widths(candidate: Candidate, classes: Classes) -> Widths:
    """Per record about somebody, the summed widths of its box (AIL); one left out loses everything."""
    domains = candidate.records.quasi_domains
    width: Widths = np.zeros(len(classes))
    for domain, lo, hi in zip(domains, classes.lo, classes.hi, strict=True):
        width += domain.width(lo, hi)
    member = classes.member if len(classes.member) != len(candidate.decoy) else classes.member[~candidate.decoy]
    widths: Widths = np.append(width, float(len(domains)))[member]
    return widths


def _coarser(classes: Classes, more: Widths) -> tuple[int, int]:
    """Classes whose people lose more on the whole, and how many people they have."""
    size = classes.size
    mean = np.bincount(classes.member, weights=more, minlength=len(classes)) / np.maximum(size, 1)
    coarser = mean > _SLIGHT
    return int(coarser.sum()), int(size[coarser].sum())


def _without_memory(candidate: Candidate, brief: Brief, static: Classes) -> Audit:
    """What the audit would say if the records were published as if nothing had been before."""
    policy, past, count = brief.policy, candidate.past, len(static.member)
    known = Past(
        past.histories,
        past.person[:count],
        tuple(value[:count] for value in past.value),
        past.retained[:count],
        past.labels,
    )
    order = np.flatnonzero(static.member >= 0)
    histories = known.extend(static.member, static.lo, static.hi, order=order, name=brief.name)
    return audit_histories(
        histories,
        policy,
        against=policy.protect.against,
        rows=rows_of(histories, past.labels, policy.protect.against),
        registered=brief.registered,
    )
