"""Files that are none, never end, or are named or stored in ways nobody can use: refused at once, in clear words."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import pytest

from command import invoke, sequester
from hostile import ANONYMIZE, CHECK, HEADER, PLAN, POLICY, PUBLISH, ROWS, TABLE, TREE, checked, files, refused, spread
from sequester.domain import limits

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
    os.mkfifo(folder / "clinic.ledger")
    assert "and no ledger" in sequester(*PLAN, cwd=folder).stderr
    before = files(folder)
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


PRIVATE = ("clinic.ledger", "clinic.ledger.wal", "clinic.ledger.key", "clinic.ledger.head")
SHOWN = tuple(f"releases/clinic/0001-data/{name}" for name in ("data.csv", "release.json", "report.html"))


@pytest.fixture
def patience() -> Iterator[None]:
    """Ends a command that waits for somebody to write to a pipe, or reads from a device without end."""

    def lost(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, lost)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with a release, a saved plan and an export."""
    folder = spread(tmp_path_factory.mktemp("series"))
    rules = ("-p", "policy.yaml")
    for command in (PUBLISH, (*PLAN, "--out", "next.plan"), ("ledger", "export", "export", *rules)):
        assert invoke(*command, cwd=folder).returncode == 0
    shutil.copy2(folder / "clinic.ledger.key", folder / "new.ledger.key")
    return folder


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *((name, PLAN) for name in (*PRIVATE, *SHOWN)),
        *((name, ("ledger", "verify", "-p", "policy.yaml")) for name in (*PRIVATE, *SHOWN)),
        ("releases/clinic/0001-data/report.html", ("report", "1", "-p", "policy.yaml")),
        ("releases/clinic/0001-data/data.csv", ("measure", "releases/clinic/0001-data/data.csv", "-p", "policy.yaml")),
        ("export/ledger.json", ("ledger", "import", "export", "--ledger", "new.ledger")),
        ("export/people.parquet", ("ledger", "import", "export", "--ledger", "new.ledger")),
        ("new.ledger.key", ("ledger", "import", "export", "--ledger", "new.ledger")),
        ("next.plan", ("publish", "next.plan", "-p", "policy.yaml")),
        ("t.duckdb", ("plan", "t.duckdb::patients", "-p", "policy.yaml")),
        ("t.sqlite", ("plan", "t.sqlite::patients", "-p", "policy.yaml")),
        ("t.xlsx", ("plan", "t.xlsx", "-p", "policy.yaml")),
        ("t.parquet", ("plan", "t.parquet", "-p", "policy.yaml")),
        ("t.sav", ("plan", "t.sav", "-p", "policy.yaml")),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_command_waits_for_what_is_no_file(
    series: Path, tmp_path: Path, patience: None, name: str, command: tuple[str, ...], kind: str
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(series, folder)
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    done = invoke(*command, cwd=folder)
    said = done.stdout + done.stderr
    assert done.returncode == 6, said
    assert Path(name).name in said
    assert "internal error" not in said


def test_a_pipe_in_what_a_killed_command_left_is_removed_and_not_waited_for(
    series: Path, tmp_path: Path, patience: None
) -> None:
    """A draft beside the ledger, whose file that says where its private rows are is a pipe."""
    folder = tmp_path / "folder"
    shutil.copytree(series, folder)
    left = folder / ".clinic.ledger.spill.00000000.part"
    left.mkdir()
    os.mkfifo(left / "elsewhere")
    assert invoke("ledger", "verify", "-p", "policy.yaml", cwd=folder).returncode == 0
    assert not left.exists()


@pytest.mark.parametrize("parts", [False, True], ids=["whole", "in parts"])
def test_a_pipe_in_place_of_a_draft_is_removed_and_not_waited_for(
    tmp_path: Path, patience: None, *, parts: bool
) -> None:
    """Where the folder of a release is to be made, and where its parts are."""
    spread(tmp_path, policy=f"{POLICY}engine: {{part: 3, processes: 1}}\n" if parts else POLICY)
    pipes = [tmp_path / "releases" / "clinic" / ".0001-data.draft"]
    pipes += [tmp_path / "clinic.ledger.parts" / ".0001.draft"] if parts else []
    for pipe in pipes:
        pipe.parent.mkdir(parents=True, mode=0o700)
        os.mkfifo(pipe)
    done = invoke(*PUBLISH, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "clinic.ledger.parts" / "0001").is_dir() == parts
    assert not any(pipe.exists() for pipe in pipes)


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


def test_a_workbook_with_a_cell_far_out_is_refused_and_ends_nothing(tmp_path: Path) -> None:
    spread(tmp_path)
    book = openpyxl.Workbook()
    for row in TABLE.splitlines():
        book.active.append(row.split(","))
    book.save(tmp_path / "good.xlsx")
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "far.xlsx")
    whole = (tmp_path / "good.xlsx").read_bytes()
    at = whole.rindex(b"PK\x01\x02")
    (tmp_path / "torn.xlsx").write_bytes(whole[:at] + b"PK\x00\x00" + whole[at + 4 :])
    assert "is damaged" in refused("check", "policy.yaml", "torn.xlsx", cwd=tmp_path)
    before = files(tmp_path)
    said = checked(sequester("check", "policy.yaml", "far.xlsx", cwd=tmp_path), (6,), before, tmp_path)
    assert "has a cell too far out" in said
    assert "panicked" not in said
    assert invoke("check", "policy.yaml", "good.xlsx", cwd=tmp_path).returncode == 0


def test_a_column_of_a_hundred_thousand_words_is_refused_by_name(tmp_path: Path) -> None:
    policy = POLICY.replace("note: {role: insensitive}", "note: {role: quasi-identifier}")
    rows = [f"p{n},{20 + n % 50},f,note{n},flu" for n in range(100_001)]
    spread(tmp_path, policy=policy, table="\n".join([HEADER, *rows]) + "\n")
    for command in (CHECK, PLAN, ANONYMIZE):
        said = refused(*command, cwd=tmp_path)
        assert "column 'note': has 100,001 different values and no hierarchy" in said
        assert "give it a hierarchy or fewer values, make it `kind: code`, or leave it out" in said


def test_sets_of_words_that_would_fill_a_disk_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_LISTED", 1000)
    policy = POLICY.replace("note: {role: insensitive}", "note: {role: quasi-identifier}")
    rows = [f"p{n},{20 + n * 7 % 90},f,note{n},flu" for n in range(400)]
    spread(tmp_path, policy=policy, table="\n".join([HEADER, *rows]) + "\n")
    assert "column 'note': would be published as sets of more than 1,000 values" in refused(*ANONYMIZE, cwd=tmp_path)
