"""Auditing one more of twenty releases of a million people by their pods, against group-bys over the same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sequester as sq
from benchmarks.figures import Figure
from benchmarks.timing import seconds
from sequester.attacks.attack import Audited
from sequester.attacks.audit import Audit, audit_histories
from sequester.attacks.pods import check_pods
from sequester.history import History, Publication
from sequester.history.seats import Seats

PEOPLE, VALUES, RELEASES, ROUNDS = 1_000_000, 12, 20, 5
K, TOGETHER = 5, 3
MEASURES = {"k": 6.0, "confidence": 0.5, "difference": 2.0, "tracing": 2.0, "deniability": 0.5}
POLICY = sq.Policy.model_validate(
    {
        "version": 1,
        "series": "pods",
        "person": "id",
        "attributes": {"q": {"role": "quasi-identifier", "changes": True}, "s": {"role": "sensitive"}},
        "protect": {"k": K, "inferred": 2, "confidence": 0.5, "against": ["insider"]},
    }
)


def run() -> list[Figure]:
    """The audit of the last release and of the third, by what was checked before; and the check of all twenty."""
    series = _Made.of(np.random.default_rng(14))
    group = series.group_by()
    third, last = (min(seconds(lambda n=n: series.one_more(n))[0] for _ in range(ROUNDS)) for n in (3, RELEASES))
    whole, found = seconds(lambda: check_pods(series.histories(RELEASES), None, series.seats))
    assert found is not None
    assert found.holds
    assert series.one_more(RELEASES).holds
    rows = f"{group * 1000:.0f} ms for one group-by of class and value (DuckDB), {last * 1000:.0f} ms for the audit"
    return [
        Figure("one more of 20 releases of 1,000,000 people / one group-by", last / group, at_most=5.0, note=rows),
        Figure("release 20 / release 3", last / third, at_most=1.5),
        Figure("the pods of all 20 releases, checked anew / 20 group-bys", whole / group / RELEASES, at_most=5.0),
    ]


@dataclass(frozen=True)
class _Made:
    """Couples of every two of the values, one in ten absent, partners and classes drawn anew each time."""

    value: NDArray[np.int32]
    seats: Seats
    releases: tuple[Publication, ...]

    @classmethod
    def of(cls, random: np.random.Generator) -> _Made:
        types = np.array(list(combinations(range(VALUES), 2)), np.int32)
        couples = PEOPLE // 2
        kind = random.integers(0, len(types), couples).astype(np.int32)
        type_, seat = np.repeat(kind, 2), np.tile(np.array([0, 1], np.int32), couples)
        value = types[type_, seat]
        made = [_release(random, type_, seat, value, number) for number in range(RELEASES)]
        decoy = random.random(PEOPLE) < 0.05
        return cls(value, Seats(decoy, type_, seat, tuple(pod for _, pod in made)), tuple(one for one, _ in made))

    def histories(self, releases: int) -> list[History]:
        """What was published until then, without anybody's path: pods that hold need none."""
        history = History(
            attribute="s",
            values=tuple(f"v{number}" for number in range(VALUES)),
            k=K,
            bounds=(Fraction(1, 2),) * VALUES,
            domains=(),
            quasi_names=(),
            links=np.zeros(0, np.bool_),
            people=range(PEOPLE),  # type: ignore[arg-type]
            value=self.value,
            inferred=2,
        )
        return [replace(history, releases=self.releases[:releases])]

    def one_more(self, releases: int) -> Audit:
        """The audit after so many releases, of which all but the last were audited before."""
        seats, before = replace(self.seats, pods=self.seats.pods[:releases]), Audited(releases - 1, MEASURES)
        return audit_histories(self.histories(releases), POLICY, against=["insider"], seats=seats, before=before)

    def group_by(self) -> float:
        """Seconds to count how many people of every class have which value, in the last release."""
        member = self.releases[-1].member
        assert member is not None
        here = np.flatnonzero(member >= 0)
        with duckdb.connect() as database:
            database.register("rows", pa.table({"class": member[here], "value": self.value[here]}))
            database.sql("create table plain as select * from rows")
            counted = "select class, value, count(*) from plain group by all"
            return min(seconds(lambda: database.sql(counted).to_arrow_table())[0] for _ in range(ROUNDS))


def _release(
    random: np.random.Generator,
    type_: NDArray[np.int32],
    seat: NDArray[np.int32],
    value: NDArray[np.int32],
    number: int,
) -> tuple[Publication, NDArray[np.int32]]:
    """One release: as many of every seat of a type, paired at random, and three couples to a class."""
    order = random.permutation(PEOPLE)
    order = order[np.argsort(type_[order], kind="stable")]
    first, second = (order[seat[order] == place] for place in (0, 1))
    there = np.flatnonzero(random.random(len(first)) < 0.9)
    first, second = first[there], second[there]
    mixed = random.permutation(len(first))
    couples = len(first) // TOGETHER * TOGETHER
    pod = np.full(PEOPLE, -1, np.int32)
    pod[first[mixed[:couples]]] = pod[second[mixed[:couples]]] = np.arange(couples)
    member = np.where(pod >= 0, pod // TOGETHER, -1).astype(np.int32)
    classes, here = couples // TOGETHER, np.flatnonzero(pod >= 0)
    counts = np.bincount(member[here] * VALUES + value[here], minlength=classes * VALUES).reshape(classes, VALUES)
    none, boxes = np.zeros(0, np.int32), np.zeros((0, classes), np.int32)
    return Publication(f"r{number + 1}", boxes, boxes, counts.astype(np.int64), none, none, member), pod
