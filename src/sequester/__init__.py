"""Publish a table about people again and again, and let no one learn from the series what no single release tells."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sequester.attacks.adversary import Knowledge
    from sequester.attacks.audit import Audit, audit
    from sequester.attacks.finding import Finding
    from sequester.errors import DataError, GuaranteeError, MissingLibrary, PolicyError, Problem, SequesterError
    from sequester.metrics.measure import Measurement, measure
    from sequester.policy import Policy
    from sequester.publish.anonymize import anonymize
    from sequester.publish.release import Release

    __version__: str

# Names are loaded when they are first used, so that `import sequester` stays cheap.
_HOMES = {
    "Audit": "sequester.attacks.audit",
    "DataError": "sequester.errors",
    "Finding": "sequester.attacks.finding",
    "GuaranteeError": "sequester.errors",
    "Knowledge": "sequester.attacks.adversary",
    "Measurement": "sequester.metrics.measure",
    "MissingLibrary": "sequester.errors",
    "Policy": "sequester.policy",
    "PolicyError": "sequester.errors",
    "Problem": "sequester.errors",
    "Release": "sequester.publish.release",
    "SequesterError": "sequester.errors",
    "anonymize": "sequester.publish.anonymize",
    "audit": "sequester.attacks.audit",
    "measure": "sequester.metrics.measure",
}

__all__ = [
    "Audit",
    "DataError",
    "Finding",
    "GuaranteeError",
    "Knowledge",
    "Measurement",
    "MissingLibrary",
    "Policy",
    "PolicyError",
    "Problem",
    "Release",
    "SequesterError",
    "__version__",
    "anonymize",
    "audit",
    "measure",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("sequester")
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'sequester' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
