"""Measure one table, made by us or by anyone: how anonymous it is, what it lost, which promises it keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING, Codes
from sequester.domain.kinds import kind_of
from sequester.errors import DataError
from sequester.guarantees.closeness import Distance, TCloseness, default_distance
from sequester.guarantees.confidence import Confidence, bounds_of
from sequester.guarantees.criterion import Outcome, View
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity
from sequester.guarantees.requirement import Boxes, Protected, Requirement, assess
from sequester.ingest.published import (
    OpenedTable,
    PublishedClasses,
    PublishedTable,
    boxes_of,
    classes_of,
    domains_of,
    exact_codes,
    open_table,
    publish_domains,
)
from sequester.metrics.loss import losses
from sequester.metrics.queries import query_error, random_queries
from sequester.policy.attributes import Sensitive
from sequester.policy.methods import Pods
from sequester.policy.model import Policy
from sequester.rational import exact
from sequester.viewable import Viewable


@dataclass(frozen=True)
class ValueSpread:
    """How one sensitive view is spread over the classes: the worst class for each number.

    l           fewest different values
    entropy_l   least exp(entropy): as uncertain as this many equally frequent values
    confidence  largest share of a value that is not ordinary
    t           largest distance from the table, per distance
    distance    the one that counts here: the policy's, or the default for the attribute
    """

    l: int  # noqa: E741 - the name of the parameter everywhere
    entropy_l: float
    confidence: float
    t: dict[Distance, float]
    distance: Distance

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.__dict__, "t": dict(self.t)}


@dataclass(frozen=True, repr=False)
class Measurement(Viewable):
    """What was found in one table. `l`, `entropy_l`, `t`, `confidence` are the worst over the sensitive views.

    `t` uses each view's own distance (the policy's, or its default); all distances are in `sensitive`. They are None
    without a sensitive attribute. `suppressed` counts the original's records that the table lacks. `people` are the
    records that are about somebody, where others are decoys, and `fewest_people` those of the class that has fewest;
    both are None where there are no decoys, or nobody can tell. What was lost is theirs, all else is about records.
    """

    records: int
    classes: int
    k: int
    l: int | None  # noqa: E741 - the name of the parameter everywhere
    entropy_l: float | None
    t: float | None
    confidence: float | None
    loss: dict[str, float]
    promises: tuple[Outcome, ...]
    sensitive: dict[str, ValueSpread] = field(default_factory=dict)
    suppressed: int = 0
    query_error: float | None = None
    people: int | None = None
    fewest_people: int | None = None

    @property
    def holds(self) -> bool:
        """Whether every promise of the policy about a single release is kept."""
        return all(promise.holds for promise in self.promises)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without any cell of the table."""
        return {
            "records": self.records,
            **({} if self.people is None else {"people": self.people}),
            **({} if self.fewest_people is None else {"fewest_people": self.fewest_people}),
            "classes": self.classes,
            "suppressed": self.suppressed,
            "k": self.k,
            "l": self.l,
            "entropy_l": self.entropy_l,
            "t": self.t,
            "confidence": self.confidence,
            "sensitive": {name: spread.to_dict() for name, spread in self.sensitive.items()},
            "loss": dict(self.loss),
            "query_error": self.query_error,
            "promises": [promise.to_dict() for promise in self.promises],
            "holds": self.holds,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        numbers = {"k": self.k, "l": self.l, "t": self.t, "confidence": self.confidence, "ncp": self.loss["ncp"]}
        shown = ", ".join(f"{name}={value:.4g}" for name, value in numbers.items() if value is not None)
        broken = sum(not promise.holds for promise in self.promises)
        verdict = f"{broken} of {len(self.promises)} promises broken" if broken else "holds"
        return f"<Measurement: {self.records} records in {self.classes} classes, {shown}, {verdict}>"


def measure(
    source: Any,
    policy: Policy,
    *,
    original: Any = None,
    queries: int = 0,
    seed: int | None = None,
    show_values: bool = False,
) -> Measurement:
    """Measure a file or frame with the quasi-identifiers as published and the sensitive values.

    Without `original` the domains that the policy does not declare are the published ones, so losses are relative to
    what the table itself shows; midpoints count as exact values. With it (the raw table behind the release, in any
    row order) domains are the publisher's, records that are not in the release count as lost, entropy loss is added,
    and `queries` random range counts compare the two. A table by pods has decoys, so that it may have more rows than
    the original: each row counts for its share of the people then, and nobody counts as lost. Cells that are not
    understood are an error with column and count; `show_values` puts the values into its `Problem.values`.
    """
    if queries and original is None:
        raise ValueError("queries compare with the original table; give it as `original`")
    opened = source if isinstance(source, OpenedTable) and original is None else None
    table = open_table(source, policy) if opened is None else opened.table
    raw = None if original is None else open_table(original, policy, own=True)
    podded = isinstance(policy.method, Pods)
    if raw is not None and raw.rows < table.rows and not podded:
        lacking = table.rows - raw.rows
        raise DataError(f"the original has {lacking} rows fewer than the table; give the table behind this release")
    if opened is None:
        published = classes_of(table, publish_domains(policy, table, raw), show_values=show_values)
    else:
        published = opened.classes
    quasi = None if raw is None else exact_codes(raw.quasi, published.domains, show_values=show_values)
    sensitive_domains = domains_of(policy, table.sensitive, *([] if raw is None else [raw.sensitive]))
    sensitive = exact_codes(table.sensitive, sensitive_domains, show_values=show_values)
    requirement = Requirement.from_policy(policy, sensitive_domains)
    boxes, population = _population(policy, table, published, show_values=show_values)
    suppressed = table.left_out if raw is None else raw.left_out if podded else raw.rows + raw.left_out - table.rows
    error = None
    if queries and raw is not None and quasi is not None:
        raw_sensitive = exact_codes(raw.sensitive, sensitive_domains, show_values=show_values)
        asked = random_queries(
            [domain.size for domain in published.domains],
            queries=queries,
            rng=np.random.default_rng(seed),
            sensitive=sensitive_domains[0].size if sensitive_domains else None,
        )
        error = query_error(
            published,
            asked,
            original=quasi,
            original_sensitive=raw_sensitive[0] if len(raw_sensitive) else None,
            member=published.member,
            sensitive=sensitive[0] if len(sensitive) else None,
            weight=raw.rows / max(table.rows, 1) if podded else 1.0,
        )
    return replace(
        assess_classes(
            published,
            requirement,
            policy,
            sensitive=sensitive,
            suppressed=suppressed,
            # How the people of a class are spread is not known where some of its rows are decoys.
            quasi=None if podded else quasi,
            boxes=boxes,
            population=population,
        ),
        query_error=error,
    )


def assess_classes(  # noqa: PLR0913 - all but two by name
    published: PublishedClasses,
    requirement: Requirement,
    policy: Policy,
    *,
    sensitive: Codes,
    suppressed: int = 0,
    quasi: Codes | None = None,
    boxes: Boxes | None = None,
    population: Codes | None = None,
    people: NDArray[np.bool_] | None = None,
) -> Measurement:
    """Measure classes that are already codes; `sensitive` and `published.member` are those of the published records.

    `quasi` are the raw codes of all records, with those left out; `boxes` and `population` serve a k-map. `people` are
    the records that are about somebody, of which decoys are none: a loss is theirs.
    """
    spreads = _spreads(policy, requirement, sensitive, published)
    return Measurement(
        records=len(published.member),
        classes=len(published),
        k=int(published.size.min()),
        l=min((spread.l for spread in spreads.values()), default=None),
        entropy_l=min((spread.entropy_l for spread in spreads.values()), default=None),
        t=max((spread.t[spread.distance] for spread in spreads.values()), default=None),
        confidence=max((spread.confidence for spread in spreads.values()), default=None),
        loss=_lost(published, suppressed, quasi, people),
        promises=requirement.check(published.member, sensitive, boxes=boxes, population=population),
        sensitive=spreads,
        suppressed=suppressed,
        people=None if people is None else int(np.count_nonzero(people)),
        fewest_people=None if people is None else _fewest_people(published, people),
    )


def _fewest_people(published: PublishedClasses, people: NDArray[np.bool_]) -> int:
    """People of the class that has fewest."""
    return int(np.bincount(published.member[people], minlength=len(published)).min())


def _lost(
    published: PublishedClasses, suppressed: int, quasi: Codes | None, people: NDArray[np.bool_] | None
) -> dict[str, float]:
    """What people lost, however many decoys are beside them."""
    if people is None or people.all():
        return losses(published, published.domains, suppressed=suppressed, quasi=quasi)
    of_people = replace(published, member=published.member[people])
    return losses(
        of_people, published.domains, suppressed=suppressed, quasi=None if quasi is None else quasi[:, people]
    )


def _spreads(
    policy: Policy, requirement: Requirement, sensitive: Codes, published: PublishedClasses
) -> dict[str, ValueSpread]:
    # Every value that is not ordinary gets the same bound, so that the worst one is the one with the largest share.
    pairs = zip(requirement.sensitive, policy.sensitive.values(), strict=True)
    probe = replace(requirement, sensitive=tuple(_probe(one, attribute) for one, attribute in pairs))
    sets = [name for name, attribute in policy.sensitive.items() if kind_of(attribute).several]
    spreads: dict[str, ValueSpread] = {}
    for view in probe.views(sensitive):
        spreads[view.name] = _set_spread(view, published) if view.name in sets else _spread(view, published)
    # What sets and nodes tell about a person is told element by element.
    told: dict[str, float] = {}
    for view in requirement.views(sensitive):
        if view.name in spreads and (view.element is not None or view.names is not None):
            alike = Confidence((*(exact(0.5),) * (view.size - 1), exact(1)))
            (outcome,) = assess([alike], view, member=published.member, classes=len(published))
            told[view.name] = max(told.get(view.name, 0.0), outcome.observed or 0.0)
    return spreads | {name: replace(spreads[name], confidence=share) for name, share in told.items()}


def _probe(protected: Protected, attribute: Sensitive) -> Protected:
    """The attribute by its own values: how they are bounded, and how far they are from those of the table."""
    domain = protected.domain
    alike = Confidence(bounds_of(0.5, domain.names[0], ordinary=(*attribute.ordinary, EVERYTHING)))
    asked = [one for one in protected.criteria if isinstance(one, TCloseness)]
    near = asked[0] if asked else TCloseness(1.0, default_distance(attribute), levels=domain.starts)
    return Protected(protected.name, domain, (alike, near))


def _set_spread(view: View, published: PublishedClasses) -> ValueSpread:
    """Whole sets are many, and few of them are in a class: only those are looked at."""
    cells, count = np.unique(published.member * view.size + view.codes, return_counts=True)
    number, code = cells // view.size, cells % view.size
    share = count / published.size[number]
    table = np.bincount(view.codes, minlength=view.size) / max(len(view.codes), 1)
    entropy = np.bincount(number, weights=-share * np.log(share), minlength=len(published))
    apart = np.bincount(number, weights=np.maximum(share - table[code], 0.0), minlength=len(published))
    different = np.bincount(number, minlength=len(published))
    return ValueSpread(int(different.min()), float(np.exp(entropy.min())), 0.0, {"equal": float(apart.max())}, "equal")


def _spread(view: View, published: PublishedClasses) -> ValueSpread:
    share, near = view.criterion(Confidence), view.criterion(TCloseness)
    if share is None or near is None:
        raise AssertionError("probes have both")
    distances: list[Distance] = ["equal"]
    if near.levels:
        distances = ["equal", "ordered", "hierarchical"]
    criteria = [
        DistinctDiversity(1),
        EntropyDiversity(1),
        share,
        *(replace(near, distance=distance) for distance in distances),
    ]
    outcomes = assess(criteria, view, member=published.member, classes=len(published))
    distinct, entropy, most, *apart = (outcome.observed or 0.0 for outcome in outcomes)
    return ValueSpread(int(distinct), entropy, most, dict(zip(distances, apart, strict=True)), near.distance)


def _population(
    policy: Policy, table: PublishedTable, published: PublishedClasses, *, show_values: bool
) -> tuple[Boxes | None, Codes | None]:
    """The boxes and the population in common domains, wide enough for both."""
    if policy.protect.k_map is None:
        return None, None
    people = open_table(policy.path(policy.protect.k_map.population), policy, sensitive=False, own=True)
    domains = domains_of(policy, table.quasi, people.quasi)
    _, first = np.unique(published.member, return_index=True)
    boxes = boxes_of(table, domains, first=first, show_values=show_values)
    return boxes, exact_codes(people.quasi, domains, show_values=show_values)
