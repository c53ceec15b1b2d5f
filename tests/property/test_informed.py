"""A reader who learns from the releases: what she believes, and how much of it anybody's own rows add."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import sequester as sq
from audited import nameless, table
from sequester.attacks.informed import Informed, in_words, learn, shares

RULES = sq.Policy.model_validate(
    {
        "version": 1,
        "series": "s",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True},
            "ill": {"role": "sensitive"},
        },
        "protect": {"k": 2, "confidence": 0.5, "against": ["outsider"]},
    }
)
# Twice the same class, and a third one in which half of the people have something that nobody else has.
EVEN = ["1 [0-9] flu", "2 [0-9] cold", "3 [10-19] flu", "4 [10-19] cold"]
ODD = ["5 [20-29] hiv", "6 [20-29] hiv", "7 [20-29] flu", "8 [20-29] cold"]


def informed(releases: list[pa.Table], population: list[pa.Table] | None = None) -> Informed:
    (told,) = sq.audit(releases, RULES, population=population, informed=True).belief
    assert told.informed is not None
    return told.informed


def test_where_all_classes_are_alike_nobodys_rows_add_anything() -> None:
    found = informed([table(*EVEN)])
    assert found.read.mean == pytest.approx(0.5, abs=1e-3)
    assert found.others.mean == pytest.approx(0.5, abs=1e-3)
    assert (found.added, found.most_added) == pytest.approx((0, 0), abs=1e-3)


def test_a_value_that_nobody_like_her_has_comes_from_her_own_rows_alone() -> None:
    found = informed([table(*EVEN, *ODD)])
    # From the two other classes: flu and cold, half each, and no hiv. From her own: hiv by half.
    assert found.most_added == pytest.approx(0.5, abs=1e-3)
    assert found.read.most == pytest.approx(0.5, abs=1e-3)
    assert found.read.above[0] == 0


def test_a_bound_on_every_class_does_not_keep_a_reader_from_learning_who_mostly_has_what() -> None:
    """In a class of young and old nobody has the flu by more than half; by age, a reader is surer, and right."""
    rows, people = [], []
    for place in range(40):
        young, old = f"{2 * place}", f"{2 * place + 1}"
        rows += [
            {"id": young, "age": "[10-60]", "ill": "flu"},
            {"id": old, "age": "[10-60]", "ill": f"ill {place % 2}"},
        ]
        people += [{"id": young, "age": 10 + place // 8}, {"id": old, "age": 56 + place // 10}]
    # Classes of one age show how ages go with illnesses.
    for age in (*range(10, 15), *range(56, 61)):
        for number in range(40):
            who = f"{age} {number}"
            ill = "flu" if (age < 20) == (number % 2 == 0) else f"ill {number % 4 // 2}" if age > 20 else "other"
            rows.append({"id": who, "age": f"{age}", "ill": ill})
            people.append({"id": who, "age": age})
    found = informed([pa.Table.from_pylist(rows)], [pa.Table.from_pylist(people)])
    assert found.read.most > 0.6
    assert found.right is not None
    assert found.right > 0.9


@st.composite
def _releases(draw: st.DrawFn) -> list[list[tuple[str, int, int, int]]]:
    """Rows (person, age, class, value) of one or two releases; a person keeps her value, not her age."""
    count = draw(st.integers(4, 9))
    values = [draw(st.integers(0, 2)) for _ in range(count)]
    releases = []
    for _ in range(draw(st.integers(1, 2))):
        here = draw(st.lists(st.sampled_from(range(count)), min_size=4, max_size=count, unique=True))
        ages = sorted(draw(st.integers(1, 6)) for _ in here)
        cut = draw(st.integers(2, len(here) - 2))
        # People of one age are in one class: boxes that share an end would be one class, or overlap.
        rows = [(str(p), age, int(age > ages[cut - 1]), values[p]) for p, age in zip(here, ages, strict=True)]
        releases.append(rows)
    return releases


def _written(rows: list[tuple[str, int, int, int]]) -> tuple[pa.Table, pa.Table]:
    ages = defaultdict(list)
    for _, age, number, _ in rows:
        ages[number].append(age)
    box = {number: f"[{min(own)}-{max(own)}]" if len(set(own)) > 1 else f"{own[0]}" for number, own in ages.items()}
    told = [{"id": who, "age": box[number], "ill": f"v{value}"} for who, _, number, value in rows]
    return pa.Table.from_pylist(told), pa.Table.from_pylist([{"id": who, "age": age} for who, age, _, _ in rows])


def _fit(features: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Weights by a general optimizer; the first feature is 1 and hardly drawn to 0, the others are by 1."""
    ridge = np.ones((features.shape[1], 1))
    ridge[0] = 1e-6

    def loss(flat: np.ndarray) -> float:
        weights = flat.reshape(features.shape[1], -1)
        score = features @ weights
        most = score.max(axis=1)
        total = most + np.log(np.exp(score - most[:, None]).sum(axis=1))
        return float(counts.sum(axis=1) @ total - (counts * score).sum() + (ridge * weights**2).sum() / 2)

    found = minimize(loss, np.zeros(features.shape[1] * counts.shape[1]), method="BFGS", options={"gtol": 1e-7})
    return np.asarray(found.x.reshape(features.shape[1], -1))


def _direct(releases: list[list[tuple[str, int, int, int]]]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Per person the mean over her releases of what is learnt of people of her age, by all rows and without hers."""
    ages = sorted({age for rows in releases for _, age, _, _ in rows})
    alls, others = defaultdict(list), defaultdict(list)
    for rows in releases:
        numbers = sorted({number for _, _, number, _ in rows})
        features, counts = [], []
        for number in numbers:
            own = [age for _, age, n, _ in rows if n == number]
            inside = np.array([min(own) <= age <= max(own) for age in ages], float)
            features.append([1, *(inside / inside.sum())])
            counts.append([sum(n == number and v == value for _, _, n, v in rows) for value in range(3)])
        x, y = np.array(features), np.array(counts, float)
        full = _fit(x, y)
        left = [_fit(np.delete(x, place, 0), np.delete(y, place, 0)) for place in range(len(numbers))]
        for who, age, number, _ in rows:
            me = np.array([1, *(float(age == one) for one in ages)])[None, :]
            alls[who].append(shares(me, full)[0])
            others[who].append(shares(me, left[numbers.index(number)])[0])
    return ({who: np.mean(one, axis=0) for who, one in told.items()} for told in (alls, others))  # type: ignore[return-value]


@settings(max_examples=25, deadline=None)
@given(releases=_releases())
def test_what_is_learnt_is_what_a_general_optimizer_finds(releases: list[list[tuple[str, int, int, int]]]) -> None:
    pairs = [_written(rows) for rows in releases]
    found = informed([told for told, _ in pairs], [people for _, people in pairs])
    alls, others = _direct(releases)
    seen = sorted({value for rows in releases for *_, value in rows})
    assert found.others.people == len(others)
    if all(len({number for _, _, number, _ in rows}) > 1 for rows in releases):
        most = [max(one[seen]) for one in others.values()]
        assert found.others.mean == pytest.approx(np.mean(most), abs=5e-3)
        assert found.others.most == pytest.approx(max(most), abs=5e-3)
    if len(releases) > 1:
        return
    # Scaled to the rows of each class, person by person.
    believed = {}
    for number in {number for _, _, number, _ in releases[0]}:
        rows = [row for row in releases[0] if row[2] == number]
        want = np.array([sum(value == v for *_, v in rows) for value in range(3)], float)
        table_ = np.array([alls[who] for who, *_ in rows])
        for _ in range(3000):
            table_ *= want / np.maximum(table_.sum(axis=0), 1e-300)
            table_ /= table_.sum(axis=1, keepdims=True)
        believed |= {who: own for (who, *_), own in zip(rows, table_, strict=True)}
    assert found.read.most == pytest.approx(max(one.max() for one in believed.values()), abs=5e-3)
    assert found.read.mean == pytest.approx(np.mean([one.max() for one in believed.values()]), abs=5e-3)


def test_of_many_classes_some_are_learnt_from_and_her_own_never(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{4 * n + m} [{n}0-{n}9] {ill}" for n in range(9) for m, ill in enumerate(["flu", "flu", "cold", "cold"])]
    odd = [row.replace("flu", "hiv") if "[40" in row else row for row in rows]
    every = informed([table(*odd)])
    monkeypatch.setattr("sequester.attacks.informed.CLASSES", 3)
    some = informed([table(*odd)])
    assert every.most_added == pytest.approx(0.5, abs=1e-2)
    assert some.most_added == pytest.approx(0.5, abs=1e-2)
    assert some.others.mean == pytest.approx(every.others.mean, abs=0.05)


def test_learning_is_stopped_at_the_least_loss_and_not_before() -> None:
    x = np.array([[1.0, 1, 0], [1, 0, 1], [1, 0.5, 0.5]])
    y = np.array([[8.0, 1, 1], [0, 9, 1], [4, 4, 2]])
    found = learn(x, y, ridge=np.array([1e-6, 1, 1]))
    assert shares(x, found) == pytest.approx(shares(x, _fit(x, y)), abs=1e-4)
    # Without features it is the shares of all rows.
    alone = learn(x[:, :1], y, ridge=np.array([1e-9]))
    assert shares(x[:1, :1], alone)[0] == pytest.approx([0.4, 14 / 30, 4 / 30], abs=1e-6)


def test_what_is_told_of_a_reader_who_learns_has_no_cell() -> None:
    found = sq.audit([table(*EVEN, *ODD)], RULES, informed=True)
    (told,) = found.belief
    assert told.informed is not None
    plain = json.dumps(told.informed.to_dict()) + in_words("ill", told.informed)
    assert not any(word in plain for word in ("flu", "cold", "hiv", "[0-9]"))
    assert "learnt from others" in found.report()
    assert "beyond what is known of people like her" in found.report()
    assert "learnt" not in found.report(audience="public")


def test_a_reader_who_learns_needs_to_know_who_is_where() -> None:
    found = sq.audit(nameless(table(*EVEN)), RULES, informed=True)
    assert not found.belief
    assert [one.attacks for one in found.undecided] == [("belief",)]


def test_a_plan_names_the_largest_belief_and_how_many_are_above_the_bound(tmp_path: Path) -> None:
    """Every class of every release keeps the bound, and both releases together lift some beliefs above it."""
    raw = RULES.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    rules = sq.Policy.model_validate(
        {**raw, "protect": {"k": 3, "confidence": 0.5}, "method": {"name": "mondrian"}, "infeasible": "hold-back"}
    )
    series = sq.Series.open(tmp_path / "s.ledger", rules)
    for number, ages in enumerate((1, 7)):
        people = [{"id": f"{p}", "age": p * ages % 41, "ill": f"ill {p * p % 5}"} for p in range(90) if p % 7 != number]
        plan = series.plan(pa.Table.from_pylist(people), name=f"r{number}", seed=2**64 + number)
        series.publish(plan)
        (told,) = series.audit(belief=True).belief
        assert plan.belief == {"ill": {"most": pytest.approx(told.spread.most, abs=1e-3), "beyond": told.beyond}}
    assert plan.belief["ill"]["most"] > 0.5
    assert plan.belief["ill"]["beyond"] > 0
    assert "above the bound" in " ".join(series.audit(belief=True).report().split())
