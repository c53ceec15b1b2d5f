"""Reddy et al., results: clusters of a table that grows, with consent and graded values, and subsets of attributes.

Time for 100, 200 and 300 clusters (their Figures 4 and 5) and for parts of the people who agree (6 and 7), privacy gain
against information loss (8 and 9) and all subsets of quasi-identifiers (10), on Adult and on a synthetic as they
describe it. They name neither k nor a bound on linking: here k = 5, nobody is tied to a value with more than one half,
every release is made against insiders, and every series is audited for them. Their measures are read as in
`sequester.metrics.gain`. The last table compares clusters with other methods, in the setting of Byun et al.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import adult
from benchmarks.figures import DataMissing
from benchmarks.timing import seconds
from numpy.typing import NDArray

from experiments.reddy_scores import Gain, SubsetRule, choose_by, linking, score, subsets
from experiments.tables import table
from sequester.arrays import row_groups
from sequester.attacks.audit import Audit, audit_histories
from sequester.domain.arx import read_arx
from sequester.domain.build import declared
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.code import from_codes
from sequester.domain.kinds.number import from_numbers
from sequester.domain.nodes import generality, grade
from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement
from sequester.history import History, Past
from sequester.history.sight import sights_of
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.cluster.method import cluster_next, cluster_table
from sequester.methods.cluster.subset import refine
from sequester.methods.grow import grow
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.republish import republish
from sequester.metrics.gain import mean, quasi_gain, quasi_loss
from sequester.metrics.loss import ail
from sequester.policy import Policy
from sequester.policy.methods import Cluster

K, CONFIDENCE, GAIN = 5, 0.5, 0.05
CLUSTERS, CONSENT = (100, 200, 300), (25, 50, 100)
ADULT, SYNTHETIC = (10_000, 20_000, 30_162), (100_000, 200_000)
STEPS = tuple(range(20_000, 30_001, 2_000))
INSIDER = ("insider",)

# Table 10 of the paper, with occupation as the sensitive attribute; high is what few have.
_ADULT_QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
_ADULT_GRADES = {"Armed-Forces": "high", "Priv-house-serv": "high", "Protective-serv": "high"}
# Tables 6 to 9: what is sensitive, and as what it is published.
_DISEASES = {
    "Disease": {
        "Respiratory system disease": ["Pneumonia", "Bronchitis", "Flu"],
        "Lung related disease": ["Tuberculosis", "Asthma"],
        "Stomach related disease": ["Gastritis", "Ulcer", "Dyspepsia"],
        "HIV": None,
        "Pyrexia": None,
    }
}
_DISEASE_GRADES = {"HIV": "high", "Tuberculosis": "high", "Pneumonia": "high", "Gastritis": "high"}
_SHARES = {
    "Flu": 0.2, "Pyrexia": 0.2, "Bronchitis": 0.14, "Dyspepsia": 0.12, "Asthma": 0.1, "Ulcer": 0.08, "Gastritis": 0.06,
    "Pneumonia": 0.05, "Tuberculosis": 0.03, "HIV": 0.02,
}  # fmt: skip

_RULES = (
    *(SubsetRule(threshold=gain) for gain in (0.05, 0.1, 0.2, 0.85)),
    *(SubsetRule(threshold=gain, over="subset") for gain in (0.2, 0.85)),
    *(SubsetRule(weight=weight) for weight in (0.5, 0.7, 0.9)),
)

Make = Callable[[Past, adult.Adult, ClassGuard], Classes]
_METHODS: dict[str, Make] = {
    "cluster": lambda p, d, g: cluster_next(p, d.codes, d.domains, g, Cluster(name="cluster"), against=INSIDER),
    "mondrian": lambda p, d, g: republish(p, d.codes, d.domains, g, against=INSIDER),
    "merge": lambda p, d, g: merge(p, d.codes, d.domains, g, against=INSIDER),
    "grow": lambda p, d, g: grow(p, d.codes, d.domains, g),
}


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """People by codes (attributes, people), and their sensitive values as published: values, or nodes above them."""

    policy: Policy
    domains: tuple[Hierarchy, ...]
    codes: NDArray[np.int32]
    taxonomy: Hierarchy
    published: NDArray[np.int32]

    @classmethod
    def of(
        cls, policy: Policy, domains: tuple[Hierarchy, ...], codes: NDArray[np.int32], values: NDArray[np.object_]
    ) -> Data:
        """With the taxonomy and the grades of the policy's sensitive attribute."""
        (attribute,) = policy.sensitive.values()
        taxonomy = declared(attribute, Path)
        assert taxonomy is not None
        names, place = np.unique(values, return_inverse=True)
        exact = np.array([taxonomy.names[0].index(name) for name in names.tolist()])[place]
        return cls(policy, domains, codes, taxonomy, grade(taxonomy, attribute.grades)[exact])

    @property
    def names(self) -> tuple[str, ...]:
        """Of the quasi-identifiers."""
        return tuple(self.policy.quasi_identifiers)

    @property
    def requirement(self) -> Requirement:
        """What the policy asks of a release."""
        return Requirement.from_policy(self.policy, [self.taxonomy])

    def take(self, people: NDArray[np.int64]) -> Data:
        """Some of the people, in the given order."""
        codes = np.ascontiguousarray(self.codes[:, people])
        return replace(self, codes=codes, published=self.published[people])

    def guard(self) -> ClassGuard:
        """What every class has to satisfy."""
        return ClassGuard.of(self.requirement, self.published[None])

    def begin(self) -> Past:
        """Everybody beside nothing published: a node may be any value below it, so every value is looked at."""
        people = self.codes.shape[1]
        sights = sights_of(self.requirement, self.policy, self.published[None], compact=False)
        histories = tuple(
            History(
                attribute=sight.view.name,
                values=sight.names,
                k=self.policy.protect.k,
                bounds=sight.bounds,
                domains=self.domains,
                quasi_names=self.names,
                links=np.ones(len(self.names), np.bool_),
                people=tuple(range(people)),
            )
            for sight in sights
        )
        value = tuple(sight.codes for sight in sights)
        return Past(histories, np.arange(people), value, np.zeros(people, np.bool_))


@dataclass(frozen=True)
class Step:
    """One release: how long it took, and what it is like."""

    records: int
    taken: float
    classes: int
    ail: float
    gain: Gain
    linking: float


@dataclass(frozen=True)
class Series:
    """Releases of a table that grows, and what the audit says of all of them."""

    steps: tuple[Step, ...]
    verdict: str
    audited: float


def run() -> str:
    """Both data sets, as Markdown."""
    made = _synthetic()
    _publish(made.take(np.arange(2_000)), (1_000, 2_000), 20)  # kernels are compiled before the clock starts
    parts = [
        f"`protect: {{k: {K}, confidence: {CONFIDENCE}, against: [insider]}}`, `method: {{name: cluster, clusters: "
        f"..., gain: {GAIN}}}`. Each table holds the one before it and is published given its releases. `clusters` "
        "shapes the first table only; newcomers then form clusters as small as they may be. A cluster in which no "
        "subset of the attributes gains enough stays whole.\n"
    ]
    try:
        data = _adult()
    except DataMissing as missing:
        parts.append(f"## Adult\n\nskipped. {missing}\n")
    else:
        parts += [_told("Adult", data, ADULT, (4, 6, 8)), _every_subset(data), _compared()]
    parts.append(_told("Synthetic", made, SYNTHETIC, (5, 7, 9)))
    return "\n".join(parts)


def _told(title: str, data: Data, sizes: tuple[int, ...], figures: tuple[int, int, int]) -> str:
    """Time, consent, and gain against loss."""
    whole = {number: _publish(data, sizes, number) for number in CLUSTERS}
    alone = {f"{number}, each table on its own": _publish(data, sizes, number, alone=True) for number in CLUSTERS}
    part: dict[tuple[int, int], Series] = {}
    for share in CONSENT[:-1]:
        agrees = np.random.default_rng(share).permutation(data.codes.shape[1]) * 100 < share * data.codes.shape[1]
        those = data.take(np.flatnonzero(agrees))
        for number in CLUSTERS:
            part[number, share] = _publish(those, [int(agrees[:size].sum()) for size in sizes[:2]], number)
    part |= {(number, CONSENT[-1]): series for number, series in whole.items()}
    times = [
        [number, *(f"{step.taken:.2f} s" for step in series.steps), f"{series.verdict}, {series.audited:.0f} s"]
        for number, series in (whole | alone).items()
    ]
    consent = [
        [number]
        + [f"{sum(step.taken for step in part[number, share].steps[:2]):.2f} s" for share in CONSENT]
        + [part[number, share].steps[1].ail for share in CONSENT]
        + [", ".join(dict.fromkeys(part[number, share].verdict for share in CONSENT))]
        for number in CLUSTERS
    ]
    against = [
        [number, step.records, step.classes, step.ail, *step.gain.to_dict().values(), step.gain.combined(0.5),
         step.linking]
        for number, series in whole.items()
        for step in series.steps
    ]  # fmt: skip
    agreed = [f"{share} % agree" for share in CONSENT]
    high = float(np.mean(generality(data.taxonomy)[0][data.published] > 0))
    return "\n".join(
        [
            f"## {title}: {', '.join(data.names)}; {100 * high:.1f} % of the sensitive values are published as nodes\n",
            f"### Figure {figures[0]}: time to make each release, everybody agrees\n",
            table(["clusters", *(f"{size:,} records" for size in sizes), "audit of all releases (insider)"], times),
            f"### Figure {figures[1]}: a random part agrees, the others are in no table\n",
            f"Time to make both releases, of {sizes[0]:,} and {sizes[1]:,} people with those who do not agree, and AIL "
            "of the second.\n",
            table(["clusters", *agreed, *(f"AIL, {share} %" for share in CONSENT), "audit (insider)"], consent),
            f"### Figure {figures[2]}: privacy gain against information loss\n",
            "Of quasi-identifiers, of sensitive values, and the gain of both with equal weight; linking is the largest "
            "share of a published value among the rows with one box.\n",
            table(
                ["clusters", "records", "classes", "AIL", "quasi gain", "quasi loss", "sensitive gain",
                 "sensitive loss", "gain of both", "linking"],
                against,
            ),
        ]
    )  # fmt: skip


def _publish(data: Data, sizes: Sequence[int], clusters: int, *, alone: bool = False) -> Series:
    """The first so many people, then more of them, each time given what was published or not; audited in the end."""
    method = Cluster(name="cluster", clusters=clusters, gain=GAIN)
    everybody = data.begin()
    histories, steps = everybody.histories, []
    for size in sizes:
        part = data.take(np.arange(size))
        past = Past(histories, np.arange(size), tuple(v[:size] for v in everybody.value), np.zeros(size, np.bool_))
        before = everybody if alone else past
        taken, classes = seconds(
            lambda: cluster_next(before, part.codes, part.domains, part.guard(), method, against=INSIDER)  # noqa: B023 - called at once
        )
        order = np.random.default_rng(size).permutation(size)
        histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(size))
        linked = linking(classes.member, classes.lo, classes.hi, part.published).probability
        steps.append(Step(size, taken, len(classes), ail(classes, part.domains), _gain(part, classes), linked))
    audited, found = seconds(lambda: audit_histories(histories, data.policy, against=INSIDER))
    return Series(tuple(steps), _verdict(found), audited)


def _gain(data: Data, classes: Classes) -> Gain:
    """Averages over the records, none of which is left out."""
    by_class = [mean(measure(classes.lo, classes.hi, data.domains)) for measure in (quasi_gain, quasi_loss)]
    quasi = [float(of[classes.member].mean()) for of in by_class]
    return Gain(*quasi, *(float(of[data.published].mean()) for of in generality(data.taxonomy)))


def _verdict(found: Audit) -> str:
    return "nothing works" if found.holds else f"{len(found.findings):,} attacks work"


def _every_subset(data: Data) -> str:
    """Figure 10: what every subset gains and loses, and what rules make of that."""
    guard = data.guard()
    made = cluster_table(data.codes, data.domains, guard, Cluster(name="cluster", clusters=CLUSTERS[0]))
    gain, loss = quasi_gain(made.lo, made.hi, data.domains), quasi_loss(made.lo, made.hi, data.domains)
    share = made.size / made.size.sum()
    per_subset, over_all = (
        [scores @ share for scores in score(gain, loss, over="subset")],
        [scores @ share for scores in score(gain, loss)],
    )
    return "\n".join(
        [
            f"## Figure 10: subsets of the quasi-identifiers of Adult, {len(made)} clusters of all records\n",
            "Averages over the records; the best subset of a size has the largest difference of gain and loss. The "
            "paper averages over the attributes of the subset; averages over all quasi-identifiers can be compared "
            "between subsets of different sizes.\n",
            table(
                ["attributes", "subsets", "", "subset", "gain over subset", "loss over subset", "gain over all",
                 "loss over all"],
                _ranked(data.names, per_subset, over_all),
            ),
            "What a rule takes in each cluster. Published with the other attributes as they are, as in the paper, "
            f"records would be in groups of fewer than {K}, or alone; here the others are as fine as k and confidence "
            "allow.\n",
            table(
                ["rule", "attributes on average", "most frequent subset", "clusters with it", "gain over all",
                 "loss over all", f"as printed: records in groups below {K}", "of them alone", "here: classes", "AIL"],
                [_ruled(data, guard, made, rule, (gain, loss)) for rule in _RULES],
            ),
        ]
    )  # fmt: skip


def _ranked(
    names: Sequence[str], per_subset: Sequence[NDArray[np.float64]], over_all: Sequence[NDArray[np.float64]]
) -> Iterator[list[object]]:
    every = subsets(len(names))
    worth = np.round(per_subset[0] - per_subset[1], 9)
    for size, of_size in groupby(range(len(every)), key=lambda place: int(every[place].sum())):
        order = sorted(of_size, key=lambda place: -worth[place])
        if size == 1:
            continue
        chosen = {"best": 0, "median": len(order) // 2, "worst": len(order) - 1}
        for rank, at in chosen.items() if len(order) > 1 else [("all", 0)]:
            place = order[at]
            scores = [float(scores[place]) for scores in (*per_subset, *over_all)]
            yield [size, len(order), rank, _listed(names, every[place]), *scores]


def _ruled(
    data: Data,
    guard: ClassGuard,
    made: Classes,
    rule: SubsetRule,
    scores: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> list[object]:
    chosen = choose_by(made.lo, made.hi, data.domains, rule)
    group, first = row_groups(chosen.astype(np.int8))
    often = np.bincount(group)
    most = int(np.argmax(often))
    share = made.size / made.size.sum()
    gain, loss = (float((scored * chosen).mean(axis=0) @ share) for scored in scores)
    # As printed: the range of the cluster on the subset, the value itself elsewhere.
    kept = chosen[:, made.member]
    low, high = (np.where(kept, side[:, made.member], data.codes) for side in (made.lo, made.hi))
    alike = np.bincount(row_groups(np.vstack([low, high]))[0])
    fine = refine(data.codes, data.domains, guard, made.member, made.lo, made.hi, chosen)
    asked = f"weight {rule.weight}" if rule.threshold is None else f"gain of at least {rule.threshold} over {rule.over}"
    return [
        asked, float(chosen.sum(axis=0).mean()), _listed(data.names, chosen[:, first[most]]),
        f"{often[most]} of {len(made)}", gain, loss, int(alike[alike < K].sum()), int(np.count_nonzero(alike == 1)),
        len(fine), ail(fine, data.domains),
    ]  # fmt: skip


def _listed(names: Sequence[str], subset: NDArray[np.bool_]) -> str:
    return (
        "all" if subset.all() else ", ".join(name for name, taken in zip(names, subset.tolist(), strict=True) if taken)
    )


def _compared() -> str:
    """AIL of clusters beside that of other methods, of single tables and in a series."""
    data = adult.load().take(np.random.default_rng(1).permutation(ADULT[-1]).astype(np.int64))
    protect: dict[str, Any] = {"k": 5, "confidence": 0.7}
    single: dict[str, Callable[[adult.Adult, ClassGuard], Classes]] = {
        "mondrian, gain cuts": lambda d, g: mondrian(d.codes, d.domains, g),
        "mondrian, gain cuts, regrouped": lambda d, g: mondrian(d.codes, d.domains, g, regroup=True),
        "cluster": lambda d, g: cluster_table(d.codes, d.domains, g, Cluster(name="cluster")),
    }
    rows: list[list[object]] = []
    for name, make_one in single.items():
        losses, taken = [], 0.0
        for size in ADULT:
            part = data.take(np.arange(size))
            taken, classes = seconds(lambda: make_one(part, part.guard(**protect)))  # noqa: B023 - called at once
            losses.append(ail(classes, part.domains))
        rows.append([name, *losses, f"{taken:.2f} s"])
    series: list[list[object]] = []
    for name, make in _METHODS.items():
        history, losses, taken = data.history(STEPS[-1], **protect), [], 0.0
        for size in STEPS:
            part = data.take(np.arange(size))
            past = part.past(history)
            own, classes = seconds(lambda: make(past, part, part.guard(**protect)))  # noqa: B023 - called at once
            losses.append(ail(classes, part.domains))
            taken += own
            history = adult.publish(past, classes)
        found = audit_histories([history], adult.policy(data.names, **protect), against=INSIDER)
        series.append([name, *losses, f"{taken:.2f} s", _verdict(found)])
    return "\n".join(
        [
            f"## Clusters and other methods: Adult by {len(data.names)} quasi-identifiers, k = 5, confidence = 0.7\n",
            "AIL of single tables, and the time for the last:\n",
            table(["method", *(f"{size:,}" for size in ADULT), "time"], rows),
            "AIL in a series, against insiders, and the time for all releases:\n",
            table(["method", *(f"{size:,}" for size in STEPS), "time", "audit (insider)"], series),
        ]
    )


def _adult() -> Data:
    adult.require_hierarchies()
    order = np.random.default_rng(1).permutation(ADULT[-1])
    data = adult.load(_ADULT_QUASI).take(order)
    tree: dict[str, list[str]] = {}
    for leaf, node, *_ in read_arx(adult.DATA / "hierarchies_arx" / f"adult_hierarchy_{adult.SENSITIVE}.csv"):
        tree.setdefault(node, []).append(leaf)
    quasi = {name: {"kind": "number" if name == "age" else "category"} for name in data.names}
    policy = _policy(quasi, adult.SENSITIVE, hierarchy=tree, grades=_ADULT_GRADES)
    values = np.array(adult.read_columns()[adult.SENSITIVE], object)[order]
    return Data.of(policy, data.domains, data.codes, values)


def _synthetic() -> Data:
    """Bell-shaped ages, 500 postal codes of six digits, some with more people than others, and ten diseases."""
    random, people = np.random.default_rng(100_000), SYNTHETIC[-1]
    postal = [f"{530 + area}{office:03d}" for area in range(10) for office in range(1, 51)]
    domains = (
        from_values(["female", "male"]),
        from_numbers(np.arange(100, dtype=np.float64)),
        from_codes(postal, length=6),
    )
    codes = [
        random.integers(0, 2, people),
        np.clip(random.normal(42, 20, people), 0, 99),
        random.beta(2, 3, people) * len(postal),
    ]
    values = random.choice(np.array(list(_SHARES), object), people, p=list(_SHARES.values()))
    kinds: dict[str, dict[str, Any]] = {
        "gender": {},
        "age": {"kind": "number"},
        "postal code": {"kind": "code", "length": 6},
    }
    policy = _policy(kinds, "disease", hierarchy=_DISEASES, grades=_DISEASE_GRADES)
    return Data.of(policy, domains, np.array(codes).astype(np.int32), values)


def _policy(quasi: dict[str, dict[str, Any]], sensitive: str, **graded: Any) -> Policy:
    attributes = {name: {"role": "quasi-identifier", **kind} for name, kind in quasi.items()}
    return Policy.model_validate(
        {
            "version": 1,
            "series": "reddy",
            "attributes": {**attributes, sensitive: {"role": "sensitive", **graded}},
            "protect": {"k": K, "confidence": CONFIDENCE, "against": list(INSIDER)},
        }
    )
