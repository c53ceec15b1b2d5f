"""Flows and cuts against the enumeration of all cuts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks.solvers import flow
from sequester.attacks.solvers.flow import INFINITE, max_flow, min_cut

Network = tuple[int, list[tuple[int, int, int]]]


@st.composite
def networks(draw: st.DrawFn, largest: int = 6) -> Network:
    """Nodes 0 (source), 1 (sink) and others; parallel, opposite and looping arcs; now and then one without a limit."""
    nodes = draw(st.integers(2, 6))
    node = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node, st.integers(0, largest)), max_size=14))
    middle = [(tail, head, INFINITE) for tail, head, _ in arcs if tail > 1 and head > 1]
    return nodes, arcs + (draw(st.lists(st.sampled_from(middle), max_size=2)) if middle else [])


def sides(network: Network) -> dict[tuple[bool, ...], int]:
    """Every source side with its cost."""
    nodes, arcs = network
    return {
        (True, False, *rest): sum(
            capacity for tail, head, capacity in arcs if (True, False, *rest)[tail] and not (True, False, *rest)[head]
        )
        for rest in product([False, True], repeat=nodes - 2)
    }


def columns(network: Network) -> tuple[list[int], list[int], list[int]]:
    arcs = network[1]
    return [arc[0] for arc in arcs], [arc[1] for arc in arcs], [arc[2] for arc in arcs]


@pytest.mark.parametrize("limit", [(1 << 30) - 1, 40])
@given(network=networks())
@settings(max_examples=200, deadline=None)
def test_a_flow_is_a_flow_and_as_large_as_the_smallest_cut(network: Network, limit: int) -> None:
    tails, heads, capacities = columns(network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "_LIMIT", limit)
        value, sent = max_flow(tails, heads, capacities, 0, 1)
    assert value == min(sides(network).values())
    assert (sent >= 0).all()
    assert (sent <= np.array(capacities, np.int64)).all()
    for node in range(2, network[0]):
        assert sent[np.array(tails, np.int64) == node].sum() == sent[np.array(heads, np.int64) == node].sum()


@given(network=networks())
@settings(max_examples=200, deadline=None)
def test_the_cut_is_the_smallest_source_side_of_least_cost(network: Network) -> None:
    value, side = min_cut(*columns(network), 0, 1)
    cost = sides(network)
    least = [candidate for candidate, total in cost.items() if total == value]
    found = tuple(side.tolist()) + (False,) * (network[0] - len(side))
    assert value == min(cost.values())
    assert found == tuple(all(column) for column in zip(*least, strict=True))


@given(network=networks(largest=1 << 36))
@settings(max_examples=100, deadline=None)
def test_capacities_beyond_32_bits_are_exact(network: Network) -> None:
    assert max_flow(*columns(network), 0, 1)[0] == min(sides(network).values())


def test_a_path_without_a_limit_is_an_error() -> None:
    with pytest.raises(OverflowError, match="without a limit"):
        max_flow([0, 2], [2, 1], [INFINITE, INFINITE], 0, 1)


def test_a_negative_capacity_is_an_error() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        max_flow([0], [1], [-1], 0, 1)
