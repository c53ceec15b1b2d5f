"""A machine that stops in the middle of a block: what was kept before takes the place of what cannot be read."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import KEY, SECRET, draft, publish, three_releases
from sequester.errors import LedgerError
from sequester.ledger import Ledger, before


@pytest.fixture
def path(tmp_path: Path) -> Path:
    three_releases(tmp_path / "x.ledger").close()
    return tmp_path / "x.ledger"


def tear(path: Path) -> None:
    """Half of the block with the catalog is another one's."""
    whole = bytearray(path.read_bytes())
    whole[12288 + 8192 : 12288 + 16384] = bytes(8192)
    path.write_bytes(whole)


@pytest.mark.parametrize("read_only", [False, True])
def test_what_was_kept_takes_the_place_of_what_cannot_be_read(path: Path, read_only: bool) -> None:
    shutil.copy(path, before.place_of(path))
    tear(path)
    with Ledger.open(path, key=KEY, read_only=read_only) as ledger:
        assert ledger.verify().holds
        assert len(ledger.releases()) == 3
    with Ledger.open(path, key=KEY) as ledger:
        publish(ledger, [0] * 9)
    assert sorted(file.name for file in path.parent.iterdir()) == ["x.ledger", "x.ledger.head"]


def test_what_can_be_read_stays_whatever_was_kept(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "old")
    with Ledger.open(path, key=KEY) as ledger:
        publish(ledger, [0] * 9)
    shutil.copy(tmp_path / "old", before.place_of(path))
    with Ledger.open(path, key=KEY) as ledger:
        assert len(ledger.releases()) == 4
    assert not before.place_of(path).exists()


def test_without_what_was_kept_it_is_damage(path: Path) -> None:
    tear(path)
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path, key=KEY)
    shutil.copy(path, before.place_of(path))
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path, key=KEY)


def test_what_cannot_be_kept_is_not_begun(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Ledger.open(path, key=KEY) as ledger:
        head, given = ledger.head, draft(ledger, [0] * 9)
        monkeypatch.setattr(before, "keep", full)
        with pytest.raises(LedgerError, match="cannot be written: No space left on device; make room"):
            ledger.begin(given)
        monkeypatch.undo()
        assert (ledger.head, ledger.pending) == (head, None)
        ledger.finish(ledger.begin(given).number)
        assert ledger.verify().holds


def test_the_locks_outlive_the_copy(path: Path) -> None:
    """To read the file by another handle, and close that, would let others write."""
    with Ledger.open(path, key=KEY) as ledger:
        publish(ledger, [0] * 9)
        script = (
            "import sys; from sequester.ledger import Key, Ledger\n"
            "Ledger.open(sys.argv[1], key=Key.of_text(sys.argv[2]), timeout=0)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(path), SECRET], capture_output=True, text=True, check=False
        )
        assert "another command has the ledger" in done.stderr
