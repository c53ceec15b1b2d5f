"""What is published of a table depends on no order of its rows: every method, every release, to the byte."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sequester as sq
from podded import KEY, SEED
from policies import changed
from sequester.errors import GuaranteeError
from sequester.methods.registry import PLACES
from tiny import random_story

SEEDS = st.integers(0, 2**64 - 1)
METHODS = sorted(PLACES)
seldom = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def shuffled(table: pa.Table, random: Random) -> pa.Table:
    return table.take(random.sample(range(table.num_rows), table.num_rows))


def written(release: sq.Release, folder: Path) -> bytes:
    csv.write_csv(release.table, folder / "release.csv")
    return (folder / "release.csv").read_bytes()


def published(policy: sq.Policy, tables: list[pa.Table]) -> list[bytes | str]:
    """The bytes of every release, up to a refusal."""
    told: list[bytes | str] = []
    with tempfile.TemporaryDirectory() as name:
        series = sq.Series.open(Path(name) / "tiny.ledger", policy, key=KEY)
        for at, table in enumerate(tables):
            try:
                release = series.publish(
                    table, name=f"r{at}", seed=SEED + at, everybody_is_new=True, again=True, i_know_this_leaks=True
                )
            except GuaranteeError as error:
                return [*told, error.guarantee or ""]
            told.append(written(release, Path(name)))
    return told


def lifetimes(random: Random) -> tuple[sq.Policy, list[pa.Table]]:
    """Values that change, which `group` is for; nobody's row is like nobody else's."""
    count = random.randint(12, 24)
    policy = {
        "version": 1,
        "series": "tiny",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 7], "levels": [2, 4]},
            "value": {"role": "sensitive", "values": "transient", "ordinary": ["a", "b"]},
        },
        "protect": {"k": 2, "against": ["lifetime"], "lifetime": {"l": 1.5, "releases": 3}},
        "method": {"name": "group"},
    }
    ages = [random.randrange(8) for _ in range(count)]
    tables = [
        pa.table(
            {
                "id": [f"p{who}" for who in range(count)],
                "age": ages,
                "value": [random.choice("aaabbbc") for _ in range(count)],
            }
        )
        for _ in range(2)
    ]
    return changed(policy), tables


@pytest.mark.parametrize("method", METHODS)
@seldom
@given(seed=SEEDS)
def test_no_release_of_a_series_depends_on_the_order_of_rows(method: str, seed: int) -> None:
    random = Random(seed)
    if method == "group":
        policy, tables = lifetimes(random)
    else:
        story = random_story(random, method)
        policy, tables = story.policy, story.tables()
    assert published(policy, tables) == published(policy, [shuffled(table, random) for table in tables])


def once(method: str, random: Random) -> tuple[sq.Policy, pa.Table]:
    """A table without people; with so few different cells there are rows alike, and ties everywhere."""
    count = random.randint(8, 30)
    attributes: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "kind": "number", "levels": [2, 4]},
        "sex": {"role": "quasi-identifier"},
        "ward": {"role": "insensitive"},
        "value": {"role": "sensitive"},
    }
    protect = {"k": 2, "confidence": random.choice([0.5, 0.7])}
    columns = {
        "age": [random.randrange(5) for _ in range(count)],
        "sex": [random.choice("fm") for _ in range(count)],
        "ward": [random.choice(["u", "v", None]) for _ in range(count)],
        "value": [random.choice("abc") for _ in range(count)],
    }
    raw = {"version": 1, "series": "tiny", "attributes": attributes, "protect": protect, "method": {"name": method}}
    return changed(raw), pa.table(columns)


@pytest.mark.parametrize("method", [method for method in METHODS if method != "group"])
@seldom
@given(seed=SEEDS)
def test_no_single_release_depends_on_the_order_of_rows(method: str, seed: int) -> None:
    random = Random(seed)
    policy, table = once(method, random)
    with tempfile.TemporaryDirectory() as name:
        try:
            whole = written(sq.anonymize(table, policy, seed=SEED), Path(name))
        except GuaranteeError:
            assume(False)
        assert whole == written(sq.anonymize(shuffled(table, random), policy, seed=SEED), Path(name))


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("group", "pods")])
@seldom
@given(seed=SEEDS)
def test_a_table_published_twice_is_cut_the_same_way(method: str, seed: int) -> None:
    """With another seed its rows stand in another order, and two files of it tell no more than one."""
    random = Random(seed)
    policy, table = once(method, random)
    try:
        whole = sq.anonymize(table, policy, seed=SEED).table
    except GuaranteeError:
        assume(False)
    assert rows(whole) == rows(sq.anonymize(shuffled(table, random), policy).table)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))
