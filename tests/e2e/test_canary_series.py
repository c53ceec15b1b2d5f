"""A series in which every id, name and illness is a canary: every command, file and page of its life is looked through.

A command that is new fails here until it is among those that are tried, or among those that see no table.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import typer

import sequester as sq
from clinic import CANARY, LEDGER, edit, people, set_up
from command import invoke
from sequester.cli.app import app

# Of these nobody private is in anything they read.
INVENTED = {"demo", "datasets", "warm-up"}
# Where canaries belong: what is private (tables, ledger, what is exported of it), and the published table itself.
TABLES = {"q1.csv", "q2.csv", "q3.csv", "mapping.csv"}
FIRST, SECOND = (f"releases/clinic/000{number}-q{number}" for number in (1, 2))
Command = tuple[str, ...]
LIFE: list[Command] = [
    (),
    ("init", "q1.csv", "q2.csv", "q3.csv", "-o", "proposed.yaml"),
    ("check", "q1.csv"),
    ("rehearse", "q1.csv", "q2.csv", "--methods", "merge,pods", "--out", "best.yaml", "--picture", "rehearsal.svg"),
    ("rehearse", "q1.csv", "q2.csv", "--vary", "k=2,3", "--picture", "frontier.svg", "--format", "json"),
    ("plan", "q1.csv", "--why"),
    ("publish", "q1.csv", "--yes", "--recipient", "office", "--purpose", "study"),
    ("plan", "q2.csv", "--why", "--format", "json"),
    ("plan", "q2.csv", "--why", "--out", "next.plan"),
    ("publish", "next.plan"),
    (),
    ("report", "2", "--out", "public.html"),
    ("report", "2", "--audience", "internal", "--data", "q1.csv", "--data", "q2.csv", "--out", "internal.html"),
    ("history", "--log"),
    ("history", "--format", "json"),
    ("show", "2"),
    ("show", "2", "--format", "json"),
    ("audit", f"{FIRST}/data.csv", f"{SECOND}/data.csv", "--report", "audit.html", "--findings", "none.parquet"),
    ("audit", "--ledger", LEDGER, "--belief", "--format", "json"),
    ("anonymize", "q1.csv", "-o", "alone"),
    ("measure", f"{SECOND}/data.csv"),
    ("measure", f"{SECOND}/data.csv", "--format", "json"),
    ("ledger", "people", "mapping.csv", "--old", "old", "--new", "new", "--plan"),
    ("ledger", "withdraw", "2", "--reason", "a wrong file"),
    (),
    ("ledger", "withdraw", "2", "--undo"),
    ("ledger", "close"),
    (),
    ("ledger", "verify"),
    ("ledger", "export", "backup"),
    ("ledger", "import", "backup", "-l", "copy.ledger"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clinic with another column that only identifies, and a mapping to other ids."""
    folder = set_up(tmp_path_factory.mktemp("clinic"))
    edit(folder / "policy.yaml", "  illness:", "  name: {role: identifier}\n  illness:")
    for table in sorted(folder.glob("q?.csv")):
        head, *rows = table.read_text().splitlines()
        table.write_text("\n".join([f"{head},name", *(f"{row},{CANARY} name" for row in rows)]) + "\n")
    ids = [row[0] for row in people(91)]
    (folder / "mapping.csv").write_text("old,new\n" + "".join(f"{one},new-{one}\n" for one in ids))
    return folder


@pytest.fixture(scope="module")
def lived(folder: Path) -> Path:
    """The whole life of the series, told to a log and on stderr; what is printed is looked at on the way."""
    for command in LIFE:
        if command[:2] == ("ledger", "import"):
            shutil.copy2(folder / f"{LEDGER}.key", folder / "copy.ledger.key")
        done = invoke("--verbose", "--log", "run.log", *command, cwd=folder)
        # Of files without ids some attacks cannot be tried, which is said, and is no 0.
        assert done.returncode == (3 if command[:2] == ("audit", f"{FIRST}/data.csv") else 0), (command, done.stderr)
        assert CANARY not in done.stdout + done.stderr, command
    return folder


def names(group: Any, before: Command = ()) -> Iterator[Command]:
    """Every command there is."""
    for name, one in group.commands.items():
        yield from names(one, (*before, name)) if hasattr(one, "commands") else [(*before, name)]


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(folder)), file.read_bytes()


def test_every_command_is_tried() -> None:
    tried = {command[:2] if command[:1] == ("ledger",) else command[:1] for command in LIFE}
    there = set(names(typer.main.get_command(app)))
    assert {command for command in there if command[0] not in INVENTED} <= tried


def test_nothing_that_is_said_or_written_in_the_life_of_a_series_holds_a_canary(lived: Path) -> None:
    found = {name for name, data in files(lived) if CANARY.encode() in data}
    private = {name for name in found if name in TABLES or name.split("/")[0] in (LEDGER, "copy.ledger", "backup")}
    assert found - private == {f"{FIRST}/data.csv", f"{SECOND}/data.csv", "alone/data.csv"}
    written = {Path(name).name for name, _ in files(lived)}
    assert {"run.log", "next.plan", "rehearsal.svg", "frontier.svg", "best.yaml", "proposed.yaml"} <= written
    assert {"public.html", "internal.html", "audit.html", "report.html", "release.json", "dictionary.csv"} <= written


def test_published_tables_have_illnesses_and_neither_ids_nor_names(lived: Path) -> None:
    for name, data in files(lived):
        if name.endswith("data.csv"):
            assert f"{CANARY} flu".encode() in data
            assert f"{CANARY}-".encode() not in data
            assert f"{CANARY} name".encode() not in data


def test_what_analysts_read_and_estimate_holds_no_id(lived: Path) -> None:
    frame = sq.read_release(lived / SECOND)
    assert f"{CANARY}-" not in frame.to_csv()
    for question in ("mean(age)", "count() by city", "quantile(age, 0.5) by city"):
        assert CANARY not in json.dumps(sq.estimate(lived / SECOND, question).to_dict())


@pytest.fixture(scope="module")
def leaky(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases without a memory, so that findings, stories and exposed people have something to tell."""
    home = tmp_path_factory.mktemp("leaky")
    for file in (*folder.glob("*.csv"), folder / "policy.yaml"):
        (home / file.name).write_bytes(file.read_bytes())
    edit(home / "policy.yaml", "name: mondrian", "name: static")
    for table in ("q1.csv", "q2.csv", "q3.csv"):
        done = invoke("publish", table, "--yes", "--i-know-this-leaks", cwd=home)
        assert done.returncode == 0, done.stderr
        assert CANARY not in done.stdout + done.stderr
    return home


def test_what_leaks_is_told_to_the_public_without_a_canary(leaky: Path) -> None:
    tables = [f"releases/clinic/000{number}-q{number}/data.csv" for number in (1, 2, 3)]
    population = [word for table in ("q1.csv", "q2.csv", "q3.csv") for word in ("--population", table)]
    pages = ("--report", "public.html", "--audience", "public", "--findings", "all.parquet")
    assert invoke("--log", "run.log", "audit", *tables, *population, *pages, cwd=leaky).returncode == 4
    assert invoke("audit", *tables, *population, "--report", "own.html", cwd=leaky).returncode == 4
    assert parquet.read_table(leaky / "all.parquet").num_rows > 0
    assert (leaky / "all.parquet").stat().st_mode & 0o777 == 0o600
    assert (leaky / "own.html").stat().st_mode & 0o777 == 0o600
    assert CANARY in (leaky / "own.html").read_text()
    for name in ("public.html", "run.log"):
        assert CANARY not in (leaky / name).read_text()


def test_the_public_report_of_a_release_that_leaks_holds_no_canary(leaky: Path) -> None:
    for page in leaky.glob("releases/*/*/report.html"):
        assert CANARY not in page.read_text()
    for command in (("show", "3"), ("show", "3", "--format", "json"), ("history",), ()):
        done = invoke(*command, cwd=leaky)
        assert done.returncode == 0, done.stderr
        assert CANARY not in done.stdout + done.stderr
    assert invoke("report", "3", "--audience", "internal", "--out", "inside.html", cwd=leaky).returncode == 0
    inside = (leaky / "inside.html").read_text()
    assert "Finding 1" in inside
    assert f"{CANARY}-" not in inside
    assert f"{CANARY} name" not in inside
