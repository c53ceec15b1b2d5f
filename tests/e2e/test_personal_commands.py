"""Consent, grades and values that change, from CSV files through plan, publish, audit and report."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from command import invoke

PERSONAL = """
version: 1
series: clinic
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 99], levels: [5, 10, 20]}
  zip: {role: quasi-identifier, kind: code, length: 3}
  agrees: {role: consent, wait: 1}
  disease:
    role: sensitive
    hierarchy:
      Disease: {Respiratory: [Flu, Pneumonia, Tuberculosis], Digestive: [Gastritis, Ulcer], Fever: null, HIV: null}
    grades: {HIV: Disease, Tuberculosis: high, Gastritis: high}
    guarding: wants
    ordinary: [Fever]
protect: {k: 4, confidence: 0.6}
method: {name: METHOD}
"""
CHANGING = """
version: 1
series: ward
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 99]}
  zip: {role: quasi-identifier, kind: code, length: 3}
  SENSITIVE
protect: {k: 4, confidence: 0.5, lifetime: {l: 2, releases: 4}, against: [AGAINST]}
method: {name: group}
"""


def write(path: Path, heads: list[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([heads, *rows])


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
def test_people_say_what_they_allow_and_every_release_keeps_it(tmp_path: Path, method: str) -> None:
    random = np.random.default_rng(5)
    (tmp_path / "policy.yaml").write_text(PERSONAL.replace("METHOD", method), encoding="utf-8")
    values = ["Flu", "Pneumonia", "Tuberculosis", "Gastritis", "Ulcer", "Fever", "HIV"]
    above = {"Flu": "Respiratory", "Pneumonia": "Respiratory", "Tuberculosis": "Disease", "Ulcer": "Digestive"}
    people = [
        [f"person-{n}", int(random.integers(0, 100)), f"{random.integers(100, 160)}",
         "yes" if random.random() < 0.9 else "no",
         (disease := str(random.choice(values, p=[0.2, 0.1, 0.05, 0.15, 0.1, 0.35, 0.05]))),
         above.get(disease, "Disease") if random.random() < 0.1 else ""]
        for n in range(400)
    ]  # fmt: skip
    for number in range(4):
        write(
            tmp_path / f"q{number}.csv",
            ["id", "age", "zip", "agrees", "disease", "wants"],
            people[: 220 + 60 * number],
        )
        for person in people:
            if random.random() < 0.02:
                person[3] = "no"
    for number in range(4):
        planned = invoke("plan", f"q{number}.csv", "-p", "policy.yaml", "--format", "json", cwd=tmp_path)
        assert planned.returncode == 0, planned.stderr
        plan = json.loads(planned.stdout)
        done = invoke("publish", f"q{number}.csv", "-p", "policy.yaml", "--yes", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stdout.split())
        assert f"{plan['personal']['withheld']} records without consent" in text
        assert "published as a node" in text
        assert "sensitive values gain" in text
    audited = invoke("audit", "-p", "policy.yaml", "--ledger", "clinic.ledger", "--format", "json", cwd=tmp_path)
    assert audited.returncode == 0, audited.stderr
    assert json.loads(audited.stdout)["holds"]
    folder = max((tmp_path / "releases").glob("*/*"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    facts = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    # How many do not agree, or ask for more, is for the publisher.
    assert not any(words in page for words in ("allowed", "consent", "Privacy gained"))
    assert not {"personal", "gain", "waiting"} & set(facts)
    with (folder / "data.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"age_min", "age_max", "zip", "disease"}
    assert {row["disease"] for row in rows}.isdisjoint({"HIV", "Tuberculosis", "Gastritis"})
    assert not any(word in page + json.dumps(facts) for word in ("person-", "HIV", "Tuberculosis"))
    shown = invoke("show", "4", "-p", "policy.yaml", cwd=tmp_path)
    assert "published as a node" in " ".join(shown.stdout.split())


STAYS = "illness: {role: sensitive, values: transient, permanent: [HIV], ordinary: [none]}"
SETS = 'drugs: {role: sensitive, kind: set, separator: "+", values: transient, ordinary: [none]}'


@pytest.mark.parametrize("sensitive", [STAYS, SETS], ids=["some stay", "sets"])
def test_values_that_change_stay_or_come_in_sets_are_published_and_audited(tmp_path: Path, sensitive: str) -> None:
    random, against = np.random.default_rng(6), "insider, lifetime" if sensitive == STAYS else "lifetime"
    text = CHANGING.replace("SENSITIVE", sensitive).replace("AGAINST", against)
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    people = [(f"person-{n}", int(random.integers(0, 100)), f"{random.integers(100, 160)}") for n in range(400)]
    has = random.random(400) < 0.08
    drugs = np.array(["none", "aspirin", "insulin", "statin"])

    def illness(n: int) -> str:
        return "HIV" if has[n] else str(random.choice(["none", "flu", "gout", "asthma"], p=[0.76, 0.08, 0.08, 0.08]))

    def taken() -> str:
        return "+".join(random.choice(drugs, 2, p=[0.82, 0.06, 0.06, 0.06]))

    for number in range(3):
        rows = [[*people[n], illness(n), taken()] for n in range(400) if n < 300 + 50 * number]
        write(tmp_path / f"w{number}.csv", ["id", "age", "zip", "illness", "drugs"], rows)
        done = invoke("publish", f"w{number}.csv", "-p", "policy.yaml", "--yes", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "breach" in done.stdout
    audited = invoke("audit", "-p", "policy.yaml", "--ledger", "ward.ledger", "--format", "json", cwd=tmp_path)
    found = json.loads(audited.stdout)
    assert (audited.returncode, found["holds"]) == (0, True)
    assert {"breach", *(("difference", "tracing", "deniability") if sensitive == STAYS else ())} <= set(found["tried"])
    assert found["measures"]["breach"] <= 0.5
    checked = " ".join(invoke("check", "policy.yaml", cwd=tmp_path).stdout.split())
    assert ("1 value of illness stays with a person" in checked) == (sensitive == STAYS)
    verified = invoke("ledger", "verify", "-p", "policy.yaml", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_wrong_grades_are_told_before_there_is_data(tmp_path: Path) -> None:
    text = PERSONAL.replace("METHOD", "mondrian").replace("HIV: Disease,", "HIV: Digestive,")
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    done = invoke("check", "policy.yaml", cwd=tmp_path)
    assert done.returncode == 6
    assert "attributes.disease.grades.HIV: 'Digestive' is no node above it" in done.stderr


def test_a_check_counts_who_does_not_agree(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(PERSONAL.replace("METHOD", "mondrian"), encoding="utf-8")
    rows = [[n, 30, "123", "no" if n % 5 == 0 else "yes", "Flu", ""] for n in range(50)]
    write(tmp_path / "q.csv", ["id", "age", "zip", "agrees", "disease", "wants"], list(rows))
    done = invoke("check", "policy.yaml", "q.csv", cwd=tmp_path)
    assert "fits: 40 records; 10 rows without consent are left out." in " ".join(done.stdout.split())


def test_a_first_policy_knows_a_consent_column(tmp_path: Path) -> None:
    rows = [[n, 20 + n % 50, "yes" if n % 7 else "no", ["flu", "gout", "angina"][n % 3]] for n in range(200)]
    write(tmp_path / "data.csv", ["patient_id", "age", "consent", "diagnosis"], list(rows))
    assert invoke("init", "data.csv", cwd=tmp_path).returncode == 0
    (written,) = tmp_path.glob("*.yaml")
    assert "role: consent" in written.read_text(encoding="utf-8")
    done = invoke("anonymize", "data.csv", "-p", written.name, "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    published = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert len(published) == 1 + sum(1 for n in range(200) if n % 7)
