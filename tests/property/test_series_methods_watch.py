"""The guard of a series says what the audit says, and its NO is final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sequester.attacks import deniability, difference, intersection, tracing
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.series_guard import rows
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from series import Series
from ways import backward, cross, forward

SEEDS = 1000

INSIDER, NEIGHBOR = (difference, tracing, deniability), (forward, cross, backward, intersection)


def attacked(history: History, against: tuple[str, ...]) -> bool:
    """Whether the audit finds what the guard looks for: not the shares that cracks of three releases leave together."""
    modules = (*(INSIDER if "insider" in against else ()), *(NEIGHBOR if "neighbor" in against else ()))
    return any(
        module not in (forward, cross, backward) or not finding.about_value or len(finding.releases) == 2
        for module in modules
        for finding in module.find(history).findings
    )


def sound(series: Series, k: int, c: Fraction) -> bool:
    """Every class of every release is (k, c) by itself."""
    for release in range(len(series.member)):
        counts = series.publication(release).counts
        size = counts.sum(axis=1)
        if (size < k).any() or (counts.max(axis=1) > c * size).any():
            return False
    return True


def random_series(random: np.random.Generator, *, releases: int, deletions: bool) -> Series:
    """Few people in few classes, grouped at will or by cuts, most of them carried over from release to release."""
    people, width, leaves, kinds = (
        int(random.integers(6, 15)),
        int(random.integers(1, 3)),
        4,
        int(random.integers(2, 5)),
    )
    points = random.integers(0, leaves, (people, width)).astype(np.int32)
    value = random.permutation(np.arange(people) % kinds).astype(np.int32)
    joined = random.integers(0, releases, people) * (random.random(people) < 0.6)
    present = np.arange(releases)[:, None] >= joined
    if deletions:
        present &= random.random((releases, people)) < random.choice([0.7, 0.9])
    present[:, 0] |= ~present.any(axis=1)
    by_cuts = random.random() < 0.4
    member = np.full((releases, people), -1, np.int32)
    boxes = []
    kinds_of_class = int(random.integers(1, 4))
    label = random.integers(0, kinds_of_class, people)
    for release in range(releases):
        here = np.flatnonzero(present[release])
        if by_cuts:
            axis = int(random.integers(width))
            label = (points[:, axis] >= random.integers(1, leaves)) + 2 * (points[:, -1] >= random.integers(0, leaves))
        else:
            moved = random.random(people) < random.choice([0.0, 0.1, 0.4])
            label = np.where(moved, random.integers(0, kinds_of_class, people), label)
        member[release, here] = np.unique(label[here], return_inverse=True)[1]
        classes = int(member[release].max()) + 1
        lo = np.array([points[member[release] == one].min(axis=0) for one in range(classes)], np.int32).T.copy()
        hi = np.array([points[member[release] == one].max(axis=0) for one in range(classes)], np.int32).T.copy()
        if random.random() < 0.3:
            hi[0] = np.minimum(hi[0] + 1, leaves - 1)
        boxes.append((lo, hi))
    return Series(points, value, member, tuple(boxes), kinds, (leaves,) * width)


def past_of(series: Series, k: int, c: Fraction) -> tuple[Past, np.ndarray]:
    """Everything but the last release, and the people of the last one."""
    shorter = replace(series, member=series.member[:-1], boxes=series.boxes[:-1])
    here = np.flatnonzero(series.member[-1] >= 0)
    past = Past((shorter.history(k=k, c=c),), here, (series.value[here],), np.zeros(len(here), np.bool_))
    return past, here


def cases(seeds: range, *, deletions: bool) -> Iterator[tuple[Series, int, Fraction]]:
    """Series that were safe before the last release, and whose classes are all safe by themselves."""
    for seed in seeds:
        random = np.random.default_rng(seed)
        k, c = int(random.integers(1, 4)), Fraction(int(random.integers(4, 8)), 8)
        one = random_series(random, releases=int(random.integers(2, 5)), deletions=deletions)
        if sound(one, k, c):
            yield one, k, c


@pytest.mark.parametrize("against", [("insider",), ("neighbor",)])
@pytest.mark.parametrize("deletions", [False, True])
def test_the_guard_agrees_with_the_audit(against: tuple[str, ...], deletions: bool) -> None:
    seen = {Answer.YES: 0, Answer.NO: 0, Answer.NOT_NOW: 0}
    for one, k, c in cases(range(SEEDS), deletions=deletions):
        past, here = past_of(one, k, c)
        if attacked(past.first, against):
            continue
        verdict = SeriesGuard.of(past, one.points[here].T, against=against).judge(one.member[-1][here], *one.boxes[-1])
        assert (verdict is Answer.YES) == (not attacked(one.history(k=k, c=c), against))
        seen[verdict] += 1
    assert seen[Answer.YES] > 10
    assert seen[Answer.NO] > 8
    assert seen[Answer.NOT_NOW] > 0 or "neighbor" not in against


@pytest.mark.parametrize("against", [("insider",), ("neighbor",)])
def test_blocks_side_by_side_are_never_judged_more_kindly_than_the_table(against: tuple[str, ...]) -> None:
    accepted = refused = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        k, c, number = 2, Fraction(3, 4), int(random.integers(2, 4))
        pair = [random_series(random, releases=number, deletions=False) for _ in range(2)]
        both = side_by_side(pair)
        if both is None or not sound(both, k, c):
            continue
        past, here = past_of(both, k, c)
        if attacked(past.first, against):
            continue
        block = (here >= len(pair[0].value)).astype(np.int32)
        watch = SeriesGuard.of(past, both.points[here].T, against=against)
        verdicts = watch.judge_blocks(both.member[-1][here], *both.boxes[-1], block)
        whole = watch.judge(both.member[-1][here], *both.boxes[-1])
        with pytest.MonkeyPatch.context() as patch:
            # Components are solved one by one, and the answers are the same.
            patch.setattr(rows, "_SOLVED", 1)
            assert (watch.judge_blocks(both.member[-1][here], *both.boxes[-1], block) == verdicts).all()
        if (verdicts == Answer.YES.value).all():
            # What rows that are left have too much of is asked of the whole table only: other blocks may change it.
            skewed = watch.skewed(both.member[-1][here], *both.boxes[-1]).any()
            assert whole is (Answer.NOT_NOW if skewed else Answer.YES)
            accepted += not skewed
        refused += int((verdicts != Answer.YES.value).any())
    assert accepted > 3
    assert refused > 3


def side_by_side(parts: list[Series]) -> Series | None:
    """One series of separate people who are published in separate classes, with the last release of both."""
    if len({len(one.sizes) for one in parts}) > 1 or len({len(one.member) for one in parts}) > 1:
        return None
    first, second = parts
    member = np.hstack([first.member, np.where(second.member >= 0, second.member + 10, -1)])
    boxes, members = [], []
    for release in range(len(member)):
        lo, hi = (np.hstack([one.boxes[release][side] for one in parts]) for side in range(2))
        boxes.append((lo, hi))
        shift = first.boxes[release][0].shape[1] - 10
        members.append(np.where(member[release] >= 10, member[release] + shift, member[release]))
    return Series(
        np.vstack([first.points, second.points]),
        np.concatenate([first.value, second.value]),
        np.array(members, np.int32),
        tuple(boxes),
        max(first.values, second.values),
        first.sizes,
    )


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every way to divide some items."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place in range(len(rest)):
            yield [*rest[:place], [items[0], *rest[place]], *rest[place + 1 :]]


def refinements(one: Series) -> Iterator[Series]:
    """The series with its last release divided further in every way, in tight boxes within the old ones."""
    choices: list[list[list[int]]] = [[]]
    for number in range(one.boxes[-1][0].shape[1]):
        people = np.flatnonzero(one.member[-1] == number).tolist()
        choices = [[*before, *classes] for before in choices for classes in partitions(people)]
    for classes in choices:
        member = one.member.copy()
        for number, people in enumerate(classes):
            member[-1, people] = number
        lo = np.array([one.points[people].min(axis=0) for people in classes], np.int32).T.copy()
        hi = np.array([one.points[people].max(axis=0) for people in classes], np.int32).T.copy()
        yield replace(one, member=member, boxes=(*one.boxes[:-1], (lo, hi)))


@pytest.mark.parametrize(("against", "seeds"), [(("insider",), 500), (("neighbor",), 1500)])
@pytest.mark.parametrize("deletions", [False, True])
def test_no_refinement_of_what_is_refused_for_ever_is_safe(
    against: tuple[str, ...], seeds: int, deletions: bool
) -> None:
    refused = tried = 0
    for one, k, c in cases(range(seeds), deletions=deletions):
        past, here = past_of(one, k, c)
        largest = np.bincount(one.member[-1][here]).max()
        if largest > 6 or len(here) > 10 or attacked(past.first, against):
            continue
        if (
            SeriesGuard.of(past, one.points[here].T, against=against).judge(one.member[-1][here], *one.boxes[-1])
            is Answer.NO
        ):
            refused += 1
            for finer in refinements(one):
                if sound(finer, k, c):
                    tried += 1
                    assert attacked(finer.history(k=k, c=c), against)
    assert refused > 3
    assert tried > 5
