"""Publish a table about people again and again, and let no one learn from the series what no single release tells."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sequester.analyst.estimate import estimate as estimate
    from sequester.analyst.read import read_release as read_release
    from sequester.analyst.read import read_series as read_series
    from sequester.analyst.result import Estimate as Estimate
    from sequester.attacks.audit import Audit as Audit
    from sequester.attacks.audit import audit as audit
    from sequester.attacks.finding import Finding as Finding
    from sequester.attacks.registry import Knowledge as Knowledge
    from sequester.errors import Busy as Busy
    from sequester.errors import DataError as DataError
    from sequester.errors import GuaranteeError as GuaranteeError
    from sequester.errors import LedgerError as LedgerError
    from sequester.errors import MissingLibrary as MissingLibrary
    from sequester.errors import PolicyError as PolicyError
    from sequester.errors import Problem as Problem
    from sequester.errors import SequesterError as SequesterError
    from sequester.errors import StalePlan as StalePlan
    from sequester.ingest.propose import propose as propose
    from sequester.metrics.measure import Measurement as Measurement
    from sequester.metrics.measure import measure as measure
    from sequester.policy import Policy as Policy
    from sequester.publish.anonymize import anonymize as anonymize
    from sequester.publish.plan import Plan as Plan
    from sequester.publish.rehearsing.rehearse import Rehearsal as Rehearsal
    from sequester.publish.rehearsing.rehearse import rehearse as rehearse
    from sequester.publish.release import Release as Release
    from sequester.publish.series import Series as Series

    __version__: str

# Where public names are; each is loaded when it is first used, so that `import sequester` stays cheap.
_HOMES = {
    name: f"sequester.{home}"
    for home, names in {
        "analyst.estimate": ("estimate",),
        "analyst.read": ("read_release", "read_series"),
        "analyst.result": ("Estimate",),
        "attacks.registry": ("Knowledge",),
        "attacks.audit": ("Audit", "audit"),
        "attacks.finding": ("Finding",),
        "errors": (
            "Busy", "DataError", "GuaranteeError", "LedgerError", "MissingLibrary", "PolicyError", "Problem",
            "SequesterError", "StalePlan",
        ),
        "ingest.propose": ("propose",),
        "metrics.measure": ("Measurement", "measure"),
        "policy": ("Policy",),
        "publish.anonymize": ("anonymize",),
        "publish.plan": ("Plan",),
        "publish.rehearsing.rehearse": ("Rehearsal", "rehearse"),
        "publish.release": ("Release",),
        "publish.series": ("Series",),
    }.items()
    for name in names
}  # fmt: skip

__all__ = sorted([*_HOMES, "__version__"])


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
