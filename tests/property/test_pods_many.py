"""Pods of many people are made by other loops; forced upon few people, these keep everything that pods promise."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from benchmarks.pods_panels import Panel as Table
from benchmarks.pods_panels import Published, Wave, coming_and_going, publish
from hypothesis import given, settings
from hypothesis import strategies as st

from pods import HALF, Panel, Story, is_world, panels, shifted, wrong
from sequester.domain.kinds.number import from_numbers
from sequester.methods.pods import make as maker
from sequester.methods.pods.classes import cut_kernels, share_kernels
from sequester.methods.pods.pairing import quick


def published(panel: Panel, *, kept: bool = True) -> Story:
    with patch.object(maker, "MANY", 0), patch.object(maker, "_ANEW", 0 if kept else 60_000):
        return panel.publish()


def check(story: Story) -> None:
    assert wrong(story) == []
    for lineage in story.lineages():
        for by in range(1, 4):
            assert is_world(story, shifted(story, lineage, by))


@settings(max_examples=60, deadline=None)
@given(panels(people=(1, 14), releases=(1, 5), blind=False), st.booleans())
def test_pods_are_whole_in_every_release(panel: Panel, kept: bool) -> None:
    check(published(panel, kept=kept))


@settings(max_examples=30, deadline=None)
@given(panels(people=(20, 60), releases=(2, 4), blind=False, seats=(2,)))
def test_pods_of_more_people_are_whole(panel: Panel) -> None:
    check(published(panel))


@settings(max_examples=80, deadline=None)
@given(panels(people=(2, 14), releases=(1, 3), blind=False, columns=False, capped=False))
def test_no_partner_has_a_label_that_she_cannot_have(panel: Panel) -> None:
    """Every second person cannot have the last value but one; enough others are left."""
    out = len(panel.labels) - 2
    if len(panel.labels) - 2 < max(map(panel.seats_needed, range(len(panel.labels)))):
        return
    barred = frozenset((who, out) for who in range(0, len(panel.label), 2) if panel.label[who] != out)
    check(published(replace(panel, barred=barred)))


def table(people: int, values: int, releases: int, seed: int) -> Table:
    """People who come and go, and their values; the first is frequent."""
    random, waves = np.random.default_rng(seed), list(coming_and_going(people, 0.25, releases))
    ever = int(max(wave.max() for wave in waves)) + 1
    codes = random.integers(0, 40, (3, ever)).astype(np.int32)
    cells = np.minimum(random.geometric(0.4, (1, ever)) - 1, values - 1).astype(np.int32)
    return Table(tuple(Wave(who, codes[:, who], cells[:, who]) for who in waves), (from_numbers(np.arange(40.0)),) * 3)


def series(panel: Table, *, threads: int = 2, **options: object) -> Published:
    """In parts as small as there are, so that threads and windows have something to do."""
    small = [(quick, 50), (cut_kernels, 40), (share_kernels, 128)]
    with ExitStack() as patched:
        for module, part in small:
            patched.enter_context(patch.object(module, "_PART", part))
        for name in ("MANY", "_ANEW"):
            patched.enter_context(patch.object(maker, name, 0))
        patched.enter_context(patch.object(os, "cpu_count", lambda: threads))
        return publish(panel, confidence=HALF, **options)  # type: ignore[arg-type]


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from([None, 2, 4, 8]),
    st.sampled_from([0.0, 0.02, 0.2]),
    st.integers(2, 12),
)
def test_the_witness_of_many_pods_holds_within_the_budget_and_the_cap(
    seed: int, lineage: int | None, decoys: float, k: int
) -> None:
    made = series(table(600, 6, 4, seed), decoys=decoys, lineage=lineage, k=k)
    assert made.problems() == 0
    assert lineage is None or made.steps[-1].largest <= lineage
    if lineage is None and decoys > 0.1:
        assert made.decoys <= decoys


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 99))
def test_the_number_of_threads_changes_nothing(seed: int) -> None:
    panel = table(800, 6, 3, seed)
    one, other = series(panel, threads=1, decoys=0.02), series(panel, threads=3, decoys=0.02)
    for first, second in zip(one.series.made, other.series.made, strict=True):
        assert np.array_equal(first.member, second.member)
        assert np.array_equal(first.pod, second.pod)
        assert np.array_equal(first.lo, second.lo)


def test_a_value_that_nearly_half_have_leaves_nobody_alone() -> None:
    """Others would pair among themselves, were they not asked to leave it to those with the frequent value."""
    panel = table(1000, 6, 1, 1)
    (wave,) = panel.waves
    cells = np.where(np.arange(1000) % 100 < 49, 0, 1 + wave.cells % 5).astype(np.int32)
    made = series(Table((replace(wave, cells=cells),), panel.domains), decoys=0.0)
    assert made.decoys == 0
