"""What of a policy must stay the same for a whole series, and a short name for it."""

from __future__ import annotations

import hashlib
import json

from sequester.policy.model import Policy

# How a release is made, read and written may differ from release to release; what is promised about whom may not.
_FIXED = ("version", "series", "person", "attributes", "protect", "released")


def policy_text(policy: Policy) -> str:
    """The policy as JSON, the same for equal policies."""
    return json.dumps(policy.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def fingerprint(policy: Policy) -> str:
    """SHA-256 of what must stay the same. Hierarchy files are compared by what is in them, when data is read."""
    fixed = policy.model_dump(mode="json", include=set(_FIXED))
    return hashlib.sha256(json.dumps(fixed, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def differences(policy: Policy, text: str) -> list[str]:
    """The keys, dotted, in which what must stay the same differs from an earlier policy."""
    before, now = json.loads(text), policy.model_dump(mode="json")
    found: list[str] = []
    for key in _FIXED:
        one, other = before.get(key), now.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{key}.{name}" for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
        elif one != other:
            found.append(key)
    return found
