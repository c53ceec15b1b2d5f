"""Looking ahead: what is left of a lifetime guarantee, and how the coming releases go."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as csv
import pytest
import yaml

import sequester as sq
from churn import Ward, begin, rules
from command import invoke
from sequester.history.past import Past
from sequester.ledger import Key
from sequester.methods.lifetime.budget import budget_of
from sequester.policy.protect import Lifetime
from sequester.publish.ahead import look_ahead

KEY = Key.of_text("a key for tests only")


def one_class(sizes: list[int], with_value: list[int]) -> tuple[Any, np.ndarray]:
    """A history of releases that are one class each, of the same people, so many of them with the value b."""
    people = max(sizes)
    history = begin(people, [Fraction(1), Fraction(1, 2)])
    for size, count in zip(sizes, with_value, strict=True):
        value = (np.arange(size) < count).astype(np.int32)
        past = Past((history,), np.arange(size), (value,), np.zeros(size, np.bool_))
        box = np.zeros((2, 1), np.int32)
        (history,) = past.extend(np.zeros(size, np.int32), box, box, order=np.arange(size), name=str(len(history)))
    return history, np.arange(people)


def test_a_class_of_one_in_four_can_be_repeated_once_under_one_half() -> None:
    # 3/4, 9/16, and 27/64 is below one half.
    history, person = one_class([4], [1])
    budget = budget_of([history], person, Lifetime(l=2.0, releases=9))
    assert (budget.pairs, budget.blocked) == (4, 0)
    assert budget.least == budget.tenth == budget.median == 1
    # What is left is exactly one share of a ninth: a table of nine could bear it, one of four cannot.
    history, person = one_class([4, 4], [1, 1])
    budget = budget_of([history], person, Lifetime(l=2.0, releases=9))
    assert (budget.pairs, budget.blocked, budget.median) == (4, 4, 0)


def test_a_value_that_is_not_in_the_class_costs_and_counts_nothing() -> None:
    history, person = one_class([4], [0])
    assert budget_of([history], person, Lifetime(l=2.0, releases=9)).pairs == 0


def test_spending_everything_is_a_warning_in_the_plan(tmp_path: Path) -> None:
    def notes(releases: int, gout: int) -> str:
        lifetime = {"l": 2.0, "releases": releases}
        series = sq.Series.open(tmp_path / f"{releases}.ledger", rules(protect__lifetime=lifetime), key=KEY)
        ward = Ward(2, people=60)
        ward.value = np.array(["gout"] * gout + ["none"] * (60 - gout))
        return "; ".join(series.plan(ward.table(np.arange(60)), name="first", seed=2**63 + 1).notes)

    assert notes(20, 2) == ""
    assert "must not be linked again" in notes(1, 20)


def test_the_coming_releases_follow_the_churn_that_was_seen(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "ward.ledger", rules(), key=KEY)
    ward = Ward(1)
    first = series.plan(ward.next(), name="first", seed=2**63 + 1)
    ahead = look_ahead(first, series.policy, releases=2)
    assert not ahead.churn.observed
    series.publish(first)
    plan = series.plan(ward.next(), name="second", seed=2**63 + 1)
    ahead = look_ahead(plan, series.policy, releases=4)
    before = plan.change.stayers + plan.change.leavers
    assert ahead.churn.leave == plan.change.leavers / before
    assert ahead.churn.join == (plan.change.newcomers + plan.change.returned) / before
    # A fifth draws its value anew, of which some get the one they had.
    assert 0.02 < ahead.churn.change < 0.2
    # With this release six: the policy's own plan is the one for as many, and is not told twice.
    own, geometric = ahead.courses
    assert own.strategy == {"l": 2.0, "strategy": "constant-ratio", "releases": 6}
    assert geometric.strategy["strategy"] == "geometric"
    assert own.ends is None
    for course in ahead.courses:
        assert len(course.left_out) == len(course.loss) == (course.ends or 4)
        assert min(course.average) >= 3
    assert look_ahead(plan, series.policy, releases=4) == ahead
    assert json.loads(json.dumps(ahead.to_dict()))["releases"] == 4


def test_a_strategy_that_spends_all_at_once_ends_sooner(tmp_path: Path) -> None:
    lifetime = {"l": 2.0, "releases": 1}
    series = sq.Series.open(tmp_path / "ward.ledger", rules(protect__lifetime=lifetime), key=KEY)
    ward = Ward(2, people=200)
    plan = series.plan(ward.table(np.arange(200)), name="first", seed=2**63 + 1)
    ahead = look_ahead(plan, series.policy, releases=3)
    greedy, patient = ahead.courses[0], ahead.courses[1]
    assert patient.strategy["releases"] == 4
    assert greedy.ends is not None
    assert patient.ends is None or patient.ends > greedy.ends


def test_other_methods_do_not_look_ahead(tmp_path: Path) -> None:
    policy = rules(method={"name": "static"})
    series = sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY)
    plan = series.plan(Ward(1).next(), name="first", seed=2**63 + 1)
    with pytest.raises(sq.PolicyError, match="looking ahead is for method: group"):
        look_ahead(plan, policy, releases=2)


def test_plan_ahead_on_the_command_line(tmp_path: Path) -> None:
    raw = rules().model_dump(mode="json", exclude_unset=True)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(raw))
    ward = Ward(1)
    for name in ("first", "second"):
        csv.write_csv(ward.next(), tmp_path / f"{name}.csv")
    assert invoke("publish", "first.csv", "-p", "policy.yaml", "--yes", cwd=tmp_path).returncode == 0
    shown = invoke("plan", "second.csv", "-p", "policy.yaml", "--ahead", "3", cwd=tmp_path)
    assert shown.returncode == 0
    assert "constant-ratio, 6 releases" in shown.stdout
    assert "geometric, alpha" in shown.stdout
    told = invoke("plan", "second.csv", "-p", "policy.yaml", "--ahead", "3", "--format", "json", cwd=tmp_path)
    assert invoke("publish", "second.csv", "-p", "policy.yaml", "--yes", cwd=tmp_path).returncode == 0
    assert invoke("ledger", "verify", "-p", "policy.yaml", cwd=tmp_path).returncode == 0
    assert "breach" in invoke("audit", "-p", "policy.yaml", "--ledger", "ward.ledger", cwd=tmp_path).stdout
    ahead = json.loads(told.stdout)["ahead"]
    assert ahead["releases"] == 3
    assert ahead["churn"]["observed"]
