"""The insider's audit of a growing Adult, and of many releases of a million people whose trajectories certify."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks import adult
from benchmarks.figures import Figure
from benchmarks.timing import medians, seconds
from sequester.attacks.audit import audit_histories
from sequester.history import History, Trajectories
from sequester.methods.mondrian.cut import mondrian

K, C = 5, 0.7
PEOPLE, GROUPS, RELEASES, ROUNDS = 1_000_000, 20_000, 20, 3


def run() -> list[Figure]:
    """Two releases, six releases, and the cost of one more release among twenty."""
    data = adult.load().take(np.random.default_rng(1).permutation(30_162)[:30_000].astype(np.int64))
    two = _history(data, [20_000, 30_000])
    six = _history(data, [5_000 * step for step in range(1, 7)])
    policy = adult.policy(data.names, k=K, confidence=C)
    audit_histories([two], policy, against=["insider"])
    taken_two, found = seconds(lambda: audit_histories([two], policy, against=["insider"]))
    taken_six, six_found = seconds(lambda: audit_histories([six], policy, against=["insider"]))
    notes = [f"{len(audit.findings)} findings" for audit in (found, six_found)]
    return [
        Figure("insider audit, 20,000 then 30,000 rows", taken_two, "s", at_most=2.0, note=notes[0]),
        Figure("insider audit, six releases of 5,000 to 30,000", taken_six, "s", at_most=10.0, note=notes[1]),
        *_many(),
    ]


def _history(data: adult.Adult, sizes: list[int]) -> History:
    history = data.history(sizes[-1], k=K, confidence=C)
    for size in sizes:
        part = data.take(np.arange(size))
        classes = mondrian(part.codes, part.domains, part.guard(k=K, confidence=C))
        history = adult.publish(part.past(history), classes)
    return history


def _many() -> list[Figure]:
    """Twenty releases in which classes only merge: extending the history against one group-by over the members."""
    random = np.random.default_rng(2)
    start = random.integers(0, GROUPS, PEOPLE).astype(np.int32)
    group = medians(5, group=lambda: np.unique(start, return_counts=True))["group"]
    # The quickest of a few rounds: what else the machine does only ever adds.
    times = np.min([_extend_often(start) for _ in range(ROUNDS)], axis=0)
    return [
        Figure(
            "one more of 20 releases of 1,000,000 people / one group-by", float(np.median(times)) / group, at_most=5.0
        ),
        Figure("release 20 / release 3", float(np.mean(times[-3:]) / np.mean(times[1:4])), at_most=1.5),
    ]


def _extend_often(member: NDArray[np.int32]) -> list[float]:
    times, trajectories = [], Trajectories.none(PEOPLE)
    for _ in range(RELEASES):
        taken, trajectories = seconds(lambda: trajectories.extend(member, GROUPS))  # noqa: B023 - called at once
        times.append(taken)
        member = _merge(member)
    assert int(trajectories.size.min()) >= K
    return times


def _merge(member: NDArray[np.int32]) -> NDArray[np.int32]:
    return (member // 2 * 2).astype(np.int32)
