"""Minimality of pods: what somebody who knows the method believes, exactly, when all values were equally likely.

The method is run on every assignment of values to the people of small panels and on all that it could draw; what leads
to the same tables is what she believes possible. Blind pods must leave nobody above 1/seats; the ordinary form is
measured. She knows everybody's quasi-identifiers and classes; told the pods, too, she must not know more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from experiments.draws import every
from experiments.podded import Maker, Series, plain
from experiments.tables import table
from sequester.domain.kinds.number import from_numbers
from sequester.methods.pods.blind.make import make_blind
from sequester.methods.pods.make import make
from sequester.methods.pods.task import LabelBounds

Values = tuple[int, ...]
DOMAIN = from_numbers(np.empty(0), range=(0, 15), levels=(2, 4, 8))
SEEDS = 2


class Seen(NamedTuple):
    """The tables; who is in which pod, of which labels; and how many people have each value."""

    classes: Hashable
    pods: Hashable
    totals: Hashable


Publish = Callable[[Values], Iterable[tuple[Fraction, Seen]]]


@dataclass(frozen=True)
class Panel:
    """Who is in every table, with which quasi-identifier."""

    present: tuple[tuple[int, ...], ...]
    places: tuple[tuple[int, ...], ...]
    bounds: LabelBounds
    k: int = 2
    decoys: float = 0.0
    lineage: int | None = None

    @property
    def people(self) -> int:
        """Everybody who is ever there."""
        return max(map(max, self.present)) + 1

    def shown(self, values: Values, maker: Maker, *, seed: int = 0) -> Seen:
        """All releases as she sees them, and what she might be told besides."""
        options = {"decoys": self.decoys, "lineage": self.lineage}
        series = Series((DOMAIN,), self.bounds, self.k, make=maker, options=options)
        classes, pods, totals = [], [], []
        for number, here in enumerate(self.present):
            codes = np.array([[self.places[number][who] for who in here]], np.int32)
            own = [values[who] for who in here]
            made = series.publish(here, codes, np.array(own), seed=seed + number)
            label = np.append(own, made.decoy_label)
            classes.append(_groups(here, made.member, label, made.lo[0].tolist(), made.hi[0].tolist()))
            pods.append(_groups(here, made.pod, label))
            totals.append(tuple(sorted(own)))
        return Seen(tuple(classes), tuple(pods), tuple(totals))


def _groups(here: Sequence[int], group: Any, label: Any, *boxes: list[int]) -> Hashable:
    """Per group its people, its labels and its box, whatever its number."""
    rows = [np.flatnonzero(group == number) for number in range(int(group.max()) + 1)]
    return tuple(
        sorted(
            (
                tuple(here[row] for row in own.tolist() if row < len(here)),
                tuple(sorted(label[own].tolist())),
                tuple(side[number] for side in boxes),
            )
            for number, own in enumerate(rows)
        )
    )


def blind(panel: Panel) -> Publish:
    """Blind pods, with all that they could draw."""
    return lambda values: every(lambda script: panel.shown(values, lambda task: make_blind(task, script)))


def ordinary(panel: Panel) -> Publish:
    """Pods, with a few seeds that she does not know."""

    def publish(values: Values) -> Iterator[tuple[Fraction, Seen]]:
        for seed in range(SEEDS):
            yield Fraction(1, SEEDS), panel.shown(values, make, seed=2**63 + 100 * seed)

    return publish


@dataclass(frozen=True)
class Belief:
    """After one series of tables: how likely it was, and everybody's chances of every bounded answer."""

    weight: Fraction
    chances: tuple[dict[tuple[int, int], Fraction], ...]

    @property
    def most(self) -> Fraction:
        """The largest chance of anything bounded."""
        return max((chance for one in self.chances for chance in one.values()), default=Fraction(0))


def beliefs(publish: Publish, panel: Panel, *, told: Sequence[str] = ("classes",)) -> list[Belief]:
    """What is believed after all that may be published, every assignment of labels being as likely."""
    return believed(worlds(publish, panel), panel.bounds, told)


Worlds = dict[Seen, dict[Values, Fraction]]


def worlds(publish: Publish, panel: Panel) -> Worlds:
    """What is published of every assignment, with its chance."""
    found: Worlds = defaultdict(lambda: defaultdict(Fraction))
    for values in product(range(len(panel.bounds)), repeat=panel.people):
        for chance, seen in publish(values):
            found[seen][values] += chance
    return found


def believed(found: Worlds, bounds: LabelBounds, told: Sequence[str]) -> list[Belief]:
    """The beliefs of somebody who is told this much."""
    alike: dict[Hashable, dict[Values, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for seen, own in found.items():
        for values, chance in own.items():
            alike[tuple(getattr(seen, what) for what in told)][values] += chance
    return [_belief(own, bounds) for own in alike.values()]


def _belief(worlds: dict[Values, Fraction], bounds: LabelBounds) -> Belief:
    weight = sum(worlds.values(), Fraction(0))
    chances: list[dict[tuple[int, int], Fraction]] = []
    for who in range(len(next(iter(worlds)))):
        own: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        for values, chance in worlds.items():
            for view, answer in enumerate(bounds.answers[:, values[who]].tolist()):
                if answer >= 0:
                    own[view, answer] += chance / weight
        chances.append(dict(own))
    return Belief(weight, tuple(chances))


def rates(found: Iterable[Belief], bound: Fraction) -> list[object]:
    """The chance that somebody is certain, that somebody is above the bound; and the largest chance."""
    listed = list(found)
    total = sum(one.weight for one in listed)
    certain = sum(one.weight for one in listed if one.most == 1)
    above = sum(one.weight for one in listed if one.most > bound)
    most = max(one.most for one in listed)
    return [f"{float(certain / total):.1%}", f"{float(above / total):.1%}", f"{float(most):.2f}"]


def cases(count: int, people: int, releases: int, values: int, seats: int, *, seed: int) -> list[Panel]:
    """Random small panels: everybody of one table, or two of three people in each of several."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        present = [np.arange(people)]
        if releases > 1:
            present = [np.sort(draw.choice(people, -(-2 * people // 3), replace=False)) for _ in range(releases)]
        places = draw.integers(0, 16, (releases, people))
        number = {who: at for at, who in enumerate(dict.fromkeys(np.concatenate(present).tolist()))}
        found.append(
            Panel(
                tuple(tuple(sorted(number[who] for who in one)) for one in map(np.ndarray.tolist, present)),
                tuple(map(tuple, places.tolist())),
                plain(values, Fraction(1, seats)),
            )
        )
    return found


SIZES = (
    (1, 6, 3, 2, 2, 4),
    (2, 6, 3, 2, 2, 3),
    (3, 5, 3, 2, 2, 3),
    (1, 5, 4, 3, 2, 2),
    (2, 4, 4, 3, 2, 2),
    (1, 5, 3, 2, 4, 1),
    (2, 5, 3, 2, 4, 1),
)
"""Releases, people, values, seats, k, and how many panels. With k = 2 every class is one pod, so all pods are known."""
KNOWS = {
    "": ("classes",),
    ", who is in which pod known": ("classes", "pods"),
    ", totals of people known": ("classes", "totals"),
}


def run() -> str:
    """The rates of pods and blind pods, as Markdown."""
    heads = ("method", "releases", "people", "values", "k", "bound")
    rows: list[list[object]] = []
    for releases, people, values, seats, k, count in SIZES:
        chosen = [replace(one, k=k) for one in cases(count, people, releases, values, seats, seed=2009)]
        for name, publish in (("pods", ordinary), ("blind pods", blind)):
            found = [(worlds(publish(panel), panel), panel.bounds) for panel in chosen]
            for more, told in KNOWS.items():
                every_one = [one for own, bounds in found for one in believed(own, bounds, told)]
                row = [name + more, releases, people, values, k, f"1/{seats}"]
                rows.append([*row, *rates(every_one, Fraction(1, seats))])
    more = ("somebody is certain", "somebody is above the bound", "largest chance")
    return f"## Pods, all values equally likely\n\n{table((*heads, *more), rows)}\n"
