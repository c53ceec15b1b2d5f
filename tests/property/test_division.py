"""Parts of people: every cell is in one, none is too large that can be cut, and growing domains move nobody."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sequester.domain.kinds.number import from_numbers
from sequester.publish.parts.division import Division, StepGrid

people_per_code = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def divided(columns: list[list[int]], most: int, seed: int) -> tuple[Division, dict[str, np.ndarray], np.ndarray]:
    """A division of random people with these numbers of codes."""
    draw = np.random.default_rng(seed)
    codes = {f"q{place}": draw.integers(0, len(column), 300, np.int32) for place, column in enumerate(columns)}
    spread = {name: np.bincount(of, minlength=len(columns[place])) for place, (name, of) in enumerate(codes.items())}
    grid = StepGrid.over(spread)
    people = np.zeros(grid.shape, np.int64)
    np.add.at(people, tuple(grid.steps(name, codes[name]) for name in grid.names), 1)
    return Division.of(grid, people, most=most), codes, people


@given(st.lists(people_per_code, min_size=1, max_size=5), st.integers(5, 400), st.integers(0, 9))
def test_every_person_is_in_one_part_and_parts_are_as_small_as_they_can_be(
    columns: list[list[int]], most: int, seed: int
) -> None:
    division, codes, people = divided(columns, most, seed)
    part = division.part_of(codes)
    assert sorted(np.unique(division.part).tolist()) == list(range(division.parts))
    sizes = np.bincount(part, minlength=division.parts)
    assert sizes.sum() == 300
    for number in np.flatnonzero(sizes > most):
        cells = np.argwhere(division.part == number)
        box = people[tuple(slice(low, high + 1) for low, high in zip(cells.min(0), cells.max(0), strict=True))]
        for axis in range(box.ndim):
            below = np.cumsum(box.sum(axis=tuple(place for place in range(box.ndim) if place != axis)))[:-1]
            even = np.minimum(below, box.sum() - below)
            # Left whole only where every cut would leave a side with too few.
            assert not len(even) or even[np.argmin(np.abs(2 * below - box.sum()))] < max(0.25 * most, 1)


@given(st.integers(20, 200), st.integers(0, 5))
def test_a_part_is_a_box_of_cells_and_survives_being_written_down(most: int, seed: int) -> None:
    division, codes, _ = divided([[1] * 25, [1] * 9, [1] * 4], most, seed)
    for number in range(division.parts):
        cells = np.argwhere(division.part == number)
        assert len(cells) == np.prod(cells.max(0) - cells.min(0) + 1)
    again = Division.from_dict(json.loads(json.dumps(division.to_dict())))
    assert (again.part_of(codes) == division.part_of(codes)).all()


@given(st.integers(20, 200), st.integers(0, 5), st.sets(st.integers(0, 60), min_size=1))
def test_nobody_changes_parts_when_domains_get_new_values(most: int, seed: int, new: set[int]) -> None:
    division, codes, _ = divided([[1] * 25, [1] * 9], most, seed)
    before = {"q0": from_numbers(np.arange(0.0, 50, 2)), "q1": from_numbers(np.arange(0.0, 18, 2))}
    values = {
        name: np.unique(np.concatenate([domain.values, [float(v) for v in new]])) for name, domain in before.items()
    }
    now = {name: from_numbers(all_) for name, all_ in values.items()}
    later = {
        name: np.searchsorted(values[name], before[name].values[of]).astype(np.int32) for name, of in codes.items()
    }
    assert (division.within(before, now).part_of(later) == division.part_of(codes)).all()


def test_a_table_of_one_value_is_one_part() -> None:
    division, codes, _ = divided([[1]], 5, 0)
    assert division.parts == 1
    assert not division.part_of(codes).any()
