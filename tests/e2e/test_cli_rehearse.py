"""`sequester rehearse` as people run it: a table, a picture, JSON, a recommended policy, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv as csv
import pytest

import sequester as sq
from command import invoke
from rehearsed import people, waves

CANARY = "CANARY-7f3a"
POLICY = """\
# Our panel.
version: 1
series: panel
person: id
attributes:
  age:  {role: quasi-identifier, kind: number, range: [0, 99]}   # in years
  town: {role: quasi-identifier}
  illness: {role: sensitive}
protect: {k: 4, confidence: 0.6, inferred: 2}   # promised in the contract
method: {name: merge}
"""


def write(folder: Path, tables: list[pa.Table]) -> list[str]:
    (folder / "policy.yaml").write_text(POLICY)
    for number, table in enumerate(tables, 1):
        csv.write_csv(table, folder / f"q{number}.csv")
    return [f"q{number}.csv" for number in range(1, len(tables) + 1)]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write(tmp_path, waves())


def test_a_rehearsal_ends_with_a_policy_that_checks(tmp_path: Path, files: list[str]) -> None:
    how = ("-p", "policy.yaml", "--methods", "pods,merge", "--out", "recommended.yaml", "--picture", "r.svg")
    done = invoke("rehearse", *files, *how, "--processes", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("each wave on its own", "pods, decoys 0.25", "Loss by column", "Recommended: pods", "The rule:"):
        assert said in done.stdout
    text = (tmp_path / "recommended.yaml").read_text()
    assert text.startswith("# Recommended by a rehearsal of 3 waves")
    for kept in ("# Our panel.", "# in years", "# promised in the contract"):
        assert kept in text
    assert sq.Policy.load(tmp_path / "recommended.yaml").method.name == "pods"
    assert invoke("check", "recommended.yaml", "q1.csv", cwd=tmp_path).returncode == 0
    drawn = ElementTree.fromstring((tmp_path / "r.svg").read_text())
    assert drawn.attrib["role"] == "img"
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}path")) > 10
    assert sorted(place.name for place in tmp_path.iterdir()) == sorted(
        [*files, "policy.yaml", "recommended.yaml", "r.svg"]
    )


def test_pairs_after_vary_are_varied_too(tmp_path: Path, files: list[str]) -> None:
    how = ("-p", "policy.yaml", "--vary", "k=4,8", "confidence=.6,.7", "--format", "json", "--processes", 1)
    done = invoke("rehearse", *files, *how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["varied"] == ["k", "confidence"]
    points = [trial["point"] for trial in told["trials"] if not trial["naive"]]
    assert points == [{"k": k, "confidence": c} for k in (4, 8) for c in (0.6, 0.7)]
    assert told["recommendation"]["name"] == "merge (k 4, confidence 0.6)"
    assert len(told["waves"]) == 3
    table = invoke("rehearse", *files, "-p", "policy.yaml", "--vary", "k=8", "--processes", 1, cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    assert table.stdout.count("merge") >= 4


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (("--vary", "k"), "give a name and numbers"),
        (("--vary", "k=3,x"), "give a name and numbers"),
        (("--vary", "k=inf"), "give a name and numbers"),
        (("--out", "policy.yaml"), "policy.yaml exists"),
        (("--out", "policy.yaml", "--force"), "is the policy itself"),
        (("--picture", "q1.csv"), "q1.csv exists"),
    ],
)
def test_usage_is_checked_before_anything_is_read(
    tmp_path: Path, files: list[str], how: tuple[str, ...], said: str
) -> None:
    done = invoke("rehearse", *files, "-p", "policy.yaml", *how, cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_unknown_names_are_mistakes_of_what_was_asked(tmp_path: Path, files: list[str]) -> None:
    done = invoke("rehearse", *files, "-p", "policy.yaml", "--vary", "cake=1,2", cwd=tmp_path)
    assert done.returncode == 6
    assert "cake: cannot be varied" in done.stderr
    done = invoke("rehearse", *files, "-p", "policy.yaml", "--methods", "magic", cwd=tmp_path)
    assert done.returncode == 6
    assert "magic: is no method" in done.stderr


def test_a_policy_that_names_files_is_recommended_beside_them(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "town.csv").write_text("Kiel;North;*\nBremen;North;*\nCelle;South;*\nUlm;South;*\n")
    (tmp_path / "policy.yaml").write_text(
        POLICY.replace("town: {role: quasi-identifier}", "town: {role: quasi-identifier, hierarchy: town.csv}")
    )
    (tmp_path / "elsewhere").mkdir()
    done = invoke("rehearse", *files, "-p", "policy.yaml", "--out", "elsewhere/p.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "same folder" in " ".join(done.stderr.replace("│", " ").split())
    done = invoke(
        "rehearse", *files, "-p", "policy.yaml", "--methods", "grow", "--out", "p.yaml", "--processes", 1, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert sq.Policy.load(tmp_path / "p.yaml").method.name == "grow"


def test_no_variant_that_holds_is_exit_code_4_and_no_policy(tmp_path: Path) -> None:
    files = write(tmp_path, waves(illness=["flu"] * 240))
    how = ("-p", "policy.yaml", "--methods", "merge", "--out", "p.yaml", "--picture", "p.svg", "--processes", 1)
    done = invoke("rehearse", *files, *how, cwd=tmp_path)
    assert done.returncode == 4
    assert "No variant keeps" in done.stdout
    assert not (tmp_path / "p.yaml").exists()
    assert (tmp_path / "p.svg").exists()


def test_a_promise_that_is_not_comparable_is_not_recommended(tmp_path: Path, files: list[str]) -> None:
    by_value = POLICY.replace("confidence: 0.6", 'confidence: {gout: 0.6, "*": 0.8}')
    (tmp_path / "policy.yaml").write_text(by_value)
    how = ("-p", "policy.yaml", "--vary", "confidence=.7", "--methods", "grow", "--processes", 1)
    done = invoke("rehearse", *files, *how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "promises less than the policy: none is recommended" in " ".join(done.stdout.split())


def planted() -> dict[str, list[str]]:
    """A canary in cells and ids that are fine, of every column; and in a column that the policy does not name."""
    cells = people()
    return {
        "id": [f"{CANARY}-{name}" for name in cells["id"]],
        "town": [f"{CANARY}-{name}" for name in cells["town"]],
        "illness": [f"{CANARY}-{name}" for name in cells["illness"]],
        "name": [f"{CANARY}-name"] * len(cells["id"]),
    }


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_cell_is_in_anything_a_rehearsal_says_or_writes(tmp_path: Path, format: str) -> None:
    files = write(tmp_path, waves(**planted()))
    how = ("-p", "policy.yaml", "--methods", "pods,merge", "--format", format)
    done = invoke("rehearse", *files, *how, "--out", "p.yaml", "--picture", "p.svg", "--processes", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    for name in ("p.yaml", "p.svg"):
        assert CANARY not in (tmp_path / name).read_text()


def test_no_cell_is_in_a_refusal_or_an_error(tmp_path: Path) -> None:
    sick = {**planted(), "illness": [f"{CANARY}-ill"] * 240}
    files = write(tmp_path, waves(**sick))
    done = invoke("rehearse", *files, "-p", "policy.yaml", "--methods", "merge,pods", "--processes", 1, cwd=tmp_path)
    assert done.returncode == 4
    assert CANARY not in done.stdout + done.stderr
    wrong = {**planted(), "age": [str(age) for age in people()["age"][:-1]] + [f"{CANARY}-age"]}
    files = write(tmp_path, waves(**wrong))
    done = invoke("rehearse", *files, "-p", "policy.yaml", "--show-values", cwd=tmp_path)
    assert done.returncode == 6
    assert "q3.csv: column 'age'" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_a_rehearsal_that_is_stopped_leaves_nothing(tmp_path: Path, files: list[str]) -> None:
    private = tmp_path / "private"
    private.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "sequester", "rehearse", *files, "-p", "policy.yaml", "--processes", "2"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(private)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # The ledger of a trial, not only that of the waves: then a process is at work, and another may just begin.
    for _ in range(1200):
        if [*private.glob("sequester-*/[0-9].ledger")] or process.poll() is not None:
            break
        time.sleep(0.05)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == ("", "Stopped.\n")
    assert list(private.iterdir()) == []
