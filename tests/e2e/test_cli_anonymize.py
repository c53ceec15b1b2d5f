"""`sequester anonymize`, `measure`, `demo` and `datasets` as they are used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sequester as sq
from command import invoke, sequester, sequester_on_a_terminal
from sequester.datasets import hospital, hospital_panel, hospital_policy
from sequester.publish.files import write_file

ANONYMIZE = ("anonymize", "people.csv", "-p", "policy.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_file(hospital(300, seed=2), tmp_path / "people.csv")
    (tmp_path / "policy.yaml").write_text(hospital_policy())
    return tmp_path


def entries(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


def test_a_release_is_written_beside_us_and_summed_up(folder: Path) -> None:
    done = sequester(*ANONYMIZE, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    files = [f"people-release/{name}" for name in ("data.csv", "release.json", "dictionary.csv")]
    assert entries(folder) == {"people.csv", "policy.yaml", "people-release", *files}
    described = json.loads((folder / "people-release" / "release.json").read_text())
    lines = done.stdout.splitlines()
    assert lines[0] == "people.csv is anonymized, by mondrian."
    figures = {line.split()[0]: line.split()[1] for line in lines[2:9]}
    assert figures["rows"] == "300"
    assert figures["k"] == str(described["k"])
    assert figures["confidence"] == f"{described['confidence']:.3g}"
    assert f"AIL {described['loss']['ail']:.3g}, NCP {described['loss']['ncp']:.3g}, DM " in done.stdout
    assert "every class has at least 5 records" in done.stdout
    assert "none left out" in done.stdout
    assert [line.strip() for line in lines[-3:]] == files


def test_json_is_the_description_with_the_files(folder: Path) -> None:
    done = invoke(*ANONYMIZE, "--out", "r", "--format", "json", "--seed", 7, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert printed.pop("files") == ["r/data.csv", "r/release.json", "r/dictionary.csv"]
    again = sq.anonymize(folder / "people.csv", sq.Policy.load(folder / "policy.yaml"), seed=7)
    assert (printed.pop("suppressed"), printed.pop("loss")) == (0, again.loss)
    public = json.loads((folder / "r" / "release.json").read_text())
    assert (public.pop("data"), sorted(public.pop("digests"))) == ("data.csv", ["data.csv", "dictionary.csv"])
    assert public == json.loads(again.to_json())
    assert printed == {key: value for key, value in public.items() if key != "loss"}
    assert again.save(folder / "again.csv")[0].read_bytes() == (folder / "r" / "data.csv").read_bytes()


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet"])
def test_a_single_file_is_written_and_can_be_measured(folder: Path, name: str) -> None:
    assert invoke(*ANONYMIZE, "-o", name, cwd=folder).returncode == 0
    assert entries(folder) == {"people.csv", "policy.yaml", name}
    done = invoke("measure", name, "-p", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{name} keeps every promise.")


def test_an_existing_place_is_refused_before_the_work_and_replaced_when_forced(folder: Path) -> None:
    (folder / "r.csv").write_text("mine")
    # The data is not even looked for.
    done = invoke("anonymize", "absent.csv", "-p", "policy.yaml", "-o", "r.csv", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--force" in done.stderr
    assert (folder / "r.csv").read_text() == "mine"
    assert invoke(*ANONYMIZE, "-o", "r.csv", "--force", cwd=folder).returncode == 0
    assert (folder / "r.csv").read_text() != "mine"


@pytest.mark.parametrize("out", ["people.csv", "policy.yaml", ".", "../{name}"])
def test_force_never_replaces_the_input_or_the_folder_around_it(folder: Path, out: str) -> None:
    before = {file: file.read_bytes() for file in folder.iterdir()}
    done = invoke(*ANONYMIZE, "--force", "-o", out.format(name=folder.name), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "would replace" in done.stderr
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_force_never_deletes_a_folder_of_something_else(folder: Path) -> None:
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter.txt").write_text("long work")
    done = invoke(*ANONYMIZE, "--force", "-o", "thesis", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert (folder / "thesis" / "chapter.txt").read_text() == "long work"


@pytest.mark.parametrize(
    ("rule", "rows"),
    [("k: 5", 4), ("k: 301", 300), ("confidence: 0.01", 300), ("diversity: {kind: distinct, l: 16}", 300)],
)
@pytest.mark.parametrize("format", ["text", "json"])
def test_a_promise_that_cannot_be_kept_ends_with_4_and_no_file(folder: Path, rule: str, rows: int, format: str) -> None:
    text = hospital_policy().replace("  k: 5 ", f"  {rule} ") if rule.startswith("k") else None
    text = text or hospital_policy().replace("  confidence: 0.5 ", f"  {rule} ")
    text = text.replace("[insider, neighbor]", "[outsider]")
    (folder / "policy.yaml").write_text(text)
    write_file(hospital(rows, seed=2), folder / "people.csv", force=True)
    before = entries(folder)
    done = invoke(*ANONYMIZE, "--format", format, cwd=folder)
    assert (done.returncode, done.stdout) == (4, "")
    assert "does not keep the promise" in done.stderr
    assert "Nothing was published" in done.stderr
    assert entries(folder) == before


def test_a_policy_is_required(folder: Path) -> None:
    (folder / "policy.yaml").unlink()
    for command in ("anonymize", "measure"):
        done = invoke(command, "people.csv", cwd=folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--policy" in done.stderr


def test_a_place_that_cannot_be_written_ends_with_6(folder: Path) -> None:
    done = invoke(*ANONYMIZE, "-o", "people.csv/below", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert "cannot be written" in done.stderr
    assert entries(folder) == {"people.csv", "policy.yaml"}


def test_measure_names_the_promises_that_are_broken_and_ends_with_4(folder: Path) -> None:
    done = sequester("measure", "people.csv", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 4
    assert done.stdout.startswith("people.csv does not keep every promise.")
    assert "classes break the promise that every class has at least 5 records: required 5, found 1" in done.stderr
    assert "classes break the promise of diagnosis that" in done.stderr
    as_json = invoke("measure", "people.csv", "-p", "policy.yaml", "--format", "json", cwd=folder)
    assert as_json.returncode == 4
    found = json.loads(as_json.stdout)
    assert found == json.loads(sq.measure(folder / "people.csv", sq.Policy.load(folder / "policy.yaml")).to_json())
    assert (found["holds"], found["k"]) == (False, 1)


def test_measure_compares_with_the_original(folder: Path) -> None:
    invoke(*ANONYMIZE, "-o", "r", cwd=folder)
    wish = ("measure", "r/data.csv", "-p", "policy.yaml", "--original", "people.csv", "--queries", 50, "--seed", 1)
    done = invoke(*wish, "--format", "json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    published = json.loads((folder / "r" / "release.json").read_text())
    assert "entropy" in found["loss"]
    assert "entropy" not in published["loss"]
    assert found["loss"]["dm"] == published["loss"]["dm"]
    assert found["query_error"] >= 0
    assert json.loads(invoke(*wish, "--format", "json", cwd=folder).stdout) == found
    assert "query error" in invoke(*wish, cwd=folder).stdout


def test_queries_need_the_original(folder: Path) -> None:
    done = invoke("measure", "people.csv", "-p", "policy.yaml", "--queries", 5, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--original" in done.stderr


def test_the_bar_is_on_a_terminal_only(folder: Path) -> None:
    code, written = sequester_on_a_terminal(*ANONYMIZE, cwd=folder)
    assert code == 0
    assert "verifying" in written
    piped = invoke(*ANONYMIZE, "--force", cwd=folder)
    assert "verifying" not in piped.stdout + piped.stderr


def test_compilation_is_announced_on_stderr_once(folder: Path) -> None:
    code = (
        "import sequester.kernels as kernels\n"
        "from sequester.cli.terminal import progress\n"
        "with progress():\n    kernels._announce()\n    kernels._announce()\n"
        "assert kernels.announce is None\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.count("Compiling") == 1


def test_the_demo_plays_the_whole_story(tmp_path: Path) -> None:
    done = sequester("demo", "--rows", 1200, cwd=tmp_path)
    assert done.returncode == 0
    # Nothing is cut off on a terminal of 80 columns.
    assert "year people came left back read loss read loss decoys read loss decoys" in " ".join(done.stdout.split())
    assert done.stderr == "" or done.stderr.startswith("Compiling")
    story = " ".join(done.stdout.split())
    # Two invented people and what they have, found by subtracting releases; it is true.
    exposed = re.findall(r"(\w+ \w+) has ([\w ]+): everybody else in class", story)
    assert len(exposed) == 2
    tables = hospital_panel(1200, seed=1)
    have = {(person["name"], person["diagnosis"]) for table in tables for person in table.to_pylist()}
    assert have.issuperset(exposed)
    assert re.search(r"audit, alone: [\d,]+ people are exposed", story)
    assert "audit, pods: nothing that was tried works" in story
    assert "audit, few: nothing that was tried works" in story
    lines = [re.findall(r"[\d.,]+", line) for line in done.stdout.splitlines() if re.match(r" +\d [ \d]", line)]
    for number, (table, line) in enumerate(zip(tables, lines, strict=True), start=1):
        assert (int(line[0]), line[1]) == (number, f"{table.num_rows:,}")
        naive, by_pods, few_links = (float(line[place]) for place in (5, 7, 10))
        assert max(by_pods, few_links) <= naive
        assert max(by_pods, few_links) < 1
        for place, own in (("", 7), ("resilient/", 10)):
            folder = tmp_path / f"sequester-demo/{place}releases/hospital-patients/{number:04d}-release-{number}"
            assert json.loads((folder / "release.json").read_text())["holds"] is True
            ledger = f"sequester-demo/{place}hospital.ledger"
            shown = invoke("show", number, "--ledger", ledger, "--format", "json", cwd=tmp_path)
            loss = json.loads(shown.stdout)["summary"]["loss"]["release"]["ail"]
            assert f"{loss:.2f}" == line[own + 1]
        assert (tmp_path / "sequester-demo" / "naive" / f"{number}.csv").is_file()
    assert float(lines[0][5]) == 0
    assert float(lines[-1][5]) > 50


@pytest.mark.faults  # with the slower suite: each is two demos
def test_the_demo_can_be_run_again_and_gives_the_same_releases(tmp_path: Path) -> None:
    read = []
    for _ in range(2):
        assert invoke("demo", "--rows", 300, "--out", "trial", cwd=tmp_path).returncode == 0
        read.append({file: file.read_bytes() for file in tmp_path.rglob("*.csv")})
    assert len(read[0]) == 30
    assert read[0] == read[1]


@pytest.mark.faults
@pytest.mark.parametrize("theirs", ["trial/notes.txt", "trial/releases/notes.txt"])
def test_the_demo_replaces_nothing_but_a_demo(tmp_path: Path, theirs: str) -> None:
    (tmp_path / "trial").mkdir()
    empty = invoke("demo", "--rows", 300, "--out", "trial", cwd=tmp_path)
    assert (empty.returncode, empty.stdout) == (2, "")
    assert "is no earlier demo" in empty.stderr
    (tmp_path / "trial").rmdir()
    assert invoke("demo", "--rows", 300, "--out", "trial", cwd=tmp_path).returncode == 0
    (tmp_path / theirs).write_text("mine")
    done = invoke("demo", "--rows", 300, "--out", "trial", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert (tmp_path / theirs).read_text() == "mine"


def test_a_demo_of_too_few_people_publishes_nothing(tmp_path: Path) -> None:
    done = invoke("demo", "--rows", 3, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert not (tmp_path / "sequester-demo" / "releases").exists()


def test_datasets_are_listed_and_written(tmp_path: Path) -> None:
    listed = invoke("datasets", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.startswith("hospital")
    names = json.loads(invoke("datasets", "--format", "json", cwd=tmp_path).stdout)["datasets"]
    assert [one["name"] for one in names] == ["hospital"]
    assert entries(tmp_path) == set()
    done = sequester("datasets", "hospital", "--rows", 50, "--seed", 3, "--out", "trial", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert entries(tmp_path) == {"trial", "trial/hospital.csv", "trial/policy.yaml"}
    expected = write_file(hospital(50, seed=3), tmp_path / "expected.csv")
    assert (tmp_path / "trial" / "hospital.csv").read_bytes() == expected.read_bytes()
    # The command that it proposes works.
    proposed = done.stdout.splitlines()[-1].split()
    assert invoke(*proposed[1:], cwd=tmp_path).returncode == 0
    assert invoke("datasets", "hospital", "--out", "trial", cwd=tmp_path).returncode == 2
    assert invoke("datasets", "hospital", "--out", "trial", "--force", cwd=tmp_path).returncode == 0
    assert invoke("datasets", "nothing", cwd=tmp_path).returncode == 2
