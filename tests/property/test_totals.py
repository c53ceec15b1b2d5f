"""Totals known from elsewhere: the program against worlds in which people and decoys of every release have theirs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from seated import Seated, seated
from sequester.attacks.registry import Knowledge as Knows
from worlds import CLEAR, Class, Group, Knowledge, Label, Published, Relaxed, Share, TooMany

TOTALS = Knows(totals=True)


def of_decoys(world: dict[Group, Share]) -> Counter[tuple[int, Label]]:
    """What decoys show, per release."""
    return Counter(
        {
            (number, label): sum(
                count
                for (_, person), share in world.items()
                for lives, count in share.items()
                if not person and lives[number] == label
            )
            for number, label in {
                (number, label)
                for share in world.values()
                for lives in share
                for number, label in enumerate(lives)
                if label is not None
            }
        }
    )


def told(case: Seated) -> Published:
    """The releases, and each once more as two classes: people, and decoys."""
    published = case.published()
    more = []
    for release in case.releases:
        here = [person for one in release for person in one]
        parts = [[p for p in here if p not in case.decoys], [p for p in here if p in case.decoys]]
        more.append(tuple(Class(tuple(part), tuple(case.label[p] for p in part)) for part in parts if part))
    return replace(published, releases=(*published.releases, *more))


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_whoever_knows_the_totals_is_left_with_the_worlds_that_have_them(seed: int) -> None:
    case = seated(Random(seed), releases=2, most=4)
    try:
        known, more = Knowledge(case.published(), 500), Knowledge(told(case), 500)
    except TooMany:
        assume(False)
    truth = +Counter(
        (number, case.label[p]) for number, r in enumerate(case.releases) for one in r for p in one if p in case.decoys
    )
    fitting = [world for world in known.worlds if +of_decoys(world) == truth]
    assert len(fitting) == len(more.worlds)
    event(f"totals tell something: {len(fitting) < len(known.worlds)}")


@given(st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_totals_are_found_to_tell_what_the_program_says(seed: int) -> None:
    case = seated(Random(seed), most=5)
    found = case.audit(seats=True, against=(), knowledge=TOTALS)
    strain = Relaxed(told(case)).strain()
    tied = [finding for finding in found.findings if finding.attack == "deniability"]
    assert bool(tied) == (strain > 1 + CLEAR)
    for finding in tied:
        assert finding.people
        assert not case.decoys & set(finding.people)
        assert all(1 <= number <= len(case.releases) for number in finding.releases)
        assert found.explain(found.findings.index(finding) + 1)
    if "deniability" in found.measures:
        # The pods' own measure is that of people and decoys alike.
        alone = case.audit(seats=True).measures["deniability"]
        assert found.measures["deniability"] == pytest.approx(
            max(alone, min(1.0, strain * float(case.bound))), abs=1e-6
        )
    event(f"tied: {bool(tied)}")


def test_a_lone_widow_is_known_by_the_totals() -> None:
    """Alice has a and her partner is a decoy: whoever knows that one person has a, and nobody b, knows alice."""
    case = Seated(
        columns=("s",),
        bound=Fraction(1, 2),
        k=2,
        inferred=2,
        label={"alice": ("a",), "nobody": ("b",)},
        releases=[[["alice", "nobody"]], [["alice", "nobody"]]],
        type={"alice": 0, "nobody": 0},
        seat={"alice": 0, "nobody": 1},
        pods=[{"alice": 0, "nobody": 0}, {"alice": 0, "nobody": 0}],
        decoys=frozenset({"nobody"}),
    )
    assert case.audit(seats=True).holds
    found = case.audit(seats=True, against=(), knowledge=TOTALS)
    (finding,) = [finding for finding in found.findings if finding.attack == "deniability"]
    assert finding.people == ("alice",)
    assert (finding.value, finding.observed) == ("a", 1.0)
    assert "the true totals" in found.explain(found.findings.index(finding) + 1)
