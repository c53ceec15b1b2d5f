"""Kills, full disks, damage and rivals: a ledger loses nothing, repairs nothing in silence, and says what is wrong."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

import ledgers
from ledgers import KEY, new, publish, three_releases
from sequester.errors import Busy, LedgerError
from sequester.ledger import Ledger, Verification

Start = Callable[..., tuple[BaseProcess, Connection]]

KILLS = 14
CORRUPTIONS = 90


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Run something of `ledgers` in a process of its own; all are gone when the test ends."""
    # Children start from a process that has the libraries loaded but no thread running.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ledgers"])
    running: list[BaseProcess] = []

    def run(target: Callable[..., None], *arguments: Any, **options: Any) -> tuple[BaseProcess, Connection]:
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=(*arguments, theirs), kwargs=options, daemon=True)
        process.start()
        theirs.close()
        running.append(process)
        return process, ours

    yield run
    for process in running:
        process.kill()
        process.join()


def verified(path: Path) -> Verification:
    with Ledger.open(path, key=KEY, read_only=True) as ledger:
        return ledger.verify()


def test_a_kill_at_any_time_loses_nothing_that_was_said_to_be_recorded(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "x.ledger"
    new(path).close()
    chance = random.Random(7)
    recorded: dict[int, str] = {}
    visible: set[int] = set()
    interrupted = 0
    for _ in range(KILLS):
        process, told = start(ledgers.publish_until_killed, path)
        said = [told.recv(), told.recv()]
        # From just before a release is recorded to about when the next one is.
        time.sleep(chance.random() * 0.15)
        process.kill()
        process.join()
        said += ledgers.wait_for(told, 0)
        for what, number, digest in said:
            if what in ("begun", "finished"):
                recorded[number] = digest
            if what == "finished":
                visible.add(number)
        assert verified(path).holds
        with Ledger.open(path, key=KEY) as ledger:
            entries, pending = ledger.releases(), ledger.pending
            assert {number: entries[number - 1].hash for number in recorded} == recorded
            assert {number: entries[number - 1].status for number in visible} == dict.fromkeys(visible, "published")
            # At most one release was under way beyond what was said.
            assert len(entries) <= max(recorded, default=0) + 1
            interrupted += said[-1][0] != "finished"
            if pending is not None and chance.random() < 0.5:
                ledger.withdraw(pending.number)
                recorded.pop(pending.number, None)
            elif pending is not None:
                ledger.finish(pending.number)
                recorded[pending.number] = pending.hash
                visible.add(pending.number)
            assert ledger.verify().holds
    assert interrupted
    assert not (tmp_path / "x.ledger.wal").exists()


def test_what_a_killed_command_left_in_the_log_of_duckdb_is_kept(tmp_path: Path, start: Start) -> None:
    """A commit that was not yet written into the file itself is found by readers and by the next writer."""
    path = tmp_path / "x.ledger"
    with new(path) as ledger:
        publish(ledger, [0, 0])
    process, told = start(ledgers.begin_without_checkpoint, path)
    number, digest = told.recv()
    process.kill()
    process.join()
    assert (tmp_path / "x.ledger.wal").stat().st_size > 0
    with Ledger.open(path, key=KEY, read_only=True) as ledger:
        assert ledger.releases()[-1].hash == digest
    with Ledger.open(path, key=KEY) as ledger:
        assert ledger.log()[-1].action == "recovered"
        ledger.finish(number)
        assert ledger.verify().holds
    assert not (tmp_path / "x.ledger.wal").exists()
    with Ledger.open(path, key=KEY) as ledger:
        assert ledger.log()[-1].action == "published"


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_ledger_is_damage_and_stays_as_it_is(tmp_path: Path, part: float) -> None:
    path = tmp_path / "x.ledger"
    three_releases(path).close()
    whole = path.read_bytes()
    cut = whole[: int(len(whole) * part)]
    path.write_bytes(cut)
    for read_only in (True, False):
        with pytest.raises(LedgerError, match="damaged; restore it from a backup or an export") as error:
            _read_all(path, read_only=read_only)
        assert error.value.__context__ is None
        assert error.value.exit_code == 6
    assert path.read_bytes() == cut


def test_a_changed_byte_anywhere_is_noticed_or_changes_nothing(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "x.ledger"
    with three_releases(path) as ledger:
        head = ledger.head
    size = path.stat().st_size
    chance = random.Random(3)
    header = [0, 8, 11, 12, 20, 60, 4096, 4104, 8192, 8200]
    offsets = header + chance.sample(range(12_288, size), CORRUPTIONS)
    _, told = start(ledgers.read_corrupted, path, offsets=offsets)
    found = [told.recv() for _ in offsets]
    noticed = 0
    for offset, (what, said), untouched in found:
        assert untouched, offset
        if what == "holds":
            assert said == head, offset
            continue
        noticed += 1
        assert what == "problems" or "damaged" in said, offset
    # Most of the file is in use.
    assert noticed > len(offsets) / 2


@pytest.mark.parametrize("beyond", [-1_000_000_000, 0, 60_000, 200_000])
def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path: Path, start: Start, beyond: int) -> None:
    path = tmp_path / "x.ledger"
    with new(path) as ledger:
        ledger.finish(ledger.begin(ledgers.crowd(ledger, 20_000, 0)).number)
        head = ledger.head
    room = max(0, path.stat().st_size + beyond)
    process, told = start(ledgers.begin_with_little_room, path, room=room)
    kind, said = told.recv()
    assert f"{path}: the ledger cannot be written: File too large; make room and try again. " in said
    # Where DuckDB could not take back what it wrote, it may be in the ledger.
    assert said.endswith("Nothing was changed" if kind == "LedgerError" else "the next command puts it in order")
    process.join()
    with Ledger.open(path, key=KEY) as ledger:
        assert (ledger.head, ledger.pending, ledger.verify().problems) == (head, None, ())
        ledger.finish(ledger.begin(ledgers.crowd(ledger, 0, 100)).number)
        assert ledger.verify().holds


def test_a_writer_keeps_everybody_else_out(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "x.ledger"
    new(path).close()
    _, told = start(ledgers.hold, path, read_only=False)
    assert told.recv() == "held"
    for read_only in (False, True):
        with pytest.raises(Busy, match="another command has the ledger; wait until it is done, or try again") as error:
            Ledger.open(path, key=KEY, read_only=read_only, timeout=0.1)
        assert error.value.exit_code == 5
    told.send("enough")
    with Ledger.open(path, key=KEY, timeout=60) as ledger:
        publish(ledger, [0, 0])


def test_readers_share_and_keep_writers_out(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "x.ledger"
    new(path).close()
    _, told = start(ledgers.hold, path, read_only=True)
    assert told.recv() == "held"
    with Ledger.open(path, key=KEY, read_only=True) as ledger:
        assert ledger.releases() == []
    with pytest.raises(Busy, match="another command has the ledger"):
        Ledger.open(path, key=KEY, timeout=0)


def test_one_process_does_not_open_a_ledger_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    with new(path) as ledger:
        with pytest.raises(Busy, match="another command has the ledger"):
            Ledger.open(path, key=KEY, read_only=True, timeout=0)
        publish(ledger, [0, 0])
    with Ledger.open(path, key=KEY) as ledger:
        assert ledger.verify().holds


def test_two_publishers_take_turns_and_lose_nothing(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "x.ledger"
    new(path).close()
    rivals = [start(ledgers.race, path, rounds=4) for _ in range(2)]
    assert [told.recv() for _, told in rivals] == [4, 4]
    found = verified(path)
    assert (found.holds, found.releases) == (True, 8)


def test_a_writer_that_is_killed_leaves_no_lock(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "x.ledger"
    new(path).close()
    process, told = start(ledgers.hold, path, read_only=False)
    assert told.recv() == "held"
    process.kill()
    process.join()
    with Ledger.open(path, key=KEY, timeout=0) as ledger:
        publish(ledger, [0, 0])


def test_a_ledger_in_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"its folder cannot be made: (Not a directory|File exists)"):
        new(tmp_path / "file" / "x.ledger")


def test_a_recorded_release_is_in_the_file_itself_so_that_a_copy_is_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    with three_releases(path) as ledger:
        head = ledger.head
        assert not (tmp_path / "x.ledger.wal").exists()
    shutil.copy(path, tmp_path / "backup.ledger")
    with Ledger.open(tmp_path / "backup.ledger", key=KEY) as copied:
        assert (copied.head, copied.verify().problems) == (head, ())


def _read_all(path: Path, *, read_only: bool) -> None:
    with Ledger.open(path, key=KEY, read_only=read_only) as ledger:
        ledger.load()
        ledger.verify()
