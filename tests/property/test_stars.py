"""A suppressed value may be any value that it could hide: the audit counts it for each, so suppressing never helps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import sequester as sq
from sequester.domain.hierarchy import with_blank
from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement

DOMAIN = with_blank(from_values("abc"))
STAR = DOMAIN.names[0].index("*")


def rules(*against: str, **value: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "person": "id",
            "attributes": {
                "q": {"role": "quasi-identifier", "kind": "number", "range": [0, 9]},
                "v": {"role": "sensitive", "values": "transient", **value},
            },
            "protect": {
                "k": 2,
                "confidence": 0.5,
                "lifetime": {"l": 2.0, "releases": 1},
                "against": ["lifetime", *against],
            },
            "method": {"name": "group"},
        }
    )


def observed(policy: sq.Policy, member: np.ndarray, codes: np.ndarray) -> float:
    found = Requirement.from_policy(policy, [DOMAIN]).check(member, codes[None, :])
    return max(outcome.observed or 0.0 for outcome in found if outcome.name == "confidence")


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12), st.booleans())
def test_a_star_counts_for_every_value_that_is_protected(rows: list[tuple[int, int]], ordinary: bool) -> None:
    member, codes = np.array(rows).T
    names = DOMAIN.names[0]
    worst = Fraction(0)
    for number in np.unique(member):
        inside = codes[member == number].tolist()
        for value in "bc" if ordinary else "abc":
            many = inside.count(names.index(value)) + inside.count(STAR)
            worst = max(worst, Fraction(many, len(inside)))
    policy = rules(ordinary=["a"]) if ordinary else rules()
    assert observed(policy, member, codes) == float(worst)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.data())
def test_suppressing_a_value_never_lowers_the_confidence(values: list[int], data: st.DataObject) -> None:
    codes, member = np.array(values), np.zeros(len(values), np.int64)
    starred = codes.copy()
    starred[sorted(data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1)))] = STAR
    assert observed(rules(), member, starred) >= observed(rules(), member, codes)


def test_a_star_hides_no_value_that_stays_with_a_person() -> None:
    codes, member = np.array([0, STAR, 1, 1]), np.zeros(4, np.int64)
    assert observed(rules(), member, codes) == 0.75
    assert observed(rules("insider", permanent=["b"]), member, codes) == 0.5


def release(*values: str) -> pa.Table:
    return pa.table({"id": [f"p{n}" for n in range(len(values))], "q": ["*"] * len(values), "v": list(values)})


def test_stars_are_tied_to_a_value_beyond_the_promise_in_a_series_of_others() -> None:
    policy = rules(ordinary=["a"])
    assert sq.audit([release("b", "c", "a", "a")], policy).holds
    found = sq.audit([release("b", "*", "*", "a")], policy)
    assert {"confidence", "breach"} <= {finding.attack for finding in found.findings}
    assert found.measures["breach"] == 0.75
    assert sq.measure(release("b", "*", "*", "a").drop_columns("id"), policy).confidence == 0.75


def test_a_column_of_nothing_but_stars_says_nothing() -> None:
    table = pa.table({"id": ["1", "2"], "q": ["3", "3"], "s": ["*", "*"]})
    attributes = {"q": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}}
    raw = {
        "version": 1,
        "series": "s",
        "person": "id",
        "attributes": attributes,
        "protect": {"k": 2, "confidence": 0.5},
    }
    assert sq.audit([table, table], sq.Policy.model_validate(raw)).holds
