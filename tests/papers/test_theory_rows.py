"""What was believed about rows as published, and the smallest example against it (docs/theory.md, section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sequester as sq
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")
PLAIN: dict[str, Any] = {"role": "sensitive"}
SEED = (1 << 63) + 7
METHODS = ["mondrian", "full-domain", "specialize", "merge", "grow", "cluster"]


def policy(columns: dict[str, Any], *, k: int = 2, confidence: Any = 0.5, **more: Any) -> sq.Policy:
    """Classes are written in the column q, which links nothing; `more` are other promises, method and infeasible."""
    top = {name: more.pop(name) for name in ("method", "infeasible") if name in more}
    protect = {"k": k, **({} if confidence is None else {"confidence": confidence}), **more}
    attributes = {"q": {"role": "quasi-identifier", "changes": True}, **columns}
    return sq.Policy.model_validate(
        {"version": 1, "series": "rows", "person": "id", "attributes": attributes, "protect": protect, **top}
    )


def released(classes: Sequence[Sequence[int]], cells: dict[int, str], names: str) -> pa.Table:
    """A release: classes of people, everybody's cells with blanks between them."""
    return pa.Table.from_pylist(
        [
            {"id": person, "q": f"class {place}", **dict(zip(names.split(), cells[person].split(), strict=True))}
            for place, people in enumerate(classes)
            for person in people
        ]
    )


def snapshot(people: dict[str, tuple[int, str]], **columns: dict[str, str]) -> pa.Table:
    """A private table: age and value of everybody, and more columns by person."""
    return pa.Table.from_pylist(
        [
            {"id": who, "q": age, "s": value, **{name: cells[who] for name, cells in columns.items()}}
            for who, (age, value) in people.items()
        ]
    )


AGE = {"role": "quasi-identifier", "kind": "number", "range": [0, 9]}


def found(audit: sq.Audit, attack: str) -> list[Any]:
    return [finding for finding in audit.findings if finding.attack == attack]


# Labels.

EIGHT = dict(enumerate(["a z1", "a z2", "b z3", "b z4", "b z7", "b z8", "a z5", "a z6"], start=1))
TWICE = ([[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2, 5, 6], [3, 4, 7, 8]])


def exposed(audit: sq.Audit) -> dict[int, set[str]]:
    """Per person, what she cannot deny."""
    people: dict[int, set[str]] = {}
    for finding in found(audit, "deniability"):
        for person in finding.people:
            people.setdefault(person, set()).add(finding.value)
    return people


@pytest.mark.parametrize("combine", ["each", "joint", "both"])
def test_attributes_that_are_safe_each_and_joint_are_not_safe_in_one_row(combine: str) -> None:
    rules = policy({"s": PLAIN, "z": PLAIN}, sensitive=combine)
    audit = sq.audit([released(classes, EIGHT, "s z") for classes in TWICE], rules)
    # Joint alone bounds combinations, of which everybody has two to choose from; it promises nothing about s.
    assert set(exposed(audit)) == (set() if combine == "joint" else set(range(1, 9)))
    assert audit.measures["deniability"] == (0.5 if combine == "joint" else 1)
    for name in ("s", "z"):
        alone = policy({name: PLAIN})
        tables = [released(classes, EIGHT, "s z").select(["id", "q", name]) for classes in TWICE]
        assert sq.audit(tables, alone).holds


def test_an_insensitive_column_that_stays_is_not_harmless() -> None:
    tables = [released(classes, EIGHT, "s z") for classes in TWICE]
    audit = sq.audit(tables, policy({"s": PLAIN, "z": {"role": "insensitive"}}))
    assert exposed(audit) == {person: {EIGHT[person][0]} for person in EIGHT}
    assert sq.audit(tables, policy({"s": PLAIN, "z": {"role": "insensitive", "changes": True}})).holds


def test_sets_that_are_safe_value_by_value_are_not_safe_whole() -> None:
    sets = {person: cells.replace(" ", ";") for person, cells in EIGHT.items()}
    rules = policy({"s": {"role": "sensitive", "kind": "set"}})
    audit = sq.audit([released(classes, sets, "s") for classes in TWICE], rules)
    assert set(exposed(audit)) == set(range(1, 9))


def test_ordinary_values_of_a_set_tell_sets_apart_that_are_one_for_its_only_bounded_value() -> None:
    sets = {person: cells.replace(" ", ";") for person, cells in EIGHT.items()}
    free = ["b", *(f"z{number}" for number in range(1, 9))]
    rules = policy({"s": {"role": "sensitive", "kind": "set", "ordinary": free}})
    audit = sq.audit([released(classes, sets, "s") for classes in TWICE], rules)
    assert exposed(audit) == {person: {"a"} for person in EIGHT if EIGHT[person][0] == "a"}


# Tracing.


def test_rows_of_newcomers_are_traced_back_too() -> None:
    cells = dict(enumerate("abcabcdede"))
    tables = [
        released([range(6)], cells, "s"),
        released([[0, 1, 2, 6, 7], [3, 4, 5, 8, 9]], cells, "s"),
    ]
    audit = sq.audit(tables, policy({"s": PLAIN}, k=3))
    traced = {(finding.value, finding.people) for finding in found(audit, "tracing")}
    assert traced == {("d", (6, 7)), ("e", (6, 7)), ("d", (8, 9)), ("e", (8, 9))}
    assert audit.measures["tracing"] == 2


def test_one_of_six_equal_ordinary_rows_who_leaves_is_not_known_by_her_row() -> None:
    cells = dict.fromkeys(range(6), "none")
    rules = policy({"s": {"role": "sensitive", "ordinary": ["none"]}})
    audit = sq.audit([released([range(6)], cells, "s"), released([range(5)], cells, "s")], rules)
    assert audit.holds


@pytest.mark.parametrize("method", METHODS)
def test_equal_ordinary_rows_do_not_keep_leavers_in_a_series(tmp_path: Path, method: str) -> None:
    rules = policy({"s": {"role": "sensitive", "ordinary": ["none"]}, "q": AGE}, method={"name": method})
    series = sq.Series.open(tmp_path / "rows.ledger", rules, key=KEY)
    people = {f"p{number}": (3, "none") for number in range(6)}
    for at in range(3):
        plan = series.plan(snapshot(people), name=f"t{at}", seed=SEED)
        release = series.publish(plan)
        assert release.table.num_rows == len(people)
        people.pop(f"p{at}")


# Who is in a release.


@pytest.mark.parametrize("infeasible", ["hold-back", "suppress"])
@pytest.mark.parametrize("method", METHODS)
def test_of_newcomers_with_a_frequent_value_not_just_some_wait(tmp_path: Path, method: str, infeasible: str) -> None:
    rules = policy({"s": PLAIN, "q": AGE}, method={"name": method}, infeasible=infeasible)
    series = sq.Series.open(tmp_path / "rows.ledger", rules, key=KEY)
    first = {f"p{number}": (number, "abcd"[number % 4]) for number in range(8)}
    series.publish(snapshot(first), name="t0", seed=SEED)
    coming = {f"n{n}": (n, value) for n, value in enumerate(["HIV", "HIV", "HIV", "HIV", "flu", "cold"])}
    release = series.publish(snapshot({**first, **coming}), name="t1", seed=SEED)
    assert release.table.num_rows in (8, 14)


def test_people_who_are_kept_are_not_marked_by_empty_cells(tmp_path: Path) -> None:
    rules = policy({"s": PLAIN, "q": AGE, "ward": {"role": "insensitive"}}, method={"name": "merge"})
    series = sq.Series.open(tmp_path / "rows.ledger", rules, key=KEY)
    people = {f"p{number}": (number, "abcd"[number % 4]) for number in range(8)}
    ward = {who: f"w{int(who[1]) % 2}" for who in people}
    first = series.publish(snapshot(people, ward=ward), name="t0", seed=SEED)
    people.pop("p0")
    second = series.publish(snapshot(people, ward=ward), name="t1", seed=SEED)
    assert second.table.num_rows == 8, "one who leaves with a value of her own cannot be hidden"
    assert sorted(second.table["ward"].to_pylist()) == sorted(first.table["ward"].to_pylist())


# Stars.


def test_a_star_is_no_way_to_have_no_value() -> None:
    cells = dict(enumerate(["*", "*", "b", "c"]))
    rules = policy({"s": PLAIN}, confidence=0.4)
    audit = sq.audit([released([range(4)], cells, "s")], rules, against=["outsider"])
    # Both may be b: three of four.
    assert audit.measures["confidence"] == 0.75
    assert not audit.holds


def test_a_star_may_be_any_value_over_a_lifetime() -> None:
    cells = dict(enumerate(["*", "b", "c", "d"]))
    column = {"role": "sensitive", "values": "transient"}
    rules = policy({"s": column}, confidence=None, lifetime={"l": 2, "releases": 2}, against=["lifetime"])
    audit = sq.audit([released([range(4)], cells, "s")] * 2, rules)
    assert audit.measures["breach"] == pytest.approx(1 - (1 - 2 / 4) ** 2)
    assert not audit.holds


# A population.


def test_a_population_never_tells_less_than_no_population() -> None:
    """Alice is 3 and in the wide class of both releases: what the two have in common is c."""
    rules = policy({"s": PLAIN, "q": AGE}, against=["insider", "neighbor"])
    first = pa.table({"q": ["[3-4]", "[3-4]", "4", "4"], "s": ["c", "b", "a", "c"]})
    second = pa.table({"q": ["[3-4]", "[3-4]", "4", "4"], "s": ["c", "a", "c", "b"]})
    people = pa.table({"id": ["alice", "p2", "p3", "p4"], "q": [3, 4, 4, 4]})
    alone = sq.audit([first, second], rules)
    known = sq.audit([first, second], rules, population=[people, people])
    told = {(finding.attack, finding.value, finding.classes) for finding in known.findings}
    assert {(finding.attack, finding.value, finding.classes) for finding in alone.findings} <= told
    assert [finding for finding in known.findings if finding.value == "c" and "alice" in finding.people]


# What a policy promises.

TRANSIENT = {"role": "sensitive", "values": "transient"}


@pytest.mark.parametrize("confidence", [{"H": 0.5}, 1])
def test_confidence_does_not_take_the_bound_over_a_lifetime_from_other_values(confidence: Any) -> None:
    rules = policy({"s": TRANSIENT}, confidence=confidence, lifetime={"l": 2, "releases": 2}, against=["lifetime"])
    cells = dict.fromkeys(range(3), "x")
    audit = sq.audit([released([range(3)], cells, "s")], rules)
    assert audit.measures["breach"] == 1
    assert not audit.holds


@pytest.mark.parametrize("against", ["insider", "neighbor"])
@pytest.mark.parametrize(
    "promise",
    [{"diversity": {"kind": "distinct", "l": 2}}, {"closeness": {"t": 0.5}}, {"alpha": 0.5}],
    ids=["diversity", "closeness", "alpha"],
)
def test_a_promise_about_single_releases_is_none_against_whoever_holds_two(
    promise: dict[str, Any], against: str
) -> None:
    with pytest.raises(sq.PolicyError, match="confidence"):
        policy({"s": PLAIN}, confidence=None, against=[against], **promise)


def test_two_diverse_releases_make_two_people_certain() -> None:
    """Why diversity alone is no promise against an insider."""
    cells = dict(enumerate("abcc"))
    tables = [released([[0, 1]], cells, "s"), released([range(4)], cells, "s")]
    audit = sq.audit(tables, policy({"s": PLAIN}))
    assert exposed(audit) == {2: {"c"}, 3: {"c"}}


@pytest.mark.parametrize("against", [["insider"], ["neighbor"], ["insider", "lifetime"]])
def test_values_that_change_are_not_promised_against_an_insider_without_a_lifetime(against: list[str]) -> None:
    with pytest.raises(sq.PolicyError, match="lifetime"):
        policy({"s": TRANSIENT}, against=against)


# Quasi-identifiers that change.


@pytest.mark.parametrize("changes", [True, {"by": [0, 1]}, False], ids=["freely", "by a step", "never"])
def test_the_same_file_twice_tells_nothing_new(changes: Any) -> None:
    rules = policy({"s": PLAIN, "q": {**AGE, "range": [0, 99], "changes": changes}})
    rows = [("[20-29]", "a"), ("[20-29]", "b"), ("[50-59]", "a"), ("[50-59]", "c"), ("[60-69]", "b"), ("[60-69]", "d")]
    table = pa.table({"q": [q for q, _ in rows], "s": [s for _, s in rows]})
    shuffled = table.take([3, 0, 5, 1, 4, 2])
    assert not sq.audit([table, shuffled], rules, against=["outsider", "neighbor"]).findings


def test_nobody_is_25_and_53_a_year_later() -> None:
    """Classes that nobody can be in both of do not meet; where anything may happen they are not linked at all."""
    first = pa.table({"q": ["[20-29]", "[20-29]", "[50-59]", "[50-59]"], "s": ["a", "b", "c", "d"]})
    later = pa.table({"q": ["[20-30]", "[20-30]", "[50-60]", "[50-60]"], "s": ["a", "b", "c", "d"]})
    for changes in (True, {"by": [0, 1]}):
        rules = policy({"s": PLAIN, "q": {**AGE, "range": [0, 99], "changes": changes}})
        assert not sq.audit([first, later], rules, against=["outsider", "neighbor"]).findings


# What is public, and what is advised.


def test_a_seed_that_can_be_tried_out_is_refused(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "rows.ledger", policy({"s": PLAIN, "q": AGE}), key=KEY)
    people = {f"p{number}": (number, "abcd"[number % 4]) for number in range(8)}
    with pytest.raises(sq.SequesterError, match="64"):
        series.publish(snapshot(people), name="t0", seed=7)


def test_a_release_says_nothing_about_tables_that_were_not_published(tmp_path: Path) -> None:
    """Two series that differ only in what is not published have the same public files, but for the chain."""
    series = sq.Series.open(tmp_path / "rows.ledger", policy({"s": PLAIN, "q": AGE}), key=KEY)
    people = {f"p{number}": (number, "abcd"[number % 4]) for number in range(8)}
    series.publish(snapshot(people), name="t0", seed=SEED)
    release = series.publish(snapshot({**people, "n0": (1, "a")}), name="t1", seed=SEED)
    assert release.table.num_rows == 8
    assert release.folder is not None
    text = (release.folder / "release.json").read_text()
    assert '"held": 1' not in text
    assert '"static"' not in text


def test_advice_to_begin_a_new_series_says_what_it_forgets(tmp_path: Path) -> None:
    """Old minus new gives alice: a new series of the same people comes after the old ledger."""
    rules = policy({"s": PLAIN, "q": AGE})
    series = sq.Series.open(tmp_path / "rows.ledger", rules, key=KEY)
    people = {f"p{number}": (number, "abcd"[number % 4]) for number in range(8)}
    series.publish(snapshot(people), name="t0", seed=SEED)
    with pytest.raises(sq.PolicyError, match=r"(?s)^(?!.*begin a new series with another ledger).*") as caught:
        sq.Series.open(tmp_path / "rows.ledger", policy({"s": PLAIN, "q": AGE}, k=3), key=KEY)
    assert "after" in str(caught.value)
