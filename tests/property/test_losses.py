"""Every loss equals its definition, record by record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy, nested
from sequester.metrics.loss import column_losses, losses, ncp

moderate = settings(max_examples=80, deadline=None)


@dataclass
class Boxes:
    lo: np.ndarray
    hi: np.ndarray
    size: np.ndarray


def number() -> Hierarchy:
    leaves = np.array([0.0, 1.0, 4.0, 10.0])
    names = ("0", "1", "4", "10")
    levels = [(np.arange(4, dtype=np.int32), names), (np.array([0, 2], np.int32), ("[0-1]", "[4-10]"))]
    return nested("number", leaves, levels, position=leaves / 10)


def category() -> Hierarchy:
    names = ("a", "b", "c", "d", "e")
    groups = (np.array([0, 2, 3], np.int32), ("ab", "c", "de"))
    return nested("category", np.array(names, object), [(np.arange(5, dtype=np.int32), names), groups])


def single() -> Hierarchy:
    return nested("code", np.array(["x"], object), [(np.zeros(1, np.int32), ("x",))])


DOMAINS = [number(), category(), single()]


@st.composite
def releases(draw: st.DrawFn) -> tuple[Boxes, np.ndarray, np.ndarray]:
    """Random classes with boxes around their records; the raw codes and class (-1: left out) of every record."""
    records = draw(st.integers(1, 15))
    quasi = np.array(
        [draw(st.lists(st.integers(0, d.size - 1), min_size=records, max_size=records)) for d in DOMAINS], np.int32
    )
    given_classes = draw(st.lists(st.integers(-1, 3), min_size=records, max_size=records))
    present = sorted(set(given_classes) - {-1})
    member = np.array([present.index(c) if c >= 0 else -1 for c in given_classes])
    lo = np.zeros((len(DOMAINS), len(present)), np.int32)
    hi = np.zeros_like(lo)
    for c in range(len(present)):
        for a, domain in enumerate(DOMAINS):
            inside = quasi[a, member == c]
            lo[a, c] = draw(st.integers(0, int(inside.min())))
            hi[a, c] = draw(st.integers(int(inside.max()), domain.size - 1))
    return Boxes(lo, hi, np.bincount(member[member >= 0], minlength=len(present))), quasi, member


def cost_of_record(classes: Boxes, domain: Hierarchy, attribute: int, c: int) -> dict[str, float]:
    """What one published record loses in one attribute."""
    lo, hi = int(classes.lo[attribute, c]), int(classes.hi[attribute, c])
    if domain.kind == "number":
        width = (domain.leaves[hi] - domain.leaves[lo]) / (domain.leaves[-1] - domain.leaves[0])
        penalty = width
    else:
        width = (hi - lo) / max(domain.size - 1, 1)
        penalty = 0.0 if lo == hi else (hi - lo + 1) / domain.size
    level = next(
        step
        for step in range(domain.height + 1)
        if any(first <= lo and hi <= last for first, last in zip(*domain.bounds(step), strict=True))
    )
    return {"ail": width, "ncp": penalty, "level": level / max(domain.height, 1)}


@moderate
@given(releases())
def test_every_loss_equals_its_definition(release):
    classes, quasi, member = release
    records, attributes = quasi.shape[1], len(DOMAINS)
    total = {"ail": 0.0, "ncp": 0.0, "level": 0.0}
    bits = most_bits = 0.0
    for r in range(records):
        for a, domain in enumerate(DOMAINS):
            column = quasi[a].tolist()
            value, c = column[r], int(member[r])
            all_bits = -math.log2(column.count(value) / records)
            most_bits += all_bits
            if c < 0:
                total = {name: cost + 1 for name, cost in total.items()}
                bits += all_bits
                continue
            for name, cost in cost_of_record(classes, domain, a, c).items():
                total[name] += cost
            possible = sum(classes.lo[a, c] <= v <= classes.hi[a, c] for v in column)
            bits += -math.log2(column.count(value) / possible)
    suppressed = int((member < 0).sum())
    members = member.tolist()
    dm = sum(records if c < 0 else members.count(c) for c in members)
    found = losses(classes, DOMAINS, suppressed=suppressed, quasi=quasi)
    expected = {
        "ail": total["ail"] / records,
        "ncp": total["ncp"] / records / attributes,
        "dm": dm,
        "dm_normalized": dm / records**2,
        "class_size": records / max(len(classes.size), 1),
        "precision": 1 - total["level"] / records / attributes,
        "entropy": bits / most_bits if most_bits else 0.0,
    }
    assert list(found) == list(expected)
    assert all(math.isclose(found[name], expected[name], abs_tol=1e-9) for name in expected)
    assert all(0 <= found[name] <= 1 + 1e-12 for name in ("ncp", "dm_normalized", "precision", "entropy"))


@moderate
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12))
def test_publishing_exact_values_loses_nothing_and_leaving_all_out_loses_everything(cells):
    domains = DOMAINS[:2]
    quasi = np.array(cells, np.int32).T
    exact = Boxes(quasi, quasi, np.ones(len(cells), np.int64))
    found = losses(exact, domains, quasi=quasi)
    assert (found["ail"], found["ncp"], found["precision"]) == (0, 0, 1)
    nothing = Boxes(np.zeros((2, 0), np.int32), np.zeros((2, 0), np.int32), np.zeros(0, np.int64))
    found = losses(nothing, domains, suppressed=len(cells), quasi=quasi)
    assert (found["ail"], found["ncp"], found["dm_normalized"], found["precision"]) == (2, 1, 1, 0)
    assert found["entropy"] in (0, 1)


def test_entropy_is_absent_without_the_raw_table():
    boxes = Boxes(np.zeros((1, 1), np.int32), np.ones((1, 1), np.int32), np.array([3]))
    assert "entropy" not in losses(boxes, DOMAINS[:1])


@moderate
@given(releases())
def test_the_loss_of_a_column_is_what_its_records_lose_in_it(release):
    classes, _, member = release
    there = [int(c) for c in member if c >= 0]
    found = column_losses(classes, DOMAINS)
    for a, domain in enumerate(DOMAINS):
        expected = sum(cost_of_record(classes, domain, a, c)["ncp"] for c in there) / max(len(there), 1)
        assert math.isclose(found[a], expected, abs_tol=1e-9)
    assert math.isclose(float(found.mean()), ncp(classes, DOMAINS), abs_tol=1e-9)
