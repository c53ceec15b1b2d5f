"""What other decoys would buy is found on a part of a large table that has everybody's partners."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sequester.history.seats import Seats
from sequester.methods.pods.frontier import with_partners
from sequester.methods.pods.task import LabelBounds, PodTask


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_whoever_was_in_a_pod_with_somebody_who_is_looked_at_is_looked_at_too(pods: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    pod = np.repeat(np.arange(pods, dtype=np.int32), 2)
    pod[draw.random(len(pod)) < 0.2] = -1
    none = np.zeros(len(pod), np.int32)
    before = Seats(np.zeros(len(pod), np.bool_), none, none, (pod,))
    person = np.append(draw.permutation(len(pod))[: max(1, len(pod) - 2)], [-1, -1])
    codes = np.zeros((1, len(person)), np.int32)
    bounds = LabelBounds(np.zeros((0, 1), np.int32), ())
    task = PodTask(codes, (), codes[0], bounds, person, before, none, k=2)
    rows = np.sort(draw.choice(len(person), size=draw.integers(1, len(person) + 1), replace=False))
    found = with_partners(task, rows)
    own = {int(pod[person[row]]) for row in rows if person[row] >= 0} - {-1}
    wanted = {int(row) for row in rows} | {
        row for row, one in enumerate(person.tolist()) if one >= 0 and int(pod[one]) in own
    }
    assert set(found.tolist()) == wanted
