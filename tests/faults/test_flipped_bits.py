"""One bit that is another, anywhere in what a series keeps: it is noticed before anything is published, or changes
nothing. Other bits with SEQUESTER_FAULTS, as `make explore FAULTS=1` does it."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from agreement import LEDGER, check_order, publish
from shim import Driver, needs_compiler

pytestmark = [needs_compiler]

SEED = int(os.environ.get("SEQUESTER_FAULTS", "12"))
TRIES = {"ledger": 36, "folders": 16, "head": 8}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def kept(folder: Path, where: str) -> list[Path]:
    if where == "ledger":
        return [folder / LEDGER]
    if where == "head":
        return [folder / f"{LEDGER}.head"]
    return sorted(file for file in (folder / "releases").rglob("*") if file.is_file())


@pytest.mark.parametrize("where", TRIES)
def test_a_flipped_bit_is_noticed_or_changes_nothing(
    driver: Driver, starts: dict[str, Path], tmp_path: Path, where: str
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(starts["second"], whole)
    assert driver.run(whole, *publish("second")).code == 0
    chance, noticed = random.Random(f"{SEED} {where}"), 0
    for _ in range(TRIES[where]):
        folder = tmp_path / "flipped"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        file = chance.choice(kept(folder, where))
        bytes_, place, bit = bytearray(file.read_bytes()), chance.randrange(file.stat().st_size), chance.randrange(8)
        bytes_[place] ^= 1 << bit
        file.write_bytes(bytes_)
        before, at = contents(folder), f"bit {bit} of byte {place} of {file.name}"
        done = driver.run(folder, *publish("third"))
        if done.code == 0:
            assert where == "ledger", at
            assert [entry.name for entry in check_order(folder)] == ["first", "second", "third"], at
            continue
        noticed += 1
        assert done.code == 6, f"{at}: {done.said}"
        assert "error: " in done.stderr
        assert contents(folder) == before, at
    # Most of a ledger is in use.
    assert noticed > TRIES[where] * (0.4 if where == "ledger" else 0.99)
