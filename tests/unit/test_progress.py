"""Progress is told as a fraction of all the work, and never goes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_price import KEY, SEED, begun, people, rules

import sequester as sq
from sequester.log import WHOLE, Stages, part_of

Told = list[tuple[str, int, int]]


def check(told: Told, *names: str) -> None:
    assert {of for _, _, of in told} == {WHOLE}
    done = [one for _, one, _ in told]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] < WHOLE
    stages = list(dict.fromkeys(what for what, _, _ in told))
    assert [name for name in stages if name in names] == list(names)


@pytest.mark.parametrize("method", ["mondrian", "pods"])
def test_planning_and_publishing_tell_how_much_of_the_work_is_done(tmp_path: Path, method: str) -> None:
    series = begun(tmp_path, method, count=200)
    told: Told = []
    plan = series.plan(people(range(50, 400)), name="second", seed=SEED, progress=lambda *one: told.append(one))
    check(told, "reading", "matching people", "anonymizing", "comparing")
    # Columns and attacks are counted, too.
    assert len({done for what, done, _ in told if what == "reading"}) > 2
    assert len({done for _, done, _ in told}) > 6
    told.clear()
    series.publish(plan, progress=lambda *one: told.append(one))
    check(told, "describing", "writing", "reading back", "recording")


def test_publishing_a_table_tells_of_one_piece_of_work(tmp_path: Path) -> None:
    told: Told = []
    series = sq.Series.open(tmp_path / "prices.ledger", rules("mondrian"), key=KEY)
    series.publish(people(range(200)), name="first", seed=SEED, progress=lambda *one: told.append(one))
    check(told, "reading", "anonymizing", "comparing", "describing", "recording")
    at = {what: done for what, done, _ in reversed(told)}
    assert at["comparing"] < at["describing"] < at["recording"]


def test_stages_without_shares_are_told_by_their_number() -> None:
    told: Told = []
    stages = Stages("publish", ("one", "two"), lambda *one: told.append(one))
    stages(0)
    stages(1)
    assert told == [("one", 0, 2), ("two", 1, 2)]


def test_parts_are_told_of_the_whole_and_never_less_than_before() -> None:
    told: Told = []
    stages = Stages("publish", ("one", "two"), lambda *one: told.append(one), shares=(0.4, 0.6))
    stages(0)
    half, rest = stages.part(0, 0, 0.5), stages.part(1)
    assert half is not None
    assert rest is not None
    half("some", 1, 2)
    stages(1)
    half("late", 2, 2)
    rest("more", 1, 3)
    assert told == [("one", 0, 1000), ("some", 100, 1000), ("two", 400, 1000), ("late", 400, 1000), ("more", 600, 1000)]
    assert part_of(None, 0, 1) is None
    assert Stages("publish", ("one",), None, shares=(1,)).part(0) is None
