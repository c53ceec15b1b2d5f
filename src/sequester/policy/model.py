"""The policy as strict, frozen models. Unknown keys are errors, and numbers are not guessed from text.

The models only describe. Loading with line numbers is in `load`, checks across keys are in `checks`, and what
pydantic says is put into words in `phrase`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

# Passed as validation context by `load`, which has run the checks across keys itself.
CHECKED = {"sequester": "checked"}

# Of a series or a release: file systems take 255, and more is put before and after a name.
LONGEST_NAME = 100
# Counts beyond this are mistakes, and overflow in compiled loops.
_LARGEST = 1_000_000_000
_LONGEST_CODE = 255

Missing = Annotated[
    Literal["refuse", "category", "suppress"],
    Field(description="What a missing cell means: an error, a value of its own, or a record left out."),
]
Fraction = Annotated[float, Field(gt=0, le=1)]

# The first and the last band may be open-ended.
Edge = Annotated[float, Field(allow_inf_nan=True)]

T = TypeVar("T")
# Strict models take no list for a tuple; files have only lists.
Many = Annotated[tuple[T, ...], BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]
Pair = Annotated[tuple[T, T], BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class Identifier(Strict):
    """Dropped before anything else."""

    role: Literal["identifier"] = Field(description="Names a person; dropped.")


class Insensitive(Strict):
    """Published as it is. What does not change links the rows of a person, and every attack may use it."""

    role: Literal["insensitive"] = Field(description="Tells nothing about a person; published as it is.")
    changes: bool = Field(False, description="May differ for one person from release to release; links no rows then.")


class Consent(Strict):
    """What a person allows: records without consent are not published."""

    role: Literal["consent"] = Field(description="Whether the person agrees to be published; never published itself.")
    given: Many[str] = Field(("true", "yes", "1"), description="Cells that say yes, whatever the case of letters.")
    withheld: Many[str] = Field(("false", "no", "0"), description="Cells that say no, as an empty cell does.")
    wait: int = Field(
        0,
        ge=0,
        le=_LARGEST,
        description="Series: for how many releases a withdrawal may wait until enough others hide it.",
    )


class Drift(Strict):
    """How far a number or a date may move."""

    by: Pair[float] = Field(description="The least and the most change from release to release; of dates in days.")


class QuasiIdentifier(Strict):
    """What an adversary may know about a person; generalized."""

    role: Literal["quasi-identifier"] = Field(description="May be known about a person; generalized.")
    kind: Literal["category", "number", "code", "date"] = Field("category", description="What the cells are.")
    hierarchy: str | dict[str, Any] | list[Any] | None = Field(
        None, description="category: a tree of values, or an ARX hierarchy CSV (leaf;level1;...;*)."
    )
    range: Pair[float] | None = Field(None, description="number: lowest and highest value.")
    bands: Many[Edge] | None = Field(None, description="number: edges of fixed bands, one level.")
    levels: Many[float] | Many[Literal["day", "month", "quarter", "year", "decade"]] | None = Field(
        None, description="number: widths of bands, each a multiple of the one before. date: calendar steps."
    )
    length: int | None = Field(
        None, ge=1, le=_LONGEST_CODE, description="code: number of characters; generalized by its prefixes."
    )
    format: str | None = Field(None, description="date: how cells are written, as in strptime; default ISO 8601.")
    changes: bool | Drift = Field(
        False,
        description="May differ for one person from release to release: freely, or {by: [least, most]} each time.",
    )
    missing: Missing = "refuse"


class Sensitive(Strict):
    """What nobody may learn about a person."""

    role: Literal["sensitive"] = Field(description="What nobody may learn about a person.")
    kind: Literal["category", "number", "set"] = Field(
        "category", description="What the cells are: a value, a number (needs bands), or several values in one cell."
    )
    separator: str | None = Field(
        None, min_length=1, max_length=1, description="set: what is between the values of a cell; default ';'."
    )
    hierarchy: str | dict[str, Any] | list[Any] | None = Field(
        None, description="A tree of values or an ARX hierarchy CSV; used by the hierarchical distance."
    )
    bands: Many[Edge] | None = Field(
        None,
        description="number: edges of the bands that are published and protected as values, e.g. [0, 50, .inf].",
    )
    values: Literal["permanent", "transient"] = Field(
        "permanent", description="Whether a person keeps the value or it may differ in every release."
    )
    permanent: Many[str] = Field(
        (), description="transient: the values that a person who has one keeps, while all others may change."
    )
    grades: dict[str, str] | None = Field(
        None,
        description="Per value low (published as it is), high (as the node above) or a node; '*' for the others.",
    )
    guarding: str | None = Field(
        None, description="A column with the node that a person wants her own value to be published as, or nothing."
    )
    ordinary: Many[str] = Field((), description="Values that need no confidence bound (k still counts them).")
    confidence: Fraction | dict[str, Fraction] | None = Field(
        None, description="Overrides protect.confidence here; per value, with '*' for the others."
    )
    missing: Missing = "refuse"

    @property
    def between(self) -> str:
        """What is between the values of a set."""
        return self.separator or ";"

    @property
    def is_graded(self) -> bool:
        """Whether values may be published as nodes of their taxonomy."""
        return self.grades is not None or self.guarding is not None


Attribute = Annotated[Identifier | Insensitive | Consent | QuasiIdentifier | Sensitive, Field(discriminator="role")]


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

    k: int = Field(ge=1, le=_LARGEST, description="How many people of the population fit each published row.")
    population: str = Field(description="A file with the quasi-identifier columns of the population.")


class Lifetime(Strict):
    """Global guarantee (Wong et al.): nobody was ever linked to a value with more than 1/l, over all releases."""

    l: float = Field(gt=1, description="Nobody is linked to a value with more than 1/l.")  # noqa: E741
    strategy: Literal["constant-ratio", "geometric"] = Field(
        "constant-ratio", description="How the risk is spread over the releases."
    )
    releases: int | None = Field(
        None, ge=1, le=_LARGEST, description="constant-ratio: the number of releases planned for."
    )
    alpha: float | None = Field(None, gt=1, description="geometric: how much larger than the minimum ratio to stay.")
    registered: str | None = Field(
        None,
        description="A file with the quasi-identifiers of everybody who may be in a release; nobody knows who is.",
    )


Adversary = Literal["outsider", "neighbor", "insider", "lifetime"]


class Protect(Strict):
    """What is promised."""

    k: int = Field(ge=1, le=_LARGEST, description="Every class has at least k people.")
    confidence: Fraction | dict[str, Fraction] | None = Field(
        None,
        description="Nobody is tied to one sensitive value with more than this; per value, '*' for the others.",
    )
    inferred: int | None = Field(
        None,
        ge=1,
        le=_LARGEST,
        description="Series: fewest rows that anything inferred from several releases may come down to; default k.",
    )
    lineage: int | None = Field(
        None,
        ge=2,
        le=_LARGEST,
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
        None, ge=1, le=_LARGEST, description="About how many clusters a first table has; default: many."
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
        description="Pods with any values in one class, or only with the same: m-invariance (Xiao and Tao); more loss.",
    )
    leaving: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of people who will leave from release to release, for the first one; then it is known.",
    )


class Static(Strict):
    """Every release on its own, as tools without a memory make it. For comparison: the series leaks."""

    name: Literal["static"] = Field(description="Ignore what was published before; for comparison only.")
    cuts: Cuts = Field("gain", description="How the table is cut, as in mondrian.")


Method = Annotated[
    Mondrian | FullDomain | Specialize | Merge | Grow | Group | Cluster | Pods | Static, Field(discriminator="name")
]


def _default_method(given: dict[str, Any]) -> Mondrian | Pods:
    """The method of a policy that names none, by what it says otherwise."""
    from sequester.policy.defaults import default_method

    return Pods(name="pods") if default_method(given) == "pods" else Mondrian()


class Output(Strict):
    """How a release is written."""

    format: Literal["csv", "parquet"] = Field("csv", description="The kind of file.")
    numbers: Literal["interval", "bounds", "midpoint"] = Field(
        "interval", description="How a generalized number is written: [21-30], two columns, or its middle."
    )
    formulas: Literal["keep", "escape"] = Field(
        "keep",
        description="csv: cells and headers that a spreadsheet would run (=, +, -, @) as they are, or after a '.",
    )


class Input(Strict):
    """How delimited files are read, so that a series reads them the same way each time."""

    delimiter: str | None = Field(None, min_length=1, max_length=1, description="Default: found from the header.")
    quote: str = Field('"', min_length=1, max_length=1, description="What surrounds cells that hold the delimiter.")
    encoding: str = Field("utf-8", description="How characters are stored.")
    missing: Many[str] = Field(("",), description="Cells that mean: no value.")


class Policy(Strict):
    """Everything a steward decides about one series of releases."""

    version: Literal[1] = Field(description="The version of this format.")
    series: str = Field(
        min_length=1,
        max_length=LONGEST_NAME,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="The name of the series of releases.",
    )
    person: str | None = Field(None, description="The column that says who a record is about; never published.")
    attributes: dict[str, Attribute] = Field(min_length=1, description="Every column of the table, by its name.")
    protect: Protect = Field(description="What is promised.")
    method: Method = Field(default_factory=lambda given: _default_method(given), description="How a release is made.")
    decoys: float = Field(
        0.05,
        ge=0,
        le=1,
        description="pods: at most this share of rows is about nobody, beyond what must be.",
    )
    impossible: Many[dict[str, str]] = Field(
        (),
        description="What everybody knows cannot be together, e.g. {sex: F, diagnosis: prostate cancer}.",
    )
    infeasible: Literal["hold-back", "suppress", "refuse"] = Field(
        "hold-back", description="Series: what happens to newcomers or leavers that cannot be hidden."
    )
    corrections: Literal["refuse", "hold-out"] = Field(
        "refuse",
        description="Series: people whose cells that do not change differ from what was published: an error, or all of "
        "them are left out as if they had left.",
    )
    ledger: str | None = Field(
        None,
        min_length=1,
        description="Series: where the ledger is: a file, or postgresql://user@host/database. Default: SERIES.ledger.",
    )
    after: str | None = Field(
        None,
        description="The ledger of an earlier series of the same people: everything published then counts as known.",
    )
    released: Literal["as-declared", "quasi-identifier"] = Field(
        "as-declared",
        description="quasi-identifier: what was released may be known later, so insensitive columns are generalized.",
    )
    output: Output = Field(Output(), description="How a release is written.")
    input: Input = Field(Input(), description="How delimited files are read.")

    _base: Path = PrivateAttr(default=Path())

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file. Everything that is wrong is in one PolicyError, with file, line and key."""
        from sequester.policy.load import load_policy

        return load_policy(path)

    @classmethod
    def model_validate(cls, obj: Any, **_options: Any) -> Policy:
        """A policy from a mapping; files it names are relative to the working directory. Raises PolicyError."""
        from sequester.policy.document import Document
        from sequester.policy.load import build_policy

        return obj if isinstance(obj, Policy) else build_policy(Document("", obj), base=Path())

    @model_validator(mode="after")
    def _cross_check(self, info: ValidationInfo) -> Self:
        """A policy built with the constructor is checked as strictly; pydantic then reports it in its own way."""
        if info.context is not CHECKED:
            from sequester.policy.checks import cross_check
            from sequester.policy.document import dotted

            issues = cross_check(self.model_dump(exclude_unset=True))
            if issues:
                raise ValueError("; ".join(f"{dotted(path)}: {message}" for path, message in issues))
        return self

    @property
    def quasi_identifiers(self) -> dict[str, QuasiIdentifier]:
        """Name to attribute, in the order of the policy."""
        found: dict[str, QuasiIdentifier] = {}
        for name, attribute in self.attributes.items():
            if isinstance(attribute, QuasiIdentifier):
                found[name] = attribute
            elif isinstance(attribute, Insensitive) and self.released == "quasi-identifier":
                found[name] = QuasiIdentifier(role="quasi-identifier", missing="category")
        return found

    @property
    def linked(self) -> int | None:
        """Most people whose values may hang together, where pods are made: room for two pods at least."""
        from sequester.policy.pod_checks import seats_of

        if not isinstance(self.method, Pods) or not self.bounds_values:
            return None
        return self.protect.lineage or max(8, 2 * seats_of(self.model_dump()))

    @property
    def consent(self) -> tuple[str, Consent] | None:
        """The column that says whether a person agrees, and how it does."""
        found = [(name, given) for name, given in self.attributes.items() if isinstance(given, Consent)]
        return found[0] if found else None

    @property
    def registration_list(self) -> Path | None:
        """The file with everybody who may be in a release, where nobody knows who is."""
        lifetime = self.protect.lifetime
        return None if lifetime is None or lifetime.registered is None else self.path(lifetime.registered)

    @property
    def sensitive(self) -> dict[str, Sensitive]:
        """Name to attribute, in the order of the policy."""
        return {name: a for name, a in self.attributes.items() if isinstance(a, Sensitive)}

    @property
    def insensitive(self) -> tuple[str, ...]:
        """Columns published as they are."""
        if self.released == "quasi-identifier":
            return ()
        return tuple(name for name, a in self.attributes.items() if isinstance(a, Insensitive))

    @property
    def bounds_values(self) -> bool:
        """Whether a sensitive value has a bound, or would have if somebody had it."""
        given = [self.protect.confidence if a.confidence is None else a.confidence for a in self.sensitive.values()]
        return any(isinstance(bound, dict) or (bound is not None and bound < 1) for bound in given)

    @property
    def lasting(self) -> tuple[str, ...]:
        """Columns published as they are that do not change: they link the rows of a person."""
        attributes = ((name, self.attributes[name]) for name in self.insensitive)
        return tuple(name for name, a in attributes if isinstance(a, Insensitive) and not a.changes)

    def path(self, name: str) -> Path:
        """A file named in the policy, relative to the policy file."""
        return self._base / name
