"""Pods as their definition has them, whoever comes, leaves and returns: nobody waits, nobody else is there."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pods import HALF, Panel, Story, is_world, panels, shifted, wrong
from sequester.domain.tree import from_values
from sequester.errors import GuaranteeError
from sequester.history.seats import Seats
from sequester.methods.pods.make import make
from sequester.methods.pods.seated import _idle
from sequester.methods.pods.task import LabelBounds, PodTask

THIRD = Fraction(1, 3)


def check(story: Story) -> None:
    assert wrong(story) == []
    for lineage in story.lineages():
        for by in range(1, 4):
            assert is_world(story, shifted(story, lineage, by))


@settings(max_examples=120, deadline=None)
@given(panels(people=(1, 14), releases=(1, 5), blind=False))
def test_pods_are_whole_in_every_release(panel: Panel) -> None:
    check(panel.publish())


@settings(max_examples=120, deadline=None)
@given(panels(people=(1, 14), releases=(1, 5), blind=True))
def test_blind_pods_are_whole_in_every_release(panel: Panel) -> None:
    check(panel.publish())


@settings(max_examples=40, deadline=None)
@given(panels(people=(20, 40), releases=(2, 3)))
def test_pods_of_more_people_are_whole(panel: Panel) -> None:
    check(panel.publish())


def test_decoys_whom_people_left_for_each_other_are_dropped_where_a_class_has_enough_rows() -> None:
    member = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
    pod = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    real = np.array([1, 1, 0, 0, 0, 0, 1, 1, 0, 0], np.bool_)
    assert _idle(member, pod, real, 2).tolist() == [False, False, True, True, True, True, False, False, True, True]
    assert _idle(member, pod, real, 4).tolist() == [False, False, True, True, False, False, False, False, False, False]


@settings(max_examples=50, deadline=None)
@given(panels(people=(2, 10), releases=(2, 3)))
def test_the_same_seed_makes_the_same_pods(panel: Panel) -> None:
    one, other = panel.publish(), panel.publish()
    assert one.releases == other.releases
    for first, second in zip(one.series.made, other.series.made, strict=True):
        assert np.array_equal(first.lo, second.lo)
        assert np.array_equal(first.hi, second.hi)


BLIND = pytest.mark.parametrize("blind", [False, True], ids=["pods", "blind pods"])


def panel_of(
    label: str, present: list[list[int]], *, values: str = "ab", k: int = 2, blind: bool, **more: object
) -> Panel:
    """People in a row, 0 at place 0, with these values, every value bounded by one half."""
    return Panel(
        k=k,
        labels=tuple((value,) for value in values),
        shares=(dict.fromkeys(values, HALF),),
        label=tuple(values.index(value) for value in label),
        present=tuple(map(tuple, present)),
        places=tuple(tuple((who % 16, 0) for who in range(len(label))) for _ in present),
        blind=blind,
    )


@BLIND
def test_everybody_has_one_value_and_decoys_another(blind: bool) -> None:
    story = panel_of("aaaaa", [[0, 1, 2, 3, 4], [0, 2, 4]], blind=blind).publish()
    check(story)
    assert [len(rows) for rows in story.releases] == [10, 6]


@BLIND
@pytest.mark.parametrize("k", [2, 3, 5])
def test_one_person_alone(blind: bool, k: int) -> None:
    story = panel_of("b", [[0], [0]], k=k, values="abc", blind=blind).publish()
    check(story)
    assert all(k <= len(rows) <= k + 1 for rows in story.releases)


@BLIND
def test_fewer_values_than_seats_are_refused(blind: bool) -> None:
    panel = panel_of("aa", [[0, 1]], values="a", blind=blind)
    with pytest.raises(GuaranteeError, match="fewer different values"):
        panel.publish()


@BLIND
def test_everybody_leaves_and_others_come_and_everybody_returns(blind: bool) -> None:
    story = panel_of(
        "aabbabcd", [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3], list(range(8))], values="abcd", blind=blind
    ).publish()
    check(story)


def test_a_value_that_needs_few_seats_sits_with_those_that_need_more() -> None:
    """For a, two seats would be enough, but everybody whom it could sit with needs three; she comes alone, too."""
    panel = Panel(
        k=2,
        labels=(("a",), ("b",), ("c",)),
        shares=({"a": HALF, "b": THIRD, "c": THIRD},),
        label=(0, 1),
        present=((0,), (0, 1), (0,)),
        places=(((0, 0), (0, 0)),) * 3,
    )
    check(panel.publish())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([None, HALF, THIRD, Fraction(1, 4), Fraction(2, 3)]), min_size=1, max_size=6))
def test_fewest_seats_are_those_of_the_smallest_pod_there_is(shares: list[Fraction | None]) -> None:
    labels = range(len(shares))
    bounds = LabelBounds(
        np.array([[-1 if share is None else number for number, share in enumerate(shares)]], np.int32),
        (tuple(share or Fraction(1) for share in shares),),
    )
    needs = bounds.needs()
    free = None in shares
    for label, seats in enumerate(bounds.seats().tolist()):
        pods = [
            size
            for size in range(1, 7)
            if needs[label] <= size and (free or sum(needs[other] <= size for other in labels) >= size)
        ]
        assert seats == (1 if shares[label] is None else min(pods, default=needs.max()))


@settings(max_examples=100, deadline=None)
@given(panels(people=(2, 10), releases=(1, 3), columns=False, capped=False))
def test_no_partner_has_a_label_that_she_cannot_have(panel: Panel) -> None:
    """Every second person cannot have the last value but one; enough others are left."""
    out = len(panel.labels) - 2
    if len(panel.labels) - 2 < max(map(panel.seats_needed, range(len(panel.labels)))):
        return
    barred = frozenset((who, out) for who in range(0, len(panel.label), 2) if panel.label[who] != out)
    check(replace(panel, barred=barred).publish())


@settings(max_examples=100, deadline=None)
@given(panels(people=(2, 14), releases=(1, 1), seats=(2,), columns=False, capped=False))
def test_no_fewer_decoys_than_the_commonest_value_needs(panel: Panel) -> None:
    story = panel.publish()
    for label in range(len(panel.labels)):
        having = sum(panel.label[who] == label for who in panel.present[0])
        (share,) = (shares.get(cell) for shares, cell in zip(panel.shares, panel.labels[label], strict=True))
        if share is not None:
            assert len(story.releases[0]) >= having / share


@pytest.mark.parametrize(("share", "decoys"), [(Fraction(1, 2), 40), (Fraction(2, 3), 0)])
def test_two_of_three_may_have_one_label_where_that_takes_fewer_decoys(share: Fraction, decoys: int) -> None:
    people = 120
    label = np.where(np.arange(people) % 3 < 2, 0, 1).astype(np.int32)
    task = PodTask(
        codes=np.random.default_rng(3).integers(0, 9, (2, people)).astype(np.int32),
        domains=(from_values(["0", "1", "2", "3", "4", "5", "6", "7", "8"]),) * 2,
        label=label,
        bounds=LabelBounds(np.array([[0, 1]], np.int32), ((share, share),)),
        person=np.full(people, -1, np.int64),
        before=Seats.none(),
        label_before=np.zeros(0, np.int32),
        k=3,
        decoys=0.0,
    )
    made = make(task)
    assert len(made.decoy_label) == decoys
    for pod in range(int(made.pod.max()) + 1):
        rows = np.flatnonzero(made.pod == pod)
        labels = np.append(label, made.decoy_label)[rows]
        assert sorted(made.seat[rows].tolist()) == list(range(len(rows)))
        assert np.bincount(labels).max() <= share * len(rows)
