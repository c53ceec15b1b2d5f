"""Questions about what was published: any adversary and any bound. Asking changes nothing, so nothing is refused that
would be refused of a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sequester.errors import DataError, PolicyError, Problem
from sequester.ledger.parts import is_parted
from sequester.policy.attributes import Sensitive
from sequester.policy.fingerprint import differences
from sequester.policy.model import Policy

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.ledger import Ledger

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class AuditQuestion:
    """Against whom, for which k and confidence, and whether for belief, also of a reader who has learnt from the
    releases; None is what the policy promises."""

    against: Sequence[str] | None = None
    k: int | None = None
    confidence: float | None = None
    belief: bool = False
    informed: bool = False


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
    question = AuditQuestion(against, k, confidence, belief, informed)
    if is_parted(ledger.releases()):
        from sequester.publish.parts.inquiry import audit_parts

        return audit_parts(ledger, policy, question, progress=progress)
    return audit_whole(ledger, policy, question, progress=progress)


def audit_whole(ledger: Ledger, policy: Policy, question: AuditQuestion, *, progress: Progress | None = None) -> Audit:
    """The same of a ledger that is not kept in parts, or of one part."""
    from sequester.attacks.audit import audit_histories
    from sequester.ingest.encode import encode_list
    from sequester.publish.recall import recall, rows_of

    state = ledger.load()
    if not state.releases:
        raise DataError("nothing was published yet, so there is nothing to audit")
    asked = with_bounds(policy, k=question.k, confidence=question.confidence)
    domains, registered = state.domains, None
    if asked.registration_list is not None:
        domains, registered = encode_list(asked.registration_list, asked, domains)
    known = recall(state, asked, domains)
    chosen = asked.protect.against if question.against is None else question.against
    return audit_histories(
        known.histories,
        asked,
        against=chosen,
        rows=rows_of(known.histories, known.labels, chosen),
        registered=registered,
        progress=progress,
        seats=state.seats,
        belief=question.belief,
        informed=() if question.informed else None,
    )
