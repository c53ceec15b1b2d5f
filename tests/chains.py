"""Random series published by cuts of random taxonomies: people who join (and leave), and the releases about them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sequester.attacks.solvers.comparison import compare
from sequester.domain.hierarchy import Hierarchy, nested
from sequester.domain.tree import from_values
from sequester.guarantees.confidence import Confidence
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.cells import Cells
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.specialize.refine import Taxonomy
from sequester.policy import Policy
from strategies import hierarchies

NAMES = "abcdef"
Interval = tuple[int, int]
Cut = list[list[Interval]]  # per attribute


@dataclass
class Chain:
    """The private truth, and what was published of it so far.

    points   (people, attributes) codes; `value` (people,) codes
    present  (releases, people) who is in which table
    protect  the policy's promises
    """

    domains: tuple[Hierarchy, ...]
    points: np.ndarray
    value: np.ndarray
    present: np.ndarray
    protect: dict[str, Any]
    links: np.ndarray
    history: History = field(init=False)

    def __post_init__(self) -> None:
        kinds = int(self.value.max()) + 1
        share = self.protect.get("confidence")
        bound = Fraction(1) if share is None else Fraction(str(share))
        criteria = self.requirement.sensitive[0].criteria
        self.history = History(
            attribute="s",
            values=tuple(NAMES[:kinds]),
            k=int(str(self.protect["k"])),
            bounds=(bound,) * kinds,
            domains=self.domains,
            quasi_names=tuple(f"q{number}" for number in range(len(self.domains))),
            links=self.links,
            people=tuple(range(len(self.value))),
            criteria=tuple(one for one in criteria if not isinstance(one, Confidence)),
        )

    @property
    def policy(self) -> Policy:
        attributes = {f"q{number}": {"role": "quasi-identifier"} for number in range(len(self.domains))}
        return Policy.model_validate(
            {
                "version": 1,
                "series": "tiny",
                "attributes": {**attributes, "s": {"role": "sensitive"}},
                "protect": self.protect,
            }
        )

    @property
    def requirement(self) -> Requirement:
        kinds = int(self.value.max()) + 1
        return Requirement.from_policy(self.policy, [from_values(list(NAMES[:kinds]))])

    def past(self, *, retain: bool = False) -> tuple[Past, np.ndarray, ClassGuard]:
        """The next table; who left is published on, with the lower corner of her last box, if `retain`."""
        here = self.present[len(self.history)].copy()
        codes, retained = self.points.T.copy(), np.zeros(len(here), np.bool_)
        if retain and len(self.history):
            last = self.history.releases[-1]
            assert last.member is not None
            retained = (last.member >= 0) & ~here
            codes[:, retained] = last.lo[:, last.member[retained]]
        person = np.flatnonzero(here | retained)
        past = Past((self.history,), person, (self.value[person],), retained[person])
        guard = ClassGuard.of(self.requirement, self.value[person][None, :])
        return past, np.ascontiguousarray(codes[:, person]), guard

    def extended(self, past: Past, classes: Classes) -> History:
        order = np.arange(len(past))
        return past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(len(self.history)))[0]

    def publish(self, past: Past, classes: Classes) -> None:
        self.history = self.extended(past, classes)

    def taxonomies(self, codes: np.ndarray) -> list[Taxonomy]:
        """With numbers cut first where they were before."""
        edges = [
            [np.unique(np.concatenate([one.lo[place], one.hi[place] + 1])) for one in self.history.releases]
            for place in range(len(self.domains))
        ]
        return [
            Taxonomy(domain, np.bincount(row, minlength=domain.size), "ncp", edges=at)
            for domain, row, at in zip(self.domains, codes, edges, strict=True)
        ]

    def classes_of(self, cut: Cut, codes: np.ndarray, guard: ClassGuard) -> Classes:
        """The classes when every code is published as the value of the cut that holds it."""
        lo = [np.zeros(domain.size, np.int32) for domain in self.domains]
        hi = [np.zeros(domain.size, np.int32) for domain in self.domains]
        for low, high, values in zip(lo, hi, cut, strict=True):
            for first, last in values:
                low[first : last + 1], high[first : last + 1] = first, last
        return Cells.of(codes, self.domains, guard).classes(lo, hi)

    def promises(self, past: Past, classes: Classes) -> bool:
        """Whether every class keeps its promises by itself."""
        sensitive = self.value[past.person][None, :]
        return all(one.holds for one in self.requirement.check(classes.member, sensitive))

    def diverse(self, history: History) -> bool:
        """Section 7.2 by the audit's counts: what remains of each pair with the last release keeps the criteria."""
        criteria = [one for view in self.requirement.views(self.value[None, :]) for one in view.criteria]
        for comparison in compare(history):
            if comparison.second == len(history) - 1:
                for rows in (comparison.remaining, comparison.unforced):
                    if len(rows) and not all(one.holds(rows).all() for one in criteria):
                        return False
        return True


@st.composite
def chains(
    draw: st.DrawFn,
    *,
    releases: tuple[int, int] = (2, 4),
    people: tuple[int, int] = (3, 14),
    leaving: bool = False,
    ks: tuple[int, ...] = (1, 2, 3),
    criteria: bool = True,
    steady: bool = True,
) -> Chain:
    """A chain with nothing published. `steady`: every attribute links."""
    domains = tuple(draw(st.lists(hierarchies(sizes=(2, 3, 4, 6), most_levels=3), min_size=1, max_size=3)))
    count, number, kinds = draw(st.integers(*people)), draw(st.integers(*releases)), draw(st.integers(1, 3))
    rows = draw(
        st.lists(
            st.tuples(
                *(st.integers(0, domain.size - 1) for domain in domains),
                st.integers(0, kinds - 1),
                st.integers(0, number - 1),
                st.integers(1, number + 1) if leaving else st.just(number),
            ),
            min_size=count,
            max_size=count,
        )
    )
    table = np.array(rows, np.int32)
    width = len(domains)
    when = np.arange(number)[:, None]
    present = (when >= table[:, width + 1]) & (when < np.maximum(table[:, width + 2], table[:, width + 1] + 1))
    for release in range(number):
        if not present[release].any():
            present[release:, 0] = True
    protect: dict[str, Any] = {"k": draw(st.sampled_from(ks))}
    if criteria:
        other = draw(st.sampled_from(["none", "none", "entropy", "recursive", "alpha"]))
        # Diversity and alpha alone bound nothing over releases, and are refused.
        if draw(st.booleans()) or other != "none":
            protect["confidence"] = draw(st.sampled_from([0.5, 0.6, 0.75]))
        if other == "entropy":
            protect["diversity"] = {"kind": "entropy", "l": draw(st.sampled_from([1.3, 1.8]))}
        elif other == "recursive":
            protect["diversity"] = {"kind": "recursive", "l": 2, "c": draw(st.sampled_from([1.5, 3.0]))}
        elif other == "alpha":
            protect["alpha"] = draw(st.sampled_from([0.5, 0.7]))
    links = np.array([steady or draw(st.booleans()) for _ in domains], np.bool_)
    return Chain(domains, np.ascontiguousarray(table[:, :width]), table[:, width].copy(), present, protect, links)


def random_cut(draw: st.DrawFn, taxonomies: list[Taxonomy]) -> Cut:
    """Any cut that specializations from the top can come to."""
    cut: Cut = []
    for taxonomy in taxonomies:
        values, work = [], [(0, taxonomy.domain.size - 1)]
        while work:
            first, last = work.pop()
            starts = taxonomy.choices(first, last)
            if starts is None or not draw(st.booleans()):
                values.append((first, last))
                continue
            work += zip(starts.tolist(), [*(starts[1:] - 1).tolist(), last], strict=True)
        cut.append(sorted(values))
    return cut


def cut_of(taxonomies: list[Taxonomy], classes: Classes) -> Cut:
    """The published values, completed by those that no record has, so that every code is in one."""
    cut: Cut = []
    for taxonomy, lo, hi in zip(taxonomies, classes.lo, classes.hi, strict=True):
        some = set(zip(lo.tolist(), hi.tolist(), strict=True))
        held = {code for first, last in some for code in range(first, last + 1)}
        cut.append(sorted([*some, *((code, code) for code in range(taxonomy.domain.size) if code not in held)]))
    return cut


def finer_cuts(taxonomies: list[Taxonomy], cut: Cut) -> list[Cut]:
    """Every cut that one specialization leads to."""
    found = []
    for place, (taxonomy, values) in enumerate(zip(taxonomies, cut, strict=True)):
        for value in values:
            starts = taxonomy.choices(*value)
            if starts is not None:
                parts = zip(starts.tolist(), [*(starts[1:] - 1).tolist(), value[1]], strict=True)
                finer = [*cut]
                finer[place] = sorted([*(one for one in values if one != value), *parts])
                found.append(finer)
    return found


def with_k(chain: Chain, k: int) -> Chain:
    """The same people under another k, with nothing published."""
    return replace(chain, protect={**chain.protect, "k": k})


def random_chain(
    seed: int,
    *,
    people: tuple[int, int],
    releases: tuple[int, int] = (2, 5),
    leaving: float = 0.0,
    returning: float = 0.0,
    criteria: bool = True,
) -> Chain:
    """A chain of more people than examples are searched with, many of them alike, so that classes can be split."""
    random = np.random.default_rng(seed)
    count, number = int(random.integers(*people)), int(random.integers(releases[0], releases[1] + 1))
    kinds = int(random.integers(2, 5))
    domains = tuple(_random_domain(random) for _ in range(int(random.integers(1, 4))))
    alike = random.integers(
        0, [domain.size for domain in domains], (max(2, count // int(random.integers(3, 9))), len(domains))
    )
    points = alike[random.integers(0, len(alike), count)].astype(np.int32)
    value = random.permutation(np.arange(count) % kinds).astype(np.int32)
    joined = random.integers(0, number, count) * (random.random(count) < 0.6)
    left = np.where(random.random(count) < leaving, random.integers(1, number + 1, count), number)
    when = np.arange(number)[:, None]
    present = (when >= joined) & (when < np.maximum(left, joined + 1))
    if returning:
        present &= (when != random.integers(1, number + 1, count)) | (random.random(count) > returning)
    present[:, 0] = True
    protect: dict[str, Any] = {"k": int(random.integers(2, 4))}
    if criteria and random.random() < 0.5:
        protect["confidence"] = float(random.choice([0.5, 0.6, 0.75]))
    if criteria and random.random() < 0.3:
        protect["diversity"] = {"kind": "entropy", "l": float(random.choice([1.3, 1.8]))}
        protect.setdefault("confidence", 0.75)
    links = random.random(len(domains)) < (1.0 if random.random() < 0.7 else 0.5)
    return Chain(domains, points, value, present, protect, links)


def _random_domain(random: np.random.Generator) -> Hierarchy:
    size = int(random.integers(2, 9))
    if random.random() < 0.3:
        places = np.sort(random.choice(64, size, replace=False)).astype(np.float64)
        return nested("number", places, [(np.arange(size, dtype=np.int32), tuple(map(str, places)))])
    levels = [np.arange(size, dtype=np.int32)]
    while len(levels[-1]) > 2 and random.random() < 0.8:
        keep = random.random(len(levels[-1])) < 0.6
        keep[0] = True
        levels.append(levels[-1][keep])
    names = [tuple(f"L{level}.{start}" for start in starts.tolist()) for level, starts in enumerate(levels)]
    leaves = np.array([f"v{leaf}" for leaf in range(size)], object)
    return nested("category", leaves, list(zip(levels, names, strict=True)))
