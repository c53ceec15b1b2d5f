"""A series publishes only files that say what was judged, in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from sequester.ledger import Key
from sequester.publish import commit, files

KEY = Key.of_text("a key for tests only")
DRAW = np.random.default_rng(8)
AGES = [None if lost else int(age) for age, lost in zip(DRAW.integers(0, 60, 200), DRAW.random(200) < 0.1, strict=True)]
PAY = DRAW.normal(1000, 300, 200).round(2)


def rules(numbers: str, form: str) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "clinic",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "missing": "category"},
                "pay": {"role": "quasi-identifier", "kind": "number"},
                "value": {"role": "sensitive"},
                "ward": {"role": "insensitive", "changes": True},
                "score": {"role": "insensitive", "changes": True},
            },
            "protect": {"k": 4, "confidence": 0.6},
            "method": {"name": "mondrian"},
            "output": {"numbers": numbers, "format": form},
        }
    )


def people(count: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"p{n}" for n in range(count)],
            "age": AGES[:count],
            "pay": PAY[:count],
            "value": [("flu", "cold, dry", "gout", 'an "odd" one')[n % 4] for n in range(count)],
            "ward": [None if n % 7 == 0 else "" if n % 11 == 0 else f"w, {n % 3}" for n in range(count)],
            "score": [None if n % 5 == 0 else n / 3 for n in range(count)],
        }
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("numbers", ["interval", "bounds", "midpoint"])
def test_every_format_is_read_back_as_it_was_judged(numbers: str, form: str, tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(numbers, form), key=KEY, folder=tmp_path / "out")
    for count in (120, 200):
        release = series.publish(people(count), name=f"r{count}")
        assert release.folder is not None
        rows = release.table.select([n for n in release.table.column_names if n.startswith(("age", "pay"))])
        sizes = rows.group_by(rows.column_names).aggregate([([], "count_all")])["count_all"].to_pylist()
        assert min(sizes) == release.measures["k"] >= 4


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_does_not_say_what_was_judged_is_published_nowhere(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules("bounds", form), key=KEY, folder=tmp_path / "out")
    write: Any = files.write_data

    def careless(table: pa.Table, path: Path) -> None:
        low = table["pay_min"].to_numpy().copy()
        low[0] -= 0.01
        write(table.set_column(table.column_names.index("pay_min"), "pay_min", pa.array(low)), path)

    with monkeypatch.context() as patched:
        patched.setattr(commit, "write_data", careless)
        with pytest.raises(sq.GuaranteeError, match="does not say what was judged"):
            series.publish(people(120), name="first")
    assert not list((tmp_path / "out" / "clinic").iterdir())
    assert series.publish(people(120), name="first").folder is not None
