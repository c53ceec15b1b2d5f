"""Files that are none, never end, or are named or stored in ways nobody can use: refused at once, in clear words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command import invoke, sequester
from hostile import ANONYMIZE, CHECK, HEADER, PLAN, POLICY, PUBLISH, ROWS, TABLE, TREE, checked, refused, spread

LONG = "a" * 5000
NO_TEXT = [
    "rot13", "base64", "hex", "zlib", "bz2", "quopri", "uu", "undefined", "idna", "punycode", "mbcs", "oem",
    "unicode_escape", "raw_unicode_escape", "../../etc/passwd", LONG, "", "a\\0b", "klingon",
]  # fmt: skip
NO_FILE = "pipe or a device"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return spread(tmp_path)


@pytest.mark.parametrize("encoding", NO_TEXT, ids=lambda name: name[:20])
def test_what_is_no_encoding_of_text_is_refused_by_policies_and_by_init(tmp_path: Path, encoding: str) -> None:
    spread(tmp_path, policy=f'{POLICY}input: {{encoding: "{encoding}"}}\n')
    for command in (("check", "policy.yaml"), CHECK, ANONYMIZE, PLAN):
        said = refused(*command, cwd=tmp_path)
        assert "policy.yaml:10: input.encoding: is no encoding of text" in said
        assert LONG not in said
    if "\\" not in encoding:
        said = refused("init", "data.csv", "-o", "new.yaml", "--encoding", encoding, cwd=tmp_path)
        assert "is no encoding of text" in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_in_another_encoding_than_said_is_refused(tmp_path: Path, encoding: str) -> None:
    spread(tmp_path, policy=f"{POLICY}input: {{encoding: {encoding}}}\n")
    assert f"the text is not {encoding}" in refused(*CHECK, cwd=tmp_path)


def test_a_pipe_that_nobody_writes_to_makes_no_command_wait(folder: Path) -> None:
    """Real processes: one that waits for the pipe would be killed by its time limit."""
    for name in ("pipe", "pipe.csv", "pipe.plan"):
        os.mkfifo(folder / name)
    (folder / "piped.yaml").write_text(POLICY.replace(TREE, "pipe"))
    before = set(folder.rglob("*"))
    for command in (
        ("check", "pipe"),
        ("check", "piped.yaml", "data.csv"),
        ("check", "policy.yaml", "pipe.csv"),
    ):
        assert NO_FILE in checked(sequester(*command, cwd=folder), (6,), before, folder)


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "/dev/stdin", "/dev/null", "."])
def test_pipes_devices_and_folders_are_no_policies_hierarchies_or_tables(folder: Path, name: str) -> None:
    os.mkfifo(folder / "pipe")
    words = "folder" if name == "." else NO_FILE
    for command in (
        ("check", name),
        ("check", "policy.yaml", name),
        ("anonymize", name, "-p", "policy.yaml"),
        ("measure", name, "-p", "policy.yaml"),
        ("audit", name, "-p", "policy.yaml"),
        ("init", name, "-o", "new.yaml"),
        ("plan", name, "-p", "policy.yaml"),
        ("publish", name, "-p", "policy.yaml", "--yes"),
    ):
        assert words in refused(*command, cwd=folder)
    spread(folder, policy=POLICY.replace(TREE, name))
    assert words in refused(*CHECK, cwd=folder)


@pytest.mark.parametrize("key", ["registered", "after"])
def test_a_pipe_is_no_registration_list_and_no_earlier_ledger(tmp_path: Path, key: str) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    text = POLICY.replace("illness: {role: sensitive}", "illness: {role: sensitive, values: transient}")
    text = text.replace("  note: {role: insensitive}\n", "")
    registered = ", registered: pipe.csv" if key == "registered" else ""
    protect = f"protect: {{k: 2, against: [lifetime], lifetime: {{l: 2, releases: 5{registered}}}}}"
    text = text.replace("protect: {k: 2}", protect) + "method: {name: group}\n"
    spread(tmp_path, policy=text + ("after: pipe.csv\n" if key == "after" else ""))
    assert "pipe.csv" in refused(*PLAN, cwd=tmp_path)


def test_a_policy_or_plan_is_not_written_into_a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "no file" in refused("init", "data.csv", "-o", "pipe", "--force", cwd=folder, codes=(2,))
    assert "is no plan" in refused(*PLAN, "--out", "pipe", cwd=folder, codes=(2,))


def test_file_names_that_no_file_system_takes_are_refused_by_every_command(folder: Path) -> None:
    for command in (
        ("check", LONG),
        ("check", "policy.yaml", f"{LONG}.csv"),
        ("anonymize", f"{LONG}.csv", "-p", "policy.yaml"),
        (*ANONYMIZE, "-o", LONG),
        (*ANONYMIZE, "-o", "a" * 252 + ".csv"),
        ("measure", LONG, "-p", "policy.yaml"),
        ("audit", LONG, "-p", "policy.yaml"),
        ("init", f"{LONG}.csv", "-o", "new.yaml"),
        ("init", "data.csv", "-o", LONG),
        (*PLAN, "--out", LONG),
        (*PLAN, "--ledger", LONG),
        (*PUBLISH, "--ledger", LONG),
        (*PUBLISH, "--releases", LONG),
        ("publish", f"{LONG}.plan", "-p", "policy.yaml"),
    ):
        assert "file name too long" in refused(*command, cwd=folder).lower()


def test_hierarchy_names_that_no_file_system_takes_are_refused(tmp_path: Path) -> None:
    for name, words in ((LONG, "file name too long"), ('"a\\0b"', "no name of a file")):
        spread(tmp_path, policy=POLICY.replace(TREE, name))
        assert words in refused(*CHECK, cwd=tmp_path)


@pytest.mark.parametrize("name", [LONG, "a" * 101])
def test_names_of_series_and_releases_have_a_hundred_characters_at_most(folder: Path, name: str) -> None:
    for command in (PLAN, PUBLISH):
        assert "at most 100 of them" in refused(*command, "--name", name, cwd=folder)
    spread(folder, policy=POLICY.replace("clinic", name))
    for words in (CHECK, PLAN, PUBLISH):
        assert "policy.yaml:2: series: must have at most 100 characters" in refused(*words, cwd=folder)


@pytest.mark.parametrize("sign", ["\x1b", "\n", "\u202e", "/", " "])
def test_names_of_series_and_releases_have_no_signs_that_do_something(folder: Path, sign: str) -> None:
    assert "letters, digits" in refused(*PLAN, "--name", f"a{sign}", cwd=folder)
    spread(folder, policy=POLICY.replace("clinic", f'"a\\u{ord(sign):04x}"'))
    assert "hold only letters, digits" in refused(*CHECK, cwd=folder)


def test_a_file_with_a_very_long_name_is_published_under_the_date(folder: Path) -> None:
    long = "a" * 200
    (folder / f"{long}.csv").write_text(TABLE)
    assert invoke("publish", f"{long}.csv", "-p", "policy.yaml", "--yes", cwd=folder).returncode == 0
    assert not list(folder.rglob(f"*{long}"))


def test_headers_of_thousands_of_letters_are_read_and_not_proposed(tmp_path: Path) -> None:
    spread(tmp_path, table=TABLE.replace("note,", f"{LONG},", 1))
    said = refused("init", "data.csv", "-o", "new.yaml", cwd=tmp_path)
    assert "column 4" in said
    assert LONG not in said
    assert "a key has no colon after it, or has more than 1,024 letters" in refused(
        *CHECK, cwd=spread(tmp_path, policy=POLICY.replace("note:", f"{LONG}:"))
    )
    spread(
        tmp_path,
        policy=POLICY.replace("  note: {role", f"  ? {LONG}\n  : {{role"),
        table=TABLE.replace("note,", f"{LONG},", 1),
    )
    assert invoke(*PUBLISH, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("size", [200_000, 3_000_000])
@pytest.mark.parametrize("at", [0, -1])
def test_cells_beyond_a_megabyte_are_read(tmp_path: Path, size: int, at: int) -> None:
    rows = list(ROWS)
    rows[at] = rows[at].replace("note", "n" * size)
    spread(tmp_path, table="\n".join([HEADER, *rows]) + "\n")
    assert invoke(*CHECK, cwd=tmp_path).returncode == 0
    assert invoke(*ANONYMIZE, cwd=tmp_path).returncode == 0
    assert "n" * size in (tmp_path / "data-release" / "data.csv").read_text()


def test_ragged_rows_beside_a_large_cell_are_still_counted(tmp_path: Path) -> None:
    rows = [ROWS[0].replace("note", "n" * 200_000), *ROWS[1:], "p99,30"]
    spread(tmp_path, table="\n".join([HEADER, *rows]) + "\n")
    assert "1 row has too few or too many cells (the header has 5), first on line 14" in refused(*CHECK, cwd=tmp_path)


def test_a_quote_that_is_never_closed_is_the_reason_however_much_follows(tmp_path: Path) -> None:
    more = "\n".join(ROWS[1:] * 8000)
    spread(tmp_path, table=f'{HEADER}\np0,30,f,"open,flu\n{more}\n')
    said = refused(*CHECK, cwd=tmp_path)
    assert "is opened and never closed" in said or "too few or too many cells" in said
    spread(tmp_path, table=f'id,"age,sex,note,illness\n{more}\n')
    assert "the header line does not end within 1 MB" in refused(*CHECK, cwd=tmp_path)


def test_a_row_of_more_than_is_read_says_how_long_it_may_be(tmp_path: Path) -> None:
    spread(tmp_path, table=f"{TABLE}p99,30,f,{'n' * (140 << 20)},flu\n")
    assert "a row is longer than 64 MB, the most that is read" in refused(*CHECK, cwd=tmp_path)
