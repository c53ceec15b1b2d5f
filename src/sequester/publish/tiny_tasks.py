"""Tiny tasks, one per way of publishing, that call all of its kernels: to compile them early, and to measure that."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.ledger import Key
from sequester.policy.model import Policy
from sequester.publish.anonymize import anonymize
from sequester.publish.series import Series

COUNT = 420
SEED = 1 << 63
TOWNS = {"Land": [{"North": ["Kiel", "Bremen"]}, {"South": ["Celle", "Ulm"]}]}
# Newcomers, leavers and people who return, in numbers that can be hidden.
PRESENT = (np.arange(260), np.arange(60, 360), np.r_[0:40, 120:420])
_QUASI: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
    "town": {"role": "quasi-identifier", "hierarchy": TOWNS},
}
_CHANGING: dict[str, Any] = {
    "attributes": {**_QUASI, "illness": {"role": "sensitive", "values": "transient", "ordinary": ["flu", "cold"]}},
    "protect": {"k": 3, "lifetime": {"l": 1.5, "releases": 4}, "against": ["lifetime"]},
    "method": {"name": "group"},
}
_LISTED: dict[str, Any] = {
    "attributes": {**_QUASI, "illness": {"role": "sensitive", "hierarchy": {"all": ["flu", "cold", "asthma", "gout"]}}},
    "protect": {"k": 4, "confidence": 0.5, "inferred": 2},
}


def _table(numbers: Any) -> pa.Table:
    """Some of the same invented people."""
    random = np.random.default_rng(7)
    columns = {
        "id": np.array([f"p{number}" for number in range(COUNT)]),
        "age": random.integers(0, 100, COUNT),
        "town": random.choice(["Kiel", "Bremen", "Celle", "Ulm"], COUNT),
        "illness": random.choice(["flu", "cold", "asthma", "gout"], COUNT, p=[0.4, 0.3, 0.15, 0.15]),
    }
    return pa.table({name: column[numbers] for name, column in columns.items()})


def _policy(**more: Any) -> Policy:
    given: dict[str, Any] = {
        "version": 1,
        "series": "tiny",
        "person": "id",
        "attributes": {**_QUASI, "illness": {"role": "sensitive"}},
        "protect": {"k": 4, "confidence": 0.7},
        "method": {"name": "pods"},
    }
    return Policy.model_validate({**given, **more})


def _once(**more: Any) -> None:
    anonymize(_table(np.arange(COUNT)), _policy(**more), seed=SEED)


def _series(releases: int, **more: Any) -> None:
    """Plan so many releases in a folder that is then deleted, and publish those before the last."""
    with tempfile.TemporaryDirectory(prefix="sequester-tiny-") as folder:
        key = Key.of_text("nobody is in this series")
        series = Series.open(Path(folder) / "tiny.ledger", _policy(**more), key=key)
        for number, people in enumerate(PRESENT[:releases]):
            plan = series.plan(_table(people), name=f"r{number}", seed=SEED)
            if number + 1 < releases:
                series.publish(plan)


DEFAULT: Mapping[str, Callable[[], None]] = {
    "anonymize": partial(_once, method={"name": "mondrian"}),
    "first plan": partial(_series, 1),
    "second plan": partial(_series, 2),
}
"""What people wait for first: one table, and a series by pods, which most policies should use."""

OTHERS: Mapping[str, Callable[[], None]] = {
    "mondrian": partial(_series, 3, method={"name": "mondrian"}),
    "cluster": partial(_series, 2, method={"name": "cluster"}),
    "specialize": partial(_series, 2, method={"name": "specialize"}, protect={"k": 4, "against": ["neighbor"]}),
    "group": partial(_series, 2, **_CHANGING),
    "pods of two seats": partial(_series, 2, protect={"k": 4, "confidence": 0.7, "inferred": 2}),
    "blind pods": partial(_series, 2, **_LISTED, method={"name": "pods", "blind": True}),
    "full-domain": partial(_once, method={"name": "full-domain"}),
}
"""Ways with kernels that are not of the default path, those that take longest first."""

TASKS: Mapping[str, Callable[[], None]] = {**DEFAULT, **OTHERS}
