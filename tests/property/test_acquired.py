"""Values that are acquired and stay (HIV): every world of tiny series, and the model of pods that is sound for them.

A row shows that somebody has the value (H) or does not yet (N). Nobody loses it, anybody may acquire it in between.
Pods show as many H as their type has; everybody keeps a *side*, a number that says nothing about who has what, and a
pod has each side once. Then, per lineage, for every shift the people on some sides have H from the beginning and the
others never: such worlds are possible whatever happened, and in them everybody has H equally often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

Classes = list[tuple[tuple[int, ...], int]]
"""Of one release: who is in a class, and how many of its rows show H."""


def worlds(releases: Sequence[Sequence[tuple[tuple[int, ...], int]]]) -> list[tuple[frozenset[int], ...]]:
    """Per release who has H, in every world: as many of each class as it shows, and whoever had it has it."""

    def go(number: int, has: frozenset[int]) -> Iterator[tuple[frozenset[int], ...]]:
        if number == len(releases):
            yield ()
            return
        ways = [[frozenset(some) for some in combinations(people, shown)] for people, shown in releases[number]]
        here = frozenset(person for people, _ in releases[number] for person in people)
        for way in product(*ways):
            now = frozenset().union(*way)
            if has & here <= now:
                yield from ((now, *rest) for rest in go(number + 1, has | now))

    return list(go(0, frozenset()))


def confidence(releases: Sequence[Sequence[tuple[tuple[int, ...], int]]]) -> float:
    """The smallest bound that some belief about the worlds keeps, for everybody in every release she is in."""
    every = worlds(releases)
    asked = [(n, p) for n, release in enumerate(releases) for people, _ in release for p in people]
    cost = np.append(np.zeros(len(every)), 1.0)
    rows = np.array([[float(person in world[n]) for world in every] + [-1.0] for n, person in asked])
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=[[1.0] * len(every) + [0.0]], b_eq=[1.0])
    assert found.status == 0
    return float(found.fun)


def test_whoever_takes_the_seat_of_her_new_value_is_certain() -> None:
    """The smallest: three people, three releases. 0 acquires H before the second; 1 has it and returns in the third."""
    first, second, third = [((0, 1), 1)], [((0, 2), 1)], [((1, 2), 1)]
    assert confidence([first, second]) == pytest.approx(0.5)
    found = worlds([first, second, third])
    assert all(0 in world[1] for world in found)  # if 2 had it then, 1 would too, and the third shows it once
    assert confidence([first, second, third]) == pytest.approx(1.0)


def test_no_smaller_one_exists() -> None:
    """Couples of two releases: who is linked makes a cycle of even length, so two sides always fit."""
    for people in (2, 3, 4):
        couples = [list(pairs) for pairs in _couples(tuple(range(people)))]
        for one, two in product(couples, repeat=2):
            releases: list[Classes] = [[(pair, 1) for pair in one], [(pair, 1) for pair in two]]
            if one and two and worlds(releases):
                assert confidence(releases) == pytest.approx(0.5)
    # Two people make only one couple: repeated as often as one likes, it has two sides.
    assert confidence([[((0, 1), 1)]] * 4) == pytest.approx(0.5)


def _couples(people: tuple[int, ...]) -> Iterator[list[tuple[int, int]]]:
    """Every way to have some of them in couples."""
    if not people:
        yield []
        return
    yield from _couples(people[1:])
    for other in people[1:]:
        rest = tuple(person for person in people[1:] if person != other)
        yield from ([(people[0], other), *found] for found in _couples(rest))


def story(random: Random, seats: int, shown: int) -> tuple[list[Classes], list[Classes]]:
    """A series in which people come, go, return and acquire H, as pods of given sides; and its classes.

    Whoever is missing is a decoy: numbered like a person, with the side and the value that the pod lacks.
    """
    people = 3 * seats
    side = {person: random.randrange(seats) for person in range(people)}
    has: set[int] = set()
    pods: list[Classes] = []
    following = people
    for _ in range(3):
        has |= {person for person in range(people) if random.random() < 0.3}
        waiting = [person for person in range(people) if random.random() < 0.7]
        random.shuffle(waiting)
        release: Classes = []
        while waiting:
            pod: list[int] = []
            for person in list(waiting):
                with_h = sum(one in has for one in [*pod, person])
                fits = with_h <= shown and len(pod) + 1 - with_h <= seats - shown
                if fits and side[person] not in {side[one] for one in pod}:
                    pod.append(person)
                    waiting.remove(person)
            with_h = sum(one in has for one in pod)
            for free in sorted(set(range(seats)) - {side[one] for one in pod}):
                side[following] = free
                if with_h < shown:
                    has.add(following)
                    with_h += 1
                pod.append(following)
                following += 1
            release.append((tuple(pod), shown))
        if release:
            pods.append(release)
    joined = []
    for release in pods:
        # A class is a union of pods.
        cuts = sorted({0, *(n for n in range(1, len(release)) if random.random() < 0.5), len(release)})
        parts = [release[a:b] for a, b in pairwise(cuts)]
        joined.append([(tuple(p for people, _ in part for p in people), shown * len(part)) for part in parts])
    for release in pods:
        for couple, _ in release:
            assert sorted(side[person] for person in couple) == list(range(seats))
            assert sum(person in has for person in couple) >= shown  # as shown then; some have acquired it since
    return pods, joined


def test_an_acquirer_is_likelier_than_the_bound_where_all_worlds_are_equally_likely() -> None:
    """Deniable, but what happened is not among the shifts: 0 shared H with 1 before, so she is at three in four."""
    first, second = [((0, 1), 1)], [((0, 2), 1), ((1, 3), 1)]
    assert confidence([first, second]) == pytest.approx(0.5)
    found = worlds([first, second])
    assert Fraction(sum(0 in world[1] for world in found), len(found)) == Fraction(3, 4)


def test_an_acquirer_who_never_shared_the_value_is_as_likely_as_her_partner() -> None:
    """Both were seen without H before: to swap their whole histories is to swap two possible ones."""
    first, second = [((0, 2, 1, 3), 0), ((4, 5), 1)], [((0, 2), 1), ((1, 3), 0), ((4, 5), 1)]
    found = worlds([first, second])
    assert Fraction(sum(0 in world[1] for world in found), len(found)) == Fraction(1, 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(2, 1), (3, 1), (3, 2), (4, 2)]))
def test_pods_of_sides_are_deniable_whoever_acquires_the_value(seed: int, pod: tuple[int, int]) -> None:
    """The shifts of each lineage are worlds, by the definition, and leave everybody the share of the pod."""
    seats, shown = pod
    random = Random(seed)
    pods, classes = story(random, seats, shown)
    side = _sides(pods, seats)
    assert side is not None
    lineage = _lineages(pods)
    ids = sorted(set(lineage.values()))
    shifts = [{one: random.randrange(seats) for one in ids} for _ in range(4)]
    shifts += [dict.fromkeys(ids, shift) for shift in range(seats)]
    for choice in shifts:
        has = {person for person in side if (side[person] + choice[lineage[person]]) % seats < shown}
        for release in classes:
            for people, rows in release:
                assert len(has.intersection(people)) == rows  # and nobody ever changes, so nobody loses it
    for person in side:
        often = sum((side[person] + shift) % seats < shown for shift in range(seats))
        assert Fraction(often, seats) == Fraction(shown, seats)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_the_bound_of_couples_is_that_of_all_worlds(seed: int) -> None:
    pods, classes = story(Random(seed), 2, 1)
    everybody = {person for release in pods for people, _ in release for person in people}
    if len(everybody) > 11:
        pods, classes = pods[:1], classes[:1]
    assert confidence(classes) <= 0.5 + 1e-7


def _sides(pods: list[Classes], seats: int) -> dict[int, int] | None:
    """Sides for everybody so that every pod has each once, by search; None if there are none."""
    every = [people for release in pods for people, _ in release]
    side: dict[int, int] = {}

    def go(number: int) -> bool:
        if number == len(every):
            return True
        people = every[number]
        free = [person for person in people if person not in side]
        left = sorted(set(range(seats)) - {side[person] for person in people if person in side})
        if len(left) != len(free):
            return False
        for order in permutations(left):
            side.update(zip(free, order, strict=True))
            if go(number + 1):
                return True
            for person in free:
                del side[person]
        return False

    return side if go(0) else None


def _lineages(pods: list[Classes]) -> dict[int, int]:
    """Per person the smallest number of whom she is linked to through pods."""
    of: dict[int, int] = {}
    for release in pods:
        for people, _ in release:
            together = {of.get(person, person) for person in people}
            least = min(together)
            of = {person: least if one in together else one for person, one in of.items()}
            of.update(dict.fromkeys(people, least))
    return of
