"""What remains of a lineage against all worlds of its seats, and how far background knowledge carries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks.belief import believe_lineages, resilience
from sequester.attacks.solvers.belief import NOISE, BeliefSpread, believe, mean_of
from sequester.history import History
from sequester.history.seats import Seats
from series import Series, of_partitions, series

often = settings(max_examples=100, deadline=None)


@dataclass(frozen=True)
class Podded:
    """A tiny series whose classes are unions of pods, with its witness."""

    history: History
    seats: Seats
    member: np.ndarray


@st.composite
def podded(draw: st.DrawFn, *, types: tuple[int, int] = (1, 2)) -> Podded:
    """Random pods of two to three seats, aab among them, mixed and joined anew in every release; some are decoys."""
    kinds = [draw(st.sampled_from(["ab", "ba", "ac", "abc", "aab"])) for _ in range(draw(st.integers(*types)))]
    releases = draw(st.integers(1, 3))
    people: list[tuple[int, int]] = []
    rosters: list[list[list[int]]] = [[[] for _ in kind] for kind in kinds]
    pods = []
    members = []
    for _ in range(releases):
        pod, member, number = {}, {}, 0
        for kind, labels in enumerate(kinds):
            count = draw(st.integers(0 if kind else 1, 2))
            places = [draw(st.integers(0, 1)) for _ in range(count)]
            for seat in range(len(labels)):
                there = rosters[kind][seat]
                while len(there) < count or (len(there) < 3 and draw(st.booleans())):
                    there.append(len(people))
                    people.append((kind, seat))
                for at, person in enumerate(draw(st.permutations(there))[:count]):
                    pod[person], member[person] = number + at, places[at]
            number += count
        pods.append(pod)
        members.append(member)
    size = len(people)
    type_, place_of = (np.array(column, np.int32) for column in zip(*people, strict=True))
    decoy = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    value = "".join(kinds[kind][place] for kind, place in people)
    partitions = []
    for member in members:
        classes = sorted(set(member.values()))
        partitions.append([[person for person, place in member.items() if place == one] for one in classes])
    history = of_partitions(partitions, value).history()
    given = tuple(np.array([pod.get(person, -1) for person in range(size)], np.int32) for pod in pods)
    everybody = np.array([release.member for release in history.releases])
    return Podded(history, Seats(decoy, type_, place_of, given), everybody)


def all_worlds(one: Podded) -> list[np.ndarray]:
    """Everybody's value in all worlds in which each lineage lays its type's values on its seats anew."""
    lineage, seat = one.seats.lineages(), one.seats.seat
    value = one.history.value
    assert value is not None
    choices = []
    for number in range(int(lineage.max()) + 1):
        own = {int(seat[p]): int(value[p]) for p in np.flatnonzero(lineage == number) if value[p] >= 0}
        places = sorted(own)
        ways = set(permutations([own[place] for place in places]))
        choices.append([dict(zip(places, way, strict=True)) for way in sorted(ways)])
    found = []
    for chosen in product(*choices):
        found.append(np.array([chosen[lineage[p]].get(int(seat[p]), -1) for p in range(len(value))]))
    return found


@often
@given(podded(), st.data())
def test_a_lineage_is_one_choice_among_whole_worlds(one: Podded, data: st.DataObject) -> None:
    history, value = one.history, one.history.value
    assert value is not None
    for world in all_worlds(one):
        for release, member in zip(history.releases, one.member, strict=True):
            for place in range(len(release)):
                shown = np.bincount(world[member == place], minlength=len(history.values))
                assert shown.tolist() == release.counts[place].tolist()
    here = (one.member >= 0).any(axis=0)
    known = np.array([data.draw(st.booleans()) for _ in value]) & here & (np.arange(len(value)) % 3 == 0)
    worlds = [world for world in all_worlds(one) if (world[known] == value[known]).all()]
    found = believe_lineages(history, one.seats, known=known)
    assert found.truth is not None
    assert (found.told == (here & ~known)).all()
    for person in np.flatnonzero(found.told).tolist():
        chances = np.bincount([world[person] for world in worlds], minlength=len(history.values)) / len(worlds)
        assert found.largest[person] == pytest.approx(chances.max())
        assert chances[found.questions[found.question[person]].labels[0]] == pytest.approx(chances.max())
        assert found.truth[person] == pytest.approx(chances[value[person]])


@often
@given(podded())
def test_nobody_known_leaves_the_share_of_the_seats(one: Podded) -> None:
    found = believe_lineages(one.history, one.seats)
    value, seats = one.history.value, one.seats
    assert value is not None
    for person in np.flatnonzero(found.told).tolist():
        alike = seats.type == seats.type[person]
        labels = {int(seats.seat[p]): int(value[p]) for p in np.flatnonzero(alike) if value[p] >= 0}
        shares = np.bincount(list(labels.values())) / len(labels)
        assert found.largest[person] == pytest.approx(shares.max())


@often
@given(podded(), st.integers(1, 3))
def test_seats_of_the_past_have_the_pods_of_then(one: Podded, number: int) -> None:
    past = one.seats.until(number)
    then = Seats(one.seats.decoy, one.seats.type, one.seats.seat, one.seats.pods[:number])
    assert np.array_equal(past.lineages(), then.lineages())
    here = (one.member[:number] >= 0).any(axis=0)
    assert (believe_lineages(one.history.until(number), past).told == here).all()


def test_values_without_a_bound_are_nobody_s_secret() -> None:
    one = of_partitions([[[0, 1], [2]]], "aba")
    history = replace(one.history(), bounds=(Fraction(1), Fraction(1, 2)))
    pods = (np.array([0, 0, 1], np.int32),)
    seats = Seats(np.zeros(3, np.bool_), np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32), pods)
    found = believe_lineages(history, seats)
    assert found.largest.tolist() == [0.5, 0.5, 0.0]
    assert found.question.tolist() == [0, 0, -1]
    assert found.questions[0].value == "b"
    known = believe_lineages(history, seats, known=np.array([True, False, False]))
    assert known.largest.tolist() == [0.0, 1.0, 0.0]


@often
@given(podded(), st.integers(0, 2**32))
def test_resilience_counts_the_others_only(one: Podded, seed: int) -> None:
    found = resilience(one.history, one.seats, known=(0, 0.5), seed=seed, draws=2)
    people = ~one.seats.decoy & (one.member >= 0).any(axis=0)
    assert found[0].belief == believe(one.history).spread(people)
    assert found[0].linked == 0
    assert found[0.5].belief.people == people.sum() - round(0.5 * int(people.sum()))
    lineages = one.seats.lineages()
    largest = max((int((people & (lineages == number)).sum()) for number in range(lineages.max() + 1)), default=0)
    if largest < 2:
        assert found[0.5].linked == 0
    if people.sum() > 1 and len(set(lineages[people].tolist())) == 1:
        assert found[0.5].linked == 1


@often
@given(podded(types=(1, 1)), st.integers(0, 2**32))
def test_in_couples_whoever_is_linked_to_somebody_known_is_known(one: Podded, seed: int) -> None:
    if one.seats.seat.max() > 1:
        return
    share = resilience(one.history, one.seats, known=(0.3,), seed=seed)[0.3]
    assert share.lineage is not None
    assert share.lineage.above[-1] == pytest.approx(share.linked)


@often
@given(series(), st.integers(0, 2**32))
def test_without_seats_there_is_belief_alone_and_the_same_seed_tells_the_same(one: Series, seed: int) -> None:
    history = one.history()
    found = resilience(history, seed=seed, known=(0.2, 0.9))
    assert found == resilience(history, seed=seed, known=(0.2, 0.9))
    assert all(share.lineage is None and share.linked is None for share in found.values())
    assert "lineage" not in found[0.2].to_dict()


def test_everybody_known_leaves_nobody_to_speak_of() -> None:
    history = of_partitions([[[0, 1], [2, 3]]], "abab").history()
    found = resilience(history, known=(1.0,))[1.0]
    assert found.belief == BeliefSpread(0, 0.0, 0.0, (0.0, 0.0, 0.0))


def test_a_spread_counts_what_is_above_a_step_by_more_than_noise() -> None:
    largest = np.array([0.5, 0.5 + NOISE / 2, 0.8, 0.95, 1.0])
    found = BeliefSpread.of(largest, np.array([0.5, 0.5, 0.2, 0.05, 1.0]))
    assert found.above == (0.6, 0.6, 0.4)
    assert found.right == 0.5
    both = mean_of([found, BeliefSpread(5, 0.6, 0.4, (0.2, 0.0, 0.0))])
    assert both.above == pytest.approx((0.4, 0.3, 0.2))
    assert both.most == 1.0
    assert both.right == 0.5
