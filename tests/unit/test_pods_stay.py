"""Values that stay among changing ones, published by pods: these are shared out, the others may change freely."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import sequester as sq
from podded import KEY, SEED, Panel, rules


def test_values_that_stay_are_covered_while_others_change(tmp_path: Path) -> None:
    stays = {"role": "sensitive", "values": "transient", "permanent": ["a", "b"]}
    policy = rules(attributes__value=stays, protect__k=4, protect__inferred=2)
    series = sq.Series.open(tmp_path / "panel.ledger", policy, key=KEY)
    random = np.random.default_rng(0)
    for number, table in enumerate(Panel.random(60, 3, seed=1).tables()):
        cells = [cell if cell in "ab" else random.choice(["c", "d", "e"]) for cell in table["value"].to_pylist()]
        now = table.set_column(table.schema.get_field_index("value"), "value", pa.array(cells))
        plan = series.plan(now, name=f"r{number}", seed=SEED + number, everybody_is_new=True)
        assert plan.people == len(table)
        series.publish(plan)
    audit = series.audit()
    assert audit.holds
    assert audit.measures["deniability"] <= 0.5
    assert {"difference", "tracing", "deniability"} <= set(audit.tried)
