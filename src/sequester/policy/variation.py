"""A policy with something else in it: another method, or another number where one may be chosen.

What a number does to a promise is known here, so that nobody takes a weaker promise for a better setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sequester.errors import PolicyError, Problem
from sequester.policy.document import Document, KeyPath
from sequester.policy.model import Policy
from sequester.policy.phrase import closest
from sequester.policy.pod_checks import ONLY_PODS


@dataclass(frozen=True)
class Knob:
    """A number of a policy that may be chosen.

    path   where it stands
    more   1: a larger number promises more, -1: a smaller one does, 0: nothing is promised by it
    whole  whether it is a whole number
    """

    path: KeyPath
    more: int
    whole: bool = False


KNOBS: Mapping[str, Knob] = {
    "k": Knob(("protect", "k"), 1, whole=True),
    "confidence": Knob(("protect", "confidence"), -1),
    "people": Knob(("protect", "people"), 1, whole=True),
    "inferred": Knob(("protect", "inferred"), 1, whole=True),
    "lineage": Knob(("protect", "lineage"), -1, whole=True),
    "belief": Knob(("protect", "belief"), -1),
    "l": Knob(("protect", "lifetime", "l"), 1),
    "decoys": Knob(("decoys",), 0),
}
"""By the last word of its key."""

Numbers = Mapping[str, float]


def knob(name: str) -> Knob:
    """The number of a policy with this name; PolicyError where there is none that can be varied."""
    if name not in KNOBS:
        raise PolicyError(Problem(f"cannot be varied; what can: {', '.join(KNOBS)}{closest(name, KNOBS)}", key=name))
    return KNOBS[name]


def varied(policy: Policy, numbers: Numbers, *, method: str | None = None) -> Policy:
    """The policy with these numbers, by another method if one is named; checked as any other, so PolicyError.

    Keys that only go with another method are left out. A confidence is that of all values which are not ordinary.
    """
    raw: dict[str, Any] = policy.model_dump(exclude_unset=True)
    if method is not None and method != policy.method.name:
        raw["method"] = {"name": method}
    else:
        raw["method"] = policy.method.model_dump(exclude_unset=True) | {"name": policy.method.name}
    other = raw["method"]["name"] != policy.method.name
    for name, number in numbers.items():
        _put(raw, knob(name), number, name)
        if name == "confidence":
            for attribute in raw["attributes"].values():
                attribute.pop("confidence", None)
    if other:
        # The default of these depends on the method, and what is promised does not.
        k = raw["protect"]["k"]
        raw["protect"].setdefault("people", min(k, policy.fewest_people))
        differs = raw["method"]["name"] == "pods" or policy.fewest != policy.protect.k
        if differs and {"insider", "neighbor"} & set(policy.protect.against):
            raw["protect"].setdefault("inferred", min(k, policy.fewest))
    if raw["method"]["name"] != "pods":
        for path in ONLY_PODS:
            _drop(raw, path)
    from sequester.policy.load import build_policy

    return build_policy(Document("", raw), base=policy.path("."))


def promises_as_much(policy: Policy, numbers: Numbers, *, method: str | None = None) -> bool:
    """Whether a policy with these numbers, by another method if one is named, promises at least what it does itself."""
    if method not in (None, "pods") and (policy.protect.lineage is not None or policy.impossible):
        # No other method keeps these.
        return False
    for name, number in numbers.items():
        more, own = knob(name).more, own_number(policy, name)
        if more and own is not None and (not isinstance(own, int | float) or more * (number - own) < 0):
            return False
    return True


def own_number(policy: Policy, name: str) -> Any:
    """What a policy has itself; None where it promises nothing, and no number where it differs by value or column."""
    if name == "people":
        return policy.fewest_people
    if name == "inferred":
        return policy.fewest
    if name == "lineage":
        return policy.linked
    if name == "decoys":
        return policy.decoys
    if name == "l":
        return None if policy.protect.lifetime is None else policy.protect.lifetime.l
    own = getattr(policy.protect, name)
    if name == "confidence" and any(one.confidence is not None for one in policy.sensitive.values()):
        return "by column"
    return own


def _put(raw: dict[str, Any], one: Knob, number: float, name: str) -> None:
    group = raw
    for part in one.path[:-1]:
        if not isinstance(group.get(str(part)), dict):
            raise PolicyError(Problem(f"cannot be varied: there is no {part} in the policy", key=name))
        group = group[str(part)]
    if one.whole and float(number).is_integer():
        number = int(number)
    group[str(one.path[-1])] = number if one.whole else float(number)


def _drop(raw: dict[str, Any], path: KeyPath) -> None:
    group: Any = raw
    for part in path[:-1]:
        group = group.get(part, {})
    group.pop(path[-1], None)
