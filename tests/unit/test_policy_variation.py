"""A policy with another method or other numbers, and as a file again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsed import raw, rules
from sequester.errors import PolicyError
from sequester.policy import Policy
from sequester.policy.variation import KNOBS, own_number, promises_as_much, varied
from sequester.policy.written import written

TEXT = """\
# Agreed on with the officer.
version: 1
series: panel
person: id
attributes:
  age:  {role: quasi-identifier, kind: number, range: [0, 99]}   # in years
  town: {role: quasi-identifier}
  illness:
    role: sensitive
    # not protected
    ordinary: [no, 007, "flu, or the like"]
protect:
  k: 4                # classes
  confidence: 0.6
  inferred: 2
# How it is made.
method:
  name: pods          # nobody waits
  blind: false
decoys: 0.1           # one in ten
output: {format: csv, numbers: bounds}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(TEXT)
    return tmp_path / "policy.yaml"


def test_keys_that_go_with_another_method_are_left_out() -> None:
    policy = rules(decoys=0.2, protect={"k": 4, "confidence": 0.6, "inferred": 2, "lineage": 6})
    other = varied(policy, {}, method="cluster")
    assert other.method.name == "cluster"
    assert (other.decoys, other.protect.lineage) == (0.05, None)
    assert other.protect.k == 4


def test_options_of_the_same_method_stay() -> None:
    policy = rules(method={"name": "pods", "blind": True})
    assert varied(policy, {"k": 7}).method == policy.method
    assert varied(policy, {"k": 7.0}, method="pods").protect.k == 7


def test_another_method_promises_no_less_by_its_defaults() -> None:
    raw_ = raw()
    protect = {key: value for key, value in raw_["protect"].items() if key not in ("inferred", "lineage")}
    policy = Policy.model_validate(raw_ | {"protect": protect, "method": {"name": "mondrian"}})
    pods = varied(policy, {}, method="pods")
    assert (pods.fewest, pods.fewest_people) == (policy.fewest, policy.fewest_people) == (protect["k"],) * 2
    back = varied(Policy.model_validate(raw_ | {"protect": protect}), {}, method="mondrian")
    assert back.fewest == 2


def test_a_confidence_is_that_of_all_values() -> None:
    columns = {**raw()["attributes"], "illness": {"role": "sensitive", "confidence": {"gout": 0.3, "*": 0.6}}}
    policy = rules(attributes=columns)
    assert own_number(policy, "confidence") == "by column"
    other = varied(policy, {"confidence": 0.4})
    assert other.protect.confidence == 0.4
    assert other.sensitive["illness"].confidence is None
    assert not promises_as_much(policy, {"confidence": 0.2})


def test_a_number_that_does_not_go_is_said_like_any_other_mistake() -> None:
    with pytest.raises(PolicyError, match=r"protect\.inferred: is more than k"):
        varied(rules(), {"inferred": 9})
    with pytest.raises(PolicyError, match="cake: cannot be varied"):
        varied(rules(), {"cake": 1})


@pytest.mark.parametrize(
    ("numbers", "as_much"),
    [
        ({"k": 4}, True),
        ({"k": 5, "confidence": 0.5}, True),
        ({"k": 3}, False),
        ({"k": 5, "confidence": 0.7}, False),
        ({"lineage": 8}, True),
        ({"lineage": 9}, False),
        ({"inferred": 3}, True),
        ({"belief": 0.9}, True),
        ({"decoys": 1}, True),
    ],
)
def test_what_promises_as_much_is_known(numbers: dict[str, float], as_much: bool) -> None:
    assert promises_as_much(rules(), numbers) is as_much


def test_every_number_says_what_it_promises() -> None:
    assert {name: one.more for name, one in KNOBS.items()} == {
        "k": 1, "confidence": -1, "people": 1, "inferred": 1, "lineage": -1, "belief": -1, "l": 1, "decoys": 0,
    }  # fmt: skip


def same(text: str, policy: Policy, tmp_path: Path) -> bool:
    (tmp_path / "again.yaml").write_text(text)
    return Policy.load(tmp_path / "again.yaml").model_dump() == policy.model_dump()


@pytest.mark.parametrize(
    ("numbers", "method"),
    [
        ({}, "mondrian"),
        ({"k": 6, "decoys": 0.3}, "pods"),
        ({"lineage": 6}, "pods"),
        ({"k": 9, "confidence": 0.5}, "cluster"),
    ],
)
def test_the_stewards_text_is_kept_with_its_comments(
    file: Path, numbers: dict[str, float], method: str, tmp_path: Path
) -> None:
    policy = varied(Policy.load(file), numbers, method=method)
    text = written(policy, comments=["Why."], text=TEXT)
    assert same(text, policy, tmp_path)
    assert text.startswith("# Why.\n# Agreed on with the officer.\n")
    for kept in ("# in years", "# not protected", "# classes", "# How it is made.", '[no, 007, "flu, or the like"]'):
        assert kept in text
    assert ("# one in ten" in text) == (method == "pods")


def test_a_text_on_one_line_is_changed_too(tmp_path: Path) -> None:
    text = (
        "{version: 1, series: s, person: id, attributes: {age: {role: quasi-identifier}, ill: {role: sensitive}}, "
        "protect: {k: 4, confidence: 0.6, lineage: 6}, decoys: 0.2, method: {name: pods}}\n"
    )
    (tmp_path / "policy.yaml").write_text(text)
    policy = Policy.load(tmp_path / "policy.yaml")
    for other in (varied(policy, {}, method="merge"), varied(policy, {"inferred": 3}), varied(policy, {"lineage": 4})):
        assert same(written(other, text=text), other, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 2\n",
        "no: [yaml",
        TEXT.replace("series: panel", "series: another"),
        TEXT.replace("  k: 4 ", "  k: &k 4 ").replace("  inferred: 2", "  inferred: *k"),
    ],
)
def test_a_text_that_cannot_be_changed_is_written_anew(text: str, tmp_path: Path) -> None:
    policy = rules(method={"name": "cluster", "similarity": 0.5})
    assert same(written(policy, text=text), policy, tmp_path)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True))
def test_a_policy_written_anew_reads_back_as_the_same(values: list[str]) -> None:
    import tempfile

    try:
        policy = rules(attributes={**raw()["attributes"], "illness": {"role": "sensitive", "ordinary": values}})
    except PolicyError:
        return
    with tempfile.TemporaryDirectory() as folder:
        assert same(written(policy), policy, Path(folder))
