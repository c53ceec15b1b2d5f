"""Several commands that publish at once: one wins, the others end with exit code 5, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clinic import CANARY, LEDGER, edit, set_up
from command import invoke
from sequester.errors import DataError, LedgerError, StalePlan
from sequester.ledger import Key, Ledger
from sequester.ledger.key import VARIABLE
from sequester.policy import Policy
from sequester.publish.series import Series

# Everybody meets before the command begins, and where asked for once more with the series open, before it plans.
RUNNER = """
import atexit, sys, time
from pathlib import Path

import sequester.publish.prepare
from sequester.cli.app import run
from sequester.publish.series import Series

where, mine, count, stages, *words = sys.argv[1:]

def arrive(stage):
    Path(where, f"{stage}-{mine}").touch()

def meet(stage):
    arrive(stage)
    while stage in stages.split(",") and len(list(Path(where).glob(f"{stage}-*"))) < int(count):
        time.sleep(0.01)

atexit.register(arrive, "opened")
plan = Series.plan

def plan_together(self, *given, **how):
    meet("opened")
    return plan(self, *given, **how)

Series.plan = plan_together
sys.argv = ["sequester", *words]
meet("started")
run()
"""
RULES = ("-p", "policy.yaml", "--yes")


def at_once(folder: Path, commands: Sequence[tuple[str, ...]], *, stages: str) -> list[tuple[int, str]]:
    """Exit code and words of commands that run at the same time."""
    where = folder / "meeting"
    where.mkdir()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(where), str(mine), str(len(commands)), stages, *words],
            cwd=folder,
            env={**os.environ, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for mine, words in enumerate(commands)
    ]
    said = ["".join(process.communicate(timeout=300)) for process in running]
    assert not [text for text in said if CANARY in text or "Traceback" in text or "internal error" in text]
    return [(process.returncode, " ".join(text.split())) for process, text in zip(running, said, strict=True)]


def check_whole(folder: Path, releases: int) -> None:
    """The ledger has so many releases, all of them are there, and it is what it should be."""
    done = invoke("ledger", "verify", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    with Ledger.open(folder / LEDGER, key=None, read_only=True) as ledger:
        assert [entry.status for entry in ledger.releases()] == ["published"] * releases
    assert len(list((folder / "releases").rglob("release.json"))) == releases
    assert not [file.name for file in folder.iterdir() if file.name.startswith(".")]
    assert not [file.name for file in (folder / "releases").rglob(".*")]


@pytest.mark.parametrize("count", [2, 8])
def test_of_first_publishers_at_once_one_wins_and_the_others_end_with_code_5(tmp_path: Path, count: int) -> None:
    set_up(tmp_path)
    ends = at_once(tmp_path, [("publish", "q1.csv", *RULES, "--name", "q1")] * count, stages="started,opened")
    assert sorted(code for code, _ in ends) == [0] + [5] * (count - 1), ends
    check_whole(tmp_path, 1)


@pytest.mark.parametrize("count", [2, 8])
def test_of_next_publishers_at_once_one_wins_and_the_others_end_with_code_5(tmp_path: Path, count: int) -> None:
    set_up(tmp_path)
    assert invoke("publish", "q1.csv", *RULES, cwd=tmp_path).returncode == 0
    ends = at_once(tmp_path, [("publish", "q2.csv", *RULES)] * count, stages="started,opened")
    assert sorted(code for code, _ in ends) == [0] + [5] * (count - 1), ends
    check_whole(tmp_path, 2)


def test_publishers_of_one_table_who_come_when_they_come_publish_it_once(tmp_path: Path) -> None:
    set_up(tmp_path)
    commands = [("publish", "q2.csv", *RULES, "--name", f"from-{mine}") for mine in range(4)]
    ends = at_once(tmp_path, commands, stages="started")
    codes = [code for code, _ in ends]
    # Whoever comes late finds the table published.
    assert set(codes) <= {0, 5, 130}, ends
    assert codes.count(0) == 1
    check_whole(tmp_path, 1)


def test_first_publishers_whose_policy_changed_since_the_ledger_was_made_lose_nothing(tmp_path: Path) -> None:
    set_up(tmp_path)
    assert invoke("plan", "q1.csv", "-p", "policy.yaml", "--out", "first.plan", cwd=tmp_path).returncode == 0
    edit(tmp_path / "policy.yaml", "confidence: 0.6", "confidence: 0.7")
    ends = at_once(tmp_path, [("publish", "q1.csv", *RULES, "--name", "q1")] * 4, stages="started,opened")
    assert sorted(code for code, _ in ends) == [0, 5, 5, 5], ends
    check_whole(tmp_path, 1)


def test_publishers_of_one_saved_plan_at_once_publish_it_once(tmp_path: Path) -> None:
    set_up(tmp_path)
    assert invoke("plan", "q1.csv", "-p", "policy.yaml", "--out", "first.plan", cwd=tmp_path).returncode == 0
    ends = at_once(tmp_path, [("publish", "first.plan", *RULES)] * 3, stages="started")
    assert sorted(code for code, _ in ends) == [0, 5, 5], ends
    check_whole(tmp_path, 1)


def test_a_series_that_was_open_while_another_published_the_same_is_told_so_once(tmp_path: Path) -> None:
    policy = Policy.load(set_up(tmp_path) / "policy.yaml")
    early, late, other = (Series.open(tmp_path / LEDGER, policy) for _ in range(3))
    early.publish(tmp_path / "q1.csv", name="q1", seed=2**63 + 1)
    for series, name in ((late, "q1"), (other, "other")):
        with pytest.raises(StalePlan, match=r"another command published release 1 \(q1\) while this one was at work"):
            series.publish(tmp_path / "q1.csv", name=name, seed=2**63 + 2)
    with pytest.raises(DataError, match="this table was published already as release 1"):
        late.publish(tmp_path / "q1.csv", name="q1", seed=2**63 + 2)
    late.publish(tmp_path / "q1.csv", name="other", seed=2**63 + 2, again=True)
    check_whole(tmp_path, 2)


def test_whoever_finds_the_key_made_by_another_meanwhile_uses_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    made = Key.make(tmp_path / f"{LEDGER}.key")
    monkeypatch.setattr(Key, "find", classmethod(lambda cls, *given, **how: None))
    assert Key.find_or_make(tmp_path / LEDGER).check == made.check
    with pytest.raises(LedgerError, match="cannot be written"):
        Key.find_or_make(tmp_path / f"{LEDGER}.key" / "below" / LEDGER)


def test_a_ledger_that_another_command_put_in_place_of_an_opened_one_is_opened_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sequester.ledger.duck import DuckFile

    key = Key.of_text("a key for tests only")
    how: dict[str, Any] = {"policy_text": "version: 1", "fingerprint": "0"}
    for name in ("old", "new"):
        Ledger.create(tmp_path / name, series=name, key=key, **how).close()
    attach = DuckFile._open

    def overtaken(self: DuckFile, *, create: bool) -> None:
        attach(self, create=create)
        if (tmp_path / "new").exists():
            (tmp_path / "new").replace(tmp_path / "old")

    monkeypatch.setattr(DuckFile, "_open", overtaken)
    with Ledger.open(tmp_path / "old", key=key) as ledger:
        assert ledger.series == "new"
