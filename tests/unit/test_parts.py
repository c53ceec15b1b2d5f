"""Large tables: made in parts, published as one, and safe as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sequester as sq
from parted import KEY, PART, SEED, begin, files, people, policy, publish_both, waves, write
from parted_series import published_rows
from sequester.errors import DataError, GuaranteeError, LedgerError, PolicyError, StalePlan
from sequester.ledger import Ledger
from sequester.ledger.parts import Shelf, is_parted
from sequester.publish.inquiry import with_bounds
from sequester.publish.parts.sliced import checksums
from sequester.publish.series import Series


@pytest.fixture(scope="module", params=["mondrian", "pods", "merge"])
def series(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Two releases in parts."""
    return publish_both(tmp_path_factory.mktemp(request.param), policy(request.param))


def ledger_of(series: Series) -> Ledger:
    return Ledger.open(series.place, key=KEY, read_only=True)


def publishers_view(series: Series) -> list[pa.Table]:
    """Every release with who each row is about, put together from what the ledger has of all parts."""
    with ledger_of(series) as ledger:
        return published_rows(ledger)[0]


def test_a_large_first_table_is_made_in_parts_and_so_are_those_that_follow(series: Series) -> None:
    with ledger_of(series) as ledger:
        entries = ledger.releases()
        assert is_parted(entries)
        counts = [len(listed.cards) for listed in Shelf(ledger.place).lists(entries)]
    assert counts[0] == counts[1] > 2
    assert [entry.records for entry in entries] >= [300, 300]


def test_what_parts_promise_holds_of_the_whole_series(series: Series) -> None:
    """The whole audit, which knows of no parts, on all of it together."""
    audit = sq.audit(publishers_view(series), series.policy)
    assert audit.holds
    assert {"difference", "tracing", "deniability"} <= set(audit.tried)
    assert series.audit().measures["k"] == audit.measures["k"]


def test_the_audit_of_parts_finds_what_the_audit_of_all_finds(series: Series) -> None:
    whole = sq.audit(publishers_view(series), series.policy, against=["insider"])
    parts = series.audit(k=9, confidence=0.2)
    together = sq.audit(publishers_view(series), with_bounds(series.policy, k=9, confidence=0.2))
    assert whole.holds
    assert not parts.holds
    for attack in ("k", "confidence", "deniability"):
        assert parts.measures[attack] == pytest.approx(together.measures[attack])
    # Only the ledger knows which rows are decoys, and so which classes have enough rows and too few people.
    rows = [finding for finding in parts.findings if finding.attack != "k" or finding.required == 9]
    for attack in ("k", "confidence"):
        assert sum(f.attack == attack for f in rows) == sum(f.attack == attack for f in together.findings)
    few = {finding.required for finding in parts.findings} - {finding.required for finding in together.findings}
    assert few == ({5} if series.policy.method.name == "pods" else set())
    with pytest.raises(DataError, match="without their stories"):
        parts.story(1)


def test_published_rows_are_everybody_and_keep_k(series: Series) -> None:
    for number, table in enumerate(waves(), 1):
        folder = next((series.folder / "towns").glob(f"000{number}-*"))
        measured = sq.measure(folder / "data.csv", series.policy)
        assert measured.k >= 3
        assert measured.confidence is not None
        assert measured.confidence <= 0.6
        frame = sq.read_release(folder, "arrow")
        assert frame.num_rows >= table.num_rows
        if series.policy.method.name == "pods":
            assert frame["weight"].to_numpy().sum() == pytest.approx(table.num_rows, rel=1e-3)


def test_of_every_kind_of_people_all_come_and_go_or_nobody_in_all_parts(series: Series) -> None:
    """Who waits must not tell what parts would tell one by one: the newcomers of this one have something in common."""
    told = series.releases()[1].summary
    change, waiting = told["change"], told["waiting"]
    assert waiting["retained"] in (0, change["leavers"])
    assert waiting["held"] in (0, change["newcomers"])


def test_public_figures_of_a_release_are_those_of_its_rows(series: Series) -> None:
    """Of decoys it is told how many there are, and how many people every class must have: never how many one has."""
    decoys = series.policy.method.name == "pods"
    for folder, table in zip(sorted((series.folder / "towns").iterdir()), waves(), strict=True):
        facts = json.loads((folder / "release.json").read_text())
        measured = sq.measure(folder / "data.csv", series.policy)
        assert facts.get("people") == (table.num_rows if decoys else None)
        assert facts.get("fewest_people") == (series.policy.fewest_people if decoys else None)
        assert facts["loss"] == {"dm": measured.loss["dm"], "class_size": pytest.approx(measured.loss["class_size"])}
        assert (facts["k"], facts["l"], facts["records"]) == (measured.k, measured.l, measured.records)
        assert facts["confidence"] == pytest.approx(measured.confidence)


def test_the_ledger_verifies_every_part(series: Series) -> None:
    with ledger_of(series) as ledger:
        assert ledger.verify(releases=series.folder).holds


def test_rows_in_any_order_by_any_number_of_processes_give_the_same_bytes(tmp_path: Path) -> None:
    chosen = policy("pods")
    publish_both(tmp_path / "one", chosen)
    first, second = waves()
    mixed = tuple(
        table.take(pa.array(np.random.default_rng(7).permutation(table.num_rows))) for table in (first, second)
    )
    publish_both(tmp_path / "other", policy("pods", engine={"processes": 2}), tables=mixed)
    assert files(tmp_path / "one") == files(tmp_path / "other")
    assert len(files(tmp_path / "one")) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder", "glob", "frame", "duckdb"])
def test_every_kind_of_input_gives_the_same_release(kind: str, tmp_path: Path) -> None:
    table = waves()[0]
    source: Any = table
    if kind == "csv":
        source = write(tmp_path / "t.csv", table)
    elif kind == "parquet":
        parquet.write_table(table, tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    elif kind in ("folder", "glob"):
        (tmp_path / "parts").mkdir()
        for number in range(3):
            part = table.slice(number * 100, 100)
            if kind == "folder":
                parquet.write_table(part, tmp_path / "parts" / f"{number}.parquet")
            else:
                write(tmp_path / "parts" / f"{number}.csv", part)
        source = tmp_path / "parts" if kind == "folder" else str(tmp_path / "parts" / "*.csv")
    elif kind == "duckdb":
        import duckdb

        with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE towns AS SELECT * FROM given")
        source = f"{tmp_path / 't.duckdb'}::towns"
    plan = begin(tmp_path / "series", policy()).plan(source, name="w1", seed=SEED)
    expected = begin(tmp_path / "expected", policy()).plan(table, name="w1", seed=SEED)
    assert plan.parts is not None
    assert (plan.content, plan.input_digest) == (expected.content, expected.input_digest)


def test_a_part_that_gets_nobody_new_does_not_end_its_series(tmp_path: Path) -> None:
    series = begin(tmp_path, policy(part=80))
    for number in range(1, 4):
        assert series.publish(people(400), name=f"w{number}", seed=SEED + number, again=number > 1).measurement.holds
    assert series.audit().holds
    with ledger_of(series) as ledger:
        assert ledger.verify(releases=series.folder).holds


def test_a_saved_plan_is_made_anew_and_goes_stale(tmp_path: Path) -> None:
    series = begin(tmp_path, policy())
    source = write(tmp_path / "w1.csv", waves()[0])
    place = series.plan(source, seed=SEED).save(tmp_path / "next.plan")
    text = place.read_text()
    assert not any(name in text for name in ("Bonn", "p17", "lupus"))
    release = series.publish(sq.Plan.load(place))
    assert release.folder is not None
    with pytest.raises(StalePlan, match=r"publish|plan"):
        series.publish(sq.Plan.load(place))


def test_a_plan_leaves_nothing_behind(tmp_path: Path) -> None:
    series = begin(tmp_path, policy())
    plan = series.plan(waves()[0], name="w1", seed=SEED)
    assert any(path.name.endswith(".part") for path in tmp_path.iterdir())
    del plan
    assert sorted(path.name for path in tmp_path.iterdir()) == ["towns.ledger"]


def test_somebody_twice_in_the_table_is_refused_whichever_parts_her_rows_are_in(tmp_path: Path) -> None:
    first = waves()[0]
    other = first.slice(0, 1).set_column(1, "age", pa.array([99 - first["age"][0].as_py()]))
    with pytest.raises(DataError, match="1 person is in the table twice, or with other values of"):
        begin(tmp_path, policy()).plan(pa.concat_tables([first, other]), name="w1", seed=SEED)
    with pytest.raises(DataError, match="1 person is in the table twice"):
        begin(tmp_path, policy()).plan(pa.concat_tables([first, first.slice(0, 1)]), name="w1", seed=SEED)


def test_somebody_whose_lasting_cells_changed_is_refused_even_where_that_leads_to_another_part(tmp_path: Path) -> None:
    series = begin(tmp_path, policy("pods"))
    first, second = waves()
    series.publish(first, name="w1", seed=SEED)
    age = second["age"].to_numpy().copy()
    age[0] = 99 - age[0]
    moved = second.set_column(1, "age", pa.array(age))
    with pytest.raises(DataError) as refused:
        series.plan(moved, name="w2", seed=SEED)
    assert "p0" not in str(refused.value)
    assert [entry.name for entry in series.releases()] == ["w1"]


def test_wrong_cells_are_counted_by_rows_and_not_shown(tmp_path: Path) -> None:
    table = waves()[0]
    ages = [str(age) for age in table["age"].to_pylist()]
    ages[5] = ages[9] = "CANARY"
    wrong = table.set_column(1, "age", pa.array(ages))
    with pytest.raises(DataError, match=r"age.*2 rows") as refused:
        begin(tmp_path, policy()).plan(wrong, name="w1", seed=SEED)
    assert "CANARY" not in str(refused.value)
    assert not list(tmp_path.glob("*.part"))


def test_other_people_are_not_taken_for_those_of_the_series(tmp_path: Path) -> None:
    series = begin(tmp_path, policy("pods"))
    first = waves()[0]
    series.publish(first, name="w1", seed=SEED)
    others = first.set_column(0, "id", pa.array([f"x{number}" for number in range(first.num_rows)]))
    with pytest.raises(DataError, match="none of the 300 people in the table is recognised"):
        series.plan(others, name="w2", seed=SEED)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"method": {"name": "full-domain"}}, "recodes the whole table alike"),
        ({"protect": {"closeness": {"t": 0.9}}}, "closeness"),
    ],
)
def test_what_cannot_be_made_in_parts_is_made_whole(changes: dict[str, Any], why: str, tmp_path: Path) -> None:
    from sequester.publish.prepare import whole_because

    chosen = policy(changes.pop("method", {"name": "mondrian"})["name"], **changes)
    assert why in str(whole_because(chosen))
    plan = begin(tmp_path, chosen).plan(waves()[0], name="w1", seed=SEED)
    assert plan.parts is None
    assert plan.candidate is not None


def test_a_series_in_parts_does_not_become_one_that_is_made_whole(tmp_path: Path) -> None:
    series = begin(tmp_path, policy())
    series.publish(waves()[0], name="w1", seed=SEED)
    other = begin(tmp_path, policy("full-domain"))
    with pytest.raises(PolicyError, match="recodes the whole table alike"):
        other.plan(waves()[1], name="w2", seed=SEED)


def test_small_tables_are_made_whole(tmp_path: Path) -> None:
    plan = begin(tmp_path, policy(part=PART * 10)).plan(waves()[0], name="w1", seed=SEED)
    assert plan.parts is None


def test_a_part_that_cannot_be_hidden_stops_the_release(tmp_path: Path) -> None:
    table = waves()[0]
    illness = np.where(table["age"].to_numpy() < 50, "flu", table["illness"].to_numpy(zero_copy_only=False))
    with pytest.raises(GuaranteeError, match=r"promise|hidden"):
        begin(tmp_path, policy()).plan(table.set_column(4, "illness", pa.array(illness)), name="w1", seed=SEED)
    assert not list(tmp_path.glob("*.part"))


def test_parts_that_were_changed_or_lost_are_noticed(tmp_path: Path) -> None:
    series = begin(tmp_path, policy("pods"))
    first, second = waves()
    series.publish(first, name="w1", seed=SEED)
    rows = tmp_path / "towns.ledger.parts" / "0001" / "00001" / "people.parquet"
    table = parquet.read_table(rows)
    low = table["low"].to_numpy().copy()
    low[0] += 1
    parquet.write_table(table.set_column(table.column_names.index("low"), "low", pa.array(low)), rows)
    with ledger_of(series) as ledger:
        assert any("part 1" in problem for problem in ledger.verify().problems)
    with pytest.raises(LedgerError, match="was changed"):
        series.plan(second, name="w2", seed=SEED)
    (tmp_path / "towns.ledger.parts").rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="list of parts of release 1"):
        series.plan(second, name="w2", seed=SEED)


@pytest.mark.parametrize("release", [1, 9], ids=["known", "unknown"])
def test_rows_in_the_ledger_of_a_series_in_parts_are_noticed(tmp_path: Path, release: int) -> None:
    """All its rows are in parts, so that whatever is in these tables was put there."""
    first, second = waves()
    series = begin(tmp_path, policy("merge"))
    series.publish(first, name="w1", seed=SEED)
    with duckdb.connect(str(tmp_path / "towns.ledger")) as database:
        database.execute(f"INSERT INTO state VALUES ({release}, 0, 0)")
    with ledger_of(series) as ledger:
        assert any("state" in problem for problem in ledger.verify().problems)
    with pytest.raises(LedgerError, match="the ledger is damaged"):
        series.plan(second, name="w2", seed=SEED)


def test_what_needs_everything_at_once_says_so(series: Series, tmp_path: Path) -> None:
    with ledger_of(series) as ledger:
        with pytest.raises(LedgerError, match="kept in parts"):
            ledger.load()
        with pytest.raises(LedgerError, match="copy the ledger, and the folder of parts"):
            ledger.export(tmp_path / "export")


def test_checksums_see_every_cell_and_no_order_of_rows() -> None:
    table = people(50).drop_columns("id")
    mixed = table.take(pa.array(np.random.default_rng(0).permutation(50)))
    assert checksums(table).sum() == checksums(mixed).sum()
    for column in table.column_names:
        cells = table[column].to_pylist()
        cells[3] = cells[4] if cells[3] != cells[4] else type(cells[3])(7)
        changed = table.set_column(table.column_names.index(column), column, pa.array(cells))
        assert checksums(table).sum() != checksums(changed).sum()
    swapped = table.rename_columns(
        ["income" if n == "age" else "age" if n == "income" else n for n in table.column_names]
    )
    assert checksums(table).sum() != checksums(swapped).sum()


def test_numbers_and_their_text_have_the_same_checksum() -> None:
    table = pa.table({"a": [1, 20, 300], "b": [0.5, 2.0, None], "c": ["x", None, ""]})
    texts = pa.table({"a": ["1", "20", "300"], "b": ["0.5", "2", ""], "c": ["x", "", ""]})
    assert (checksums(table) == checksums(texts)).all()
