"""Blind pods leave nobody above her bound to readers who know the method: all assignments, all that could be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from experiments.draws import Script, every
from experiments.minimality_pods import DOMAIN, Belief, Panel, Publish, Seen, Values, beliefs, blind, cases
from experiments.podded import Series, plain
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sequester.errors import GuaranteeError
from sequester.methods.pods.blind.make import make_blind
from sequester.methods.pods.blind.types import even_chances, filled_up, nearest_groups
from sequester.methods.pods.task import LabelBounds

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def bounds(answers: list[list[int]], share: Fraction) -> LabelBounds:
    table = np.array(answers, np.int32)
    return LabelBounds(table, tuple((share,) * (int(row.max()) + 1) for row in table))


def most(found: list[Belief]) -> Fraction:
    return max(one.most for one in found)


# One, two and three releases; people leave, join and return.
FOUR = {
    "once": ((0, 1, 2, 3),),
    "leave and join": ((0, 1, 2), (1, 2, 3)),
    "all but one leave": ((0, 1, 2, 3), (3,)),
    "return": ((0, 1, 2), (0, 3), (0, 1, 2, 3)),
}
THREE = {"once": ((0, 1, 2),), "leave and join": ((0, 1), (1, 2)), "return": ((0, 1), (0, 2), (1, 2))}
LABELS: dict[str, Any] = {
    "two values": (plain(2, HALF), HALF, {**FOUR, "odd": ((0, 1, 2, 3, 4), (0, 2, 4))}),
    "three values": (plain(3, HALF), HALF, FOUR),
    "three seats": (plain(3, THIRD), THIRD, FOUR),
    "three seats, four values": (plain(4, THIRD), THIRD, {"join": ((0, 1), (1, 2))}),
    "an ordinary value": (bounds([[0, 1, -1]], HALF), HALF, FOUR),
    "three seats and an ordinary value": (bounds([[0, 1, 2, -1]], THIRD), THIRD, THREE),
    "two sensitive columns": (bounds([[0, 0, 1, 1], [0, 1, 0, 1]], HALF), HALF, FOUR),
    "a column that stays": (bounds([[0, 0, 1, 1]], HALF), HALF, THREE),
    "labels that fit unevenly": (bounds([[0, 1, 2, 2], [0, 1, 2, 1]], HALF), HALF, THREE),
    "a value with a bound of its own": (
        LabelBounds(np.array([[0, 1, 2]], np.int32), ((THIRD, HALF, HALF),)),
        THIRD,
        THREE,
    ),
}
SERIES = [
    pytest.param(given, bound, present, id=f"{name}, {when}")
    for name, (given, bound, chosen) in LABELS.items()
    for when, present in chosen.items()
]


@pytest.mark.parametrize(("given", "bound", "present"), SERIES)
def test_nobody_is_above_the_bound(given: LabelBounds, bound: Fraction, present: Any) -> None:
    """To somebody who is even told who is in which pod and what its labels are; so to all who know less."""
    places = tuple(tuple(np.random.default_rng(number).integers(0, 16, 5).tolist()) for number in range(len(present)))
    # With k = 2 every class would be one pod; with 4 classes mix them, and cuts are tried, too.
    panel = Panel(present, places, given, k=4)
    found = beliefs(blind(panel), panel, told=("classes", "pods"))
    assert sum(one.weight for one in found) == len(given) ** panel.people
    assert most(found) == bound


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("decoys", [0.0, 0.3])
@pytest.mark.parametrize("lineage", [None, 2, 4])
def test_nor_with_caps_and_budgets(k: int, decoys: float, lineage: int | None) -> None:
    for panel in cases(3, 5, 2, 2, 2, seed=k):
        one = Panel(panel.present, panel.places, panel.bounds, k, decoys, lineage)
        assert most(beliefs(blind(one), one, told=("classes", "pods"))) == HALF


def test_nor_where_people_have_the_same_place() -> None:
    panel = Panel(((0, 1, 2, 3, 4), (0, 1, 2, 5)), ((7,) * 6, (7,) * 6), plain(2, HALF), k=2)
    assert most(beliefs(blind(panel), panel)) == HALF


class Smallest(Script):
    """Draws the least that is possible: a decoy that is not drawn evenly."""

    def integers(self, low: int, high: int, size: int) -> Any:
        return np.full(size, low)


def uneven(panel: Panel) -> Publish:
    def publish(values: Values) -> Iterator[tuple[Fraction, Seen]]:
        yield Fraction(1), panel.shown(values, lambda task: make_blind(task, Smallest([])))

    return publish


def test_a_decoy_drawn_unevenly_is_found_out() -> None:
    """So that the tests above can fail: with c beside a decoy a, nobody else gets that pod."""
    panel = Panel(((0,),), ((3,),), plain(3, HALF))
    assert most(beliefs(uneven(panel), panel)) == 1


def offered_what_people_have(panel: Panel) -> Publish:
    """Decoys have values that somebody in the table has: what must not be done."""

    def publish(values: Values) -> Iterator[tuple[Fraction, Seen]]:
        seen = sorted(set(values)) if len(set(values)) > 1 else list(range(len(panel.bounds)))
        small = replace(panel, bounds=plain(len(seen), HALF))
        codes = tuple(map(seen.index, values))
        for chance, shown in every(lambda script: small.shown(codes, lambda task: make_blind(task, script))):
            yield chance, Seen((tuple(seen), shown.classes), shown.pods, shown.totals)

    return publish


def test_values_of_people_alone_are_not_enough_to_draw_from() -> None:
    """Rows a, a, b, b and b, c: were the first two b, nobody had a, and it could not have been drawn."""
    panel = Panel(((0, 1, 2, 3),), ((0, 1, 8, 9),), plain(3, HALF))
    assert most(beliefs(offered_what_people_have(panel), panel)) == 1


def test_who_knows_the_totals_of_people_is_not_kept_out() -> None:
    """A stated limit: decoys are told apart by a count from elsewhere."""
    panel = Panel(((0, 1),), ((3, 4),), plain(2, HALF))
    assert most(beliefs(blind(panel), panel, told=("classes", "totals"))) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 3), st.sampled_from([None, 2, 4, 8]), st.sampled_from([0.0, 0.2, 0.6]))
def test_permuting_the_labels_of_a_type_changes_no_later_class(
    seed: int, seats: int, lineage: int | None, budget: float
) -> None:
    """The proof itself, with more people: after a first release, for everybody of one type."""
    draw = np.random.default_rng(seed)
    count, values = 40, seats + 1
    label, kept = draw.integers(0, values, count), {"decoys": budget, "lineage": lineage}
    places = draw.integers(0, 16, (4, 2, count))
    one, other = (
        Series((DOMAIN, DOMAIN), plain(values, Fraction(1, seats)), 3, make=make_blind, options=kept) for _ in range(2)
    )
    everybody = np.arange(count)
    for series in (one, other):
        series.publish(everybody.tolist(), places[0], label, seed=seed)
    # In the other series everybody of a type, people and decoys, has the next seat's label.
    kind = int(draw.choice(np.unique(one.seats.type)))
    of = np.flatnonzero(one.seats.type == kind)
    labels = np.array([one.label[of[one.seats.seat[of] == seat][0]] for seat in range(seats)])
    moved = (one.seats.seat[of] + 1) % seats
    other.seats.seat[of] = moved
    other.label[of] = labels[moved]
    changed = other.label[[other.number[who] for who in range(count)]]
    assert (changed != label).any()
    for wave in (1, 2, 3):
        here = np.sort(draw.choice(count, int(draw.integers(1, count)), replace=False))
        first = one.publish(here.tolist(), places[wave][:, here], label[here], seed=seed + wave)
        second = other.publish(here.tolist(), places[wave][:, here], changed[here], seed=seed + wave)
        people = len(here)
        assert np.array_equal(first.member[:people], second.member[:people])
        assert np.array_equal(first.pod[:people], second.pod[:people])
        assert np.array_equal(first.lo, second.lo)
        assert np.array_equal(first.hi, second.hi)
        shown = [
            sorted(zip(made.member.tolist(), np.append(own, made.decoy_label).tolist(), strict=True))
            for made, own in ((first, label[here]), (second, changed[here]))
        ]
        assert shown[0] == shown[1]


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.lists(st.tuples(st.integers(0, 15), st.integers(0, 3)), max_size=30), st.randoms())
def test_groups_have_one_size_but_for_the_last(size: int, places: list[tuple[int, int]], random: Any) -> None:
    order = np.array(random.sample(range(len(places)), len(places)), np.int64)
    group = nearest_groups(np.array(places, np.float64).reshape(-1, 2), order, size)
    counts = np.bincount(group)
    assert sorted(counts.tolist(), reverse=True)[: len(places) // size] == [size] * (len(places) // size)
    assert len(counts) == -(-len(places) // size)


@pytest.mark.parametrize("codes", [[0], [1, 1], [0, 3], [2, 2, 4], [0, 1, 2]])
def test_types_are_filled_up_evenly(codes: list[int]) -> None:
    """Every set of three of five with these codes, as often."""
    group = np.zeros(len(codes), np.int64)
    found: dict[tuple[int, ...], Fraction] = {}
    for chance, row in every(lambda script: filled_up(group, np.array(codes), 5, 3, script)[0]):
        found[tuple(row.tolist())] = found.get(tuple(row.tolist()), Fraction(0)) + chance
    assert all(sorted(set(row)) == list(row) and set(codes) <= set(row) for row in found)
    assert len(set(found.values())) == 1
    assert len(found) == {1: 6, 2: 3, 3: 1}[len(set(codes))]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6), st.data())
def test_labels_are_drawn_as_often_as_each_other_wherever_that_can_be(count: int, data: st.DataObject) -> None:
    fits = np.zeros((count, count), np.bool_)
    links = [(one, other) for one in range(count) for other in range(one)]
    for one, other in links:
        fits[one, other] = fits[other, one] = data.draw(st.booleans())
    links = [link for link in links if fits[link]]
    adds_up = np.array([[float(label in link) for link in links] for label in range(count)]).reshape(count, -1)
    can = bool(links) and linprog(np.zeros(len(links)), A_eq=adds_up, b_eq=np.ones(count)).status == 0
    if not can:
        with pytest.raises(GuaranteeError, match="too few others"):
            even_chances(fits)
        return
    chance = even_chances(fits)
    assert np.array_equal(chance, chance.T)
    assert not chance[~fits].any()
    assert np.allclose(chance.sum(1), 1, rtol=0, atol=1e-11)


def test_three_seats_and_two_columns_are_refused() -> None:
    panel = Panel(((0,),), ((3,),), bounds([[0, 0, 1, 2], [0, 1, 2, 2]], THIRD))
    with pytest.raises(GuaranteeError, match="one sensitive column"):
        panel.shown((0,), make_blind)
