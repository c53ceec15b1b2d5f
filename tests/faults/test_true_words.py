"""What is said when something fails is what failed: damaged is only what has wrong content."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

import ledgers
from agreement import LEDGER, check_order, shown, tables
from command import invoke
from hostile import PUBLISH, spread
from ledgers import KEY, new, three_releases
from sequester.errors import Busy, LedgerError, OutOfMemory, Unsettled
from sequester.ledger import Ledger, Place
from sequester.ledger.duck import DuckFile
from sequester.ledger.failures import explain
from sequester.policy import Policy
from sequester.publish.series import Series

PLACE = Place.of("x.ledger")
REFUSED = (
    errno.EPERM, errno.EACCES, errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE,
    errno.ENFILE, errno.ESTALE, errno.ENOLCK,
)  # fmt: skip
ASKED = (
    'IO Error: Cannot open file "{}": {}',
    'IO Error: Could not write file "{}": {}',
    'TransactionContext Error: Failed to commit: Could not fsync file "{}.wal": {}',
    'IO Error: Checkpoint failed for database "ledger". The database has been invalidated. Original error: Could not '
    'write file "{}": {}',
)
INTERRUPTED = """
import sys
from ledgers import KEY
from sequester.ledger import Ledger
with Ledger.open(sys.argv[1], key=KEY) as ledger:
    try:
        # On several threads DuckDB itself does not always come back from being stopped.
        ledger._store.connection.execute("SET threads = 1")
        print("running", flush=True)
        ledger._store.connection.execute("SELECT sum(hash(range)) FROM range(1000000000000)")
    except KeyboardInterrupt:
        print("interrupted", ledger.verify().holds)
"""
STOPPED_EARLY = """
import sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Press())
from sequester.cli import main
main()
"""


PRESSED = """
import os, signal, sys
from sequester.publish import commit
from sequester.cli import main
# What runs in the background of a shell has Ctrl-C turned off.
signal.signal(signal.SIGINT, signal.default_int_handler)
wanted = sys.argv.pop(1)
commit.step = lambda name: os.kill(os.getpid(), signal.SIGINT) if name == wanted else None
main()
"""


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("written", None),
        ("begun", "is recorded already, and the next command shows it. Do not publish it again."),
        ("shown", "is published already, and visible: releases/clinic/0001-data. Do not publish it again."),
        ("finished", "is published already, and visible: releases/clinic/0001-data. Do not publish it again."),
    ],
)
def test_ctrl_c_says_whether_the_release_is_out(tmp_path: Path, moment: str, words: str | None) -> None:
    spread(tmp_path)
    command = [sys.executable, "-c", PRESSED, moment, *PUBLISH]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 130
    assert done.stderr.endswith("Stopped.\n")
    assert (words or "") in done.stderr
    assert ("publish it again" in done.stderr) == (words is not None)
    # The next command agrees with what was said.
    assert invoke("plan", "data.csv", "-p", "policy.yaml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "releases" / "clinic" / "0001-data").exists() == (words is not None)


@pytest.mark.parametrize("code", REFUSED, ids=lambda code: errno.errorcode[code])
@pytest.mark.parametrize("said", ASKED)
def test_what_the_system_refused_is_said_in_its_words(said: str, code: int) -> None:
    told = explain(duckdb.IOException(said.format(PLACE.file.resolve(), os.strerror(code))), PLACE, PLACE)
    assert isinstance(told, LedgerError)
    assert os.strerror(code) in str(told)
    assert "damaged" not in str(told)
    assert "backup" not in str(told)


def test_the_name_of_a_ledger_is_not_taken_for_what_failed() -> None:
    place = Place.of("/data/no space left on device, out of memory/interrupted.ledger")
    told = explain(duckdb.IOException(f'IO Error: Cannot open file "{place}": Permission denied'), place, place)
    assert "cannot be opened: Permission denied" in str(told)


@pytest.mark.parametrize(
    "error",
    [
        duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 16.0 MiB"),
        MemoryError(),
        RuntimeError("std::bad_alloc"),
        duckdb.IOException("IO Error: Could not read file: Cannot allocate memory"),
    ],
)
def test_too_little_memory_is_said(error: Exception) -> None:
    told = explain(error, PLACE, PLACE)
    assert isinstance(told, OutOfMemory)
    assert told.exit_code == 6
    assert "there is not enough memory for this ledger" in str(told)


@pytest.mark.parametrize(
    "error", [duckdb.InterruptException("INTERRUPT Error: Interrupted!"), RuntimeError("Query interrupted")]
)
def test_ctrl_c_is_ctrl_c_whatever_duckdb_makes_of_it(error: Exception) -> None:
    assert isinstance(explain(error, PLACE, PLACE), KeyboardInterrupt)


def test_what_is_not_understood_is_not_called_damage() -> None:
    told = str(explain(duckdb.InternalException("INTERNAL Error: a secret cell"), PLACE, PLACE))
    assert "InternalException" in told
    assert "`sequester ledger verify`" in told
    assert not {"damaged", "backup", "secret"} & set(told.replace(";", " ").split())


def test_damage_is_told_with_which_backup_is_refused() -> None:
    told = str(explain(duckdb.IOException("IO Error: Corrupt database file: computed checksum 1"), PLACE, PLACE))
    assert "damaged" in told
    assert "the newest: one that is older than the release folders is refused" in told


def test_a_closed_ledger_is_said_to_be_closed(tmp_path: Path) -> None:
    ledger = new(tmp_path / "x.ledger")
    ledger.close()
    with pytest.raises(LedgerError, match="the ledger is closed"):
        ledger.releases()


def test_ctrl_c_while_duckdb_works_is_no_damage(tmp_path: Path) -> None:
    three_releases(tmp_path / "x.ledger").close()
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "x.ledger")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        # Where the tests run in the background Ctrl-C is ignored, and would be by this process, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        # Long enough for DuckDB to be at work; what must hold does so before, too.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=60)[0] == "interrupted True\n"
        finally:
            process.kill()


def test_ctrl_c_while_libraries_are_loaded_ends_with_130() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_EARLY],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


@pytest.mark.parametrize("suffix", ["", ".wal"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_ledger_that_others_can_read_is_refused(tmp_path: Path, suffix: str, read_only: bool) -> None:
    path = tmp_path / "x.ledger"
    three_releases(path).close()
    file = tmp_path / f"x.ledger{suffix}"
    file.touch()
    file.chmod(0o640)
    if suffix and not read_only:
        # Whoever writes replaces an empty log by one of his own.
        file.unlink()
        path.chmod(0o604)
    with pytest.raises(LedgerError, match="others can read the ledger; make it yours alone with `chmod 600`"):
        Ledger.open(path, key=KEY, read_only=read_only)
    path.chmod(0o600)
    if file.exists():
        file.chmod(0o600)
    Ledger.open(path, key=KEY, read_only=read_only).close()


def begun(folder: Path) -> Series:
    tables(folder)
    series = Series.open(folder / LEDGER, Policy.load(folder / "policy.yaml"))
    series.publish(folder / "first.csv", seed=2**63 + 1)
    return series


def failing(monkeypatch: pytest.MonkeyPatch, statement: str, *, at: int) -> None:
    """Let a statement fail for good at the n-th time that it is run."""
    run, times = DuckFile.execute, [0]

    def execute(self: DuckFile, sql: str, parameters: tuple[object, ...] = ()) -> object:
        times[0] += sql == statement
        if sql == statement and times[0] >= at:
            raise LedgerError("the ledger cannot be written: Input/output error. Nothing was changed")
        return run(self, sql, parameters)

    monkeypatch.setattr(DuckFile, "execute", execute)


def test_after_a_failed_checkpoint_nothing_is_shown_and_the_next_command_withdraws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = begun(tmp_path)
    with monkeypatch.context() as patched:
        failing(patched, "CHECKPOINT ledger", at=1)
        with pytest.raises(Unsettled, match="may be in the ledger already; the next command puts it in order") as error:
            series.publish(tmp_path / "second.csv", seed=2**63 + 2)
    assert error.value.why == "the ledger cannot be written: Input/output error"
    assert "Nothing was changed" not in str(error.value)
    assert error.value.exit_code == 6
    assert [*shown(tmp_path)] == ["0001-first"]
    again = Series.open(tmp_path / LEDGER, Policy.load(tmp_path / "policy.yaml"))
    assert "withdrawn" in again.recovered[0]
    again.publish(tmp_path / "third.csv", seed=2**63 + 3)
    assert [entry.name for entry in check_order(tmp_path)] == ["first", "third"]


def test_after_a_failed_finish_the_release_is_said_to_be_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = begun(tmp_path)
    with monkeypatch.context() as patched:
        failing(patched, "COMMIT", at=2)
        with pytest.raises(LedgerError, match="release 2 is recorded and visible") as error:
            series.publish(tmp_path / "second.csv", seed=2**63 + 2)
    assert "Nothing was changed" not in str(error.value)
    assert [*sorted(shown(tmp_path))] == ["0001-first", "0002-second"]
    again = Series.open(tmp_path / LEDGER, Policy.load(tmp_path / "policy.yaml"))
    assert "finished" in again.recovered[0]
    assert [entry.name for entry in check_order(tmp_path)] == ["first", "second"]


def test_another_process_that_has_the_ledger_is_no_damage(tmp_path: Path) -> None:
    with ledgers.new(tmp_path / "x.ledger"), pytest.raises(Busy):
        Ledger.open(tmp_path / "x.ledger", key=KEY, timeout=0)
