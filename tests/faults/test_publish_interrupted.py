"""A process that is killed at any moment while it publishes: nothing is lost, nothing is published unrecorded."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.csv as csv
import pytest

from sequester.datasets import hospital, hospital_policy
from sequester.errors import DataError, SequesterError
from sequester.ledger import Ledger
from sequester.policy import Policy
from sequester.publish.series import Series

OWN = Path("releases", "hospital-admissions")
STEPS = ("before writing", "written", "begun", "shown", "finished")
PUBLISH = """
import os, signal, sys
from sequester.policy import Policy
from sequester.publish import commit
from sequester.publish.series import Series

folder, stop = sys.argv[1], sys.argv[2]

def step(name):
    if name == stop:
        os.kill(os.getpid(), signal.SIGKILL)

commit.step = step
series = Series.open(f"{folder}/hospital.ledger", Policy.load(f"{folder}/policy.yaml"))
print(series.recovered, flush=True)
series.publish(f"{folder}/second.csv", name="second", seed=2**63 + 5)
"""


@pytest.fixture(params=["merge", "pods"])
def begun(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a ledger of one release, and the table of the next."""
    table = hospital(400, seed=3)
    (tmp_path / "policy.yaml").write_text(hospital_policy().replace("name: mondrian", f"name: {request.param}"))
    csv.write_csv(table.slice(0, 250), tmp_path / "first.csv")
    csv.write_csv(table, tmp_path / "second.csv")
    open_series(tmp_path).publish(tmp_path / "first.csv", seed=2**63 + 4)
    return tmp_path


def open_series(folder: Path) -> Series:
    return Series.open(folder / "hospital.ledger", Policy.load(folder / "policy.yaml"))


def run(folder: Path, stop: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PUBLISH, str(folder), stop], capture_output=True, text=True, timeout=120, check=False
    )


def shown(folder: Path) -> set[str]:
    return {entry.name for entry in (folder / OWN).iterdir() if not entry.name.startswith(".")}


def check_agreement(folder: Path) -> list[str]:
    """The ledger knows every visible release, and every release it calls published is visible and whole."""
    with Ledger.open(folder / "hospital.ledger", key=None, read_only=True) as ledger:
        assert ledger.verify(folder / "releases").holds
        entries = ledger.releases()
    assert {f"{entry.number:04d}-{entry.name}" for entry in entries} == shown(folder)
    assert all(entry.status == "published" for entry in entries)
    for name in shown(folder):
        assert {file.name for file in (folder / OWN / name).iterdir()} == {
            "data.csv", "release.json", "dictionary.csv", "report.html",
        }  # fmt: skip
        assert json.loads((folder / OWN / name / "release.json").read_text())["holds"]
    return [entry.name for entry in entries]


@pytest.mark.parametrize("stop", STEPS)
def test_a_kill_between_any_two_steps_is_put_in_order_by_the_next_command(begun: Path, stop: str) -> None:
    assert run(begun, stop).returncode == -signal.SIGKILL
    # Whatever the world can see by now, the ledger knows.
    with Ledger.open(begun / "hospital.ledger", key=None, read_only=True) as ledger:
        known = {f"{entry.number:04d}-{entry.name}" for entry in ledger.releases()}
    assert shown(begun) <= known
    series = open_series(begun)
    published = check_agreement(begun)
    recorded = STEPS.index(stop) >= STEPS.index("begun")
    assert published == (["first", "second"] if recorded else ["first"])
    assert bool(series.recovered) == (stop in ("begun", "shown"))
    if not recorded:
        series.publish(begun / "second.csv", name="second", seed=2**63 + 5)
        assert check_agreement(begun) == ["first", "second"]


def test_a_begun_release_whose_folder_is_gone_is_withdrawn(begun: Path) -> None:
    assert run(begun, "begun").returncode == -signal.SIGKILL
    shutil.rmtree(begun / OWN / ".0002-second.draft")
    series = open_series(begun)
    assert "withdrawn" in series.recovered[0]
    assert check_agreement(begun) == ["first"]
    series.publish(begun / "second.csv", name="second", seed=2**63 + 5)
    assert check_agreement(begun) == ["first", "second"]


def test_a_visible_release_is_never_withdrawn_whatever_folder_the_next_command_is_given(begun: Path) -> None:
    assert run(begun, "shown").returncode == -signal.SIGKILL
    elsewhere = begun / "elsewhere"
    rules = Policy.load(begun / "policy.yaml")
    moved = begun / "moved"
    (begun / "releases").rename(moved)
    for place in (elsewhere, begun / "releases"):
        with pytest.raises(DataError, match="is not looked at from here; say where its folder is now"):
            Series.open(begun / "hospital.ledger", rules, folder=place)
    moved.rename(begun / "releases")
    with pytest.raises(DataError, match="is not looked at from here"):
        Series.open(begun / "hospital.ledger", rules, folder=elsewhere)
    assert "finished" in open_series(begun).recovered[0]
    assert check_agreement(begun) == ["first", "second"]


def test_a_begun_release_with_another_folder_in_its_place_is_not_touched(begun: Path) -> None:
    assert run(begun, "begun").returncode == -signal.SIGKILL
    shutil.rmtree(begun / OWN / ".0002-second.draft")
    theirs = begun / OWN / "0002-second"
    theirs.mkdir()
    (theirs / "data.csv").write_text("something else\n")
    with pytest.raises(DataError, match="is not what the ledger says of release 2"):
        open_series(begun)
    assert (theirs / "data.csv").read_text() == "something else\n"


def test_what_a_finished_kill_published_is_what_an_undisturbed_run_publishes(begun: Path, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(begun, undisturbed, ignore=shutil.ignore_patterns("undisturbed"))
    assert run(undisturbed, "").returncode == 0
    assert run(begun, "begun").returncode == -signal.SIGKILL
    open_series(begun)
    one, other = ((folder / OWN / "0002-second" / "data.csv").read_bytes() for folder in (begun, undisturbed))
    assert one == other


def test_a_full_disk_publishes_nothing_and_leaves_the_ledger_as_it_was(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    series = open_series(begun)
    plan = series.plan(begun / "second.csv", name="second", seed=2**63 + 5)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        series.publish(plan)
    monkeypatch.undo()
    assert check_agreement(begun) == ["first"]
    assert not [entry for entry in (begun / OWN).iterdir() if entry.name.startswith(".")]
    series.publish(plan)
    assert check_agreement(begun) == ["first", "second"]


def test_a_folder_that_cannot_be_written_publishes_nothing(begun: Path) -> None:
    # A series of this name is there already, and is not what this is about.
    series = Series.open(
        begun / "other" / "hospital.ledger",
        Policy.load(begun / "policy.yaml"),
        folder=begun / "first.csv" / "releases",
        accept_loss=True,
    )
    with pytest.raises(DataError, match="could not be written, nothing was published"):
        series.publish(begun / "second.csv", name="second", seed=2**63 + 5)
    assert series.releases() == []


@pytest.mark.parametrize("cut", [0, 1, 100, 4096, 20_000])
def test_a_truncated_ledger_is_an_error_and_stays_as_it_is(begun: Path, cut: int) -> None:
    ledger = begun / "hospital.ledger"
    ledger.write_bytes(ledger.read_bytes()[:cut])
    before = ledger.read_bytes()
    with pytest.raises(SequesterError, match=r"damaged|not a ledger|empty"):
        open_series(begun).publish(begun / "second.csv", name="second", seed=2**63 + 5)
    assert ledger.read_bytes() == before
    assert shown(begun) == {"0001-first"}


def test_two_publishers_at_once_give_one_release_each_or_one_is_refused(begun: Path) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISH, str(begun), ""],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[1] for process in both]
    assert sorted(process.returncode == 0 for process in both) == [False, True]
    refused = next(text for process, text in zip(both, said, strict=True) if process.returncode)
    assert "StalePlan" in refused or "Busy" in refused or "is in the ledger already" in refused
    assert check_agreement(begun) == ["first", "second"]
