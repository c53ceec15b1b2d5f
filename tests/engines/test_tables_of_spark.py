"""Tables as Spark has them: frames, names of the catalog, folders; and what is refused."""

from __future__ import annotations

import datetime
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from parted import KEY, SEED, begin, policy, waves, write
from sequester.errors import DataError, GuaranteeError, PolicyError
from sequester.ledger import Ledger

SOURCES = ("frame", "name", "shuffled frame", "folder", "glob", "csv", "packed csv", "arrow", "database")


def given(kind: str, spark: Any, folder: Path) -> Any:
    """The first wave in many kinds of tables."""
    table = waves()[0]
    if kind in ("frame", "name", "shuffled frame"):
        frame = spark.createDataFrame(table)
        if kind == "shuffled frame":
            from pyspark.sql import functions

            return frame.repartition(7, "city").orderBy(functions.rand(5))
        frame.createOrReplaceTempView("towns")
        return "towns" if kind == "name" else frame
    if kind == "folder":
        spark.createDataFrame(table).repartition(5).write.parquet(str(folder / "t"))
        return folder / "t"
    if kind == "glob":
        for number in range(3):
            parquet.write_table(table.slice(number * 100, 100), folder / f"{number}.parquet")
        return str(folder / "*.parquet")
    if kind == "csv":
        return write(folder / "t.csv", table)
    if kind == "packed csv":
        import gzip

        place = write(folder / "t.csv", table)
        (folder / "t.csv.gz").write_bytes(gzip.compress(place.read_bytes()))
        return folder / "t.csv.gz"
    if kind == "database":
        import duckdb

        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE towns AS SELECT * FROM given")
        return f"{folder / 't.duckdb'}::towns"
    return table


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_table_gives_the_same_plan(kind: str, spark: Any, tmp_path: Path) -> None:
    source = given(kind, spark, tmp_path)
    # A frame needs no word in the policy.
    chosen = policy() if "frame" in kind else policy(engine={"name": "spark"})
    plan = begin(tmp_path / "series", chosen).plan(source, name="w1", seed=SEED)
    expected = begin(tmp_path / "expected", policy()).plan(waves()[0], name="w1", seed=SEED)
    assert (plan.content, plan.input_digest) == (expected.content, expected.input_digest)
    assert plan.checks == expected.checks


def test_columns_of_all_types_mean_the_same(engine: str, spark: Any, tmp_path: Path) -> None:
    """Types that Spark does not have, or reads as others."""
    table = waves()[0]
    age, income = table["age"].to_numpy(), table["income"].to_numpy()
    typed = table.set_column(1, "age", pa.array(age.astype(np.uint8)))
    typed = typed.set_column(3, "income", pa.array(income.astype(np.uint64)))
    typed = typed.set_column(2, "city", table["city"].combine_chunks().dictionary_encode())
    first = datetime.datetime(2001, 1, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))
    days = [first + datetime.timedelta(int(day)) for day in age]
    typed = typed.append_column("born", pa.array(days, pa.timestamp("ns", "Asia/Tokyo")))
    parquet.write_table(typed, tmp_path / "t.parquet")
    born = {"born": {"role": "quasi-identifier", "kind": "date"}}
    chosen = policy(engine={"name": engine}, attributes=born)
    plan = begin(tmp_path / "series", chosen).plan(tmp_path / "t.parquet", name="w1", seed=SEED)
    texts = table.append_column("born", pa.array([day.date().isoformat() for day in days]))
    expected = begin(tmp_path / "expected", policy(attributes=born)).plan(
        write(tmp_path / "t.csv", texts), name="w1", seed=SEED
    )
    assert (plan.content, plan.input_digest) == (expected.content, expected.input_digest)


def test_times_of_a_frame_are_those_that_it_shows(spark: Any, tmp_path: Path) -> None:
    """Midnight in the session's zone is that day, although it is the day before in UTC."""
    table = waves()[0]
    days = [f"2001-01-{1 + number % 28:02d}" for number in range(table.num_rows)]
    frame = spark.createDataFrame(table.append_column("born", pa.array(days)))
    frame = frame.withColumn("born", frame["born"].cast("timestamp"))
    born = {"born": {"role": "quasi-identifier", "kind": "date"}}
    plan = begin(tmp_path / "series", policy(attributes=born)).plan(frame, name="w1", seed=SEED)
    texts = table.append_column("born", pa.array(days))
    expected = begin(tmp_path / "expected", policy(attributes=born)).plan(texts, name="w1", seed=SEED)
    assert (plan.content, plan.input_digest) == (expected.content, expected.input_digest)


def wrong(column: str, cells: dict[int, Any]) -> pa.Table:
    table = waves()[0]
    texts = [None if cell is None else str(cell) for cell in table[column].to_pylist()]
    for row, cell in cells.items():
        texts[row] = cell
    return table.set_column(table.column_names.index(column), column, pa.array(texts))


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("age", {5: "CANARY", 9: "CANARY"}, r"age.*2 rows"),
        ("age", {5: "400"}, r"age.*1 row"),
        ("id", {3: None, 8: None}, r"id.*2 rows do not say who they are about"),
        ("id", {3: "p0"}, r"about a person who has an earlier row|twice"),
        ("city", {7: None}, r"city.*1 row"),
    ],
)
def test_wrong_cells_are_counted_by_every_engine_alike_and_not_shown(
    engine: str, column: str, cells: dict[int, Any], said: str, tmp_path: Path
) -> None:
    source = write(tmp_path / "t.csv", wrong(column, cells))
    told = []
    for name in (engine, "duckdb"):
        series = begin(tmp_path / f"{name}-series", policy(engine={"name": name}))
        with pytest.raises(DataError, match=said) as refused:
            series.plan(source, name="w1", seed=SEED)
        assert "CANARY" not in repr(refused.value)
        assert refused.value.__cause__ is None
        told.append(refused.value.problems)
    assert told[0] == told[1]
    assert not list(tmp_path.glob("*-series/*.part"))


def test_a_query_that_fails_in_spark_is_told_without_its_cells(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(wrong("age", {5: "CANARY"}))
    frame = frame.withColumn("age", frame["age"].cast("int"))
    with pytest.raises(DataError, match="cannot be copied by Spark") as refused:
        begin(tmp_path, policy()).plan(frame, name="w1", seed=SEED)
    shown: BaseException | None = refused.value
    while shown is not None:
        assert "CANARY" not in str(shown)
        shown = shown.__cause__ or shown.__context__


def test_a_part_that_cannot_be_hidden_stops_the_release(engine: str, tmp_path: Path) -> None:
    table = waves()[0]
    illness = np.where(table["age"].to_numpy() < 50, "flu", table["illness"].to_numpy(zero_copy_only=False))
    series = begin(tmp_path, policy(engine={"name": engine}))
    with pytest.raises(GuaranteeError, match=r"promise|hidden") as refused:
        series.plan(table.set_column(4, "illness", pa.array(illness)), name="w1", seed=SEED)
    assert refused.value.guarantee
    assert not list(tmp_path.glob("*.part"))


def test_what_is_no_table_of_spark_and_no_file_is_told(engine: str, tmp_path: Path) -> None:
    series = begin(tmp_path, policy(engine={"name": engine}))
    with pytest.raises(DataError, match="no such file"):
        series.plan("nowhere", name="w1", seed=SEED)


def test_missing_columns_and_tables_without_rows_are_told(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(waves()[0])
    with pytest.raises(DataError, match="illness"):
        begin(tmp_path, policy()).plan(frame.drop("illness"), name="w1", seed=SEED)
    with pytest.raises(DataError, match="the table has no rows"):
        begin(tmp_path, policy()).plan(frame.limit(0), name="w1", seed=SEED)


REASONS: list[tuple[dict[str, Any], str]] = [
    ({"method": "full-domain"}, "recodes the whole table alike"),
    ({"method": "specialize"}, "recodes the whole table alike"),
    ({"protect": {"closeness": {"t": 0.9}}}, "closeness compares"),
    ({"attributes": {"agrees": {"role": "consent"}}}, "consent is asked"),
    ({"attributes": {"city": {"role": "quasi-identifier", "kind": "category", "missing": "suppress"}}}, "suppress"),
]


@pytest.mark.parametrize(("changes", "why"), REASONS)
def test_what_cannot_be_made_in_parts_says_why(changes: dict[str, Any], why: str, spark: Any, tmp_path: Path) -> None:
    changes = dict(changes)
    chosen = policy(changes.pop("method", "mondrian"), engine={"name": "spark"}, **changes)
    with pytest.raises(PolicyError, match=why):
        begin(tmp_path, chosen).plan(waves()[0], name="w1", seed=SEED)


def test_a_session_that_was_there_is_still_there_and_as_it_was(spark: Any, tmp_path: Path) -> None:
    before = sorted(spark.sparkContext.getConf().getAll()), spark.conf.get("spark.sql.session.timeZone")
    series = begin(tmp_path, policy(engine={"name": "spark", "master": "local[1]"}))
    series.publish(spark.createDataFrame(waves()[0]), name="w1", seed=SEED)
    assert spark.range(3).count() == 3
    assert before == (sorted(spark.sparkContext.getConf().getAll()), spark.conf.get("spark.sql.session.timeZone"))
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        assert ledger.verify(releases=series.folder).holds
