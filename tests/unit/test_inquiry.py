"""A question about what was published may name any adversary and any bound, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import sequester as sq
from consenting import KEY, SEED, people, rules


@pytest.fixture
def series(tmp_path: Path) -> sq.Series:
    made = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    made.publish(people(range(100)), name="first", seed=SEED)
    made.publish(people(range(160)), name="second", seed=SEED)
    return made


def test_asking_for_more_than_was_promised_finds_what_it_breaks_and_changes_nothing(series: sq.Series) -> None:
    before = series.place.file.read_bytes()
    assert series.audit().holds
    found = series.audit(k=20, confidence=0.3)
    assert {finding.required for finding in found.findings} == {20, 0.3}
    assert found.exposed.total.people > 0
    assert series.place.file.read_bytes() == before
    assert series.audit().holds


def test_any_adversary_may_be_asked_about(series: sq.Series) -> None:
    assert "intersection" not in series.audit().tried
    assert "intersection" in series.audit(against=["neighbor"]).tried


def test_a_policy_that_protects_otherwise_asks_another_question(series: sq.Series) -> None:
    from sequester.ledger import Ledger
    from sequester.publish.inquiry import audit_ledger

    other = rules(protect={"k": 20, "against": ["insider", "neighbor"]})
    with pytest.raises(sq.PolicyError, match=r"protect\.k: is not what it was"):
        sq.Series.open(series.place, other, key=KEY)
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        found = audit_ledger(ledger, other)
        assert {finding.required for finding in found.findings if finding.attack == "k"} == {20}
        with pytest.raises(sq.PolicyError, match=r"attributes\.value: is not what it was"):
            audit_ledger(ledger, rules(attributes__value={"role": "sensitive", "ordinary": ["none"]}))


def test_a_confidence_that_is_asked_about_is_on_every_value_that_is_not_ordinary() -> None:
    from sequester.publish.inquiry import with_bounds

    policy = rules(attributes__value={"role": "sensitive", "ordinary": ["none"], "confidence": {"flu": 0.9}})
    asked = with_bounds(policy, confidence=0.2)
    assert (asked.protect.confidence, asked.sensitive["value"].confidence) == (0.2, None)
    assert asked.sensitive["value"].ordinary == ("none",)
    assert with_bounds(policy) == policy


def test_decoys_are_not_counted_as_people_exposed(tmp_path: Path) -> None:
    policy = rules(method={"name": "pods"}, protect={"k": 2, "confidence": 0.5, "inferred": 2}, decoys=0.5)
    made = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    made.publish(people(range(60)), name="first", seed=SEED)
    made.publish(people(range(30)), name="second", seed=SEED)
    found = made.audit(confidence=0.3)
    named = {one for finding in found.findings for one in finding.people}
    assert found.nobody
    assert named & found.nobody
    assert 0 < found.exposed.total.people == len(named - found.nobody) <= 60
