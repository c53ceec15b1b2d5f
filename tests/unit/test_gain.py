"""Gain and loss of Reddy et al.: every formula at its ends, and against trees written down as sets of leaves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from experiments.reddy_scores import (
    Gain,
    Linking,
    gain_of_release,
    gains_by_cluster,
    linking,
    sensitive_gain,
    sensitive_loss,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.code import from_codes
from sequester.domain.kinds.date import from_dates
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_tree, from_values
from sequester.metrics.gain import mean, quasi_gain, quasi_loss
from strategies import hierarchies

# Nine nodes below the root, over leaves of depth 1, 2 and 3.
LUNG = {"Lung": ["Tuberculosis", {"Infection": ["Pneumonia", "Bronchitis"]}]}
DISEASE = from_tree({"Disease": ["HIV", LUNG, {"Stomach": ["Gastritis", "Ulcer"]}]})
BELOW = {"HIV": 0, "Tuberculosis": 0, "Infection": 2, "Lung": 4, "Stomach": 2, "*": 9}
STEPS = {"HIV": 0, "Tuberculosis": 0, "Infection": 1, "Lung": 2, "Stomach": 1, "*": 3}


def ends(domain: Hierarchy, *intervals: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, list[Hierarchy]]:
    lo, hi = np.array(intervals, np.int32).reshape(-1, 2).T
    return lo[None, :], hi[None, :], [domain]


def single_value(kind: str) -> Hierarchy:
    return {
        "number": from_numbers(np.array([7.0])),
        "date": from_dates(np.array(["2020-02-01"], "datetime64[D]")),
        "category": from_values(["x"]),
        "code": from_codes(["021"], length=3),
    }[kind]


def nodes(domain: Hierarchy) -> set[frozenset[int]]:
    """The tree as sets of leaves."""
    return {frozenset(range(lo, hi + 1)) for lo, hi in domain.group_names}


def height(tree: set[frozenset[int]], node: frozenset[int]) -> int:
    return max((1 + height(tree, other) for other in tree if other < node), default=0)


def test_gain_of_a_number_is_its_share_of_the_range_and_not_of_the_leaves():
    domain = from_numbers(np.array([10.0, 20.0, 60.0]))
    assert quasi_gain(*ends(domain, (0, 0), (0, 1), (1, 2), (0, 2))).tolist() == [[0, 0.2, 0.8, 1]]


def test_gain_of_a_date_is_its_share_of_the_days():
    domain = from_dates(np.array(["2020-01-01", "2020-01-02", "2020-01-11"], "datetime64[D]"))
    assert quasi_gain(*ends(domain, (0, 1), (0, 2))).tolist() == [[0.1, 1]]


@pytest.mark.parametrize("domain", [from_values("abcde"), from_codes(["11", "12", "21", "22", "31"], length=2)])
def test_gain_of_a_category_or_code_counts_leaves(domain):
    assert quasi_gain(*ends(domain, (3, 3), (1, 2), (0, 4))).tolist() == [[0, 0.25, 1]]


def test_a_range_with_a_missing_number_gains_and_loses_everything_and_no_more():
    domain = from_numbers(np.array([0.0, 10.0]), missing=True)
    assert quasi_gain(*ends(domain, (0, 2), (1, 2), (2, 2))).tolist() == [[1, 1, 0]]
    assert quasi_loss(*ends(domain, (0, 2), (1, 2), (2, 2))).tolist() == [[1, 1, 0]]


@pytest.mark.parametrize("kind", ["number", "date", "category", "code"])
def test_a_domain_of_one_value_neither_gains_nor_loses(kind):
    side = ends(single_value(kind), (0, 0))
    assert quasi_gain(*side).tolist() == quasi_loss(*side).tolist() == [[0]]
    if kind == "category":
        assert sensitive_gain(*side).tolist() == sensitive_loss(*side).tolist() == [[0]]


def test_lambda_divides_the_gain_and_may_not_be_below_one():
    side = ends(from_values("abcde"), (0, 4), (0, 2))
    assert quasi_gain(*side, lambda_1=2).tolist() == [[0.5, 0.25]]
    for wrong in (0.99, 0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="lambda_1"):
            quasi_gain(*side, lambda_1=wrong)


def test_a_flat_tree_loses_everything_above_the_leaf():
    gender = from_tree({"Person": ["Female", "Male"]})
    assert quasi_loss(*ends(gender, (0, 0), (1, 1), (0, 1))).tolist() == [[0, 0, 1]]
    assert sensitive_loss(*ends(gender, (0, 0), (0, 1))).tolist() == [[0, 1]]
    assert sensitive_gain(*ends(gender, (0, 0), (0, 1))).tolist() == [[0, 1]]


def test_loss_of_a_number_is_its_width_without_levels_and_a_step_of_its_tree_with_them():
    plain = from_numbers(np.empty(0), range=(0, 8))
    banded = from_numbers(np.empty(0), range=(0, 7), levels=[2, 4])
    assert quasi_loss(*ends(plain, (0, 0), (0, 2), (0, 8))).tolist() == [[0, 0.25, 1]]
    # 1 to 2 is no band: the lowest band around it is 0 to 3.
    assert quasi_loss(*ends(banded, (0, 0), (0, 1), (1, 2), (0, 3), (3, 4))).tolist() == [[0, 1 / 3, 2 / 3, 2 / 3, 1]]


def test_an_interval_of_categories_that_is_no_group_loses_what_the_group_around_it_loses():
    # Tuberculosis and Pneumonia, Bronchitis and Gastritis.
    assert quasi_loss(*ends(DISEASE, (1, 2), (3, 4))).tolist() == [[2 / 3, 1]]


@pytest.mark.parametrize("name", list(BELOW))
def test_a_node_of_an_unbalanced_tree_counts_its_own_edges_and_descendants(name):
    side = ends(DISEASE, DISEASE.labels[name])
    assert sensitive_gain(*side).tolist() == [[BELOW[name] / 9]]
    assert sensitive_loss(*side).tolist() == quasi_loss(*side).tolist() == [[STEPS[name] / 3]]


@pytest.mark.parametrize("score", [sensitive_gain, sensitive_loss])
def test_a_sensitive_value_must_be_a_node(score):
    with pytest.raises(ValueError, match="2 published sensitive values are no nodes"):
        score(*ends(DISEASE, (0, 0), (1, 2), (0, 5), (2, 5)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_gain_and_loss_are_those_of_the_tree_as_sets_of_leaves(data):
    domain = data.draw(hierarchies(most_levels=4))
    lo = data.draw(st.integers(0, domain.size - 1))
    hi = data.draw(st.integers(lo, domain.size - 1))
    tree = nodes(domain)
    leaves, root = frozenset(range(lo, hi + 1)), frozenset(range(domain.size))
    around = min((node for node in tree if leaves <= node), key=len)
    plain = domain.kind in ("number", "date") and domain.height <= 1
    width = min(domain.position[hi] - domain.position[lo], 1)
    climbed = width if plain else height(tree, around) / max(height(tree, root), 1)
    assert quasi_loss(*ends(domain, (lo, hi)))[0, 0] == pytest.approx(climbed)
    span = width if domain.kind in ("number", "date") else (len(leaves) - 1) / max(len(root) - 1, 1)
    assert quasi_gain(*ends(domain, (lo, hi)))[0, 0] == pytest.approx(span)
    if leaves in tree:
        below = sum(node < leaves for node in tree) / max(len(tree) - 1, 1)
        assert sensitive_gain(*ends(domain, (lo, hi)))[0, 0] == pytest.approx(below)
        assert sensitive_loss(*ends(domain, (lo, hi)))[0, 0] == pytest.approx(
            height(tree, leaves) / max(height(tree, root), 1)
        )
    else:
        with pytest.raises(ValueError, match="no nodes"):
            sensitive_gain(*ends(domain, (lo, hi)))


def test_mean_is_over_all_attributes_or_over_a_subset_of_each_class():
    scores = np.array([[0.2, 1.0], [0.4, 0.0], [0.9, 0.5]])
    assert mean(scores).tolist() == pytest.approx([0.5, 0.5])
    assert mean(scores, np.array([True, False, True])).tolist() == pytest.approx([0.55, 0.75])
    own = np.array([[True, False], [True, False], [False, False]])
    assert mean(scores, own).tolist() == pytest.approx([0.3, 0])


def release() -> tuple[np.ndarray, tuple, tuple]:
    """Three classes over an age and a gender; the last record is left out."""
    age, gender = from_numbers(np.empty(0), range=(0, 10)), from_tree({"Person": ["Female", "Male"]})
    lo, hi = np.array([[0, 5, 4], [0, 1, 0]], np.int32), np.array([[5, 5, 6], [1, 1, 0]], np.int32)
    member = np.array([0, 0, 1, 2, 2, 2, -1], np.int32)
    names = ["Lung", "HIV", "*", "Infection", "Gastritis", "Stomach", "*"]
    nodes_of = np.array([DISEASE.labels[name] for name in names], np.int32).T
    return member, (lo, hi, (age, gender)), (nodes_of[:1], nodes_of[1:], (DISEASE,))


def close(number: float) -> Any:
    return pytest.approx(number)


def test_gains_of_clusters_average_over_their_records():
    member, quasi, sensitive = release()
    first, second = gains_by_cluster(member, quasi, sensitive, cluster=np.array([0, 0, 1]))
    assert first == Gain(
        quasi_gain=close((2 * (0.5 + 1) / 2 + 0) / 3),
        quasi_loss=close((2 * (0.5 + 1) / 2 + 0) / 3),
        sensitive_gain=close((4 / 9 + 0 + 1) / 3),
        sensitive_loss=close((2 / 3 + 0 + 1) / 3),
    )
    assert second == Gain(close(0.2 / 2), close(0.2 / 2), close((2 + 0 + 2) / 9 / 3), close(2 / 9))
    assert len(gains_by_cluster(member, quasi, sensitive)) == 3


def test_gain_of_a_release_counts_records_and_one_left_out_as_hidden_and_lost():
    member, quasi, sensitive = release()
    found = gain_of_release(member, quasi, sensitive)
    clusters = gains_by_cluster(member, quasi, sensitive)
    for name, value in found.to_dict().items():
        assert value == pytest.approx(
            (sum(n * getattr(g, name) for n, g in zip((2, 1, 3), clusters, strict=True)) + 1) / 7
        )
    halved = gain_of_release(member, quasi, sensitive, lambda_1=2)
    assert halved.quasi_gain - 1 / 7 == pytest.approx((found.quasi_gain - 1 / 7) / 2)
    assert halved.quasi_loss == found.quasi_loss


def test_gain_of_nobody_is_nothing_and_of_nobody_published_is_everything():
    _, (lo, hi, domains), (low, high, taxonomy) = release()
    none = (lo[:, :0], hi[:, :0], domains)
    nobody = gain_of_release(np.zeros(0, np.int32), none, (low[:, :0], high[:, :0], taxonomy))
    assert set(nobody.to_dict().values()) == {0}
    hidden = gain_of_release(np.full(2, -1), none, (low[:, :2], high[:, :2], taxonomy))
    assert set(hidden.to_dict().values()) == {1}
    assert gains_by_cluster(np.array([-1]), (lo, hi, domains), (low[:, :1], high[:, :1], taxonomy))[0] == Gain(
        0, 0, 0, 0
    )


def test_combined_gain_stays_within_one():
    gain = Gain(0.4, 0.1, 1.0, 0.9)
    assert [gain.combined(weight) for weight in (0, 0.5, 1)] == pytest.approx([1.0, 0.7, 0.4])
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            gain.combined(wrong)


def test_linking_divides_by_the_box_and_tracing_by_the_value():
    lo, hi = np.array([[0, 2, 0]]), np.array([[1, 3, 1]])
    member = np.array([0, 0, 0, 1, 1, 2, -1])
    value = np.array([5, 5, 9, 9, 3, 5, 3])
    # The first and the last class have one box: 3 of its 4 records are a 5, and no 5 is elsewhere.
    assert linking(member, lo, hi, value) == Linking(0.75, 1.0)
    assert linking(np.array([-1]), lo, hi, value[:1]).to_dict() == {"probability": 0.0, "tracing": 0.0}


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=15),
    st.lists(st.integers(0, 1), min_size=4, max_size=4),
)
def test_linking_equals_its_definition(rows, sides):
    member, value = np.array(rows).T
    lo = np.array([sides])
    found = linking(member, lo, lo, value)
    published = [(sides[m], v) for m, v in rows if m >= 0]
    together, boxes, values = Counter(published), Counter(q for q, _ in published), Counter(a for _, a in published)
    assert found.probability == pytest.approx(max((n / boxes[q] for (q, _), n in together.items()), default=0))
    assert found.tracing == pytest.approx(max((n / values[a] for (_, a), n in together.items()), default=0))
