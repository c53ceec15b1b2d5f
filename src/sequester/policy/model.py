"""The policy as strict, frozen models. Unknown keys are errors, and numbers are not guessed from text.

The models only describe. Loading with line numbers is in `load`, checks across keys are in `checks`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

Missing = Annotated[
    Literal["refuse", "category", "suppress"],
    Field(description="What a missing cell means: an error, a value of its own, or a record left out."),
]
Fraction = Annotated[float, Field(gt=0, le=1)]

T = TypeVar("T")
# Strict models take no list for a tuple; files have only lists.
Many = Annotated[tuple[T, ...], BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]
Pair = Annotated[tuple[T, T], BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]

_MISSING = Field("refuse", description="What a missing cell means: an error, a value of its own, or a record left out.")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Identifier(Strict):
    """Dropped before anything else."""

    role: Literal["identifier"]


class Insensitive(Strict):
    """Published as it is."""

    role: Literal["insensitive"]


class QuasiIdentifier(Strict):
    """What an adversary may know about a person; generalized."""

    role: Literal["quasi-identifier"]
    kind: Literal["category", "number", "code", "date"] = "category"
    hierarchy: str | dict[str, Any] | list[Any] | None = Field(
        None, description="category: a tree of values, or an ARX hierarchy CSV (leaf;level1;...;*)."
    )
    range: Pair[float] | None = Field(None, description="number: lowest and highest value.")
    bands: Many[float] | None = Field(None, description="number: edges of fixed bands, one level.")
    levels: Many[float] | Many[Literal["day", "month", "quarter", "year", "decade"]] | None = Field(
        None, description="number: widths of bands, each a multiple of the one before. date: calendar steps."
    )
    length: int | None = Field(None, ge=1, description="code: number of characters; generalized by its prefixes.")
    format: str | None = Field(None, description="date: how cells are written, as in strptime; default ISO 8601.")
    changes: bool = Field(False, description="May differ for one person from release to release.")
    missing: Missing = "refuse"


class Sensitive(Strict):
    """What nobody may learn about a person."""

    role: Literal["sensitive"]
    kind: Literal["category", "number"] = "category"
    hierarchy: str | dict[str, Any] | list[Any] | None = Field(
        None, description="A tree of values or an ARX hierarchy CSV; used by the hierarchical distance."
    )
    bands: Many[float] | None = Field(
        None, description="number: edges of the bands that are published and protected as values."
    )
    values: Literal["permanent", "transient"] = Field(
        "permanent", description="Whether a person keeps the value or it may differ in every release."
    )
    ordinary: Many[str] = Field((), description="Values that need no confidence bound (k still counts them).")
    confidence: Fraction | dict[str, Fraction] | None = Field(
        None, description="Overrides protect.confidence here; per value, with '*' for the others."
    )
    missing: Missing = "refuse"


Attribute = Annotated[Identifier | Insensitive | QuasiIdentifier | Sensitive, Field(discriminator="role")]


class Diversity(Strict):
    """l-diversity (Machanavajjhala et al.): every class has l well represented sensitive values."""

    kind: Literal["distinct", "entropy", "recursive"]
    l: float = Field(ge=1)  # noqa: E741 - the name of the parameter everywhere
    c: float | None = Field(None, gt=0, description="recursive: the most frequent value stays below c times the tail.")


class Closeness(Strict):
    """t-closeness (Li et al.): the distribution in every class is within t of the table's."""

    t: float = Field(ge=0, le=1)
    distance: Literal["equal", "ordered", "hierarchical"] | None = Field(
        None, description="Default: ordered for numbers, hierarchical with a hierarchy, else equal."
    )


class PopulationMap(Strict):
    """k-map (Sweeney): every published box fits at least k people of a population table."""

    k: int = Field(ge=1)
    population: str = Field(description="A file with the quasi-identifier columns of the population.")


class Lifetime(Strict):
    """Global guarantee (Wong et al.): nobody was ever linked to a value with more than 1/l, over all releases."""

    l: float = Field(gt=1)  # noqa: E741 - the name of the parameter everywhere
    strategy: Literal["constant-ratio", "geometric"] = "constant-ratio"
    releases: int | None = Field(None, ge=1, description="constant-ratio: the number of releases planned for.")
    alpha: float | None = Field(None, gt=1, description="geometric: how much larger than the minimum ratio to stay.")


Adversary = Literal["outsider", "neighbor", "insider", "lifetime"]


class Protect(Strict):
    """What is promised."""

    k: int = Field(ge=1, description="Every class has at least k people.")
    confidence: Fraction | dict[str, Fraction] | None = Field(
        None,
        description="Nobody is tied to one sensitive value with more than this; per value, '*' for the others.",
    )
    against: Many[Adversary] = Field(("insider",), description="Adversaries of a series.")
    diversity: Diversity | None = None
    closeness: Closeness | None = None
    alpha: Fraction | dict[str, Fraction] | None = Field(
        None, description="(alpha,k)-anonymity: bound on each (or each named) value's share of a class."
    )
    k_map: PopulationMap | None = None
    lifetime: Lifetime | None = None
    sensitive: Literal["each", "joint", "both"] = Field(
        "each", description="Several sensitive attributes: protect each, their combination, or both."
    )


Loss = Literal["ncp", "ail", "dm", "class-size", "precision", "entropy"]


class Mondrian(Strict):
    """Multidimensional recoding (LeFevre et al.)."""

    name: Literal["mondrian"] = "mondrian"
    cuts: Literal["gain", "median", "relaxed"] = Field(
        "gain", description="gain: the cut that shortens ranges most; median, relaxed: as published."
    )


class FullDomain(Strict):
    """One level per attribute, optimal for the chosen loss over the whole lattice."""

    name: Literal["full-domain"]
    loss: Loss = "ncp"
    suppression: float = Field(0.0, ge=0, le=1, description="Largest fraction of records that may be left out.")


class Specialize(Strict):
    """Top-down specialization of taxonomy cuts (Fung et al.)."""

    name: Literal["specialize"]
    loss: Literal["ncp", "precision", "entropy"] = "ncp"


Method = Annotated[Mondrian | FullDomain | Specialize, Field(discriminator="name")]


class Output(Strict):
    """How a release is written."""

    format: Literal["csv", "parquet"] = "csv"
    numbers: Literal["interval", "bounds", "midpoint"] = "interval"


class Input(Strict):
    """How delimited files are read, so that a series reads them the same way each time."""

    delimiter: str | None = Field(None, min_length=1, max_length=1, description="Default: found from the header.")
    quote: str = Field('"', min_length=1, max_length=1)
    encoding: str = "utf-8"
    missing: Many[str] = Field(("",), description="Cells that mean: no value.")


class Policy(Strict):
    """Everything a steward decides about one series of releases."""

    version: Literal[1]
    series: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    person: str | None = Field(None, description="The column that says who a record is about; never published.")
    attributes: dict[str, Attribute] = Field(min_length=1)
    protect: Protect
    method: Method = Mondrian()
    infeasible: Literal["hold-back", "suppress", "refuse"] = Field(
        "hold-back", description="Series: what happens to newcomers or leavers that cannot be hidden."
    )
    output: Output = Output()
    input: Input = Input()

    _base: Path = PrivateAttr(default=Path())

    @property
    def quasi_identifiers(self) -> dict[str, QuasiIdentifier]:
        """Name to attribute, in the order of the policy."""
        return {name: a for name, a in self.attributes.items() if isinstance(a, QuasiIdentifier)}

    @property
    def sensitive(self) -> dict[str, Sensitive]:
        """Name to attribute, in the order of the policy."""
        return {name: a for name, a in self.attributes.items() if isinstance(a, Sensitive)}

    @property
    def insensitive(self) -> tuple[str, ...]:
        """Columns published as they are."""
        return tuple(name for name, a in self.attributes.items() if isinstance(a, Insensitive))

    def path(self, name: str) -> Path:
        """A file named in the policy, relative to the policy file."""
        return self._base / name
