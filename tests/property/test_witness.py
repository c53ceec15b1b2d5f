"""Pods as a witness: accepted exactly where the definition says so, and then no attack says otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from seated import CORRUPTIONS, Seated, corrupted, seated
from sequester.attacks.attack import Audited
from sequester.attacks.audit import Audit
from sequester.attacks.pods import REFUSED, PodProof, check_pods
from sequester.attacks.registry import attack_of
from sequester.history.seats import Seats
from worlds import CLEAR, Knowledge, TooMany

often = settings(max_examples=80, deadline=None)
seeds = st.integers(0, 2**32)
INSIDER = ("difference", "tracing", "deniability")


def judged(case: Seated) -> PodProof:
    histories, rows = case.read()
    found = check_pods(histories, rows, case.seats(histories[0].people))
    assert found is not None
    return found


@often
@given(seeds)
def test_a_witness_is_accepted_and_what_it_says_is_so_in_all_worlds(seed: int) -> None:
    case = seated(Random(seed))
    assert case.proves()
    found = judged(case)
    assert found.holds, found
    shifts = list(case.shifts())
    assert all(case.is_world(world) for world in shifts)
    chances = Counter(
        (person, answer) for world in shifts for person in world for answer in case.answers(world[person])
    )
    assert max(chances.values(), default=0) / len(shifts) == pytest.approx(found.share)
    assert found.strain == pytest.approx(found.share / float(case.bound))
    sizes = Counter((number, pod) for number, pods in enumerate(case.pods) for pod in pods.values())
    assert found.fewest == min(sizes.values())
    asked = [
        sizes[n, pod] for n, pods in enumerate(case.pods) for p, pod in pods.items() if case.answers(case.label[p])
    ]
    # A pod has a value with a bound where one of its members has.
    assert found.bounded == min(asked, default=None)
    # More people have more worlds than anybody looks at.
    event(f"worlds enumerated: {len(case.type) <= 8}")
    if len(case.type) > 8:
        return
    try:
        known = Knowledge(case.published(), 3_000)
    except TooMany:
        return
    assert known.deniable()
    assert known.fewest_owners() >= found.fewest


@often
@given(seeds, st.integers(1, 2))
def test_owners_that_pods_prove_own_the_row_in_some_world(seed: int, releases: int) -> None:
    case = seated(Random(seed), releases=releases, most=4)
    histories, rows = case.read()
    found = judged(case)
    try:
        owners = Knowledge(case.published(), 300).owners()
    except TooMany:
        assume(False)
    labels = found.labels
    assert labels is not None
    shown = found.owners(histories[0] if rows is None else rows.people)
    assert len(shown) == len(owners)
    at_least = {}
    for row in owners:
        members: dict[int, list[str]] = {}
        for person in case.releases[row[0]][row[1]]:
            members.setdefault(case.pods[row[0]][person], []).append(person)
        sharing = [m for m in members.values() if any(case.label[person] == row[2] for person in m)]
        at_least[row] = sum(map(len, sharing))
        assert at_least[row] <= len(owners[row])
    assert sorted(at_least.values()) == sorted(shown.tolist())


def check_verdict(case: Seated) -> None:
    """With the witness, the insider's attacks expose the same people, and measures promise no more."""
    without, with_ = case.audit(seats=False), case.audit(seats=True)
    assert (REFUSED in with_.notes) == (not case.proves())
    assert without.pods is None
    assert with_.to_dict()["pods"]["holds"] == case.proves()
    assert with_.tried == without.tried
    nobody = case.decoys if case.proves() else frozenset()
    # Measures of rows are exact only below what is asked for.
    exact = replace(case, k=20, inferred=20).audit(seats=False).measures
    for attack in INSIDER:
        findings = [finding for finding in without.findings if finding.attack == attack]
        left = [finding for finding in findings if set(finding.people) - nobody]
        own = [finding for finding in with_.findings if finding.attack == attack]
        exposed = {person for finding in left for person in finding.people} - nobody
        assert exposed == {person for finding in own for person in finding.people}
        assert len(own) == len(left)
        event(f"{attack} found: {bool(own)}")
        if attack in without.measures and len(left) == len(findings):
            one, other = with_.measures[attack], exact[attack]
            assert one <= other + CLEAR if attack_of(attack).smallest else one >= other - CLEAR
    if not case.proves():
        assert with_.measures == without.measures
        # Which rows are decoys only the witness says: a class that would have nobody in it is told, believed or not.
        of_rows = [finding for finding in with_.findings if not (finding.attack == "k" and finding.required == 1)]
        assert of_rows == [*without.findings]


@often
@given(seeds)
def test_with_a_witness_an_audit_says_what_it_says_without(seed: int) -> None:
    case = seated(Random(seed))
    check_verdict(case)
    assert not any(finding.attack == "deniability" for finding in case.audit(seats=False).findings)


@pytest.mark.parametrize("ordinary", [False, True])
@given(seed=seeds)
@settings(max_examples=200, deadline=None)
def test_a_corrupted_witness_is_refused_or_another_one(ordinary: bool, seed: int) -> None:
    random = Random(seed)
    case = seated(random)
    for _ in range(1 + ordinary):
        kind, case = corrupted(random, case)
        event(kind)
    found = judged(case)
    assert found.holds == case.proves(), (kind, found)
    event(f"{kind}: holds {found.holds}")
    if found.holds:
        assert all(case.is_world(world) for world in case.shifts())


@often
@given(seeds)
def test_the_verdict_on_a_corrupted_witness_is_the_one_without(seed: int) -> None:
    random = Random(seed)
    check_verdict(corrupted(random, seated(random, most=5))[1])


def test_every_corruption_is_refused_at_times() -> None:
    """A battery that never bites would say nothing; only numbers of pods and flags of decoys are no proof's concern."""
    refused = set()
    for seed in range(500):
        random = Random(seed)
        kind, case = corrupted(random, seated(random))
        if not judged(case).holds:
            refused.add(kind)
    assert refused == set(CORRUPTIONS) - {"pods renumbered", "a decoy flag"}


@pytest.mark.parametrize("part", ["decoy", "type", "seat", "pods", "label", "releases"])
def test_a_witness_of_another_size_is_refused(part: str) -> None:
    case = seated(Random(3), releases=2)
    histories, rows = case.read()
    own = case.seats(histories[0].people)
    fields: dict[str, Any] = {"decoy": own.decoy, "type": own.type, "seat": own.seat, "pods": own.pods}
    if part == "pods":
        fields["pods"] = (own.pods[0], own.pods[1][:-1])
    elif part == "releases":
        fields["pods"] = own.pods[:1]
    elif part != "label":
        fields[part] = fields[part][:-1]
    else:
        fields["type"] = own.type.astype(np.float64)
    found = check_pods(histories, rows, Seats(**fields))
    assert found is not None
    assert found.problems == {"sizes that do not fit": 1}


def test_problems_are_told_by_numbers_only() -> None:
    random = Random(5)
    case = seated(random)
    spoiled = corrupted(random, case)[1]
    while spoiled.proves():
        spoiled = corrupted(random, case)[1]
    told = repr(judged(spoiled))
    assert not any(f"{person}" in told.split() for person in case.type)
    assert all(isinstance(count, int) and count > 0 for count in judged(spoiled).problems.values())


@often
@given(seeds)
def test_releases_that_were_checked_before_are_not_looked_at_again(seed: int) -> None:
    random = Random(seed)
    case = seated(random, releases=3)
    histories, rows = case.read()
    seats = case.seats(histories[0].people)
    whole, last = (check_pods(histories, rows, seats, before=before) for before in (0, 2))
    assert whole is not None
    assert last is not None
    assert (whole.fewest, whole.bounded, whole.share) == (last.fewest, last.bounded, last.share)
    pods = [dict(own) for own in case.pods]
    spoiled = random.choice(sorted(pods[-1]))
    pods[-1][spoiled] = max(pods[-1].values()) + 1
    broken = replace(case, pods=pods)
    assume(not broken.proves())
    again = check_pods(histories, rows, broken.seats(histories[0].people), before=2)
    assert again is not None
    assert not again.holds


@often
@given(seeds, st.integers(1, 3))
def test_after_an_audit_that_held_the_next_says_what_one_of_everything_says(seed: int, known: int) -> None:
    case = seated(Random(seed), releases=3)
    case = replace(case, k=1, inferred=1) if seed % 2 else case
    first = replace(case, releases=case.releases[:known], pods=case.pods[:known])
    earlier = first.audit(seats=True)
    whole = case.audit(seats=True)
    assume(earlier.holds)
    later = case.audit(seats=True, before=Audited(known, earlier.measures))
    assert later.measures.keys() == whole.measures.keys()
    assert later.holds == whole.holds
    assert later.findings == whole.findings
    for attack, reached in later.measures.items():
        # What pods prove is asked of types that occur, and these only become more.
        assert reached == pytest.approx(whole.measures[attack]) or attack in ("row-order", "tracing", "difference")
        if attack_of(attack).smallest:
            assert reached <= whole.measures[attack] + CLEAR
    event(f"holds: {later.holds}")


@often
@given(seeds)
def test_other_adversaries_attacks_are_tried_as_ever_and_leave_decoys_out(seed: int) -> None:
    case = seated(Random(seed))
    without, with_ = case.audit(seats=False, against=["all"]), case.audit(seats=True, against=["all"])
    assert with_.tried == without.tried

    def told(found: Audit) -> Counter[object]:
        return Counter(
            (f.attack, f.releases, f.classes, f.value, f.observed, left)
            for f in found.findings
            if f.attack not in INSIDER
            for left in [tuple(person for person in f.people if person not in case.decoys)]
            if left or not f.people
        )

    assert told(with_) == told(without)
    for finding in with_.findings:
        assert not case.decoys & set(finding.people)
        event(f"{finding.attack} found")
    assert with_.exposed.total.people == len({person for f in with_.findings for person in f.people})
