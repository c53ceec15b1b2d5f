"""What a policy leaves open, decided by what it says.

The method is the one thing that depends on the rest: pods are for values that stay with a person over a series, and
nothing else does what they do there. They are the default as soon as `PODS_BY_DEFAULT` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sequester.policy.protect import CLASS_PROMISES

PODS_BY_DEFAULT = False


def default_method(policy: Mapping[str, Any]) -> str:
    """The name of the method of a policy that names none; it may be checked or as written."""
    return "pods" if PODS_BY_DEFAULT and suits_pods(policy) else "mondrian"


def suits_pods(policy: Mapping[str, Any]) -> bool:
    """Whether a series has bounded values that stay, and promises nothing that pods do not keep."""
    attributes, protect = policy.get("attributes"), policy.get("protect")
    if policy.get("person") is None or not isinstance(attributes, Mapping):
        return False
    sensitive = [one for one in attributes.values() if get(one, "role") == "sensitive"]
    bounded = [one for one in sensitive if (get(one, "confidence") or get(protect, "confidence")) not in (None, 1)]
    against = get(protect, "against")
    others = ("lifetime", *(one.key for one in CLASS_PROMISES if one.key not in ("k", "confidence")))
    return (
        bool(bounded)
        and all(get(one, "values") != "transient" for one in sensitive)
        and all(get(protect, key) is None for key in others)
        and not (isinstance(against, list | tuple) and "neighbor" in against)
    )


def get(item: Any, key: str) -> Any:
    """A key of settings that were checked or are as written; None where there is none."""
    return item.get(key) if isinstance(item, Mapping) else getattr(item, key, None)
