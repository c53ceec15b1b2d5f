"""The audit: everything an adversary can learn by combining releases made by anyone."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sequester.attacks.adversary import ATTACKS, Knowledge, chosen_attacks, why_untried
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.guarantees.lifetime import rests_on_lifetime
from sequester.history import History
from sequester.history.label import WHOLE_ROW, Labels, Rows
from sequester.policy.model import Policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sequester.attacks.exposure import Noted

Progress = Callable[[str, int, int], None]

SMALLEST = frozenset({"k", "diversity", "forward", "cross", "backward", "difference", "tracing", "complementary"})
"""Measures where the smallest over several sensitive attributes is the worst; of the others the largest is."""


@dataclass(frozen=True, repr=False)
class Audit:
    """What was tried, what it reached, and what works.

    Histories are for explaining findings; `published` are those without people, where a population merges classes.
    """

    findings: tuple[Finding, ...]
    measures: dict[str, float]
    tried: tuple[str, ...]
    notes: tuple[str, ...]
    histories: tuple[History, ...]
    published: tuple[History, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no attack that was asked for works."""
        return not self.findings

    def explain(self, number: int) -> str:
        """One finding, counted from 1, as a story with the published rows it rests on. It may name people."""
        from sequester.attacks.explain import explain

        if not 1 <= number <= len(self.findings):
            raise IndexError(f"there are {len(self.findings)} findings, counted from 1")
        finding = self.findings[number - 1]
        alone = _needs_nobody(finding.attack, registered=not finding.people)
        return explain(finding, self.published if alone and self.published else self.histories)

    def to_dict(self) -> dict[str, Any]:
        """Plain values. Findings hold sensitive values and person ids: for the publisher, not for the public."""
        return {
            "holds": self.holds,
            "releases": len(self.histories[0]) if self.histories else 0,
            "tried": list(self.tried),
            "measures": dict(self.measures),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, default=str)

    def __repr__(self) -> str:
        releases = len(self.histories[0]) if self.histories else 0
        verdict = "holds" if self.holds else f"{len(self.findings)} findings"
        return f"<Audit of {releases} releases: {len(self.tried)} attacks tried, {verdict}>"

    def _repr_html_(self) -> str:
        broken = {finding.attack for finding in self.findings}
        rows = "".join(
            f"<tr><td>{html.escape(attack)}</td><td>{_number(self.measures.get(attack))}</td>"
            f"<td>{'works' if attack in broken else 'fails'}</td></tr>"
            for attack in self.tried
        )
        return f"<table><tr><th>attack</th><th>reached</th><th></th></tr>{rows}</table>"


def audit(
    releases: Sequence[Any],
    policy: Policy,
    *,
    population: Sequence[Any] | None = None,
    registered: Any | None = None,
    against: Sequence[str] | None = None,
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    show_values: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Audit releases in order of publication, as files or frames with the columns as published.

    With the policy's person column in them, who is in which class is known (the publisher's view); without it only
    what follows from boxes and values; with `population`, one table of person and raw quasi-identifiers per release,
    everybody's class is found by the boxes. `registered` is one such table of everybody who may be in any release: the
    lifetime adversary then knows these people, and not who of them is where. `against` names adversaries, by default
    the policy's; `knowledge` describes one by what she knows instead. `semantics="paper"` reads every attack as printed
    in its paper.
    """
    from sequester.history.load import histories_of, read_rows
    from sequester.history.releases import read_releases

    held, known = releases, population
    if knowledge is not None and knowledge.releases is not None:
        held = [releases[number - 1] for number in knowledge.releases]
        known = None if population is None else [population[number - 1] for number in knowledge.releases]
    read = read_releases(held, policy, population=known, registered=registered, show_values=show_values)
    histories, rows = read_rows(read)
    return audit_histories(
        histories,
        policy,
        rows=rows,
        # Where a population merges classes that it cannot tell apart, the published ones are still judged as they are.
        published=histories_of(read, outsider=True) if known is not None else None,
        registered=read.registered,
        against=policy.protect.against if against is None else against,
        knowledge=knowledge,
        semantics=semantics,
        progress=progress,
    )


def audit_histories(
    histories: Sequence[History],
    policy: Policy,
    *,
    against: Sequence[str],
    published: Sequence[History] | None = None,
    rows: Rows | None = None,
    registered: NDArray[np.int32] | None = None,
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    progress: Progress | None = None,
) -> Audit:
    """Try every attack on every sensitive attribute, and on whole rows.

    published   the histories for attacks that need no people, where they differ
    rows        what rows show beside a single attribute, where that is more
    registered  (quasi-identifiers, people) codes of a registration list
    """
    attacks = chosen_attacks(against) if knowledge is None else knowledge.attacks()
    rules = _Rules(policy, semantics, registered, None if rows is None else rows.labels)
    findings: list[Finding] = []
    measures: dict[str, float] = {}
    tried = []
    notes = [note for history in histories for note in history.notes]
    untried: dict[tuple[str, str], list[str]] = {}
    for number, attack in enumerate(attacks):
        if progress is not None:
            progress(attack, number, len(attacks))
        alone = _needs_nobody(attack, registered=registered is not None)
        looked_at = published if published and alone else _looked_at(attack, histories, rows)
        reasons: dict[str, list[str]] = {}
        for history in looked_at:
            result = _bounded(attack, history, _try(attack, history, rules))
            name = history.attribute or None
            findings += [f if f.attribute else replace(f, attribute=name) for f in result.findings]
            notes += result.notes
            if result.measure is not None:
                pick = min if attack in SMALLEST else max
                measures[attack] = pick(result.measure, measures.get(attack, result.measure))
            elif not result.findings:
                why = why_untried(attack, history, lifetime=policy.protect.lifetime is not None)
                reasons.setdefault(why, []).append(history.attribute)
            if (result.measure is not None or result.findings) and attack not in tried:
                tried.append(attack)
        for why, attributes in reasons.items():
            on = "" if len(attributes) == len(looked_at) else f" on {_listed(attributes)}"
            untried.setdefault((on, why), []).append(attack)
    if registered is not None and "breach" not in attacks:
        notes.append("the registration list is not used: it is for breach, an attack of the lifetime adversary")
    for (on, why), names in untried.items():
        notes.append(f"{_listed(names)} {'was' if len(names) == 1 else 'were'} not tried{on}: {why}")
    told = tuple(dict.fromkeys(notes))
    told_of = (*histories, *(() if rows is None else (rows.people,)))
    return Audit(_distinct(findings), measures, tuple(tried), told, told_of, tuple(published or ()))


@dataclass(frozen=True, eq=False)
class _Rules:
    """What is the same for all attacks of one audit."""

    policy: Policy
    semantics: Semantics
    registered: NDArray[np.int32] | None
    labels: Labels | None


def _looked_at(attack: str, histories: Sequence[History], rows: Rows | None) -> Sequence[History]:
    """What an attack is tried on: the attributes, or rows with all their cells, which tell at least as much.

    Rows come first where both are looked at, and the attributes after them.
    """
    if rows is None:
        return histories
    if attack == "tracing":
        return (rows.people,)
    if attack == "deniability":
        return (*histories, rows.people)
    if rows.counted is not None and attack in ("forward", "cross", "backward"):
        return (rows.counted,)
    if rows.counted is not None and attack in ("intersection", "difference"):
        return (*histories, rows.counted)
    return histories


def _needs_nobody(attack: str, *, registered: bool) -> bool:
    """Whether an attack looks at published classes only, not at who is in them."""
    return attack in (*ATTACKS["outsider"], *ATTACKS["any"]) or (attack == "breach" and registered)


def _bounded(attack: str, history: History, result: Result) -> Noted:
    """The result with no more findings than anybody reads; whether something was found stays as it is."""
    from sequester.attacks.exposure import Noted, keep_worst, say_more

    findings, more = keep_worst(result.findings)
    notes = result.notes if isinstance(result, Noted) else ()
    attribute = history.attribute if any(finding.value is not None for finding in findings) else ""
    return Noted(findings, result.measure, (*notes, *say_more(attack, attribute, more)))


def _try(attack: str, history: History, rules: _Rules) -> Result:
    from sequester.attacks import (
        backward,
        breach,
        complementary,
        cross,
        deniability,
        difference,
        forward,
        intersection,
        row_order,
        single,
        tracing,
    )
    from sequester.attacks.deniability_labels import find_labels

    modules: dict[str, Any] = {
        "difference": difference,
        "deniability": deniability,
        "forward": forward,
        "cross": cross,
        "backward": backward,
        "intersection": intersection,
    }
    match attack:
        case "confidence" if rules.registered is not None and rests_on_lifetime(rules.policy, history.attribute):
            # Whoever does not know who is in a class does not know its people's shares: breach says what there is.
            return Result()
        case "k" | "confidence" | "diversity" | "closeness":
            return single.find(history, attack, alpha=rules.policy.protect.alpha)
        case "breach":
            lifetime = rules.policy.protect.lifetime
            # Of a value that stays the releases do not add up: it is the same one each time.
            if lifetime is None or history.permanent:
                return Result()
            return breach.find(history, l=lifetime.l, registered=rules.registered)
        case "row-order":
            return row_order.find(history)
        case "complementary":
            return complementary.find(history, semantics=rules.semantics)
        case _:
            if not history.permanent:
                return Result()
            if attack == "tracing":
                return tracing.find(history, semantics=rules.semantics, labels=rules.labels)
            if history.attribute == WHOLE_ROW and attack == "deniability":
                assert rules.labels is not None
                return find_labels(history, rules.labels)
            result: Result = modules[attack].find(history, semantics=rules.semantics)
            return result


def _distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Identity findings do not depend on the sensitive attribute: each is told once. Values come first."""
    seen: set[tuple[Any, ...]] = set()
    kept = []
    for finding in findings:
        about = None if finding.value is None else finding.attribute
        key = (finding.attack, finding.releases, finding.value, about, finding.classes, finding.people)
        if key not in seen:
            seen.add(key)
            kept.append(finding)
    return tuple(sorted(kept, key=lambda finding: not finding.about_value))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
