"""Files are written whole or not at all, and replace nothing that was not written here before."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from sequester.errors import DataError
from sequester.publish import files
from sequester.publish.files import write_file, write_folder

TABLE = pa.table({"a": ["x", "y, z", None], "n": [1, 2, 3]})
OTHER = pa.table({"a": ["other"], "n": [9]})

Save = Callable[..., Any]


def save_file(path: Path, table: pa.Table = TABLE, **options: Any) -> Any:
    return write_file(table, path / "t.csv", **options)


def save_folder(path: Path, table: pa.Table = TABLE, **options: Any) -> Any:
    return write_folder(path / "t", table, "data.csv", {"about.json": "{}\n"}, **options)


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_the_suffix_of_a_file_is_its_format(tmp_path: Path, name: str) -> None:
    path = write_file(TABLE, tmp_path / "deep" / "down" / name)
    nulls = csv.ConvertOptions(strings_can_be_null=True)
    read = parquet.read_table(path) if name.endswith(".parquet") else csv.read_csv(path, convert_options=nulls)
    assert read.equals(TABLE)
    assert [file.name for file in path.parent.iterdir()] == [name]


def test_a_folder_has_its_table_and_its_texts(tmp_path: Path) -> None:
    written = save_folder(tmp_path)
    assert [str(file.relative_to(tmp_path)) for file in written] == ["t/data.csv", "t/about.json"]
    assert set(contents(tmp_path)) == {"t/data.csv", "t/about.json"}


@pytest.mark.parametrize("save", [save_file, save_folder])
def test_the_same_table_is_the_same_bytes(tmp_path: Path, save: Save) -> None:
    save(tmp_path / "one")
    save(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("save", [save_file, save_folder])
def test_what_exists_is_kept_unless_forced(tmp_path: Path, save: Save) -> None:
    save(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(DataError, match="exists already"):
        save(tmp_path, OTHER)
    assert contents(tmp_path) == before
    save(tmp_path, OTHER, force=True)
    assert contents(tmp_path) != before
    assert set(contents(tmp_path)) == set(before)


@pytest.mark.parametrize(
    "holds",
    [
        {"mine.txt": "x"},
        {"data.csv": "raw", "about.json": "{}", "mine.txt": "x"},
        {"data.csv": "a raw table that happens to have this name"},
    ],
)
def test_force_does_not_delete_a_folder_with_anything_else_in_it(tmp_path: Path, holds: dict[str, str]) -> None:
    (tmp_path / "t").mkdir()
    for name, text in holds.items():
        (tmp_path / "t" / name).write_text(text)
    before = contents(tmp_path)
    with pytest.raises(DataError, match="not something written here before"):
        save_folder(tmp_path, force=True)
    assert contents(tmp_path) == before


def test_force_does_not_put_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mine")
    with pytest.raises(DataError, match="not something written here before"):
        save_folder(tmp_path, force=True)
    assert (tmp_path / "t").read_text() == "mine"


def test_force_fills_an_empty_folder_and_the_one_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.chdir(tmp_path / "t")
    written = write_folder(Path(), TABLE, "data.csv", {"about.json": "{}"}, force=True)
    assert set(contents(tmp_path)) == {"t/data.csv", "t/about.json"}
    assert written == [Path("data.csv"), Path("about.json")]


@pytest.mark.parametrize("save", [save_file, save_folder])
@pytest.mark.parametrize("existing", [False, True])
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Save, existing: bool
) -> None:
    if existing:
        save(tmp_path)
    before = contents(tmp_path)

    def full(table: pa.Table, stream: Any) -> None:
        stream.write(b"half of")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(csv, "write_csv", full)
    with pytest.raises(DataError, match="could not be written, nothing was left behind: No space left"):
        save(tmp_path, OTHER, force=True)
    assert contents(tmp_path) == before
    assert {entry.name for entry in tmp_path.iterdir()} <= {"t", "t.csv"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_is_full_for_arrow_is_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = pa.output_stream
    monkeypatch.setattr(pa, "output_stream", lambda path, **how: original("/dev/full", **how))
    with pytest.raises(DataError, match="could not be written, nothing was left behind"):
        write_file(pa.table({"a": ["x" * 100] * 100_000}), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_folder(tmp_path)
    before = contents(tmp_path)
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        # Only the new folder has our name and goes to the final place from elsewhere.
        if target == tmp_path / "t" and self.name == "t":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(DataError, match="could not be written"):
        save_folder(tmp_path, OTHER, force=True)
    assert contents(tmp_path) == before


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for save in (save_file, save_folder):
        with pytest.raises(DataError, match="cannot be written: "):
            save(tmp_path / "file" / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    for save in (save_file, save_folder):
        with pytest.raises(DataError, match="cannot be written: Permission denied"):
            save(tmp_path)
    tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_refuses_new_files_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> Any:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files, "draft_beside", refuse)
    with pytest.raises(DataError, match="cannot be written: Permission denied"):
        save_file(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_value_that_the_format_cannot_hold_is_an_error_that_does_not_quote_it(tmp_path: Path, name: str) -> None:
    cells = pa.array([b"\xffCANARY"]) if name == "t.csv" else pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(DataError, match=r"a (csv|parquet) file cannot hold") as caught:
        write_file(pa.table({"a": cells}), tmp_path / name)
    assert caught.value.__context__ is None
    assert list(tmp_path.iterdir()) == []


HANG = """
import sys, time
from pathlib import Path
import pyarrow as pa, pyarrow.csv as csv
from sequester.publish.files import write_file, write_folder

def slow(table, stream):
    stream.write(b"half of")
    stream.flush()
    print("writing", flush=True)
    time.sleep(60)

csv.write_csv = slow
table, place = pa.table({"a": ["x"]}), Path(sys.argv[1])
if sys.argv[2] == "file":
    write_file(table, place / "t.csv", force=True)
else:
    write_folder(place / "t", table, "data.csv", {"about.json": "{}"}, force=True)
"""


@pytest.mark.parametrize(("kind", "save"), [("file", save_file), ("folder", save_folder)])
@pytest.mark.parametrize("existing", [False, True])
def test_a_kill_in_the_middle_publishes_nothing(tmp_path: Path, kind: str, save: Save, existing: bool) -> None:
    if existing:
        save(tmp_path)
    before = contents(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", HANG, str(tmp_path), kind], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    visible = {name: data for name, data in contents(tmp_path).items() if not name.startswith(".")}
    assert visible == before
    save(tmp_path, OTHER, force=True)
