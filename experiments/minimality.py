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

from experiments.tables import table
from sequester.domain.build import from_numbers, from_values
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.methods.classes import Classes
from sequester.methods.cluster import cluster
from sequester.methods.full_domain import full_domain
from sequester.methods.guard import Guard
from sequester.methods.mondrian import mondrian
from sequester.methods.specialize import specialize
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

METHODS: dict[str, Callable[..., Classes]] = {
    "mondrian, merge, grow": mondrian,
    "mondrian, regrouped": partial(mondrian, regroup=True),
    "cluster": cluster,
    "full-domain": full_domain,
    "specialize": specialize,
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


def twice(method: str, q: Sequence[int], first: int) -> Publish:
    """Two releases: of the first people alone, then of everybody; nothing where one of them is refused."""
    codes = np.array([q], np.int32)
    policy = _POLICY.model_copy(update={"method": _method(method)})

    def publish(values: Values) -> Hashable | None:
        people = np.arange(len(values))
        coded = np.array([VALUES.index(value) for value in values], np.int32)
        history = History(
            attribute="s",
            values=tuple(VALUES),
            k=2,
            bounds=(Fraction(1, 2),) * len(VALUES),
            domains=(DOMAIN,),
            quasi_names=("q",),
            links=np.ones(1, np.bool_),
            people=tuple(people.tolist()),
        )
        seen = []
        for here in (people[:first], people):
            records = _records(codes[:, here], coded[here])
            past = Past((history,), here, (coded[here],), np.zeros(len(here), np.bool_))
            try:
                made = make_candidate(_everybody(here), records, past, policy, name="r", seed=[1, len(here)])
            except GuaranteeError:
                return None
            classes = made.classes
            seen.append(shown(classes, values))
            (history,) = past.extend(classes.member, classes.lo, classes.hi, order=np.arange(len(here)), name="r")
        return tuple(seen)

    return publish


def guard_of(values: Values) -> Guard:
    """What every class must keep."""
    return Guard.of(_REQUIREMENT, np.array([[VALUES.index(value) for value in values]], np.int32))


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


def cases(count: int, people: int, *, seed: int) -> Iterator[tuple[list[int], Values]]:
    """Random small tables that can be published: nobody's value is more frequent than one half."""
    draw = np.random.default_rng(seed)
    made = 0
    while made < count:
        q: NDArray[Any] = np.sort(draw.integers(0, 16, people))
        values = tuple(VALUES[code] for code in draw.integers(0, len(VALUES), people))
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


def run(tables: int = 40) -> str:
    """The rates of every method, as Markdown."""
    heads = ("method", "assignments", "somebody is certain", "somebody is above 1/2", "largest chance")
    chosen = list(cases(tables, 6, seed=2007))
    rows = [
        [name, *rates(one for q, values in chosen for one in known(once(method, q), values).values())]
        for name, method in METHODS.items()
    ]
    return f"## One release of six people, {tables} random tables\n\n{table(heads, rows)}\n"
