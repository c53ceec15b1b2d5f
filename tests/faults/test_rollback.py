"""A ledger that forgot something, whatever made it forget: nothing is planned or published on it, and it says why.

The clinic has published three quarters. Somebody puts things back, takes them away or changes them, with the tools that
operators have: copies, exports, SQL. Each is tried with real processes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from clinic import CANARY, LEDGER, edit, people, publish_two, set_up, write
from command import invoke, sequester
from sequester.ledger import Key, Ledger, chain, schema

RULES = ("-p", "policy.yaml")
NEXT = ("publish", "q4.csv", *RULES, "--yes")
HEAD = f"{LEDGER}.head"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three releases; beside them the ledger, an export and everything else as they were after two."""
    folder = publish_two(tmp_path_factory.mktemp("clinic"))
    for name in (LEDGER, HEAD):
        shutil.copy(folder / name, folder / f"old-{name}")
    assert invoke("ledger", "export", "old-export", *RULES, cwd=folder).returncode == 0
    write(folder / "q3.csv", people(120))
    write(folder / "q4.csv", people(150))
    assert invoke("publish", "q3.csv", *RULES, "--yes", "--seed", str(1 << 63 | 7), cwd=folder).returncode == 0
    return folder


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "series"))


def put_back_the_old_ledger(folder: Path) -> None:
    shutil.copy(folder / f"old-{LEDGER}", folder / LEDGER)


def put_back_ledger_and_head(folder: Path) -> None:
    put_back_the_old_ledger(folder)
    shutil.copy(folder / f"old-{HEAD}", folder / HEAD)


def put_back_the_ledger_and_remove_the_folder(folder: Path) -> None:
    put_back_the_old_ledger(folder)
    shutil.rmtree(folder / "releases/clinic/0003-q3")


def put_back_the_ledger_and_lose_the_head(folder: Path) -> None:
    put_back_the_ledger_and_remove_the_folder(folder)
    (folder / HEAD).unlink()


def delete_the_ledger(folder: Path) -> None:
    (folder / LEDGER).unlink()


def delete_the_ledger_and_its_head(folder: Path) -> None:
    (folder / LEDGER).unlink()
    (folder / HEAD).unlink()


def delete_ledger_and_folders(folder: Path) -> None:
    (folder / LEDGER).unlink()
    shutil.rmtree(folder / "releases")


def begin_an_empty_ledger_elsewhere(folder: Path) -> None:
    """A fresh ledger of the same name and key, in place of the one that was here."""
    (folder / "elsewhere").mkdir()
    set_up(folder / "elsewhere")
    shutil.copy(folder / f"{LEDGER}.key", folder / "elsewhere")
    with Ledger.open(folder / LEDGER, key=None, read_only=True) as ledger:
        named: dict[str, Any] = {
            "series": ledger.series,
            "policy_text": ledger.policy_text,
            "fingerprint": ledger.fingerprint,
        }
    Ledger.create(folder / "elsewhere" / LEDGER, key=Key.need(folder / LEDGER), **named).close()
    shutil.copy(folder / "elsewhere" / LEDGER, folder / LEDGER)


def cut_the_last_release_out(folder: Path) -> None:
    with duckdb.connect(folder / LEDGER) as database:
        for table in (*schema.TABLES, "domains"):
            database.execute(f"DELETE FROM {table} WHERE release = 3").fetchall()
        database.execute("DELETE FROM releases WHERE number = 3").fetchall()


def cut_the_last_release_out_of_the_log_too(folder: Path) -> None:
    cut_the_last_release_out(folder)
    with duckdb.connect(folder / LEDGER) as database:
        database.execute("DELETE FROM log WHERE release = 3").fetchall()


def lose_a_folder(folder: Path) -> None:
    (folder / "releases/clinic/0002-q2").rename(folder / "0002-q2")


def rename_a_folder(folder: Path) -> None:
    (folder / "releases/clinic/0002-q2").rename(folder / "releases/clinic/0002-other")


def find_a_folder_of_the_next_release(folder: Path) -> None:
    shutil.copytree(folder / "releases/clinic/0003-q3", folder / "releases/clinic/0004-q4")


def find_a_folder_far_beyond(folder: Path) -> None:
    (folder / "releases/clinic/10000-later").mkdir()


def lose_the_head(folder: Path) -> None:
    (folder / HEAD).unlink()


def spoil_the_head(folder: Path) -> None:
    (folder / HEAD).write_text("nonsense\n")


def forge_the_head(folder: Path) -> None:
    edit(folder / HEAD, '"rows": 7', '"rows": 5')


def edit_the_report(folder: Path) -> None:
    edit(folder / "releases/clinic/0001-q1/report.html", "<html", "<html ")


def edit_what_the_release_says(folder: Path) -> None:
    edit(folder / "releases/clinic/0003-q3/release.json", '"series"', '"Series"')


def edit_the_dictionary(folder: Path) -> None:
    edit(folder / "releases/clinic/0003-q3/dictionary.csv", "age", "Age")


def edit_the_data(folder: Path) -> None:
    edit(folder / "releases/clinic/0002-q2/data.csv", "\n", "\n\n")


FORGOTTEN: dict[Callable[[Path], None], str] = {
    put_back_the_old_ledger: "older than its releases",
    put_back_ledger_and_head: "older than its releases",
    put_back_the_ledger_and_remove_the_folder: "older than its head",
    put_back_the_ledger_and_lose_the_head: "head of the ledger is not beside its key",
    delete_the_ledger: "was here, and is not any more",
    delete_the_ledger_and_its_head: "is a release that the ledger does not know",
    delete_ledger_and_folders: "was here, and is not any more",
    begin_an_empty_ledger_elsewhere: "older than its head",
    cut_the_last_release_out: "1 releases of the log are missing from the list",
    cut_the_last_release_out_of_the_log_too: "older than its head",
    lose_a_folder: "its folder is not there",
    rename_a_folder: "does not know",
    find_a_folder_of_the_next_release: "does not know",
    find_a_folder_far_beyond: "does not know",
    lose_the_head: "head of the ledger is not beside its key",
    spoil_the_head: "does not say how far a ledger was",
    forge_the_head: "was not written with the key",
    edit_the_report: "release 1 is not what was recorded (report.html)",
    edit_what_the_release_says: "release 3 is not what was recorded (release.json)",
    edit_the_dictionary: "release 3 is not what was recorded (dictionary.csv)",
    edit_the_data: "release 2 is not what was recorded (data.csv)",
}


@pytest.mark.parametrize("forget", FORGOTTEN, ids=lambda forget: forget.__name__)
def test_nothing_is_planned_or_published_on_it(series: Path, forget: Callable[[Path], None]) -> None:
    forget(series)
    before = sorted(series.glob("releases/*/*"))
    for command in (("plan", "q4.csv", *RULES), ("plan", "q4.csv", *RULES, "--out", "next.plan"), NEXT):
        run = sequester if command is NEXT else invoke
        done = run(*command, cwd=series)
        assert done.returncode == 6, (command, done.stdout, done.stderr)
        assert FORGOTTEN[forget] in " ".join(done.stderr.split()), done.stderr
        assert CANARY not in done.stderr + done.stdout
    assert sorted(series.glob("releases/*/*")) == before
    assert not (series / "next.plan").exists()
    # Nothing was made that would hide it from the next command.
    assert sequester(*NEXT, cwd=series).returncode == 6


# Eight edits by SQL that keep the file a good DuckDB database; the chain cannot be made again without the key.
EDITS = {
    "a box": "UPDATE classes SET lo = [lo[1] + 1, lo[2]] WHERE release = 1",
    "a count": "UPDATE counts SET n = n + 1 WHERE release = 2 AND class = 0",
    "a value": "UPDATE people SET codes = [codes[1] + 1] WHERE person = 3",
    "a person": "UPDATE people SET high = high + 1 WHERE person = 3",
    "a trajectory": "UPDATE trajectories SET class = 1 WHERE release = 3 AND trajectory = 0",
    "who was where before": "DELETE FROM state WHERE release = 1",
    "a row of a release to come": "INSERT INTO state VALUES (4, 0, 0)",
    "a domain of a release to come": "INSERT INTO domains SELECT 4, attribute, json FROM domains",
    "who waits": "INSERT INTO queue VALUES (3, 1, 2, 3)",
    "an entry": "UPDATE releases SET purpose = 'another' WHERE number = 1",
    "a status": "UPDATE releases SET status = 'begun' WHERE number = 3",
    "the policy": "UPDATE meta SET value = value || ' ' WHERE fact = 'policy_text'",
    "the log": "UPDATE log SET detail = 'x' WHERE number = 1",
    "a domain": "UPDATE domains SET json = replace(json, 'Jena', 'Bonn') WHERE attribute = 'city'",
    "another fact": "INSERT INTO meta VALUES ('after_releases', '3')",
}


@pytest.mark.parametrize("what", EDITS)
def test_nothing_is_published_on_what_was_edited(series: Path, what: str) -> None:
    with duckdb.connect(series / LEDGER) as database:
        database.execute(EDITS[what]).fetchall()
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 6
    for command in (("plan", "q4.csv", *RULES), NEXT):
        done = (sequester if command is NEXT else invoke)(*command, cwd=series)
        assert done.returncode == 6, (done.stdout, done.stderr)
        assert "damaged" in done.stderr
        assert CANARY not in done.stderr
    assert len([*series.glob("releases/clinic/*")]) == 3


def test_a_forger_without_the_key_makes_all_hashes_fit_and_is_refused(series: Path) -> None:
    with duckdb.connect(series / LEDGER) as database:
        database.execute("UPDATE log SET \"at\" = '2020-01-01T00:00:00+00:00' WHERE number = 2").fetchall()
        rows = database.execute("SELECT * FROM log ORDER BY number").fetchall()
        names, previous = [column[0] for column in database.description or ()], ""
        for row in rows:
            previous = chain.event(previous, dict(zip(names, row, strict=True)))
            database.execute("UPDATE log SET hash = ? WHERE number = ?", [previous, row[0]]).fetchall()
    done = sequester(*NEXT, cwd=series)
    assert (done.returncode, "of the log was not made with this key" in done.stderr) == (6, True)


def test_an_old_export_is_not_imported_over_newer_releases(series: Path) -> None:
    (series / LEDGER).unlink()
    done = sequester("ledger", "import", "old-export", *RULES, cwd=series)
    assert done.returncode == 6
    assert "older than its releases" in done.stderr
    assert "older than its head" in done.stderr
    assert not (series / LEDGER).exists()
    # Under another name it is no better.
    shutil.copy(series / f"{LEDGER}.key", series / "other.ledger.key")
    done = sequester("ledger", "import", "old-export", "-l", "other.ledger", cwd=series)
    assert (done.returncode, (series / "other.ledger").exists()) == (6, False)


def test_a_new_export_is_imported_and_the_series_goes_on(series: Path) -> None:
    assert invoke("ledger", "export", "export", *RULES, cwd=series).returncode == 0
    (series / LEDGER).unlink()
    (series / HEAD).unlink()
    done = sequester("ledger", "import", "export", *RULES, cwd=series)
    assert done.returncode == 0, done.stderr
    done = sequester(*NEXT, cwd=series)
    assert done.returncode == 0, done.stderr
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 0


def test_a_release_that_was_only_in_the_log_of_the_database_and_lost_with_it_is_missed(series: Path) -> None:
    """The last release is visible, and the file is as it was before, as when the .wal beside it was not copied."""
    before = (series / LEDGER).read_bytes()
    assert invoke(*NEXT, cwd=series).returncode == 0
    (series / LEDGER).write_bytes(before)
    done = sequester("publish", "q4.csv", *RULES, "--yes", "--name", "q5", cwd=series)
    assert (done.returncode, "older than its head" in done.stderr) == (6, True)


def test_a_series_under_another_name_is_recognised(series: Path) -> None:
    edit(series / "policy.yaml", "series: clinic", "series: clinique")
    for command in (("plan", "q4.csv", *RULES), NEXT):
        done = sequester(*command, cwd=series)
        assert done.returncode == 6
        assert "clinic has releases of a table with the same columns" in done.stderr
    assert not (series / "releases/clinique").exists()
    # Without the heads the folders still tell.
    for head in series.glob("*.head"):
        head.unlink()
    assert sequester(*NEXT, cwd=series).returncode == 6
    done = sequester(*NEXT, "--everybody-is-new", cwd=series)
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in (series / "releases/clinique").iterdir()] == ["0001-q4"]


def test_what_is_lost_for_good_is_accepted_once_and_remembered(series: Path) -> None:
    put_back_the_old_ledger(series)
    done = sequester(*NEXT, "--accept-loss", cwd=series)
    assert done.returncode == 0, done.stderr
    log = json.loads(invoke("history", "--log", "--format", "json", *RULES, cwd=series).stdout)["log"]
    accepted = [event for event in log if event["action"] == "loss accepted"]
    assert len(accepted) == 1
    assert "unknown 0003-q3" in accepted[0]["detail"]
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 0
    # The folder that is accepted is that one, as it is.
    edit_what_the_release_says(series)
    assert sequester("plan", "q4.csv", *RULES, "--name", "q5", cwd=series).returncode == 6


def test_a_lost_ledger_is_begun_again_only_deliberately(series: Path) -> None:
    delete_the_ledger(series)
    done = sequester(*NEXT, "--accept-loss", cwd=series)
    assert done.returncode == 0, done.stderr
    assert (series / "releases/clinic/0001-q4").is_dir()
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 0


def test_damage_is_no_loss_that_can_be_accepted(series: Path) -> None:
    cut_the_last_release_out(series)
    assert sequester(*NEXT, "--accept-loss", cwd=series).returncode == 6
    assert invoke("ledger", "verify", *RULES, "--accept-loss", cwd=series).returncode == 6


def test_verify_records_what_is_accepted_and_plans_go_on(series: Path) -> None:
    lose_a_folder(series)
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 6
    assert invoke("ledger", "verify", *RULES, "--accept-loss", cwd=series).returncode == 0
    assert invoke("plan", "q4.csv", *RULES, cwd=series).returncode == 0


def test_a_head_that_is_lost_again_is_trouble_again(series: Path) -> None:
    for _ in range(2):
        lose_the_head(series)
        assert invoke("plan", "q4.csv", *RULES, cwd=series).returncode == 6
        assert invoke("ledger", "verify", *RULES, "--accept-loss", cwd=series).returncode == 0
        assert invoke("plan", "q4.csv", *RULES, cwd=series).returncode == 0


def test_strangers_are_listed_and_do_no_harm(series: Path) -> None:
    (series / "releases/clinic/notes.txt").write_text("x")
    found = invoke("ledger", "verify", *RULES, "--format", "json", cwd=series)
    assert json.loads(found.stdout)["strangers"] == ["clinic/notes.txt"]
    assert found.returncode == 0
    assert invoke("plan", "q4.csv", *RULES, cwd=series).returncode == 0


def test_a_file_that_was_added_to_a_release_is_wrong_and_stops_nothing(series: Path) -> None:
    """Readers would take it for a part of the release; nothing that follows depends on it."""
    (series / "releases/clinic/0001-q1/more.csv").write_text("x")
    found = invoke("ledger", "verify", *RULES, cwd=series)
    assert found.returncode == 6
    assert "release 1: more.csv was added to its folder; move it away" in " ".join(found.stdout.split())
    assert invoke("plan", "q4.csv", *RULES, cwd=series).returncode == 0


def test_two_policies_side_by_side_never_touch_each_other(series: Path) -> None:
    (series / "wards.yaml").write_text((series / "policy.yaml").read_text().replace("series: clinic", "series: wards"))
    edit(series / "wards.yaml", "illness: {role: sensitive}", "illness: {role: sensitive}\n  ward: {role: insensitive}")
    rows = "".join(f"{','.join(map(str, row))},a\n" for row in people(60))
    (series / "wards.csv").write_text(f"id,age,city,illness,ward\n{rows}")
    draft = series / "releases/clinic/.0004-q4.draft"
    draft.mkdir()
    assert sequester("publish", "wards.csv", "-p", "wards.yaml", "--yes", cwd=series).returncode == 0
    # What another series is about to show is not swept away.
    assert draft.is_dir()
    assert sequester(*NEXT, cwd=series).returncode == 0
    assert not draft.exists()
    for policy in ("policy.yaml", "wards.yaml"):
        assert invoke("ledger", "verify", "-p", policy, cwd=series).returncode == 0


def test_a_series_is_moved_with_all_that_belongs_to_it(series: Path, tmp_path: Path) -> None:
    moved = series.rename(tmp_path / "moved")
    assert sequester(*NEXT, cwd=moved).returncode == 0
    assert sequester("ledger", "verify", *RULES, cwd=moved).returncode == 0


def test_the_head_that_releases_show_is_the_chain_that_they_were_made_upon(series: Path) -> None:
    with Ledger.open(series / LEDGER, key=None, read_only=True) as ledger:
        entries = ledger.releases()
    for entry in entries:
        said = json.loads((series / "releases/clinic" / entry.folder / "release.json").read_text())
        assert said["head"] == entry.previous
        assert set(said["digests"]) == {"data.csv", "dictionary.csv", "report.html"}
        assert set(entry.files) == {*said["digests"], "release.json"}
