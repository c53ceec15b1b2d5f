"""Tiny random series for tests against brute force: people with raw values, classes of every release, boxes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy, nested
from sequester.history import History, Publication


def axis(size: int) -> Hierarchy:
    """A flat attribute with the leaves 0 .. size - 1."""
    names = tuple(str(leaf) for leaf in range(size))
    return nested("number", np.arange(size, dtype=np.float64), [(np.arange(size, dtype=np.int32), names)])


@dataclass(frozen=True)
class Series:
    """The private truth behind a history: who has which raw values and which value, and who is where."""

    points: np.ndarray  # (people, attributes) raw codes
    value: np.ndarray  # (people,) permanent sensitive value
    member: np.ndarray  # (releases, people) class of every person, -1 when absent
    boxes: tuple[tuple[np.ndarray, np.ndarray], ...]  # per release lo, hi (attributes, classes)
    values: int
    sizes: tuple[int, ...]

    def history(self, *, k: int = 2, c: Fraction | float = Fraction(1, 2), known: bool = True) -> History:
        """The history an auditor builds; `known=False` is the outsider's view, without people."""
        bound = Fraction(c).limit_denominator(1000)
        history = History(
            attribute="s",
            values=tuple("abcdefghijklmnopqrstuvwxyz"[: self.values]),
            k=k,
            bounds=(bound,) * self.values,
            domains=tuple(axis(size) for size in self.sizes),
            quasi_names=tuple(f"q{index}" for index in range(len(self.sizes))),
            links=np.ones(len(self.sizes), np.bool_),
            people=tuple(range(len(self.value))) if known else (),
        )
        for release in range(len(self.member)):
            history = history.extend(self.publication(release, known=known))
        return history

    def publication(self, release: int, *, known: bool = True) -> Publication:
        lo, hi = self.boxes[release]
        member = self.member[release]
        present = np.flatnonzero(member >= 0)
        counts = np.zeros((lo.shape[1], self.values), np.int64)
        np.add.at(counts, (member[present], self.value[present]), 1)
        return Publication(
            name=f"r{release + 1}",
            lo=lo,
            hi=hi,
            counts=counts,
            row_class=member[present].astype(np.int32),
            row_value=self.value[present].astype(np.int32),
            member=member.astype(np.int32) if known else None,
            value=np.where(member >= 0, self.value, -1).astype(np.int32) if known else None,
        )


def of_partitions(partitions: list[list[list[int]]], value: str, *, points: list[list[int]] | None = None) -> Series:
    """A series written as in the literature: [[[0, 1], [2, 3]], [[0, 1, 4], [2, 3, 5]]] and 'abcabc'.

    Without raw values everybody is at her own point of one attribute and boxes are tight around the classes.
    """
    people = len(value)
    raw = np.array(points if points is not None else [[person] for person in range(people)], np.int32)
    codes = np.array(["abcdefghijklmnopqrstuvwxyz".index(letter) for letter in value], np.int32)
    member = np.full((len(partitions), people), -1, np.int32)
    boxes = []
    for release, classes in enumerate(partitions):
        lo = np.empty((raw.shape[1], len(classes)), np.int32)
        hi = np.empty_like(lo)
        for number, persons in enumerate(classes):
            member[release, persons] = number
            lo[:, number], hi[:, number] = raw[persons].min(axis=0), raw[persons].max(axis=0)
        boxes.append((lo, hi))
    return Series(raw, codes, member, tuple(boxes), int(codes.max()) + 1, tuple((raw.max(axis=0) + 1).tolist()))


@st.composite
def series(
    draw: st.DrawFn,
    *,
    releases: tuple[int, int] = (2, 3),
    people: tuple[int, int] = (2, 7),
    values: tuple[int, int] = (2, 3),
    deletions: bool = True,
    global_recoding: bool | None = None,
    attributes: tuple[int, int] = (1, 2),
) -> Series:
    """Random people, presence, values, and classes.

    Global recoding cuts every attribute into intervals that all records share; local recoding groups records at
    will and publishes tight boxes, possibly widened. Without deletions people only join.
    """
    count = draw(st.integers(*people))
    number = draw(st.integers(*releases))
    kinds = draw(st.integers(*values))
    width = draw(st.integers(*attributes))
    leaves = 4
    points = np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, leaves - 1), min_size=width, max_size=width), min_size=count, max_size=count
            )
        ),
        np.int32,
    ).reshape(count, width)
    value = np.array(draw(st.lists(st.integers(0, kinds - 1), min_size=count, max_size=count)), np.int32)
    by_cuts = draw(st.booleans()) if global_recoding is None else global_recoding
    present = _presence(draw, count, number, deletions=deletions)
    member = np.full((number, count), -1, np.int32)
    boxes = []
    for release in range(number):
        here = np.flatnonzero(present[release])
        if by_cuts:
            lo, hi, classes = _cut(draw, points, here, leaves)
        else:
            lo, hi, classes = _group(draw, points, here, leaves)
        member[release, here] = classes
        boxes.append((lo, hi))
    return Series(points, value, member, tuple(boxes), kinds, (leaves,) * width)


def _presence(draw: st.DrawFn, count: int, number: int, *, deletions: bool) -> np.ndarray:
    joined = draw(st.lists(st.integers(0, number - 1), min_size=count, max_size=count))
    present = np.array([[release >= first for first in joined] for release in range(number)])
    if deletions:
        gone = draw(st.lists(st.integers(1, number + 2), min_size=count, max_size=count))
        present &= np.array([[release < last for last in gone] for release in range(number)])
    for release in range(number):
        if not present[release].any():
            present[release:, 0] = True
    return present


def _cut(
    draw: st.DrawFn, points: np.ndarray, here: np.ndarray, leaves: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first = np.empty((points.shape[1], leaves), np.int32)
    last = np.empty_like(first)
    for attribute in range(points.shape[1]):
        cuts = draw(st.sets(st.integers(1, leaves - 1)))
        edges = [0, *sorted(cuts), leaves]
        for low, high in pairwise(edges):
            first[attribute, low:high], last[attribute, low:high] = low, high - 1
    keys = [tuple(first[range(points.shape[1]), points[person]].tolist()) for person in here]
    distinct = sorted(set(keys))
    classes = np.array([distinct.index(key) for key in keys], np.int32)
    lo = np.array(distinct, np.int32).reshape(-1, points.shape[1]).T.copy()
    hi = np.array([last[a, lo[a]] for a in range(points.shape[1])], np.int32)
    return lo, hi, classes


def _group(
    draw: st.DrawFn, points: np.ndarray, here: np.ndarray, leaves: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    labels = draw(st.lists(st.integers(0, 2), min_size=len(here), max_size=len(here)))
    distinct = sorted(set(labels))
    classes = np.array([distinct.index(label) for label in labels], np.int32)
    lo = np.array([points[here[classes == number]].min(axis=0) for number in range(len(distinct))], np.int32).T.copy()
    hi = np.array([points[here[classes == number]].max(axis=0) for number in range(len(distinct))], np.int32).T.copy()
    if draw(st.booleans()):
        hi[0] = np.minimum(hi[0] + 1, leaves - 1)
    return lo, hi, classes


def certain_pairs(history: History, first: int, second: int) -> set[tuple[int, int]]:
    """Pairs of classes of two releases that somebody is in, whoever has which row, by trying everything.

    Nobody left, if that can be; else nobody joined, if that can be; else nothing is certain.
    """
    near = set(zip(*(side.tolist() for side in history.compatible(first, second)), strict=True))
    one, other = (history.releases[number].counts for number in (first, second))
    for flip in (False, True):
        rows, places = (other, one) if flip else (one, other)
        found: set[tuple[int, int]] | None = set()
        for value in range(len(history.values)):
            fits = near if not flip else {(b, a) for a, b in near}
            worlds = _worlds(_each(rows[:, value]), _each(places[:, value]), fits)
            if not worlds:
                found = None
                break
            assert found is not None
            found |= frozenset.intersection(*worlds)
        if found is not None:
            return {(b, a) for a, b in found} if flip else found
    return set()


def _each(counts: np.ndarray) -> list[int]:
    return np.repeat(np.arange(len(counts)), counts).tolist()


def _worlds(rows: list[int], free: list[int], near: set[tuple[int, int]]) -> set[frozenset[tuple[int, int]]]:
    """All ways to give every row a place, as the pairs of classes that are used."""
    if not rows:
        return {frozenset()}
    found = set()
    for place in set(free):
        if (rows[0], place) in near:
            rest = free.copy()
            rest.remove(place)
            found |= {world | {(rows[0], place)} for world in _worlds(rows[1:], rest, near)}
    return found
