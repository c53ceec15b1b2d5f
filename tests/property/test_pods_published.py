"""Random panels published by pods, against every world that they leave; decoys are occupants like people."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st

import sequester as sq
from judged import MOST
from podded import KEY, SEED, check_certificate, check_people, labels_of, state_of
from sequester.errors import GuaranteeError
from tiny import Story, column_of, random_story
from worlds import Class, Knowledge, Published, TooMany

seldom = settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


def told(seed: int) -> Story:
    """Two or three tables of a few people; everything but combinations, which have a column of their own."""
    return replace(random_story(Random(seed), "pods"), combine="each", against=["insider"])


@seldom
@given(seed=st.integers(0, 2**64 - 1))
def test_nobody_is_exposed_and_nobody_waits(seed: int) -> None:
    story = told(seed)
    with tempfile.TemporaryDirectory() as name:
        series = sq.Series.open(Path(name) / "tiny.ledger", story.policy, key=KEY)
        for at, table in enumerate(story.tables()):
            try:
                release = series.publish(table, name=f"r{at}", seed=SEED + at, everybody_is_new=True, again=True)
            except GuaranteeError as error:
                event(f"refused: {error.guarantee}")
                if error.guarantee != "confidence":
                    raise
                return
            check_people(release, story.present[at])
        assert series.audit().holds
        state = state_of(series)
    check_certificate(state, story.policy)
    labels = labels_of(state, story.policy)
    releases = []
    for at in range(len(state.releases)):
        member = state.path[state.trajectory, at]
        classes = [[who for who in range(state.people) if member[who] == one] for one in range(member.max() + 1)]
        releases.append(tuple(Class(tuple(map(str, one)), tuple(labels[who] for who in one)) for one in classes))
    names = [*story.policy.sensitive, *story.policy.lasting]
    columns = tuple(
        column_of(story.columns[column], story.confidence, {label[at] for label in labels})
        for at, column in enumerate(names)
    )
    try:
        known = Knowledge(Published(columns, tuple(releases)), MOST)
        fewest, deniable = known.fewest_owners(), known.deniable()
    except TooMany:
        assume(False)
    assert fewest >= story.k
    assert deniable
    assert state.seats is not None
    event(f"decoys: {bool(state.seats.decoy.any())}")
