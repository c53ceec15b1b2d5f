"""Random series of pods made by hand, to be enumerated, audited and corrupted; nothing here knows the product's maker.

What proves deniability is decided here from the definition, person by person, and once more by the worlds that it
promises: every shift of a type's labels must show the same rows in every class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import sequester as sq
from sequester.attacks.audit import Audit, audit_histories
from sequester.history import History
from sequester.history.label import Rows
from sequester.history.load import find_members, read_rows
from sequester.history.releases import read_releases
from sequester.history.seats import Seats
from worlds import Class, Column, Label, Published

ORDINARY = "o"
SHARES = (Fraction(1, 2), Fraction(17, 50), Fraction(67, 100), Fraction(2, 5), Fraction(1, 4))


@dataclass(frozen=True)
class Seated:
    """Releases made of pods.

    columns   names of the columns of a label: those in SENSITIVE have a bound, others stay and have none
    label     per person or decoy
    releases  classes of people and decoys
    type, seat, pods, decoys   the witness; a pod is a set of members
    """

    columns: tuple[str, ...]
    bound: Fraction
    k: int
    inferred: int
    label: dict[str, Label]
    releases: list[list[list[str]]]
    type: dict[str, int]
    seat: dict[str, int]
    pods: list[dict[str, int]]
    decoys: frozenset[str]

    @property
    def policy(self) -> sq.Policy:
        columns: dict[str, Any] = {
            name: {"role": "sensitive", "ordinary": [ORDINARY]} if name in "st" else {"role": "insensitive"}
            for name in self.columns
        }
        return sq.Policy.model_validate(
            {
                "version": 1,
                "series": "seated",
                "person": "id",
                "attributes": {"q": {"role": "quasi-identifier", "changes": True}, **columns},
                "protect": {
                    "k": self.k,
                    "people": 1,
                    "inferred": self.inferred,
                    "confidence": float(self.bound),
                    "against": ["insider"],
                },
                "method": {"name": "pods"},
            }
        )

    def tables(self) -> list[pa.Table]:
        return [
            pa.Table.from_pylist(
                [
                    {"id": person, "q": f"class {place}", **dict(zip(self.columns, self.label[person], strict=True))}
                    for place, people in enumerate(release)
                    for person in people
                ]
            )
            for release in self.releases
        ]

    def published(self) -> Published:
        cells = [{label[at] for label in self.label.values()} for at in range(len(self.columns))]
        columns = tuple(
            Column(dict.fromkeys(values - {ORDINARY}, self.bound) if name in "st" else {})
            for name, values in zip(self.columns, cells, strict=True)
        )
        releases = tuple(
            tuple(Class(tuple(people), tuple(self.label[person] for person in people)) for people in release)
            for release in self.releases
        )
        return Published(columns, releases, decoys=self.decoys)

    def read(self) -> tuple[tuple[History, ...], Rows | None]:
        """As the product reads them."""
        read = read_releases(self.tables(), self.policy)
        return read_rows(read, find_members(read))

    def seats(self, people: Sequence[Any]) -> Seats:
        """The witness, in the order of a history's people."""
        return Seats(
            np.array([person in self.decoys for person in people], np.bool_),
            np.array([self.type.get(person, -1) for person in people], np.int32),
            np.array([self.seat.get(person, -1) for person in people], np.int32),
            tuple(np.array([pods.get(person, -1) for person in people], np.int32) for pods in self.pods),
        )

    def audit(self, *, seats: bool, against: Sequence[str] = ("insider",), **more: Any) -> Audit:
        histories, rows = self.read()
        own = self.seats(histories[0].people) if seats else None
        return audit_histories(histories, self.policy, rows=rows, against=against, seats=own, **more)

    def answers(self, label: Label) -> list[tuple[int, str]]:
        """The bounded values of a label."""
        return [
            (at, value)
            for at, (name, value) in enumerate(zip(self.columns, label, strict=True))
            if name in "st" and value != ORDINARY
        ]

    def proves(self) -> bool:
        """Whether the witness is one, by definition."""
        ever = {person for release in self.releases for one in release for person in one}
        if any(self.type.get(person, -1) < 0 or self.seat.get(person, -1) < 0 for person in ever):
            return False
        own: dict[tuple[int, int], set[Label]] = {}
        for person in ever:
            own.setdefault((self.type[person], self.seat[person]), set()).add(self.label[person])
        if any(len(labels) > 1 for labels in own.values()):
            return False
        types: dict[int, dict[int, Label]] = {}
        for (kind, seat), (label,) in own.items():
            types.setdefault(kind, {})[seat] = label
        for labels in types.values():
            often = Counter(answer for label in labels.values() for answer in self.answers(label))
            if any(Fraction(count, len(labels)) > self.bound for count in often.values()):
                return False
        return all(self._whole(release, pods, types) for release, pods in zip(self.releases, self.pods, strict=True))

    def _whole(self, release: list[list[str]], pods: dict[str, int], types: dict[int, dict[int, Label]]) -> bool:
        at = {person: place for place, one in enumerate(release) for person in one}
        inside = {person for person, pod in pods.items() if pod >= 0}
        if inside != set(at):
            return False
        members: dict[int, list[str]] = {}
        for person in at:
            members.setdefault(pods[person], []).append(person)
        for people in members.values():
            kinds, classes = {self.type[person] for person in people}, {at[person] for person in people}
            if len(kinds) > 1 or len(classes) > 1:
                return False
            if sorted(self.seat[person] for person in people) != sorted(types[kinds.pop()]):
                return False
        return True

    def shifts(self) -> Iterator[dict[str, Label]]:
        """Everybody's label in the worlds that a witness promises: all types shifted by as much."""
        types: dict[int, dict[int, Label]] = {}
        for person, kind in self.type.items():
            types.setdefault(kind, {})[self.seat[person]] = self.label[person]
        rounds = int(np.lcm.reduce([len(labels) for labels in types.values()]))
        for shift in range(rounds):
            world = {}
            for person, kind in self.type.items():
                seats = sorted(types[kind])
                world[person] = types[kind][seats[(seats.index(self.seat[person]) + shift) % len(seats)]]
            yield world

    def is_world(self, world: dict[str, Label]) -> bool:
        """Whether no class shows that labels are these."""
        return all(
            Counter(world[person] for person in one) == Counter(self.label[person] for person in one)
            for release in self.releases
            for one in release
        )


def seated(random: Random, *, releases: int | None = None, most: int = 7) -> Seated:
    """A random series of pods: people come, go and return, partners change, and decoys fill the empty seats."""
    columns = random.choice([("s",), ("s",), ("s", "z"), ("s", "t"), ("s", "t", "z")])
    bound = random.choice(SHARES)
    types = [_type(random, columns, bound) for _ in range(random.randint(1, 3))]
    type_: dict[str, int] = {}
    seat: dict[str, int] = {}
    for number in range(random.randint(2, most)):
        kind = random.randrange(len(types))
        type_[f"p{number}"], seat[f"p{number}"] = kind, random.randrange(len(types[kind]))
    people, decoys = list(type_), set[str]()
    made, all_pods = [], []
    for _ in range(releases or random.randint(1, 3)):
        here = [person for person in people if random.random() < 0.8] or people[:1]
        pods: dict[str, int] = {}
        groups: list[list[str]] = []
        for kind, labels in enumerate(types):
            holders = [[p for p in here if (type_[p], seat[p]) == (kind, place)] for place in range(len(labels))]
            number = max(map(len, holders))
            for place, own in enumerate(holders):
                idle = [d for d in sorted(decoys) if (type_[d], seat[d]) == (kind, place)]
                while len(own) < number:
                    if idle and random.random() < 0.6:
                        own.append(idle.pop())
                    else:
                        decoy = f"d{len(decoys)}"
                        decoys.add(decoy)
                        type_[decoy], seat[decoy] = kind, place
                        own.append(decoy)
                random.shuffle(own)
            groups += [list(pod) for pod in zip(*holders, strict=True)]
        random.shuffle(groups)
        classes: list[list[str]] = []
        for pod, group in enumerate(groups):
            pods |= dict.fromkeys(group, pod)
            if classes and random.random() < 0.6:
                random.choice(classes).extend(group)
            else:
                classes.append(list(group))
        made.append(classes)
        all_pods.append(pods)
    k = random.randint(2, 5)
    ever = {person for release in made for one in release for person in one}
    return Seated(
        columns=columns,
        bound=bound,
        k=k,
        inferred=random.randint(2, k),
        label={person: types[type_[person]][seat[person]] for person in type_ if person in ever},
        releases=made,
        type={person: kind for person, kind in type_.items() if person in ever},
        seat={person: place for person, place in seat.items() if person in ever},
        pods=all_pods,
        decoys=frozenset(decoys),
    )


def _type(random: Random, columns: Sequence[str], bound: Fraction) -> list[Label]:
    """Labels of seats in which no value has more than its share; now and then of somebody alone without any."""
    if random.random() < 0.15:
        return [tuple(ORDINARY if name in "st" else random.choice("xy") for name in columns)]
    while True:
        seats = random.randint(-(-bound.denominator // bound.numerator), 4)
        labels = [tuple(random.choice("abcdo" if name in "st" else "xy") for name in columns) for _ in range(seats)]
        often = Counter((at, label[at]) for label in labels for at, name in enumerate(columns) if name in "st")
        if all(Fraction(n, seats) <= bound for (_, value), n in often.items() if value != ORDINARY):
            return labels


def corrupted(random: Random, case: Seated) -> tuple[str, Seated]:
    """The same with one thing wrong in the witness, or in what it is about."""
    people = sorted(case.type)
    one, other = random.choice(people), random.choice(people)
    number = random.randrange(len(case.releases))
    pods = [dict(own) for own in case.pods]
    here = sorted(pods[number])
    somebody, another = random.choice(here), random.choice(here)
    match kind := random.choice(CORRUPTIONS):
        case "seats swapped":
            return kind, replace(case, seat={**case.seat, one: case.seat[other], other: case.seat[one]})
        case "another seat":
            return kind, replace(case, seat={**case.seat, one: random.choice([-1, 0, 1, 2, 3, 9, 2**31 - 1])})
        case "another type":
            return kind, replace(case, type={**case.type, one: random.choice([-1, 0, 1, 2, 7, 2**31 - 1])})
        case "types joined":
            return kind, replace(case, type=dict.fromkeys(people, 0))
        case "pods swapped":
            pods[number][somebody], pods[number][another] = pods[number][another], pods[number][somebody]
            return kind, replace(case, pods=pods)
        case "pod split":
            pods[number][somebody] = max(pods[number].values()) + 1
            return kind, replace(case, pods=pods)
        case "pods joined":
            old = pods[number][somebody]
            pods[number] = {p: pods[number][another] if pod == old else pod for p, pod in pods[number].items()}
            return kind, replace(case, pods=pods)
        case "member missing":
            pods[number][somebody] = -1
            return kind, replace(case, pods=pods)
        case "absent in a pod":
            absent = [person for person in people if person not in pods[number]]
            if absent:
                pods[number][random.choice(absent)] = pods[number][somebody]
            return kind, replace(case, pods=pods)
        case "another label":
            return kind, replace(case, label={**case.label, one: case.label[other]})
        case "another class":
            classes = [[p for p in group if p != somebody] for group in case.releases[number]]
            random.choice([*classes, classes[-1]]).append(somebody)
            moved = [*case.releases]
            moved[number] = [group for group in classes if group]
            return kind, replace(case, releases=moved)
        case "a smaller bound":
            return kind, replace(case, bound=random.choice([Fraction(1, 5), Fraction(17, 50), Fraction(2, 5)]))
        case "pods renumbered":
            largest = max(pods[number].values())
            pods[number] = {person: 3 * (largest - pod) for person, pod in pods[number].items()}
            return kind, replace(case, pods=pods)
        case "releases swapped":
            return kind, replace(case, pods=[*reversed(pods)])
        case _:
            return kind, replace(case, decoys=case.decoys ^ {one})


CORRUPTIONS = (
    "seats swapped",
    "another seat",
    "another type",
    "types joined",
    "pods swapped",
    "pod split",
    "pods joined",
    "member missing",
    "absent in a pod",
    "another label",
    "another class",
    "a smaller bound",
    "pods renumbered",
    "releases swapped",
    "a decoy flag",
)
