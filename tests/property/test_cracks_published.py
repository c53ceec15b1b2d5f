"""Series published by every method against neighbors, judged by every assignment of buddies that they leave.

Section 7.2 of Fung et al.: the rows that may still be a person's are enough, and hold no value too often. Rows are
matched by all their cells that stay; shares are of the sensitive value alone.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import sequester as sq
from cracked import World
from sequester.errors import GuaranteeError
from sequester.ledger import Key
from sequester.publish.series import Series as Published
from series import Series

KEY = Key.of_text("a key for tests only")
K, C = 2, Fraction(3, 5)
METHODS = ["mondrian", "cluster", "merge", "grow", "full-domain", "specialize", "pods"]
MOST = 6
"""Rows of one kind in a release up to which their assignments are enumerated."""

Person = tuple[int, str, str]


def policy(method: str, *, k: int = K, c: Fraction = C) -> sq.Policy:
    age = {"role": "quasi-identifier", "kind": "number", "range": [0, 7], "levels": [2, 4]}
    attributes = {"age": age, "ward": {"role": "insensitive"}, "value": {"role": "sensitive"}}
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "tiny",
            "person": "id",
            "attributes": attributes,
            "protect": {"k": k, "confidence": float(c), "against": ["neighbor"]},
            "method": {"name": method},
        }
    )


def table(people: dict[int, Person]) -> pa.Table:
    rows = [{"id": f"p{n:02}", "age": age, "ward": w, "value": v} for n, (age, w, v) in people.items()]
    return pa.Table.from_pylist(rows)


@st.composite
def stories(draw: st.DrawFn) -> list[dict[int, Person]]:
    """Who is in the table at each of three times; most tables only grow, so that backward attacks work."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, wards = int(random.integers(8, 17)), int(random.integers(1, 3))
    people = [
        (int(random.integers(0, 8)), f"w{random.integers(0, wards)}", "abcd"[random.integers(0, 4)])
        for _ in range(count)
    ]
    joins = random.choice(3, count, p=[0.5, 0.25, 0.25])
    gone = np.where(random.random(count) < (0.1 if random.random() < 0.3 else 0), 2, 3)
    return [{n: people[n] for n in range(count) if joins[n] <= time < gone[n]} for time in range(3)]


def check(found: sq.Audit) -> int:
    """How many people were looked at; fails where the rows left to somebody break a promise."""
    history = found.histories[-1]
    member = np.stack([release.known_member for release in history.releases])
    known = np.flatnonzero((member >= 0).any(axis=0))
    assert history.value is not None
    value, names = history.value[known], [name.split(", ") for name in history.values]
    boxes = tuple((release.lo, release.hi) for release in history.releases)
    points = np.zeros((len(known), 1), np.int32)
    truth = Series(points, value, member[:, known], boxes, len(history.values), ())
    if max(np.bincount(value[one >= 0], minlength=1).max() for one in truth.member) > MOST:
        return 0
    of_value: dict[str, list[int]] = {}
    for label, cells in enumerate(names):
        of_value.setdefault(cells[0], []).append(label)
    looked = 0
    for person, number in enumerate(known.tolist()):
        if history.people[number] in found.nobody:
            continue
        for left in left_to(World(truth), truth.member[:, person].tolist()):
            assert sum(left) >= K
            assert all(sum(left[label] for label in labels) <= C * sum(left) for labels in of_value.values())
            looked += 1
    return looked


def left_to(world: World, path: list[int]) -> list[list[int]]:
    """The rows of every kind that may be hers, by every pair of releases and by all together."""
    between, joining = [], []
    for first, second in world.releases():
        if path[second] >= 0 and path[first] >= 0:
            between.append(world.remaining(first, second, (path[first], path[second])))
        elif path[second] >= 0 and not world.deleted(first, second):
            joining.append(world.unforced(first, second, path[second]))
    together = [rows for rows in (between and between + joining, joining) if rows]
    return [*between, *joining, *([min(column) for column in zip(*rows, strict=True)] for rows in together)]


@pytest.mark.parametrize("method", METHODS)
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(story=stories())
def test_rows_that_are_left_to_a_neighbor_keep_every_bound(method: str, story: list[dict[int, Person]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        series = Published.open(Path(folder) / "tiny.ledger", policy(method), key=KEY)
        published = 0
        for time, people in enumerate(story):
            try:
                series.publish(table(people), name=f"t{time}", seed=2**63 + time, everybody_is_new=True, again=True)
                published += 1
            except GuaranteeError:
                continue
        if published > 1:
            event(f"enumerated: {check(series.audit(against=['neighbor'])) > 0}")


@pytest.mark.parametrize("method", METHODS)
def test_nobody_is_told_for_certain_that_all_newcomers_have_hiv(method: str) -> None:
    """Three Cold and three Flu, then six newcomers who all have HIV; k 3, c 1/2."""
    old = {n: (1, "w", "Cold" if n < 3 else "Flu") for n in range(6)}
    new = dict.fromkeys(range(6, 12), (1, "w", "HIV"))
    with tempfile.TemporaryDirectory() as folder:
        series = Published.open(Path(folder) / "tiny.ledger", policy(method, k=3, c=Fraction(1, 2)), key=KEY)
        series.publish(table(old), name="one")
        try:
            series.publish(table({**old, **new}), name="two", again=True)
        except GuaranteeError:
            return
        assert series.audit(against=["neighbor", "outsider"]).holds
