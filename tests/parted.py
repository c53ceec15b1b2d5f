"""Towns whose people come and go, small enough to try everything and large enough to be made in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

import sequester as sq
from sequester.ledger import Key
from sequester.publish.series import Series

KEY = Key.of_text("a key for tests of parts")
SEED = 2**63 + 9
PART = 60
ILLNESSES = ("flu", "cold", "gout", "lupus", "asthma", "mumps")


def policy(method: str = "mondrian", *, part: int = PART, **more: Any) -> sq.Policy:
    """A policy whose first tables of more than four parts are made in parts."""
    engine = {"part": part, "processes": 1, **more.pop("engine", {})}
    protect = {"k": 3, "confidence": 0.6, "inferred": 2, **more.pop("protect", {})}
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": more.pop("series", "towns"),
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
                "city": {"role": "quasi-identifier", "kind": "category"},
                "income": {"role": "quasi-identifier", "kind": "number", "changes": True},
                "illness": {"role": "sensitive"},
                **more.pop("attributes", {}),
            },
            "protect": protect,
            "method": {"name": method},
            "engine": engine,
            **more,
        }
    )


def people(count: int = 400, *, seed: int = 1) -> pa.Table:
    """Everybody who will ever be in a table."""
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "id": [f"p{number}" for number in range(count)],
            "age": draw.integers(0, 100, count),
            "city": np.array(["Bonn", "Jena", "Halle", "Koeln", "Trier"])[draw.integers(0, 5, count)],
            "income": draw.integers(0, 50, count),
            "illness": np.array(ILLNESSES)[np.arange(count) % len(ILLNESSES)],
        }
    )


def waves(count: int = 400) -> tuple[pa.Table, pa.Table]:
    """A table, and the next: a tenth has left, others came, and all have another income."""
    everybody = people(count)
    first = everybody.slice(0, count * 3 // 4)
    stay = np.random.default_rng(2).random(first.num_rows) > 0.1
    second = pa.concat_tables([first.filter(pa.array(stay)), everybody.slice(count * 3 // 4)])
    income = np.random.default_rng(3).integers(0, 50, second.num_rows)
    return first, second.set_column(second.column_names.index("income"), "income", pa.array(income))


def begin(folder: Path, chosen: sq.Policy) -> Series:
    """A series in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return sq.Series.open(folder / "towns.ledger", chosen, key=KEY)


def publish_both(folder: Path, chosen: sq.Policy, *, tables: tuple[pa.Table, pa.Table] | None = None) -> Series:
    """Both waves published."""
    series = begin(folder, chosen)
    for number, table in enumerate(waves() if tables is None else tables, 1):
        series.publish(table, name=f"w{number}", seed=SEED + number)
    return series


def files(folder: Path) -> dict[str, bytes]:
    """Everything in the release folders that is data, by where it is."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("releases/*/*/data*"))}


def write(path: Path, table: pa.Table) -> Path:
    """A table as a CSV file."""
    csv.write_csv(table, path)
    return path
