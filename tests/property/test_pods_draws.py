"""Decoys lie about nothing: whoever knows the shares and a pod's labels cannot tell which of them is real."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from experiments.draws import Exactly, Script, every
from experiments.podded import Series, plain
from hypothesis import given, settings
from hypothesis import strategies as st

from pods import DOMAIN
from sequester.methods.pods.draws import Spread, draw_labels
from sequester.methods.pods.pairing.seats import PodSeats
from sequester.methods.pods.task import LabelBounds

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
CLOSE = 1e-7


def drawn(bounds: LabelBounds, seats: int, real: tuple[int, ...], share: Any) -> dict[tuple[int, ...], float]:
    """The chance of every type of a pod in which people with these labels are."""

    def one(script: Script) -> tuple[int, ...]:
        empty = [-1] * (seats - len(real))
        pod = PodSeats(np.array([[*range(len(real)), *empty]]), np.array([[*real, *empty]]))
        draw_labels(pod, bounds, np.asarray(share, float), None, script)
        return tuple(sorted(pod.label[0].tolist()))

    found: dict[tuple[int, ...], float] = defaultdict(float)
    for chance, kind in every(one, Exactly):
        found[kind] += float(chance)
    assert abs(sum(found.values()) - 1) < CLOSE
    return dict(found)


def believed(bounds: LabelBounds, seats: int, share: list[float]) -> dict[tuple[int, ...], dict[int, float]]:
    """Per type, the chance of each of its labels to be that of the one who is real, to a reader who knows shares."""
    joint: dict[tuple[int, ...], dict[int, float]] = defaultdict(dict)
    for label, own in enumerate(share):
        if own > 0:
            for kind, chance in drawn(bounds, seats, (label,), share).items():
                if chance > CLOSE:
                    joint[kind][label] = own * chance
    return {kind: {label: one / sum(own.values()) for label, one in own.items()} for kind, own in joint.items()}


def seats_by_label(bounds: LabelBounds, seats: int, share: list[float]) -> list[float]:
    """The share of every label among all seats, decoys too."""
    found = [0.0] * len(share)
    for label, own in enumerate(share):
        for kind, chance in drawn(bounds, seats, (label,), share).items():
            for one in kind:
                found[one] += own * chance / seats
    return found


@st.composite
def shares(draw: st.DrawFn, seats: int) -> list[float]:
    """Of a few labels, none above 1/seats."""
    counts = draw(st.lists(st.integers(1, 40), min_size=seats + 1, max_size=6).filter(
        lambda some: max(some) * seats <= sum(some)
    ))  # fmt: skip
    return [count / sum(counts) for count in counts]


@pytest.mark.parametrize("seats", [2, 3, 4])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_who_knows_the_shares_and_the_type_is_left_with_one_in_as_many_as_seats(seats: int, data: Any) -> None:
    share = data.draw(shares(seats))
    bounds = plain(len(share), Fraction(1, seats))
    for own in believed(bounds, seats, share).values():
        assert own == pytest.approx(dict.fromkeys(own, 1 / seats), abs=CLOSE)
        assert len(own) == seats
    assert seats_by_label(bounds, seats, share) == pytest.approx(share, abs=CLOSE)


def test_labels_drawn_evenly_tell_who_is_real() -> None:
    """So that the test above can fail: the rule before, of labels with shares .6, .3 and .1."""
    share, even = np.array([0.5, 0.4, 0.1]), 1 / 2
    assert share[0] * even / (share[0] * even + share[2] * even) == pytest.approx(5 / 6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=4, max_size=6))
def test_whole_labels_are_balanced_as_well_as_values(counts: list[int]) -> None:
    """Of labels with one bounded answer each, in two columns of which one is bounded."""
    answers = np.array([[number // 2 for number in range(len(counts))]], np.int32)
    of_answer = np.bincount(answers[0], weights=counts)
    if of_answer.max() * 2 > of_answer.sum():
        return
    bounds, share = LabelBounds(answers, ((HALF,) * len(of_answer),)), [one / sum(counts) for one in counts]
    for own in believed(bounds, 2, share).values():
        assert own == pytest.approx(dict.fromkeys(own, 0.5), abs=CLOSE)
    assert seats_by_label(bounds, 2, share) == pytest.approx(share, abs=CLOSE)


def test_labels_that_fit_only_some_others_are_balanced_in_couples() -> None:
    """Two sensitive columns: a partner shares neither cell."""
    bounds = LabelBounds(np.array([[0, 0, 1, 1, 2], [0, 1, 0, 1, 2]], np.int32), ((HALF,) * 3, (HALF,) * 3))
    share = [0.2, 0.15, 0.15, 0.2, 0.3]
    for kind, own in believed(bounds, 2, share).items():
        assert not bounds.clash()[kind[0], kind[1]]
        assert own == pytest.approx(dict.fromkeys(own, 0.5), abs=1e-6)
    assert seats_by_label(bounds, 2, share) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(("seats", "share"), [(2, [0.7, 0.2, 0.1]), (3, [0.5, 0.3, 0.1, 0.1])])
def test_a_label_that_is_too_frequent_is_in_every_type(seats: int, share: list[float]) -> None:
    """Its share of the seats is 1/seats; whoever has another is as hidden as the shares above allow."""
    bounds = plain(len(share), Fraction(1, seats))
    types = believed(bounds, seats, share)
    assert all(0 in kind for kind in types)
    for own in types.values():
        rare = {label: chance for label, chance in own.items() if share[label] * seats <= 1}
        assert max(rare.values()) <= 1 / seats + CLOSE


def test_a_label_that_nobody_has_is_drawn_only_where_there_is_no_other() -> None:
    bounds = plain(4, HALF)
    assert drawn(bounds, 2, (0,), [0.5, 0.5, 0, 0])[0, 1] > 1 - CLOSE
    assert drawn(bounds, 2, (0,), [1, 0, 0, 0]) == pytest.approx({(0, 1): 1 / 3, (0, 2): 1 / 3, (0, 3): 1 / 3})


def test_who_needs_a_decoy_has_none_with_a_value_that_is_not_bounded() -> None:
    """Nobody with such a value needs one, so beside it anybody else would be known."""
    bounds = LabelBounds(np.array([[0, 1, 2, -1]], np.int32), ((HALF,) * 3,))
    share = [0.05, 0.04, 0.03, 0.88]
    assert {kind for label in range(3) for kind in drawn(bounds, 2, (label,), share)} == {(0, 1), (0, 2), (1, 2)}


def test_beside_two_people_the_third_label_leaves_a_reader_near_a_third() -> None:
    """Pairs that found each other by chance are not exactly balanced: shares of pairs are products of shares."""
    share = [0.3, 0.25, 0.2, 0.15, 0.1]
    bounds = plain(5, THIRD)
    hers: dict[tuple[int, ...], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for one, other in permutations(range(5), 2):
        for kind, chance in drawn(bounds, 3, (one, other), share).items():
            hers[kind][one] += share[one] * share[other] * chance
    most = max(max(own.values()) / sum(own.values()) for own in hers.values())
    assert THIRD < most < 0.37


def test_shares_of_a_table_with_many_decoys_stay_what_they_are() -> None:
    """Drawn evenly, labels of 2 % of the people would have three times as many rows."""
    draw = np.random.default_rng(5)
    share = np.array([0.3, 0.25, 0.2, 0.15, 0.06, 0.02, 0.02])
    label = draw.permutation(np.repeat(np.arange(7), (share * 1_000).astype(int)))
    series = Series((DOMAIN, DOMAIN), plain(7, THIRD), 3, options={"decoys": 0.9})
    made = series.publish(range(1_000), draw.integers(0, 16, (2, 1_000)), label)
    published = np.bincount(np.append(label, made.decoy_label), minlength=7) / len(made.member)
    assert len(made.decoy_label) > 200
    assert np.abs(published - share).sum() / 2 < 0.03
    assert (published / share).max() < 1.4


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any), st.integers(1, 50), st.integers(0, 99))
def test_what_is_drawn_together_is_as_frequent_as_its_chance(counts: list[int], times: int, seed: int) -> None:
    chance = np.array(counts) / sum(counts)
    found = np.bincount(Spread(np.random.default_rng(seed)).choice(len(counts), times, p=chance), minlength=len(counts))
    assert (np.abs(found - times * chance) < 1 + CLOSE).all()
    assert not found[chance == 0].any()


def test_whoever_is_drawn_first_is_drawn_with_the_same_chance() -> None:
    chance = np.array([0.5, 0.3, 0.2])
    first = [int(Spread(np.random.default_rng(seed)).choice(3, 4, p=chance)[0]) for seed in range(2_000)]
    assert np.bincount(first) / 2_000 == pytest.approx(chance, abs=0.04)
