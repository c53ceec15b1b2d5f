"""One series has one ledger: another place for it, or the same table once more, is never taken without a word."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

import sequester as sq
from clinic import LEDGER, edit, people, publish_two, set_up, write
from command import invoke, sequester, sequester_answered

RULES = ("-p", "policy.yaml")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("published"))


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "clinic"))


def visible(folder: Path) -> list[str]:
    return sorted(str(place.relative_to(folder)) for place in folder.rglob("releases/clinic/*"))


@pytest.mark.parametrize("ledger", ["clinc.ledger", "archive/clinic.ledger"])
@pytest.mark.parametrize("left", ["all", "releases", "head"])
def test_a_mistyped_ledger_does_not_begin_the_series_again(folder: Path, ledger: str, left: str) -> None:
    """Whoever had both releases 0001 could subtract them."""
    (folder / "archive").mkdir()
    said = "is the ledger that the policy names, and exists"
    if left != "all":
        (folder / LEDGER).unlink()
        said = "does not know" if left == "releases" else "a ledger of this series was here"
    if left == "releases":
        (folder / f"{LEDGER}.head").unlink()
    if left == "head":
        shutil.rmtree(folder / "releases")
    before = visible(folder)
    for command in (
        ("plan", "q3.csv"),
        ("plan", "q3.csv", "--out", "next.plan"),
        ("publish", "q3.csv", "--yes"),
        ("publish", "q3.csv", "--yes", "--everybody-is-new"),
    ):
        done = invoke(*command, *RULES, "-l", ledger, cwd=folder)
        assert done.returncode == 6, (command, done.stdout)
        assert said in " ".join(done.stderr.split())
    assert visible(folder) == before
    assert not (folder / ledger).exists()


def test_a_ledger_that_was_begun_elsewhere_gets_no_first_release(tmp_path: Path) -> None:
    """It was empty when the ledger that the policy names was made."""
    set_up(tmp_path)
    assert invoke("plan", "q1.csv", "--out", "a.plan", *RULES, "-l", "a/clinic.ledger", cwd=tmp_path).returncode == 0
    assert invoke("publish", "q1.csv", "--yes", *RULES, cwd=tmp_path).returncode == 0
    for what in ("a.plan", "q2.csv"):
        done = sequester("publish", what, "--yes", *RULES, "-l", "a/clinic.ledger", cwd=tmp_path)
        assert done.returncode == 6
        assert "clinic.ledger: is the ledger that the policy names" in " ".join(done.stderr.split())
    assert visible(tmp_path) == ["releases/clinic/0001-q1"]
    done = invoke("publish", "q2.csv", "--yes", "--accept-loss", *RULES, "-l", "a/clinic.ledger", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_series_opened_in_another_folder_is_not_begun_again(folder: Path, tmp_path: Path) -> None:
    policy = sq.Policy.load(folder / "policy.yaml")
    with pytest.raises(sq.LedgerError, match="is the ledger that the policy names, and exists"):
        sq.Series.open(tmp_path / "elsewhere" / LEDGER, policy)
    assert not (tmp_path / "elsewhere").exists()
    # Named in the policy it is the right one, and a series under its own name is its own.
    edit(folder / "policy.yaml", "series: clinic\n", "series: wards\n")
    other = sq.Series.open(tmp_path / "elsewhere" / "wards.ledger", sq.Policy.load(folder / "policy.yaml"))
    assert other.releases() == []


def test_begun_again_deliberately_it_is_in_the_log(folder: Path) -> None:
    words = (*RULES, "-l", "archive/clinic.ledger")
    done = invoke("publish", "q3.csv", "--yes", "--accept-loss", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "another ledger" in invoke("history", "--log", *words, cwd=folder).stdout


def test_a_table_that_was_published_is_published_once_more_only_on_request(folder: Path) -> None:
    write(folder / "same.csv", people(90))
    assert invoke("plan", "same.csv", "--out", "same.plan", *RULES, cwd=folder).returncode == 0
    for what in ("same.csv", "same.plan"):
        done = invoke("publish", what, "--yes", *RULES, cwd=folder)
        assert done.returncode == 130
        assert done.stderr.split("\n")[-2] == (
            "This table was published already as release 2; --again publishes it once more. Nothing was published."
        )
    assert visible(folder) == ["releases/clinic/0001-q1", "releases/clinic/0002-q2"]
    code, _ = sequester_answered("publish", "same.csv", *RULES, cwd=folder, answer="y\n")
    assert code == 0
    done = invoke("publish", "same.csv", "--yes", "--again", "--name", "more", *RULES, cwd=folder)
    assert done.returncode == 0, done.stderr
    series = sq.Series.open(folder / LEDGER, sq.Policy.load(folder / "policy.yaml"))
    with pytest.raises(sq.DataError, match=r"published already as release 4, and nothing was published; again=True"):
        series.publish(folder / "same.csv", name="once")
    series.publish(folder / "same.csv", name="once", again=True)
    assert len(series.releases()) == 5


def test_the_command_that_a_plan_prints_is_one_that_a_shell_runs(folder: Path) -> None:
    shutil.copy(folder / "q2.csv", folder / "q 3; echo $HOME.csv")
    done = invoke("plan", "q 3; echo $HOME.csv", "--no-price", *RULES, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert shlex.split(done.stdout.splitlines()[-1])[:3] == ["sequester", "publish", "q 3; echo $HOME.csv"]
