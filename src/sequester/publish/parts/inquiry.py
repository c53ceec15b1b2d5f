"""Everything published so far, audited part by part: no attack crosses parts, so what holds of each holds of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sequester.attacks.audit import Audit
from sequester.attacks.finding import Finding
from sequester.attacks.registry import attack_of
from sequester.errors import DataError
from sequester.ledger.part_ledger import Parts
from sequester.policy.model import Policy
from sequester.processes import run_all
from sequester.publish.inquiry import AuditQuestion, audit_whole, with_bounds

if TYPE_CHECKING:
    from sequester.attacks.explain import Story
    from sequester.ledger import Ledger

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class _Auditor:
    parts: Parts
    policy: Policy
    question: AuditQuestion

    def __call__(self, part: int) -> Audit:
        audit = audit_whole(self.parts.open(part), self.policy, self.question)
        findings = tuple(_in_part(finding, part) for finding in audit.findings)
        named = {person for finding in findings for person in finding.people}
        nobody = frozenset(f"{part}-{person}" for person in audit.nobody) & named
        # What stories are told from is left behind: it is as large as the part.
        return replace(audit, findings=findings, nobody=nobody, histories=(), published=())


class PartedAudit(Audit):
    """An audit of all parts. People and classes are those of their part, with its number before theirs."""

    def story(self, number: int) -> Story:
        """What a finding rests on is in its part, and not here."""
        raise DataError("findings of a series in parts are told without their stories; `findings` has all of them")


def _in_part(finding: Finding, part: int) -> Finding:
    return replace(finding, people=tuple(f"{part}-{person}" for person in finding.people))


def audit_parts(ledger: Ledger, policy: Policy, question: AuditQuestion, *, progress: Progress | None = None) -> Audit:
    """Everything an adversary can learn from all releases of a series in parts."""
    parts = Parts.of(ledger)
    count = len(parts.lists[-1].cards)
    audits: list[Audit] = []
    for audit in run_all(_Auditor(parts, policy, question), range(count), processes=os.cpu_count() or 1):
        audits.append(audit)
        if progress is not None:
            progress("auditing parts", len(audits), count)
    asked = with_bounds(policy, k=question.k, confidence=question.confidence)
    tried = tuple(dict.fromkeys(name for audit in audits for name in audit.tried))
    return PartedAudit(
        findings=tuple(finding for audit in audits for finding in audit.findings),
        measures=_worst(audits, tried, asked),
        tried=tried,
        notes=tuple(dict.fromkeys(note for audit in audits for note in audit.notes)),
        histories=(),
        untried=tuple(
            one
            for one in dict.fromkeys(u for audit in audits for u in audit.untried)
            if not set(one.attacks) <= set(tried)
        ),
        unsolved=sum(audit.unsolved for audit in audits),
        nobody=frozenset().union(*(audit.nobody for audit in audits)),
        policy=audits[0].policy,
    )


def _worst(audits: Sequence[Audit], tried: Sequence[str], policy: Policy) -> dict[str, Any]:
    """What every attack reached, in the part where it reached most."""
    worst = {}
    for name in tried:
        if reached := [audit.measures[name] for audit in audits if name in audit.measures]:
            worst[name] = attack_of(name).worse(policy)(reached)
    return worst
