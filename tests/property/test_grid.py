"""Ends of published intervals lie on a grid: they contain what was there, and are nobody's own value."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.domain.build import observe
from sequester.domain.extend import extend, grows_from
from sequester.domain.grid import number_grid, snapped, with_grid
from sequester.policy.attributes import QuasiIdentifier

finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: round(number, 4) + 0.0)
decimals = st.lists(finite, min_size=2, max_size=12, unique=True)
days = st.lists(st.integers(0, 20_000), min_size=2, max_size=12, unique=True)


def attribute(**more: Any) -> QuasiIdentifier:
    return QuasiIdentifier(role="quasi-identifier", **{"kind": "number", **more})


def domain_of(what: QuasiIdentifier, values: np.ndarray) -> Any:
    return observe(what, with_grid(what, values))


def all_boxes(domain: Any, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every interval between two of the values, as codes."""
    codes = np.searchsorted(domain.values, np.sort(values)).astype(np.int32)
    lo, hi = np.meshgrid(codes, codes)
    return lo[lo <= hi], hi[lo <= hi]


@given(decimals, st.sampled_from([None, (-1e6, 1e6), (-1.5e6, 2.25e6)]), st.booleans())
def test_moved_ends_contain_the_interval_and_are_points_of_the_grid(
    numbers: list[float], between: tuple[float, float] | None, missing: bool
) -> None:
    what = attribute(range=between, missing="category" if missing else "refuse")
    values = np.array(numbers)
    domain = domain_of(what, values)
    lo, hi = all_boxes(domain, values)
    low, high = snapped(domain, lo, hi)
    assert ((low <= lo) & (high >= hi)).all()
    assert ((low == lo) & (high == hi))[lo == hi].all()
    again = snapped(domain, low, high)
    assert (again[0] == low).all()
    assert (again[1] == high).all()
    whole = all(number == int(number) for number in [*numbers, *(between or ())])
    points = number_grid(float(domain.values[0]), float(domain.values[-1]), whole=whole)
    if points is not None:
        proper = lo < hi
        assert np.isin(domain.values[low[proper]], points).all()
        assert np.isin(domain.values[high[proper]], points).all()
        assert 40 <= len(points) <= 260


@given(decimals)
def test_no_point_of_a_grid_has_more_digits_than_its_step_needs(numbers: list[float]) -> None:
    points = number_grid(min(numbers), max(numbers), whole=False)
    assert points is not None
    inner = [Decimal(repr(point)) for point in points[1:-1].tolist()]
    steps = {other - one for one, other in itertools.pairwise(inner)}
    assert len(steps) == 1
    (step,) = steps
    assert step.normalize().as_tuple().digits in {(1,), (2,), (5,)}
    assert all(point % step == 0 for point in inner)


@given(st.lists(st.integers(0, 99), min_size=2, max_size=20, unique=True))
def test_ages_years_and_grades_stay_as_they_are(ages: list[int]) -> None:
    values = np.array(ages, float)
    for what in (attribute(), attribute(range=(0, 120))):
        domain = domain_of(what, values)
        lo, hi = all_boxes(domain, values)
        assert [side.tolist() for side in snapped(domain, lo, hi)] == [lo.tolist(), hi.tolist()]
    assert domain_of(attribute(), values).values.tolist() == sorted(values.tolist())


@given(days)
def test_days_of_many_years_end_at_whole_months(numbers: list[int]) -> None:
    what, values = attribute(kind="date"), np.datetime64("1950-01-25") + np.array([*numbers, 0, 9000])
    domain = domain_of(what, values)
    lo, hi = all_boxes(domain, values)
    low, high = (domain.values[side] for side in snapped(domain, lo, hi))
    proper = lo < hi
    assert (low <= domain.values[lo]).all()
    assert (high >= domain.values[hi]).all()
    assert (low[proper] == low[proper].astype("datetime64[M]")).all()
    assert ((high[proper] + 1) == (high[proper] + 1).astype("datetime64[M]")).all()
    assert (low[~proper] == high[~proper]).all()


def test_days_of_a_few_years_stay_days() -> None:
    for what, last in ((attribute(kind="date"), 2000), (attribute(kind="date", levels=["day"]), 20_000)):
        values = np.datetime64("2020-01-25") + np.array([0, 17, last])
        domain = domain_of(what, values)
        lo, hi = all_boxes(domain, values)
        assert [side.tolist() for side in snapped(domain, lo, hi)] == [lo.tolist(), hi.tolist()]


@given(decimals, decimals)
def test_a_domain_that_grows_keeps_the_points_that_were_published(first: list[float], second: list[float]) -> None:
    what = attribute()
    before = domain_of(what, np.array(first))
    after = extend(what, before, with_grid(what, np.append(before.values, second)))
    assert grows_from(before, after)
    lo, hi = all_boxes(after, np.array([*first, *second]))
    low, high = snapped(after, lo, hi)
    assert ((low <= lo) & (high >= hi)).all()
    assert extend(what, after, with_grid(what, np.append(after.values, second))) is after


@pytest.mark.parametrize("numbers", ["bounds", "interval", "midpoint"])
@pytest.mark.parametrize("method", ["mondrian", "cluster", "full-domain", "specialize", "pods"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_no_end_that_is_published_is_the_value_of_one_person_alone(numbers: str, method: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    wage = np.round(random.lognormal(3, 0.6, 60), 7)
    table = pa.table({"wage": wage, "illness": random.choice(list("abcd"), 60)})
    raw = {
        "version": 1,
        "series": "t",
        "attributes": {
            "wage": {"role": "quasi-identifier", "kind": "number", "levels": [3, 30]},
            "illness": {"role": "sensitive"},
        },
        "protect": {"k": 3, "confidence": 0.8},
        "method": {"name": method},
        "output": {"numbers": numbers},
    }
    release = sq.anonymize(table, sq.Policy.model_validate(raw), seed=1)
    again = sq.anonymize(table, sq.Policy.model_validate(raw), seed=1)
    assert release.table.equals(again.table)
    text = "\n".join(",".join(map(str, row.values())) for row in release.table.to_pylist())
    assert not [number for number in wage.tolist() if str(number) in text]
    if numbers == "bounds":
        # The people of the classes are inside them.
        low, high = (np.sort(np.array(release.table[f"wage_{end}"])) for end in ("min", "max"))
        if method != "pods":
            assert (low <= np.sort(wage)).all()
            assert (high >= np.sort(wage)).all()
