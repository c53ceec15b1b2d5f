"""What is done about classes that the audit finds unsafe: they return to the merge, or they are joined.

A remedy begins with the classes that a method made and is asked for others as long as the audit finds something. It
gives up with GuaranteeError: nothing that was found unsafe is published. What returns to the merge are the people
concerned, and all they are tied to; of pods, the classes concerned are joined with their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.audit import Audit
from sequester.attacks.finding import Finding
from sequester.causes import SERIES, Cause, What
from sequester.deferred import connected_components, csr_array
from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement, class_counts
from sequester.history.past import Past
from sequester.methods.classes import Classes
from sequester.methods.registry import merge_next
from sequester.metrics.loss import ail, widths
from sequester.publish.brief import Brief
from sequester.publish.keys import by_attack
from sequester.publish.roster import Lineup


def remedy_of(lineup: Lineup, brief: Brief, made: Classes | None = None) -> Merging | Joining:
    """The remedy of a method, with its first classes; `made` are classes of these rows to be judged as they are.

    classes  to be judged now; `improve` replaces them, GuaranteeError where nothing is left to try
    merged   Byun's merge of the same rows, where it was made, as it is before it is printed
    causes   why they are not those that the method made, and `notes` what a plan should say about that
    """
    if lineup.joined is not None:
        return Joining(lineup, brief, lineup.joined)
    return Merging(lineup, brief, made)


class Merging:
    """Parts that the audit finds unsafe return to Byun's merge, in the end all of them.

    The merge also takes the place of what the method makes where it loses less; then what the method made is tried
    where the merge is not safe.
    """

    TRIES = 3

    def __init__(self, lineup: Lineup, brief: Brief, made: Classes | None) -> None:
        self._lineup, self._brief, self._tries = lineup, brief, 0
        self._own: Classes | None = None
        self._printed: Classes | None = None
        self.merged: Classes | None = None
        self.notes: tuple[str, ...] = ()
        self.causes: tuple[Cause, ...] = ()
        task, method = lineup.task, brief.method
        if made is not None or not len(lineup.past.first) or not method.merges(brief.policy.method):
            self.classes = self._print(method.next(task) if made is None else made)
            return
        own, merged = beside_merge(lambda: method.next(task), lambda: merge_next(task))
        self._own = None if own is None else self._print(own)
        self.merged = merged
        self._printed = None if merged is None else self._print(merged)
        self.classes = self._cheaper()

    def improve(self, audit: Audit) -> None:
        """The method's own classes, then parts of the merge, then all of it."""
        self._tries += 1
        if self.classes is self._printed and self._own is not None and self._tries <= self.TRIES:
            # The merge was only cheaper: what the method made may be safe where it is not.
            self.classes, self._own, self.notes, self.causes = self._own, None, (), ()
            return
        if self._tries > self.TRIES or self._brief.method.repairs is None or self.classes is self._printed:
            raise _no_safe_classes(audit).explained(_reached("refused", audit, self._lineup, self._brief))
        if self._printed is None:
            self.merged = merge_next(self._lineup.task)
            self._printed = self._print(self.merged)
        self.notes = ("parts of the release were found unsafe by the audit and fell back to their merge",)
        self.causes = _with_new(self.causes, _reached("merged", audit, self._lineup, self._brief))
        if self._tries == self.TRIES:
            self.classes = self._printed
        else:
            self.classes = self._print(fall_back(self._lineup.past, self.classes, self._printed, audit.findings))

    def _print(self, classes: Classes) -> Classes:
        return self._brief.printed(classes, self._lineup.records)

    def _cheaper(self) -> Classes:
        """Whichever loses less (AIL), the method's own where they lose the same."""
        own, merged, name = self._own, self._printed, self._brief.method.name
        if own is not None and (merged is None or self._lost(own) <= self._lost(merged)):
            return own
        if merged is None:
            raise AssertionError("where neither is made, that is refused")
        why = f"the classes of {name} would lose more" if own is not None else f"{name} finds no safe classes"
        self.notes = (f"the classes of the last release are kept as they are (merge): {why}",)
        self.causes = (
            Cause("merged", SERIES, who=f"the classes of the last release are kept: {why}", keys=("method",)),
        )
        return merged

    def _lost(self, classes: Classes) -> float:
        return ail(classes, self._lineup.records.quasi_domains, suppressed=classes.suppressed)


class Joining:
    """Classes that the audit finds unsafe are joined with others, in the end all of them."""

    TRIES = 24

    def __init__(self, lineup: Lineup, brief: Brief, classes: Classes) -> None:
        self._lineup, self._brief, self._tries, self._joined = lineup, brief, 0, 0
        self.classes = classes
        self.merged: Classes | None = None
        self.causes: tuple[Cause, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """How many were joined, and what of the policy plays no part."""
        notes, consent = [], self._brief.policy.consent
        if self._joined:
            classes = "1 class was" if self._joined == 1 else f"{self._joined:,} classes were"
            notes.append(f"{classes} joined with others, where the audit found less than is promised of all releases")
        if consent is not None and consent[1].wait:
            notes.append(
                "withdrawals of consent take effect at once: with pods nobody has to wait (`wait` is not used)"
            )
        return tuple(notes)

    def improve(self, audit: Audit) -> None:
        """Fewer classes."""
        self._tries += 1
        before, lineup = self.classes, self._lineup
        if self._tries > self.TRIES or len(before) == 1:
            raise _no_safe_pods(audit).explained(_reached("refused", audit, lineup, self._brief))
        if self._tries == self.TRIES or not audit.findings:
            coarser = as_one(before)
        else:
            hit = unsafe_classes(lineup.past, before, audit.findings)
            coarser = join(before, lineup.records.quasi_domains, hit)
        self._joined += len(before) - len(coarser)
        self.causes = _with_new(self.causes, _reached("merged", audit, lineup, self._brief))
        self.classes = self._brief.printed(coarser, lineup.records)


def beside_merge(make: Callable[[], Classes], merge: Callable[[], Classes]) -> tuple[Classes | None, Classes | None]:
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


def _reached(what: What, audit: Audit, lineup: Lineup, brief: Brief) -> tuple[Cause, ...]:
    """What works on classes that are not published, or would not have been but for the remedy."""
    return by_attack(what, audit, brief.policy, release=len(lineup.past.first) + 1, keys=_spared(what, brief))


def _with_new(causes: tuple[Cause, ...], more: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """Causes and those of another attack or attribute; what is found again, of what is left, was told already."""
    known = {(cause.attack, cause.attribute) for cause in causes}
    return (*causes, *(cause for cause in more if (cause.attack, cause.attribute) not in known))


def _spared(what: What, brief: Brief) -> tuple[str, ...]:
    """What else would help beside promising less."""
    if brief.method.seats:
        return ("decoys", "protect.lineage")
    return ("method", "infeasible") if what == "refused" and brief.policy.infeasible == "refuse" else ("method",)


def _no_safe_classes(audit: Audit) -> GuaranteeError:
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


def _no_safe_pods(audit: Audit) -> GuaranteeError:
    worst = audit.findings[0] if audit.findings else None
    reached = "" if worst is None else f": {worst.attack} reaches {worst.observed:.4g} for {worst.required:.4g}"
    return GuaranteeError(
        f"no classes of whole pods were found that keep what is promised of all releases{reached}. Promise less, or "
        "against fewer. Nothing was published.",
        guarantee="series" if worst is None else worst.attack,
        required=None if worst is None else worst.required,
        observed=None if worst is None else worst.observed,
    )


def fall_back(past: Past, classes: Classes, merged: Classes, findings: Iterable[Finding]) -> Classes:
    """The classes with those of the merge wherever a finding reaches.

    People who ever shared a class, or share one in either version, go together: an attack never crosses them.
    """
    part = _parts(past, classes, merged)
    hit = np.zeros(int(part.max(initial=-1)) + 2, np.bool_)
    hit[part[_concerned(past, classes, findings)]] = True
    back = hit[part]
    member = np.where(back, merged.member + len(classes), classes.member).astype(np.int32)
    used, compact = np.unique(member, return_inverse=True)
    lo, hi = np.hstack([classes.lo, merged.lo]), np.hstack([classes.hi, merged.hi])
    return Classes(compact.astype(np.int32), lo[:, used], hi[:, used])


ToJoin = dict[int, NDArray[np.bool_] | None]
"""Classes to be joined, and with which others that would help; None: with any."""


def join(classes: Classes, domains: Sequence[Hierarchy], chosen: ToJoin) -> Classes:
    """The classes, those chosen joined each with the one beside which its rows lose least, of those that help."""
    lo, hi = classes.lo.copy(), classes.hi.copy()
    size, into = classes.size, np.arange(len(classes))
    joined = np.zeros(len(classes), np.bool_)
    for number, helps in chosen.items():
        own = into[number]
        if joined[own]:
            # With another already, for another's sake: whether that is enough shows when it is tried again.
            continue
        useful = None if helps is None else np.unique(into[helps])
        there = np.flatnonzero((into == np.arange(len(classes))) & (np.arange(len(classes)) != own))
        if useful is not None and len(useful):
            there = there[np.isin(there, useful)]
        if not len(there):
            continue
        low, high = np.minimum(lo[:, there], lo[:, [own]]), np.maximum(hi[:, there], hi[:, [own]])
        wide, now = (widths(Classes(classes.member, *box), domains) for box in ((low, high), (lo, hi)))
        cost = wide * (size[there] + size[own]) - now[there] * size[there]
        other = there[int(np.argmin(cost))]
        lo[:, other], hi[:, other] = np.minimum(lo[:, other], lo[:, own]), np.maximum(hi[:, other], hi[:, own])
        size[other] += size[own]
        into[into == own] = other
        joined[other] = True
    used, compact = np.unique(into, return_inverse=True)
    return Classes(compact[classes.member].astype(np.int32), lo[:, used], hi[:, used])


def unsafe_classes(past: Past, classes: Classes, findings: Iterable[Finding]) -> ToJoin:
    """Per finding a class of this release to be joined: one whose people cannot have a row, with one that shows it.

    Where that is not told, the smallest class of this release that the finding names; where none names one, all it
    reaches.
    """
    size = classes.size
    joins: ToJoin = {}
    for finding in findings:
        own, helps = _ruled_out(past, classes, finding)
        if len(own):
            joins[int(own[np.lexsort((own, size[own]))[0]])] = helps
    if joins:
        return joins
    return dict.fromkeys(np.unique(classes.member[_concerned(past, classes, findings)]).tolist())


def _ruled_out(past: Past, classes: Classes, finding: Finding) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Classes of this release that take candidates away from a traced row, and which classes show its value."""
    new = len(past.first) + 1
    named = np.array([number - 1 for release, number in finding.classes if release == new], np.int64)
    row, shows = finding.witness.get("row"), _showing(past, classes, finding)
    if row is None or shows is None:
        return named, None
    release, number = int(row[0]), int(row[1]) - 1
    if release == new:
        return np.array([number], np.int64), shows & (np.arange(len(classes)) != number)
    there = np.unique(classes.member[_class_then(past, release) == number]).astype(np.int64)
    lacking = there[~shows[there]]
    return (lacking, shows) if len(lacking) else (named, None)


def _class_then(past: Past, release: int) -> NDArray[np.int32]:
    """Per record, its class of an earlier release, counted from 1; -1 for none."""
    member = past.first.releases[release - 1].member
    if member is None:
        raise AssertionError("of the releases of a series it is known who is in which class")
    then: NDArray[np.int32] = member[past.person]
    return then


def _showing(past: Past, classes: Classes, finding: Finding) -> NDArray[np.bool_] | None:
    """Per class of this release, whether it shows the finding's value; None where that is not one of a view."""
    for history, value in zip(past.histories, past.value, strict=True):
        if history.attribute == finding.attribute and finding.value in history.values:
            code = history.values.index(str(finding.value))
            return np.bincount(classes.member, weights=value == code, minlength=len(classes)) > 0
    return None


def failing(requirement: Requirement, classes: Classes, sensitive: NDArray[np.int32]) -> NDArray[np.int64]:
    """The classes that do not keep what is promised of single releases."""
    fails = classes.size < requirement.k.k
    for view in requirement.views(sensitive) if requirement.names else ():
        for criterion in view.criteria:
            counted = class_counts(classes.member, view, classes=len(classes))
            fails |= np.concatenate([~criterion.holds(counts) for counts in counted])
    return np.flatnonzero(fails)


def as_one(classes: Classes) -> Classes:
    """All records in one class."""
    lo, hi = classes.lo.min(axis=1, keepdims=True), classes.hi.max(axis=1, keepdims=True)
    return Classes(np.zeros_like(classes.member), lo, hi)


def _parts(past: Past, classes: Classes, merged: Classes) -> NDArray[np.int32]:
    """Per record, the number of its connected part."""
    records, known = np.arange(len(past)), past.first.trajectories
    edges = [(records, classes.member, len(classes)), (records, merged.member, len(merged))]
    if known is not None:
        trajectories = len(past) + np.arange(len(known))
        edges.append((records, known.of[past.person], len(known)))
        edges += [(trajectories, known.path[:, i], len(release)) for i, release in enumerate(past.first.releases)]
    # Trajectories come right after the records, so that their number as an end is their number as a start.
    order = [2, 0, 1, *range(3, len(edges))] if known is not None else [0, 1]
    first, tails, heads = len(past), [], []
    for tail, head, count in (edges[place] for place in order):
        there = head >= 0
        tails.append(tail[there])
        heads.append(head[there] + first)
        first += count
    start, end = np.concatenate(tails), np.concatenate(heads)
    graph = csr_array((np.ones(len(start), np.int8), (start, end)), shape=(first, first))
    label: NDArray[np.int32] = connected_components(graph, directed=False)[1][: len(past)]
    return label


def _concerned(past: Past, classes: Classes, findings: Iterable[Finding]) -> NDArray[np.int64]:
    """Records of the people and classes that the findings name."""
    new = len(past.first) + 1
    people: set[int] = set()
    named: dict[int, set[int]] = {}
    for finding in findings:
        people.update(finding.people)
        for release, number in finding.classes:
            named.setdefault(release, set()).add(number - 1)
    concerned = np.isin(past.person, np.array(sorted(people), np.int64))
    for release, numbers in named.items():
        listed = np.array(sorted(numbers), np.int64)
        if release == new:
            concerned |= np.isin(classes.member, listed)
        else:
            concerned |= np.isin(_class_then(past, release), listed)
    return np.flatnonzero(concerned)
