"""What a release costs beside others: exact of small tables, estimated of large ones, and left out on request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import sequester as sq
from command import invoke
from sequester.datasets import hospital, hospital_policy
from sequester.ingest.encode import encode
from sequester.ledger import Key
from sequester.methods.neighborhoods import draw
from sequester.methods.registry import cut_by_gain
from sequester.metrics.loss import losses
from sequester.publish import price
from sequester.publish.brief import Brief

SEED = 2**64 + 1
KEY = Key.of_text("a key for tests only")
AGES, PLACES = 90, 40
LARGE = 400


def rules(method: str, **more: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "prices",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, AGES - 1]},
                "place": {"role": "quasi-identifier", "kind": "number", "range": [0, PLACES - 1]},
                "illness": {"role": "sensitive"},
            },
            "protect": {"k": 3, "confidence": 0.5, "against": ["insider"], **more.pop("protect", {})},
            "method": {"name": method},
            **more,
        }
    )


def people(ids: Sequence[int]) -> pa.Table:
    draws = np.random.default_rng(7).integers(0, [[AGES], [PLACES], [8]], (3, 10_000))
    age, place, illness = draws[:, list(ids)]
    return pa.table({"id": list(ids), "age": age, "place": place, "illness": [f"ill{one}" for one in illness]})


def begun(folder: Path, method: str = "mondrian", count: int = 1000, **more: Any) -> sq.Series:
    series = sq.Series.open(folder / "prices.ledger", rules(method, **more), key=KEY)
    series.publish(people(range(count)), name="first", seed=SEED, price=False)
    return series


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of some hundred people count as large, and neighborhoods have some dozen."""
    monkeypatch.setattr(price, "MOST_EXACT", LARGE)
    monkeypatch.setattr(price, "_PEOPLE", 40)
    monkeypatch.setattr(price, "_CLASSES", 5)


@pytest.mark.parametrize("k", [5, 20])
def test_estimates_are_near_the_truth_also_where_people_are_unevenly_spread(tmp_path: Path, k: int) -> None:
    (tmp_path / "policy.yaml").write_text(hospital_policy())
    policy = sq.Policy.load(tmp_path / "policy.yaml")
    policy = policy.model_copy(update={"protect": policy.protect.model_copy(update={"k": k})})
    table = encode(hospital(60_000), policy)
    brief = Brief.of(policy, table, [1, 1])
    task = brief.task(table)
    exact = losses(cut_by_gain(task), task.domains)
    some = price.neighborhoods(task, np.arange(len(table)), seed=[3])
    found = price.estimate(task, some, cut_by_gain)
    assert found is not None
    assert found.people < len(table)
    told = found.losses(len(table), left_out=0, attributes=len(task.domains))
    assert told == pytest.approx({name: exact[name] for name in told}, rel=0.1)


def test_neighborhoods_are_of_people_who_are_near_and_drawn_by_how_many_they_are() -> None:
    policy = rules("mondrian")
    table = encode(people(range(2000)), policy)
    found = tuple(
        draw(table.quasi, table.quasi_domains, np.arange(2000), people=50, times=30, draws=np.random.default_rng(1))
    )
    assert sum(one.drawn for one in found) == 30
    rows = np.concatenate([one.rows for one in found])
    assert len(np.unique(rows)) == len(rows)
    for one in found:
        assert 0 < len(one.rows) <= 100
        # Everybody who is in the box is in the neighborhood.
        box = table.quasi[:, one.rows]
        inside = (table.quasi >= box.min(axis=1)[:, None]) & (table.quasi <= box.max(axis=1)[:, None])
        assert np.flatnonzero(inside.all(axis=0)).tolist() == np.sort(one.rows).tolist()
        assert set(one.rows) < set(one.around[0]) < set(one.around[-1])
        assert len(one.around[-1]) == 2000


def test_people_who_cannot_be_told_apart_are_one_neighborhood() -> None:
    policy = rules("mondrian")
    alike = people(range(500)).set_column(1, "age", [[4] * 500]).set_column(2, "place", [[2] * 500])
    table = encode(alike, policy)
    (one,) = draw(table.quasi, table.quasi_domains, np.arange(500), people=10, times=3, draws=np.random.default_rng(1))
    assert (len(one.rows), one.drawn, one.around) == (500, 3, ())


@pytest.mark.usefixtures("large")
def test_figures_of_a_large_table_are_estimates_and_its_own_loss_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = begun(tmp_path)
    table = people(range(1800))
    plan = series.plan(table, name="second", seed=SEED)
    assert plan.estimated == ("static", "levers")
    assert any("are estimated from neighborhoods" in note for note in plan.notes)
    monkeypatch.setattr(price, "MOST_EXACT", 10**6)
    exact = series.plan(table, name="second", seed=SEED)
    assert exact.estimated == ()
    assert plan.loss["release"] == exact.loss["release"]
    assert plan.content == exact.content
    assert plan.loss["static"] == pytest.approx(exact.loss["static"], rel=0.2)
    assert plan.loss.get("merge") == exact.loss.get("merge")
    assert plan.levers["now"] == pytest.approx(exact.levers["now"], rel=0.2)


@pytest.mark.usefixtures("large")
def test_a_large_table_by_pods_is_compared_too(tmp_path: Path) -> None:
    series = begun(tmp_path, "pods", protect={"inferred": 2})
    plan = series.plan(people(range(100, 1100)), name="second", seed=SEED)
    assert plan.estimated == ("static",)
    assert 0 < plan.loss["static"]["ail"] < plan.loss["release"]["ail"]
    series.publish(plan)
    assert series.releases()[-1].summary["estimated"] == ["static"]


@pytest.mark.usefixtures("large")
def test_what_cannot_be_estimated_is_left_out_and_that_is_noted(tmp_path: Path) -> None:
    policy = {"age": {"role": "quasi-identifier", "kind": "number", "range": [0, AGES - 1], "levels": [10, 30]}}
    plain = rules("mondrian").model_dump(mode="json", exclude_unset=True)
    attributes = {**policy, "illness": {"role": "sensitive"}}
    whole = sq.Policy.model_validate({**plain, "attributes": attributes, "method": {"name": "full-domain"}})
    series = sq.Series.open(tmp_path / "prices.ledger", whole, key=KEY)
    series.publish(people(range(600)).drop(["place"]), name="first", seed=SEED)
    plan = series.plan(people(range(1200)).drop(["place"]), name="second", seed=SEED)
    assert "static" not in plan.loss
    assert plan.estimated == ()
    assert any("not compared with the same records without a memory" in note for note in plan.notes)


@pytest.mark.usefixtures("large")
def test_a_neighborhood_without_safe_classes_is_looked_at_within_larger_ones() -> None:
    policy = rules("mondrian")
    table = people(range(1000))
    # The young all have the same illness, and no class of theirs alone is safe.
    cells = zip(table["age"].to_pylist(), table["illness"].to_pylist(), strict=True)
    ill = ["same" if age < 28 else one for age, one in cells]
    table = encode(table.set_column(3, "illness", [ill]), policy)
    task = Brief.of(policy, table, [1, 1]).task(table)
    some = price.neighborhoods(task, np.arange(len(table)), seed=[3])
    found = price.estimate(task, some, cut_by_gain)
    assert found is not None
    assert found.people > sum(len(one.rows) for one in some)


def test_without_a_price_only_the_loss_of_the_release_is_told(tmp_path: Path) -> None:
    series = begun(tmp_path, count=200)
    with_price, without = (
        series.plan(people(range(400)), name="second", seed=SEED, price=price) for price in (True, False)
    )
    assert {*with_price.loss} > {*without.loss} == {"release"}
    assert without.loss["release"] == with_price.loss["release"]
    assert (without.levers, without.why) == ({}, ())
    assert without.content == with_price.content


def test_commands_plan_and_publish_without_a_price(tmp_path: Path) -> None:
    (tmp_path / "sequester.yaml").write_text(json.dumps(rules("mondrian").model_dump(mode="json", exclude_unset=True)))
    for name, count in (("one.csv", 200), ("two.csv", 400)):
        csv.write_csv(people(range(count)), tmp_path / name)
    policy = ("--policy", "sequester.yaml")
    done = invoke("publish", "one.csv", *policy, "--no-price", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Loss (AIL)" in done.stdout
    assert "Expected loss" not in done.stdout
    done = invoke("plan", "two.csv", *policy, "--no-price", "--out", "two.plan", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert ([*told["loss"]], told["levers"], told["estimated"]) == (["release"], {}, [])
    done = invoke("publish", "two.plan", *policy, "--no-price", cwd=tmp_path)
    assert done.returncode == 2
    assert "a saved plan is not priced again" in " ".join(done.stderr.split())
    assert invoke("publish", "two.plan", *policy, cwd=tmp_path).returncode == 0


@pytest.mark.usefixtures("large")
def test_estimates_are_marked_where_they_are_shown(tmp_path: Path) -> None:
    (tmp_path / "sequester.yaml").write_text(json.dumps(rules("mondrian").model_dump(mode="json", exclude_unset=True)))
    for name, count in (("one.csv", 500), ("two.csv", 1300)):
        csv.write_csv(people(range(count)), tmp_path / name)
    policy = ("--policy", "sequester.yaml")
    assert invoke("publish", "one.csv", *policy, "--yes", cwd=tmp_path).returncode == 0
    done = invoke("plan", "two.csv", *policy, cwd=tmp_path)
    assert "without a memory (unsafe), estimated" in done.stdout
    assert "Expected loss of the newcomers (AIL, estimated)" in done.stdout
    assert json.loads(invoke("plan", "two.csv", *policy, "--format", "json", cwd=tmp_path).stdout)["estimated"] == [
        "static",
        "levers",
    ]
