"""Which keys of a policy would relax what an attack, or a promise about single releases, forces.

What the audit finds becomes causes here, counted: no value and nobody of a finding is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sequester.attacks.audit import Audit
from sequester.attacks.finding import Finding
from sequester.attacks.registry import ATTACKS
from sequester.causes import Cause, What
from sequester.policy.model import Policy
from sequester.policy.protect import CLASS_PROMISES, ClassPromise


def keys_of(policy: Policy, attack: str, attribute: str = "", *, about_value: bool = False) -> tuple[str, ...]:
    """The keys, dotted: those that ask for it first, then what it could be spared by.

    about_value  whether a value is tied to people too surely; otherwise too few people or rows remain
    """
    return tuple(dict.fromkeys(_keys(policy, attack, attribute, about_value=about_value)))


def confidence_keys(policy: Policy, attribute: str) -> Iterator[str]:
    """Where the bound on the values of an attribute stands, and where values that need none do."""
    for name, declared in policy.sensitive.items():
        if attribute and name not in attribute.split(" and "):
            continue
        if declared.confidence is not None:
            yield f"attributes.{name}.confidence"
        elif policy.protect.confidence is not None:
            yield "protect.confidence"
    for name in policy.sensitive:
        if not attribute or name in attribute.split(" and "):
            yield f"attributes.{name}.ordinary"


def fewest_keys(policy: Policy) -> Iterator[str]:
    """Where it stands how many people or rows must remain of what is inferred."""
    if policy.fewest > 1:
        yield "protect.inferred"
    if policy.protect.inferred is None and policy.fewest == policy.protect.k:
        yield "protect.k"


def by_attack(what: What, audit: Audit, policy: Policy, *, release: int, keys: Iterable[str] = ()) -> tuple[Cause, ...]:
    """A cause for every attack and attribute of an audit's findings; `release` is the number of this one."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in audit.findings:
        groups.setdefault((finding.attack, finding.attribute or ""), []).append(finding)
    causes = []
    for (attack, attribute), findings in groups.items():
        relaxing = [
            key
            for about in sorted({one.about_value for one in findings})
            for key in keys_of(policy, attack, declared(policy, attribute), about_value=about)
        ]
        causes.append(
            Cause(
                what,
                attack,
                attribute,
                people=len({person for one in findings for person in one.people}),
                classes=len({number for one in findings for of, number in one.classes if of == release}),
                keys=tuple(dict.fromkeys([*relaxing, *keys])),
            )
        )
    return tuple(sorted(causes, key=lambda cause: (-cause.people, -cause.classes, cause.attack)))


def declared(policy: Policy, attribute: str) -> str:
    """The attribute that a view is of, by its name in the policy; empty where it is of several, or of whole rows."""
    return attribute if attribute in policy.sensitive else ""


def all_keys(policy: Policy) -> tuple[str, ...]:
    """Everything that what is promised of all releases together hangs on, where nothing in particular is to blame."""
    if policy.protect.lifetime is not None:
        return keys_of(policy, "breach")
    against = ["protect.against"] if len(policy.protect.against) > 1 else []
    return tuple(dict.fromkeys([*fewest_keys(policy), *confidence_keys(policy, ""), *against]))


def _keys(policy: Policy, attack: str, attribute: str, *, about_value: bool) -> Iterator[str]:
    adversary = next((one.adversary for one in ATTACKS if one.name == attack), None)
    promise = _promise(attack)
    if attack == "confidence":
        yield from confidence_keys(policy, attribute)
    elif promise is not None:
        yield f"protect.{promise.key}"
    elif attack == "breach":
        yield "protect.lifetime"
        yield from (f"attributes.{name}.ordinary" for name in policy.sensitive if attribute in ("", name))
    elif attack == "belief":
        yield "protect.belief"
    else:
        yield from confidence_keys(policy, attribute) if about_value else fewest_keys(policy)
    if adversary not in (None, "outsider") and len(policy.protect.against) > 1:
        yield "protect.against"


def _promise(attack: str) -> ClassPromise | None:
    """The promise about single releases that an attack tries, or that has this name itself."""
    return next((one for one in CLASS_PROMISES if attack in (one.attack, one.key)), None)
