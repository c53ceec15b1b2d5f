"""What is made is there whole or not at all, and whoever dies while making it leaves nothing for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agreement import strays
from ledgers import KEY, new, three_releases
from sequester.drafts import draft_beside, sweep
from sequester.errors import LedgerError
from sequester.ledger import Key, Ledger
from sequester.ledger import duck as duck_module
from sequester.ledger.duck import DuckFile

HOLDS = """
import sys
from pathlib import Path
from sequester.drafts import draft_beside
with draft_beside(Path(sys.argv[1])) as folder:
    (folder / "part").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_draft_is_swept_when_its_maker_is_dead_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    with holder(path) as process:
        assert process.stdout is not None
        draft = Path(process.stdout.readline().strip())
        sweep(path)
        with draft_beside(path) as other:
            assert other != draft
        assert (draft / "part").exists()
        process.send_signal(signal.SIGKILL)
    assert draft.is_dir()
    sweep(tmp_path / "y.ledger")
    assert draft.is_dir()
    sweep(path)
    assert list(tmp_path.iterdir()) == []


def test_a_draft_of_this_process_is_not_swept_by_it(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    with draft_beside(path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        sweep(path)
        assert folder.is_dir()
    assert not folder.exists()


def test_only_drafts_are_swept(tmp_path: Path) -> None:
    kept = [
        tmp_path / name for name in (".x.ledger.abcdef01", ".x.ledger.abcdef01.part.txt", ".x.ledger.abcdef0g.part")
    ]
    for place in kept:
        place.mkdir()
    sweep(tmp_path / "x.ledger")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


@pytest.mark.parametrize("make", ["key", "ledger", "next writer"])
def test_whoever_makes_or_opens_the_same_sweeps_what_the_dead_left(tmp_path: Path, make: str) -> None:
    path = tmp_path / "x.ledger"
    if make == "next writer":
        three_releases(path).close()
    for place in (path, tmp_path / "x.ledger.key") if make != "key" else (tmp_path / "x.ledger.key",):
        with holder(place) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)
    assert strays(tmp_path)
    if make == "key":
        Key.make(tmp_path / "x.ledger.key")
    elif make == "ledger":
        new(path).close()
    else:
        Ledger.open(path, key=KEY).close()
    assert strays(tmp_path) == []


def fail_at(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    run = DuckFile.execute

    def execute(self: DuckFile, sql: str, parameters: tuple[object, ...] = ()) -> object:
        if sql == statement:
            raise LedgerError("the ledger cannot be written: No space left on device. Nothing was changed")
        return run(self, sql, parameters)

    monkeypatch.setattr(DuckFile, "execute", execute)


@pytest.mark.parametrize("statement", ["COMMIT", "CHECKPOINT ledger"])
def test_a_ledger_whose_rows_are_not_in_the_file_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    fail_at(monkeypatch, statement)
    with pytest.raises(LedgerError, match="No space left on device"):
        new(tmp_path / "x.ledger")
    assert list(tmp_path.iterdir()) == []


def test_an_import_that_cannot_be_finished_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new(tmp_path / "x.ledger") as ledger:
        ledger.export(tmp_path / "export")
    (tmp_path / "new").mkdir()
    with monkeypatch.context() as patched:
        fail_at(patched, "CHECKPOINT ledger")
        with pytest.raises(LedgerError, match="No ledger was made"):
            Ledger.import_(tmp_path / "export", tmp_path / "new" / "y.ledger", KEY)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_new_ledger_that_lost_rows_when_it_was_closed_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk is full by the time DuckDB closes its file, and says nothing."""
    monkeypatch.setattr(duck_module, "has_log", lambda place: True)
    with pytest.raises(LedgerError, match="nothing was made"):
        new(tmp_path / "x.ledger")
    assert list(tmp_path.iterdir()) == []
