"""Rows and people are two numbers: k counts rows, decoys among them, and `people` counts people."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from podded import KEY, SEED, Panel, rules
from sequester.errors import GuaranteeError, PolicyError
from sequester.ledger import Ledger
from sequester.publish.inquiry import audit_ledger

ALONE: dict[str, Any] = {"protect__confidence": 0.2, "protect__lineage": 5}
"""Pods of five seats, who take nobody else in once somebody left."""

FIVE: dict[str, Any] = {"protect__k": 5, "protect__inferred": 2, "decoys": 0.25}


def fewest_people(place: Path, policy: sq.Policy, panel: Panel) -> list[int]:
    """Per release, the fewest people of the raw table who are in one class of as many rows as k."""
    series, found = sq.Series.open(place / "panel.ledger", policy, key=KEY), []
    for number, table in enumerate(panel.tables()):
        plan = series.plan(table, name=f"r{number}", seed=SEED + number, everybody_is_new=True)
        release = series.publish(plan)
        people = Counter(release.members()["class"].to_pylist())
        assert set(release.members()["person"].to_pylist()) == set(table["id"].to_pylist())
        assert release.measures["k"] >= policy.protect.k
        assert len(people) == release.measurement.classes
        assert plan.pods is not None
        assert plan.pods.fewest == min(people.values())
        found.append(min(people.values()))
    assert series.audit().holds
    return found


@pytest.mark.parametrize(
    ("kind", "promised"),
    [
        ({}, 3),
        ({"protect__lineage": 4}, 3),
        ({"protect__people": 5}, 5),
        ({"protect__confidence": 0.34}, 3),
        ({"protect__inferred": 5}, 3),
        ({"protect__k": 2}, 1),
        ({"protect__against": ["insider", "neighbor"]}, 3),
        ({"method": {"name": "pods", "blind": True}, "attributes__value__hierarchy": {"Any": ["a", "b", "c", "d"]}}, 3),
    ],
    ids=["couples", "lineages", "five of five", "threes", "company", "two", "neighbor", "blind"],
)
def test_no_class_has_fewer_people_than_promised_whatever_decoys_are_in_it(
    tmp_path: Path, kind: dict[str, Any], promised: int
) -> None:
    policy = rules(**{**FIVE, **kind})
    assert policy.fewest_people == promised
    assert min(fewest_people(tmp_path, policy, Panel.random(60, 4, seed=2))) >= promised


def test_a_class_of_five_rows_may_be_one_person_where_no_more_is_asked(tmp_path: Path) -> None:
    panel = Panel.random(60, 3, seed=0, away=0.5, value=list("abcdef"))
    assert min(fewest_people(tmp_path / "one", rules(**FIVE, **ALONE, protect__people=1), panel)) == 1
    assert min(fewest_people(tmp_path / "three", rules(**FIVE, **ALONE), panel)) == 3


def test_more_people_than_the_table_has_are_refused(tmp_path: Path) -> None:
    panel = Panel({"id": ["p0", "p1"], "age": [40, 50], "sex": ["f", "m"], "value": ["a", "b"]}, [[0, 1]])
    series = sq.Series.open(tmp_path / "panel.ledger", rules(protect__k=5), key=KEY)
    with pytest.raises(GuaranteeError, match=r"fewer than the 3 people that every class must have.*protect\.people"):
        series.plan(panel.table(0), name="r1", seed=SEED)
    with pytest.raises(GuaranteeError, match=r"protect\.people"):
        sq.anonymize(panel.table(0), rules(protect__k=5))
    alone = sq.Series.open(tmp_path / "other.ledger", rules(protect__k=5, protect__people=1), key=KEY)
    assert alone.publish(panel.table(0), name="r1", seed=SEED).table.num_rows >= 5


def test_one_table_by_pods_keeps_its_people(tmp_path: Path) -> None:
    for seed in range(5):
        release = sq.anonymize(Panel.random(40, 1, seed=seed).table(0), rules(**FIVE), seed=seed)
        assert min(Counter(release.members()["class"].to_pylist()).values()) >= 3


def test_the_audit_counts_people_among_the_rows_of_classes_that_were_made_with_less(tmp_path: Path) -> None:
    panel = Panel.random(60, 3, seed=0, away=0.5, value=list("abcdef"))
    made = min(fewest_people(tmp_path, rules(**FIVE, **ALONE, protect__people=1), panel))
    with Ledger.open(tmp_path / "panel.ledger", key=KEY, read_only=True) as ledger:
        found = audit_ledger(ledger, rules(**FIVE, **ALONE))
    assert {finding.attack for finding in found.findings} == {"k"}
    assert {finding.required for finding in found.findings} == {3}
    assert min(finding.observed for finding in found.findings) == made
    assert found.measures["k"] >= 5
    number = next(n for n, finding in enumerate(found.findings, 1) if finding.observed == made)
    assert "the others are decoys, and 3 people must be in every class" in found.explain(number)
    assert not {str(one) for finding in found.findings for one in finding.people} & {str(one) for one in found.nobody}


def test_a_policy_cannot_ask_for_more_people_than_rows() -> None:
    with pytest.raises(PolicyError, match=r"protect\.people: is more than k"):
        rules(protect__k=3, protect__people=4)
    with pytest.raises(PolicyError, match=r"protect\.people: is not kept by classes of one type"):
        rules(protect__k=4, protect__people=2, method={"name": "pods", "classes": "one-type"})


def test_rows_are_people_where_there_are_no_decoys() -> None:
    assert rules(protect__k=5, protect__people=2, method={"name": "mondrian"}).fewest_people == 5
    assert [rules(protect__k=k).fewest_people for k in (1, 2, 5, 6)] == [1, 1, 3, 3]
