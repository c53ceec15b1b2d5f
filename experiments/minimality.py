"""Minimality (Wong et al. 2007): what somebody who knows the method learns from what it did *not* publish.

A method cuts as finely as it may, and what it may depends on the values. So whoever can run it knows more than the
published table says: only some assignments of the values to the people lead to it. Here every method is run on all
assignments of the values of small tables (k 2, confidence 1/2); assignments are grouped by what is published, and each
group is what such an adversary believes possible. No promise of Sequester covers this; the rates are its measure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import minimality_pods
from experiments.tables import table
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_values
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.cluster.join import cluster
from sequester.methods.cluster.recluster import recluster
from sequester.methods.full_domain.search import full_domain
from sequester.methods.grow import grow
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.republish import republish
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.specialize.refine import specialize
from sequester.methods.specialize.respecialize import respecialize
from sequester.metrics.loss import ail
from sequester.policy import Policy

Values = tuple[str, ...]
Publish = Callable[[Values], Hashable | None]

VALUES = "Hbcde"
DOMAIN = from_numbers(np.empty(0), range=(0, 15), levels=(2, 4, 8))
_POLICY = Policy.model_validate(
    {
        "version": 1,
        "series": "small",
        "attributes": {
            "q": {"role": "quasi-identifier", "kind": "number", "range": [0, 15]},
            "s": {"role": "sensitive"},
        },
        "protect": {"k": 2, "confidence": 0.5},
    }
)
_REQUIREMENT = Requirement.from_policy(_POLICY, [from_values(list(VALUES))])


def _next_level(
    past: Past, codes: NDArray[np.int32], domains: Any, guard: ClassGuard, *, against: Sequence[str]
) -> Classes:
    return full_domain(codes, domains, guard, watch=SeriesGuard.of(past, codes, against=against))


METHODS: dict[str, Callable[..., Classes]] = {
    "mondrian, merge, grow": mondrian,
    "mondrian, regrouped": partial(mondrian, regroup=True),
    "cluster": cluster,
    "full-domain": full_domain,
    "specialize": specialize,
}

SERIES: dict[str, tuple[Callable[..., Classes], Callable[..., Classes]]] = {
    "mondrian": (partial(mondrian, regroup=True), partial(republish, regroup=True)),
    "cluster": (cluster, recluster),
    "full-domain": (full_domain, _next_level),
    "specialize": (specialize, respecialize),
    "grow": (mondrian, lambda *table, against: grow(*table)),
    "merge": (mondrian, merge),
}


@dataclass(frozen=True)
class Known:
    """What one published table tells whoever knows the method: per person, how often each value is possible."""

    assignments: int
    chances: tuple[Counter[str], ...]

    @property
    def most(self) -> Fraction:
        """The largest chance that anybody has any value; 1 is certainty."""
        return max(Fraction(count, self.assignments) for chance in self.chances for count in chance.values())


def known(publish: Publish, values: Values) -> dict[Hashable, Known]:
    """What is known after each table that any assignment of these values leads to; what is refused is left out."""
    found: dict[Hashable, list[Values]] = defaultdict(list)
    for assignment in assignments(values):
        published = publish(assignment)
        if published is not None:
            found[published].append(assignment)
    return {
        published: Known(len(worlds), tuple(Counter(cells) for cells in zip(*worlds, strict=True)))
        for published, worlds in found.items()
    }


def assignments(values: Iterable[str]) -> Iterator[Values]:
    """Every different order of the values."""
    left = Counter(values)
    if not left:
        yield ()
    for value in sorted(left):
        for rest in assignments((left - Counter([value])).elements()):
            yield (value, *rest)


def once(method: Callable[..., Classes], q: Sequence[int]) -> Publish:
    """One release of people with these quasi-identifiers: who is in which class, its box and its values."""
    codes = np.array([q], np.int32)

    def publish(values: Values) -> Hashable | None:
        try:
            classes = method(codes, (DOMAIN,), guard_of(values))
        except GuaranteeError:
            return None
        return shown(classes, values)

    return publish


def twice(first: Callable[..., Classes], then: Callable[..., Classes], q: Sequence[int], begin: int) -> Publish:
    """Two releases: of the first people alone, then of everybody; None where one of them is refused."""
    codes, people = np.array([q], np.int32), np.arange(len(q))
    empty = History(
        attribute="s",
        values=tuple(VALUES),
        k=2,
        bounds=(Fraction(1, 2),) * len(VALUES),
        domains=(DOMAIN,),
        quasi_names=("q",),
        links=np.ones(1, np.bool_),
        people=tuple(people.tolist()),
    )

    def publish(values: Values) -> Hashable | None:
        # The first people are a table, and whoever holds the first release sees the newcomers as a set.
        if any(2 * max(Counter(part).values()) > len(part) for part in (values[:begin], values[begin:])):
            return None
        coded = np.array([VALUES.index(value) for value in values], np.int32)
        past = Past((empty,), people[:begin], (coded[:begin],), np.zeros(begin, np.bool_))
        try:
            before = first(codes[:, :begin], (DOMAIN,), guard_of(values[:begin]))
            seen = past.extend(before.member, before.lo, before.hi, order=people[:begin], name="first")
            now = Past(seen, people, (coded,), np.zeros(len(people), np.bool_))
            after = _no_worse(then, now, codes, guard_of(values))
        except GuaranteeError:
            return None
        return shown(before, values), shown(after, values)

    return publish


def _no_worse(method: Callable[..., Classes], past: Past, codes: NDArray[np.int32], guard: ClassGuard) -> Classes:
    """What a method makes or the merge, whichever loses less, as a series publishes it."""
    found, refused = [], None
    for way in dict.fromkeys((method, merge)):
        try:
            found.append(way(past, codes, (DOMAIN,), guard, against=("insider",)))
        except GuaranteeError as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return min(found, key=lambda classes: ail(classes, (DOMAIN,)))


def guard_of(values: Values) -> ClassGuard:
    """What every class must keep."""
    return ClassGuard.of(_REQUIREMENT, np.array([[VALUES.index(value) for value in values]], np.int32))


def shown(classes: Classes, values: Values) -> Hashable:
    """A release as the adversary sees it, who knows everybody's quasi-identifier and class."""
    return frozenset(
        (
            tuple(people.tolist()),
            *classes.lo[:, number].tolist(),
            *classes.hi[:, number].tolist(),
            tuple(sorted(values[person] for person in people.tolist())),
        )
        for number in range(len(classes))
        for people in [np.flatnonzero(classes.member == number)]
    )


def cases(count: int, people: int, *, letters: str = VALUES, seed: int) -> Iterator[tuple[list[int], Values]]:
    """Random small tables that can be published: nobody's value is more frequent than one half."""
    draw = np.random.default_rng(seed)
    made = 0
    while made < count:
        q: NDArray[Any] = draw.integers(0, 16, people)
        values = tuple(letters[code] for code in draw.integers(0, len(letters), people))
        if max(Counter(values).values()) * 2 <= people:
            made += 1
            yield q.tolist(), values


def rates(knowledge: Iterable[Known]) -> list[object]:
    """Of all assignments: the share after which somebody is certain, is above one half; and the largest chance."""
    listed = list(knowledge)
    total = sum(one.assignments for one in listed)
    certain = sum(one.assignments for one in listed if one.most == 1)
    above = sum(one.assignments for one in listed if one.most > Fraction(1, 2))
    most = max((one.most for one in listed), default=Fraction(0))
    return [total, f"{certain / total:.1%}", f"{above / total:.1%}", f"{float(most):.2f}"]


def run(tables: int = 40, series: int = 4) -> str:
    """The rates of every method, as Markdown."""
    heads = ("method", "assignments", "somebody is certain", "somebody is above 1/2", "largest chance")
    chosen = list(cases(tables, 6, seed=2007))
    rows = [
        [name, *rates(one for q, values in chosen for one in known(once(method, q), values).values())]
        for name, method in METHODS.items()
    ]
    again = list(cases(series, 8, letters="Hbcd", seed=2008))
    later = [
        [name, *rates(one for q, values in again for one in known(twice(*methods, q, 4), values).values())]
        for name, methods in SERIES.items()
    ]
    return (
        f"## One release of six people, {tables} random tables\n\n{table(heads, rows)}\n"
        f"## Four people, then four more, {series} random tables\n\n{table(heads, later)}\n"
        f"{minimality_pods.run()}"
    )
