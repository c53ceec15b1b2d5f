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
        alone |= finding.adversary == "neighbor" and (not finding.people or "certain" in finding.witness)
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
    from sequester.history.load import histories_of
    from sequester.history.membership import find_members
    from sequester.history.releases import read_releases

    held, known = releases, population
    if knowledge is not None and knowledge.releases is not None:
        held = [releases[number - 1] for number in knowledge.releases]
        known = None if population is None else [population[number - 1] for number in knowledge.releases]
    read = read_releases(held, policy, population=known, registered=registered, show_values=show_values)
    members = find_members(read)
    return audit_histories(
        histories_of(read, members),
        policy,
        # With a population too, the published classes are judged as they are: knowing more is never knowing less.
        published=histories_of(read, members.as_published(read)) if members.rows is None and known else None,
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
    registered: NDArray[np.int32] | None = None,
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    progress: Progress | None = None,
) -> Audit:
    """Try every attack on every sensitive attribute.

    published   the histories for attacks that need no people, where they differ
    registered  (quasi-identifiers, people) codes of a registration list
    """
    attacks = chosen_attacks(against) if knowledge is None else knowledge.attacks()
    merged = any(release.certain is not None for history in published or () for release in history.releases)
    if merged and "intersection" not in attacks and set(attacks) & set(ATTACKS["insider"]):
        # Insiders know what neighbors know, and attacks on whole classes cannot use people whose class is certain.
        attacks = (*attacks, "intersection")
    rules = _Rules(policy, semantics, registered)
    findings: list[Finding] = []
    measures: dict[str, float] = {}
    tried = []
    notes = [note for history in histories for note in history.notes]
    untried: dict[tuple[str, str], list[str]] = {}
    for number, attack in enumerate(attacks):
        if progress is not None:
            progress(attack, number, len(attacks))
        alone = _needs_nobody(attack, registered=registered is not None)
        looked_at = published if published and alone else histories
        # What a neighbor learns from the published classes alone, he learns with a population too.
        again = published if published and attack in ATTACKS["neighbor"] else ()
        reasons: dict[str, list[str]] = {}
        for history in (*looked_at, *again):
            result = _bounded(attack, history, _try(attack, history, rules))
            name = history.attribute or None
            found = [f if f.attribute == name else replace(f, attribute=name) for f in result.findings]
            findings += _untold(found, findings) if history in again and not merged else found
            notes += result.notes
            if result.measure is not None:
                pick = min if attack in SMALLEST else max
                measures[attack] = pick(result.measure, measures.get(attack, result.measure))
            elif not result.findings and history not in again:
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
    return Audit(_distinct(findings), measures, tuple(tried), told, tuple(histories), tuple(published or ()))


@dataclass(frozen=True, eq=False)
class _Rules:
    """What is the same for all attacks of one audit."""

    policy: Policy
    semantics: Semantics
    registered: NDArray[np.int32] | None


def _untold(findings: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """Findings about nobody in particular that are not told of somebody already, in the same classes."""

    def key(finding: Finding) -> tuple[Any, ...]:
        return finding.attack, finding.releases, finding.attribute, finding.value, finding.classes

    known = {key(finding) for finding in told}
    return [finding for finding in findings if key(finding) not in known]


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

    modules: dict[str, Any] = {
        "difference": difference,
        "tracing": tracing,
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
