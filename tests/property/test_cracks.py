"""Forward, cross and backward attacks against brute force over every assignment of buddies."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from unittest.mock import patch

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cracked import World
from sequester.attacks.finding import Result
from sequester.attacks.solvers.buddies import assign
from sequester.attacks.solvers.comparison import closed_between, closed_unforced, compare
from series import Series, of_partitions, series
from ways import backward, cross, forward

SETTINGS = settings(max_examples=120, deadline=None)
ALL = 1000  # a requirement nobody meets, so that every target is a finding


@st.composite
def taxonomic(draw: st.DrawFn) -> Series:
    """Two or three releases, each a cut of the same taxonomy 0123 > 01, 23 > leaves in every attribute."""
    truth = draw(series(deletions=False, people=(2, 6)))
    member, boxes = np.full_like(truth.member, -1), []
    for release in range(len(truth.member)):
        edges = draw(
            st.tuples(*[st.sampled_from([(), (2,), (1, 2), (2, 3), (1, 2, 3)]) for _ in range(truth.points.shape[1])])
        )
        sides = [list(pairwise([0, *cut, 4])) for cut in edges]
        keys = {
            int(p): tuple(
                next(side for side in sides[q] if side[0] <= code < side[1]) for q, code in enumerate(truth.points[p])
            )
            for p in np.flatnonzero(truth.member[release] >= 0)
        }
        distinct = sorted(set(keys.values()))
        for person, key in keys.items():
            member[release, person] = distinct.index(key)
        ends = np.array(distinct, np.int32)
        boxes.append((ends[:, :, 0].T.copy(), (ends[:, :, 1] - 1).T.copy()))
    return Series(truth.points, truth.value, member, tuple(boxes), truth.values, truth.sizes)


def tuples(counts: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in counts.tolist()]


@SETTINGS
@given(series(deletions=False, people=(2, 7), values=(1, 2)))
def test_rows_that_remain_are_those_of_the_best_assignment(truth: Series) -> None:
    history, world = truth.history(), World(truth)
    for comparison in compare(history):
        first, second = comparison.first, comparison.second
        realised = {pair for pair in world.pairs(first, second) if pair[0] >= 0}
        pairs = list(zip(*(side.tolist() for side in comparison.pairs), strict=True))
        assert set(pairs) == realised
        assert tuples(comparison.remaining) == [tuple(world.remaining(first, second, pair)) for pair in pairs]
        joined = comparison.joined.tolist()
        assert joined == sorted({b for a, b in world.pairs(first, second) if a < 0})
        assert tuples(comparison.unforced) == [tuple(world.unforced(first, second, number)) for number in joined]


@settings(max_examples=400, deadline=None)
@given(series(deletions=False, people=(2, 7), releases=(2, 2)))
def test_without_people_only_classes_that_every_assignment_fills_are_targets(truth: Series) -> None:
    history, world = truth.history(known=False), World(truth)
    (comparison,) = compare(history)
    numbers = [range(boxes[0].shape[1]) for boxes in truth.boxes]
    worlds = [world.generators(0, 1, value) for value in range(truth.values)]
    certain = {
        pair
        for pair in product(numbers[0], numbers[1])
        if any(all(pair in assignment for assignment in of_value) for of_value in worlds)
    }
    found = zip(*(side.tolist() for side in comparison.pairs), tuples(comparison.remaining), strict=True)
    assert {(a, b): left for a, b, left in found} == {pair: tuple(world.remaining(0, 1, pair)) for pair in certain}
    joined = {
        number
        for number in numbers[1]
        if any(
            all(sum(b == number for _, b in assignment) < world.rows(1, value).count(number) for assignment in of_value)
            for value, of_value in enumerate(worlds)
        )
    }
    alone = dict(zip(comparison.joined.tolist(), tuples(comparison.unforced), strict=True))
    assert alone == {number: tuple(world.unforced(0, 1, number)) for number in joined}


@SETTINGS
@given(truth=series(deletions=False, people=(2, 7), releases=(2, 2)), links=st.booleans())
def test_a_release_published_twice_shows_a_neighbor_who_knows_nobody_nothing_new(truth: Series, links: bool) -> None:
    history = truth.history(known=False)
    once = history.releases[0]
    kept = np.full(len(history.links), links)
    twice = replace(history, releases=(once, once), links=kept, k=int(once.size.min()))
    assert not [finding for attack in (forward, cross, backward) for finding in attack.find(twice).findings]


@SETTINGS
@given(series(deletions=False, people=(2, 6), releases=(2, 2)))
def test_where_nobody_joined_the_same_pairs_are_certain_with_time_reversed(truth: Series) -> None:
    history = truth.history(known=False)
    ahead = compare(history)[0].pairs
    reverse = replace(history, releases=history.releases[::-1])
    (back,) = compare(reverse)
    assume(back.buddies is None)
    found = zip(*(side.tolist() for side in back.pairs[::-1]), strict=True)
    assert set(found) == set(zip(*(side.tolist() for side in ahead), strict=True))


@SETTINGS
@given(truth=series(releases=(2, 2), people=(2, 6)), k=st.integers(1, 5))
def test_two_releases_are_measured_and_reported_as_the_definitions_say(truth: Series, k: int) -> None:
    history, world = truth.history(k=k, c=1), World(truth)
    cells = world.pairs(0, 1)
    both = {pair: sum(world.remaining(0, 1, pair)) for pair in cells if pair[0] >= 0}
    joined = {pair: sum(world.unforced(0, 1, pair[1])) for pair in cells if pair[0] < 0 and not world.deleted(0, 1)}
    for attack, expected in ((forward, both), (cross, both), (backward, joined)):
        result = attack.find(history)
        assert result.measure == min(expected.values(), default=None)
        assert {(frozenset(finding.people), finding.observed) for finding in result.findings} == {
            (frozenset(cells[pair]), left) for pair, left in expected.items() if left < k
        }
        assert len(result.findings) == sum(left < k for left in expected.values())
        for finding in result.findings:
            assert finding.releases == (1, 2)
            assert finding.required == k
            assert sum(finding.witness["remaining"].values()) == finding.observed
            for value, rows in finding.witness["rows"].items():
                assert rows == [
                    world.rows(release - 1, history.values.index(value)).count(number - 1)
                    for release, number in finding.classes
                ]


@settings(max_examples=400, deadline=None)
@given(
    truth=series(releases=(2, 2), people=(2, 8), attributes=(1, 1)),
    c=st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(3, 4)]),
)
def test_rows_that_are_left_keep_the_bounds_not_only_k(truth: Series, c: Fraction) -> None:
    """Section 7.2: confidence of what is left, by every world of all values; nothing that can be proven is missed."""
    history, world = truth.history(k=1, c=c), World(truth)
    cells = world.pairs(0, 1)
    for attack in (forward, cross, backward):
        expected = set()
        for pair, people in cells.items():
            if (attack is backward) != (pair[0] < 0) or (attack is backward and world.deleted(0, 1)):
                continue
            worlds = world.left(0, 1, pair)
            most = tuple(max(column) for column in zip(*worlds, strict=True))
            assert most in worlds, "one world leaves of every value as many rows as any does"
            release, number = (0, pair[0]) if attack is forward else (1, pair[1])
            if most == tuple(world.rows(release, value).count(number) for value in range(truth.values)):
                continue
            for value, rows in enumerate(most):
                share = Fraction(rows, sum(most))
                proven = min(Fraction(left[value], sum(left)) for left in worlds if sum(left))
                assert proven <= share
                if share > c:
                    expected.add((frozenset(people), history.values[value], float(share)))
        found = attack.find(history).findings
        assert {(frozenset(one.people), one.value, one.observed) for one in found} == expected
        assert all(one.required == float(c) and one.witness["bound"] == "confidence" for one in found)


@SETTINGS
@given(taxonomic())
def test_closed_forms_are_exact_for_cuts_of_a_taxonomy(truth: Series) -> None:
    history, world = truth.history(), World(truth)
    for comparison in compare(history):
        first, second = comparison.first, comparison.second
        for a, b, left in zip(*comparison.comparable, tuples(closed_between(comparison)), strict=True):
            assert left == tuple(world.remaining(first, second, (int(a), int(b))))
        expected = [tuple(world.unforced(first, second, number)) for number in range(len(comparison.after))]
        assert tuples(closed_unforced(comparison)) == expected


@SETTINGS
@given(taxonomic())
def test_for_cuts_the_printed_measures_are_lower_bounds_of_what_real_targets_face(truth: Series) -> None:
    history = truth.history()
    for first, second in World(truth).releases():
        pair = Series(
            truth.points, truth.value, truth.member[[first, second]], (truth.boxes[first], truth.boxes[second]),
            truth.values, truth.sizes,
        ).history()  # fmt: skip
        for attack in (forward, cross, backward):
            exact, paper = attack.find(pair).measure, attack.find(pair, semantics="paper").measure
            assert paper is not None
            assert exact is None or paper <= exact
    assert forward.find(history, semantics="paper").measure == cross.find(history, semantics="paper").measure


@SETTINGS
@given(truth=series(releases=(2, 2), people=(2, 6), deletions=False), k=st.integers(1, 5), known=st.booleans())
def test_forward_and_cross_measure_the_same_for_every_recoding(truth: Series, k: int, known: bool) -> None:
    history = truth.history(k=k, c=1, known=known)
    one, other = forward.find(history), cross.find(history)
    assert one.measure == other.measure
    assert bool(one.findings) == bool(other.findings) == (one.measure is not None and one.measure < k)


@SETTINGS
@given(series())
def test_nobody_is_exposed_where_every_trajectory_has_k_people(truth: Series) -> None:
    _, sizes = np.unique(truth.member.T[(truth.member >= 0).any(axis=0)], axis=0, return_counts=True)
    history = truth.history(k=int(sizes.min()), c=1)
    for attack in (forward, cross, backward):
        assert attack.find(history).findings == []


@SETTINGS
@given(truth=series(releases=(2, 2)), data=st.data())
def test_a_coarser_later_release_exposes_no_more(truth: Series, data: st.DataObject) -> None:
    lo, hi = truth.boxes[1]
    one, other = data.draw(st.lists(st.integers(0, lo.shape[1] - 1), min_size=2, max_size=2))
    coarse_lo, coarse_hi = lo.copy(), hi.copy()
    coarse_lo[:, one] = np.minimum(lo[:, one], lo[:, other])
    coarse_hi[:, one] = np.maximum(hi[:, one], hi[:, other])
    member = np.stack([truth.member[0], np.where(truth.member[1] == other, one, truth.member[1])])
    boxes = (truth.boxes[0], (coarse_lo, coarse_hi))
    coarse = Series(truth.points, truth.value, member, boxes, truth.values, truth.sizes).history()
    # An empty class is left behind; it holds no rows, so nobody can be its target.
    for attack in (forward, cross, backward):
        fine, after = attack.find(truth.history()).measure, attack.find(coarse).measure
        assert fine is None or (after is not None and after >= fine)


@settings(max_examples=100, deadline=None)
@given(truth=series(releases=(3, 3), people=(2, 5)), k=st.sampled_from([2, 3, ALL]))
def test_compositions_take_the_least_count_of_any_attack_per_value(truth: Series, k: int) -> None:
    history, world = truth.history(k=k, c=1), World(truth)
    member = truth.member
    paths = {tuple(member[:, p].tolist()) for p in world.people if (member[:, p] >= 0).any()}
    singles: dict[str, list[int]] = {"forward": [], "backward": []}
    composed: dict[str, dict[tuple[int, ...], tuple[list[int], int]]] = {"forward": {}, "backward": {}}
    for path in paths:
        between, joining = [], []
        for first, second in world.releases():
            if path[second] >= 0 and path[first] >= 0:
                between.append(world.remaining(first, second, (path[first], path[second])))
            elif path[second] >= 0 and not world.deleted(first, second):
                joining.append(world.unforced(first, second, path[second]))
        singles["forward"] += map(sum, between)
        singles["backward"] += map(sum, joining)
        for name, used in (("forward", between + joining if between else []), ("backward", joining)):
            least = [min(column) for column in zip(*used, strict=True)]
            if used and sum(least) < min(map(sum, used)):
                composed[name][path] = (least, min(map(sum, used)))
    for attack, name in ((forward, "forward"), (cross, "forward"), (backward, "backward")):
        result = attack.find(history)
        numbers = [*singles[name], *(sum(least) for least, _ in composed[name].values())]
        assert result.measure == min(numbers, default=None)
        seen = min((finding.observed for finding in result.findings), default=None)
        assert seen == (result.measure if result.measure is not None and result.measure < k else None)
        told = [finding for finding in result.findings if len(finding.releases) == 3]
        for finding in told:
            left, path = finding.witness["remaining"], tuple(member[:, finding.people[0]].tolist())
            assert [left.get(value, 0) for value in history.values] == composed[name][path][0]
            assert set(finding.people) == {p for p in world.people if tuple(member[:, p].tolist()) == path}
            assert {release - 1 for release, _ in finding.classes} == {r for r in range(3) if path[r] >= 0}
        fresh = {sum(least) for least, alone in composed[name].values() if sum(least) < k <= alone}
        assert fresh <= {finding.observed for finding in told}


@settings(max_examples=100, deadline=None)
@given(series(releases=(3, 3), people=(2, 5), deletions=False))
def test_no_composition_excludes_a_row_that_can_be_the_targets(truth: Series) -> None:
    world = World(truth)
    findings = [f for attack in (forward, backward) for f in attack.find(truth.history(k=ALL)).findings]
    chains = {value: _chains(world, value) for value in range(truth.values)}
    for finding in findings:
        for person in finding.people:
            path = tuple(truth.member[:, person].tolist())
            possible = [max(chain.count(path) for chain in chains[value]) for value in range(truth.values)]
            for value, most in enumerate(possible):
                assert finding.witness["remaining"].get("abcdefgh"[value], 0) >= most


@settings(max_examples=200, deadline=None)
@given(
    truth=series(releases=(3, 3), people=(2, 6), deletions=False), c=st.sampled_from([Fraction(1, 2), Fraction(3, 4)])
)
def test_what_several_releases_leave_together_keeps_the_bounds(truth: Series, c: Fraction) -> None:
    world, history = World(truth), truth.history(k=1, c=c)
    for attack in (forward, backward):
        told = {(one.value, person) for one in attack.find(history).findings for person in one.people}
        for person in world.people:
            path = truth.member[:, person].tolist()
            used = [
                world.remaining(first, second, (path[first], path[second]))
                if path[first] >= 0
                else world.unforced(first, second, path[second])
                for first, second in world.releases()
                if path[second] >= 0 and (attack is forward or path[first] < 0)
            ]
            in_two = sum(number >= 0 for number in path) > 1
            if not used or (attack is forward and not in_two):
                continue
            meet = [min(column) for column in zip(*used, strict=True)]
            if sum(meet) < min(map(sum, used)):
                over = [value for value, rows in enumerate(meet) if rows > c * sum(meet)]
                assert all((history.values[value], person) in told for value in over)


def _chains(world: World, value: int) -> set[tuple[tuple[int, ...], ...]]:
    """Every world of three releases for one value, as the sorted paths of its people."""
    rows = [world.rows(release, value) for release in range(3)]
    found = set()

    def go(release: int, paths: list[tuple[int, ...]], left: list[tuple[int, ...]], free: list[int]) -> None:
        if left:
            for number in set(free):
                places = [(r, c) for r, c in enumerate(left[0]) if c >= 0]
                if world.meets(*places, (release, number)):
                    rest = free.copy()
                    rest.remove(number)
                    go(release, [*paths, (*left[0], number)], left[1:], rest)
            return
        paths = paths + [(-1,) * release + (number,) for number in free]
        if release == 2:
            found.add(tuple(sorted(paths)))
        else:
            go(release + 1, [], paths, rows[release + 1])

    go(0, [], [], rows[0])
    return found


def test_one_release_cannot_be_compared() -> None:
    history = of_partitions([[[0, 1], [2, 3]]], "abab").history()
    for attack in (forward, cross, backward):
        for semantics in ("exact", "paper"):
            assert attack.find(history, semantics=semantics) == Result([], None)


def test_people_who_left_end_backward_attacks_and_leave_the_smaller_counts() -> None:
    history = of_partitions([[[0, 1, 2]], [[0, 1, 3]]], "aacb", points=[[0]] * 4).history(k=3, c=1)
    assert backward.find(history) == Result([], None)
    (finding,) = forward.find(history).findings
    assert finding.people == (0, 1)
    assert finding.witness == {
        "rows": {"a": [2, 2], "b": [0, 1], "c": [1, 0]},
        "remaining": {"a": 2, "b": 0, "c": 0},
    }


def test_values_that_change_do_not_tell_rows_apart() -> None:
    kept = of_partitions([[[0, 1, 2, 3]], [[0, 1, 2], [3, 4]]], "abbaa", points=[[0], [0], [0], [1], [1]]).history(k=9)
    free = replace(kept, permanent=False, value=None)
    found = {finding.classes[1]: finding.witness for finding in forward.find(free).findings}
    assert found == {
        (2, 1): {"rows": {"any value": [4, 3]}, "remaining": {"any value": 3}},
        (2, 2): {"rows": {"any value": [4, 2]}, "remaining": {"any value": 2}},
    }


def test_only_attributes_that_link_make_classes_incomparable() -> None:
    truth = of_partitions([[[0], [1]], [[0, 2], [1, 3]]], "aaaa", points=[[0], [1], [0], [1]])
    history = replace(truth.history(), links=np.zeros(1, np.bool_))
    assert forward.find(truth.history()).measure == 1
    assert backward.find(truth.history()).measure == 1
    assert backward.find(history).measure == 2


def test_rows_that_contradict_the_boxes_are_read_as_deletions() -> None:
    truth = of_partitions([[[0, 1]], [[0, 1]]], "ab", points=[[0], [0]])
    boxes = (truth.boxes[0], (truth.boxes[1][0] + 1, truth.boxes[1][1] + 1))
    apart = Series(truth.points, truth.value, truth.member, boxes, 2, (4,))
    for known in (True, False):
        assert backward.find(apart.history(known=known)) == Result([], None)
    assert forward.find(apart.history()).measure == 2


def test_a_release_without_rows_has_no_targets() -> None:
    truth = of_partitions([[[0, 1], [2, 3]]], "abab")
    empty = Series(
        truth.points, truth.value, np.full((1, 4), -1, np.int32), ((np.zeros((1, 0), np.int32),) * 2,), 2, (4,)
    )
    for known in (True, False):
        blank, full = truth.history(known=known), truth.history(known=known)
        nothing, something = empty.publication(0, known=known), truth.publication(0, known=known)
        before = replace(blank, releases=(), trajectories=None, value=None).extend(nothing)
        for history in (before.extend(something), before.extend(nothing), full.extend(nothing)):
            for semantics in ("exact", "paper"):
                assert forward.find(history, semantics=semantics) == Result([], None)
                assert cross.find(history, semantics=semantics) == Result([], None)
        assert backward.find(before.extend(something)).measure == 2
        assert backward.find(full.extend(nothing)) == Result([], None)


@SETTINGS
@given(series())
def test_where_boxes_are_too_many_to_compare_safe_releases_are_measured_by_a_lower_bound(truth: Series) -> None:
    _, sizes = np.unique(truth.member.T[(truth.member >= 0).any(axis=0)], axis=0, return_counts=True)
    k = int(sizes.min())
    for attack in (forward, cross, backward):
        exact = attack.find(truth.history(k=k, c=1)).measure
        with patch("sequester.attacks.solvers.comparison._LIMIT", 0):
            result = attack.find(truth.history(k=k, c=1))
        assert result.findings == []
        assert (result.measure is None) == (exact is None)
        assert exact is None or k <= result.measure <= exact


def test_a_row_that_can_be_nowhere_else_is_not_moved_into_the_spare_place_of_its_own_class() -> None:
    truth = of_partitions([[[0], [1, 2]], [[0, 3], [1, 2, 4]]], "aaaaa", points=[[0], [1], [2], [1], [2]])
    boxes = (truth.boxes[0], (np.array([[0, 2]], np.int32), np.array([[1, 2]], np.int32)))
    member = np.array([[0, -1, 1, -1, -1], [0, 0, 1, -1, 1]], np.int32)
    history = Series(truth.points, truth.value, member, boxes, 1, (3,)).history(k=2, c=1)
    (finding,) = backward.find(history).findings
    assert finding.classes == ((2, 1),)
    assert finding.witness == {"rows": {"a": [2]}, "remaining": {"a": 1}}


@SETTINGS
@given(st.integers(0, 2**32 - 1))
def test_an_assignment_where_all_classes_are_comparable_places_every_row_and_overfills_none(seed: int) -> None:
    random = np.random.default_rng(seed)
    before, after = (random.integers(0, 4, (random.integers(1, 5), 3)) for _ in range(2))
    every = np.array(list(product(range(len(before)), range(len(after)))), np.int32).T
    found = assign(before, after, (every[0], every[1]))
    assert (found is not None) == bool((before.sum(axis=0) <= after.sum(axis=0)).all())
    if found is not None:
        sent, taken = np.zeros_like(before), np.zeros_like(after)
        np.add.at(sent, found.first, found.units)
        np.add.at(taken, found.second, found.units)
        assert (sent == before).all()
        assert (taken <= after).all()
        assert found.units.any(axis=1).all()
