"""`measure` on tables of ours and of other tools, raw and generalized."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import date
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.domain.notation import write
from sequester.errors import DataError
from sequester.ingest.encode import encode
from sequester.metrics.loss import losses
from sequester.metrics.measure import measure
from sequester.policy.model import Policy

CANARY = "canary-7f3a"


def policy(protect: dict | None = None, **attributes: dict) -> Policy:
    columns = {
        "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 100]},
        "zip": {"role": "quasi-identifier", "kind": "code", "length": 5},
        "sex": {"role": "quasi-identifier", "hierarchy": {"Person": ["F", "M"]}},
        "diagnosis": {"role": "sensitive", "ordinary": ["flu"]},
    }
    columns |= attributes
    columns = {name: attribute for name, attribute in columns.items() if attribute}
    return Policy.model_validate(
        {"version": 1, "series": "s", "attributes": columns, "protect": protect or {"k": 2, "confidence": 0.5}}
    )


def table(*rows: tuple, names: tuple = ("age", "zip", "sex", "diagnosis")) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


RELEASE = table(
    ("[21-30]", "0213*", "*", "flu"),
    ("[21-30]", "0213*", "*", "flu"),
    ("[21-30]", "0213*", "*", "flu"),
    ("[21-30]", "0213*", "*", "hiv"),
    ("40", "02141", "F", "hiv"),
    ("40", "02141", "F", "flu"),
)
ORIGINAL = table(
    ("21", "02138", "F", "flu"),
    ("25", "02139", "M", "flu"),
    ("30", "02139", "M", "flu"),
    ("22", "02138", "M", "hiv"),
    ("40", "02141", "F", "hiv"),
    ("40", "02141", "F", "flu"),
    ("90", "10001", "F", "hiv"),
)


def test_the_numbers_of_a_small_release_are_those_counted_by_hand():
    found = measure(RELEASE, policy())
    assert (found.records, found.classes, found.k, found.l) == (6, 2, 2, 2)
    assert found.confidence == 0.5
    assert found.entropy_l == pytest.approx(np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25))))
    assert found.t == pytest.approx(max(abs(3 / 4 - 4 / 6), abs(1 / 2 - 4 / 6)))
    assert found.loss["dm"] == 4**2 + 2**2
    assert found.loss["class_size"] == 3
    assert found.holds


@pytest.mark.parametrize("interval", ["[21-30]", "[21, 30]", "21-30", "(20,30]", "[21, 31[", "{[21-30]}"])
@pytest.mark.parametrize("prefix", ["0213*", "[02138-02139]"])
def test_the_notation_does_not_change_what_is_measured(interval, prefix):
    ours = measure(RELEASE, policy(), original=ORIGINAL)
    cells = RELEASE.to_pydict()
    cells["age"] = [interval if cell == "[21-30]" else cell for cell in cells["age"]]
    cells["zip"] = [prefix if cell == "0213*" else cell for cell in cells["zip"]]
    cells["sex"] = ["{F, M}" if cell == "*" else cell for cell in cells["sex"]]
    theirs = measure(pa.table(cells), policy(), original=ORIGINAL)
    assert theirs.loss == pytest.approx(ours.loss)
    assert (theirs.k, theirs.classes, theirs.confidence) == (ours.k, ours.classes, ours.confidence)


def test_the_original_fixes_domains_counts_the_lost_and_adds_entropy_and_query_error():
    found = measure(RELEASE, policy(), original=ORIGINAL, queries=20, seed=1)
    assert found.suppressed == 1
    lost = 3 + (4 * (9 / 100 + 1 / 3 + 1))  # one record left out; four with age 9 of 100, zip 1 of 3 steps, any sex
    assert found.loss["ail"] == pytest.approx(lost / 7)
    assert 0 < found.loss["entropy"] < 1
    assert found.query_error is not None
    assert found.query_error > 0
    assert found == measure(RELEASE, policy(), original=ORIGINAL.take([6, 2, 4, 0, 1, 3, 5]), queries=20, seed=1)


def test_the_original_measured_against_itself_lost_nothing():
    found = measure(ORIGINAL, policy({"k": 1}), original=ORIGINAL, queries=50, seed=2)
    # The publication is at best as precise as the records that share all their values.
    assert (found.loss["ail"], found.loss["ncp"], found.loss["precision"]) == (0, 0, 1)
    assert found.loss["entropy"] == pytest.approx(0)
    assert (found.suppressed, found.query_error) == (0, 0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["F", "M"]), st.sampled_from("xyz")), min_size=1, max_size=20)
)
def test_a_raw_table_measures_as_its_groups(rows):
    source = table(*[(str(a), s, d) for a, s, d in rows], names=("age", "sex", "diagnosis"))
    found = measure(source, policy({"k": 3, "confidence": 0.6}, zip={}, diagnosis={"role": "sensitive"}))
    groups: dict = {}
    for a, s, d in rows:
        groups.setdefault((a, s), []).append(d)
    share = max(max(Counter(g).values()) / len(g) for g in groups.values())
    assert (found.k, found.classes) == (min(map(len, groups.values())), len(groups))
    assert found.l == min(len(set(g)) for g in groups.values())
    assert found.confidence == pytest.approx(share)
    assert found.holds == (found.k >= 3 and share <= 0.6)
    assert found.loss["ail"] == 0


RECORDS = st.tuples(
    st.integers(0, 99).map(str),
    st.sampled_from(["02138", "02139", "02141", "10001", "10002"]),
    st.sampled_from(["F", "M"]),
    st.dates(date(1960, 1, 1), date(1966, 1, 1)).map(str),
    st.sampled_from(["red", "green", "blue", "a, b"]),
    st.sampled_from("xyz"),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(RECORDS, st.integers(0, 3)), min_size=1, max_size=25), st.randoms(use_true_random=False))
def test_a_release_written_from_boxes_measures_as_the_boxes_do(drawn, random):
    made = policy(born={"role": "quasi-identifier", "kind": "date"}, colour={"role": "quasi-identifier"})
    raw = table(*[record for record, _ in drawn], names=("age", "zip", "sex", "born", "colour", "diagnosis"))
    snapshot = encode(raw, made)
    _, member = np.unique([c for _, c in drawn], return_inverse=True)
    parts = [snapshot.quasi[:, member == c] for c in range(member.max() + 1)]
    lo = np.array([part.min(axis=1) for part in parts], np.int32).T
    hi = np.array([part.max(axis=1) for part in parts], np.int32).T
    texts = [write(*side) for side in zip(snapshot.quasi_domains, lo, hi, strict=True)]
    order = random.sample(range(len(member)), len(member))
    columns = {
        name: [text[member[row]] for row in order] for name, text in zip(snapshot.quasi_names, texts, strict=True)
    }
    release = pa.table(columns | {"diagnosis": raw["diagnosis"].take(order)})
    found = measure(release, made, original=raw)
    boxes, merged = np.unique(np.vstack([lo, hi]), axis=1, return_inverse=True)
    size = np.bincount(merged[member])
    classes = SimpleNamespace(lo=boxes[: len(lo)], hi=boxes[len(lo) :], size=size)
    assert found.loss == pytest.approx(losses(classes, snapshot.quasi_domains, quasi=snapshot.quasi), abs=1e-9)
    assert (found.k, found.classes) == (size.min(), len(size))
    # Without the raw table only the domains are unknown; who is in which class is not.
    alone = measure(release, made)
    assert (alone.k, alone.classes, alone.promises) == (found.k, found.classes, found.promises)


def test_broken_promises_say_what_was_required_and_observed():
    found = measure(RELEASE, policy({"k": 3, "confidence": 0.4, "diversity": {"kind": "distinct", "l": 2}}))
    assert not found.holds
    seen = {
        promise.name: (promise.view, promise.required, promise.observed, promise.failing) for promise in found.promises
    }
    assert seen == {
        "k": (None, 3, 2, 1),
        "confidence": ("diagnosis", 0.4, 0.5, 1),
        "diversity": ("diagnosis", 2, 2, 0),
    }


def test_a_star_is_another_class_than_the_interval_of_all_values_seen():
    rows = [("[20-30]", "F", "x"), ("[20-30]", "F", "y"), ("*", "F", "x"), ("*", "F", "y"), ("*", "F", "z")]
    age = {"role": "quasi-identifier", "kind": "number"}
    found = measure(table(*rows, names=("age", "sex", "diagnosis")), policy(zip={}, age=age))
    assert (found.classes, found.k) == (2, 2)


@pytest.mark.parametrize(
    "attribute",
    [
        {"kind": "number"},
        {"kind": "date"},
        {"kind": "code", "length": 5},
        {"kind": "category"},
    ],
    ids=lambda attribute: attribute["kind"],
)
def test_a_column_of_nothing_but_stars_lost_everything(attribute):
    source = table(("*", "x"), ("*", "y"), names=("a", "diagnosis"))
    found = measure(source, policy(age={}, zip={}, sex={}, a={"role": "quasi-identifier", **attribute}))
    assert (found.loss["ail"], found.loss["ncp"], found.loss["precision"]) == (1, 1, 0)


def test_bounds_columns_are_read_as_intervals():
    cells = RELEASE.to_pydict()
    bounds = {"age_min": [21, 21, 21, 21, 40, 40], "age_max": [30, 30, 30, 30, 40, 40]}
    rest = {name: cells[name] for name in ("zip", "sex", "diagnosis")}
    assert measure(pa.table(bounds | rest), policy()).to_dict() == measure(RELEASE, policy()).to_dict()


def test_dates_are_measured_in_calendar_terms_and_the_policys_own_format():
    when = {"role": "quasi-identifier", "kind": "date", "format": "%d/%m/%Y"}
    made = policy(age={}, zip={}, sex={}, when=when)
    names = ("when", "diagnosis")
    release = table(("1964-Q2", "x"), ("1964-Q2", "y"), ("1965-01-01", "x"), ("1965-01-01", "y"), names=names)
    raw = table(("01/04/1964", "x"), ("30/06/1964", "y"), ("01/01/1965", "x"), ("01/01/1965", "y"), names=names)
    found = measure(release, made, original=raw)
    assert (found.k, found.classes) == (2, 2)
    assert found.loss["ail"] == pytest.approx(0.5 * 90 / 275)


def test_a_date_that_may_be_missing_is_read_beside_the_month_of_the_last_day():
    died = {"role": "quasi-identifier", "kind": "date", "levels": ["day", "month"], "missing": "category"}
    cells = ["{[2009-01-01 - 2009-02-01], missing}"] * 2 + ["missing"] * 2 + ["2009-02"] * 2
    rows = [(cell, value) for cell, value in zip(cells, "ababab", strict=True)]
    found = measure(table(*rows, names=("died", "diagnosis")), policy(age={}, zip={}, sex={}, died=died))
    assert found.classes == 3


def test_codes_that_a_frame_holds_as_integers_get_their_zeros_back():
    cells = ORIGINAL.to_pydict()
    cells["zip"] = [int(code) for code in cells["zip"]]
    assert measure(pa.table(cells), policy()) == measure(ORIGINAL, policy())


def test_a_sensitive_number_is_measured_in_its_bands():
    income = {"role": "sensitive", "kind": "number", "bands": [0, 10, 20, 30]}
    made = policy(
        {"k": 2, "closeness": {"t": 0.5}, "against": ["outsider"]}, zip={}, sex={}, diagnosis={}, income=income
    )
    names = ("age", "income")
    numbers = table(("1", "5"), ("1", "25"), ("2", "9.5"), ("2", "30"), names=names)
    bands = table(("1", "[0-10)"), ("1", "[20-30]"), ("2", "[0, 10)"), ("2", "[20-30]"), names=names)
    assert measure(numbers, made) == measure(bands, made)
    assert measure(numbers, made).sensitive["income"].distance == "ordered"


def test_several_sensitive_attributes_are_measured_each_and_jointly():
    made = policy({"k": 2, "confidence": 0.5, "sensitive": "both"}, zip={}, sex={}, drug={"role": "sensitive"})
    rows = [("1", "a", "p"), ("1", "b", "p"), ("1", "b", "q"), ("1", "c", "q")]
    found = measure(table(*rows, names=("age", "diagnosis", "drug")), made)
    assert list(found.sensitive) == ["diagnosis", "drug", "diagnosis and drug"]
    assert [spread.l for spread in found.sensitive.values()] == [3, 2, 4]
    assert list(found.sensitive["diagnosis and drug"].t) == ["equal"]


def test_a_k_map_counts_the_population_of_the_policy(tmp_path):
    (tmp_path / "people.csv").write_text("age,zip,sex\n" + "25,02139,F\n" * 3 + "40,02141,F\n")
    made = policy({"k": 2, "k_map": {"k": 2, "population": str(tmp_path / "people.csv")}})
    found = measure(RELEASE, made)
    promise = next(promise for promise in found.promises if promise.name == "k-map")
    assert (promise.required, promise.observed, promise.failing) == (2, 1, 1)


def test_rows_without_a_value_are_left_out_where_the_policy_suppresses_them():
    sex = {"role": "quasi-identifier", "hierarchy": {"Person": ["F", "M"]}, "missing": "suppress"}
    names = ("age", "sex", "diagnosis")
    source = table(("1", "F", "x"), ("1", "F", "y"), ("1", None, "x"), names=names)
    found = measure(source, policy(zip={}, sex=sex))
    assert (found.records, found.suppressed, found.k) == (2, 1, 2)


def test_missing_values_that_are_a_category_are_a_class_of_their_own():
    age = {"role": "quasi-identifier", "kind": "number", "missing": "category"}
    names = ("age", "diagnosis")
    rows = [("{[20-30], missing}", "x"), ("{[20-30], missing}", "y"), (None, "x"), ("missing", "y")]
    found = measure(table(*rows, names=names), policy(zip={}, sex={}, age=age))
    assert (found.classes, found.k) == (2, 2)


def test_values_not_understood_are_counted_by_column_and_never_shown():
    cells = RELEASE.to_pydict()
    cells["age"][0] = cells["age"][1] = CANARY
    cells["sex"][2] = CANARY
    with pytest.raises(DataError, match=r"(?s)column 'age': 2 rows.*column 'sex': 1 row") as caught:
        measure(pa.table(cells), policy())
    assert CANARY not in str(caught.value) + repr(caught.value)
    assert all(not problem.values for problem in caught.value.problems)
    with pytest.raises(DataError, match="column 'age'") as caught:
        measure(pa.table(cells), policy(), show_values=True)
    assert [problem.values for problem in caught.value.problems] == [(CANARY,), (CANARY,)]


def test_columns_that_are_missing_are_all_named():
    with pytest.raises(DataError, match=r"(?s)column 'zip': is not in the table.*column 'sex'"):
        measure(RELEASE.select(["age", "diagnosis"]), policy())


def test_a_table_without_rows_is_an_error():
    with pytest.raises(DataError, match="the table has no rows"):
        measure(RELEASE.slice(0, 0), policy())


def test_cells_without_a_value_are_an_error_where_the_policy_refuses_them():
    cells = RELEASE.to_pydict()
    cells["diagnosis"][3] = None
    with pytest.raises(DataError, match="column 'diagnosis': 1 row"):
        measure(pa.table(cells), policy())


def test_an_original_with_fewer_rows_than_the_release_is_not_its_original():
    with pytest.raises(DataError, match="the original has 3 rows fewer"):
        measure(RELEASE, policy(), original=ORIGINAL.slice(0, 3))


def test_an_original_with_generalized_cells_is_refused():
    cells = ORIGINAL.to_pydict()
    cells["age"][0] = "[20-30]"
    with pytest.raises(DataError, match="column 'age': 1 row"):
        measure(RELEASE, policy(), original=pa.table(cells))


def test_queries_without_the_original_are_refused():
    with pytest.raises(ValueError, match="give it as `original`"):
        measure(RELEASE, policy(), queries=10)


def test_files_measure_like_frames(tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.csv.write_csv(RELEASE, tmp_path / "r.csv")
    pyarrow.parquet.write_table(RELEASE, tmp_path / "r.parquet")
    expected = measure(RELEASE, policy())
    assert measure(tmp_path / "r.csv", policy()) == expected
    assert measure(str(tmp_path / "r.parquet"), policy()) == expected
    assert measure(RELEASE.to_pandas(), policy()) == expected


def test_no_cell_appears_in_any_form_of_the_result():
    cells = RELEASE.to_pydict()
    cells["diagnosis"] = [CANARY, "x", CANARY, "x", "x", CANARY]
    found = measure(pa.table(cells), policy({"k": 2, "confidence": 0.3, "closeness": {"t": 0.1}}))
    for text in (repr(found), found.to_json(), found._repr_html_(), str(found.to_dict())):
        assert CANARY not in text
        assert "0213" not in text
    assert "\n" not in repr(found)


def test_the_judge_loads_no_code_of_the_methods():
    code = (
        "import sys, sequester.metrics.measure, sequester.metrics.queries, sequester.guarantees.requirement; "
        "print([m for m in sys.modules if m.startswith(('sequester.methods', 'sequester.kernels', 'numba', 'pandas'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_json_is_valid_even_when_a_ratio_is_infinite():
    rows = [("1", "F", "x"), ("1", "F", "x")]
    made = policy({"k": 1, "diversity": {"kind": "recursive", "c": 2.0, "l": 2}, "against": ["outsider"]}, zip={})
    found = measure(table(*rows, names=("age", "sex", "diagnosis")), made)
    data = json.loads(found.to_json())
    assert data["holds"] is False
    assert data["promises"][1]["observed"] is None


def test_without_a_sensitive_attribute_only_k_and_loss_are_measured():
    found = measure(RELEASE, policy({"k": 2}, diagnosis={}))
    assert (found.k, found.l, found.t, found.confidence, found.sensitive) == (2, None, None, None, {})
    assert [promise.name for promise in found.promises] == ["k"]


def test_sets_whose_members_are_no_neighbours_are_classes_of_their_own() -> None:
    """AnonyPy joins whatever values a class has; two sets with the same ends are still two classes."""
    policy = Policy.model_validate(
        {
            "version": 1,
            "series": "sets",
            "attributes": {
                "job": {"role": "quasi-identifier", "hierarchy": ["a", "b", "c", "d"]},
                "illness": {"role": "sensitive"},
            },
            "protect": {"k": 2},
        }
    )
    cells = ["{a, d}", "{d;a}", "{a, b, d}", "{a, b, d}", "{a, b, d}", "{b, c}", "{c, b}"]
    found = measure(pa.table({"job": cells, "illness": list("xyxyxyx")}), policy)
    assert (found.classes, found.k) == (3, 2)
    # The two scattered sets count as the whole interval from a to d, the third as half of the leaves.
    assert found.loss["ncp"] == pytest.approx((5 * 1 + 2 * 0.5) / 7)


def test_rows_that_say_how_many_they_stand_for_count_as_so_many() -> None:
    """AnonyPy and AnonyPyx write every class and value once, with a column `count`."""
    raw = {"age": {"role": "quasi-identifier", "kind": "number"}, "illness": {"role": "sensitive"}}
    made = Policy.model_validate({"version": 1, "series": "counted", "attributes": raw, "protect": {"k": 2}})
    counted = pa.table({"age": ["20-29", "20-29", "30-39"], "illness": ["x", "y", "x"], "count": [3, 1, 2]})
    found = measure(counted, made)
    assert (found.records, found.k, found.classes) == (6, 2, 2)
    assert found.confidence == 1
    # Rows that repeat are rows, whatever the column is about; and so is a column that the policy names.
    twice = pa.concat_tables([counted, counted])
    assert measure(twice, made).records == 6
    raw["count"] = {"role": "insensitive"}
    named = Policy.model_validate({"version": 1, "series": "counted", "attributes": raw, "protect": {"k": 1}})
    assert measure(counted, named).records == 3


def test_a_set_with_an_unknown_member_is_not_understood() -> None:
    policy = Policy.model_validate(
        {
            "version": 1,
            "series": "sets",
            "attributes": {"job": {"role": "quasi-identifier", "hierarchy": ["a", "b", "c"]}},
            "protect": {"k": 2},
        }
    )
    with pytest.raises(DataError, match="column 'job': 2 rows have a value that is not understood"):
        measure(pa.table({"job": ["{a, x}", "{a, x}", "b"]}), policy)
