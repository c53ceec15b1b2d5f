"""The options of every method, by the name that policies have for it. How it works is in `sequester.methods`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sequester.policy.base import LARGEST, Strict

Loss = Literal["ncp", "ail", "dm", "class-size", "precision", "entropy"]
Cuts = Literal["gain", "median", "relaxed"]


class Mondrian(Strict):
    """Multidimensional recoding (LeFevre et al.)."""

    name: Literal["mondrian"] = Field("mondrian", description="Cut the table into boxes, again and again.")
    cuts: Cuts = Field("gain", description="gain: the cut that shortens ranges most; median, relaxed: as published.")
    regroup: bool | None = Field(
        None,
        description="Share neighbouring classes out again: less loss, boxes may overlap. Default: in a series.",
    )

    def regroups(self, *, in_series: bool) -> bool:
        """Whether classes are shared out again after the cuts."""
        return (in_series and self.cuts == "gain") if self.regroup is None else self.regroup


class FullDomain(Strict):
    """One level per attribute, optimal for the chosen loss over the whole lattice."""

    name: Literal["full-domain"] = Field(description="Give every attribute one level for the whole table.")
    loss: Loss = Field("ncp", description="The measure of information loss that is made smallest.")
    suppression: float = Field(0.0, ge=0, le=1, description="Largest fraction of records that may be left out.")


class Specialize(Strict):
    """Top-down specialization of taxonomy cuts; in a series, BCF-anonymity (Fung et al.)."""

    name: Literal["specialize"] = Field(description="Start from the most general table and refine.")
    loss: Literal["ncp", "precision", "entropy"] = Field("ncp", description="The measure that scores a refinement.")
    score: Literal["loss", "discernibility", "information-gain", "loss-per-anonymity"] = Field(
        "loss", description="Which refinement comes first: what it saves, the size of what it splits, or what it tells."
    )
    label: str | None = Field(
        None, description="information-gain: the sensitive or insensitive column that refinements should tell about."
    )
    semantics: Literal["realised", "printed"] = Field(
        "realised", description="Series: targets are people who exist, or every two comparable classes, as printed."
    )
    certificate: bool = Field(
        False, description="Series: everybody keeps k companions with the same classes in all releases together."
    )


class Merge(Strict):
    """Byun et al.'s merge: the classes of the last release as they are, and the newcomers among themselves."""

    name: Literal["merge"] = Field(description="Keep the last release's classes; newcomers get classes of their own.")
    cuts: Cuts = Field("gain", description="How the newcomers are cut, as in mondrian.")


class Grow(Strict):
    """Sweeney's advice to base a release on the last one: published rows stay, newcomers join them in groups."""

    name: Literal["grow"] = Field(
        description="Keep the last release's rows; newcomers join a class as a group, or get classes of their own."
    )
    cuts: Cuts = Field("gain", description="How the other newcomers are cut, as in mondrian.")


class Group(Strict):
    """Groups for values that change (Wong et al.): the lifetime guarantee, for the member with the worst history."""

    name: Literal["group"] = Field(
        description="Join neighbours until no value is too frequent for anybody's past; leave out whole neighborhoods."
    )


class Cluster(Strict):
    """Incremental clustering (Reddy et al.): who comes joins the nearest cluster, and clusters only grow or merge."""

    name: Literal["cluster"] = Field(description="Join similar records; clusters stay, grow and merge over releases.")
    similarity: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Only records so similar join: 1 less the average share of a domain that they span together.",
    )
    clusters: int | None = Field(
        None, ge=1, le=LARGEST, description="About how many clusters a first table has; default: many."
    )
    gain: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Generalize only the attributes of each cluster that lose least and gain this much privacy.",
    )
    weight: float | None = Field(
        None, ge=0, le=1, description="The same, by this weight of privacy gain against information loss."
    )


class Pods(Strict):
    """Pods: people share their values out in smallest groups; every class is a union of them, and decoys fill gaps."""

    name: Literal["pods"] = Field(description="Share values out in pods, mixed anew in every release; nobody waits.")
    blind: bool = Field(
        False,
        description="Choose partners by quasi-identifiers alone, against who knows the method; more decoys.",
    )
    classes: Literal["mixed", "one-type"] = Field(
        "mixed",
        description="Pods with any values in one class, or only with the same, as in m-invariance; more loss.",
    )


class Static(Strict):
    """Every release on its own, as tools without a memory make it. For comparison: the series leaks."""

    name: Literal["static"] = Field(description="Ignore what was published before; for comparison only.")
    cuts: Cuts = Field("gain", description="How the table is cut, as in mondrian.")


MethodOptions = Annotated[
    Mondrian | FullDomain | Specialize | Merge | Grow | Group | Cluster | Pods | Static, Field(discriminator="name")
]
