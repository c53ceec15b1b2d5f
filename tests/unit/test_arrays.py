"""Numbers counted or hashed, against `np.unique`, which sorts them."""

from __future__ import annotations

import numpy as np
import pytest

from sequester import arrays
from sequester.arrays import numbered, row_groups


@pytest.fixture(params=["sorted", "counted or hashed"], autouse=True)
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_MANY", 10**9 if request.param == "sorted" else 1)


@pytest.mark.parametrize(
    "key",
    [
        np.array([], np.int64),
        np.array([5]),
        np.array([-3, 4, -3, 4, 0], np.int32),
        np.array([2**62, -(2**61), 2**62, 7]),
        np.random.default_rng(1).integers(-50, 50, 3000),
        np.random.default_rng(2).integers(0, 2**40, 3000),
        np.random.default_rng(3).integers(0, 200, 3000) << 40,
        np.arange(2000)[::-1],
    ],
)
def test_numbers_are_numbered_as_numpy_does(key: np.ndarray) -> None:
    values, first, place = np.unique(key, return_index=True, return_inverse=True)
    found = numbered(key)
    assert [one.tolist() for one in found] == [values.tolist(), first.tolist(), place.ravel().tolist()]
    assert {one.dtype for one in found} == {np.dtype(np.int64)}


def test_rows_are_grouped_in_lexicographic_order_however_many_values_there_are() -> None:
    codes = np.random.default_rng(4).integers(0, 2**20, (7, 400))
    codes[:, 200:] = codes[:, :200]
    member, first = row_groups(codes)
    rows, index, inverse = np.unique(codes.T, axis=0, return_index=True, return_inverse=True)
    assert (member.tolist(), first.tolist()) == (inverse.ravel().tolist(), index.tolist())
    assert len(rows) == len(first)
