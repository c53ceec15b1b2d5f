"""Byun et al., Figures 1 to 4: two releases, each 2-anonymous and 2-diverse, that tell too much together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pytest

import sequester as sq
from command import invoke
from sequester.attacks.explain import explain

POLICY = """
version: 1
series: hospital
person: name
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 120]}
  gender: {role: quasi-identifier, hierarchy: {Person: [Male, Female]}}
  diagnosis: {role: sensitive}
protect: {k: 2, confidence: 0.5, against: [insider, neighbor]}
"""
FIGURE_2 = [
    ("Tom", "[21-25]", "Male", "Asthma"),
    ("Mike", "[21-25]", "Male", "Flu"),
    ("Bob", "[50-60]", "Person", "Alzheimer"),
    ("Eve", "[50-60]", "Person", "Diabetes"),
]
FIGURE_4 = [
    ("Mike", "[21-30]", "Person", "Flu"),
    ("Alice", "[21-30]", "Person", "Cancer"),
    ("Tom", "[21-30]", "Person", "Asthma"),
    ("Hank", "[51-55]", "Male", "Hepatitis"),
    ("Bob", "[51-55]", "Male", "Alzheimer"),
    ("Sal", "[56-60]", "Female", "Flu"),
    ("Eve", "[56-60]", "Female", "Diabetes"),
]


def table(rows: Sequence[tuple[str, ...]], *, names: bool = True) -> pa.Table:
    columns = dict(zip(("name", "age", "gender", "diagnosis"), zip(*rows, strict=True), strict=True))
    return pa.table({name: list(cells) for name, cells in columns.items() if names or name != "name"})


@pytest.fixture
def policy(tmp_path: Path) -> sq.Policy:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return sq.Policy.load(tmp_path / "policy.yaml")


def exposed(audit: sq.Audit, attack: str) -> set[tuple[str, str | None]]:
    return {(person, f.value) for f in audit.findings if f.attack == attack for person in f.people}


def test_each_release_alone_keeps_the_promise(policy: sq.Policy) -> None:
    for rows in (FIGURE_2, FIGURE_4):
        assert sq.audit([table(rows)], policy).holds


def test_alice_has_cancer_because_the_others_of_her_class_were_there_before(policy: sq.Policy) -> None:
    found = sq.audit([table(FIGURE_2), table(FIGURE_4)], policy)
    assert not found.holds
    assert ("Alice", "Cancer") in exposed(found, "difference")


def test_bob_has_alzheimer_because_it_is_all_that_his_classes_share(policy: sq.Policy) -> None:
    found = sq.audit([table(FIGURE_2), table(FIGURE_4)], policy)
    assert {("Bob", "Alzheimer"), ("Eve", "Diabetes")} <= exposed(found, "intersection")


def test_hank_and_sal_are_exposed_though_none_of_the_papers_attacks_finds_them(policy: sq.Policy) -> None:
    """What Bob and Eve leave of their classes belongs to the two newcomers."""
    found = sq.audit([table(FIGURE_2), table(FIGURE_4)], policy)
    sure = exposed(found, "difference") | exposed(found, "deniability")
    assert {("Hank", "Hepatitis"), ("Sal", "Flu")} <= sure


def test_the_findings_can_be_told_as_stories(policy: sq.Policy) -> None:
    found = sq.audit([table(FIGURE_2), table(FIGURE_4)], policy)
    about_alice = next(f for f in found.findings if f.attack == "difference" and f.value == "Cancer")
    story = explain(about_alice, found.histories)
    assert "Alice" in story
    assert "1 x [21-30] | * | Cancer" in story
    assert "1 x [21-25] | Male | Flu" in story


def test_the_command_finds_and_explains_and_a_safe_pair_ends_with_0(tmp_path: Path, policy: sq.Policy) -> None:
    for name, rows in (("r1.csv", FIGURE_2), ("r2.csv", FIGURE_4)):
        csv.write_csv(table(rows), tmp_path / name)
    command = ["audit", "r1.csv", "r2.csv", "-p", "policy.yaml"]
    done = invoke(*command, cwd=tmp_path)
    assert done.returncode == 4
    assert "Alice" in done.stdout
    assert "Bob" in done.stdout
    number = next(
        line.split()[0] for line in done.stdout.splitlines() if "difference" in line and "Alice tied to Cancer" in line
    )
    told = invoke(*command, "--explain", number, cwd=tmp_path)
    assert told.returncode == 4
    assert "Alice" in told.stdout
    assert "[21-25] | Male | Asthma" in told.stdout
    csv.write_csv(table(FIGURE_4[::-1]), tmp_path / "r3.csv")
    safe = invoke("audit", "r2.csv", "r3.csv", "-p", "policy.yaml", cwd=tmp_path)
    assert safe.returncode == 0
    assert all(attack in safe.stdout for attack in ("difference", "tracing", "deniability", "intersection"))
    assert "Nothing that was tried works" in safe.stdout


def test_without_names_only_boxes_and_values_speak(policy: sq.Policy) -> None:
    found = sq.audit([table(FIGURE_2, names=False), table(FIGURE_4, names=False)], policy)
    assert all(finding.people == () for finding in found.findings)
    assert "difference" not in found.tried
    # The class of [50-60] and that of [51-55] share Alzheimer and nothing else.
    assert any(f.attack == "intersection" and f.value == "Alzheimer" for f in found.findings)


def test_with_the_populations_names_come_back(policy: sq.Policy) -> None:
    ages = {"Tom": 21, "Mike": 23, "Bob": 52, "Eve": 57, "Alice": 27, "Hank": 53, "Sal": 59}
    women = {"Eve", "Alice", "Sal"}

    def people(names: list[str]) -> pa.Table:
        genders = ["Female" if name in women else "Male" for name in names]
        return pa.table({"name": names, "age": [ages[name] for name in names], "gender": genders})

    found = sq.audit(
        [table(FIGURE_2, names=False), table(FIGURE_4, names=False)],
        policy,
        population=[people(["Tom", "Mike", "Bob", "Eve"]), people(list(ages))],
    )
    assert ("Alice", "Cancer") in exposed(found, "difference")


def test_who_knows_bob_alone_finds_that_he_has_alzheimer(policy: sq.Policy) -> None:
    bob = pa.table({"name": ["Bob"], "age": [52], "gender": ["Male"]})
    found = sq.audit([table(FIGURE_2, names=False), table(FIGURE_4, names=False)], policy, population=[bob, bob])
    assert exposed(found, "intersection") == {("Bob", "Alzheimer")}
    assert {person for finding in found.findings for person in finding.people} == {"Bob"}
    assert any("1 of 4 people are known" in note for note in found.notes)


def test_three_releases_that_no_pair_explains_are_told_as_a_combination() -> None:
    """No two of the partitions {01}{23}, {02}{13}, {03}{12} single anybody out; all three single out everybody."""
    policy = sq.Policy.model_validate(
        {
            "version": 1,
            "series": "four",
            "person": "name",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 9]},
                "s": {"role": "sensitive"},
            },
            "protect": {"k": 2},
        }
    )
    values, releases = dict(zip("wxyz", "abcd", strict=True)), []
    for first in ("wx", "wy", "wz"):
        rows = [(person, "[0-9]" if person in first else "[1-8]", values[person]) for person in "zyxw"]
        releases.append(pa.table(dict(zip(("name", "age", "s"), map(list, zip(*rows, strict=True)), strict=True))))
    found = sq.audit(releases, policy)
    alone = next(finding for finding in found.findings if "combination" in finding.witness)
    assert alone.releases == (1, 2, 3)
    assert "everybody cancels out but 1 person" in explain(alone, found.histories)
