"""What pods promise, and what they do not, in all worlds of tiny series: enumerated from the definition."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from pods import HALF, Panel, Story, panels, wrong
from sequester.methods.pods.task import MadePods, PodTask
from worlds import Class, Column, Knowledge, Label, Published, TooMany

BLIND = pytest.mark.parametrize("blind", [False, True], ids=["pods", "blind pods"])


def known(story: Story, most: int = 4_000) -> Knowledge:
    try:
        return Knowledge(story.published(), most)
    except TooMany:
        assume(False)
        raise AssertionError from None


def promised(story: Story) -> None:
    """Every label of her type is hers in a whole world; equal weights tie nobody beyond a bound; rows have owners."""
    tells, types = known(story), story.types()
    owners = tells.owners()
    for number, rows in enumerate(story.releases):
        places = list(dict.fromkeys(row.place for row in rows))
        for row in rows:
            lives = {next(label for label in one if label is not None) for one in tells.lives(row.who)}
            assert {story.panel.labels[label] for label in types[row.kind]} <= lives
            here = owners[number, places.index(row.place), story.panel.labels[row.label]]
            assert len(here) >= len(types[row.kind])
            if len(types[row.kind]) > 1:
                assert not tells.certain(row.who)
    assert tells.deniable()


@settings(max_examples=80, deadline=None)
@given(panels(people=(1, 6), releases=(1, 3), blind=False))
def test_every_label_of_a_type_is_possible_and_none_beyond_its_bound(panel: Panel) -> None:
    promised(panel.publish())


@settings(max_examples=80, deadline=None)
@given(panels(people=(1, 6), releases=(1, 3), blind=True))
def test_every_label_of_a_type_is_possible_in_blind_pods(panel: Panel) -> None:
    promised(panel.publish())


@settings(max_examples=60, deadline=None)
@given(panels(people=(5, 8), releases=(2, 3), seats=(2, 3), columns=False))
def test_the_same_with_more_people(panel: Panel) -> None:
    promised(panel.publish())


# What it does not promise.


def tiny(
    cells: list[Label], present: list[list[int]], shares: list[dict[str, Fraction]], *, blind: bool = False, **more: Any
) -> Panel:
    """People in a row with these labels; the labels there are are theirs and those in `others`."""
    labels = tuple(dict.fromkeys([*cells, *more.pop("others", [])]))
    return Panel(
        k=2,
        labels=labels,
        shares=tuple(shares),
        label=tuple(labels.index(label) for label in cells),
        present=tuple(map(tuple, present)),
        places=tuple(tuple((2 * who, 0) for who in range(len(cells))) for _ in present),
        blind=blind,
        **more,
    )


def with_totals(story: Story) -> list[dict[int, Label]]:
    """Worlds of somebody who knows besides how many people, not rows, have each label in every release."""
    published = story.published()
    true = [Counter(story.panel.labels[row.label] for row in rows if row.person is not None) for rows in story.releases]
    found = []
    for world in _single_worlds(published):
        there = [Counter(world[row.who] for row in rows if row.person is not None) for rows in story.releases]
        if there == true:
            found.append(world)
    return found


def _single_worlds(published: Published) -> list[dict[Any, Label]]:
    """Worlds with everybody told apart, one label each."""
    everybody = list(published.path)
    found: list[dict[Any, Label]] = []
    left = dict(published.shown)

    def go(at: int, world: dict[Any, Label]) -> None:
        if at == len(everybody):
            found.append(dict(world))
            return
        path = published.path[everybody[at]]
        places = [(number, place) for number, place in enumerate(path) if place >= 0]
        for label in {label for _, _, label in left}:
            keys = [(number, place, label) for number, place in places]
            if all(left.get(key, 0) > 0 for key in keys):
                for key in keys:
                    left[key] -= 1
                go(at + 1, {**world, everybody[at]: label})
                for key in keys:
                    left[key] += 1

    go(0, {})
    return found


@BLIND
def test_who_knows_the_totals_of_people_knows_a_lone_persons_value(blind: bool) -> None:
    """Not promised: the decoy's value is told from hers by a count from elsewhere."""
    story = tiny([("a",)], [[0]], [{"a": HALF, "b": HALF}], others=[("b",)], blind=blind).publish()
    her = story.releases[0][0].who
    assert {world[her] for world in _single_worlds(story.published())} == {("a",), ("b",)}
    assert {world[her] for world in with_totals(story)} == {("a",)}


@BLIND
def test_who_knows_one_value_knows_the_lineage_if_types_are_known(blind: bool) -> None:
    """Not promised: 0 and 1 are a couple, 1 leaves, 2 takes the seat of 1; whoever knows 0 knows them all."""
    story = tiny(
        [("a",), ("b",), ("b",)], [[0, 1], [0, 2]], [{"a": HALF, "b": HALF}], blind=blind, decoys=0.0
    ).publish()
    assert wrong(story) == []
    worlds = _single_worlds(story.published())
    people = {row.person: row.who for rows in story.releases for row in rows if row.person is not None}
    assert {world[people[0]] for world in worlds} == {("a",), ("b",)}
    if {people[0], people[1], people[2]} in [lineage - story.decoys() for lineage in story.lineages()]:
        told = [world for world in worlds if world[people[0]] == ("a",)]
        assert {(world[people[1]], world[people[2]]) for world in told} == {(("b",), ("b",))}
    else:
        assert blind, "the newcomer takes the empty seat of her label"


# Refuted constructions: enumeration refutes them, and the maker never makes them.


def classes(*releases: list[list[tuple[str, Label]]]) -> tuple[tuple[Class, ...], ...]:
    return tuple(
        tuple(Class(tuple(who for who, _ in one), tuple(label for _, label in one)) for one in release)
        for release in releases
    )


BOUNDED = {"a": HALF, "b": HALF, "H": HALF}


def test_an_ordinary_person_as_a_later_partner_gives_the_newcomer_away() -> None:
    o, p, q = ("O", ("flu",)), ("P", ("a",)), ("Q", ("b",))
    bad = Published((Column(BOUNDED),), classes([[o, p, q]], [[o, ("N", ("H",))], [p, q]]))
    assert Knowledge(bad).certain("N") == {(0, "H")}


@BLIND
@pytest.mark.parametrize("k", [2, 3])
def test_an_ordinary_person_is_never_a_later_partner(blind: bool, k: int) -> None:
    """The same people: O has no pod at first, or a place in one for good."""
    panel = tiny([("flu",), ("a",), ("b",), ("H",)], [[0, 1, 2], [0, 3, 1, 2]], [BOUNDED], blind=blind)
    story = Panel(**{**panel.__dict__, "k": k}).publish()
    assert wrong(story) == []
    promised(story)


def test_types_of_sensitive_cells_only_leave_one_world() -> None:
    a, b, c = ("A", ("a", "z1")), ("B", ("b", "z2")), ("C", ("b", "z3"))
    bad = Published((Column(BOUNDED), Column()), classes([[a, b]], [[a, c]]))
    assert Knowledge(bad).certain("A") == {(0, "a")}
    assert Knowledge(bad).certain("C") == {(0, "b")}


@BLIND
def test_types_are_of_whole_labels(blind: bool) -> None:
    cells: list[Label] = [("a", "z1"), ("b", "z2"), ("b", "z3")]
    others: list[Label] = [(s, z) for s in "ab" for z in ("z1", "z2", "z3")]
    story = tiny(cells, [[0, 1], [0, 2]], [{"a": HALF, "b": HALF}, {}], others=others, blind=blind).publish()
    assert wrong(story) == []
    promised(story)


def test_one_person_under_two_ids_is_not_covered() -> None:
    """With two types, {a, b} and {a, c}, she has what both have."""
    first, second = ("P", ("a",)), ("P", ("a",))
    known_as_one = Published(
        (Column({**BOUNDED, "c": HALF}),), classes([[first, ("Q", ("b",))]], [[second, ("R", ("c",))]])
    )
    assert Knowledge(known_as_one).certain("P") == {(0, "a")}


def test_what_rows_of_two_classes_have_in_common_is_not_bounded_by_pods() -> None:
    """Two pods a:b and a:c, then a:b and a:d: pods are whole, yet two of three common rows have a."""
    first, then = Counter("abac"), Counter("abad")
    common = first & then
    assert Fraction(common["a"], common.total()) == Fraction(2, 3)


def _sensitive_cells_only(task: PodTask) -> MadePods:
    """A maker that takes anybody with another first cell as a partner: what must not be done."""
    order = np.lexsort((task.bounds.answers[0][task.label],))
    pod = np.empty(len(task), np.int32)
    pod[order] = np.arange(len(task)) // 2
    seat = np.empty(len(task), np.int32)
    seat[order] = np.arange(len(task)) % 2
    place = np.zeros(len(task), np.int32)
    nobody = np.zeros(0, np.int64)
    return MadePods(
        member=place,
        lo=task.codes.min(1, keepdims=True),
        hi=task.codes.max(1, keepdims=True),
        pod=pod,
        type=place,
        seat=seat,
        decoy_person=nobody,
        decoy_label=nobody.astype(np.int32),
        decoy_like=nobody,
    )


def test_the_checks_can_fail() -> None:
    cells: list[Label] = [("a", "z1"), ("b", "z2"), ("b", "z3")]
    panel = tiny(cells, [[0, 1], [0, 2]], [{"a": HALF, "b": HALF}, {}])
    story = panel.publish(_sensitive_cells_only)
    assert wrong(story) == ["two labels for one seat"]
    with pytest.raises(AssertionError):
        promised(story)
