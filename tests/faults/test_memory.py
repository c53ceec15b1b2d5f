"""Too little memory is told as what it is, and nothing is lost by it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.csv as csv
import pytest

from agreement import check_known, check_order, publish
from sequester.datasets import hospital
from shim import Driver, needs_compiler

pytestmark = [needs_compiler]

MEGABYTE = 1 << 20


@pytest.mark.parametrize("memory", [24, 40, 56, 72])
def test_too_little_memory_is_said_and_loses_nothing(
    driver: Driver, starts: dict[str, Path], tmp_path: Path, memory: int
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(starts["first"], folder)
    csv.write_csv(hospital(200_000, seed=3), folder / "first.csv")
    done = driver.run(folder, *publish("first"), memory=memory * MEGABYTE)
    check_known(folder)
    assert done.code == 6, done.said[-2000:]
    assert "not enough memory" in done.stderr, done.stderr
    assert driver.run(folder, *publish("third")).code == 0
    assert [entry.name for entry in check_order(folder)] == ["third"]
