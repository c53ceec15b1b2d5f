"""A small table of people who agree to be published or not, with its policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sequester as sq
from policies import changed
from sequester.ledger import Key

KEY = Key(b"k" * 32)
SEED = 1 << 63 | 7
RANDOM = np.random.default_rng(3)
AGES = RANDOM.integers(0, 99, 400)
VALUES = np.array(["flu", "gout", "cold", "lupus", "none"])[np.arange(400) % 5]


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
            "value": {"role": "sensitive"},
            "agrees": {"role": "consent"},
        },
        "protect": {"k": 4, "confidence": 0.6},
    }
    return changed(raw, **changes)


def people(numbers: range | list[int], *, refusing: frozenset[int] = frozenset()) -> pa.Table:
    rows = list(numbers)
    return pa.table(
        {
            "id": [f"p{n}" for n in rows],
            "age": AGES[rows],
            "value": VALUES[rows],
            "agrees": ["no" if n in refusing else "yes" for n in rows],
        }
    )
