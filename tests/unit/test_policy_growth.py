"""A running series takes wider ranges and new values, and says so; whatever else changed is refused with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from command import invoke
from sequester.ledger import Ledger
from sequester.policy.fingerprint import growth, policy_text
from sequester.publish.series import changes_of
from towns import KEY, SEED, TREE, people, rules

WIDER = {"role": "quasi-identifier", "kind": "number", "range": [-5, 90], "levels": [5, 20]}
MORE = {"role": "quasi-identifier", "hierarchy": {"Europe": [*TREE["Europe"], {"Spain": ["Madrid", "Vigo"]}]}}

FLAT = {"role": "quasi-identifier", "hierarchy": {"Europe": ["Paris", "Lyon", "Rome", "Milan"]}}


@pytest.fixture
def series(tmp_path: Path) -> sq.Series:
    series = sq.Series.open(tmp_path / "first.ledger", rules(), key=KEY)
    series.publish(people(100), name="one", seed=SEED)
    return series


def compared(series: sq.Series, **changes: Any) -> list[str]:
    with Ledger.open(series.place, key=None, read_only=True) as ledger:
        return changes_of(ledger, rules(**changes))


def test_what_grew_is_told_by_column_and_count(series: sq.Series) -> None:
    assert compared(series) == []
    assert compared(series, attributes__age=WIDER, attributes__town=MORE, method={"name": "merge"}) == [
        "the range of age is -5 to 90, and was 0 to 59",
        "method changed",
        "the hierarchy of town has 2 new values",
    ]
    assert growth(rules(), policy_text(rules())) == []


def test_the_plan_says_what_the_policy_changes_and_names_no_value(series: sq.Series) -> None:
    grown = sq.Series.open(series.place, rules(attributes__age=WIDER, attributes__town=MORE), key=KEY)
    plan = grown.plan(people(160), name="two", seed=SEED)
    told = [note for note in plan.notes if note.startswith("the policy is not that of the last release: ")]
    assert len(told) == 1
    assert "the hierarchy of town has 2 new values" in told[0]
    assert "Madrid" not in plan.to_json()
    grown.publish(plan)
    # The next one is under the same policy.
    again = grown.plan(people(200), name="three", seed=SEED)
    assert not any("not that of the last release" in note for note in again.notes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"protect__k": 5}, "protect.k"),
        ({"attributes__age": {**WIDER, "range": [0, 50]}}, "attributes.age"),
        ({"attributes__town": FLAT}, "attributes.town.hierarchy"),
        ({"person": "number"}, "person"),
    ],
)
def test_what_cannot_be_changed_is_refused_by_its_key(series: sq.Series, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(sq.PolicyError, match="is not what it was when the series began") as caught:
        compared(series, **changes)
    assert [problem.key for problem in caught.value.problems] == [key]


def test_check_compares_a_policy_with_its_ledger(tmp_path: Path) -> None:
    from clinic import edit, people, publish_two, write

    folder = publish_two(tmp_path)
    assert "Changed since the last release" not in invoke("check", "policy.yaml", cwd=folder).stdout
    edit(folder / "policy.yaml", "range: [0, 99]", "range: [0, 120]")
    (folder / "cities.csv").write_text((folder / "cities.csv").read_text() + "Trier;South;*\n")
    done = invoke("check", "policy.yaml", cwd=folder)
    assert done.returncode == 0
    assert "Changed since the last release" in done.stdout
    assert "the range of age is 0 to 120, and was 0 to 99" in done.stdout
    assert "the hierarchy of city has 1 new value" in done.stdout
    assert "Trier" not in done.stdout
    edit(folder / "policy.yaml", "k: 2", "k: 3")
    refused = invoke("check", "policy.yaml", cwd=folder)
    assert refused.returncode == 6
    assert "protect.k" in refused.stderr
    assert "goes on from this one with `after`" in refused.stderr
    edit(folder / "policy.yaml", "k: 3", "k: 2")
    rows = people(91)
    rows[90] = (*rows[90][:2], "c4n4ry", rows[90][3])
    write(folder / "q3.csv", rows)
    unknown = invoke("plan", "q3.csv", "-p", "policy.yaml", cwd=folder)
    assert unknown.returncode == 6
    assert "1 row has a value outside the hierarchy, 1 distinct (row 91); add them to the hierarchy" in unknown.stderr
    assert "(`sequester check` with --show-values says which)" in unknown.stderr
    assert "c4n4ry" not in unknown.stderr
