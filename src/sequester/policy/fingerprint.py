"""What of a policy must stay the same for a whole series, and a short name for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sequester.policy.model import Policy

# How a release is made, read and written may differ from release to release; what is promised about whom may not.
_FIXED = ("version", "series", "person", "attributes", "protect", "released")


def policy_text(policy: Policy) -> str:
    """The policy as JSON, the same for equal policies; where its ledger is, and what works on it, is no part of it."""
    whole = _promised(policy, policy.model_dump(mode="json", exclude={"ledger", "engine"}))
    if policy.after is not None and "://" in policy.after:
        # An address may hold a password.
        whole["after"] = None
    return json.dumps(whole, sort_keys=True, separators=(",", ":"))


def fingerprint(policy: Policy) -> str:
    """SHA-256 of what is promised about whom: a plan was made for exactly that."""
    fixed = _promised(policy, policy.model_dump(mode="json", include=set(_FIXED)))
    return hashlib.sha256(json.dumps(fixed, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _promised(policy: Policy, raw: dict[str, Any]) -> dict[str, Any]:
    """The same with numbers for what is promised by default: that depends on the method, and what is fixed must not."""
    raw["protect"] |= {"inferred": policy.fewest, "people": policy.fewest_people}
    return raw


def differences(policy: Policy, text: str, *, keys: Sequence[str] = _FIXED) -> list[str]:
    """The keys, dotted, in which what must stay the same differs from an earlier policy.

    A range may become wider. Hierarchies are compared by what is in them, when data is read: they may get new values.
    """
    before, now = json.loads(text), _promised(policy, policy.model_dump(mode="json"))
    different: list[str] = []
    for key in keys:
        one, other = before.get(key), now.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            for name in sorted({*one, *other}):
                left, right = one.get(name), other.get(name)
                if key == "attributes":
                    left, right = _without_growth(left, right)
                if left != right:
                    different.append(f"{key}.{name}")
        elif one != other:
            different.append(key)
    if "protect.k" in different:
        # What nobody wrote follows from k.
        follows = {f"protect.{name}" for name in ("inferred", "people") if getattr(policy.protect, name) is None}
        different = [key for key in different if key not in follows]
    return different


def growth(policy: Policy, text: str) -> list[str]:
    """In words, what a policy allows or does otherwise than an earlier one, of what may differ between releases."""
    before, now = json.loads(text), policy.model_dump(mode="json")
    told = []
    for name, attribute in now["attributes"].items():
        one, other = before["attributes"].get(name, {}).get("range"), attribute.get("range")
        if one and other and one != other:
            told.append(f"the range of {name} is {_span(other)}, and was {_span(one)}")
    # Where releases and ledgers are is no part of how they are made.
    free = [
        key
        for key in now
        if key not in (*_FIXED, "ledger", "after", "engine") and before.get(key, now[key]) != now[key]
    ]
    return [*told, *([f"{', '.join(free)} changed"] if free else [])]


def _span(ends: Sequence[float]) -> str:
    return " to ".join(f"{end:g}" for end in ends)


def _without_growth(before: Any, now: Any) -> tuple[Any, Any]:
    """Two declarations of an attribute without that in which the later one only allows more values."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return before, now
    grown = {"hierarchy"} if before.get("hierarchy") and now.get("hierarchy") else set()
    one, other = before.get("range"), now.get("range")
    if one and other and other[0] <= one[0] and one[1] <= other[1]:
        grown.add("range")
    left, right = ({key: value for key, value in raw.items() if key not in grown} for raw in (before, now))
    return left, right
