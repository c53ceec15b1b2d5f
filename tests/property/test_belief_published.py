"""A promised bound on belief, kept by every method of a series or refused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import sequester as sq
from sequester.attacks.solvers.belief import NOISE
from sequester.errors import GuaranteeError
from sequester.ledger import Key

LIMIT = 0.6


def policy(method: str, belief: float | None) -> sq.Policy:
    protect = {"k": 3, "confidence": 0.5, "inferred": 2, **({} if belief is None else {"belief": belief})}
    attributes = {
        "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
        "ill": {"role": "sensitive"},
    }
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "clinic",
            "person": "id",
            "attributes": attributes,
            "protect": protect,
            "method": {"name": method},
        }
    )


def snapshots(seed: int) -> list[pa.Table]:
    """Forty people, a quarter of whom is away each time."""
    random = Random(seed)
    rows = [{"id": f"p{n}", "age": random.randrange(100), "ill": random.choice("abcd")} for n in range(40)]
    return [pa.Table.from_pylist(random.sample(rows, 30)) for _ in range(3)]


@pytest.mark.parametrize("method", ["mondrian", "cluster", "merge", "pods"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_published_keeps_a_promised_belief(method: str, seed: int, tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", policy(method, LIMIT), key=Key.of_text("a key for a test"))
    everybody: set[str] = set()
    for number, snapshot in enumerate(snapshots(seed)):
        try:
            plan = series.plan(snapshot, name=f"r{number}", seed=2**63 + number)
        except GuaranteeError:
            continue
        assert any(check.attack == "belief" and check.holds for check in plan.checks)
        series.publish(plan)
        everybody |= set(snapshot["id"].to_pylist())
    assert everybody
    found = series.audit(belief=True)
    assert found.holds
    assert "belief" in found.tried
    (told,) = found.belief
    assert told.spread.most <= LIMIT + NOISE
    for carried in told.resilience.values():
        assert (carried.lineage is not None) == (method == "pods")
    if method == "pods":
        # Decoys are not counted, and everybody of every table that was published is.
        assert told.spread.people == len(everybody)
        nobody = told.resilience[0.0]
        assert nobody.lineage is not None
        assert nobody.lineage.above == (0.0, 0.0, 0.0)


def test_without_the_promise_some_series_go_beyond_it(tmp_path: Path) -> None:
    most = 0.0
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        series = sq.Series.open(folder / "clinic.ledger", policy("pods", None), key=Key.of_text("a key for a test"))
        for number, snapshot in enumerate(snapshots(seed)):
            series.publish(series.plan(snapshot, name=f"r{number}", seed=2**63 + number))
        (told,) = series.audit(belief=True).belief
        most = max(most, told.spread.most)
    assert most > LIMIT + NOISE
