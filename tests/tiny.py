"""Tiny random series as plain data: to be enumerated, audited, published, and saved when something is wrong with one.

A `Case` is releases that somebody made: who is in which class of each. A `Story` is private tables, to be published.
Both have labels of several columns: sensitive attributes, sets, nodes of a taxonomy, insensitive columns that stay, and
columns that change, which link nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import sequester as sq
from worlds import Class, Column, Label, Published

Cells = dict[str, str]
TREE = {"Any": {"X": ["a", "b"], "Y": ["c", "d"]}}
BELOW = {"Any": frozenset("abcd"), "X": frozenset("ab"), "Y": frozenset("cd")}
PLAIN: dict[str, Any] = {"role": "sensitive"}
SET = {"role": "sensitive", "kind": "set"}
GRADED = {"role": "sensitive", "hierarchy": TREE, "grades": {"a": "high", "d": "Any"}}
STAYS = {"role": "insensitive"}
CHANGES = {"role": "insensitive", "changes": True}
COLUMNS: dict[str, dict[str, Any]] = {
    "set": SET,
    "starred set": SET,
    "graded": GRADED,
    "stays": STAYS,
    "changes": CHANGES,
}
GRADES = {"a": "X", "b": "b", "c": "c", "d": "Any"}
"""How a graded value is published."""


@dataclass(frozen=True)
class Case:
    """Releases made by anyone.

    columns     everything a row shows beside its box, as in a policy
    cells       per person, her cells of the columns that stay
    releases    classes of people, by name
    different   cells that are written otherwise: [release, person, column, cell]
    combine     how several sensitive attributes are protected: each, joint (their combination) or both
    """

    k: int
    confidence: Any
    columns: dict[str, dict[str, Any]]
    cells: dict[str, Cells]
    releases: list[list[list[str]]]
    different: list[list[Any]]
    combine: str = "each"

    @property
    def policy(self) -> sq.Policy:
        return sq.Policy.model_validate(
            {
                "version": 1,
                "series": "tiny",
                "person": "id",
                "attributes": {"q": {"role": "quasi-identifier", "changes": True}, **self.columns},
                "protect": {
                    "k": self.k,
                    "confidence": self.confidence,
                    "against": ["insider"],
                    "sensitive": self.combine,
                },
            }
        )

    def row(self, number: int, person: str) -> Cells:
        """What is published of a person, without her class."""
        given = {name: cell for at, who, name, cell in self.different if (at, who) == (number, person)}
        moving = {name: f"n{(3 * number + int(person)) % 4}" for name in self.columns if not stays(self.columns[name])}
        return {**self.cells[person], **moving, **given}

    def tables(self) -> list[pa.Table]:
        return [
            pa.Table.from_pylist(
                [
                    {"id": person, "q": f"class {place}", **self.row(number, person)}
                    for place, people in enumerate(release)
                    for person in people
                ]
            )
            for number, release in enumerate(self.releases)
        ]

    def published(self) -> Published:
        names = [name for name, column in self.columns.items() if stays(column)]

        def label(number: int, person: str) -> Label:
            row = self.row(number, person)
            return tuple(row[name] for name in names)

        releases = tuple(
            tuple(Class(tuple(people), tuple(label(number, person) for person in people)) for people in release)
            for number, release in enumerate(self.releases)
        )
        labels = {label for release in releases for one in release for label in one.labels}
        columns = tuple(
            column_of(self.columns[name], self.confidence, {label[at] for label in labels})
            for at, name in enumerate(names)
        )
        published = Published(columns, releases, written=not self.different)
        return _protected(published, names, self.columns, self.combine)


@dataclass(frozen=True)
class Story:
    """Private tables, one after the other: who is in each, and how it is to be published."""

    k: int
    confidence: Any
    method: str
    against: list[str]
    infeasible: str
    columns: dict[str, dict[str, Any]]
    cells: dict[str, Cells]
    points: dict[str, list[int]]
    present: list[list[str]]
    combine: str = "each"

    @property
    def policy(self) -> sq.Policy:
        return sq.Policy.model_validate(
            {
                "version": 1,
                "series": "tiny",
                "person": "id",
                "attributes": {
                    "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 7], "levels": [2, 4]},
                    "sex": {"role": "quasi-identifier", "hierarchy": {"Person": ["f", "m"]}},
                    **self.columns,
                },
                "protect": {
                    "k": self.k,
                    "confidence": self.confidence,
                    "against": self.against,
                    "sensitive": self.combine,
                },
                "method": {"name": self.method},
                "infeasible": self.infeasible,
            }
        )

    def tables(self) -> list[pa.Table]:
        rows = [[self._row(at, person) for person in here] for at, here in enumerate(self.present)]
        return [pa.Table.from_pylist(one) for one in rows]

    def _row(self, at: int, person: str) -> dict[str, Any]:
        age, sex = self.points[person]
        moving = {name: f"n{(3 * at + int(person)) % 4}" for name in self.columns if not stays(self.columns[name])}
        return {"id": person, "age": age, "sex": "fm"[sex], **self.cells[person], **moving}

    @property
    def names(self) -> list[str]:
        """Columns that labels are made of."""
        return [name for name, column in self.columns.items() if stays(column)]

    def label(self, person: str) -> Label:
        """What is published of a person in the columns that stay."""
        own = self.cells[person]
        return tuple(GRADES[own[n]] if "grades" in self.columns[n] else own[n] for n in self.names)

    def published(self, releases: list[list[list[str]]]) -> Published:
        """With these classes of people."""
        labels = [self.label(person) for person in self.cells]
        published = Published(
            tuple(
                column_of(self.columns[name], self.confidence, {label[at] for label in labels})
                for at, name in enumerate(self.names)
            ),
            tuple(tuple(Class(tuple(c), tuple(map(self.label, c))) for c in release) for release in releases),
        )
        return _protected(published, self.names, self.columns, self.combine)


def stays(column: Mapping[str, Any]) -> bool:
    """Whether a person's cells of a column are the same in every release."""
    return not column.get("changes", False)


def column_of(column: Mapping[str, Any], confidence: Any, cells: set[str]) -> Column:
    """What the cells of a column say, by the words of a policy; read here on its own."""
    if column["role"] == "insensitive":
        return Column()
    separator = ";" if column.get("kind") == "set" else None
    below = {node: values for node, values in BELOW.items() if "hierarchy" in column}
    exact = cells - {"*"} - below.keys()
    values = {value for cell in exact for value in (cell.split(separator) if separator else [cell])}
    values |= {value for cell in cells for value in below.get(cell, ())}
    if "*" in cells:
        below["*"] = frozenset(exact | (BELOW["Any"] if below else frozenset()))
    given = column.get("confidence", confidence)
    shares = given if isinstance(given, dict) else {"*": given}
    bounds = {value: shares.get(value, shares.get("*", 1)) for value in values - set(column.get("ordinary", ()))}
    return Column({v: Fraction(str(share)) for v, share in bounds.items() if share < 1}, separator, below)


def _protected(
    published: Published, names: Sequence[str], columns: Mapping[str, Mapping[str, Any]], combine: str
) -> Published:
    """Where attributes are protected together every label has one more cell: theirs, bounded as the strictest."""
    together = [at for at, name in enumerate(names) if columns[name]["role"] == "sensitive"]
    if combine == "each" or len(together) == 1:
        return published

    def whole(label: Label) -> str:
        return " and ".join(label[at] for at in together)

    bounds = {
        whole(label): min(published.columns[at].bounds.get(label[at], Fraction(1)) for at in together)
        for _, _, label in published.shown
    }
    own = tuple(replace(column, bounds={}) if combine == "joint" else column for column in published.columns)
    releases = tuple(
        tuple(replace(one, labels=tuple((*label, whole(label)) for label in one.labels)) for one in release)
        for release in published.releases
    )
    bounded = Column({value: bound for value, bound in bounds.items() if bound < 1})
    return replace(published, columns=(*own, bounded), releases=releases)


def to_json(what: Case | Story) -> str:
    return json.dumps({"kind": type(what).__name__, **asdict(what)}, indent=1, sort_keys=True) + "\n"


def from_json(text: str) -> Case | Story:
    given = json.loads(text)
    return {"Case": Case, "Story": Story}[given.pop("kind")](**given)


# Random ones.

CONFIDENCES = (0.4, 0.5, 0.6, 0.7, 0.75)
SHARES = st.sampled_from(CONFIDENCES)
LETTERS = {
    "plain": "abcd",
    "few": "ab",
    "set": ("a", "b", "a;b", "c", "b;c", "none"),
    "graded": "abcd",
    "stays": "uv",
    "starred": "abc*",
    "starred set": ("a", "b", "a;b", "c", "*"),
}


@st.composite
def columns_and_cells(
    draw: st.DrawFn, people: list[str], kinds: tuple[str, ...]
) -> tuple[dict[str, dict[str, Any]], dict[str, Cells]]:
    """One to three columns of these kinds, the first of them sensitive, and cells as they are published."""
    first = draw(st.sampled_from([kind for kind in kinds if kind not in ("stays", "changes")]))
    more = draw(st.lists(st.sampled_from(kinds), max_size=2))
    columns: dict[str, dict[str, Any]] = {}
    letters: dict[str, Any] = {}
    for name, kind in zip("stu", [first, *more], strict=False):
        column = COLUMNS.get(kind, PLAIN)
        letters[name] = LETTERS.get(kind)
        if kind == "graded":
            letters[name] = ("a", "b", "c", "X", "Y", "Any")
        if column["role"] == "sensitive" and draw(st.integers(0, 3)) == 0:
            free = (
                st.sampled_from([["none"], ["none"], ["b", "c", "none"]])
                if column is SET
                else st.sampled_from([["a"], ["b"]])
            )
            column = {**column, "ordinary": draw(free)}
        if column["role"] == "sensitive" and draw(st.integers(0, 3)) == 0:
            named = sorted(set("ac") - set(column.get("ordinary", ())))
            others = draw(st.sampled_from([{}, {"*": 0.6}, {"*": 0.75}]))
            column = {**column, "confidence": {draw(st.sampled_from(named)): draw(SHARES), **others}}
        columns[name] = column
    held = [name for name in columns if letters[name] is not None]
    row = st.tuples(*(st.sampled_from(letters[name]) for name in held))
    rows = draw(st.lists(row, min_size=len(people), max_size=len(people)))
    return columns, {person: dict(zip(held, cells, strict=True)) for person, cells in zip(people, rows, strict=True)}


@st.composite
def presence(draw: st.DrawFn, count: int, releases: int, least: int) -> list[list[str]]:
    """Who is there each time: people join, leave and return; never fewer than `least`."""
    often = draw(st.sampled_from([0, 0, 1, 2, 3]))
    away = st.integers(0, 5).map(lambda n: n < often)
    there = draw(st.lists(st.lists(away, min_size=releases, max_size=releases), min_size=count, max_size=count))
    found = []
    for at in range(releases):
        here = [str(person) for person in range(count) if not there[person][at]]
        found.append(here if len(here) >= least else [str(person) for person in range(count)])
    return found


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    kinds: tuple[str, ...] = ("plain", "plain", "few", "set", "graded", "stays", "changes"),
    releases: tuple[int, int] = (2, 3),
    people: tuple[int, int] = (4, 8),
    ks: tuple[int, ...] = (2, 2, 3),
    differently: str | None = None,
    combine: tuple[str, ...] = ("each",),
) -> Case:
    """Any classes of at least k people. `differently`: a cell that some of a person's rows show instead of her own."""
    k = draw(st.sampled_from(ks))
    count = draw(st.integers(max(people[0], k), people[1]))
    everybody = [str(person) for person in range(count)]
    columns, cells = draw(columns_and_cells(everybody, kinds))
    here = draw(presence(count, draw(st.integers(*releases)), k))
    made = []
    for present in here:
        most = draw(st.integers(1, max(1, len(present) // k)))
        where = draw(st.lists(st.integers(0, most - 1), min_size=len(present), max_size=len(present)))
        made.append(list(_classes(present, where, k)))
    shown = {who for release in made for one in release for who in one}
    # Where a column shows nothing but `*`, nobody knows what it could hide.
    assume(all({cells[who].get(name) for who in shown} != {"*"} for name in columns))
    different: list[list[Any]] = []
    if differently is not None:
        for number, release in enumerate(made):
            for person in (person for one in release for person in one):
                if draw(st.integers(0, 3)) == 0:
                    different.append([number, person, "s", differently])
    case = Case(k, draw(SHARES), columns, cells, made, different, draw(st.sampled_from(combine)))
    return _bearable(case) if draw(st.integers(0, 3)) else case


def _bearable(case: Case) -> Case:
    """The same with the strictest confidence that every class keeps by itself: what is found takes two releases."""
    kept = [share for share in CONFIDENCES if Fraction(str(share)) >= _worst(case.published())]
    return replace(case, confidence=min(kept)) if kept else case


def _worst(published: Published) -> Fraction:
    """The largest share that a bounded value has of a class."""
    worst = Fraction(0)
    for one in (one for release in published.releases for one in release):
        shares = Counter(value for label in one.labels for value in published.has((label,)))
        worst = max([worst, *(Fraction(number, len(one.labels)) for number in shares.values())])
    return worst


def _classes(present: list[str], where: list[int], k: int) -> Iterator[list[str]]:
    """The people by class, those of classes that are too small joined to the next."""
    waiting: list[str] = []
    made: list[list[str]] = []
    for number in sorted(set(where)):
        waiting += [person for person, place in zip(present, where, strict=True) if place == number]
        if len(waiting) >= k:
            made.append(waiting)
            waiting = []
    if waiting:
        made[-1] = made[-1] + waiting
    yield from made


METHODS = ("mondrian", "full-domain", "specialize", "merge", "grow", "cluster")
KINDS = ("plain", "plain", "few", "set", "graded", "stays", "changes")


def stories(method: str) -> st.SearchStrategy[Story]:
    """Told by chance alone: hardly any story that is a small change of another is publishable, too."""
    return st.integers(0, 2**64 - 1).map(lambda seed: random_story(Random(seed), method))


def random_story(random: Random, method: str) -> Story:
    """Two or three tables of a few people who come, go and return, as often as not in groups that can be hidden."""
    k = random.choice([2, 2, 3])
    count, releases = random.randint(5, 10), random.randint(2, 3)
    everybody = [str(person) for person in range(count)]
    kinds = [random.choice([kind for kind in KINDS if kind not in ("stays", "changes")])]
    kinds += random.choices(KINDS, k=random.choice([0, 1, 1, 2]))
    columns = {name: _random_column(random, kind) for name, kind in zip("stu", kinds, strict=False)}
    letters = {name: LETTERS[kind] for name, kind in zip("stu", kinds, strict=False) if kind in LETTERS}
    starts = {name: random.randrange(8) for name in letters}
    even = random.random() < 0.6
    cells = {
        who: {n: some[(starts[n] + place) % len(some)] if even else random.choice(some) for n, some in letters.items()}
        for place, who in enumerate(everybody)
    }
    cuts = sorted(random.sample(range(k, count), k=min(count - k, random.choice([0, 1, 2]))))
    groups = [everybody[low:high] for low, high in pairwise([0, *cuts, count])]
    if random.random() < 0.25:
        groups = [[who] for who in everybody]
    here = [[who for group in groups if random.random() < 0.7 for who in group] for _ in range(releases)]
    here = [table if len(table) >= k else everybody for table in here]
    story = Story(
        k,
        random.choice(CONFIDENCES),
        method,
        random.choice([["insider"], ["insider"], ["insider"], ["insider", "neighbor"], ["neighbor"]]),
        random.choice(["hold-back", "hold-back", "suppress", "refuse"]),
        columns,
        cells,
        {person: [random.randrange(8), random.randrange(2)] for person in everybody},
        here,
        random.choice(["each", "joint", "both"]) if {"plain", "few", "stays", "changes"}.issuperset(kinds) else "each",
    )
    # Where the groups and the first table keep it as a whole, there is something to publish.
    whole = story.published([[group] for group in [here[0], *(group for group in groups if len(group) > 1)]])
    shares = [share for share in CONFIDENCES if Fraction(str(share)) >= _worst(whole)]
    return replace(story, confidence=random.choice(shares)) if shares else story


def _random_column(random: Random, kind: str) -> dict[str, Any]:
    column: dict[str, Any] = COLUMNS.get(kind, PLAIN)
    if column["role"] == "sensitive":
        if random.random() < 0.25:
            free = [["none"], ["b", "c", "none"]] if column is SET else [["a"], ["b"], ["b", "c"]]
            column = {**column, "ordinary": random.choice(free)}
        if random.random() < 0.15:
            named = "d" if "c" in column.get("ordinary", ()) else "c"
            column = {**column, "confidence": {named: random.choice(CONFIDENCES), "*": 0.75}}
    return column
