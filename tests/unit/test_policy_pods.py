"""What belongs to pods in a policy: refused with the smallest fix where it cannot be kept, and said in words."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.errors import PolicyError
from sequester.policy import Policy, defaults
from sequester.policy.describe import notes, promises, unpromised
from sequester.policy.fingerprint import differences, fingerprint, policy_text

TREE = {"Any": {"A": ["a1", "a2"], "B": ["b"]}}


def raw(**keys: Any) -> dict[str, Any]:
    """A policy with pods; `protect` and `illness` are added to what is there."""
    protect, illness = keys.pop("protect", {}), keys.pop("illness", {})
    return {
        "version": 1,
        "series": "s",
        "person": "who",
        "attributes": {
            "sex": {"role": "quasi-identifier", "hierarchy": {"Person": ["F", "M"]}},
            "age": {"role": "quasi-identifier", "kind": "number"},
            "illness": {"role": "sensitive", "hierarchy": TREE, **illness},
            "ward": {"role": "insensitive", "changes": True},
        },
        "protect": {"k": 5, "confidence": 0.5, **protect},
        "method": {"name": "pods"},
        **keys,
    }


def problems(**keys: Any) -> dict[str | None, str]:
    with pytest.raises(PolicyError) as caught:
        Policy.model_validate(raw(**keys))
    return {problem.key: problem.message for problem in caught.value.problems}


def test_a_policy_with_everything_of_pods() -> None:
    policy = Policy.model_validate(
        raw(
            protect={"inferred": 2, "lineage": 8, "belief": 0.7, "diversity": {"kind": "distinct", "l": 2}},
            impossible=[{"sex": "M", "illness": "a1"}],
            decoys=0.1,
            method={"name": "pods", "classes": "one-type"},
        )
    )
    assert policy.fewest == 2
    assert policy.impossible == ({"sex": "M", "illness": "a1"},)


@pytest.mark.parametrize("method", [{"name": "mondrian"}, {"name": "group"}, None])
def test_keys_of_pods_without_pods(method: dict[str, Any] | None) -> None:
    keys = raw(protect={"lineage": 4}, decoys=0.1, impossible=[{"sex": "M", "illness": "a1"}])
    keys = {name: value for name, value in (keys | {"method": method}).items() if value is not None}
    with pytest.raises(PolicyError) as caught:
        Policy.model_validate(keys)
    found = {problem.key: problem.message for problem in caught.value.problems}
    for key in ("protect.lineage", "decoys", "impossible"):
        assert found[key].startswith("only goes with method: {name: pods}: ")


@pytest.mark.parametrize("name", ["mondrian", "pods"])
def test_a_policy_written_out_in_full_is_the_same_policy(name: str) -> None:
    policy = Policy.model_validate(raw(method={"name": name}))
    assert Policy.model_validate(policy.model_dump(mode="json", exclude_none=True)) == policy


def test_classes_of_one_type_are_not_blind() -> None:
    assert list(problems(method={"name": "pods", "blind": True, "classes": "one-type"})) == ["method.classes"]


def test_blind_without_pods() -> None:
    assert problems(method={"name": "merge", "blind": True})["method.blind"] == (
        "only goes with method: pods. Available here: name, cuts"
    )


def test_more_cannot_be_asked_of_what_is_inferred_than_of_a_class() -> None:
    assert problems(protect={"inferred": 6})["protect.inferred"] == (
        "is more than k: a class of 5 rows is known as it is. Write at most 5, or a larger k"
    )
    assert problems(protect={"inferred": 2, "against": ["outsider"]})["protect.inferred"].startswith(
        "is about several releases, and nobody in against holds these"
    )
    assert Policy.model_validate(raw(protect={"inferred": 5})).fewest == 5


@pytest.mark.parametrize(
    ("confidence", "seats"), [(0.5, 2), (1 / 3, 3), (0.4, 3), (0.9, 2), ({"a1": 0.25, "*": 0.5}, 4), ({"a1": 1.0}, 1)]
)
def test_a_lineage_has_room_for_a_pod(confidence: Any, seats: int) -> None:
    if seats > 2:
        found = problems(protect={"confidence": confidence, "lineage": seats - 1})
        assert found == {
            "protect.lineage": f"is less than the {seats} seats that every pod needs for this confidence; write at "
            f"least {seats}"
        }
    Policy.model_validate(raw(protect={"confidence": confidence, "lineage": max(seats, 2)}))


def test_a_belief_that_pods_cannot_keep() -> None:
    assert problems(protect={"belief": 0.45}) == {
        "protect.belief": "cannot be kept by pods of 2 seats, who leave a chance of 1 in 2: write 0.5 or more, or "
        "confidence: 0.45, which makes larger pods"
    }
    Policy.model_validate(raw(protect={"belief": 0.5}))
    Policy.model_validate(raw(protect={"belief": 0.45, "confidence": 0.45}))
    Policy.model_validate(raw(protect={"belief": 0.333, "confidence": 1 / 3}))
    Policy.model_validate(raw(protect={"belief": 0.1}, method={"name": "mondrian"}))


def test_belief_and_lineage_need_something_sensitive() -> None:
    keys = raw(protect={"belief": 0.7, "lineage": 4, "confidence": None})
    del keys["attributes"]["illness"]
    with pytest.raises(PolicyError) as caught:
        Policy.model_validate(keys)
    assert {"protect.belief", "protect.lineage"} <= {problem.key for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("closeness", {"t": 0.2}),
        ("alpha", 0.5),
        ("k_map", {"k": 5, "population": "people.csv"}),
        ("diversity", {"kind": "entropy", "l": 2}),
        ("diversity", {"kind": "recursive", "l": 2, "c": 3}),
    ],
)
def test_promises_that_pods_do_not_keep(key: str, value: Any) -> None:
    found = problems(protect={key: value})
    assert list(found) == [f"protect.{key}"]
    assert "is not kept by method: pods" in found[f"protect.{key}"]


@pytest.mark.parametrize(
    ("confidence", "illness", "least"),
    [
        (0.5, {}, 2),
        (0.3, {}, 4),
        ({"a1": 0.25, "*": 0.5}, {}, 2),
        ({"a1": 0.25}, {}, 1),
        (0.5, {"ordinary": ["b"]}, 1),
        (0.5, {"confidence": 0.2}, 5),
    ],
)
def test_distinct_diversity_follows_from_pods_up_to_a_number(confidence: Any, illness: Any, least: int) -> None:
    protect = {"confidence": confidence, "diversity": {"kind": "distinct", "l": least}}
    Policy.model_validate(raw(protect=protect, illness=illness))
    protect["diversity"] = {"kind": "distinct", "l": least + 1}
    found = problems(protect=protect, illness=illness)
    assert list(found) == ["protect.diversity.l"]
    assert (f"write l: {least}" if least > 1 else "leave it out") in found["protect.diversity.l"]


def test_values_that_change_are_not_covered() -> None:
    assert list(problems(illness={"values": "transient"})) == ["attributes.illness.values"]
    found = problems(
        illness={"values": "transient", "permanent": ["a1"]},
        protect={"lifetime": {"l": 2, "releases": 20}, "against": ["insider", "lifetime"]},
    )
    assert found["protect.lifetime"].startswith("is about values that change, which method: pods does not cover")
    assert list(problems(protect={"against": ["insider", "lifetime"]})) == ["protect.against"]


def test_values_that_stay_among_changing_ones_are_covered_and_the_others_are_not_promised() -> None:
    policy = Policy.model_validate(raw(illness={"values": "transient", "permanent": ["a1"]}))
    assert "Nothing over several releases about illness, whose values change." in unpromised(policy)


@pytest.mark.parametrize(
    ("rule", "key", "said"),
    [
        ({"sex": "F"}, "impossible[0]", "needs at least one quasi-identifier and exactly one sensitive attribute"),
        ({"illness": "b"}, "impossible[0]", "needs at least one quasi-identifier"),
        ({}, "impossible[0]", "needs at least one quasi-identifier"),
        ({"sex": "F", "ward": "w", "illness": "b"}, "impossible[0].ward", "is insensitive; only quasi-identifiers"),
        ({"sexx": "F", "illness": "b"}, "impossible[0].sexx", 'no attribute has this name; did you mean "sex"?'),
        ({"sex": "G", "illness": "b"}, "impossible[0].sex", "not a value of the attribute"),
        ({"sex": "F", "illness": "a3"}, "impossible[0].illness", 'not a value of the attribute; did you mean "'),
    ],
)
def test_rules_of_what_cannot_be(rule: dict[str, str], key: str, said: str) -> None:
    found = problems(impossible=[rule])
    assert list(found) == [key]
    assert found[key].startswith(said)


def test_rules_may_name_nodes_and_values_without_a_hierarchy() -> None:
    Policy.model_validate(raw(impossible=[{"sex": "M", "illness": "b"}, {"sex": "F", "age": "7", "illness": "A"}]))


def test_rules_that_contradict_each_other() -> None:
    rules = [{"sex": "F", "illness": "b"}, {"sex": "M", "illness": "b"}]
    assert problems(impossible=rules) == {
        "impossible[1]": "with the rules before it nobody could have this illness; take one of them out"
    }
    rules = [{"sex": "F", "illness": "A"}]
    assert problems(impossible=rules)["impossible[0]"].startswith("leaves fewer values of illness possible for")
    assert problems(impossible=[rules[0], rules[0]])["impossible[1]"] == "is given twice; keep one"


def test_only_values_that_stay_can_be_impossible() -> None:
    illness = {"values": "transient", "permanent": ["a1"], "hierarchy": None}
    found = problems(illness=illness, impossible=[{"sex": "F", "illness": "b"}])
    assert found == {"impossible[0].illness": "only values that stay with a person are shared out in pods; this one "
                     "may change"}  # fmt: skip
    Policy.model_validate(raw(illness=illness, impossible=[{"sex": "F", "illness": "a1"}]))


def test_values_of_rules_are_text_as_written(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        textwrap.dedent("""\
        version: 1
        series: s
        attributes:
          age: {role: quasi-identifier, kind: number}
          icd: {role: sensitive}
        protect: {k: 2, confidence: 0.5}
        method: {name: pods}
        impossible:
          - {age: 07, icd: no}
        """)
    )
    assert Policy.load(file).impossible == ({"age": "07", "icd": "no"},)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.sampled_from(["", "a1", "F", "pods", "sex"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["sex", "illness", "name"]), inner),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans())
def test_whatever_is_written_there_is_a_policy_or_a_list_of_problems(data: st.DataObject, by_default: bool) -> None:
    keys = raw()
    places = [(keys, key) for key in ("impossible", "decoys", "method", "person")]
    places += [
        (keys["protect"], key) for key in ("inferred", "lineage", "belief", "against", "confidence", "diversity")
    ]
    places += [(keys["attributes"]["illness"], key) for key in ("permanent", "values", "ordinary", "confidence")]
    for place, key in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        place[key] = data.draw(ANYTHING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(defaults, "PODS_BY_DEFAULT", by_default)
        try:
            Policy.model_validate(keys)
        except PolicyError as error:
            assert error.problems  # noqa: PT017 - either is fine


def test_what_is_promised_is_fixed_and_how_it_is_made_is_not() -> None:
    one = Policy.model_validate(raw(protect={"inferred": 2, "lineage": 4}))
    same = Policy.model_validate(raw(protect={"inferred": 2, "lineage": 4}, decoys=0.2))
    other = Policy.model_validate(raw(protect={"inferred": 3, "lineage": 4, "belief": 0.7}))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    assert differences(other, policy_text(one)) == ["protect.belief", "protect.inferred"]


@pytest.mark.parametrize(
    ("confidence", "k", "fewest"),
    [(0.5, 5, 2), (0.34, 5, 3), (0.34, 2, 2), (0.9, 5, 2), ({"a1": 0.25, "*": 0.34}, 5, 3), (1.0, 5, 5)],
)
def test_what_is_inferred_comes_down_to_a_pod_unless_more_is_asked(confidence: Any, k: int, fewest: int) -> None:
    protect = {"confidence": confidence, "k": k}
    assert Policy.model_validate(raw(protect=protect)).fewest == fewest
    assert Policy.model_validate(raw(protect={**protect, "inferred": k})).fewest == k
    assert Policy.model_validate(raw(protect=protect, method={"name": "mondrian"})).fewest == k


def test_a_promise_by_default_is_fixed_like_one_that_is_written() -> None:
    """Another method has other defaults, which must not weaken what was promised; written out it is the same."""
    pods, other = (Policy.model_validate(raw(method={"name": name})) for name in ("pods", "mondrian"))
    assert differences(pods, policy_text(other)) == ["protect.inferred", "protect.people"]
    written = Policy.model_validate(raw(protect={"inferred": 5, "people": 5}))
    assert differences(written, policy_text(other)) == []
    assert fingerprint(written) == fingerprint(other) != fingerprint(pods)
    same = Policy.model_validate(raw(protect={"inferred": 2, "people": 3}))
    assert fingerprint(same) == fingerprint(pods)


def test_the_method_is_mondrian_unless_a_policy_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = raw()
    del keys["method"]
    assert Policy.model_validate(keys).method.name == "mondrian"
    assert "method" not in Policy.model_validate(keys).model_fields_set
    monkeypatch.setattr(defaults, "PODS_BY_DEFAULT", True)
    assert Policy.model_validate(keys).method.name == "pods"
    Policy.model_validate(keys | {"decoys": 0.1})
    for other in (
        raw(illness={"values": "transient"}, protect={"lifetime": {"l": 2, "releases": 9}, "against": ["lifetime"]}),
        raw(protect={"closeness": {"t": 0.2}}),
        raw(protect={"confidence": None, "against": ["outsider"]}),
        raw(person=None),
        raw(protect={"against": ["insider", "neighbor"]}),
    ):
        del other["method"]
        assert Policy.model_validate(other).method.name == "mondrian"


def _said(**keys: Any) -> tuple[str, str, str]:
    policy = Policy.model_validate(raw(**keys))
    return tuple(" ".join(map(str, words(policy))) for words in (promises, unpromised, notes))  # type: ignore[return-value]


def test_what_pods_promise_is_said_in_words() -> None:
    promised, missing, think = _said()
    assert "Every class has at least 5 rows, of which 3 people or more; the others may be decoys" in promised
    assert "No set of fewer than 2 rows (decoys count)" in promised
    assert "can be traced to fewer rows by all releases together" in promised
    assert "may come down to 2, the seats of a pod: 2 people, or fewer and decoys" in think
    assert "At most 8 people hang together" in promised
    assert "works it backwards" in missing
    assert "how many people of a release have each value" in missing
    assert "A decoy is a row about nobody." in think
    assert "at most 5% of the rows" in think


def test_what_more_is_asked_of_pods_is_said_in_words() -> None:
    protect = {"inferred": 2, "lineage": 12, "belief": 0.7}
    promised, missing, think = _said(
        protect=protect, method={"name": "pods", "blind": True}, impossible=[{"sex": "M", "illness": "a1"}], decoys=0.2
    )
    assert "No set of fewer than 2 rows (decoys count)" in promised
    assert "the seats of a pod" not in think
    assert "At most 12 people hang together" in promised
    assert "is never surer than 70% of anybody's value of illness" in promised
    assert "hang together" not in missing
    assert "works it backwards" not in missing
    assert "1 combination of values cannot be" in think
    assert "at most 20% of the rows" in think
    assert "a1" not in promised + missing + think


def test_inferred_and_belief_are_promised_by_other_methods_too() -> None:
    protect = {"inferred": 2, "belief": 0.7, "against": ["insider", "neighbor"]}
    promised, missing, think = _said(protect=protect, method={"name": "merge"})
    assert "Every class has at least 5 people." in promised
    assert "No set of fewer than 2 people, one of whom has a value with a bound, falls out" in promised
    assert "at least 2 are left when two releases are compared" in promised
    assert "never surer than 70%" in promised
    assert "decoy" not in promised + missing + think


def test_belief_is_what_an_insider_believes() -> None:
    assert list(problems(protect={"belief": 0.7, "against": ["neighbor"]}, method={"name": "merge"})) == [
        "protect.belief"
    ]
