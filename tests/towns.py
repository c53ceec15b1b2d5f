"""Three hundred people in four towns, for tests of how a series goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sequester as sq
from policies import changed
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")
SEED = 1 << 63
DRAW = np.random.default_rng(12)
AGES = DRAW.integers(0, 60, 300)
TOWNS = DRAW.choice(["Paris", "Lyon", "Rome", "Milan"], 300)
VALUES = DRAW.choice(["flu", "cold", "asthma", "gout"], 300)
TREE = {"Europe": [{"France": ["Paris", "Lyon"]}, {"Italy": ["Rome", "Milan"]}]}


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "first",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 59], "levels": [5, 20]},
            "town": {"role": "quasi-identifier", "hierarchy": TREE},
            "value": {"role": "sensitive"},
        },
        "protect": {"k": 4, "confidence": 0.6},
    }
    return changed(raw, **changes)


def people(count: int, *, leave: tuple[int, ...] = (), **cells: dict[int, Any]) -> pa.Table:
    """The first people without some, and with these cells of single ones."""
    columns: dict[str, Any] = {"id": [f"p{n}" for n in range(count)], "age": AGES, "town": TOWNS, "value": VALUES}
    rows = {name: list(column[:count]) for name, column in columns.items()}
    for name, given in cells.items():
        for n, cell in given.items():
            rows[name][n] = cell
    kept = [n for n in range(count) if n not in leave]
    return pa.table({name: [column[n] for n in kept] for name, column in rows.items()})
