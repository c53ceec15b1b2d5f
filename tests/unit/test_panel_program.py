"""The program over tuples that judges real panels, on examples small enough to judge by hand."""

from __future__ import annotations

import pytest
from experiments.panels import Rows


def rows(paths: list[list[int]], tuples: list[tuple[int, ...]], *, ordinary: frozenset[int] = frozenset()) -> Rows:
    return Rows(ordinary, len(paths[0]), dict(enumerate(paths)), dict(enumerate(tuples)))


def test_two_cells_that_are_safe_apart_have_no_world_together() -> None:
    """docs/theory.md, section 9: T1 {1234}{5678}, T2 {1256}{3478}."""
    paths = [[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1], [1, 1]]
    value, other = [0, 0, 1, 1, 1, 1, 0, 0], [1, 2, 3, 4, 7, 8, 5, 6]
    assert not rows(paths, list(zip(value, other, strict=True))).is_deniable(0.5)
    assert rows(paths, [(one, 0) for one in value]).is_deniable(0.5)


@pytest.mark.parametrize(("ordinary", "found"), [(frozenset(), False), (frozenset({1}), True)])
def test_a_set_that_comes_with_one_value_has_no_world_unless_the_value_is_ordinary(
    ordinary: frozenset[int], found: bool
) -> None:
    paths = [[0, 0], [0, 0], [-1, 0], [-1, 0]]
    assert rows(paths, [(0,), (2,), (1,), (1,)], ordinary=ordinary).is_deniable(0.5) is found
