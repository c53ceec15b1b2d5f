"""What is promised: options, and of each promise about single classes its words and what it cannot go with.

How a promise is judged is declared in `sequester.guarantees`, beside what it protects and what it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field

from sequester.policy.adversaries import Named
from sequester.policy.base import LARGEST, Fraction, Many, Strict
from sequester.policy.raw import Issue, at
from sequester.policy.words import amount, people, percent

if TYPE_CHECKING:
    from sequester.policy.model import Policy


class Diversity(Strict):
    """l-diversity (Machanavajjhala et al.): every class has l well represented sensitive values."""

    kind: Literal["distinct", "entropy", "recursive"] = Field(description="How values are counted as represented.")
    l: float = Field(ge=1, description="How many values; whole for distinct and recursive.")  # noqa: E741 - the name of the parameter everywhere
    c: float | None = Field(None, gt=0, description="recursive: the most frequent value stays below c times the tail.")


class Closeness(Strict):
    """t-closeness (Li et al.): the distribution in every class is within t of the table's."""

    t: float = Field(ge=0, le=1, description="The largest distance between two distributions, from 0 to 1.")
    distance: Literal["equal", "ordered", "hierarchical"] | None = Field(
        None, description="Default: ordered for numbers, hierarchical with a hierarchy, else equal."
    )


class PopulationMap(Strict):
    """k-map (Sweeney): every published box fits at least k people of a population table."""

    k: int = Field(ge=1, le=LARGEST, description="How many people of the population fit each published row.")
    population: str = Field(description="A file with the quasi-identifier columns of the population.")


class Lifetime(Strict):
    """Global guarantee (Wong et al.): nobody was ever linked to a value with more than 1/l, over all releases."""

    l: float = Field(gt=1, description="Nobody is linked to a value with more than 1/l.")  # noqa: E741
    strategy: Literal["constant-ratio", "geometric"] = Field(
        "constant-ratio", description="How the risk is spread over the releases."
    )
    releases: int | None = Field(
        None, ge=1, le=LARGEST, description="constant-ratio: the number of releases planned for."
    )
    alpha: float | None = Field(None, gt=1, description="geometric: how much larger than the minimum ratio to stay.")
    registered: str | None = Field(
        None,
        description="A file with the quasi-identifiers of everybody who may be in a release; nobody knows who is.",
    )


class Protect(Strict):
    """What is promised."""

    k: int = Field(ge=1, le=LARGEST, description="Every class has at least k rows.")
    people: int | None = Field(
        None,
        ge=1,
        le=LARGEST,
        description="pods: every class has at least so many people, whatever decoys are among its rows; default half "
        "of k, rounded up.",
    )
    confidence: Fraction | dict[str, Fraction] | None = Field(
        None,
        description="Nobody is tied to one sensitive value with more than this; per value, '*' for the others.",
    )
    inferred: int | None = Field(
        None,
        ge=1,
        le=LARGEST,
        description="Series: fewest rows that anything inferred from several releases may come down to; default k, "
        "by pods the seats of a pod.",
    )
    lineage: int | None = Field(
        None,
        ge=2,
        le=LARGEST,
        description="pods: most people whose values hang together, so that knowing one may tell the others; default 8.",
    )
    belief: Fraction | None = Field(
        None, description="Nobody without prejudice may be surer of a value than this, given all releases."
    )
    against: Many[Named] = Field(("insider",), description="Adversaries of a series.")
    diversity: Diversity | None = Field(None, description="l-diversity of every class.")
    closeness: Closeness | None = Field(None, description="t-closeness of every class to the whole table.")
    alpha: Fraction | dict[str, Fraction] | None = Field(
        None, description="(alpha,k)-anonymity: bound on each (or each named) value's share of a class."
    )
    k_map: PopulationMap | None = Field(None, description="Every published row fits k people of a population.")
    lifetime: Lifetime | None = Field(None, description="Transient values: a bound over all releases together.")
    sensitive: Literal["each", "joint", "both"] = Field(
        "each", description="Several sensitive attributes: protect each, their combination, or both."
    )


Check = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Iterator[Issue]]


def _nothing_wrong(protect: Mapping[str, Any], sensitive: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    return iter(())


@dataclass(frozen=True)
class ClassPromise:
    """A promise about every class of a release, as it stands in a policy.

    key              its name under `protect`
    say              in sentences, of a policy that makes it
    attack           which attack of the audit tries it; None for what is only measured
    example          how it is written, where it is a group of keys
    check            what is wrong with it as written, beside these sensitive attributes
    about_values     whether it is about sensitive values
    bounds_ordinary  whether it is a bound on ordinary values, too
    links            whether it also bounds what all releases tell together
    not_by_pods      why pods do not keep it; None where they do
    """

    key: str
    say: Callable[[Policy], Iterator[str]]
    attack: str | None
    example: str | None = None
    check: Check = _nothing_wrong
    about_values: bool = True
    bounds_ordinary: bool = False
    links: bool = False
    not_by_pods: str | None = None

    def given(self, policy: Policy) -> Any:
        """Its options in a policy, None where it is not asked for."""
        return getattr(policy.protect, self.key)

    def asked(self, policy: Policy) -> bool:
        """Whether a policy makes it."""
        return self.given(policy) is not None


def options_of(model: type[Strict]) -> dict[str, type[Strict]]:
    """The keys of a model that are groups of keys themselves, with their models."""
    groups = {key: [model.annotation, *get_args(model.annotation)] for key, model in model.model_fields.items()}
    return {
        key: kind
        for key, kinds in groups.items()
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, Strict)
    }


def _say_k(policy: Policy) -> Iterator[str]:
    k, fewest = policy.protect.k, policy.fewest_people
    if fewest < k:
        decoys = "the others may be decoys, rows about nobody that look like any other"
        yield f"Every class has at least {amount(k, 'row')}, of which {people(fewest)} or more; {decoys}."
    else:
        yield f"Every class has at least {people(k)}."


def _say_confidence(policy: Policy) -> Iterator[str]:
    for name, attribute in policy.sensitive.items():
        bound = attribute.confidence if attribute.confidence is not None else policy.protect.confidence
        if bound is None or bound == 1:
            continue
        if isinstance(bound, float):
            who = "Ordinary values aside, nobody" if attribute.ordinary else "Nobody"
            yield f"{who} is tied to one value of {name} with more than {percent(bound)} confidence by her class."
            continue
        for value, limit in bound.items():
            of = f"any other value of {name}" if value == "*" else f'"{value}" of {name}'
            yield f"Nobody is tied to {of} with more than {percent(limit)} confidence by her class."


def _say_alpha(policy: Policy) -> Iterator[str]:
    alpha = policy.protect.alpha
    if isinstance(alpha, float):
        yield f"No sensitive value is that of more than {percent(alpha)} of a class."
    else:
        for value, share in (alpha or {}).items():
            yield f'"{value}" is at most {percent(share)} of a class.'


def _say_diversity(policy: Policy) -> Iterator[str]:
    wanted = policy.protect.diversity
    if wanted is None:
        return
    match wanted.kind:
        case "distinct":
            yield f"Every class has at least {wanted.l:g} different values of each sensitive attribute."
        case "entropy":
            yield f"Every class is as mixed as {wanted.l:g} equally frequent sensitive values (entropy)."
        case "recursive":
            pair = f"({wanted.c or 0:g},{wanted.l:g})"
            yield f"Every class is recursively {pair}-diverse: its most frequent sensitive value is not too frequent."


def _say_closeness(policy: Policy) -> Iterator[str]:
    wanted = policy.protect.closeness
    if wanted is not None:
        how = "" if wanted.distance is None else f" ({wanted.distance} distance)"
        yield f"The sensitive values of every class are within {wanted.t:g} of the whole table's{how}."


def _say_k_map(policy: Policy) -> Iterator[str]:
    wanted = policy.protect.k_map
    if wanted is not None:
        yield f"Every published row fits at least {people(wanted.k)} of {wanted.population}."


def _check_confidence(protect: Mapping[str, Any], sensitive: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    if len(sensitive) > 1 and isinstance(protect.get("confidence"), Mapping):
        where = "put the bounds in the attribute's own confidence"
        yield ("confidence",), f"bounds per value need exactly one sensitive attribute; {where}"


def _check_alpha(protect: Mapping[str, Any], sensitive: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    if len(sensitive) > 1 and isinstance(protect.get("alpha"), Mapping):
        yield ("alpha",), "bounds per value need exactly one sensitive attribute"


def _check_diversity(protect: Mapping[str, Any], sensitive: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    yield from _one_in_a_cell("diversity", sensitive)
    if any(one.get("guarding") for one in sensitive):
        yield ("diversity",), "cannot be kept where anybody may choose a node that says nothing; leave out guarding"
    kind, l, c = (at(protect, ("diversity", key)) for key in ("kind", "l", "c"))  # noqa: E741
    if kind == "recursive" and c is None:
        yield ("diversity", "c"), "is missing; recursive diversity has two numbers, such as {c: 3, l: 2}"
    if kind in ("distinct", "entropy") and c is not None:
        yield ("diversity", "c"), "only goes with kind: recursive"
    if kind in ("distinct", "recursive") and isinstance(l, float) and not l.is_integer():
        yield ("diversity", "l"), f"must be a whole number with kind: {kind}"


def _check_closeness(protect: Mapping[str, Any], sensitive: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    yield from _one_in_a_cell("closeness", sensitive)
    if any(one.get("grades") or one.get("guarding") for one in sensitive):
        yield ("closeness",), "is not defined where values are published as nodes; leave out grades and guarding"
    if at(protect, ("closeness", "distance")) == "hierarchical" and any(a.get("hierarchy") is None for a in sensitive):
        yield ("closeness", "distance"), "hierarchical needs a hierarchy for every sensitive attribute"


def _one_in_a_cell(key: str, sensitive: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    from sequester.policy.attribute_checks import has_several

    if any(has_several(one) or one.get("permanent") for one in sensitive):
        yield (key,), "is for attributes with one value in a cell, all permanent or all transient"


K = ClassPromise("k", _say_k, "k", about_values=False)
CONFIDENCE = ClassPromise("confidence", _say_confidence, "confidence", check=_check_confidence, links=True)
ALPHA = ClassPromise(
    "alpha",
    _say_alpha,
    "confidence",
    check=_check_alpha,
    bounds_ordinary=True,
    not_by_pods="pods keep confidence, which bounds the same share: write the bound there",
)
DIVERSITY = ClassPromise(
    "diversity",
    _say_diversity,
    "diversity",
    example="diversity: {kind: distinct, l: 3}",
    check=_check_diversity,
)
CLOSENESS = ClassPromise(
    "closeness",
    _say_closeness,
    "closeness",
    example="closeness: {t: 0.2}",
    check=_check_closeness,
    not_by_pods="pods mix values as people are near, not as the whole table has them",
)
K_MAP = ClassPromise(
    "k_map",
    _say_k_map,
    None,
    example="k_map: {k: 5, population: people.csv}",
    about_values=False,
    not_by_pods="decoys are nobody in a population",
)

CLASS_PROMISES = (K, CONFIDENCE, ALPHA, DIVERSITY, CLOSENESS, K_MAP)
"""In the order in which they are told."""
