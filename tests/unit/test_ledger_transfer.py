"""An exported ledger comes back whole, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from books import Books
from ledgers import KEY, new, publish, three_releases
from sequester.errors import LedgerError
from sequester.ledger import Key, Ledger


@pytest.fixture
def exported(books: Books, tmp_path: Path) -> Path:
    with three_releases(books / "x.ledger") as ledger:
        return ledger.export(tmp_path / "export")


def test_an_export_comes_back_the_same(books: Books, exported: Path) -> None:
    with (
        Ledger.open(books / "x.ledger", key=KEY) as one,
        Ledger.import_(exported, books / "y.ledger", KEY, accept_loss=True) as two,
    ):
        assert (one.head, one.releases(), one.created) == (two.head, two.releases(), two.created)
        assert two.log()[:-2] == one.log()
        # There are no folders of releases here.
        assert [event.action for event in two.log()[-2:]] == ["imported", "loss accepted"]
        before, after = one.load(), two.load()
        for name in ("path", "trajectory", "values", "digests", "joined", "retained"):
            assert np.array_equal(getattr(before, name), getattr(after, name))
        assert before.queue.hashes.equals(after.queue.hashes)
        publish(two, [0] * 9)
        assert two.verify().holds


def test_a_ledger_without_releases_comes_back(books: Books, tmp_path: Path) -> None:
    with new(books / "x.ledger") as ledger:
        ledger.export(tmp_path / "export")
    with Ledger.import_(tmp_path / "export", books / "y.ledger", KEY) as ledger:
        publish(ledger, [0, 0])
        assert ledger.verify().holds


def test_the_files_are_ordinary_tables(exported: Path) -> None:
    assert parquet.read_table(exported / "counts.parquet").column_names == ["release", "class", "codes", "n"]
    manifest = json.loads((exported / "ledger.json").read_text())
    assert manifest["tables"]["people"]["rows"] == 9


def test_an_export_does_not_replace_anything(books: Books, exported: Path) -> None:
    with (
        Ledger.open(books / "x.ledger", key=KEY) as ledger,
        pytest.raises(LedgerError, match="exists already"),
    ):
        ledger.export(exported)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.import_(exported, books / "x.ledger", KEY)


def test_an_export_that_was_changed_is_refused_and_nothing_is_left(books: Books, exported: Path) -> None:
    (exported / "state.parquet").unlink()
    counts = exported / "counts.parquet"
    counts.write_bytes(counts.read_bytes()[:-1] + b"x")
    with pytest.raises(LedgerError, match=r"counts.parquet: is not what was exported\n.*state.parquet: cannot be read"):
        Ledger.import_(exported, books / "y.ledger", KEY)
    assert books.there() == ["x.ledger"]


def test_rows_that_were_changed_with_their_digest_break_the_chain(books: Books, exported: Path) -> None:
    file = exported / "retained.parquet"
    parquet.write_table(parquet.read_table(file).slice(0, 0), file)
    _admit(exported, "retained")
    with pytest.raises(LedgerError, match="release 2: what is recorded was changed"):
        Ledger.import_(exported, books / "y.ledger", KEY)
    assert books.there() == ["x.ledger"]


def test_an_export_cut_off_at_the_end_is_not_what_the_manifest_says(books: Books, tmp_path: Path) -> None:
    with new(books / "x.ledger") as ledger:
        ledger.export(tmp_path / "before")
        publish(ledger, [0, 0])
        ledger.export(tmp_path / "after")
    manifest = json.loads((tmp_path / "before" / "ledger.json").read_text())
    manifest["head"] = json.loads((tmp_path / "after" / "ledger.json").read_text())["head"]
    (tmp_path / "before" / "ledger.json").write_text(json.dumps(manifest))
    with pytest.raises(LedgerError, match="the last release is not the one of the manifest"):
        Ledger.import_(tmp_path / "before", books / "y.ledger", KEY)


def test_an_export_needs_its_key(books: Books, exported: Path) -> None:
    with pytest.raises(LedgerError, match="the key is not the one"):
        Ledger.import_(exported, books / "y.ledger", Key.of_text("another secret altogether"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "is not the manifest"),
        ("[]", "is not the manifest"),
        ('{"sequester-ledger": 9, "schema": 2}', "another version"),
        ('{"sequester-ledger": 1, "schema": 5, "head": "", "tables": {}}', "does not list the tables"),
    ],
)
def test_a_manifest_of_something_else_is_refused(books: Books, exported: Path, text: str, reason: str) -> None:
    (exported / "ledger.json").write_text(text)
    with pytest.raises(LedgerError, match=reason):
        Ledger.import_(exported, books / "y.ledger", KEY)


def test_a_folder_without_a_manifest_is_refused(books: Books, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.json: cannot be read: No such file"):
        Ledger.import_(tmp_path, books / "y.ledger", KEY)


def _admit(folder: Path, table: str) -> None:
    """Write the digest of a changed file into the manifest."""
    import hashlib

    manifest = json.loads((folder / "ledger.json").read_text())
    manifest["tables"][table]["sha256"] = hashlib.sha256((folder / f"{table}.parquet").read_bytes()).hexdigest()
    (folder / "ledger.json").write_text(json.dumps(manifest))
