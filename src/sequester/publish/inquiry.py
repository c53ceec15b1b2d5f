"""Questions about what was published: any adversary and any bound. Asking changes nothing, so nothing is refused that
would be refused of a promise.

A series in parts is asked part by part: no attack crosses parts, so what holds of each holds of all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sequester.attacks.audit import Audit, audit_histories
from sequester.attacks.registry import attack_of
from sequester.errors import DataError, PolicyError, Problem
from sequester.ingest.encode import encode_list
from sequester.ledger.part_ledger import Parts
from sequester.ledger.parts import is_parted
from sequester.log import Progress
from sequester.policy.attributes import Sensitive
from sequester.policy.fingerprint import differences
from sequester.policy.model import Policy
from sequester.processes import run_all
from sequester.publish.recall import recall, rows_of

if TYPE_CHECKING:
    from sequester.attacks.explain import Story
    from sequester.ledger import Ledger


def audit_ledger(
    ledger: Ledger,
    policy: Policy,
    *,
    against: Sequence[str] | None = None,
    k: int | None = None,
    confidence: float | None = None,
    belief: bool = False,
    informed: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Everything an adversary can learn from all releases of a ledger; the publisher's view, people as numbers.

    The policy must describe the same columns; what it protects, and against whom, is what is asked. `belief` asks how
    sure somebody without prejudice could be, also when some people's values are known; `informed`, how sure a reader
    who has learnt from the releases. Of people's exact values the ledger has only what their boxes have in common.
    """
    # By which column people are known makes no difference to what was published of them.
    changed = [key for key in differences(policy, ledger.policy_text) if key != "person"]
    other = [key for key in changed if not key.startswith("protect.")]
    if other:
        message = "is not what it was when the series began, so the releases cannot be read by it; put it back"
        raise PolicyError(Problem(message, key=key) for key in other)
    asked = with_bounds(policy, k=k, confidence=confidence)
    question = _Question(asked, asked.protect.against if against is None else against, belief, informed)
    if is_parted(ledger.releases()):
        return _audit_parts(Parts.of(ledger), question, progress=progress)
    return question.of(ledger, progress=progress)


def with_bounds(policy: Policy, *, k: int | None = None, confidence: float | None = None) -> Policy:
    """The policy as a question: its k, and the confidence of all its values, replaced where they are given.

    It is not checked as a promise: whoever asks may ask for less, or for what nobody would promise.
    """
    protect, attributes = policy.protect, dict(policy.attributes)
    if k is not None:
        protect = protect.model_copy(update={"k": k})
    if confidence is not None:
        # With another confidence pods would have other seats: of what is inferred as much is asked as before.
        own = policy.fewest if policy.fewest < policy.protect.k else None
        protect = protect.model_copy(update={"confidence": confidence, "inferred": protect.inferred or own})
        for name, attribute in policy.attributes.items():
            if isinstance(attribute, Sensitive):
                attributes[name] = attribute.model_copy(update={"confidence": None})
    return policy.model_copy(update={"protect": protect, "attributes": attributes})


@dataclass(frozen=True)
class _Question:
    """What is asked, against whom, and whether for belief, also of a reader who has learnt from the releases."""

    asked: Policy
    against: Sequence[str]
    belief: bool
    informed: bool

    def of(self, ledger: Ledger, *, progress: Progress | None = None) -> Audit:
        """The answer for a ledger that is not kept in parts, or for one part."""
        state, asked = ledger.load(), self.asked
        if not state.releases:
            raise DataError("nothing was published yet, so there is nothing to audit")
        domains, registered = state.domains, None
        if asked.registration_list is not None:
            domains, registered = encode_list(asked.registration_list, asked, domains)
        known = recall(state, asked, domains)
        return audit_histories(
            known.histories,
            asked,
            against=self.against,
            rows=rows_of(known.histories, known.labels, self.against),
            registered=registered,
            progress=progress,
            seats=state.seats,
            belief=self.belief,
            informed=() if self.informed else None,
        )


class PartedAudit(Audit):
    """An audit of all parts. People and classes are those of their part, with its number before theirs."""

    def story(self, number: int) -> Story:
        """What a finding rests on is in its part, and not here."""
        raise DataError("findings of a series in parts are told without their stories; `findings` has all of them")


@dataclass(frozen=True, eq=False, repr=False)
class _Auditor:
    parts: Parts
    question: _Question

    def __call__(self, part: int) -> Audit:
        audit = self.question.of(self.parts.open(part))
        findings = tuple(
            replace(finding, people=tuple(f"{part}-{person}" for person in finding.people))
            for finding in audit.findings
        )
        named = {person for finding in findings for person in finding.people}
        nobody = frozenset(f"{part}-{person}" for person in audit.nobody) & named
        # What stories are told from is left behind: it is as large as the part.
        return replace(audit, findings=findings, nobody=nobody, histories=(), published=())


def _audit_parts(parts: Parts, question: _Question, *, progress: Progress | None) -> Audit:
    """Everything an adversary can learn from all releases of a series in parts."""
    count = len(parts.lists[-1].cards)
    audits: list[Audit] = []
    for audit in run_all(_Auditor(parts, question), range(count), processes=os.cpu_count() or 1):
        audits.append(audit)
        if progress is not None:
            progress("auditing parts", len(audits), count)
    tried = tuple(dict.fromkeys(name for audit in audits for name in audit.tried))
    # What every attack reached, in the part where it reached most.
    reached = {name: [audit.measures[name] for audit in audits if name in audit.measures] for name in tried}
    untried = dict.fromkeys(one for audit in audits for one in audit.untried)
    return PartedAudit(
        findings=tuple(finding for audit in audits for finding in audit.findings),
        measures={name: attack_of(name).worse(question.asked)(most) for name, most in reached.items() if most},
        tried=tried,
        notes=tuple(dict.fromkeys(note for audit in audits for note in audit.notes)),
        histories=(),
        untried=tuple(one for one in untried if not set(one.attacks) <= set(tried)),
        unsolved=sum(audit.unsolved for audit in audits),
        nobody=frozenset().union(*(audit.nobody for audit in audits)),
        policy=audits[0].policy,
    )
