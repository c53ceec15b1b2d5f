"""`values: first`: a sensitive value may change, and what was published of a person first is published ever after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from towns import KEY, SEED, VALUES, people, rules

OTHER = {"flu": "cold", "cold": "flu", "asthma": "gout", "gout": "asthma"}
FIRST = {"role": "sensitive", "values": "first"}
CHANGED = {n: OTHER[VALUES[n]] for n in range(0, 60, 2)}


def opened(folder: Path, **changes: Any) -> sq.Series:
    series = sq.Series.open(folder / "first.ledger", rules(attributes__value=FIRST, **changes), key=KEY)
    series.publish(people(100), name="one", seed=SEED)
    return series


def shown(release: sq.Release) -> list[Any]:
    return sorted(release.table["value"].to_pylist())


@pytest.mark.parametrize("method", ["mondrian", "pods"])
def test_what_was_published_first_is_published_ever_after(tmp_path: Path, method: str) -> None:
    changes: dict[str, Any] = {"method": {"name": method}, "protect__inferred": 2}
    kept, changed = opened(tmp_path / "a", **changes), opened(tmp_path / "b", **changes)
    as_before = kept.publish(people(160), name="two", seed=SEED)
    later = changed.publish(people(160, value=CHANGED), name="two", seed=SEED)
    # Nothing of the release depends on what the values became.
    assert later.table.equals(as_before.table)
    assert changed.audit().holds


def test_what_is_first_published_later_is_what_it_is_then(tmp_path: Path) -> None:
    series = opened(tmp_path)
    newcomers = {n: OTHER[VALUES[n]] for n in range(100, 160)}
    release = series.publish(people(160, value={**CHANGED, **newcomers}), name="two", seed=SEED)
    assert shown(release) == sorted(people(160, value=newcomers)["value"].to_pylist())
    assert shown(release) != sorted(people(160, value={**CHANGED, **newcomers})["value"].to_pylist())


def test_every_estimate_says_that_a_value_is_the_first_one(tmp_path: Path) -> None:
    series = opened(tmp_path)
    whole = series.folder / series.policy.series
    (release,) = whole.iterdir()
    for data in (release, whole, sq.read_release(release), sq.read_series(whole, "arrow")):
        for question in ("count() by value", "share(value = flu)", "mean(age) where value = flu"):
            told = sq.estimate(data, question, draws=2)
            assert "value is what a person had when she was first published" in str(told)
            assert told.to_dict()["notes"]
        assert sq.estimate(data, "mean(age)", draws=2).notes == ()


def test_a_plan_counts_no_graded_values(tmp_path: Path) -> None:
    plan = opened(tmp_path).plan(people(160, value=CHANGED), name="two", seed=SEED)
    assert plan.personal.graded == 0


def test_grades_do_not_go_with_first_values() -> None:
    graded = {**FIRST, "hierarchy": {"Any": ["flu", "cold", "asthma", "gout"]}, "grades": {"*": "high"}}
    with pytest.raises(sq.PolicyError, match="does not go with values: first"):
        rules(attributes__value=graded)
