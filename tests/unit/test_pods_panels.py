"""The benchmark of pods measures what it says: a spoiled series has problems, and losses are those of people."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.pods_panels import Panel, Published, Wave, coming_and_going, publish

from sequester.domain.kinds.number import from_numbers
from sequester.methods.classes import Classes
from sequester.metrics.loss import ail

HALF = Fraction(1, 2)


@pytest.fixture
def panel() -> Panel:
    random = np.random.default_rng(14)
    codes, cells = random.integers(0, 20, (2, 200)).astype(np.int32), random.integers(0, 5, (2, 200)).astype(np.int32)
    waves = [Wave(who, codes[:, who], cells[:, who]) for who in coming_and_going(60, 0.25, 3)]
    return Panel(tuple(waves), (from_numbers(np.arange(20.0)),) * 2)


@pytest.fixture
def made(panel: Panel) -> Published:
    return publish(panel, confidence=HALF, decoys=0.1)


def test_a_series_as_it_was_made_has_no_problems(made: Published) -> None:
    assert made.problems() == 0
    assert made.witness().fewest == 2


def test_people_in_each_others_pods_are_a_problem(made: Published) -> None:
    seats = made.series.seats
    pod = seats.pods[1].copy()
    here = np.flatnonzero(pod >= 0)
    one = here[0]
    other = here[(seats.type[here] != seats.type[one]) & (pod[here] != pod[one])][0]
    pod[one], pod[other] = pod[other], pod[one]
    made.series.seats = replace(seats, pods=(seats.pods[0], pod, seats.pods[2]))
    assert made.problems() > 0


def test_a_pod_in_two_classes_and_a_small_class_are_problems(made: Published) -> None:
    release = made.series.made[1]
    member = release.member.copy()
    member[0] = member.max() + 1
    made.series.made[1] = replace(release, member=member)
    assert made.problems() >= 2


def test_a_smaller_bound_does_not_hold(made: Published) -> None:
    assert replace(made, bound=Fraction(2, 5)).problems() > 0


def test_losses_and_decoys_are_about_people(panel: Panel, made: Published) -> None:
    for wave, step, release in zip(panel.waves, made.steps, made.series.made, strict=True):
        people = Classes(release.member[: len(wave)], release.lo, release.hi)
        assert step.loss == pytest.approx(ail(people, panel.domains))
        assert step.decoys == pytest.approx(len(release.decoy_label) / len(release.member))
        assert step.people == len(wave)


def test_as_many_come_as_leave_and_nobody_returns() -> None:
    waves = list(coming_and_going(20, 0.25, 4))
    assert [len(who) for who in waves] == [20] * 4
    for before, after in pairwise(waves):
        assert len(np.intersect1d(before, after)) == 15
    assert len(np.unique(np.concatenate(waves))) == 35


def test_a_value_that_is_too_frequent_needs_decoys() -> None:
    cells = np.array([[0] * 7 + [1] * 3], np.int32)
    panel = Panel((Wave(np.arange(10), np.zeros((1, 10), np.int32), cells),), (from_numbers(np.arange(2.0)),))
    assert panel.least_decoys(HALF) == pytest.approx(4 / 14)
    assert publish(panel, confidence=HALF, decoys=0.0).decoys == pytest.approx(4 / 14)
