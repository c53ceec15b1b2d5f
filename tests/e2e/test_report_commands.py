"""`sequester report`: the public page as it was published, and the internal one, which is private."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from clinic import LEDGER, publish_two
from command import invoke

RULES = ("-p", "policy.yaml")
INTERNAL = ("--audience", "internal")
DATA = ("--data", "q1.csv", "--data", "q2.csv")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "series"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_public_report_is_copied_to_the_letter(series: Path) -> None:
    done = invoke("report", "q2", *RULES, "--out", "copy.html", cwd=series)
    assert (done.returncode, done.stdout) == (0, "copy.html\n")
    assert (series / "copy.html").read_bytes() == (series / "releases/clinic/0002-q2/report.html").read_bytes()


def test_a_page_that_is_there_is_replaced_only_by_force(series: Path) -> None:
    (series / "copy.html").write_text("mine")
    assert invoke("report", "2", *RULES, "--out", "copy.html", cwd=series).returncode == 6
    assert (series / "copy.html").read_text() == "mine"
    assert invoke("report", "2", *RULES, "--out", "copy.html", "--force", cwd=series).returncode == 0


def test_the_internal_report_is_its_owners_and_lies_beside_the_ledger(series: Path) -> None:
    done = invoke("report", "2", *RULES, *INTERNAL, cwd=series)
    assert done.returncode == 0, done.stderr
    page = series / "0002-q2-internal.html"
    assert done.stdout == f"{page.name}\n"
    assert mode(page) == 0o600
    assert "Internal: keep private" in page.read_text()
    assert not list((series / "releases").rglob("*internal*"))


def test_with_the_tables_it_says_whom_naive_releases_would_expose(series: Path) -> None:
    done = invoke("report", "2", *RULES, *INTERNAL, *DATA, "--out", "in.html", "--format", "json", cwd=series)
    assert done.returncode == 0, done.stderr
    told = {"number": 2, "name": "q2", "audience": "internal", "report": "in.html", "withdrawn": None}
    assert json.loads(done.stdout) == told
    text = (series / "in.html").read_text()
    assert "Each table anonymized on its own" in text
    assert "Before and after" in text
    assert mode(series / "in.html") == 0o600


def test_an_internal_report_names_no_person_and_no_seed(series: Path) -> None:
    import csv

    assert invoke("report", "2", *RULES, *INTERNAL, *DATA, "--out", "in.html", cwd=series).returncode == 0
    text = (series / "in.html").read_text()
    with (series / "q2.csv").open() as stream:
        ids = [row["id"] for row in csv.DictReader(stream)]
    assert len(ids) > 20
    assert not any(f">{one}<" in text or f" {one} " in text for one in ids)
    assert "seed" not in text


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("2", *RULES, "--data", "q1.csv"), 2, "nothing public is made from tables"),
        (("2", "--ledger", LEDGER, *INTERNAL), 2, "give the policy"),
        (("2", *RULES, *INTERNAL, "--data", "q1.csv"), 6, "give those of releases 1 to 2"),
        (("9", *RULES), 2, "no release has this number"),
    ],
)
def test_what_cannot_be_reported_is_refused_in_words(
    series: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    done = invoke("report", *options, cwd=series)
    assert done.returncode == code
    assert said in " ".join(done.stderr.split()).replace("│ ", "").replace(" │", "")
    assert not (series / "0002-q2-internal.html").exists()


def test_a_report_that_was_edited_is_not_handed_out(series: Path) -> None:
    page = series / "releases/clinic/0002-q2/report.html"
    page.write_text(page.read_text() + "<!-- more -->")
    done = invoke("report", "2", *RULES, cwd=series)
    assert done.returncode == 6
    assert "is not what was recorded" in done.stderr


def test_ledgers_that_kept_no_sketch_are_reported_with_fewer_pictures(series: Path) -> None:
    from sequester.ledger import Ledger, Place
    from sequester.publish.reporting import told_of

    with Ledger.open(Place.of(series / LEDGER), key=None, read_only=True) as ledger:
        entries = ledger.releases()
    assert all(one.sketch is not None for one in told_of(entries))
    from dataclasses import replace

    older = [replace(entry, summary={k: v for k, v in entry.summary.items() if k != "published"}) for entry in entries]
    assert [one.sketch for one in told_of(older)] == [None, None]
