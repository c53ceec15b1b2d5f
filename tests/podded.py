"""Panels published by pods, and what must be true of every such series, checked from the ledger and from the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import sequester as sq
from policies import changed
from sequester.ledger import Key
from sequester.ledger.state import State
from sequester.publish.release import Release

KEY = Key(b"p" * 32)
SEED = 1 << 63 | 11


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "panel",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True},
            "sex": {"role": "quasi-identifier", "hierarchy": {"Person": ["f", "m"]}},
            "value": {"role": "sensitive"},
        },
        "protect": {"k": 2, "confidence": 0.5},
        "method": {"name": "pods"},
    }
    return changed(raw, **changes)


@dataclass(frozen=True)
class Panel:
    """People with cells that stay, and an age that grows by one from wave to wave."""

    cells: dict[str, list[Any]]
    waves: Sequence[Sequence[int]]

    @classmethod
    def random(cls, people: int, waves: int, *, seed: int, away: float = 0.3, **cells: Sequence[str]) -> Panel:
        """Everybody is away from a wave with this chance; cells are drawn from those given, early ones more often."""
        random = np.random.default_rng(seed)
        found: dict[str, list[Any]] = {
            "id": [f"p{number}" for number in range(people)],
            "age": random.integers(20, 80, people).tolist(),
            "sex": random.choice(["f", "m"], people).tolist(),
        }
        for name, some in {"value": ["a", "b", "c", "d"], **cells}.items():
            chance = np.arange(len(some), 0, -1) / sum(range(len(some) + 1))
            found[name] = random.choice(some, people, p=chance).tolist()
        there = [np.flatnonzero(random.random(people) >= away).tolist() for _ in range(waves)]
        return cls(found, [here or [0] for here in there])

    def table(self, wave: int, **more: list[Any]) -> pa.Table:
        here = self.waves[wave]
        rows = {name: [cells[person] for person in here] for name, cells in self.cells.items()}
        return pa.table({**rows, "age": [age + wave for age in rows["age"]], **more})

    def tables(self) -> list[pa.Table]:
        return [self.table(wave) for wave in range(len(self.waves))]


def publish(series: sq.Series, tables: Sequence[pa.Table], *, check: bool = True) -> list[Release]:
    """Publish tables one after the other; after each everything is as it must be."""
    found = []
    for table in tables:
        number = len(series.releases()) + 1
        plan = series.plan(table, name=f"r{number}", seed=SEED + number, everybody_is_new=True)
        release = series.publish(plan)
        assert plan.people == len(table)
        assert plan.records == release.table.num_rows == plan.people + plan.decoys
        check_people(release, table["id"].to_pylist())
        if check:
            check_series(series)
            check_rows(state_of(series), release, series.policy)
        found.append(release)
    return found


def check_people(release: Release, ids: Sequence[str]) -> None:
    """Everybody of the table is in the release, and nobody else."""
    members = release.members()
    assert Counter(members["person"].to_pylist()) == Counter(ids)
    assert min(members["class"].to_pylist()) >= 0


def state_of(series: sq.Series) -> State:
    with series._ledger(read_only=True) as ledger:
        assert ledger.verify(series.folder).problems == ()
        return ledger.load()


def labels_of(state: State, policy: sq.Policy) -> list[tuple[str, ...]]:
    """Everybody's cells that stay, as text; sensitive ones first."""
    columns = list(zip(state.sensitive, state.values, strict=True))
    columns += [
        (name, codes) for name, codes in zip(state.insensitive, state.plain, strict=True) if name in policy.lasting
    ]
    texts = [[state.domains[name].names[0][code] for code in codes] for name, codes in columns]
    return list(zip(*texts, strict=True))


def check_series(series: sq.Series) -> None:
    """The audit holds, and what the ledger keeps of pods is a certificate, by its definition."""
    assert series.audit().holds
    state = state_of(series)
    check_certificate(state, series.policy)


def check_rows(state: State, release: Release, policy: sq.Policy) -> None:
    """The published rows of every class are those of its people and decoys in the ledger, as far as they stay."""
    labels, member = labels_of(state, policy), state.member
    names = [*policy.sensitive, *policy.lasting]
    quasi = [
        name
        for name in release.table.column_names
        if name.removesuffix("_min").removesuffix("_max") in policy.quasi_identifiers
    ]
    written: dict[Any, Counter[tuple[str, ...]]] = {}
    for row in release.table.to_pylist():
        box = tuple(row[name] for name in quasi)
        written.setdefault(box, Counter())[tuple(str(row[name]) for name in names)] += 1
    kept: dict[int, Counter[tuple[str, ...]]] = {}
    for person in np.flatnonzero(member >= 0).tolist():
        kept.setdefault(int(member[person]), Counter())[labels[person]] += 1
    assert sorted(map(sorted, (one.items() for one in written.values()))) == sorted(
        map(sorted, (one.items() for one in kept.values()))
    )


def check_certificate(state: State, policy: sq.Policy) -> None:
    """Every pod is in one class and has each seat of one type once; a seat has one label for ever."""
    seats = state.seats
    assert seats is not None
    assert len(seats) == state.people
    labels = labels_of(state, policy)
    at: dict[tuple[int, int], tuple[str, ...]] = {}
    for person, label in enumerate(labels):
        assert at.setdefault((int(seats.type[person]), int(seats.seat[person])), label) == label
    size = Counter(kind for kind, _ in at)
    for number, pods in enumerate(seats.pods):
        member = state.path[state.trajectory, number]
        assert ((member >= 0) == (pods >= 0)).all()
        for pod in np.unique(pods[pods >= 0]).tolist():
            inside = np.flatnonzero(pods == pod)
            assert len(set(member[inside].tolist())) == 1
            (kind,) = set(seats.type[inside].tolist())
            assert sorted(seats.seat[inside].tolist()) == list(range(size[kind]))
    check_shares(at, size, policy)


def check_shares(at: dict[tuple[int, int], tuple[str, ...]], size: Counter[int], policy: sq.Policy) -> None:
    """Of no type has a bounded value of a plain attribute more than its share of the seats."""
    for place, attribute in enumerate(policy.sensitive.values()):
        if attribute.kind != "category" or attribute.is_graded:
            continue
        given = policy.protect.confidence if attribute.confidence is None else attribute.confidence
        shares = given if isinstance(given, dict) else {"*": given}
        seats = Counter((kind, label[place]) for (kind, _), label in at.items())
        for (kind, value), number in seats.items():
            bound = shares.get(value, shares.get("*", 1))
            if value not in attribute.ordinary and bound is not None and bound < 1:
                assert Fraction(number, size[kind]) <= Fraction(str(bound))
