"""Lineages against the plainest search: whoever shares a pod with somebody of a lineage is of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.history.seats import Seats

releases = st.integers(1, 9).flatmap(
    lambda people: st.lists(st.lists(st.integers(-1, 4), min_size=people, max_size=people), min_size=0, max_size=4).map(
        lambda pods: (people, pods)
    )
)


@settings(deadline=None)
@given(releases)
def test_lineages_are_everybody_linked_through_pods(given: tuple[int, list[list[int]]]) -> None:
    people, pods = given
    nothing = np.zeros(people, np.int32)
    seats = Seats(nothing.astype(np.bool_), nothing, nothing, tuple(np.array(pod, np.int32) for pod in pods))
    wanted = [-1] * people
    for number, start in enumerate(range(people)):
        stack = [start] if wanted[start] < 0 else []
        while stack:
            person = stack.pop()
            wanted[person] = number
            stack += [
                other
                for pod in pods
                for other in range(people)
                if pod[person] >= 0 and pod[other] == pod[person] and wanted[other] < 0
            ]
    order = {number: place for place, number in enumerate(dict.fromkeys(wanted))}
    assert seats.lineages().tolist() == [order[number] for number in wanted]
