"""Corrected people who would leave and come back as others in one release: every world of tiny series.

Whoever knows the people of the raw table sees that they are the same, and so that a cell of theirs was corrected: their
two values differ, or, where it was another cell, are one. No audit that takes them for different people counts that.
Published as they were, they are one person in every release, and there is nothing to count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import pytest

Release = Sequence[tuple[Sequence[str], str]]
"""Its classes: who is in each, and the values it shows."""
World = Mapping[str, str]


def worlds(releases: Sequence[Release], *, differ: str = "", same: str = "") -> list[World]:
    """Who has which value, in every world: a class gives its values to its people, and everybody keeps hers.

    The names of corrected people are capitals when they are back: `differ` are known to have another value then, and
    `same` to have the old one.
    """

    def go(classes: Sequence[tuple[Sequence[str], str]], known: dict[str, str]) -> Iterator[dict[str, str]]:
        if not classes:
            yield known
            return
        people, values = classes[0]
        for way in sorted(set(permutations(values))):
            now = dict(zip(people, way, strict=True))
            if all(known.get(person, value) == value for person, value in now.items()):
                yield from go(classes[1:], known | now)

    every = go([one for release in releases for one in release], {})
    return [
        world
        for world in every
        if all(world[one] != world[one.upper()] for one in differ) and all(world[p] == world[p.upper()] for p in same)
    ]


def certain(found: Sequence[World]) -> set[str]:
    """Whose value is the same in all worlds."""
    assert found
    return {person for person in found[0] if len({world[person] for world in found}) == 1}


def test_whoever_comes_back_as_another_with_the_same_value_is_certain() -> None:
    """The smallest: two people and one who is new. p's age was corrected, and her value was not."""
    releases = [[("pq", "ab")], [("Pn", "ac")]]
    assert not certain(worlds(releases))
    assert certain(worlds(releases, same="p")) == {"p", "q", "P", "n"}


def test_with_corrected_values_four_people_make_even_somebody_who_was_not_corrected_certain() -> None:
    """p, q and r were corrected, a set in which no value has more than 2/3; s is who she was."""
    releases = [[("pr", "ab"), ("qs", "ab")], [("sR", "ba"), ("PQ", "bc")]]
    assert not certain(worlds(releases))
    assert certain(worlds(releases, differ="pqr")) == {"p", "q", "r", "s", "R"}


def test_two_who_share_their_values_out_are_told_with_more_than_one_half() -> None:
    """Nobody is certain, but of equally likely worlds two in three say the same of p."""
    releases = [[("pq", "ab")], [("Pn", "ac")]]
    found = worlds(releases, differ="p")
    assert not certain(found)
    assert [world["p"] for world in found].count("b") / len(found) == pytest.approx(2 / 3)


def test_whoever_is_published_as_she_was_is_in_as_many_worlds_as_without_a_correction() -> None:
    """Kept, p stays p: what the releases leave possible does not depend on what was corrected."""
    kept = [[("pr", "ab"), ("qs", "ab")], [("ps", "ab"), ("qr", "ab")]]
    assert not certain(worlds(kept))
    assert len(worlds(kept)) == 2
