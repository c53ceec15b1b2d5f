"""Domains are kept as text without losing a bit, and codes follow when a domain grows."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest

from sequester.domain.extend import places as leaf_places
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.code import from_codes
from sequester.domain.kinds.date import from_dates
from sequester.domain.kinds.number import from_bands, from_numbers
from sequester.domain.tree import from_rows, from_tree, from_values
from sequester.ledger.domains import carry_codes, from_json, lost_leaves, to_json

DAYS = np.array(["0001-01-01", "1964-02-29", "1970-01-01", "9999-12-31"], "datetime64[D]")
NUMBERS = np.array([-0.1, 0.1 + 0.2, 1e-300, 5.0, 1.7976931348623157e308])
TREE = {"World": {"Europe": ["France", "Österreich"], "Asia": ["日本"], 'odd "name", {x}': ["\ud800 alone", "NUL\0"]}}

DOMAINS = {
    "tree": from_tree(TREE),
    "tree with missing": from_tree(TREE, missing=True),
    "uneven tree": from_tree({"a": {"b": ["c", "d"]}, "e": None}),
    "rows": from_rows([["1", "low", "*"], ["10", "high", "*"], ["2", "low", "*"]]),
    "flat": from_values(["b", "a", "10", "9"]),
    "one value": from_values(["only"], missing=True),
    "bands": from_bands([-np.inf, 0, 0.1, 10, np.inf], missing=True),
    "integers": from_numbers(np.empty(0), range=(0, 120), levels=[5, 10]),
    "floats": from_numbers(NUMBERS, missing=True),
    "number bands": from_numbers(np.array([0.5, 1.5, 7.0]), range=(0.0, 10.0), bands=[0, 1, 5, 10]),
    "days": from_dates(DAYS, missing=True),
    "decades": from_dates(DAYS[1:3], levels=["year", "decade"]),
    "codes": from_codes(["02138", "02139", "90210"], length=5, missing=True),
}


def same(one: Hierarchy, other: Hierarchy) -> bool:
    """Equal to the last bit, and of the same types."""
    return (
        (one.kind, one.names, one.missing, dict(one.aliases))
        == (other.kind, other.names, other.missing, dict(other.aliases))
        and list(one.aliases) == list(other.aliases)
        and one.leaves.dtype == other.leaves.dtype
        and [*map(_bits, one.leaves)] == [*map(_bits, other.leaves)]
        and one.position.tobytes() == other.position.tobytes()
        and [start.tobytes() for start in one.starts] == [start.tobytes() for start in other.starts]
        and {start.dtype for start in other.starts} == {np.dtype(np.int32)}
    )


def _bits(leaf: object) -> object:
    return leaf.tobytes() if isinstance(leaf, np.generic) else leaf


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_comes_back_to_the_last_bit(name: str) -> None:
    text = to_json(DOMAINS[name])
    found = from_json(text)
    assert same(DOMAINS[name], found)
    assert to_json(found) == text
    assert text.isascii()


def test_every_kind_is_among_them() -> None:
    assert {domain.kind for domain in DOMAINS.values()} == {"category", "number", "code", "date"}
    assert any(domain.aliases for domain in DOMAINS.values())


@pytest.mark.parametrize("change", [{"position": [0.0]}, {"names": [["a"]]}, {"starts": [[0]]}, {"leaves": ["a"]}])
def test_a_domain_that_does_not_fit_together_is_refused(change: dict[str, object]) -> None:
    kept = {**json.loads(to_json(DOMAINS["flat"])), **change}
    with pytest.raises(ValueError, match=r"does not fit together|zip\(\) argument"):
        from_json(json.dumps(kept))


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        (from_values(["b", "d"]), from_values(["a", "b", "c", "d"]), [1, 3]),
        (from_values(["b"], missing=True), from_values(["a", "b"], missing=True), [1, 2]),
        (from_codes(["03", "01"], length=2), from_codes(["01", "02", "03"], length=2), [0, 2]),
        (from_numbers(np.array([0.1, 7.0])), from_numbers(np.array([-1.0, 0.1, 3.0, 7.0])), [1, 3]),
        (from_numbers(np.array([5.0]), missing=True), from_numbers(np.array([4.0, 5.0]), missing=True), [1, 2]),
        (from_dates(DAYS[1:3]), from_dates(DAYS), [1, 2]),
        (from_dates(DAYS[1:2], missing=True), from_dates(DAYS, missing=True), [1, 4]),
    ],
)
def test_leaves_are_found_in_a_larger_domain(before: Hierarchy, after: Hierarchy, places: list[int]) -> None:
    assert leaf_places(before, after).tolist() == places
    codes = np.array([0, -1, before.size - 1], np.int32)
    assert carry_codes(codes, before, after).tolist() == [places[0], -1, places[-1]]
    assert lost_leaves({"x": before}, {"x": after}) == {}


def test_leaves_that_are_gone_are_counted() -> None:
    before = {
        "flat": from_values(["a", "b", "c"]),
        "number": from_numbers(np.array([1.0, 2.0, 9.0])),
        "missing": from_values(["a"], missing=True),
        "gone": from_values(["a", "b"]),
        "day": from_dates(np.array([date(2020, 1, 1), date(2020, 1, 2)], "datetime64[D]")),
    }
    after = {
        "flat": from_values(["b"]),
        "number": from_numbers(np.array([2.0, 3.0])),
        "missing": from_values(["a", "b"]),
        "day": from_dates(np.array([date(2020, 1, 2)], "datetime64[D]")),
    }
    assert lost_leaves(before, after) == {"flat": 2, "number": 2, "missing": 1, "gone": 2, "day": 1}
