"""Company: as many rows as are promised of what is inferred can be a label's own, now and after any more releases."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from pods import HALF, Panel, Story, classes, company, is_world, panels, shifted, wrong
from seated import seated
from sequester.attacks import tracing
from sequester.attacks.pods import check_pods
from sequester.methods.pods import make as maker
from sequester.methods.pods.classes.company import labels_of, spared
from worlds import Knowledge, TooMany

often = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32)


@st.composite
def demanding(draw: st.DrawFn, *, people: tuple[int, int], releases: tuple[int, int]) -> Panel:
    """Panels of which more is asked than pods keep by themselves."""
    panel = draw(panels(people=people, releases=releases, blind=False))
    return replace(panel, inferred=draw(st.integers(3, 6)))


@settings(max_examples=60, deadline=None)
@given(demanding(people=(1, 30), releases=(1, 4)))
def test_every_label_of_every_class_has_company_and_pods_are_whole(panel: Panel) -> None:
    story = panel.publish()
    assert wrong(story) == []
    for rows in classes(story):
        assert min(company(rows).values()) >= panel.inferred
    for lineage in story.lineages():
        assert is_world(story, shifted(story, lineage, 1))
    event(f"larger pods: {any(len(labels) >= panel.inferred for labels in story.types().values())}")


@settings(max_examples=60, deadline=None)
@given(demanding(people=(1, 40), releases=(1, 4)))
def test_classes_of_many_people_have_company_too(panel: Panel) -> None:
    with patch.object(maker, "MANY", 0):
        story = panel.publish()
    assert wrong(story) == []
    for rows in classes(story):
        assert min(company(rows).values()) >= panel.inferred


@settings(max_examples=40, deadline=None)
@given(demanding(people=(2, 7), releases=(2, 3)))
def test_no_row_has_fewer_owners_in_all_worlds_than_it_has_company(panel: Panel) -> None:
    story = panel.publish()
    # Decoys for company can be many, and the ways to hand out more rows than this are too many to look at.
    assume(max(map(len, story.releases)) <= 8)
    try:
        owners = Knowledge(story.published(), 2_000).owners()
    except TooMany:
        assume(False)
    assert min(map(len, owners.values())) >= panel.inferred


@often
@given(seeds, st.integers(2, 3))
def test_company_that_an_audit_claims_is_never_more_than_the_owners_in_all_worlds(seed: int, releases: int) -> None:
    case = seated(Random(seed), releases=releases, most=5)
    histories, rows = case.read()
    history = histories[0] if rows is None else rows.people
    witness = check_pods(histories, rows, case.seats(histories[0].people))
    assert witness is not None
    claimed = int(witness.owners(history).min())
    try:
        fewest = Knowledge(case.published(), 1_000).fewest_owners()
    except TooMany:
        assume(False)
    assert claimed <= fewest
    found = tracing.ATTACK.by_pods(replace(history, inferred=claimed), witness, 0)
    assert found is not None
    assert found.findings == []
    assert found.measure is not None
    assert claimed <= found.measure <= fewest or found.measure <= witness.fewest


@often
@given(seeds)
def test_what_company_proves_of_a_release_later_ones_do_not_change(seed: int) -> None:
    case = seated(Random(seed), releases=3)
    first = replace(case, releases=case.releases[:2], pods=case.pods[:2])
    found = []
    for one in (first, case):
        histories, rows = one.read()
        witness = check_pods(histories, rows, one.seats(histories[0].people))
        assert witness is not None
        # Which number a label has depends on all releases.
        found.append(witness.owners((histories[0] if rows is None else rows.people).until(2)) if one is first else
                     replace(witness, seats=witness.seats.until(2)).owners(
                         (histories[0] if rows is None else rows.people).until(2)))  # fmt: skip
    assert sorted(found[0].tolist()) == sorted(found[1].tolist())


def test_rows_with_company_are_not_looked_at_by_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(tracing, "find", lambda history, **more: asked.append(history.fewest))
    for seed in range(40):
        case = seated(Random(seed), releases=2)
        histories, rows = case.read()
        history = histories[0] if rows is None else rows.people
        witness = check_pods(histories, rows, case.seats(histories[0].people))
        assert witness is not None
        enough = int(witness.owners(history).min())
        tracing.ATTACK.by_pods(replace(history, inferred=enough), witness, 0)
        assert asked == []
        tracing.ATTACK.by_pods(replace(history, inferred=enough + 1), witness, 0)
        assert asked == [enough + 1]
        asked.clear()


def test_decoys_stay_where_a_label_would_lose_its_company() -> None:
    """Three couples a:b and one of decoys: with six rows asked for it can go, with eight it cannot."""
    pod = np.repeat(np.arange(4), 2)
    label, member = np.tile([0, 1], 4), np.zeros(8, np.int64)
    idle = pod == 3
    assert spared(member, pod, label, idle, 6).tolist() == idle.tolist()
    assert not spared(member, pod, label, idle, 8).any()


def test_a_label_that_a_pod_has_twice_is_counted_once() -> None:
    found = labels_of(np.array([0, 0, 0, 1, 1]), np.array([2, 2, 0, 1, 1]))
    assert found.tolist() == [[0, 2], [1, -1]]


def _settling(present: list[list[int]]) -> Story:
    """Thirty people in a row with three values in turn, of whom some are in each table; five are asked for."""
    panel = Panel(
        k=2,
        labels=(("a",), ("b",), ("c",)),
        shares=(dict.fromkeys("abc", HALF),),
        label=tuple(who % 3 for who in range(30)),
        present=tuple(map(tuple, present)),
        places=tuple(tuple((who % 16, 0) for who in range(30)) for _ in present),
        inferred=5,
    )
    return panel.publish()


def _large(story: Story, release: int) -> bool:
    """Whether everybody who is new in a release has a type of five seats and more."""
    before = {row.who for rows in story.releases[:release] for row in rows}
    types = story.types()
    return all(len(types[row.kind]) >= 5 for row in story.releases[release] if row.who not in before)


def test_newcomers_share_large_pods_where_nobody_left() -> None:
    story = _settling([list(range(15)), list(range(30))])
    assert not _large(story, 0)
    assert _large(story, 1)
    assert wrong(story) == []


def test_newcomers_share_couples_where_people_leave() -> None:
    assert not _large(_settling([list(range(15)), list(range(5, 30))]), 1)


def test_a_release_that_nobody_left_does_not_make_up_for_one_that_many_did() -> None:
    assert not _large(_settling([list(range(10)), list(range(5, 15)), list(range(5, 30))]), 2)
