"""What became of the classes of the last release is what the definitions say, class by class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from ledgers import KEY
from podded import Panel
from podded import rules as pod_rules
from policies import changed
from sequester.publish.saved import restored
from sequester.publish.since_last import SinceLast, compare_classes

SEED = 1 << 63 | 3


@st.composite
def memberships(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Everybody's class before and now, numbered without gaps, -1 for none."""
    people = draw(st.integers(1, 12))
    sides = []
    for _ in range(2):
        given_classes = draw(st.lists(st.integers(-1, 4), min_size=people, max_size=people))
        present = sorted(set(given_classes) - {-1})
        sides.append([present.index(one) if one >= 0 else -1 for one in given_classes])
    return sides[0], sides[1]


@settings(max_examples=300, deadline=None)
@given(memberships())
def test_every_class_of_the_last_release_is_counted_where_the_definition_puts_it(members):
    before, now = members
    then, this = max(before) + 1, max(now) + 1
    were = [{p for p, one in enumerate(before) if one == c} for c in range(then)]
    are = [{p for p, one in enumerate(now) if one == c} for c in range(this)]
    last = set().union(*were) if were else set()
    expected = dict.fromkeys(("as_they_were", "kept", "merged", "split", "mixed", "gone"), 0)
    for old in were:
        pieces = [new for new in are if new & old]
        alone = all(not (new & last) - old for new in pieces)
        if not pieces:
            expected["gone"] += 1
        elif len(pieces) == 1:
            expected["kept" if alone else "merged"] += 1
            expected["as_they_were"] += pieces[0] == old
        else:
            expected["split" if alone else "mixed"] += 1
    found = compare_classes(np.array(before, np.int32), np.array(now, np.int32), then, this)
    assert {name: getattr(found, name) for name in expected} == expected
    assert (found.before, found.now, found.new) == (then, this, sum(not new & last for new in are))
    assert found.kept + found.merged + found.split + found.mixed + found.gone == then


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
            "city": {"role": "quasi-identifier", "hierarchy": {"any": ["a", "b", "c"]}},
            "value": {"role": "sensitive"},
        },
        "protect": {"k": 3, "confidence": 0.6},
        "method": {"name": "mondrian"},
    }
    return changed(raw, **changes)


def table(chosen: range | list[int]) -> pa.Table:
    draw = np.random.default_rng(9)
    age, city, value = draw.integers(0, 99, 200), draw.choice([*"abc"], 200), draw.choice([*"vwxyz"], 200)
    ids = list(chosen)
    return pa.table({"id": [f"p{n}" for n in ids], "age": age[ids], "city": city[ids], "value": value[ids]})


@pytest.mark.parametrize("method", ["mondrian", "merge", "cluster"])
def test_people_and_columns_are_those_of_the_two_releases(tmp_path: Path, method: str) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(method={"name": method}), key=KEY)
    first = series.plan(table(range(80)), name="first", seed=SEED)
    series.publish(first)
    assert first.since_last is None
    plan = series.plan(table(range(20, 140)), name="second", seed=SEED)
    since = plan.since_last
    assert since is not None
    assert (since.number, since.came, since.returned, since.stayed, since.left) == (1, 60, 0, 60, 20)
    assert since.decoys == (0, 0)
    assert since.coarser + since.finer <= since.stayed
    assert since.ail[1] == pytest.approx(plan.loss["release"]["ail"])
    assert since.ail[0] == pytest.approx(first.loss["release"]["ail"])
    assert [column.name for column in since.columns] == ["age", "city"]
    for place in (0, 1):
        lost = [(column.before, column.now)[place] for column in since.columns]
        assert sum(lost) / 2 == pytest.approx(since.ncp[place])
    assert restored(SinceLast, since.to_dict()) == since


def test_people_who_wait_have_not_come_and_people_who_are_kept_have_not_left(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    series.publish(table(range(80)), name="first", seed=SEED)
    since = series.plan(table(range(1, 81)), name="second", seed=SEED).since_last
    assert since is not None
    assert (since.came, since.stayed, since.kept, since.left) == (0, 80, 1, 0)
    # The same people, in classes no finer than they were: nothing is told.
    assert since.classes.as_they_were == since.classes.before == since.classes.now
    assert {column.became for column in since.columns} == {""}


def test_decoys_are_nobody_beside_the_last_release(tmp_path: Path) -> None:
    panel = Panel.random(60, 3, seed=2)
    series = sq.Series.open(tmp_path / "panel.ledger", pod_rules(), key=KEY)
    plans = []
    for wave in range(3):
        plan = series.plan(panel.table(wave), name=f"r{wave}", seed=SEED + wave)
        series.publish(plan)
        plans.append(plan)
    for wave, plan in enumerate(plans[1:], 1):
        since, last, here = plan.since_last, set(panel.waves[wave - 1]), set(panel.waves[wave])
        ever = set().union(*panel.waves[:wave])
        assert since is not None
        assert (since.came, since.stayed, since.left) == (len(here - ever), len(here & last), len(last - here))
        assert since.returned == len(here & ever - last)
        assert since.decoys == (plans[wave - 1].decoys, plan.decoys)
        assert since.ail == pytest.approx(tuple(one.loss["release"]["ail"] for one in plans[wave - 1 : wave + 1]))
