"""A series from Python: what a plan says, what publishing keeps, and what happens to whoever cannot be hidden."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import sequester as sq
from policies import changed
from sequester.ledger import Key, Ledger

KEY = Key.of_text("a key for tests only")
DRAW = np.random.default_rng(5)
AGES = DRAW.integers(0, 60, 400)
ZIPS = DRAW.integers(10_000, 10_040, 400)
VALUES = DRAW.choice(["flu", "cold", "asthma", "gout"], 400)


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "levels": [5, 20]},
            "zip": {"role": "quasi-identifier", "kind": "code", "length": 5},
            "value": {"role": "sensitive"},
            "ward": {"role": "insensitive"},
        },
        "protect": {"k": 4, "confidence": 0.6},
        "method": {"name": "merge"},
    }
    return changed(raw, **changes)


def people(*numbers: int | range, **changes: Any) -> pa.Table:
    """Records of people by their numbers; `changes` are whole columns."""
    chosen = [n for part in numbers for n in ([part] if isinstance(part, int) else part)]
    columns = {
        "id": [f"p{n}" for n in chosen],
        "age": AGES[chosen],
        "zip": ZIPS[chosen].astype(str),
        "value": VALUES[chosen],
        "ward": [f"w{n % 3}" for n in chosen],
    }
    return pa.table({**columns, **changes})


@pytest.fixture
def series(tmp_path: Path) -> sq.Series:
    return sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)


def test_the_first_release_is_recorded_and_whole(series: sq.Series) -> None:
    release = series.publish(people(range(100)), name="first", seed=2**63 + 1)
    assert release.folder == series.folder / "clinic" / "0001-first"
    assert {file.name for file in release.folder.iterdir()} == {
        "data.csv",
        "release.json",
        "dictionary.csv",
        "report.html",
    }
    assert csv.read_csv(release.folder / "data.csv").num_rows == 100
    (entry,) = series.releases()
    assert (entry.number, entry.name, entry.status, entry.records) == (1, "first", "published", 100)


def test_a_plan_changes_nothing_and_says_what_changes(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    before = series.place.file.read_bytes()
    plan = series.plan(people(range(160)), name="second", seed=2**63 + 1)
    assert series.place.file.read_bytes() == before
    assert plan.change == type(plan.change)(newcomers=60, stayers=100)
    assert plan.holds
    assert {check.attack for check in plan.checks} >= {"k", "confidence", "difference", "tracing", "deniability"}
    assert all(check.margin is not None and check.margin >= 0 for check in plan.checks)
    assert plan.loss["static"]["ail"] <= plan.loss["release"]["ail"] <= plan.loss["merge"]["ail"]
    assert plan.levers["now"] > plan.levers["with next"] > plan.levers["with next two"] > 0


def test_neither_plan_nor_release_folder_names_people_or_raw_records(series: sq.Series, tmp_path: Path) -> None:
    source = tmp_path / "first.csv"
    csv.write_csv(people(range(100)), source)
    plan = series.plan(source, seed=2**63 + 987654321)
    said = plan.save(tmp_path / "next.plan").read_text() + repr(plan) + plan._repr_html_()
    release = series.publish(plan)
    assert release.folder is not None
    public = "".join((release.folder / name).read_text() for name in ("release.json", "dictionary.csv", "report.html"))
    for text in (said, public):
        assert not any(f'"p{n}"' in text or f">p{n}<" in text for n in range(100))
        assert not any(value in text for value in ("asthma", "gout"))
    assert str(2**63 + 987654321) not in public
    assert "p5," not in (release.folder / "data.csv").read_text()


def test_a_saved_plan_is_published_as_planned(series: sq.Series, tmp_path: Path) -> None:
    source = tmp_path / "first.csv"
    csv.write_csv(people(range(100)), source)
    plan = series.plan(source)
    file = plan.save(tmp_path / "next.plan")
    assert file.stat().st_mode & 0o777 == 0o600
    saved = sq.Plan.load(file)
    assert saved == plan
    release = series.publish(saved)
    assert release.table.equals(plan.candidate.table)  # type: ignore[union-attr]


def test_a_plan_is_stale_when_the_ledger_moved_on(series: sq.Series) -> None:
    plan = series.plan(people(range(100)), name="first")
    series.publish(people(range(100)), name="other")
    with pytest.raises(sq.StalePlan, match="the ledger has moved on"):
        series.publish(plan)


def test_a_saved_plan_is_stale_when_the_input_changed(series: sq.Series, tmp_path: Path) -> None:
    source = tmp_path / "first.csv"
    csv.write_csv(people(range(100)), source)
    saved = series.plan(source).save(tmp_path / "next.plan")
    csv.write_csv(people(range(101)), source)
    with pytest.raises(sq.StalePlan, match="the table has changed"):
        series.publish(sq.Plan.load(saved))
    assert series.releases() == []


def test_a_saved_plan_is_stale_for_another_policy(series: sq.Series, tmp_path: Path) -> None:
    source = tmp_path / "first.csv"
    csv.write_csv(people(range(100)), source)
    saved = sq.Plan.load(series.plan(source).save(tmp_path / "next.plan"))
    grown = sq.Series.open(series.place, rules(method={"name": "grow"}), key=KEY)
    with pytest.raises(sq.StalePlan, match="not what was planned"):
        grown.publish(saved)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"sequester-plan": 99}', "not json"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.plan").write_text(text)
    with pytest.raises(sq.DataError, match="is not a plan"):
        sq.Plan.load(tmp_path / "x.plan")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"protect__k": 3}, "protect.k"),
        ({"protect__confidence": 0.7}, "protect.confidence"),
        ({"person": "number"}, "person"),
        ({"attributes__age": {"role": "quasi-identifier", "kind": "number", "range": [0, 120]}}, "attributes.age"),
        ({"attributes__ward": {"role": "identifier"}}, "attributes.ward"),
    ],
)
def test_what_was_promised_cannot_be_changed(series: sq.Series, changes: dict[str, Any], key: str) -> None:
    series.publish(people(range(100)), name="first")
    with pytest.raises(sq.PolicyError, match="is not what it was when the series began") as caught:
        sq.Series.open(series.place, rules(**changes), key=KEY)
    assert [problem.key for problem in caught.value.problems] == [key]


def test_the_policy_may_change_until_something_is_published(series: sq.Series) -> None:
    again = sq.Series.open(series.place, rules(protect__k=3), key=KEY)
    again.publish(people(range(100)), name="first")
    assert sq.Series.open(series.place, rules(protect__k=3), key=KEY).audit().measures["k"] >= 3


def test_a_policy_of_another_series_is_refused(series: sq.Series) -> None:
    with pytest.raises(sq.LedgerError, match="the ledger of another series"):
        sq.Series.open(series.place, rules(series="other"), key=KEY)


def test_how_a_release_is_made_and_written_may_change(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    other = sq.Series.open(
        series.place, rules(method={"name": "grow"}, output={"format": "parquet"}, infeasible="refuse"), key=KEY
    )
    release = other.publish(people(range(200)), name="second", seed=2**63 + 1)
    assert release.folder is not None
    assert (release.folder / "data.parquet").is_file()
    assert [entry.method for entry in other.releases()] == ["merge", "grow"]


def test_a_changed_hierarchy_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "value.csv"
    file.write_text("flu;mild;*\ncold;mild;*\nasthma;lasting;*\ngout;lasting;*\n")
    policy = rules(attributes__value={"role": "sensitive", "hierarchy": str(file)})
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    series.publish(people(range(100)), name="first")
    file.write_text("flu;mild;*\ncold;mild;*\nasthma;mild;*\ngout;lasting;*\n")
    with pytest.raises(sq.PolicyError, match="is not what it was when the series began") as caught:
        series.publish(people(range(200)), name="second")
    assert caught.value.problems[0].key == "attributes.value.hierarchy"


def test_new_values_of_observed_domains_are_welcome(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    later = people(range(200))
    zips = ["09999" if n == 150 else "99999" if n == 151 else z for n, z in enumerate(later["zip"].to_pylist())]
    series.publish(later.set_column(2, "zip", pa.array(zips)), name="second", seed=2**63 + 1)
    values = ["zoster" if n in (250, 260) else v for n, v in enumerate(people(range(300))["value"].to_pylist())]
    third = people(range(300)).set_column(3, "value", pa.array(values)).set_column(
        2, "zip", pa.array([*zips, *people(range(200, 300))["zip"].to_pylist()])
    )  # fmt: skip
    release = series.publish(third, name="third", seed=2**63 + 1)
    assert "zoster" in release.table["value"].to_pylist()
    assert series.audit().holds


def test_a_permanent_value_or_quasi_identifier_that_changed_is_an_error(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    changed = people(range(150))
    values = changed["value"].to_pylist()
    values[3:5] = ["flu" if value != "flu" else "cold" for value in values[3:5]]
    ages = np.array(changed["age"]).copy()
    ages[7] += 1
    wrong = changed.set_column(3, "value", pa.array(values)).set_column(1, "age", pa.array(ages))
    with pytest.raises(sq.DataError) as caught:
        series.plan(wrong, name="second")
    first, second = caught.value.problems
    assert "1 person has other values than in an earlier release (row 8)" in first.message
    assert (second.column, second.rows) == ("value", 2)


def test_an_attribute_that_may_change_moves_people_and_is_counted(tmp_path: Path) -> None:
    age = {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True}
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(attributes__age=age), key=KEY)
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    older = people(range(150))
    plan = series.plan(older.set_column(1, "age", pa.array(np.array(older["age"]) + 30)), name="second", seed=2**63 + 1)
    assert plan.change.changed > 50
    series.publish(plan)
    assert series.audit().holds


def test_the_same_table_again_is_an_empty_delta_and_may_be_published_on_request(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1, recipient="press")
    plan = series.plan(people(range(100)), name="again", seed=2**63 + 1, recipient="research", purpose="survival")
    assert plan.change == type(plan.change)(stayers=100)
    with pytest.raises(sq.DataError, match="published already as release 1, and nothing was published; again=True"):
        series.publish(people(range(100)), name="again")
    first, second = (series.releases()[0].recipient, series.publish(plan))
    assert first == "press"
    assert second.measurement.holds
    assert [entry.recipient for entry in series.releases()] == ["press", "research"]
    assert series.releases()[1].purpose == "survival"


def test_one_seed_for_a_whole_series_does_not_repeat_an_order(series: sq.Series) -> None:
    first = series.publish(people(range(100)), name="first", seed=2**63 + 7)
    second = series.publish(people(range(100)), name="again", seed=2**63 + 7, again=True)
    assert sorted(first.table.to_pylist(), key=str) == sorted(second.table.to_pylist(), key=str)
    same = sum(a == b for a, b in zip(first.table.to_pylist(), second.table.to_pylist(), strict=True))
    assert same < 20


def test_the_same_input_seed_and_history_give_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for place in ("one", "two"):
        series = sq.Series.open(tmp_path / place / "clinic.ledger", rules(method={"name": "mondrian"}), key=KEY)
        series.publish(people(range(150)), name="first", seed=2**63 + 3)
        release = series.publish(people(range(300)), name="second", seed=2**63 + 3)
        assert release.folder is not None
        found.append((release.folder / "data.csv").read_bytes())
    assert found[0] == found[1]


def test_people_are_recognised_whatever_the_file(tmp_path: Path) -> None:
    table = people(range(120))
    numbers = pa.array(range(120))
    csv.write_csv(table.set_column(0, "id", numbers), tmp_path / "first.csv")
    parquet.write_table(table.set_column(0, "id", numbers.cast(pa.float64())), tmp_path / "second.parquet")
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    series.publish(tmp_path / "first.csv", seed=2**63 + 1)
    assert series.plan(tmp_path / "second.parquet", seed=2**63 + 1).change.stayers == 120


def test_too_few_newcomers_wait_and_are_published_when_there_are_enough(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    for waited, name in enumerate(("second", "third"), start=1):
        plan = series.plan(people(range(102)), name=name, seed=2**63 + 1)
        assert (plan.waiting.held, plan.waiting.oldest, plan.records) == (2, waited, 100)
        series.publish(plan)
    release = series.publish(people(range(140)), name="fourth", seed=2**63 + 1)
    assert release.table.num_rows == 140
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        assert len(ledger.load().queue) == 0


def test_all_newcomers_wait_where_a_value_is_too_frequent_among_them(series: sq.Series) -> None:
    series.publish(people(range(100)), name="first", seed=2**63 + 1)
    mixed = people(range(130))
    values = [*mixed["value"].to_pylist()[:100], *["gout"] * 20, *["flu"] * 10]
    plan = series.plan(mixed.set_column(3, "value", pa.array(values)), name="second", seed=2**63 + 1)
    assert (plan.waiting.held, plan.records) == (30, 100)
    (note,) = plan.notes
    assert note.startswith("all newcomers (30) cannot be hidden with this release, and wait")
    assert "less current than the table" in note
    series.publish(plan)
    values = [*mixed["value"].to_pylist()[:100], *["gout"] * 15, *["flu"] * 15]
    plan = series.plan(mixed.set_column(3, "value", pa.array(values)), name="third", seed=2**63 + 1)
    assert (plan.waiting.held, plan.records, plan.notes) == (0, 130, ())


def test_a_few_who_left_are_published_on_until_enough_leave(series: sq.Series) -> None:
    first = series.publish(people(range(100)), name="first", seed=2**63 + 1)
    plan = series.plan(people(range(2, 100)), name="second", seed=2**63 + 1)
    assert (plan.change.leavers, plan.waiting.retained, plan.records) == (2, 2, 100)
    second = series.publish(plan)
    # Whoever is published on is published with all cells as they were: nothing marks the row.
    rows = (release.table.to_pylist() for release in (first, second))
    assert len({json.dumps(sorted(map(str, one))) for one in rows}) == 1
    assert series.audit().holds


def test_refusing_publishes_nothing_that_would_have_to_wait(series: sq.Series) -> None:
    strict = sq.Series.open(series.place, rules(infeasible="refuse"), key=KEY)
    strict.publish(people(range(100)), name="first", seed=2**63 + 1)
    with pytest.raises(sq.GuaranteeError, match="2 who came cannot be hidden"):
        strict.plan(people(range(102)), name="second")
    with pytest.raises(sq.GuaranteeError, match="3 who left cannot be hidden"):
        strict.plan(people(range(3, 100)), name="second")


def test_suppressing_leaves_out_whoever_was_published_with_those_who_left(series: sq.Series) -> None:
    strict = sq.Series.open(series.place, rules(infeasible="suppress"), key=KEY)
    strict.publish(people(range(100)), name="first", seed=2**63 + 1)
    plan = strict.plan(people(range(2, 100)), name="second", seed=2**63 + 1)
    assert plan.waiting.retained == plan.waiting.held == 0
    assert 4 <= plan.waiting.left_out + 2 <= 20
    assert plan.records == 98 - plan.waiting.left_out
    strict.publish(plan)
    assert strict.audit().holds


def test_somebody_who_returns_is_recognised(series: sq.Series) -> None:
    series.publish(people(range(200)), name="first", seed=2**63 + 1)
    gone = series.plan(people(range(80, 200)), name="second", seed=2**63 + 1)
    series.publish(gone)
    plan = series.plan(people(range(200), range(200, 260)), name="third", seed=2**63 + 1)
    assert plan.change.returned + plan.change.stayers == 200
    assert plan.change.newcomers == 60
    series.publish(plan)
    assert series.audit().holds


@pytest.mark.parametrize("released", ["as-declared", "quasi-identifier"])
def test_what_was_released_can_count_as_quasi_identifier(tmp_path: Path, released: str) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(released=released), key=KEY)
    for count, name in ((100, "first"), (200, "second")):
        release = series.publish(people(range(count)), name=name, seed=2**63 + 1)
        rows = release.table.select(["age_min", "age_max", "zip", "ward"]).to_pylist()
        fewest = min(rows.count(row) for row in rows)
        assert fewest >= 4 if released == "quasi-identifier" else fewest == 1


def test_nobody_can_be_published_when_all_are_too_much_alike(series: sq.Series) -> None:
    with pytest.raises(sq.GuaranteeError, match="nobody can be published yet"):
        series.plan(people(range(50), value=["gout"] * 50), name="first")


def test_a_release_is_its_owners_until_it_is_recorded(series: sq.Series, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: dict[str, int] = {}

    def look(step: str) -> None:
        for folder in (series.folder / "clinic").glob("*0001-first*"):
            modes[step] = stat.S_IMODE(folder.stat().st_mode)

    monkeypatch.setattr("sequester.publish.commit.step", look)
    before = os.umask(0o022)
    try:
        series.publish(people(range(100)), name="first", seed=2**63 + 1)
    finally:
        os.umask(before)
    assert modes == {"written": 0o700, "begun": 0o700, "shown": 0o755, "finished": 0o755}


def test_a_static_release_is_published_only_by_those_who_know_it_leaks(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(method={"name": "static"}), key=KEY)
    series.publish(people(range(200)), name="first", seed=2**63 + 1)
    plan = series.plan(people(range(300)), name="second", seed=2**63 + 1)
    assert not plan.holds
    with pytest.raises(sq.GuaranteeError, match="say that you know it leaks"):
        series.publish(plan)
    series.publish(plan, i_know_this_leaks=True)
    assert not series.audit().holds
    assert json.loads((series.folder / "clinic" / "0002-second" / "release.json").read_text())["holds"] is False


def test_an_encrypted_ledger_hides_even_its_series(tmp_path: Path) -> None:
    try:
        series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY, encrypted=True)
    except sq.LedgerError as error:
        assert list(tmp_path.iterdir()) == []
        pytest.skip(f"DuckDB cannot encrypt here: {error}")
    series.publish(people(range(100)), name="quarter-one", seed=2**63 + 1)
    assert b"quarter-one" not in series.place.file.read_bytes()
    with pytest.raises(sq.LedgerError, match="key"):
        sq.Series.open(series.place, rules(), key=Key.of_text("another key for tests"))


def test_the_key_is_made_with_the_ledger_and_only_its_owner_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEQUESTER_KEY", raising=False)
    series = sq.Series.open(tmp_path / "clinic.ledger", rules())
    file = tmp_path / "clinic.ledger.key"
    assert file.stat().st_mode & 0o777 == 0o600
    series.publish(people(range(100)), name="first")
    file.unlink()
    with pytest.raises(sq.LedgerError, match="the key is not there"):
        sq.Series.open(tmp_path / "clinic.ledger", rules())


def test_a_series_needs_to_know_who_is_who(tmp_path: Path) -> None:
    raw = rules().model_dump(mode="json", exclude_none=True)
    raw.pop("person")
    with pytest.raises(sq.PolicyError, match="a series needs the column that says who a record is about"):
        sq.Series.open(tmp_path / "x.ledger", sq.Policy.model_validate(raw), key=KEY)


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "first"])
def test_a_release_has_a_plain_name_of_its_own(series: sq.Series, name: str) -> None:
    series.publish(people(range(100)), name="first")
    with pytest.raises(sq.DataError, match="name"):
        series.plan(people(range(100)), name=name)


def test_an_audit_of_nothing_says_so(series: sq.Series) -> None:
    with pytest.raises(sq.DataError, match="nothing was published yet"):
        series.audit()
