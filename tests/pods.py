"""Tiny random panels, published by pods without files; what must hold of them, from the definition; and their worlds.

Nothing in `wrong` and `worlds_of` is shared with the product: pods, types and seats are read as plain numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import numpy as np
from experiments.podded import Series
from hypothesis import strategies as st

from sequester.domain.kinds.number import from_numbers
from sequester.methods.pods.make import make
from sequester.methods.pods.task import LabelBounds, MadePods, PodTask
from worlds import Class, Column, Label, Published

DOMAIN = from_numbers(np.empty(0), range=(0, 15), levels=(2, 4, 8))
FIRST_SEED = 2**63


@dataclass(frozen=True)
class Panel:
    """Private tables, one after the other.

    labels    all labels that there are, cell by cell
    shares    per column, the largest share of every value that has one
    label     per person, the number of her label
    present   per release, who is there
    places    per release and person, her quasi-identifiers
    """

    k: int
    labels: tuple[Label, ...]
    shares: tuple[dict[str, Fraction], ...]
    label: tuple[int, ...]
    present: tuple[tuple[int, ...], ...]
    places: tuple[tuple[tuple[int, int], ...], ...]
    blind: bool = False
    lineage: int | None = None
    decoys: float = 0.05
    seed: int = FIRST_SEED
    barred: frozenset[tuple[int, int]] = frozenset()
    inferred: int = 2
    people: int = 1

    def bounds(self) -> LabelBounds:
        answers, shares = [], []
        for column, given in enumerate(self.shares):
            if given:
                values = sorted(given)
                answers.append([values.index(one[column]) if one[column] in given else -1 for one in self.labels])
                shares.append(tuple(given[value] for value in values))
        return LabelBounds(np.array(answers, np.int32).reshape(-1, len(self.labels)), tuple(shares))

    def seats_needed(self, label: int) -> int:
        """The fewest seats of a pod with this label."""
        given = [shares[cell] for shares, cell in zip(self.shares, self.labels[label], strict=True) if cell in shares]
        return max((-(-share.denominator // share.numerator) for share in given), default=1)

    def publish(self, maker: Callable[[PodTask], MadePods] = make) -> Story:
        """All releases."""
        series = Series((DOMAIN, DOMAIN), self.bounds(), self.k, make=maker)
        for number, here in enumerate(self.present):
            can = np.array([[(who, label) in self.barred for label in range(len(self.labels))] for who in here])
            series.options = {
                "blind": self.blind,
                "lineage": self.lineage,
                "decoys": self.decoys,
                "inferred": self.inferred,
                "people": self.people,
                "barred": can if self.barred else None,
            }
            codes = np.array([self.places[number][who] for who in here], np.int32).T
            series.publish(here, codes, np.array([self.label[who] for who in here]), seed=self.seed + number)
        return Story(self, series)


@dataclass(frozen=True)
class Row:
    """A published row as its maker knows it; `who` is a person or a decoy, `like` the class of whom it looks like."""

    who: int
    person: int | None
    label: int
    kind: int
    seat: int
    pod: int
    place: int
    codes: tuple[int, ...]
    like: int


@dataclass(frozen=True)
class Story:
    """A panel and what was made of it."""

    panel: Panel
    series: Series
    releases: list[list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "releases", [list(self._rows(number)) for number in range(len(self.panel.present))])

    def _rows(self, number: int) -> Iterator[Row]:
        made, here = self.series.made[number], self.panel.present[number]
        people, decoys = len(here), len(made.decoy_label)
        assert all(len(one) == people + decoys for one in (made.member, made.pod, made.type, made.seat))
        assert len(made.decoy_like) == len(made.decoy_person) == decoys
        for row in range(people + decoys):
            like = row if row < people else int(made.decoy_like[row - people])
            yield Row(
                who=int(self.series.who[number][row]),
                person=here[row] if row < people else None,
                label=self.panel.label[here[row]] if row < people else int(made.decoy_label[row - people]),
                kind=int(made.type[row]),
                seat=int(made.seat[row]),
                pod=int(made.pod[row]),
                place=int(made.member[row]),
                codes=self.panel.places[number][here[like]],
                like=int(made.member[like]),
            )

    def decoys(self) -> frozenset[int]:
        return frozenset(row.who for rows in self.releases for row in rows if row.person is None)

    def types(self) -> dict[int, tuple[int, ...]]:
        """The labels of every type, by seat."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for row in (row for rows in self.releases for row in rows):
            found[row.kind][row.seat] = row.label
        return {kind: tuple(seats[seat] for seat in sorted(seats)) for kind, seats in found.items()}

    def lineages(self) -> list[set[int]]:
        """Numbers of people and decoys who are linked through pods."""
        linked: list[set[int]] = []
        for rows in self.releases:
            for pod in _by(rows, "pod").values():
                own = {row.who for row in pod}
                linked = [one for one in linked if not one & own] + [
                    own.union(*(one for one in linked if one & own)),
                ]
        return linked

    def published(self) -> Published:
        """What is seen by somebody who knows everybody's class, and even which rows are the same decoy's."""
        releases = tuple(
            tuple(
                Class(tuple(row.who for row in rows), tuple(self.panel.labels[row.label] for row in rows))
                for rows in _by(release, "place").values()
            )
            for release in self.releases
        )
        return Published(tuple(Column(shares) for shares in self.panel.shares), releases, decoys=self.decoys())


def _by(rows: list[Row], what: str) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[getattr(row, what)].append(row)
    return found


def company(rows: list[Row]) -> Counter[int]:
    """Per label that a class shows, the rows of its pods that have it."""
    return Counter(
        row.label for pod in _by(rows, "pod").values() for row in pod if row.seat == _first(row, pod) for _ in pod
    )


def _first(row: Row, pod: list[Row]) -> int:
    """The first seat of a pod with the label of a row."""
    return min(other.seat for other in pod if other.label == row.label)


def classes(story: Story) -> Iterator[list[Row]]:
    """The rows of every class of every release."""
    for rows in story.releases:
        yield from _by(rows, "place").values()


def wrong(story: Story) -> list[str]:
    """Everything about a series that is not as the definition of pods has it."""
    panel, found = story.panel, []
    seen: dict[int, tuple[int | None, int, int, int]] = {}
    seats: dict[tuple[int, int], int] = {}
    for number, rows in enumerate(story.releases):
        made = story.series.made[number]
        if sorted(row.person for row in rows if row.person is not None) != sorted(panel.present[number]):
            found.append("not everybody, once, or somebody else")
        if len({row.who for row in rows}) != len(rows):
            found.append("one number twice in a release")
        for row in rows:
            if seen.setdefault(row.who, (row.person, row.label, row.kind, row.seat)) != (
                row.person,
                row.label,
                row.kind,
                row.seat,
            ):
                found.append("somebody's label, type or seat changed, or a decoy became somebody")
            if seats.setdefault((row.kind, row.seat), row.label) != row.label:
                found.append("two labels for one seat")
        for place, here in _by(rows, "place").items():
            if len(here) < panel.k:
                found.append("fewer than k rows")
            if any(row.like != place for row in here):
                found.append("a decoy that looks like somebody in another class")
            if sum(row.person is not None for row in here) < min(panel.people, len(panel.present[number])):
                found.append("fewer people in a class than promised")
            box = [(min(side), max(side)) for side in zip(*(row.codes for row in here), strict=True)]
            if box != list(zip(made.lo[:, place].tolist(), made.hi[:, place].tolist(), strict=True)):
                found.append("a box that is not its rows'")
        for pod in _by(rows, "pod").values():
            if len({row.place for row in pod}) != 1:
                found.append("a pod in two classes")
            if len({row.kind for row in pod}) != 1:
                found.append("a pod of two types")
            if sorted(row.seat for row in pod) != list(range(len(pod))):
                found.append("a seat that is empty or taken twice")
            for column, shares in enumerate(panel.shares):
                cells = Counter(panel.labels[row.label][column] for row in pod)
                if any(Fraction(cells[value], len(pod)) > share for value, share in shares.items()):
                    found.append("a value above its share of a pod")
            here = [row for row in rows if row.place == pod[0].place]
            rest = [row for row in here if row.pod != pod[0].pod]
            missed = any(0 < rows < panel.inferred for rows in company(rest).values())
            if all(row.person is None for row in pod) and len(rest) >= panel.k and not missed:
                found.append("a pod of decoys that nobody needs")
    for kind, labels in story.types().items():
        sizes = {len(p) for rows in story.releases for p in _by(rows, "pod").values() if p[0].kind == kind}
        if sizes != {len(labels)}:
            found.append("pods of one type with different numbers of seats")
    found += _impossible(story)
    if panel.lineage is not None:
        found += _too_long(story, panel.lineage)
    return found


def _too_long(story: Story, most: int) -> list[str]:
    """People linked beyond the cap, but for those who came together."""
    decoys, found = story.decoys(), []
    first: dict[int, set[int]] = {}
    for rows in story.releases:
        for pod in _by(rows, "pod").values():
            people = {row.who for row in pod} - decoys
            for who in people - first.keys():
                first[who] = people
    for one in story.lineages():
        people = one - decoys
        if len(people) > most and any(first[who] != people for who in people):
            found.append("a lineage beyond the cap")
    return found


def _impossible(story: Story) -> list[str]:
    """Labels of a type that somebody of it cannot have, as everybody knows."""
    types, found = story.types(), []
    for row in (row for rows in story.releases for row in rows):
        if row.person is not None and any(
            (row.person, label) in story.panel.barred and label != row.label for label in types[row.kind]
        ):
            found.append("a partner whose label she cannot have")
    return found


def shifted(story: Story, lineage: set[int], by: int) -> dict[int, int]:
    """Everybody's label when those of one lineage have that of a later seat of their type."""
    types = story.types()
    return {
        row.who: types[row.kind][(row.seat + by) % len(types[row.kind])] if row.who in lineage else row.label
        for rows in story.releases
        for row in rows
    }


def is_world(story: Story, label: dict[int, int]) -> bool:
    """Whether these labels, one for everybody for ever, give every class the rows that it shows."""
    return all(
        Counter(label[row.who] for row in rows) == Counter(row.label for row in rows)
        for release in story.releases
        for rows in _by(release, "place").values()
    )


# Random ones.

LETTERS = "abcdef"
HALF = Fraction(1, 2)
SHARES = {2: [HALF, Fraction(2, 3)], 3: [Fraction(1, 3), Fraction(2, 5)], 4: [Fraction(1, 4)]}
"""Bounds for which a pod needs so many seats."""


@st.composite
def panels(
    draw: st.DrawFn,
    *,
    people: tuple[int, int] = (1, 8),
    releases: tuple[int, int] = (1, 3),
    seats: tuple[int, ...] = (2, 2, 3, 4),
    columns: bool = True,
    blind: bool | None = None,
    capped: bool = True,
) -> Panel:
    """People who come, leave and return, with values that stay; a pod can always be made."""
    hidden = draw(st.booleans()) if blind is None else blind
    m = draw(st.sampled_from(seats))
    share = draw(
        st.sampled_from({2: [HALF, Fraction(2, 3)], 3: [Fraction(1, 3), Fraction(2, 5)], 4: [Fraction(1, 4)]}[m])
    )
    letters = LETTERS[: m + draw(st.integers(0, 6 - m))]
    given = dict.fromkeys(letters, share)
    # A value of its own bound, and one without.
    if m > 2 and draw(st.booleans()):
        given[letters[0]] = HALF
    if len(letters) > m and draw(st.booleans()):
        del given[letters[-1]]
    shares, cells = [given], [letters]
    if columns and draw(st.integers(0, 2)) == 0 and not (hidden and m > 2):
        second = "uvwx"[: max(2, m)]
        cells.append(second)
        shares.append(draw(st.sampled_from([{}, dict.fromkeys(second, share)])))
    labels = tuple(product(*cells))
    count = draw(st.integers(*people))
    waves = draw(st.integers(*releases))
    numbers = st.integers(0, len(labels) - 1)
    few = st.integers(0, draw(numbers))
    label = tuple(draw(st.lists(st.one_of(few, numbers), min_size=count, max_size=count)))
    who = st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True)
    present = tuple(tuple(draw(st.one_of(who, st.permutations(range(count))))) for _ in range(waves))
    place = st.tuples(st.integers(0, 15), st.integers(0, 3))
    places = tuple(tuple(draw(st.lists(place, min_size=count, max_size=count))) for _ in range(waves))
    return Panel(
        k=draw(st.integers(2, 5)),
        labels=labels,
        shares=tuple(shares),
        label=label,
        present=present,
        places=places,
        blind=hidden,
        lineage=draw(st.sampled_from([None, m, 2 * m])) if capped else None,
        decoys=draw(st.sampled_from([0.0, 0.05, 0.4, 0.9])),
        seed=FIRST_SEED + draw(st.integers(0, 99)),
        people=draw(st.integers(1, 3)),
    )
