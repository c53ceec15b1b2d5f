"""A relaxation is one key of the policy, one step less, and the release made with it keeps what is still promised."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from ledgers import KEY
from sequester.causes import Relaxation
from sequester.ingest.encode import encode
from sequester.publish import relax
from sequester.publish.candidate import Candidate, make_candidate

SEED = 1 << 63 | 9
QUASI = {
    "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True},
    "sex": {"role": "quasi-identifier", "hierarchy": {"Person": ["f", "m"]}},
}


def table(people: int, *, seed: int = 4) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "id": [f"p{n}" for n in range(people)],
            "age": draw.integers(0, 99, people),
            "sex": draw.choice(["f", "m"], people),
            "value": draw.choice([*"abcde"], people, p=[0.35, 0.25, 0.2, 0.1, 0.1]),
        }
    )


def policy_of(protect: dict[str, Any], **more: Any) -> sq.Policy:
    value = more.pop("value", {"role": "sensitive"})
    raw = {"version": 1, "series": "s", "person": "id", "attributes": {**QUASI, "value": value}, "protect": protect}
    return sq.Policy.model_validate({**raw, **more})


def leaves(raw: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if isinstance(raw, dict) and raw:
        for key, inner in raw.items():
            yield from leaves(inner, (*path, key))
    else:
        yield ".".join(path), raw


KEYS = [
    "protect.k",
    "protect.inferred",
    "protect.lineage",
    "protect.confidence",
    "protect.alpha",
    "protect.belief",
    "protect.diversity",
    "protect.closeness",
    "protect.lifetime",
    "protect.against",
    "attributes.value.confidence",
    "attributes.value.ordinary",
    "decoys",
    "infeasible",
    "method",
]


@st.composite
def policies(draw: st.DrawFn) -> sq.Policy:
    protect: dict[str, Any] = {
        "k": draw(st.integers(1, 150)),
        "confidence": draw(st.sampled_from([0.2, 0.5, 0.6, 0.9])),
    }
    if draw(st.booleans()):
        protect["inferred"] = draw(st.integers(1, protect["k"]))
    method = draw(st.sampled_from(["pods", "mondrian", "cluster"]))
    if method == "pods":
        if draw(st.booleans()):
            protect["lineage"] = draw(st.integers(20, 40))
    elif draw(st.booleans()):
        protect |= {"diversity": {"kind": "distinct", "l": draw(st.integers(2, 4))}, "closeness": {"t": 0.3}}
    if draw(st.booleans()):
        protect["against"] = ["insider", "neighbor"]
    value: dict[str, Any] = {"role": "sensitive", "ordinary": draw(st.sampled_from([[], ["a"]]))}
    if draw(st.booleans()):
        value["confidence"] = draw(st.sampled_from([0.5, {"a": 0.5, "*": 0.9}]))
    infeasible = draw(st.sampled_from(["refuse", "hold-back", "suppress"]))
    return policy_of(protect, method={"name": method}, value=value, infeasible=infeasible)


@settings(max_examples=60, deadline=None)
@given(policies())
def test_a_step_changes_one_key_asks_for_less_and_says_so(policy):
    snapshot = encode(table(60), policy)
    before = dict(leaves(policy.model_dump(mode="json")))
    steps = relax.steps_of(policy, KEYS, snapshot)
    assert steps
    for step in steps:
        after = dict(leaves(step.policy.model_dump(mode="json")))
        differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        # A bound for each of several values is one key of the policy.
        assert {step.key if key.startswith(f"{step.key}.") else key for key in differing} == {step.key}
        now, then = before.get(step.key), after.get(step.key)
        _is_less(policy, step, now, then)
        assert not {"a", "b", "c", "d", "e"} & set(f"{step.now} {step.then}".replace(",", " ").split())


def _is_less(policy: sq.Policy, step: relax.Eased, now: Any, then: Any) -> None:
    name = step.key.rsplit(".", 1)[-1]
    if name in ("k", "inferred", "l", "releases"):
        assert then < (policy.fewest if now is None else now)
        assert step.then == f"{then:g}"
    elif name == "against":
        assert set(then) < set(now)
    elif name == "ordinary":
        assert set(now) < set(then)
        assert len(then) == len(now) + 1
    elif name == "infeasible":
        assert (now, then) == ("refuse", "hold-back")
    elif name == "confidence" and then is None:
        given_now, given_then = (p.sensitive["value"].confidence for p in (policy, step.policy))
        assert isinstance(given_now, dict)
        assert isinstance(given_then, dict)
        assert given_now != given_then
        assert all(given_then[value] >= bound for value, bound in given_now.items())
    else:
        assert then > (policy.linked if name == "lineage" and now is None else now)


CASES = [
    ({"k": 4, "confidence": 0.5, "against": ["insider", "neighbor"]}, "mondrian"),
    ({"k": 4, "confidence": 0.6, "diversity": {"kind": "distinct", "l": 3}}, "cluster"),
    ({"k": 4, "confidence": 0.5}, "pods"),
]


@pytest.mark.parametrize(("protect", "method"), CASES, ids=[method for _, method in CASES])
def test_every_relaxation_that_is_priced_was_made_and_keeps_what_is_left_of_the_promise(
    monkeypatch: pytest.MonkeyPatch, protect: dict[str, Any], method: str
) -> None:
    made: list[tuple[sq.Policy, Candidate]] = []

    def watched(census: Any, state: Any, brief: Any) -> Candidate:
        found = make_candidate(census, state, brief)
        made.append((brief.policy, found))
        return found

    monkeypatch.setattr(relax, "make_candidate", watched)
    policy = policy_of(protect, method={"name": method})
    people = table(120)
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "s.ledger", policy, key=KEY)
        series.publish(people.slice(0, 80), name="first", seed=SEED)
        before = series.place.file.read_bytes()
        plan = series.plan(people.slice(15, 100), name="second", seed=SEED, why=True)
        assert series.place.file.read_bytes() == before
    priced = [one for one in plan.relaxations if one.made]
    assert {one.key for one in priced} >= {"protect.k", "protect.confidence"}
    assert len(priced) == len(made)
    for one, (eased, candidate) in zip(priced, made, strict=True):
        assert candidate.audit.holds
        assert set(candidate.audit.tried) >= {"k", "confidence"}
        assert _says(eased, one)
        assert one.classes == len(candidate.classes)
        assert one.running == (eased.protect == policy.protect and eased.attributes == policy.attributes)
    assert plan.content == _again(policy, people).content


def _says(policy: sq.Policy, one: Relaxation) -> bool:
    """Whether a policy says what a relaxation says that it does, of keys with a number."""
    value: Any = policy.model_dump(mode="json")
    for key in one.key.split("."):
        value = value[key]
    return f"{value:g}" == one.then if isinstance(value, int | float) else isinstance(value, list)


def _again(policy: sq.Policy, people: pa.Table) -> sq.Plan:
    """The plan of the same release that is not asked why."""
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "s.ledger", policy, key=KEY)
        series.publish(people.slice(0, 80), name="first", seed=SEED)
        return series.plan(people.slice(15, 100), name="second", seed=SEED)
