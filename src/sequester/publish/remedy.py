"""What is done about classes that the audit finds unsafe: they return to the merge, or they are joined.

A remedy begins with the classes that a method made and is asked for others as long as the audit finds something. It
gives up with GuaranteeError: nothing that was found unsafe is published.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sequester.attacks.audit import Audit
from sequester.causes import SERIES, Cause, What
from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes
from sequester.methods.registry import merge_next
from sequester.metrics.loss import ail
from sequester.publish.brief import Brief
from sequester.publish.keys import by_attack
from sequester.publish.lineup import Lineup
from sequester.publish.repair import as_one, fall_back, join, unsafe_classes


class Remedy(Protocol):
    """A source of classes, each to be tried after the one before was found unsafe.

    classes  to be judged now
    merged   Byun's merge of the same rows, where it was made, as it is before it is printed
    causes   why they are not those that the method made
    """

    classes: Classes
    merged: Classes | None
    causes: tuple[Cause, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a plan should say about the choice."""

    def improve(self, audit: Audit) -> None:
        """Replace the classes, which the audit found unsafe; GuaranteeError where nothing is left to try."""


def remedy_of(lineup: Lineup, brief: Brief, made: Classes | None = None) -> Remedy:
    """The remedy of a method, with its first classes; `made` are classes of these rows to be judged as they are."""
    if lineup.classes is not None:
        return Joining(lineup, brief, lineup.classes)
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
