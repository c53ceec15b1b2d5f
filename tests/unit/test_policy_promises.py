"""A policy promises what the audit tries, or it is refused with the smallest fix (docs/theory.md, section 9)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sequester as sq
from sequester.attacks.registry import attacks_of
from sequester.errors import PolicyError
from sequester.policy.describe import promises, unpromised

LIFETIME = {"l": 2, "releases": 20}


def policy(illness: dict[str, Any] | None = None, **protect: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "person": "who",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number"},
                "illness": {"role": "sensitive", **(illness or {})},
            },
            "protect": {"k": 2, **protect},
        }
    )


CHANGES = {"values": "transient"}
SOME_STAY = {"values": "transient", "permanent": ["HIV"]}


@pytest.mark.parametrize("against", [None, ["insider"], ["neighbor"], ["outsider", "insider"], ["lifetime"]])
def test_values_that_change_need_a_lifetime_bound_against_whoever_holds_all_releases(
    against: list[str] | None,
) -> None:
    named = {} if against is None else {"against": against}
    with pytest.raises(PolicyError, match=r"protect\.lifetime: is missing.*lifetime: \{l: 2, releases: 20\}"):
        policy(CHANGES, confidence=0.5, **named)


def test_values_that_change_may_be_promised_about_single_releases_only() -> None:
    assert policy(CHANGES, confidence=0.5, against=["outsider"]).protect.lifetime is None


def test_a_lifetime_that_no_adversary_tries_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"against: lifetime is not among them.*write \[lifetime\]"):
        policy(CHANGES, lifetime=LIFETIME)
    with pytest.raises(PolicyError, match=r"against: lifetime is not among them.*write \[insider, lifetime\]"):
        policy(SOME_STAY, confidence=0.5, lifetime=LIFETIME)


def test_an_insider_is_not_promised_against_where_every_value_changes() -> None:
    with pytest.raises(
        PolicyError, match=r"no value stays with a person, so insider checks nothing; write \[lifetime\]"
    ):
        policy(CHANGES, lifetime=LIFETIME, against=["insider", "lifetime"])


def test_lifetime_alone_is_refused_where_no_value_changes() -> None:
    with pytest.raises(PolicyError, match=r"no value changes, so lifetime checks nothing; write \[insider\]"):
        policy(confidence=0.5, against=["lifetime"])


@pytest.mark.parametrize(
    "promise",
    [{"diversity": {"kind": "distinct", "l": 2}}, {"closeness": {"t": 0.3}}, {"alpha": 0.5}],
    ids=lambda promise: next(iter(promise)),
)
@pytest.mark.parametrize("against", [["insider"], ["neighbor"], None])
@pytest.mark.parametrize("confidence", [None, 1.0, {"HIV": 1.0}])
def test_promises_about_single_releases_do_not_stand_for_one_against_the_series(
    promise: dict[str, Any], against: list[str] | None, confidence: Any
) -> None:
    given: dict[str, Any] = {
        key: value for key, value in (("against", against), ("confidence", confidence)) if value is not None
    }
    name = next(iter(promise))
    with pytest.raises(PolicyError, match=rf"protect\.confidence: does not bound.*{name} is a promise about single"):
        policy(**promise, **given)
    assert policy(**promise, against=["outsider"]).protect.confidence is None
    assert policy(**promise, **{**given, "confidence": 0.5}).protect.confidence == 0.5


def test_k_alone_is_a_promise_about_the_series() -> None:
    assert policy(against=["insider", "neighbor"]).protect.confidence is None


def test_values_that_stay_among_changing_ones_need_a_confidence_of_their_own() -> None:
    with pytest.raises(PolicyError, match=r"does not bound .* illness, and lifetime is about the values that change"):
        policy(SOME_STAY, lifetime=LIFETIME, against=["insider", "lifetime"])


@pytest.mark.parametrize("confidence", [1.0, {"HIV": 0.5}, {"HIV": 0.5, "*": 1.0}, None])
def test_the_lifetime_bound_is_on_every_value_that_is_not_ordinary_whatever_confidence_says(confidence: Any) -> None:
    """Flu is certain in each release; with any of these `breach` once said 0."""
    given = {} if confidence is None else {"confidence": confidence}
    rules = policy({**CHANGES, "ordinary": ["none"]}, lifetime=LIFETIME, against=["lifetime"], **given)
    release = pa.table({"who": [1, 2, 3, 4], "age": ["[1-2]", "[1-2]", "[3-4]", "[3-4]"],
                        "illness": ["flu", "flu", "none", "none"]})  # fmt: skip
    found = sq.audit([release, release], rules)
    assert found.measures["breach"] == 1.0
    assert {finding.value for finding in found.findings} == {"flu"}


# Words: nothing is said that is not tried.


def said(rules: sq.Policy) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for promise in promises(rules):
        found.setdefault(promise.about, []).append(promise.against)
    return found


@pytest.mark.parametrize(
    ("rules", "series"),
    [
        (policy(confidence=0.5), {"insider"}),
        (policy(confidence=0.5, against=["neighbor"]), {"neighbor"}),
        (policy(confidence=0.5, against=["outsider"]), set()),
        (policy(CHANGES, lifetime=LIFETIME, against=["lifetime"]), {"lifetime"}),
        (
            policy(SOME_STAY, confidence=0.5, lifetime=LIFETIME, against=["insider", "lifetime"]),
            {"insider", "lifetime"},
        ),
    ],
    ids=["default", "neighbor", "outsider", "changing", "some stay"],
)
def test_a_promise_about_the_series_names_an_adversary_of_the_policy_and_attacks_of_hers(
    rules: sq.Policy, series: set[str]
) -> None:
    assert set(said(rules).get("the series", [])) == series
    for promise in promises(rules):
        assert set(promise.attacks) <= set(attacks_of(promise.against))
        assert (promise.about == "each release") == (promise.against == "outsider")


def test_every_attack_of_a_promise_is_one_that_the_audit_tries() -> None:
    rules = policy(confidence=0.5, against=["insider", "neighbor"])
    one = pa.table({"who": [1, 2], "age": ["[1-2]"] * 2, "illness": ["flu", "gout"]})
    two = pa.table({"who": [1, 2, 3, 4], "age": ["[1-2]"] * 4, "illness": ["flu", "gout", "cold", "HIV"]})
    found = sq.audit([one, two], rules)
    assert {attack for promise in promises(rules) for attack in promise.attacks} <= set(found.tried)


def test_adversaries_that_are_not_named_are_named_as_not_promised() -> None:
    text = " ".join(unpromised(policy(confidence=0.5, against=["outsider"])))
    assert "Nothing against an insider" in text
    assert "Nothing against a neighbor" in text
    assert "Nothing against an insider" not in " ".join(unpromised(policy(confidence=0.5)))
    assert "No bound on how surely anybody is tied to a value of illness" in " ".join(unpromised(policy()))
