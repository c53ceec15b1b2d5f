"""Consent and grades: against plain enumeration, and through series in which people agree, withdraw and want more."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from experiments.reddy_scores import sensitive_gain, sensitive_loss
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from policies import changed
from sequester.domain.cover import of_nodes
from sequester.domain.nodes import generality, grade, is_value, may_be, with_nodes
from sequester.domain.tree import from_tree
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")
TREE: dict[str, Any] = {
    "Disease": {
        "Respiratory": {"Lung": ["TB", "Pneumonia"], "Cold": ["Flu"]},
        "Digestive": ["Gastritis", "Ulcer"],
        "Fever": None,
        "HIV": None,
    }
}
ABOVE = {
    "TB": ["Lung", "Respiratory", "Disease"],
    "Pneumonia": ["Lung", "Respiratory", "Disease"],
    "Flu": ["Cold", "Respiratory", "Disease"],
    "Gastritis": ["Digestive", "Disease"],
    "Ulcer": ["Digestive", "Disease"],
    "Fever": ["Disease"],
    "HIV": ["Disease"],
}
"""The nodes above every value, nearest first: typed by hand, for the oracles."""

VALUES = list(ABOVE)


def possible(cell: str) -> set[str]:
    """The values that a published cell may stand for."""
    return {value for value, nodes in ABOVE.items() if cell == value or cell in nodes}


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
            "zip": {"role": "quasi-identifier", "kind": "number", "range": [0, 49]},
            "agrees": {"role": "consent"},
            "disease": {
                "role": "sensitive",
                "hierarchy": TREE,
                "grades": {"HIV": "Disease", "Lung": "high", "Gastritis": "high"},
                "ordinary": ["Fever"],
            },
        },
        "protect": {"k": 3, "confidence": 0.6},
        "method": {"name": "mondrian"},
    }
    return changed(raw, **changes)


class Clinic:
    """People who come, go, agree, withdraw, and want more or less."""

    def __init__(self, seed: int, people: int = 360) -> None:
        self.random = np.random.default_rng(seed)
        self.age, self.zip = self.random.integers(0, 100, people), self.random.integers(0, 50, people)
        self.disease = self.random.choice(VALUES, people, p=[0.05, 0.1, 0.2, 0.15, 0.1, 0.35, 0.05])
        self.agrees = self.random.random(people) < 0.9
        self.guard = np.array([self.random.choice([*ABOVE[value], *[""] * 8]) for value in self.disease], dtype=object)
        self.people = people

    def table(self, rows: np.ndarray) -> pa.Table:
        return pa.table(
            {
                "id": [f"p{row}" for row in rows],
                "age": self.age[rows],
                "zip": self.zip[rows],
                "agrees": np.where(self.agrees[rows], "Yes", "no"),
                "disease": self.disease[rows],
                "guard": self.guard[rows],
            }
        )


# Nodes as published values.


def test_every_inner_node_is_a_leaf_beside_the_values_below_it() -> None:
    domain = with_nodes(from_tree(TREE))
    assert set(domain.names[0]) == {*VALUES, *(node for nodes in ABOVE.values() for node in nodes)}
    may = may_be(domain)
    for code, name in enumerate(domain.names[0]):
        assert {domain.names[0][c] for c in np.flatnonzero(may[code])} & set(VALUES) == possible(name)


def test_gain_and_loss_of_a_node_are_those_of_its_interval_in_the_tree() -> None:
    plain = from_tree(TREE)
    domain = with_nodes(plain)
    gain, loss = generality(domain)
    for code, name in enumerate(domain.names[0]):
        low, high = plain.labels[name]
        # A node with one value below it says what that value says, to somebody who knows the tree.
        if name != "Cold":
            sides = np.array([[low]]), np.array([[high]])
            assert loss[code] == pytest.approx(sensitive_loss(*sides, [plain])[0, 0])
            if low < high < plain.size - 1:
                continue
            assert gain[code] == pytest.approx(sensitive_gain(*sides, [plain])[0, 0])
    assert gain[domain.names[0].index("Disease")] == loss[domain.names[0].index("Disease")] == 1
    assert {name: gain[domain.names[0].index(name)] for name in VALUES} == dict.fromkeys(VALUES, 0)
    # Eleven nodes are below the root, and two below Lung.
    assert gain[domain.names[0].index("Lung")] == pytest.approx(2 / 11)


GRADES = st.dictionaries(st.sampled_from([*VALUES, "*"]), st.sampled_from(["low", "high", "Disease", "Respiratory"]))


@given(GRADES)
@settings(max_examples=150, deadline=None)
def test_a_grade_is_the_node_that_was_asked_for(grades: dict[str, str]) -> None:
    domain = with_nodes(from_tree(TREE))
    asked = {value: grades.get(value, grades.get("*", "low")) for value in VALUES}
    wrong = [v for v, g in asked.items() if g not in ("low", "high") and g not in ABOVE[v]]
    if wrong:
        with pytest.raises(sq.PolicyError, match="no node above it"):
            grade(domain, grades)
        return
    published = grade(domain, grades)
    for value, wanted in asked.items():
        expected = {"low": value, "high": ABOVE[value][0]}.get(wanted, wanted)
        assert domain.names[0][published[domain.names[0].index(value)]] == expected


@given(GRADES, st.booleans(), st.lists(st.sampled_from(VALUES), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_elements_count_the_rows_that_may_be_a_value(grades: dict[str, str], personal: bool, rows: list[str]) -> None:
    domain = with_nodes(from_tree(TREE))
    try:
        published = grade(domain, grades)
    except sq.PolicyError:
        return
    codes = [int(published[domain.names[0].index(row)]) for row in rows]
    used = np.arange(domain.size, dtype=np.int32) if personal else np.unique(published[is_value(domain)])
    cover = of_nodes(domain, used, blank=False)
    assert sorted(value for values in cover.members for value in values) == sorted(VALUES)
    for place, values in enumerate(cover.members):
        counted = sum(bool(cover.holds[code, place]) for code in codes)
        for value in values:
            assert counted == sum(value in possible(domain.names[0][code]) for code in codes)
    if cover.apart is not None:
        assert all(len({p for p in range(len(cover.elements)) if cover.holds[c, p]}) <= 1 for c in used)
    if cover.tops is not None:
        for one in used:
            for other in used:
                if (cover.holds[one] & cover.holds[other]).any():
                    assert cover.tops[one] == cover.tops[other]


# Releases.


def classes_of(table: pa.Table) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    columns = (table[name].to_pylist() for name in ("age_min", "age_max", "zip_min", "zip_max", "disease"))
    for *box, disease in zip(*columns, strict=True):
        found.setdefault(tuple(box), []).append(disease)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("guarding", [None, "guard"])
def test_of_no_value_too_many_rows_may_be_it(seed: int, guarding: str | None) -> None:
    clinic = Clinic(seed)
    release = sq.anonymize(clinic.table(np.arange(360)), rules(attributes__disease__guarding=guarding), seed=seed)
    assert release.table.num_rows == int(clinic.agrees.sum())
    assert "agrees" not in release.table.column_names
    assert "guard" not in release.table.column_names
    for cells in classes_of(release.table).values():
        assert len(cells) >= 3
        for value in set(VALUES) - {"Fever"}:
            assert Fraction(sum(value in possible(cell) for cell in cells), len(cells)) <= Fraction(6, 10)
    expected = Counter()
    for value, own in zip(clinic.disease[clinic.agrees], clinic.guard[clinic.agrees], strict=True):
        graded = {"HIV": "Disease", "TB": "Lung", "Pneumonia": "Lung", "Gastritis": "Digestive"}.get(value, value)
        wanted = own if guarding and own else graded
        chain = [value, *ABOVE[value]]
        expected[max(graded, wanted, key=chain.index)] += 1
    assert Counter(release.table["disease"].to_pylist()) == expected


@pytest.mark.parametrize("wait", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_withdrawals_are_hidden_or_wait_and_nobody_is_published_against_her_will(
    tmp_path: Path, seed: int, wait: int
) -> None:
    policy = rules(attributes__agrees={"role": "consent", "wait": wait}, attributes__disease__guarding="guard")
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    clinic = Clinic(seed)
    refused_for = np.zeros(clinic.people, np.int64)
    published = 0
    for number in range(4):
        rows = np.flatnonzero(clinic.random.random(clinic.people) < 0.97)[: 180 + 60 * number]
        table = clinic.table(rows)
        try:
            plan = series.plan(table, name=f"r{number}", seed=2**63 + number)
        except sq.GuaranteeError:
            assert number > 0
        else:
            assert plan.holds
            assert plan.personal.withheld == int((~clinic.agrees[rows]).sum())
            assert plan.personal.waiting <= plan.personal.withdrawn
            release = series.publish(plan)
            published += 1
            members = release.members()
            there = {p for p, c in zip(*members.to_pydict().values(), strict=True) if c >= 0 and p is not None}
            # Whoever is in it by name agrees; those who wait are published on without one, and may only wait so long.
            assert all(clinic.agrees[int(person[1:])] for person in there)
            assert release.table.num_rows == len(there) + plan.waiting.retained
            assert plan.personal.waiting == 0 or wait > 0
            assert plan.personal.waiting <= plan.waiting.retained
        refused_for = np.where(clinic.agrees, 0, refused_for + 1)
        clinic.agrees &= clinic.random.random(clinic.people) > 0.02
        clinic.guard[clinic.random.random(clinic.people) < 0.02] = "Disease"
    assert published >= 2
    found = series.audit()
    assert found.holds
    assert {"difference", "tracing", "deniability"} <= set(found.tried)


def test_a_withdrawal_does_not_wait_longer_than_it_may(tmp_path: Path) -> None:
    policy = rules(attributes__agrees={"role": "consent", "wait": 2})
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    clinic = Clinic(7)
    clinic.agrees[:] = True
    series.publish(clinic.table(np.arange(300)), name="r0", seed=2**63 + 0)
    clinic.agrees[17] = False
    waits = []
    for number in range(1, 4):
        plan = series.plan(clinic.table(np.arange(300)), name=f"r{number}", seed=2**63 + number)
        waits.append(plan.personal.waiting)
        series.publish(plan)
    # One person alone cannot be hidden: she is published on twice, and then leaves with all she was published with.
    assert waits == [1, 1, 0]
    assert plan.waiting.left_out > 0
    assert series.audit().holds


def test_a_wish_that_comes_after_publication_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    policy = rules(attributes__disease__guarding="guard")
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    clinic = Clinic(8)
    clinic.agrees[:] = True
    clinic.guard[:] = ""
    first = series.publish(clinic.table(np.arange(200)), name="r0", seed=2**63 + 0)
    clinic.guard[:50] = "Disease"
    plan = series.plan(clinic.table(np.arange(200)), name="r1", seed=2**63 + 1)
    already = int(np.isin(clinic.disease[:50], ["HIV"]).sum())
    assert plan.personal.late == 50 - already
    second = series.publish(plan)
    assert Counter(second.table["disease"].to_pylist()) == Counter(first.table["disease"].to_pylist())
    assert series.audit().holds


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("agrees", {3: "perhaps"}, "1 row says neither yes nor no"),
        ("guard", {3: "Weather"}, "the node is no node of the hierarchy"),
        ("disease", {3: "Weather"}, "outside the hierarchy"),
        ("disease", {3: "Respiratory"}, "outside the hierarchy"),
    ],
)
def test_wrong_cells_are_told_without_quoting_them(column: str, cells: dict[int, str], message: str) -> None:
    clinic = Clinic(9)
    clinic.agrees[:] = True
    table = clinic.table(np.arange(60)).to_pydict()
    for row, cell in cells.items():
        table[column][row] = cell
    with pytest.raises(sq.DataError, match=message) as caught:
        sq.anonymize(pa.table(table), rules(attributes__disease__guarding="guard"))
    assert not any(cell in str(caught.value) for cell in cells.values())


def test_a_node_that_is_not_above_the_value_is_told() -> None:
    clinic = Clinic(9)
    clinic.agrees[:] = True
    clinic.guard[:] = ""
    clinic.disease[5], clinic.guard[5] = "Flu", "Digestive"
    with pytest.raises(sq.DataError, match=r"of 1 row the node is not above the person's own value \(row 6\)"):
        sq.anonymize(clinic.table(np.arange(60)), rules(attributes__disease__guarding="guard"))


def test_an_empty_cell_is_no_consent() -> None:
    clinic = Clinic(10)
    table = clinic.table(np.arange(200)).to_pydict()
    table["agrees"] = ["", *["true"] * 199]
    release = sq.anonymize(pa.table(table), rules())
    assert release.table.num_rows == 199
    with pytest.raises(sq.DataError, match="nobody in the 200 rows agrees"):
        sq.anonymize(pa.table(table | {"agrees": ["no"] * 200}), rules())


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"attributes__other": {"role": "consent"}}, "attributes.other", "put both in one column"),
        ({"attributes__disease__guarding": "age"}, "attributes.disease.guarding", "is a column that is published"),
        (
            {"attributes__disease": {"role": "sensitive", "grades": {"HIV": "high"}}},
            "attributes.disease.grades",
            "needs a hierarchy",
        ),
        (
            {"protect__diversity": {"kind": "distinct", "l": 2}, "attributes__disease__guarding": "guard"},
            "protect.diversity",
            "may choose a node that says nothing",
        ),
        ({"protect__closeness": {"t": 0.3}}, "protect.closeness", "not defined where values are published as nodes"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(sq.PolicyError, match=message) as caught:
        rules(**changes)
    assert [problem.key for problem in caught.value.problems] == [key]


def test_a_grade_that_is_no_node_is_told_with_its_key() -> None:
    policy = rules(attributes__disease__grades={"Flu": "Digestive", "Plague": "high"})
    with pytest.raises(sq.PolicyError) as caught:
        sq.anonymize(Clinic(1).table(np.arange(100)), policy)
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"attributes.disease.grades.Plague", "attributes.disease.grades.Flu"}


def test_diversity_counts_only_values_that_exclude_each_other() -> None:
    grades = {"TB": "Respiratory", "Gastritis": "high"}
    single = {"k": 2, "diversity": {"kind": "distinct", "l": 2}, "against": ["outsider"]}
    policy = rules(protect=single, attributes__disease__grades=grades)
    table = {"id": ["1", "2"], "age": [1, 1], "zip": [1, 1], "agrees": ["yes", "yes"]}
    # A row that says Respiratory may be the flu.
    with pytest.raises(sq.GuaranteeError, match="in general"):
        sq.anonymize(pa.table(table | {"disease": ["Flu", "TB"]}), policy)
    release = sq.anonymize(pa.table(table | {"disease": ["Ulcer", "TB"]}), policy)
    assert sorted(release.table["disease"].to_pylist()) == ["Respiratory", "Ulcer"]


# Brute force: every way to subtract one release from another.


def exposed(history: Any, cells: dict[int, str], *, k: int, limit: Fraction) -> list[tuple[int, ...]]:
    """Sets of people that two releases determine and that are too few, or of whom too many may have one value."""
    found = []
    releases = []
    for release in history.releases:
        classes = [frozenset(np.flatnonzero(release.member == c).tolist()) for c in range(len(release))]
        unions = [frozenset()]
        for members in classes:
            unions += [union | members for union in unions]
        releases.append(unions)
    for one in range(len(releases)):
        for other in range(len(releases)):
            for inner in releases[one] if one != other else []:
                for outer in releases[other]:
                    rest = outer - inner
                    if inner <= outer and rest:
                        may = max(sum(v in possible(cells[p]) for p in rest) for v in set(VALUES) - {"Fever"})
                        if len(rest) < k or Fraction(may, len(rest)) > limit:
                            found.append(tuple(sorted(rest)))
    return found


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
@pytest.mark.parametrize("seed", range(5))
def test_no_difference_of_small_releases_exposes_anybody(tmp_path: Path, method: str, seed: int) -> None:
    policy = rules(
        attributes__agrees={"role": "consent", "wait": 1},
        attributes__disease__guarding="guard",
        method={"name": method},
        protect={"k": 3, "confidence": 0.7},
    )
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    clinic = Clinic(100 + seed, people=30)
    cells: dict[int, str] = {}
    published = 0
    for number in range(4):
        rows = np.flatnonzero(clinic.random.random(30) < 0.95)[: 14 + 5 * number]
        try:
            series.publish(clinic.table(rows), name=f"r{number}", seed=2**63 + number, again=True)
        except sq.GuaranteeError:
            continue
        finally:
            clinic.agrees ^= clinic.random.random(30) < 0.05
        published += 1
    assert published >= 2, "several releases, or there is nothing to subtract"
    found = series.audit()
    assert found.holds
    for history in found.histories:
        assert history.value is not None
        for person, value in enumerate(history.value.tolist()):
            # Every history says of one value whether a row may be it; together they say what is published.
            if value == 0:
                cells[person] = "|".join(sorted({*cells.get(person, "").split("|"), history.values[0]} - {""}))
    names = {
        "|".join(sorted(possible(node) - {"Fever"})): node
        for node in [*VALUES, *(node for nodes in ABOVE.values() for node in nodes)]
    }
    told = {person: names[cells.get(person, "")] for person in range(len(history.people))}
    assert not exposed(history, told, k=3, limit=Fraction(7, 10))


# Releases made by others.


def as_released(*cells: list[str]) -> list[pa.Table]:
    people = [str(number) for number in range(len(cells[0]))]
    return [
        pa.table({"id": people, "age": ["*"] * len(people), "zip": ["*"] * len(people), "disease": c}) for c in cells
    ]


def test_a_value_that_was_published_finer_before_is_known() -> None:
    policy = rules(protect={"k": 2, "confidence": 0.5}, attributes__disease__guarding="guard")
    vague = ["Disease", "Disease", "Ulcer", "Fever"]
    # The second release is vaguer; whoever has both knows what the first said.
    safe = sq.audit(as_released(["TB", "Flu", "Ulcer", "Fever"], ["TB", "Flu", "Ulcer", "Fever"]), policy)
    mixed = sq.audit(as_released(["TB", "Flu", "Ulcer", "Fever"], ["Lung", "Cold", "Ulcer", "Fever"]), policy)
    assert safe.holds
    assert mixed.holds
    assert mixed.measures["deniability"] == safe.measures["deniability"]
    assert not sq.audit(as_released(vague), policy).holds, "three of four rows may be any disease"


def test_values_that_exclude_each_other_are_no_one_person() -> None:
    policy = rules(protect={"k": 2, "confidence": 0.5}, attributes__disease__guarding="guard")
    with pytest.raises(sq.DataError, match="1 person has different values in different releases"):
        sq.audit(as_released(["TB", "Flu", "Ulcer", "Fever"], ["Digestive", "Flu", "Ulcer", "Fever"]), policy)


@given(st.lists(st.sampled_from(VALUES), min_size=1, max_size=5), st.data())
@settings(max_examples=60, deadline=None)
def test_the_finest_of_several_versions_is_taken_for_all(values: list[str], data: st.DataObject) -> None:
    from sequester.history.load import finest_values

    domain = with_nodes(from_tree(TREE))
    names = domain.names[0]
    cells = [[data.draw(st.sampled_from([value, *ABOVE[value]])) for value in values] for _ in range(3)]
    rows = [np.arange(len(values))] * 3
    codes = [np.array([names.index(cell) for cell in release], np.int32) for release in cells]
    found, apart = finest_values(len(values), rows, codes, domain)
    assert apart == 0
    for person, value in enumerate(values):
        chain = [value, *ABOVE[value]]
        best = min((release[person] for release in cells), key=chain.index)
        assert all(names[release[person]] == best for release in found)
