"""Kills and Ctrl-C at any moment of a publish: other seeds with SEQUESTER_FAULTS, as in `make explore FAULTS=1`."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from agreement import publish
from shim import Driver, needs_compiler, survive

pytestmark = [needs_compiler]

SEED = int(os.environ.get("SEQUESTER_FAULTS", "11"))
TRIES = 15


def moments(driver: Driver, start: Path, name: str, folder: Path, seed: object) -> list[float]:
    """Seconds after the start of a publish: at once, and spread over all that it takes."""
    begun = time.monotonic()
    survive(driver, start, name, folder)
    taken = time.monotonic() - begun
    chance = random.Random(f"{SEED} {seed}")
    return [0.0, *(chance.uniform(0, taken * 0.6) for _ in range(TRIES - 1))]


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("name", ["first", "second"])
def test_kills_at_random_moments_lose_nothing(
    driver: Driver, starts: dict[str, Path], tmp_path: Path, name: str, part: int
) -> None:
    killed = 0
    for after in moments(driver, starts[name], name, tmp_path / "folder", ("kill", name, part)):
        done = survive(driver, starts[name], name, tmp_path / "folder", signal=signal.SIGKILL, after=after)
        assert done.code in (0, -signal.SIGKILL), done.said
        killed += done.code != 0
    assert killed


@pytest.mark.parametrize("name", ["first", "second"])
def test_ctrl_c_at_any_moment_ends_with_130_and_nothing_else_is_said(
    driver: Driver, starts: dict[str, Path], tmp_path: Path, name: str
) -> None:
    stopped = 0
    for after in moments(driver, starts[name], name, tmp_path / "folder", ("ctrl-c", name)):
        done = survive(driver, starts[name], name, tmp_path / "folder", signal=signal.SIGINT, after=after)
        assert done.code in (0, 130), done.said
        if done.code:
            assert done.stderr.endswith("Stopped.\n"), done.stderr
            assert "error" not in done.stderr
            stopped += 1
    assert stopped


def test_ctrl_c_while_a_plan_is_made_changes_nothing(driver: Driver, starts: dict[str, Path], tmp_path: Path) -> None:
    start, words = starts["second"], ("plan", "second.csv", "-p", "policy.yaml")
    before = {file: file.read_bytes() for file in start.rglob("*") if file.is_file()}
    assert driver.run(start, *words).code == 0
    stopped = 0
    for after in moments(driver, start, "second", tmp_path / "folder", "plan"):
        done = driver.run(start, *words, signal=signal.SIGINT, after=after / 2)
        assert done.code in (0, 130), done.said
        stopped += done.code == 130
        assert {file: file.read_bytes() for file in start.rglob("*") if file.is_file()} == before
    assert stopped


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_terminated_publish_ends_as_a_killed_one(
    driver: Driver, starts: dict[str, Path], tmp_path: Path, name: str
) -> None:
    for after in moments(driver, starts[name], name, tmp_path / "folder", ("term", name))[:5]:
        done = survive(driver, starts[name], name, tmp_path / "folder", signal=signal.SIGTERM, after=after)
        assert done.code in (0, -signal.SIGTERM), done.said


def test_publishing_is_disturbed_at_all(driver: Driver, starts: dict[str, Path]) -> None:
    """A run that nobody disturbs ends well, so that what is seen above is the disturbance."""
    assert driver.run(starts["second"], "history", "-p", "policy.yaml").code == 0
    assert driver.run(starts["second"], *publish("nobody")).code != 0
