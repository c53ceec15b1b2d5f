"""A release in parts that is killed, or has no room: ledger, parts and release folders stay as they were."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from agreement import LEDGER, publish, recorded
from parted import KEY, SEED, begin, people, policy, waves, write
from sequester.errors import LedgerError, SequesterError
from sequester.ledger import Ledger, Place
from sequester.ledger.parts import Shelf
from sequester.publish.series import Series
from shim import Driver, Mode, needs_compiler, survive

pytestmark = pytest.mark.faults

STEPS = ("before writing", "written", "shelved", "begun", "shown", "finished")
FAULTS = ((Mode.KILL, 0, "wr-"), (Mode.ONCE, errno.EIO, "wr-"), (Mode.ONWARD, errno.ENOSPC, "wr"))
AGES = {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True}
PUBLISH = """
import os, signal, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from parted import SEED, begin, policy
from sequester.publish import commit

folder, stop, spill = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None

def step(name):
    if name == stop:
        os.kill(os.getpid(), signal.SIGKILL)

commit.step = step
series = begin(folder, policy("pods", engine={"processes": 2, "spill": spill}))
series.publish(folder / "second.csv", name="second", seed=SEED + 2)
"""


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A folder with one release, and the table of the next."""
    first, second = waves()
    series = begin(tmp_path, policy("pods"))
    series.publish(first, name="first", seed=SEED)
    write(tmp_path / "second.csv", second)
    return tmp_path


def run(folder: Path, *, stop: str, spill: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PUBLISH, str(folder), stop, spill, str(Path(__file__).parents[1])]
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


def closing_towns(folder: Path) -> None:
    """A policy, and four tables: after the first nobody new comes to one town, and everybody leaves another."""
    everybody = people(130)
    city, age = (everybody[name].to_numpy(zero_copy_only=False) for name in ("city", "age"))
    rules = policy("pods", part=20, attributes={"age": AGES}, series="hospital-admissions")
    (folder / "policy.yaml").write_text(json.dumps(rules.model_dump(mode="json", exclude_unset=True)))
    old, kept = np.arange(130) < 110, city != "Trier"
    shown = {"first": old, "second": kept & (old | (city != "Jena")), "third": kept & (age != 50), "fourth": kept | old}
    for name, here in shown.items():
        write(folder / f"{name}.csv", everybody.filter(pa.array(here)))


def at_random(kinds: str, count: int, worth: str) -> list[int]:
    """So many of the calls that are worth a fault; those at the end, where things get their names, more often."""
    places = [n for n, kind in enumerate(kinds, 1) if kind in worth]
    draw = random.Random(len(kinds))
    return sorted({*draw.sample(places, count // 2), *draw.sample(places[-60:], count - count // 2)})


@needs_compiler
def test_faults_at_random_calls_of_three_releases_in_parts_lose_nothing(driver: Driver, tmp_path: Path) -> None:
    """40 kills, 40 errors of the disk and 10 full disks; one part gets nobody new, and another is left by everybody."""
    start, folder, wrong = tmp_path / "start", tmp_path / "folder", []
    start.mkdir()
    closing_towns(start)
    names = ("first", "second", "third", "fourth")
    for name, then, often in zip(names, names[1:], ((13, 13, 3), (13, 13, 3), (14, 14, 4)), strict=False):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(start, folder)
        done = driver.run(folder, *publish(name))
        assert done.code == 0, done.said
        for (mode, code, worth), count in zip(FAULTS, often, strict=True):
            for n in at_random(done.kinds, count, worth):
                try:
                    survive(driver, start, name, tmp_path / "fault", then=then, n=n, mode=mode, errno=code)
                except (AssertionError, SequesterError) as error:
                    wrong.append(f"{name}, {mode.name} at call {n}: {error}")
        start = tmp_path / name
        shutil.copytree(folder, start)
    assert not wrong, "\n".join(wrong)
    listed = recorded(folder, agree=True)
    cards = [shelved.cards for shelved in Shelf(Place.of(folder / LEDGER)).lists(listed)]
    assert any(first.records and not third.records for first, third in zip(cards[0], cards[2], strict=True))
    assert any(first.people == second.people for first, second in zip(*cards[:2], strict=True))


def test_parts_that_were_on_their_way_are_swept(begun: Path) -> None:
    (begun / "towns.ledger.parts" / ".0002.draft" / "00000").mkdir(parents=True)
    series: Series = begin(begun, policy("pods"))
    series.publish(begun / "second.csv", name="second", seed=SEED + 2)
    assert holds(begun)
    assert state_of(begun)[2] == ["0001", "0002"]


@pytest.mark.parametrize("gone", ["newer rows", "everything"])
def test_a_ledger_older_than_its_parts_is_refused(begun: Path, gone: str) -> None:
    """Ledger, head and folders of releases were all put back to an earlier day, or lost; the parts were not."""
    older, chosen = begun.with_name("older"), policy("pods")
    if gone == "newer rows":
        shutil.copytree(begun, older)
    begin(begun, chosen).publish(begun / "second.csv", name="second", seed=SEED + 2)
    for name in ("towns.ledger", "towns.ledger.head"):
        (begun / name).unlink()
    shutil.rmtree(begun / "releases")
    if gone == "newer rows":
        for name in ("towns.ledger", "towns.ledger.head"):
            shutil.copy2(older / name, begun / name)
        shutil.copytree(older / "releases", begun / "releases")
    said = "are parts of a release that the ledger does not know"
    with pytest.raises(LedgerError, match=said):
        begin(begun, chosen).plan(begun / "second.csv", name="second", seed=SEED + 2)
    kept = sorted(path.name for path in (begun / "towns.ledger.parts").iterdir())
    assert kept == ["0001", "0002"]
    series = sq.Series.open(begun / "towns.ledger", chosen, key=KEY, accept_loss=True)
    series.publish(begun / "second.csv", name="again", seed=SEED + 3)
    assert holds(begun)
    lost = [path.name for path in (begun / "towns.ledger.parts").iterdir() if ".lost-" in path.name]
    assert len(lost) == 1, "what no ledger knows is kept, under another name"
    assert begin(begun, chosen).audit().holds


@pytest.mark.parametrize("away", [False, True])
def test_any_command_removes_a_spill_elsewhere_or_says_where_it_is(begun: Path, away: bool) -> None:
    """The command that made it was killed, and the policy does not name its folder any more."""
    spill = begun.with_name("scratch")
    assert run(begun, stop="before writing", spill=str(spill)).returncode == -signal.SIGKILL
    assert len(list(spill.iterdir())) == 1
    if away:
        spill.rename(begun.with_name("unmounted"))
        (told,) = begin(begun, policy("pods")).recovered
        assert told.startswith("a command that did not end left private rows in")
        assert str(spill) in told
        begun.with_name("unmounted").rename(spill)
    with Ledger.open(begun / "towns.ledger", key=None, read_only=True) as ledger:
        assert ledger.left == ()
    assert not list(spill.iterdir())
    assert not [path for path in begun.iterdir() if path.name.endswith(".part")]


def test_parts_and_spill_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        series = begin(tmp_path, policy("pods"))
        first, second = waves()
        series.publish(first, name="first", seed=SEED)
        plan = series.plan(second, name="second", seed=SEED + 2)
    finally:
        os.umask(before)
    private = [tmp_path / "towns.ledger.parts", *tmp_path.glob(".*.spill.*.part")]
    # The files of the release will be read by everybody; until then nobody else gets into their folder.
    files = [path for place in private for path in (place, *place.rglob("*")) if path.parent.name != "written"]
    assert len(files) > 50
    assert {path.stat().st_mode & 0o777 for path in files if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files if path.is_file()} == {0o600}
    private[0].chmod(0o750)
    with pytest.raises(LedgerError, match=r"others can read the parts of the ledger; .*`chmod 700`"):
        series.plan(second, name="second", seed=SEED + 2)
    private[0].chmod(0o700)
    series.publish(plan)


def test_a_spill_that_others_can_read_is_refused(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that knows no rights."""
    make, series = Path.mkdir, begin(begun, policy("pods"))

    def readable(path: Path, mode: int = 0o777, **how: bool) -> None:
        make(path, mode, **how)
        path.chmod(0o755)

    monkeypatch.setattr(Path, "mkdir", readable)
    with pytest.raises(LedgerError, match="others can read what is in between, on this disk"):
        series.plan(begun / "second.csv", name="second", seed=SEED + 2)
    assert not [path for path in begun.iterdir() if path.name.endswith(".part")]


def test_a_spill_folder_that_cannot_be_made_is_told(begun: Path) -> None:
    (begun / "file").write_text("no folder")
    series = begin(begun, policy("pods", engine={"spill": str(begun / "file" / "spill")}))
    with pytest.raises(SequesterError, match="could not be written"):
        series.plan(begun / "second.csv", name="second", seed=SEED + 2)
