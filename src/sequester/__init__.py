"""Publish a table about people again and again, and let no one learn from the series what no single release tells."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sequester.analyst.estimate import estimate
    from sequester.analyst.read import read_release, read_series
    from sequester.analyst.result import Estimate
    from sequester.attacks.adversary import Knowledge
    from sequester.attacks.audit import Audit, audit
    from sequester.attacks.finding import Finding
    from sequester.errors import (
        Busy,
        DataError,
        GuaranteeError,
        LedgerError,
        MissingLibrary,
        PolicyError,
        Problem,
        SequesterError,
        StalePlan,
    )
    from sequester.ingest.propose import propose
    from sequester.metrics.measure import Measurement, measure
    from sequester.policy import Policy
    from sequester.publish.anonymize import anonymize
    from sequester.publish.plan import Plan
    from sequester.publish.rehearsing.rehearse import Rehearsal, rehearse
    from sequester.publish.release import Release
    from sequester.publish.series import Series

    __version__: str

# Names are loaded when they are first used, so that `import sequester` stays cheap.
_HOMES = {
    "Audit": "sequester.attacks.audit",
    "Busy": "sequester.errors",
    "DataError": "sequester.errors",
    "Estimate": "sequester.analyst.result",
    "Finding": "sequester.attacks.finding",
    "GuaranteeError": "sequester.errors",
    "Knowledge": "sequester.attacks.adversary",
    "LedgerError": "sequester.errors",
    "Measurement": "sequester.metrics.measure",
    "MissingLibrary": "sequester.errors",
    "Plan": "sequester.publish.plan",
    "Policy": "sequester.policy",
    "PolicyError": "sequester.errors",
    "Problem": "sequester.errors",
    "Rehearsal": "sequester.publish.rehearsing.rehearse",
    "Release": "sequester.publish.release",
    "SequesterError": "sequester.errors",
    "Series": "sequester.publish.series",
    "StalePlan": "sequester.errors",
    "anonymize": "sequester.publish.anonymize",
    "audit": "sequester.attacks.audit",
    "estimate": "sequester.analyst.estimate",
    "measure": "sequester.metrics.measure",
    "propose": "sequester.ingest.propose",
    "read_release": "sequester.analyst.read",
    "read_series": "sequester.analyst.read",
    "rehearse": "sequester.publish.rehearsing.rehearse",
}

__all__ = [
    "Audit",
    "Busy",
    "DataError",
    "Estimate",
    "Finding",
    "GuaranteeError",
    "Knowledge",
    "LedgerError",
    "Measurement",
    "MissingLibrary",
    "Plan",
    "Policy",
    "PolicyError",
    "Problem",
    "Rehearsal",
    "Release",
    "SequesterError",
    "Series",
    "StalePlan",
    "__version__",
    "anonymize",
    "audit",
    "estimate",
    "measure",
    "propose",
    "read_release",
    "read_series",
    "rehearse",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("sequester")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'sequester' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
