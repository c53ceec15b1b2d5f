"""What is promised."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sequester.policy.base import LARGEST, Fraction, Many, Strict


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


Adversary = Literal["outsider", "neighbor", "insider", "lifetime"]


class Protect(Strict):
    """What is promised."""

    k: int = Field(ge=1, le=LARGEST, description="Every class has at least k people.")
    confidence: Fraction | dict[str, Fraction] | None = Field(
        None,
        description="Nobody is tied to one sensitive value with more than this; per value, '*' for the others.",
    )
    inferred: int | None = Field(
        None,
        ge=1,
        le=LARGEST,
        description="Series: fewest rows that anything inferred from several releases may come down to; default k.",
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
    against: Many[Adversary] = Field(("insider",), description="Adversaries of a series.")
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

    @property
    def fewest(self) -> int:
        """Fewest rows that anything inferred across releases may come down to."""
        return self.k if self.inferred is None else self.inferred
