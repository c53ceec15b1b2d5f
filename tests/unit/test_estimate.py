"""Estimates from releases: right where nothing is hidden, with intervals that hold the truth as often as they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from sequester.analyst.question import Condition, parse

CANARY = "CANARY-7f3a"
NLSWORK = Path(__file__).parents[3] / "shared/data/nlswork/nlswork.csv.gz"


def people(count: int, seed: int) -> pa.Table:
    """Wages depend on age and on sex; a town is rarer than the other."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 66, count)
    sex = random.choice(["f", "m"], count)
    wage = np.round(np.exp(2 + 0.012 * age + 0.2 * (sex == "m") + random.normal(0, 0.4, count)), 3)
    town = random.choice(["Kiel", "Ulm", "Hof"], count, p=[0.5, 0.35, 0.15])
    return pa.table({"age": age, "wage": wage, "sex": sex, "town": town, "ill": random.choice(list("abcde"), count)})


def rules(method: str, **changes: Any) -> sq.Policy:
    quasi = {"role": "quasi-identifier"}
    attributes = {
        "age": {**quasi, "kind": "number", "range": [0, 99]},
        "wage": {**quasi, "kind": "number", "range": [0, 300]},
        "sex": quasi,
        "town": quasi,
        "ill": {"role": "sensitive"},
    }
    raw = {"version": 1, "series": "t", "attributes": attributes, "protect": {"k": 4, "confidence": 0.6}}
    return sq.Policy.model_validate({**raw, "method": {"name": method}, **changes})


def exact(table: pa.Table) -> pa.Table:
    """The private table as a frame in which everything is known."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if name in ("age", "wage"):
            columns |= {f"{name}_{end}": table[name].cast(pa.float64()) for end in ("lo", "hi", "mid")}
        else:
            columns[name] = table[name]
    rows = len(table)
    return pa.table({**columns, "class": np.arange(rows), "weight": np.ones(rows)})


QUESTIONS = (
    "mean(age)",
    "mean(wage)",
    "mean(wage) by sex",
    "mean(age) by town",
    "mean(wage) by ill",
    "median(wage)",
    "quantile(age, 0.25)",
    "share(sex = f)",
    "share(wage > 12) by sex",
    "count() by sex, town",
    "count() where age >= 40",
    "ols(wage ~ age + sex)",
)


def test_what_is_known_is_answered_exactly() -> None:
    table = people(200, 1)
    frame, raw = exact(table), table.to_pandas()
    told = sq.estimate(frame, "mean(wage) by sex, town where age >= 30 and ill in {a, b, c}")
    some = raw[(raw.age >= 30) & raw.ill.isin(["a", "b", "c"])].groupby(["sex", "town"]).wage.agg(["mean", "size"])
    assert told.groups == tuple(some.index)
    assert told.value == pytest.approx(some["mean"].tolist())
    assert told.people == tuple(some["size"])
    assert set(told.se) == {0.0}
    assert told.low == told.value == told.high
    shares = sq.estimate(frame, "share(town != Ulm)")
    assert shares.value[0] == pytest.approx((raw.town != "Ulm").mean())
    model = sq.estimate(frame, "ols(wage ~ age + sex)")
    design = np.column_stack([np.ones(200), raw.age, raw.sex == "m"])
    assert model.groups == (("(intercept)",), ("age",), ("sex = m",))
    assert model.value == pytest.approx(np.linalg.lstsq(design, raw.wage, rcond=None)[0])
    assert sq.estimate(frame, "median(age)").value[0] == np.sort(raw.age)[99]
    assert sq.estimate(frame, "sum(age)").value[0] == raw.age.sum()


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    hits: list[bool] = []
    narrower: list[bool] = []
    for seed, method in enumerate(["mondrian", "cluster", "pods"]):
        table = people(400, seed)
        release = sq.anonymize(table, rules(method), seed=1)
        truth = exact(table)
        for question in QUESTIONS:
            right, told = sq.estimate(truth, question, draws=2), sq.estimate(release, question)
            values = dict(zip(right.groups, right.value, strict=True))
            for group, low, high, se in zip(told.groups, told.low, told.high, told.se, strict=True):
                if se > 0 and group in values:
                    away = abs(values[group] - (low + high) / 2) / ((high - low) / 2)
                    hits.append(away <= 1)
                    narrower.append(away <= 0.25)
    assert len(hits) >= 50
    assert np.mean(hits) >= 0.75
    # They are no wider than they must be by far.
    assert np.mean(narrower) <= 0.75


@pytest.mark.skipif(not NLSWORK.exists(), reason="the panel nlswork is not on this machine")
@pytest.mark.parametrize("method", ["mondrian", "pods"])
def test_intervals_hold_the_truth_of_a_real_panel(method: str) -> None:
    experiments = pytest.importorskip("experiments.estimates")
    table = experiments.wave(78, NLSWORK)
    release = sq.anonymize(table, experiments.policy(method), seed=1)
    found = [figure.inside for figure in experiments.compared(table, release)]
    assert len(found) >= 60
    assert 0.8 <= np.mean(found) <= 0.995


def test_a_question_that_is_answered_badly_says_so() -> None:
    """Thresholds inside ranges, and values that decoys may have more often; what is known says nothing."""
    blurred = sq.anonymize(people(300, 3), rules("mondrian"), seed=1)
    told = sq.estimate(blurred, "share(wage > 12) by sex")
    assert [note for note in told.notes if "not answered well" in note and "wage" in note]
    assert told.notes[0] in str(told)
    assert told.to_dict()["notes"] == list(told.notes)
    assert not sq.estimate(blurred, "mean(wage)").notes
    assert not sq.estimate(exact(people(200, 1)), "share(wage > 12) by ill").notes
    podded = sq.anonymize(people(400, 2), rules("pods"), seed=1)
    assert podded.to_dict()["weight"] < 1
    (note,) = sq.estimate(podded, "share(ill = a)").notes
    assert "are about nobody" in note
    assert "which values of ill they have is not published" in note
    assert not sq.estimate(podded, "count()").notes


def test_a_population_is_less_certain_than_its_table() -> None:
    release = sq.anonymize(people(300, 3), rules("mondrian"), seed=1)
    table, population = (sq.estimate(release, "mean(wage)", target=target) for target in ("table", "population"))
    assert population.value == table.value
    assert population.se[0] > table.se[0] > 0


def test_folders_frames_and_releases_are_answered_alike(tmp_path: Path) -> None:
    release = sq.anonymize(people(300, 4), rules("pods"), seed=1)
    release.save(tmp_path / "r")
    question = "mean(wage) by town"
    told = sq.estimate(release, question)
    for data in (
        tmp_path / "r",
        str(tmp_path / "r"),
        *(sq.read_release(tmp_path / "r", as_) for as_ in ("pandas", "arrow")),
    ):
        assert sq.estimate(data, question) == told
    # A frame of polars does not say how the release was made.
    other = sq.estimate(sq.read_release(tmp_path / "r", "polars"), question)
    assert other.groups == told.groups
    assert other.value == pytest.approx(told.value, rel=0.15)


def test_the_same_seed_gives_the_same_estimate_and_another_another() -> None:
    release = sq.anonymize(people(300, 5), rules("mondrian"), seed=1)
    first, again, other = (sq.estimate(release, "mean(wage)", seed=seed, draws=5) for seed in (1, 1, 2))
    assert first == again
    assert first.value != other.value


def test_an_estimate_is_a_small_table() -> None:
    told = sq.estimate(sq.anonymize(people(300, 6), rules("mondrian"), seed=1), "mean(wage) by sex")
    assert told.to_pandas().columns.tolist() == ["sex", "value", "se", "low", "high", "people"]
    assert json.loads(told.to_json())["rows"][0]["sex"] == "f"
    assert repr(told) == "<Estimate: 2 rows with 90 % intervals>"
    assert str(told).splitlines()[0].split() == ["sex", "value", "low", "high", "people"]
    assert "<td>m</td>" in told._repr_html_()
    assert "private table" in told._repr_html_()


def test_questions_are_read_as_they_are_meant() -> None:
    asked = parse("quantile('net pay', .25) by sex, town where age >= 30 and ill in {\"a b\", c}")
    assert (asked.what, asked.columns, asked.part, asked.by) == ("quantile", ("net pay",), 0.25, ("sex", "town"))
    assert asked.where == (Condition("age", ">=", ("30",)), Condition("ill", "=", ("a b", "c")))
    assert parse("MEDIAN(age)").part == 0.5
    assert parse("count()").named == ()


@pytest.mark.parametrize(
    "question",
    [
        "",
        "mean",
        "mean()",
        "mean(age",
        "mean(age) sex",
        "quantile(age, 2)",
        "share(age)",
        "variance(age)",
        "mean(age) by",
        "!",
    ],
)
def test_what_is_no_question_is_said_with_what_can_be_asked(question: str) -> None:
    with pytest.raises(sq.DataError, match=r"this question is not understood: .* Ask for count\(\)"):
        parse(question)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("mean(height)", "column 'height': the release has no such column"),
        ("mean(sex)", "column 'sex': has names and no numbers"),
        (f"share(sex = {CANARY})", "column 'sex': has no such value in this release"),
        (f"count() where age > {CANARY}", "column 'age': is compared with something that is not a number"),
        ("count() where sex > f", "column 'sex': has names, which are the same or not"),
        ("count() by wage", "column 'wage': has more than 200 values"),
    ],
)
def test_questions_that_cannot_be_answered_quote_no_cell(question: str, message: str) -> None:
    release = sq.anonymize(people(300, 7), rules("mondrian"), seed=1)
    with pytest.raises(sq.DataError, match=message) as told:
        sq.estimate(release, question)
    assert CANARY not in str(told.value)


def test_what_is_no_release_cannot_be_asked() -> None:
    with pytest.raises(sq.DataError, match="object of type int"):
        sq.estimate(3, "count()")
    with pytest.raises(sq.DataError, match="no columns 'class' and 'weight'"):
        sq.estimate(pa.table({"age": [1]}), "count()")
