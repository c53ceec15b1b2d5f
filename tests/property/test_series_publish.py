"""Random series, published by every method: always safe, always accounted for, never altered."""

from __future__ import annotations

import tempfile
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.errors import GuaranteeError
from sequester.ledger import Key
from sequester.publish.plan import Plan
from sequester.publish.series import Series

KEY = Key.of_text("a key for tests only")
AGES, SEXES, VALUES = range(10), ("f", "m"), ("a", "b", "c")
K, C = 2, Fraction(7, 10)

Person = tuple[int, str, str]


def policy(method: str, infeasible: str, against: list[str]) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "tiny",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 9], "levels": [2, 4]},
                "sex": {"role": "quasi-identifier", "hierarchy": {"Person": list(SEXES)}},
                "ward": {"role": "insensitive"},
                "value": {"role": "sensitive"},
            },
            "protect": {"k": K, "confidence": float(C), "against": against},
            "method": {"name": method},
            "infeasible": infeasible,
        }
    )


@st.composite
def stories(draw: st.DrawFn) -> list[dict[int, Person]]:
    """Who is in the table at each of three times: people come, leave and return, and never change."""
    count = draw(st.integers(6, 16))
    people = [
        (draw(st.sampled_from(AGES)), draw(st.sampled_from(SEXES)), draw(st.sampled_from(VALUES))) for _ in range(count)
    ]
    leaving = draw(st.booleans())
    joins = [draw(st.integers(0, 2)) for _ in range(count)]
    absent = [draw(st.sampled_from([None, None, None, 1, 2])) if leaving else None for _ in range(count)]
    return [
        {n: people[n] for n in range(count) if joins[n] <= time and absent[n] != time and (absent[n] != 1 or time != 1)}
        for time in range(3)
    ]


def table(people: dict[int, Person]) -> pa.Table:
    rows = [{"id": f"p{n}", "age": a, "sex": s, "ward": f"w{n % 2}", "value": v} for n, (a, s, v) in people.items()]
    return pa.Table.from_pylist(rows)


def covers(row: dict[str, str], person: Person) -> bool:
    """Whether a published row may be about somebody; read by the definition, without the product's reader."""
    low, high, sex = int(row["age_min"]), int(row["age_max"]), str(row["sex"])
    return low <= person[0] <= high and sex in ("*", person[1], "{f, m}")


class World:
    """Everything published so far, by the publisher's own lists, for brute force."""

    def __init__(self) -> None:
        self.releases: list[dict[str, int]] = []
        self.value: dict[str, str] = {}
        self.names: dict[int, str] = {}

    def members(self, plan: Plan) -> dict[str, int]:
        """Everybody published, also people who left and are published on, and her class."""
        made = plan.candidate
        assert made is not None
        numbers, names = made.past.person.tolist(), made.records.person.to_pylist()
        self.names |= {number: name for number, name in zip(numbers, names, strict=True) if name is not None}
        return {self.names[number]: c for number, c in zip(numbers, made.classes.member.tolist(), strict=True)}

    def add(self, member: dict[str, int], people: dict[int, Person]) -> None:
        self.releases.append(member)
        self.value |= {f"p{n}": person[2] for n, person in people.items()}

    def check(self) -> None:
        """No union of classes of one release minus a union of another's, one inside the other, exposes anybody."""
        for one, other in combinations(self.releases, 2):
            for outer, inner in ((one, other), (other, one)):
                taken = self._unions(inner)
                for added in self._unions(outer):
                    for less in taken:
                        left = added & ~less
                        if less & ~added == 0 and left:
                            self._judge(left)

    def _unions(self, member: dict[str, int]) -> list[int]:
        names = sorted(self.value)
        bits: dict[int, int] = {}
        for name, number in member.items():
            bits[number] = bits.get(number, 0) | 1 << names.index(name)
        found = {0}
        for mask in bits.values():
            found |= {mask | before for before in found}
        return sorted(found)

    def _judge(self, left: int) -> None:
        names = [name for place, name in enumerate(sorted(self.value)) if left >> place & 1]
        assert len(names) >= K
        assert max(Counter(self.value[name] for name in names).values()) <= C * len(names)


def check_release(
    release: sq.Release, plan: Plan, people: dict[int, Person], members: dict[str, int], before: World
) -> None:
    """Every published person's row is there with her raw value, and everybody is accounted for."""
    waiting, change = plan.waiting, plan.change
    assert change.newcomers + change.returned + change.stayers == len(people)
    assert release.table.num_rows == len(people) - waiting.held - waiting.left_out + waiting.retained
    rows = release.table.to_pylist()
    for name, number in members.items():
        if name in {f"p{n}" for n in people}:
            person = people[int(name[1:])]
            assert any(covers(row, person) and row["value"] == person[2] for row in rows), number
    values = Counter(row["value"] for row in rows)
    held = Counter(before.value[name] for name in members if name not in {f"p{n}" for n in people})
    here = Counter(people[int(name[1:])][2] for name in members if name in {f"p{n}" for n in people})
    assert values == held + here


@pytest.mark.parametrize("method", ["mondrian", "merge", "grow", "full-domain"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    story=stories(),
    infeasible=st.sampled_from(["hold-back", "hold-back", "suppress", "refuse"]),
    against=st.sampled_from([["insider"], ["insider", "neighbor"], ["neighbor"]]),
)
def test_every_series_is_safe_and_everybody_is_accounted_for(
    method: str, story: list[dict[int, Person]], infeasible: str, against: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        series = Series.open(Path(folder) / "tiny.ledger", policy(method, infeasible, against), key=KEY)
        world = World()
        for time, people in enumerate(story):
            if not people:
                continue
            try:
                plan = series.plan(table(people), name=f"t{time}", seed=2**63 + time, everybody_is_new=True)
            except GuaranteeError:
                continue
            assert plan.holds
            release = series.publish(plan)
            numbers = world.members(plan)
            check_release(release, plan, people, numbers, world)
            if infeasible == "refuse":
                assert plan.waiting.held == plan.waiting.retained == 0
            world.add(numbers, people)
            if "insider" in against:
                world.check()
        if world.releases:
            assert series.audit(against=[*against, "outsider"]).holds


@pytest.mark.parametrize("method", ["mondrian", "merge", "grow", "full-domain"])
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(story=stories())
def test_holding_back_always_gives_a_release_once_there_was_one(method: str, story: list[dict[int, Person]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        series = Series.open(Path(folder) / "tiny.ledger", policy(method, "hold-back", ["insider"]), key=KEY)
        published = 0
        for time, people in enumerate(story):
            if not people:
                continue
            try:
                series.publish(table(people), name=f"t{time}", seed=2**63 + time, everybody_is_new=True, again=True)
                published += 1
            except GuaranteeError:
                assert published == 0


def test_the_static_series_leaks_and_is_found_out() -> None:
    found = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        people = {
            n: (int(random.integers(10)), str(random.choice(SEXES)), str(random.choice(VALUES))) for n in range(16)
        }
        with tempfile.TemporaryDirectory() as folder:
            series = Series.open(Path(folder) / "tiny.ledger", policy("static", "hold-back", ["insider"]), key=KEY)
            for time, count in enumerate((8, 12, 16)):
                here = {n: people[n] for n in range(count)}
                plan = series.plan(table(here), name=f"t{time}", seed=2**63 + 0, everybody_is_new=True)
                series.publish(plan, i_know_this_leaks=True)
            found += not series.audit().holds
    assert found >= 5
