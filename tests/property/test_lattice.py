"""The search of a lattice finds the cheapest node, whatever the costs, and judges no node twice."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sequester.methods.full_domain.lattice import Node, NodeCost, cheapest

often = settings(max_examples=150, deadline=None)

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def lattices(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Base costs that never fall upwards, bounds of extra costs that never fall downwards, and the true extra costs.

    Whole numbers, so that sums are exact. The true extra costs are at least the bounds, and infinite where a node is
    not allowed: everywhere below some nodes, which the bounds know, and at some others, which they do not.
    """
    shape = draw(shapes)
    nodes = math.prod(shape)
    # Small steps make many nodes that cost the same or differ by one.
    steps = st.lists(st.integers(0, draw(st.sampled_from([1, 4]))), min_size=nodes, max_size=nodes)
    base, extra = (np.array(draw(steps), np.float64).reshape(shape) for _ in range(2))
    surprise = np.array(draw(steps), np.float64).reshape(shape) * draw(st.sampled_from([0, 1]))
    walls = np.array(draw(st.lists(st.integers(0, 14), min_size=nodes, max_size=nodes))).reshape(shape) == 14
    holes = (np.array(draw(steps)).reshape(shape) == 4) & draw(st.booleans())
    if draw(st.integers(0, 9)) == 0:
        walls[tuple(length - 1 for length in shape)] = True
    for axis in range(len(shape)):
        base = np.cumsum(base, axis=axis)
        extra = np.flip(np.cumsum(np.flip(extra, axis), axis=axis), axis)
        walls = np.flip(np.logical_or.accumulate(np.flip(walls, axis), axis=axis), axis)
    extra[walls] = np.inf
    true_extra = extra + surprise
    true_extra[holes] = np.inf
    return base, extra, true_extra


@often
@given(lattices(), st.booleans(), st.booleans(), st.data())
def test_the_cheapest_node_of_all_is_found(lattice, base_known, tells_others, data):
    base, extra, true_extra = lattice
    cost = base + true_extra
    visited: list[Node] = []

    def judge(node: Node) -> NodeCost:
        visited.append(node)
        forbidden = None
        if tells_others and np.isinf(cost[node]):
            forbidden = np.isinf(cost) & (np.indices(base.shape).sum(axis=0) % 2 == len(visited) % 2)
        return NodeCost(float(cost[node]), float(base[node]), float(extra[node]), forbidden)

    found = cheapest(base.shape, judge, base=base if base_known else None)
    best = float(cost.min())
    event(
        "no node is allowed" if best == np.inf else "several cheapest" if (cost == best).sum() > 1 else "one cheapest"
    )
    assert len(visited) == len(set(visited))
    assert all(0 <= level < length for node in visited for level, length in zip(node, base.shape, strict=True))
    if best == np.inf:
        assert found is None
    else:
        assert found is not None
        assert (found.cost, found.judged) == (best, len(visited))
        assert cost[found.node] == best


@often
@given(lattices())
def test_bounds_that_say_nothing_make_the_search_look_everywhere(lattice):
    """A criterion that proves nothing about its neighbours verifies and never prunes."""
    base, _, true_extra = lattice
    cost = base + true_extra
    found = cheapest(base.shape, lambda node: NodeCost(float(cost[node]), 0.0, 0.0))
    best = float(cost.min())
    assert (None if found is None else found.cost) == (None if best == np.inf else best)
    # Nothing can be ruled out but by a cost of nothing.
    assert found is None or best == 0 or found.judged == cost.size


@often
@given(lattices())
def test_the_callers_base_costs_are_left_as_they_were(lattice):
    base, extra, true_extra = lattice
    before = base.copy()
    cheapest(base.shape, lambda n: NodeCost(float((base + true_extra)[n]), float(base[n]), float(extra[n])), base=base)
    assert np.array_equal(base, before)


def test_one_node_on_top_of_a_forbidden_lattice_is_found_in_few_looks():
    """Pruning works: with a wall under the top, one look at a node decides all nodes below it."""
    shape = (5, 5, 5)
    top = (4, 4, 4)
    base = np.indices(shape).sum(axis=0).astype(float)

    def judge(node: Node) -> NodeCost:
        allowed = node == top
        return NodeCost(float(base[node]) if allowed else np.inf, float(base[node]), 0.0 if allowed else np.inf)

    found = cheapest(shape, judge, base=base)
    assert found is not None
    assert found.node == top
    assert found.judged < base.size / 4
