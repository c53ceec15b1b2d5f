"""The audit: everything an adversary can learn by combining releases made by anyone."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sequester.attacks.adversary import ATTACKS, Knowledge, chosen_attacks
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.history import History
from sequester.policy.model import Policy

Progress = Callable[[str, int, int], None]

# Measures where the smallest over several sensitive attributes is the worst; of the others the largest is.
_SMALLEST = frozenset({"k", "diversity", "forward", "cross", "backward", "difference", "tracing", "complementary"})


@dataclass(frozen=True, repr=False)
class Audit:
    """What was tried, what it reached, and what works. `histories` are for explaining findings."""

    findings: tuple[Finding, ...]
    measures: dict[str, float]
    tried: tuple[str, ...]
    notes: tuple[str, ...]
    histories: tuple[History, ...]

    @property
    def holds(self) -> bool:
        """Whether no attack that was asked for works."""
        return not self.findings

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
    against: Sequence[str] | None = None,
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    show_values: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Audit releases in order of publication, as files or frames with the columns as published.

    With the policy's person column in them, who is in which class is known (the publisher's view); without it only
    what follows from boxes and values; with `population`, one table of person and raw quasi-identifiers per release,
    everybody's class is found by the boxes. `against` names adversaries, by default the policy's; `knowledge`
    describes one by what she knows instead. `semantics="paper"` reads every attack as printed in its paper.
    """
    from sequester.history.load import histories_of
    from sequester.history.releases import read_releases

    held, known = list(releases), None if population is None else list(population)
    if knowledge is not None and knowledge.releases is not None:
        held = [held[number - 1] for number in knowledge.releases]
        known = None if known is None else [known[number - 1] for number in knowledge.releases]
    read = read_releases(held, policy, population=known, show_values=show_values)
    return audit_histories(
        histories_of(read),
        policy,
        # Where a population merges classes that it cannot tell apart, the published ones are still judged as they are.
        published=histories_of(read, outsider=True) if known is not None else None,
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
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    progress: Progress | None = None,
) -> Audit:
    """Try every attack on every sensitive attribute; `published` are the histories for attacks that need no people."""
    attacks = chosen_attacks(against) if knowledge is None else knowledge.attacks()
    findings: list[Finding] = []
    measures: dict[str, float] = {}
    tried = []
    for number, attack in enumerate(attacks):
        if progress is not None:
            progress(attack, number, len(attacks))
        alone = published is not None and attack in (*ATTACKS["outsider"], *ATTACKS["any"])
        for history in (published or histories) if alone else histories:
            result = _try(attack, history, policy, semantics)
            name = history.attribute or None
            findings += [f if f.attribute == name else replace(f, attribute=name) for f in result.findings]
            if result.measure is not None:
                pick = min if attack in _SMALLEST else max
                measures[attack] = pick(result.measure, measures.get(attack, result.measure))
            if (result.measure is not None or result.findings) and attack not in tried:
                tried.append(attack)
    notes = tuple(dict.fromkeys(note for history in histories for note in history.notes))
    return Audit(_distinct(findings), measures, tuple(tried), notes, tuple(histories))


def _try(attack: str, history: History, policy: Policy, semantics: Semantics) -> Result:
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
        case "k" | "confidence" | "diversity" | "closeness":
            return single.find(history, attack)
        case "breach":
            lifetime = policy.protect.lifetime
            return Result() if lifetime is None else breach.find(history, l=lifetime.l)
        case "row-order":
            return row_order.find(history)
        case "complementary":
            return complementary.find(history, semantics=semantics)
        case _:
            if not history.permanent:
                return Result()
            result: Result = modules[attack].find(history, semantics=semantics)
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


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
