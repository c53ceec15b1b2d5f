"""A release in parts that is killed, or has no room: ledger, parts and release folders stay as they were."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parted import KEY, SEED, begin, policy, waves, write
from sequester.errors import SequesterError
from sequester.ledger import Ledger
from sequester.publish.series import Series

pytestmark = pytest.mark.faults

STEPS = ("before writing", "written", "shelved", "begun", "shown", "finished")
PUBLISH = """
import os, resource, signal, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from parted import SEED, begin, policy
from sequester.publish import commit

folder, stop, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def step(name):
    if name == stop:
        os.kill(os.getpid(), signal.SIGKILL)

commit.step = step
series = begin(folder, policy("pods", engine={"processes": 2}))
if most:
    # As on a disk that is full: no file grows beyond so many bytes.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    series.publish(folder / "second.csv", name="second", seed=SEED + 2)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A folder with one release, and the table of the next."""
    first, second = waves()
    series = begin(tmp_path, policy("pods"))
    series.publish(first, name="first", seed=SEED)
    write(tmp_path / "second.csv", second)
    return tmp_path


def run(folder: Path, *, stop: str = "", most: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PUBLISH, str(folder), stop, str(most), str(Path(__file__).parents[1])]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def state_of(folder: Path) -> tuple[int, list[str], list[str]]:
    """Releases in the ledger, folders that are visible, and releases on the shelf."""
    series = begin(folder, policy("pods"))
    visible = sorted(path.name for path in (folder / "releases" / "towns").iterdir() if not path.name.startswith("."))
    shelf = sorted(path.name for path in (folder / "towns.ledger.parts").iterdir())
    return len(series.releases()), visible, shelf


def holds(folder: Path) -> bool:
    with Ledger.open(folder / "towns.ledger", key=KEY, read_only=True) as ledger:
        return ledger.verify(releases=folder / "releases").holds


@pytest.mark.parametrize("stop", STEPS)
def test_a_kill_loses_nothing_and_publishes_nothing_unrecorded(begun: Path, stop: str) -> None:
    assert run(begun, stop=stop).returncode == -signal.SIGKILL
    releases, visible, _ = state_of(begun)
    assert len(visible) == releases == (2 if stop in ("begun", "shown", "finished") else 1)
    assert holds(begun)
    if releases == 1:
        begin(begun, policy("pods")).publish(begun / "second.csv", name="second", seed=SEED + 2)
    assert state_of(begun) == (2, ["0001-first", "0002-second"], ["0001", "0002"])
    assert holds(begun)
    assert not [path for path in begun.rglob("*") if path.name.endswith((".part", ".draft"))]


@pytest.mark.parametrize("most", [2_000, 12_000, 40_000])
def test_a_full_disk_is_told_and_changes_nothing(begun: Path, most: int) -> None:
    told = run(begun, most=most)
    assert told.returncode == 0, told.stderr
    assert "Error" in told.stdout
    assert not any(text in told.stdout + told.stderr for text in ("Bonn", "lupus", "p17", "Traceback"))
    assert state_of(begun) == (1, ["0001-first"], ["0001"])
    assert holds(begun)
    assert not [path for path in begun.iterdir() if path.name.endswith(".part")]


def test_parts_on_the_shelf_that_no_release_knows_are_swept(begun: Path) -> None:
    (begun / "towns.ledger.parts" / "0002" / "00000").mkdir(parents=True)
    series: Series = begin(begun, policy("pods"))
    series.publish(begun / "second.csv", name="second", seed=SEED + 2)
    assert holds(begun)


def test_a_spill_folder_that_cannot_be_made_is_told(begun: Path) -> None:
    (begun / "file").write_text("no folder")
    series = begin(begun, policy("pods", engine={"spill": str(begun / "file" / "spill")}))
    with pytest.raises(SequesterError, match="could not be written"):
        series.plan(begun / "second.csv", name="second", seed=SEED + 2)
