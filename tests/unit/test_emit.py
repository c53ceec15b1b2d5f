"""Classes as published rows: every cell means its box, and nothing but the published records is in the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.domain import notation
from sequester.errors import GuaranteeError
from sequester.ingest import encode
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes
from sequester.policy import Policy
from sequester.publish.emit import Judged, as_printed, read_back, shuffle_rows, write_table
from sequester.publish.files import write_file

QUASI = {"role": "quasi-identifier"}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "age": {**QUASI, "kind": "number", "range": [0, 30], "levels": [5, 10]},
    "weight": {**QUASI, "kind": "number"},
    "banded": {**QUASI, "kind": "number", "bands": [0, 2, 5, float("inf")]},
    "zip": {**QUASI, "kind": "code", "length": 3},
    "day": {**QUASI, "kind": "date", "levels": ["day", "month", "quarter", "year", "decade"]},
    "place": {**QUASI, "hierarchy": {"World": {"Europe": ["Rome", "Paris, France", "{Oslo}"], "Asia": ["Pune"]}}},
    "job": QUASI,
    "illness": {"role": "sensitive"},
    "ward": {"role": "insensitive"},
}
CELLS: dict[str, list[Any]] = {
    "age": [0, 3, 4, 17, 29, 30],
    "weight": [-1.5, 0.1, 0.25, 70, 1e6, 12],
    "banded": [0, 1, 2, 4, 5, 99],
    "zip": ["001", "002", "013", "113", "a-b", "zz9"],
    "day": ["1999-12-31", "2000-01-01", "2000-02-29", "2000-04-01", "2011-01-01", "1969-07-01"],
    "place": ["Rome", "Paris, France", "{Oslo}", "Pune", "Rome", "Pune"],
    "job": ["a", "b, c", "*d", "[1-2]", "missing data", "z"],
    "illness": ["flu", "none", "flu", "hiv", "none", "flu"],
    "ward": ["W1", None, "W2", "W2", "W1", "W3"],
}  # fmt: skip
KINDS = [name for name, attribute in ATTRIBUTES.items() if attribute["role"] == "quasi-identifier"]


def rules(*, missing: bool = False, numbers: str = "interval") -> Policy:
    attributes = {
        name: {**attribute, **({"missing": "category"} if missing and name in KINDS else {})}
        for name, attribute in ATTRIBUTES.items()
    }
    raw = {"version": 1, "series": "t", "attributes": attributes, "protect": {"k": 1}, "output": {"numbers": numbers}}
    return Policy.model_validate(raw)


def encoded(*, missing: bool = False, cells: dict[str, Any] | None = None) -> Snapshot:
    policy = rules(missing=missing)
    columns = {
        name: [*values, *([None] if missing and name in KINDS else values[:1])] for name, values in CELLS.items()
    }
    return encode(pa.table(columns | (cells or {})), policy)


SNAPSHOTS = {missing: encoded(missing=missing) for missing in (False, True)}


def texts(table: pa.Table, name: str) -> list[str]:
    return table[name].to_pylist()


def assert_cells_mean_their_boxes(snapshot: Snapshot, classes: Classes, order: np.ndarray, missing: bool) -> None:
    classes = as_printed(classes, snapshot.quasi_domains, numbers="interval")
    table = write_table(snapshot, classes, order, numbers="interval")
    member = classes.member[order]
    for place, (name, domain) in enumerate(zip(snapshot.quasi_names, snapshot.quasi_domains, strict=True)):
        lo, hi, understood = notation.read(domain, texts(table, name))
        assert understood.all()
        assert lo.tolist() == classes.lo[place][member].tolist()
        assert hi.tolist() == classes.hi[place][member].tolist()
    read_back(table, Judged(snapshot, classes, order, rules(missing=missing)))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), missing=st.booleans())
def test_every_cell_of_any_box_reads_back_as_its_box(data: st.DataObject, missing: bool) -> None:
    snapshot = SNAPSHOTS[missing]
    count = data.draw(st.integers(1, 4))
    codes = st.integers(0, 2**16)
    drawn = data.draw(st.lists(st.tuples(codes, codes), min_size=count * len(KINDS), max_size=count * len(KINDS)))
    sizes = np.array([domain.size for domain in snapshot.quasi_domains])[:, None]
    sides = np.sort(np.array(drawn).reshape(len(KINDS), count, 2) % sizes[:, :, None], axis=2).astype(np.int32)
    member = np.array(data.draw(st.lists(st.integers(-1, count - 1), min_size=7, max_size=7)), np.int32)
    classes = Classes(member, sides[:, :, 0], sides[:, :, 1])
    assert_cells_mean_their_boxes(snapshot, classes, shuffle_rows(member, seed=data.draw(st.integers(0, 99))), missing)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), missing=st.booleans())
def test_every_cell_of_any_level_is_the_name_of_its_group_and_reads_back_as_it(
    data: st.DataObject, missing: bool
) -> None:
    snapshot = SNAPSHOTS[missing]
    levels = tuple(data.draw(st.integers(0, domain.height)) for domain in snapshot.quasi_domains)
    lo, hi = np.empty((2, *snapshot.quasi.shape), np.int32)
    for place, (domain, level) in enumerate(zip(snapshot.quasi_domains, levels, strict=True)):
        first, last = domain.bounds(level)
        group = domain.groups(level)[snapshot.quasi[place]]
        lo[place], hi[place] = first[group], last[group]
    member = np.arange(len(snapshot), dtype=np.int32)
    classes = Classes(member, lo, hi, levels)
    assert_cells_mean_their_boxes(snapshot, classes, member.astype(np.int64), missing)
    table = write_table(snapshot, classes, member.astype(np.int64), numbers="interval")
    for name, domain, level in zip(KINDS, snapshot.quasi_domains, levels, strict=True):
        assert set(texts(table, name)) <= set(domain.names[level])


def test_a_level_is_published_by_its_names_also_where_a_group_has_one_leaf() -> None:
    snapshot = SNAPSHOTS[False]
    place = KINDS.index("place")
    domain = snapshot.quasi_domains[place]
    lo, hi = np.zeros((2, len(KINDS), len(snapshot)), np.int32)
    hi[:] = [[other.size - 1] for other in snapshot.quasi_domains]
    first, last = domain.bounds(1)
    group = domain.groups(1)[snapshot.quasi[place]]
    lo[place], hi[place] = first[group], last[group]
    levels = tuple(
        1 if name == "place" else other.height for name, other in zip(KINDS, snapshot.quasi_domains, strict=True)
    )
    classes = Classes(np.arange(len(snapshot), dtype=np.int32), lo, hi, levels)
    table = write_table(snapshot, classes, np.arange(len(snapshot)), numbers="interval")
    expected = ["Asia" if cell == "Pune" else "Europe" for cell in [*CELLS["place"], CELLS["place"][0]]]
    assert texts(table, "place") == expected
    assert set(texts(table, "zip")) == {"*"}


def one_class_each(snapshot: Snapshot, **sides: tuple[int, int]) -> Classes:
    """Every record exact, except for the sides given."""
    lo, hi = snapshot.quasi.copy(), snapshot.quasi.copy()
    for name, (first, last) in sides.items():
        lo[KINDS.index(name)], hi[KINDS.index(name)] = first, last
    return Classes(np.arange(len(snapshot), dtype=np.int32), lo, hi)


def written(snapshot: Snapshot, classes: Classes, numbers: Any) -> pa.Table:
    return write_table(snapshot, classes, np.arange(len(snapshot)), numbers=numbers)


def test_bounds_are_two_columns_of_numbers() -> None:
    snapshot = SNAPSHOTS[False]
    table = written(snapshot, one_class_each(snapshot, age=(3, 17)), "bounds")
    assert "age" not in table.column_names
    assert set(table["age_min"].to_pylist()) == {3.0}
    assert set(table["age_max"].to_pylist()) == {17.0}
    assert table["weight_min"].to_pylist() == table["weight_max"].to_pylist() == [*CELLS["weight"], CELLS["weight"][0]]
    assert texts(table, "zip")[:2] == ["001", "002"]


def test_a_midpoint_is_the_middle_of_the_interval() -> None:
    snapshot = SNAPSHOTS[False]
    table = written(snapshot, one_class_each(snapshot, age=(3, 18)), "midpoint")
    assert set(table["age"].to_pylist()) == {10.5}


@pytest.mark.parametrize("numbers", ["bounds", "midpoint"])
def test_a_number_that_may_be_missing_has_no_bounds_and_no_middle(numbers: str) -> None:
    snapshot = SNAPSHOTS[True]
    last = snapshot.quasi_domains[0].size - 1
    table = written(snapshot, one_class_each(snapshot, age=(3, last)), numbers)
    for name in ("age_min", "age_max") if numbers == "bounds" else ("age",):
        assert set(table[name].to_pylist()) == {None}


def test_a_missing_cell_is_published_as_missing() -> None:
    snapshot = SNAPSHOTS[True]
    table = written(snapshot, one_class_each(snapshot), "interval")
    for name in KINDS:
        assert texts(table, name)[-1] == "missing"
    widest = {name: (0, domain.size - 1) for name, domain in zip(KINDS, snapshot.quasi_domains, strict=True)}
    everything = written(snapshot, one_class_each(snapshot, **widest), "interval")
    assert {cell for name in KINDS for cell in texts(everything, name)} == {"*"}


def test_records_in_no_class_are_not_written() -> None:
    snapshot = SNAPSHOTS[False]
    classes = one_class_each(snapshot)
    member = np.where(np.arange(len(snapshot)) % 2, -1, classes.member).astype(np.int32)
    order = shuffle_rows(member, seed=1)
    assert sorted(order.tolist()) == [0, 2, 4, 6]
    assert write_table(snapshot, Classes(member, classes.lo, classes.hi), order, numbers="interval").num_rows == 4


def dictionary(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_dictionary(column.type):
        return []
    return [value for chunk in column.chunks for value in chunk.dictionary.to_pylist()]


@pytest.mark.parametrize("levels", [False, True])
def test_no_dictionary_holds_a_value_that_is_not_published(levels: bool) -> None:
    """A parquet file keeps whole dictionaries, and a value of a record left out is private."""
    ward = pa.array([f"ward {number}" for number in range(7)]).dictionary_encode()
    snapshot = encoded(cells={"illness": [f"illness {number}" for number in range(7)], "ward": ward})
    exact = one_class_each(snapshot)
    member = np.array([0, -1, 2, -1, -1, 5, -1], np.int32)
    classes = Classes(member, exact.lo, exact.hi, (0,) * len(KINDS) if levels else None)
    table = write_table(snapshot, classes, shuffle_rows(member, seed=1), numbers="interval")
    assert sorted(texts(table, "illness")) == ["illness 0", "illness 2", "illness 5"]
    assert sorted(texts(table, "ward")) == ["ward 0", "ward 2", "ward 5"]
    for name in table.column_names:
        assert set(dictionary(table[name])) <= set(texts(table, name))


def test_rows_are_in_a_random_order_that_the_seed_repeats() -> None:
    member = np.zeros(200, np.int32)
    orders = [tuple(shuffle_rows(member, seed=seed).tolist()) for seed in (1, 1, 2, None, None)]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 4
    assert all(sorted(order) == list(range(200)) != list(order) for order in orders)


def test_a_table_that_does_not_say_what_was_judged_is_refused() -> None:
    snapshot = SNAPSHOTS[False]
    member = np.arange(len(snapshot), dtype=np.int32)
    classes, order = Classes(member, snapshot.quasi.copy(), snapshot.quasi.copy()), member.astype(np.int64)
    classes = as_printed(classes, snapshot.quasi_domains, numbers="interval")
    table, judged = (
        write_table(snapshot, classes, order, numbers="interval"),
        Judged(snapshot, classes, order, rules()),
    )
    read_back(table, judged)
    with pytest.raises(GuaranteeError, match="not as many rows"):
        read_back(table.slice(1), judged)
    turned = order[::-1].copy()
    for name, message in (
        ("zip", "not the side of the box"),
        ("illness", "a sensitive value is not"),
        ("ward", "an insensitive cell is not"),
    ):
        place = table.column_names.index(name)
        with pytest.raises(GuaranteeError, match=message):
            read_back(table.set_column(place, name, table[name].take(turned)), judged)
    split = Classes(member, snapshot.quasi.copy(), snapshot.quasi.copy())
    with pytest.raises(GuaranteeError, match="rows share their cells that were judged in different classes"):
        read_back(table, Judged(snapshot, split, order, rules()))
    with pytest.raises(GuaranteeError, match="cannot be read back"):
        read_back(table.drop_columns("job"), judged)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("numbers", ["interval", "bounds", "midpoint"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), missing=st.booleans())
def test_a_written_file_reads_back_as_the_classes_that_can_be_told_apart_in_it(
    data: st.DataObject, missing: bool, numbers: Any, form: str, tmp_path: Path
) -> None:
    snapshot, policy = SNAPSHOTS[missing], rules(missing=missing, numbers=numbers)
    count = data.draw(st.integers(1, 5))
    draws = st.lists(st.integers(0, 2**16), min_size=2 * count * len(KINDS), max_size=2 * count * len(KINDS))
    sizes = np.array([domain.size for domain in snapshot.quasi_domains])[:, None, None]
    sides = np.sort(np.array(data.draw(draws)).reshape(len(KINDS), count, 2) % sizes, axis=2).astype(np.int32)
    # Often only one attribute tells classes apart.
    if data.draw(st.booleans()):
        sides[1:] = sides[1:, :1]
    member = np.array(data.draw(st.lists(st.integers(0, count - 1), min_size=7, max_size=7)), np.int32)
    classes = as_printed(Classes(member, sides[..., 0], sides[..., 1]), snapshot.quasi_domains, numbers=numbers)
    order = shuffle_rows(member, seed=1)
    table = write_table(snapshot, classes, order, numbers=numbers)
    path = write_file(table, tmp_path / f"data.{form}", force=True)
    read_back(path, Judged(snapshot, classes, order, policy))
    cells = [tuple(row[name] for name in table.column_names if name not in ("illness", "ward"))
             for row in table.to_pylist()]  # fmt: skip
    assert len(set(cells)) == len(np.unique(classes.member))
    assert all((sides[..., 0][:, a] >= classes.lo[:, b]).all() and (sides[..., 1][:, a] <= classes.hi[:, b]).all()
               for a, b in zip(member, classes.member, strict=True))  # fmt: skip


def test_classes_with_one_middle_are_judged_as_the_one_class_they_are_published_as() -> None:
    """[2-4] and [1-5] are both 3: alone each has three different values in four rows, and so has the union."""
    ages, values = [2, 4, 1, 5], ["a", "b", "a", "b"]
    policy = changed_numbers("midpoint")
    release = sq.anonymize(pa.table({"age": ages, "value": values}), policy, seed=1)
    middles = release.table["age"].to_pylist()
    assert release.measures["k"] == min(middles.count(middle) for middle in middles)


def changed_numbers(numbers: str, **columns: Any) -> Policy:
    attributes = {"age": {**QUASI, "kind": "number"}, "value": {"role": "sensitive"}, **columns}
    return Policy.model_validate(
        {"version": 1, "series": "t", "attributes": attributes, "protect": {"k": 2}, "output": {"numbers": numbers}}
    )


@pytest.mark.parametrize("role", ["insensitive", "sensitive", "quasi-identifier"])
def test_a_column_named_as_published_bounds_is_refused(role: str) -> None:
    with pytest.raises(sq.PolicyError, match="also the column that the bounds of 'age' are published in"):
        changed_numbers("bounds", age_min={"role": role})
    assert changed_numbers("interval", age_min={"role": role}).attributes["age_min"].role == role
    assert changed_numbers("bounds", age_min={"role": "identifier"}).output.numbers == "bounds"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_was_written_wrong_is_not_saved(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    release = sq.anonymize(pa.table({"age": [1, 2, 3, 4], "value": list("abab")}), changed_numbers("bounds"), seed=1)
    twisted = release.table.set_column(0, "age_min", pa.array([1.0, 2.0, 1.0, 2.0]))
    monkeypatch.setattr(release, "table", twisted)
    for path in (tmp_path / f"out.{form}", tmp_path / "out"):
        with pytest.raises(GuaranteeError, match="does not say what was judged"):
            release.save(path)
    assert list(tmp_path.iterdir()) == []
