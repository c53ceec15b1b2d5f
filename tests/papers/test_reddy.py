"""Reddy, Raju and Valli Kumari, personalized incremental dissemination: Tables 1 to 9, and what they need corrected.

The taxonomies are not printed (Figure 3 is a drawing); these agree with every value that Tables 7 to 9 publish.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from experiments.reddy_scores import (
    Linking,
    SubsetRule,
    gain_of_release,
    linking,
    pick,
    score,
    sensitive_gain,
    subsets,
)

import sequester as sq
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_tree
from sequester.guarantees.anonymity import KAnonymity
from sequester.guarantees.confidence import Confidence
from sequester.guarantees.requirement import Protected, Requirement
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.cluster.subset import choose, refine
from sequester.metrics.gain import quasi_gain, quasi_loss

TABLE_1 = """
P01 | Professor   | Female | 21 | Preschool    | HIV
P02 | Teacher     | Male   | 48 | HS-Grad      | Tuberculosis
P03 | Lawyer      | Female | 26 | Bachelors    | Pneumonia
P04 | Police      | Female | 31 | Some-college | Gastritis
P05 | Engineer    | Male   | 24 | Doctorate    | Flu
P06 | Surveyor    | Male   | 35 | Bachelors    | Pyrexia
P07 | Philosopher | Female | 22 | Doctorate    | HIV
P08 | Clergy      | Male   | 41 | HS-Grad      | Pneumonia
"""
# The clusters; Table 4 has the same rows, and Table 2 those of Table 1.
TABLE_3 = """
Professor   | Female | 21 | Preschool    | HIV          | 0
Lawyer      | Female | 26 | Bachelors    | Pneumonia    | 0
Engineer    | Male   | 24 | Doctorate    | Flu          | 0
Philosopher | Female | 22 | Doctorate    | HIV          | 0
Police      | Female | 31 | Some-college | Gastritis    | 1
Surveyor    | Male   | 35 | Bachelors    | Pyrexia      | 1
Teacher     | Male   | 48 | HS-Grad      | Tuberculosis | 2
Clergy      | Male   | 41 | HS-Grad      | Pneumonia    | 2
"""
TABLE_5 = """
Job                         | 0.63 | 0.29
Gender                      | 0.56 | 0.36
Age                         | 0.59 | 0.32
Education                   | 0.64 | 0.23
Job, Gender                 | 0.65 | 0.25
Job, Age                    | 0.69 | 0.40
Job, Education              | 0.68 | 0.41
Gender, Age                 | 0.71 | 0.39
Gender, Education           | 0.74 | 0.35
Age, Education              | 0.73 | 0.31
Job, Gender, Age            | 0.87 | 0.30
Job, Gender, Education      | 0.82 | 0.23
Job, Age, Education         | 0.80 | 0.31
Gender, Age, Education      | 0.84 | 0.36
Job, Gender, Age, Education | 0.88 | 0.40
"""
HIGHLY_SENSITIVE = {"HIV", "Tuberculosis", "Pneumonia", "Gastritis"}  # Table 6
# Printed as `Hs-Grad` in one row of Table 9.
TABLE_7 = """
Any job | Female | 21-22 | Preschool | Disease
Any job | Person | 24-26 | Bachelors | Respiratory system disease
Any job | Person | 24-26 | Doctorate | Flu
Any job | Female | 21-22 | Doctorate | Disease
"""
TABLE_8 = """
Police   | Person | 31-35 | Some-college | Stomach related disease
Surveyor | Person | 31-35 | Bachelors    | Pyrexia
"""
TABLE_9 = """
Any job | Male | 41-48 | HS-Grad | Lung related disease
Any job | Male | 41-48 | HS-Grad | Respiratory system disease
"""
ANONYMIZED = [TABLE_7, TABLE_8, TABLE_9]
NAMES = ("Job", "Gender", "Age", "Education")
CHOSEN = (("Job", "Gender", "Age"), ("Gender", "Age"), ("Job", "Age"))

TREES: dict[str, Any] = {
    "Job": {
        "Any job": {
            "Teaching": ["Professor", "Teacher"],
            "Law": ["Lawyer", "Police"],
            "Building": ["Engineer", "Surveyor"],
            "Thought": ["Philosopher", "Clergy"],
        }
    },
    "Gender": {"Person": ["Female", "Male"]},
    "Education": {
        "Any education": {"School": ["Preschool", "HS-Grad"], "College": ["Some-college", "Bachelors", "Doctorate"]}
    },
    "Disease": {
        "Disease": [
            "HIV",
            {"Lung related disease": ["Tuberculosis", "Bronchitis"]},
            {"Respiratory system disease": ["Pneumonia", "Flu"]},
            {"Stomach related disease": ["Gastritis", "Dyspepsia"]},
            "Pyrexia",
        ]
    },
}
AGES = (17, 90)  # Table 10
JOB, GENDER, EDUCATION, DISEASE = (from_tree(TREES[name]) for name in ("Job", "Gender", "Education", "Disease"))
DOMAINS = (JOB, GENDER, from_numbers(np.empty(0), range=AGES), EDUCATION)


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


def encoded(name: str, cells: list[str]) -> list[int]:
    if name == "Age":
        return [int(cell) - AGES[0] for cell in cells]
    domain = {"Job": JOB, "Gender": GENDER, "Education": EDUCATION, "Disease": DISEASE}[name]
    return [domain.labels[cell][0] for cell in cells]


COLUMNS = list(zip(*rows(TABLE_3), strict=True))
CODES = np.array([encoded(name, list(column)) for name, column in zip(NAMES, COLUMNS, strict=False)], np.int32)
ILLNESS = np.array([encoded("Disease", list(COLUMNS[4]))], np.int32)
CLUSTER = np.array(COLUMNS[5], np.int32)
LO = np.column_stack([CODES[:, c == CLUSTER].min(axis=1) for c in range(3)])
HI = np.column_stack([CODES[:, c == CLUSTER].max(axis=1) for c in range(3)])
GAINS, LOSSES = (np.array([float(row[place]) for row in rows(TABLE_5)])[:, None] for place in (1, 2))
PRINTED = [tuple(row[0].split(", ")) for row in rows(TABLE_5)]


def mask(*chosen: tuple[str, ...]) -> np.ndarray:
    return np.array([[name in names for names in chosen] for name in NAMES])


def published_diseases() -> tuple[np.ndarray, np.ndarray]:
    """What Tables 7 to 9 publish in place of each disease, in the order of Table 3."""
    names = [row[-1] for table in ANONYMIZED for row in rows(table)]
    ends = np.array([DISEASE.labels["*" if name == "Disease" else name] for name in names], np.int32).T
    return ends[:1], ends[1:]


def requirement(*, confidence: float | None = None) -> Requirement:
    bounds = () if confidence is None else (Confidence.uniform(confidence, DISEASE.size),)
    return Requirement(KAnonymity(2), None, (Protected("Disease", DISEASE, bounds),))


def measured(text: str, *names: str) -> sq.Measurement:
    """The table as anyone would measure it, by these quasi-identifiers."""
    kinds = {name: {"hierarchy": TREES[name]} if name in TREES else {"kind": "number", "range": AGES} for name in names}
    attributes = {name: {"role": "quasi-identifier", **kind} for name, kind in kinds.items()}
    policy = sq.Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "person": "row",
            "attributes": attributes | {"Disease": {"role": "sensitive"}},
            "protect": {"k": 2},
        }
    )
    columns = dict(zip((*NAMES, "Disease"), zip(*rows(text), strict=True), strict=True))
    return sq.measure(pa.table({name: list(columns[name]) for name in (*names, "Disease")}), policy)


def test_table_3_is_table_1_in_clusters():
    assert sorted(row[1:] for row in rows(TABLE_1)) == sorted(row[:-1] for row in rows(TABLE_3))
    assert np.bincount(CLUSTER).tolist() == [4, 2, 2]


@pytest.mark.parametrize("cluster", [0, 1, 2])
def test_tables_7_to_9_publish_the_lowest_common_value_of_rows_that_agree_on_the_subset(cluster):
    """Of pairs of rows: Table 7 has two of them, so its subset is not generalized to what the whole cluster shares."""
    table = rows(ANONYMIZED[cluster])
    places = [NAMES.index(name) for name in CHOSEN[cluster]]
    for shared in {tuple(row[place] for place in places) for row in table}:
        pair = [i for i, row in enumerate(table) if tuple(row[place] for place in places) == shared]
        assert len(pair) == 2
        for place, cell in zip(places, shared, strict=True):
            codes = CODES[place][cluster == CLUSTER][pair]
            if NAMES[place] == "Age":
                assert cell == f"{codes.min() + AGES[0]}-{codes.max() + AGES[0]}"
                continue
            domain = DOMAINS[place]
            around = [(a, b) for a, b in domain.group_names if a <= codes.min() and codes.max() <= b]
            assert domain.labels[cell] == min(around, key=lambda ends: ends[1] - ends[0])


def test_table_6_highly_sensitive_values_are_published_one_step_up():
    low, high = published_diseases()
    for code, lo, hi, name in zip(ILLNESS[0].tolist(), low[0].tolist(), high[0].tolist(), COLUMNS[4], strict=True):
        above = [(a, b) for a, b in DISEASE.group_names if a <= code <= b and a < b]
        expected = min(above, key=lambda ends: ends[1] - ends[0]) if name in HIGHLY_SENSITIVE else (code, code)
        assert (lo, hi) == expected


def test_equation_3_gains_nothing_at_a_leaf_and_everything_at_the_root():
    low, high = published_diseases()
    found = sensitive_gain(low, high, (DISEASE,))[0]
    expected = [1, 2 / 11, 0, 1, 2 / 11, 0, 2 / 11, 2 / 11]
    assert found == pytest.approx(expected)
    nodes_below_the_root = len(DISEASE.group_names) - 1
    assert nodes_below_the_root == 11
    # As printed the root, whose number of descendants is N_T, gains more than everything.
    assert nodes_below_the_root / (nodes_below_the_root - 1) > 1


def test_equations_2_and_4_of_the_first_cluster():
    """Job from Professor to Philosopher, both genders, 21 to 26, Preschool to Doctorate."""
    assert quasi_gain(LO, HI, DOMAINS)[:, 0] == pytest.approx([6 / 7, 1, 5 / 73, 1])
    assert quasi_loss(LO, HI, DOMAINS)[:, 0] == pytest.approx([1, 1, 5 / 73, 1])


def test_table_5_a_threshold_gives_the_paper_s_choice():
    assert [PRINTED[i] for i in pick(GAINS, LOSSES, SubsetRule(threshold=0.85))] == [("Job", "Gender", "Age")]
    assert [PRINTED[i] for i in pick(GAINS, LOSSES, SubsetRule(threshold=0.9))] == [NAMES]


@pytest.mark.parametrize(
    "balance",
    [lambda gain, loss: gain - loss, lambda gain, loss: gain / loss, lambda gain, loss: gain * (1 - loss)],
    ids=["difference", "ratio", "product"],
)
def test_table_5_no_plain_balance_gives_the_paper_s_choice(balance):
    assert PRINTED[int(np.argmax(balance(GAINS, LOSSES)))] == ("Job", "Gender", "Education")
    assert [PRINTED[i] for i in pick(GAINS, LOSSES, SubsetRule(weight=0.5))] == [("Job", "Gender", "Education")]


@pytest.mark.parametrize(
    ("ratio", "chosen"),
    [
        (1.39, ("Job", "Gender", "Education")),
        (1.4, ("Job", "Gender", "Age")),  # a tie, and the first of two
        (1.41, ("Job", "Gender", "Age")),
        (5, ("Job", "Gender", "Age")),
        (9.99, ("Job", "Gender", "Age")),
        (10, ("Job", "Gender", "Age")),  # a tie, and the smaller of two
        (10.01, NAMES),
    ],
)
def test_table_5_gain_must_count_1_4_to_10_times_as_much_as_loss(ratio, chosen):
    assert [PRINTED[i] for i in pick(GAINS, LOSSES, SubsetRule(weight=ratio / (1 + ratio)))] == [chosen]


def test_table_5_lists_the_power_set_in_our_order():
    assert [tuple(np.array(NAMES)[row].tolist()) for row in subsets(4)] == PRINTED


@pytest.mark.parametrize("over", ["all", "subset"])
def test_table_5_is_no_average_of_what_its_attributes_gain_and_lose(over):
    """Whatever equations 2 and 4 divide by, the scores of one attribute do not make those of several."""
    scale = 4 if over == "all" else 1
    for printed in (GAINS, LOSSES):
        found = score(printed[:4] * scale, printed[:4] * scale, over=over)[0]
        assert found[:4] == pytest.approx(printed[:4])
        assert np.abs(found - printed)[4:].max() > 0.1


@pytest.mark.parametrize(("cluster", "k"), [(0, 1), (1, 1), (2, 2)])
def test_tables_7_and_8_are_anonymous_on_the_subset_and_not_on_the_quasi_identifier(cluster, k):
    assert measured(ANONYMIZED[cluster], *CHOSEN[cluster]).k == 2
    whole = measured(ANONYMIZED[cluster], *NAMES)
    assert whole.k == k
    assert whole.holds == (k == 2)
    if k == 1:
        assert whole.classes == whole.records


@pytest.mark.parametrize("confidence", [None, 0.5])
def test_refined_clusters_are_2_anonymous_on_the_quasi_identifier(confidence):
    required = requirement(confidence=confidence)
    classes = refine(CODES, DOMAINS, ClassGuard.of(required, ILLNESS), CLUSTER, LO, HI, mask(*CHOSEN))
    assert all(outcome.holds for outcome in required.check(classes.member, ILLNESS))
    boxes = np.vstack([classes.lo, classes.hi])[:, classes.member]
    assert np.unique(boxes, axis=1, return_counts=True)[1].min() == 2
    # The first cluster is cut on education, which it does not generalize: two doctorates, and two who are below.
    assert classes.member.tolist()[:4] == [0, 0, 1, 1]
    education = [
        (EDUCATION.leaves[lo], EDUCATION.leaves[hi]) for lo, hi in zip(classes.lo[3], classes.hi[3], strict=True)
    ]
    assert education == [
        ("Preschool", "Bachelors"),
        ("Doctorate", "Doctorate"),
        ("Some-college", "Bachelors"),
        ("HS-Grad", "HS-Grad"),
    ]
    assert np.array_equal(classes.lo[:3, :2], LO[:3, [0, 0]])
    assert np.array_equal(classes.hi[:3, :2], HI[:3, [0, 0]])


@pytest.mark.parametrize(
    "rule",
    [
        {"gain": 0.85},
        {"gain": 0.5},
        {"weight": 0.5},
        {"weight": 0.9},
    ],
    ids=str,
)
def test_from_clusters_to_classes_with_the_subset_chosen_here(rule):
    required = requirement(confidence=0.5)
    chosen = choose(LO, HI, DOMAINS, **rule)
    classes = refine(CODES, DOMAINS, ClassGuard.of(required, ILLNESS), CLUSTER, LO, HI, chosen)
    assert chosen.any(axis=0).all()
    assert all(outcome.holds for outcome in required.check(classes.member, ILLNESS))


def test_equation_1_links_a_value_to_a_box_and_as_printed_calls_every_rare_value_linked():
    classes = refine(CODES, DOMAINS, ClassGuard.of(requirement(), ILLNESS), CLUSTER, LO, HI, mask(*CHOSEN))
    low, high = published_diseases()
    value = low[0] * DISEASE.size + high[0]
    # Everybody is as likely to have one published value as the other; Flu, which one person has, is in one box.
    assert linking(classes.member, classes.lo, classes.hi, value) == Linking(probability=0.5, tracing=1.0)
    alone = np.arange(8)
    assert linking(alone, CODES, CODES, value).probability == 1.0


def test_properties_1_and_2_gains_stay_within_one_and_cost_what_they_bring():
    required = requirement()
    guard = ClassGuard.of(required, ILLNESS)
    published = (*published_diseases(), (DISEASE,))
    found = []
    for chosen in (np.zeros((4, 3), bool), mask(*CHOSEN), np.ones((4, 3), bool)):
        classes = refine(CODES, DOMAINS, guard, CLUSTER, LO, HI, chosen)
        found.append(gain_of_release(classes.member, (classes.lo, classes.hi, DOMAINS), published))
    for gain in found:
        assert all(0 <= value <= 1 for value in gain.to_dict().values())
        assert gain.sensitive_gain == pytest.approx((2 + 4 * 2 / 11) / 8)
        assert gain.combined(0.5) == pytest.approx((gain.quasi_gain + gain.sensitive_gain) / 2)
    # The more attributes keep the range of the cluster, the more is hidden, and the more is lost.
    assert [gain.quasi_gain for gain in found] == sorted(gain.quasi_gain for gain in found)
    assert [gain.quasi_loss for gain in found] == sorted(gain.quasi_loss for gain in found)
    assert found[0].quasi_loss < found[1].quasi_loss < found[2].quasi_loss
