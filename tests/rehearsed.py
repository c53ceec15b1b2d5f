"""A small invented panel to rehearse: people come, go and come back over three waves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sequester as sq

COUNT = 240
TOWNS = {"Land": [{"North": ["Kiel", "Bremen"]}, {"South": ["Celle", "Ulm"]}]}
PRESENT = (np.arange(160), np.arange(40, 200), np.r_[0:30, 80:240])
QUASI: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
    "town": {"role": "quasi-identifier"},
}


def people() -> dict[str, list[Any]]:
    random = np.random.default_rng(5)
    return {
        "id": [f"p{number}" for number in range(COUNT)],
        "age": random.integers(0, 100, COUNT).tolist(),
        "town": random.choice(["Kiel", "Bremen", "Celle", "Ulm"], COUNT).tolist(),
        "illness": random.choice(["flu", "cold", "asthma", "gout"], COUNT, p=[0.4, 0.3, 0.15, 0.15]).tolist(),
    }


def waves(**columns: list[Any]) -> list[pa.Table]:
    """The panel, with other columns or more of them."""
    cells = {**people(), **columns}
    return [pa.table({name: [cells[name][one] for one in there] for name in cells}) for there in PRESENT]


def raw(**more: Any) -> dict[str, Any]:
    """k 4, confidence 0.6, by pods."""
    given: dict[str, Any] = {
        "version": 1,
        "series": "panel",
        "person": "id",
        "attributes": {**QUASI, "illness": {"role": "sensitive"}},
        "protect": {"k": 4, "confidence": 0.6, "inferred": 2},
        "method": {"name": "pods"},
    }
    return {**given, **more}


def rules(**more: Any) -> sq.Policy:
    return sq.Policy.model_validate(raw(**more))
