"""`sequester audit` on releases that are fine, leaky, or not what they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from command import invoke

POLICY = """
version: 1
series: clinic
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 99]}
  illness: {role: sensitive}
protect: {k: 2, confidence: 0.5}
"""
FIRST = "id,age,illness\n1,[20-29],flu\n2,[20-29],cold\n3,[30-39],flu\n4,[30-39],gout\n"
# Person 5 is the only newcomer of her class.
LEAKY = "id,age,illness\n5,[20-29],lupus\n2,[20-29],cold\n4,[30-39],gout\n1,[20-29],flu\n3,[30-39],flu\n"
# Two newcomers with different illnesses join in a class of their own.
SAFE = "id,age,illness\n6,[40-49],cold\n2,[20-29],cold\n4,[30-39],gout\n1,[20-29],flu\n5,[40-49],lupus\n3,[30-39],flu\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name, text in (("first.csv", FIRST), ("leaky.csv", LEAKY), ("safe.csv", SAFE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_leak_ends_with_4_and_names_who_what_and_how(folder: Path) -> None:
    done = invoke("audit", "first.csv", "leaky.csv", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 4
    assert done.stdout.startswith("1 person is exposed, 1 for certain.\n")
    assert "5 tied to lupus with 100%, allowed 50%" in done.stdout
    assert "--explain 1" in done.stdout


def test_a_safe_series_ends_with_0_and_says_what_was_tried(folder: Path) -> None:
    done = invoke("audit", "first.csv", "safe.csv", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 0
    assert all(attack in done.stdout for attack in ("k", "confidence", "difference", "tracing", "deniability"))
    assert done.stdout.startswith("Nobody is exposed.\n")
    assert "Nothing that was tried works" in done.stdout


def test_json_is_one_document_with_measures_and_findings(folder: Path) -> None:
    done = invoke("audit", "first.csv", "leaky.csv", "-p", "policy.yaml", "--format", "json", cwd=folder)
    found = json.loads(done.stdout)
    assert done.returncode == 4
    assert found["holds"] is False
    assert found["measures"]["difference"] == 1
    assert {"attack", "adversary", "releases", "value", "required", "observed", "people", "classes", "witness"} <= set(
        found["findings"][0]
    )


def test_any_k_and_any_confidence_may_be_asked_about(folder: Path) -> None:
    command = ["audit", "first.csv", "safe.csv", "-p", "policy.yaml", "--format", "json"]
    assert invoke(*command, cwd=folder).returncode == 0
    found = json.loads(invoke(*command, "--k", "3", "--confidence", "0.4", cwd=folder).stdout)
    assert {"k", "confidence"} <= {finding["attack"] for finding in found["findings"]}
    assert {finding["required"] for finding in found["findings"]} == {3, 0.4}


def test_one_release_is_judged_on_its_own(folder: Path) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 0
    assert "k" in done.stdout


def test_an_unknown_adversary_is_an_error_that_lists_the_known(folder: Path) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", "--against", "burglar", cwd=folder)
    assert done.returncode == 6
    assert "outsider, neighbor, insider, lifetime, any, all" in done.stderr


def test_a_finding_that_is_not_there_cannot_be_explained(folder: Path) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", "--explain", "1", cwd=folder)
    assert done.returncode == 2
    assert "there are 0 findings" in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,illness\n1,flu\n", "age"),
        ("id,age\n1,[20-29]\n", "illness"),
        ("id,age,illness\n1,CANARY-7f3a,flu\n2,CANARY-7f3a,cold\n", "age"),
        ("id,age,illness\n", "no rows"),
        ("id,age,illness\n1,[20-29],flu\n1,[20-29],cold\n", "id"),
        ("id,age,illness\n,[20-29],flu\n2,[20-29],cold\n", "id"),
        ("id,age,illness\n1,[20-29],gout\n2,[20-29],cold\n", "1 person has different values"),
        ("age,illness\n[20-29],flu\n[20-29],cold\n", "id"),
    ],
    ids=[
        "no quasi-identifier", "no sensitive column", "not a generalization", "empty", "a person twice",
        "nobody's row", "a permanent value that changed", "no person in one release",
    ],
)  # fmt: skip
def test_a_release_that_cannot_be_audited_is_an_error_without_cells(folder: Path, text: str, says: str) -> None:
    (folder / "wrong.csv").write_text(text)
    done = invoke("audit", "first.csv", "wrong.csv", "-p", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert says in done.stderr
    assert "CANARY" not in done.stderr


LIFETIME = POLICY.replace("role: sensitive", "role: sensitive, values: transient, ordinary: [cold, gout]").replace(
    "{k: 2,", "{k: 2, lifetime: {l: 2, releases: 4}, against: [lifetime],"
)


def test_a_registration_list_dilutes_and_the_notes_say_what_that_means(folder: Path) -> None:
    (folder / "policy.yaml").write_text(LIFETIME)
    command = ["audit", "first.csv", "safe.csv", "-p", "policy.yaml", "--against", "lifetime"]
    alone = invoke(*command, "--format", "json", cwd=folder)
    assert (alone.returncode, json.loads(alone.stdout)["measures"]["breach"]) == (4, 0.75)
    everybody = [f"{number},{20 + number}" for number in range(1, 30)]
    (folder / "everybody.csv").write_text("\n".join(["id,age", *everybody]))
    listed = invoke(*command, "--registered", "everybody.csv", cwd=folder)
    assert listed.returncode == 0
    assert "knows who may be in a release, not who is" in " ".join(listed.stdout.split())


def test_a_registration_list_that_is_not_there_is_an_error(folder: Path) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", "--registered", "nobody.csv", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert "nobody.csv" in done.stderr


def test_what_was_not_tried_is_told_with_the_reason(folder: Path) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", cwd=folder)
    told = " ".join(done.stdout.split())
    assert "not promised: difference, tracing and row-order were not tried: there is only one release" in told


def test_an_attack_that_lacks_knowledge_comes_first_with_what_to_give_and_ends_with_3(folder: Path) -> None:
    for file in ("first.csv", "safe.csv"):
        lines = (folder / file).read_text().splitlines()
        (folder / file).write_text("\n".join(line.split(",", 1)[1] for line in lines))
    command = ["audit", "first.csv", "safe.csv", "-p", "policy.yaml"]
    done = invoke(*command, cwd=folder)
    assert done.returncode == 3
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("Undecided: difference, tracing and deniability were not tried: ")
    assert first.endswith("give the person column in the releases, or a population (`--population`).")
    assert second.startswith("By what was tried (")
    assert second.endswith(", nobody is exposed.")
    assert ["tracing", "insider", "undecided"] in [line.split() for line in done.stdout.splitlines()]
    assert "Nothing that was tried works" not in done.stdout
    assert invoke(*command, "--against", "outsider", cwd=folder).returncode == 0
    told = json.loads(invoke(*command, "--format", "json", cwd=folder).stdout)
    assert [one["attacks"] for one in told["undecided"]] == [["difference", "tracing", "deniability"]]
    public = invoke(*command, "--report", "audit.html", "--audience", "public", cwd=folder)
    assert public.returncode == 3
    page = (folder / "audit.html").read_text()
    assert "nothing is said about what is marked undecided" in page
    assert "Nothing that was tried works" not in page


def test_belief_says_how_sure_somebody_could_be_also_when_some_are_known(folder: Path) -> None:
    done = invoke("audit", "first.csv", "safe.csv", "-p", "policy.yaml", "--belief", cwd=folder)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["illness", "none", "6", "0.50", "0.50", "0.0%", "0.0%", "0.0%"] in lines
    # One of six is known: her class has two people, so that the other one's value is certain.
    assert ["20%", "5", "1.00", "0.60", "20.0%", "20.0%", "20.0%"] in lines
    told = invoke("audit", "first.csv", "safe.csv", "-p", "policy.yaml", "--belief", "--format", "json", cwd=folder)
    (found,) = json.loads(told.stdout)["belief"]
    assert (found["attribute"], found["people"], found["most"]) == ("illness", 6, 0.5)
    assert [one["known"] for one in found["resilience"]] == [0.0, 0.05, 0.2]
    assert found["resilience"][2]["belief"]["above"]["0.9"] == 0.2


def test_a_promised_belief_that_is_broken_ends_with_4(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("confidence: 0.5", "confidence: 0.9, belief: 0.9"))
    done = invoke("audit", "first.csv", "leaky.csv", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 4
    assert "belief: 5 tied to lupus with 100%, allowed 90%" in done.stdout


def test_the_page_and_the_findings_are_for_their_owner_alone(folder: Path) -> None:
    files = ["--report", "audit.html", "--findings", "findings.parquet"]
    done = invoke("audit", "first.csv", "leaky.csv", "-p", "policy.yaml", *files, cwd=folder)
    assert done.returncode == 4
    page, found = (folder / "audit.html").read_text(), parquet.read_table(folder / "findings.parquet")
    assert "5 tied to lupus with 100%, allowed 50%" in page
    assert "lupus" in found["value"].to_pylist()
    assert {(folder / name).stat().st_mode & 0o777 for name in files[1::2]} == {0o600}
    assert "audit.html" in done.stderr
    assert "findings.parquet" in done.stderr
    again = invoke("audit", "first.csv", "leaky.csv", "-p", "policy.yaml", *files, cwd=folder)
    assert again.returncode == 2
    assert "--force" in again.stderr
    forced = invoke("audit", "first.csv", "safe.csv", "-p", "policy.yaml", *files, "--force", cwd=folder)
    assert forced.returncode == 0
    assert parquet.read_table(folder / "findings.parquet").num_rows == 0


def test_the_public_page_names_no_value_and_may_be_read(folder: Path) -> None:
    page = ["--report", "public.html", "--audience", "public"]
    assert invoke("audit", "first.csv", "leaky.csv", "-p", "policy.yaml", *page, cwd=folder).returncode == 4
    assert not any(value in (folder / "public.html").read_text() for value in ("lupus", "flu", "gout"))
    assert (folder / "public.html").stat().st_mode & 0o044


@pytest.mark.parametrize(("option", "says"), [(["--audience", "public"], "--report"), (["--all-findings"], "json")])
def test_an_option_that_would_do_nothing_is_refused(folder: Path, option: list[str], says: str) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", *option, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_findings_are_a_parquet_file_or_nothing(folder: Path) -> None:
    done = invoke("audit", "first.csv", "-p", "policy.yaml", "--findings", "findings.json", cwd=folder)
    assert done.returncode == 2
    assert ".parquet" in done.stderr
    assert not (folder / "findings.json").exists()


def test_json_has_the_first_hundred_findings_and_says_how_many_there_are(folder: Path) -> None:
    rows = [f"{n},[{n // 3}-{n // 3}],flu" for n in range(300)]
    (folder / "odd.csv").write_text("\n".join(["id,age,illness", *rows]))
    (folder / "policy.yaml").write_text(POLICY.replace("k: 2", "k: 9").replace("confidence: 0.5", "confidence: 0.1"))
    command = ["audit", "odd.csv", "-p", "policy.yaml", "--format", "json"]
    some = json.loads(invoke(*command, cwd=folder).stdout)
    every = json.loads(invoke(*command, "--all-findings", cwd=folder).stdout)
    assert some["found"] == every["found"] == len(every["findings"]) > 100
    assert some["findings"] == every["findings"][:100]
