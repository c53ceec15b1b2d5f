"""What a rehearsal tries: every method that suits the policy, with a few settings, at every point that is varied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from sequester.domain.kinds import kind_of
from sequester.errors import PolicyError, Problem
from sequester.methods.method import Method
from sequester.methods.registry import all_methods, method_of
from sequester.policy.fingerprint import policy_text
from sequester.policy.model import Policy
from sequester.policy.phrase import closest
from sequester.policy.variation import Numbers, knob, own_number, promises_as_much, varied


@dataclass(frozen=True)
class Variant:
    """One way to publish the series.

    policy    the policy of it; None where there is none, and `why` says so
    settings  what it has beside the policy's own, by name
    point     what is varied, by name
    naive     every wave on its own, as tools without a memory do it
    equal     whether it promises at least what the policy promises
    """

    method: str
    policy: Policy | None = field(repr=False)
    settings: Numbers = field(default_factory=dict)
    point: Numbers = field(default_factory=dict)
    naive: bool = False
    equal: bool = True
    why: str | None = None

    @property
    def name(self) -> str:
        """How it is called in tables."""
        if self.naive:
            return "each wave on its own"
        return ", ".join([self.method, *(f"{name} {number:g}" for name, number in self.settings.items())])


def plan_variants(
    policy: Policy, records: int, *, methods: Sequence[str] | None = None, vary: Mapping[str, Sequence[float]]
) -> tuple[Variant, ...]:
    """What to try, in the order of the tables: naive releases first, then the policy's own method.

    records  of all waves together: methods say themselves from where on they take too long
    methods  only these; by default all that suit the policy or, where something is varied, the policy's own
    """
    named = _named(policy, methods, varies=bool(vary))
    found: list[Variant] = []
    for point in _points(policy, vary):
        for method in named:
            found += _of_method(policy, method, point, records, only=methods is not None)
    return tuple(found)


def _named(policy: Policy, methods: Sequence[str] | None, *, varies: bool) -> list[Method]:
    """The naive method, the policy's own, those that seat people, and then the others."""
    known = {method.name: method for method in all_methods()}
    own = method_of(policy.method)
    if methods is not None:
        for name in methods:
            if name not in known:
                message = f"is no method; there are {', '.join(known)}{closest(name, known)}"
                raise PolicyError(Problem(message, key=name))
        chosen = [known[name] for name in dict.fromkeys(methods)]
    else:
        chosen = [own] if varies and own.looks_back else list(known.values())
        chosen.sort(key=lambda method: (method.name != own.name, not method.seats))
    naive = [method for method in known.values() if not method.looks_back]
    return [*naive, *(method for method in chosen if method.looks_back)]


def _points(policy: Policy, vary: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """All combinations, and the policy's own numbers, first, where they are not among them."""
    for name, numbers in vary.items():
        if not len(numbers):
            raise PolicyError(Problem("give the numbers to try", key=name))
        if knob(name).whole and not all(float(number).is_integer() for number in numbers):
            raise PolicyError(Problem("must be whole numbers", key=name))
    points = [dict(zip(vary, numbers, strict=True)) for numbers in product(*vary.values())]
    own = {name: own_number(policy, name) for name in vary}
    if vary and own not in points and all(isinstance(number, int | float) for number in own.values()):
        points.insert(0, own)
    return points


def _of_method(policy: Policy, method: Method, point: Numbers, records: int, *, only: bool) -> Iterator[Variant]:
    why = None if not method.looks_back else _unsuited(policy, method, records, only=only)
    if why is not None:
        yield Variant(method.name, None, point=point, why=why)
        return
    seen: set[str] = set()
    tried_names: set[tuple[str, ...]] = set()
    for settings in ({}, *(method.settings if not point else ())):
        # One other number of each kind: every variant is a whole series.
        if tuple(settings) in tried_names:
            continue
        numbers = {**point, **settings}
        told = {name: number for name, number in settings.items() if number != own_number(policy, name)}
        equal = promises_as_much(policy, numbers, method=method.name)
        try:
            tried, why = varied(policy, numbers, method=method.name), None
        except PolicyError as error:
            if settings:
                continue
            tried, why = None, "; ".join(str(problem) for problem in error.problems)
        text = why if tried is None else policy_text(tried)
        # A setting that promises less is nobody's choice unless it is asked for.
        if text is None or text in seen or (settings and not equal):
            continue
        seen.add(text)
        tried_names.add(tuple(settings))
        yield Variant(method.name, tried, told, point, naive=not method.looks_back, equal=equal, why=why)


def _unsuited(policy: Policy, method: Method, records: int, *, only: bool) -> str | None:
    """Why a method is not tried; None where it is. Who names a method has it tried however long it takes."""
    if (policy.protect.lifetime is not None) != method.lifelong:
        return (
            "does not keep what is promised of values that change" if not method.lifelong
            else "is for values that change, of which this policy promises nothing"
        )  # fmt: skip
    quasi = policy.quasi_identifiers.values()
    if method.by_levels and not only and all(kind_of(one).without_levels(one) is not None for one in quasi):
        return "needs hierarchies or levels, and no quasi-identifier has any"
    if method.most is not None and records > method.most and not only:
        return f"would take too long for {records:,} records; name it to have it tried"
    return None
