"""The lifetime guarantee end to end: releases of values that change, from a table through plan, ledger and audit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from churn import NAMES, SHARES, Ward, rules
from sequester.attacks import breach
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")


@pytest.fixture
def series(tmp_path: Path) -> sq.Series:
    return sq.Series.open(tmp_path / "ward.ledger", rules(), key=KEY)


LIFETIMES = [
    {"l": 2.0, "strategy": "constant-ratio", "releases": 6},
    {"l": 3.0, "strategy": "constant-ratio", "releases": 2},
    {"l": 2.0, "strategy": "geometric", "alpha": 2.0},
]


@pytest.mark.parametrize("lifetime", LIFETIMES, ids=["constant", "constant-short", "geometric"])
def test_every_release_that_was_promised_is_published_and_holds(tmp_path: Path, lifetime: dict[str, Any]) -> None:
    series = sq.Series.open(tmp_path / "ward.ledger", rules(protect__lifetime=lifetime), key=KEY)
    ward = Ward(1)
    for number in range(lifetime.get("releases", 3)):
        table = ward.next()
        plan = series.plan(table, name=f"r{number}", seed=2**63 + number)
        assert plan.holds
        assert plan.records + plan.waiting.left_out == table.num_rows
        assert plan.waiting.held == plan.waiting.retained == 0
        assert "merge" not in plan.loss
        series.publish(plan)
    found = series.audit()
    assert found.holds
    assert found.tried.count("breach") == 1
    assert 0 < found.measures["breach"] <= 1 / lifetime["l"]
    (history,) = found.histories
    assert [bound < 1 for bound in history.bounds] == [name not in ("none", "*") for name in history.values]
    result = breach.find(history, l=lifetime["l"])
    assert result.findings == []


def test_without_group_the_same_series_breaks_the_promise(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "ward.ledger", rules(method={"name": "static"}), key=KEY)
    ward = Ward(1)
    for number in range(2):
        series.publish(ward.next(), name=f"r{number}", seed=2**63 + number, i_know_this_leaks=True)
    assert not series.audit().holds


def with_gout_of_age() -> pa.Table:
    """Four hundred people, of whom the older have gout and nobody else has anything."""
    ward = Ward(2, people=400)
    ward.value = np.where(ward.age >= 60, "gout", "none")
    return ward.table(np.arange(400))


def test_whole_neighborhoods_that_bear_their_values_nowhere_are_left_out_and_counted(tmp_path: Path) -> None:
    # A fifth may have gout over three releases: the old do, nobody else does.
    policy = rules(protect__lifetime={"l": 2.0, "releases": 3}, infeasible="suppress")
    series = sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY)
    plan = series.plan(with_gout_of_age(), name="first", seed=2**63 + 1)
    assert 0 < plan.waiting.left_out < 400
    assert plan.records + plan.waiting.left_out == 400
    (cause,) = (one for one in plan.why if one.what == "left out")
    assert (cause.attack, cause.people) == ("breach", plan.waiting.left_out)
    assert cause.keys == ("protect.lifetime", "attributes.value.ordinary")
    release = series.publish(plan)
    assert "*" not in release.table["value"].to_pylist()
    assert series.audit().holds


def test_refuse_stops_where_somebody_would_be_left_out(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "ward.ledger", rules(infeasible="refuse"), key=KEY)
    with pytest.raises(sq.GuaranteeError, match="can be in no class that keeps what is promised"):
        series.plan(with_gout_of_age(), name="first", seed=2**63 + 1)
    assert series.releases() == []


def test_nobody_is_published_where_every_value_is_too_frequent_everywhere(tmp_path: Path) -> None:
    ward = Ward(2, people=60)
    ward.value = np.array(["gout", "flu"] * 30)
    with pytest.raises(sq.GuaranteeError, match="nobody can be published"):
        sq.Series.open(tmp_path / "w.ledger", rules(), key=KEY).plan(
            ward.table(np.arange(60)), name="first", seed=2**63 + 1
        )


def test_a_confidence_of_single_values_leaves_no_other_value_without_the_lifetime_bound(tmp_path: Path) -> None:
    value = {"role": "sensitive", "values": "transient", "ordinary": ["none"], "confidence": {"gout": 0.5}}
    series = sq.Series.open(tmp_path / "ward.ledger", rules(attributes__value=value), key=KEY)
    ward = Ward(3)
    for number in range(3):
        series.publish(ward.next(), name=f"r{number}", seed=2**63 + number)
    found = series.audit()
    (history,) = found.histories
    assert dict(zip(history.values, history.bounds, strict=True)) == {
        name: Fraction(1) if name in ("none", "*") else Fraction(1, 2) for name in history.values
    }
    assert found.holds


def test_two_attributes_that_change_are_protected_each(tmp_path: Path) -> None:
    policy = rules(attributes__other={"role": "sensitive", "values": "transient", "ordinary": ["none"]})
    series = sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY)
    ward = Ward(4)
    for number in range(3):
        table = ward.next()
        other = ward.random.choice(NAMES, table.num_rows, p=SHARES)
        series.publish(table.append_column("other", pa.array(other)), name=f"r{number}", seed=2**63 + number)
    found = series.audit()
    assert len(found.histories) == 2
    assert found.holds
    assert 0 < found.measures["breach"] <= 0.5


def test_new_values_may_appear_in_later_releases(series: sq.Series) -> None:
    ward = Ward(5)
    series.publish(ward.next(), name="first", seed=2**63 + 1)
    ward.value = np.where(np.arange(ward.people) % 37 == 0, "aneurysm", ward.value)
    series.publish(ward.next(), name="second", seed=2**63 + 1)
    found = series.audit()
    assert "aneurysm" in found.histories[0].values
    assert found.holds


def test_a_saved_plan_is_made_again_exactly(series: sq.Series, tmp_path: Path) -> None:
    import pyarrow.csv as csv

    ward = Ward(6)
    series.publish(ward.next(), name="first", seed=2**63 + 1)
    source = tmp_path / "second.csv"
    csv.write_csv(ward.next(), source)
    plan = series.plan(source)
    release = series.publish(sq.Plan.load(plan.save(tmp_path / "next.plan")))
    assert release.table.equals(plan.candidate.table)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"protect__against": ["insider", "lifetime"]}, "protect.against", "insider checks nothing"),
        ({"protect__against": ["neighbor", "lifetime"]}, "protect.against", "neighbor checks nothing"),
        ({"protect__against": ["outsider"]}, "protect.against", "nothing would check"),
        ({"protect": {"k": 3, "against": ["lifetime"]}}, "protect.lifetime", "method: group keeps it"),
        ({"attributes__value": {"role": "sensitive"}}, "method.name", "group is for values that change"),
    ],
)
def test_a_policy_that_group_cannot_keep_is_refused(changes: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(sq.PolicyError, match=message) as caught:
        rules(**changes)
    assert key in [problem.key for problem in caught.value.problems]


def test_release_files_are_audited_against_the_lifetime_promise_without_a_confidence() -> None:
    policy = sq.Policy.model_validate(
        {
            "version": 1,
            "series": "files",
            "person": "id",
            "attributes": {"q": {"role": "quasi-identifier"}, "s": {"role": "sensitive", "values": "transient"}},
            "protect": {"k": 2, "lifetime": {"l": 2, "releases": 3}, "against": ["lifetime"]},
        }
    )
    releases = [pa.table({"id": ["1", "2"], "q": ["*", "*"], "s": values}) for values in (["a", "b"], ["a", "c"])]
    found = sq.audit(releases, policy)
    assert found.measures["breach"] == 0.75
    assert [finding.attack for finding in found.findings] == ["breach"]
