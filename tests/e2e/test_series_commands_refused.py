"""What a series refuses: plans that are stale, policies and people that are not what they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clinic import CANARY, LEDGER, POLICY, change, edit, people, publish_two, set_up, write
from command import invoke

RULES = ("-p", "policy.yaml")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "series"))


def refused(series: Path, *arguments: object, code: int) -> str:
    """What is said when a command ends with this code; nothing is published, and nothing private said."""
    before = (series / LEDGER).read_bytes()
    folders = sorted(series.glob("releases/*/*"))
    done = invoke(*arguments, cwd=series)
    assert done.returncode == code, done.stdout + done.stderr
    assert "internal error" not in done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert (series / LEDGER).read_bytes() == before
    assert sorted(series.glob("releases/*/*")) == folders
    return " ".join(done.stderr.split())


@pytest.fixture
def planned(series: Path) -> Path:
    done = invoke("plan", "q3.csv", *RULES, "--out", "next.plan", cwd=series)
    assert done.returncode == 0, done.stderr
    return series


def test_a_plan_is_stale_when_the_ledger_has_moved_on(planned: Path) -> None:
    assert invoke("publish", "q2.csv", *RULES, "--yes", "--again", "--name", "between", cwd=planned).returncode == 0
    said = refused(planned, "publish", "next.plan", *RULES, code=5)
    assert "the ledger has moved on since this release was planned; plan it again" in said


@pytest.mark.parametrize(
    "table",
    [people(92), people(90), [*people(90), (f"{CANARY}-new", 50, "Bonn", f"{CANARY} flu")]],
    ids=["one more", "one fewer", "somebody else"],
)
def test_a_plan_is_stale_when_the_table_has_changed(planned: Path, table: list[tuple[str, int, str, str]]) -> None:
    write(planned / "q3.csv", table)
    assert "plan it again" in refused(planned, "publish", "next.plan", *RULES, code=5)


def test_a_plan_holds_for_the_same_table_in_another_order(planned: Path) -> None:
    write(planned / "q3.csv", people(91)[::-1])
    assert invoke("publish", "next.plan", *RULES, cwd=planned).returncode == 0


def test_a_plan_is_stale_when_the_method_has_changed(planned: Path) -> None:
    edit(planned / "policy.yaml", "name: mondrian", "name: merge")
    assert "plan it again" in refused(planned, "publish", "next.plan", *RULES, code=5)


def test_a_plan_of_another_series_is_stale(planned: Path, tmp_path: Path) -> None:
    other = set_up(tmp_path)
    edit(other / "policy.yaml", "series: clinic", "series: other")
    assert invoke("publish", "q1.csv", *RULES, "--yes", cwd=other).returncode == 0
    done = invoke("publish", planned / "next.plan", *RULES, cwd=other)
    assert done.returncode == 5
    assert "another policy" in done.stderr
    assert len([*other.glob("releases/*/*")]) == 1


def test_a_published_plan_is_not_published_twice(planned: Path) -> None:
    assert invoke("publish", "next.plan", *RULES, cwd=planned).returncode == 0
    refused(planned, "publish", "next.plan", *RULES, code=5)


@pytest.mark.parametrize("text", ["", "{", '{"sequester-plan": 1}', '{"sequester-plan": 99}', "id,age\n1,2\n"])
def test_a_file_that_is_no_plan_any_more_is_refused(series: Path, text: str) -> None:
    (series / "next.plan").write_text(text)
    assert "is not a plan" in refused(series, "publish", "next.plan", *RULES, code=6)


def test_a_plan_whose_table_is_gone_is_refused(planned: Path) -> None:
    (planned / "q3.csv").unlink()
    assert "there is no such file any more" in refused(planned, "publish", "next.plan", *RULES, code=6)


@pytest.mark.parametrize("command", ["plan", "publish"])
def test_a_table_that_is_not_there_is_refused(series: Path, command: str) -> None:
    extra = ("--yes",) if command == "publish" else ()
    assert "there is no such file" in refused(series, command, "q9.csv", *RULES, *extra, code=6)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("k: 2", "k: 3", "protect.k"),
        ("confidence: 0.6", "confidence: 0.9", "protect.confidence"),
        ("range: [0, 99]", "range: [0, 90]", "attributes.age"),
        ("{role: sensitive}", "{role: sensitive, ordinary: [CANARY-7f3a flu]}", "attributes.illness"),
        ("  illness:", "  note: {role: insensitive}\n  illness:", "attributes.note"),
        ("person: id", "person: number", "person"),
    ],
)
def test_what_was_promised_cannot_be_changed(series: Path, old: str, new: str, key: str) -> None:
    edit(series / "policy.yaml", old, new)
    said = refused(series, "publish", "q3.csv", *RULES, "--yes", code=6)
    assert f"error: {key}: is not what it was when the series began" in said


def test_how_releases_are_made_and_written_may_change(series: Path) -> None:
    edit(series / "policy.yaml", "name: mondrian}", "name: merge}\noutput: {format: parquet}\ninfeasible: suppress")
    done = invoke("publish", "q3.csv", *RULES, "--yes", cwd=series)
    assert done.returncode == 0, done.stderr
    assert (series / "releases/clinic/0003-q3/data.parquet").is_file()


def test_the_policy_of_another_series_is_refused(series: Path) -> None:
    edit(series / "policy.yaml", "series: clinic", "series: other")
    said = refused(series, "publish", "q3.csv", *RULES, "--ledger", LEDGER, "--yes", code=6)
    assert "ledger of another series" in said


def test_the_policy_of_another_table_is_refused(series: Path) -> None:
    (series / "other.csv").write_text("name,weight\nx,1\ny,2\n")
    said = refused(series, "publish", "other.csv", *RULES, "--yes", code=6)
    assert "none of the 4 columns of the policy is in the table" in said
    (series / "other.csv").write_text("id,age,weight\n1,1,1\n2,2,2\n")
    said = refused(series, "publish", "other.csv", *RULES, "--yes", code=6)
    assert "city" in said
    assert "illness" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [("Jena;East;*", "Jena;West;*"), ("Halle;East;*\n", "")],
    ids=["moved", "removed"],
)
def test_a_hierarchy_file_that_changed_is_refused(series: Path, old: str, new: str) -> None:
    edit(series / "cities.csv", old, new)
    assert "city" in refused(series, "publish", "q3.csv", *RULES, "--yes", code=6)


def test_a_person_whose_permanent_value_changed_is_refused(series: Path) -> None:
    change(series / "q3.csv", 5, lambda row: (*row[:3], f"{CANARY} gout"))
    said = refused(series, "publish", "q3.csv", *RULES, "--yes", code=6)
    assert "column 'illness': 1 person has other values than in an earlier release" in said


def test_a_person_whose_quasi_identifier_changed_is_refused(series: Path) -> None:
    change(series / "q3.csv", 5, lambda row: (row[0], (row[1] + 1) % 100, *row[2:]))
    said = refused(series, "publish", "q3.csv", *RULES, "--yes", code=6)
    assert "1 person has other values than in an earlier release (row 6)" in said


def test_a_person_whose_attribute_may_change_is_counted(tmp_path: Path) -> None:
    set_up(tmp_path)
    edit(tmp_path / "policy.yaml", "range: [0, 99]", "range: [0, 99], changes: true")
    assert invoke("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path).returncode == 0
    change(tmp_path / "q2.csv", 5, lambda row: (row[0], (row[1] + 50) % 100, *row[2:]))
    done = invoke("plan", "q2.csv", *RULES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of them changed" in done.stdout


def test_people_who_left_and_come_back_are_counted(tmp_path: Path) -> None:
    set_up(tmp_path)
    edit(tmp_path / "policy.yaml", "name: mondrian", "name: merge")
    # Whoever came together leaves together and comes back together: whole classes.
    for table, name, says in (
        ("q1", "one", "60 new"),
        ("q2", "two", "30 new, 60 stay"),
        ("q1", "three", "0 new, 60 stay, 30 left"),
        ("q2", "four", "0 new, 30 returned, 60 stay"),
    ):
        done = invoke("publish", f"{table}.csv", *RULES, "--yes", "--again", "--name", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"changes   {says}" in done.stdout
        assert "waiting   nobody" in done.stdout


@pytest.mark.parametrize("name", ["../up", "a b", "", ".hidden"])
def test_a_name_that_is_no_file_name_is_refused(series: Path, name: str) -> None:
    said = refused(series, "publish", "q3.csv", *RULES, "--yes", "--name", name, code=6)
    assert "letters, digits" in said


def test_a_name_is_given_once(series: Path) -> None:
    said = refused(series, "publish", "q3.csv", *RULES, "--yes", "--name", "q1", code=6)
    assert "a release of this name is in the ledger already" in said


def test_without_its_key_nothing_is_planned(series: Path) -> None:
    (series / "clinic.ledger.key").rename(series / "gone")
    assert "the key is not there" in refused(series, "plan", "q3.csv", *RULES, code=6)


def test_people_that_cannot_be_hidden_are_refused_when_the_policy_says_so(series: Path) -> None:
    edit(series / "policy.yaml", "name: mondrian}", "name: mondrian}\ninfeasible: refuse")
    assert "1 who came cannot be hidden" in refused(series, "publish", "q3.csv", *RULES, "--yes", code=4)


def test_a_policy_may_be_corrected_until_the_first_release(tmp_path: Path) -> None:
    set_up(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY.replace("range: [0, 99]", "range: [0, 9]"))
    assert invoke("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path).returncode == 6
    (tmp_path / "policy.yaml").write_text(POLICY.replace("k: 2", "k: 3"))
    assert invoke("plan", "q1.csv", *RULES, "--out", "first.plan", cwd=tmp_path).returncode == 0
    (tmp_path / "policy.yaml").write_text(POLICY)
    before = (tmp_path / LEDGER).read_bytes()
    assert invoke("plan", "q1.csv", *RULES, cwd=tmp_path).returncode == 0
    assert (tmp_path / LEDGER).read_bytes() == before
    stale = invoke("publish", "first.plan", *RULES, cwd=tmp_path)
    assert stale.returncode == 5
    assert "another policy" in stale.stderr
    done = invoke("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    edit(tmp_path / "policy.yaml", "k: 2", "k: 3")
    refused(tmp_path, "publish", "q2.csv", *RULES, "--yes", code=6)
