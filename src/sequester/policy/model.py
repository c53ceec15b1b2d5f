"""The policy as strict, frozen models. Unknown keys are errors, and numbers are not guessed from text.

Columns are in `attributes`, what is promised in `protect`, how releases are made in `methods`. The models only
describe: loading with line numbers is in `load`, checks across keys are in `checks`, and what pydantic says is put into
words in `phrase`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from sequester.policy.attributes import Attribute, Consent, Insensitive, QuasiIdentifier, Sensitive
from sequester.policy.base import LARGEST, Many, Strict
from sequester.policy.methods import MethodOptions, Mondrian, Pods
from sequester.policy.protect import Protect
from sequester.viewable import Viewable

# Passed as validation context by `load`, which has run the checks across keys itself.
CHECKED = {"sequester": "checked"}

# Of a series or a release: file systems take 255, and more is put before and after a name.
LONGEST_NAME = 100


def _default_method(given: dict[str, Any]) -> Mondrian | Pods:
    """The method of a policy that names none, by what it says otherwise."""
    from sequester.policy.defaults import default_method

    return Pods(name="pods") if default_method(given) == "pods" else Mondrian()


class Output(Strict):
    """How a release is written."""

    format: Literal["csv", "parquet"] = Field("csv", description="The kind of file.")
    numbers: Literal["bounds", "interval", "midpoint"] = Field(
        "bounds", description="How a generalized number is written: two columns, [21-30], or its middle."
    )
    formulas: Literal["keep", "escape"] = Field(
        "keep",
        description="csv: cells and headers that a spreadsheet would run (=, +, -, @) as they are, or after a '.",
    )
    weights: Literal["column", "none"] = Field(
        "column",
        description="Where some rows are decoys: a column `weight`, the same in every row, that adds up to the people.",
    )


class Input(Strict):
    """How text is read, so that a series reads it the same way each time."""

    delimiter: str | None = Field(None, min_length=1, max_length=1, description="Default: found from the header.")
    quote: str = Field('"', min_length=1, max_length=1, description="What surrounds cells that hold the delimiter.")
    encoding: str = Field("utf-8", description="How characters are stored.")
    missing: Many[str] = Field(("",), description="Cells that mean: no value.")
    decimal: Literal[".", ","] = Field(".", description="What stands before the fraction of a number written as text.")


class EngineOptions(Strict):
    """Where rows are read, dealt out and written, and in how much room. What is published does not depend on it."""

    name: Literal["duckdb", "spark"] = Field("duckdb", description="duckdb: this machine; spark: a cluster, or this.")
    part: int = Field(
        1_000_000,
        ge=1,
        le=LARGEST,
        description="A first table of more than four times as many rows is made in parts of about so many at most.",
    )
    memory: str | None = Field(
        None,
        pattern=r"^[1-9][0-9]*(\.[0-9]+)? ?(MB|GB|TB)$",
        description="How much memory may be used, e.g. 8GB. Default: three quarters of what the machine has.",
    )
    spill: str | None = Field(
        None,
        min_length=1,
        description="A private folder for what does not fit into memory; for spark one that all its machines see. "
        "Default: beside the ledger.",
    )
    processes: int | None = Field(None, ge=1, le=1024, description="Parts made at a time. Default: one per processor.")
    master: str | None = Field(None, min_length=1, description="spark: the address of the cluster. Default: local[*].")


class Policy(Strict, Viewable):
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
    method: MethodOptions = Field(
        default_factory=lambda given: _default_method(given), description="How a release is made."
    )
    decoys: float = Field(
        0.05,
        ge=0,
        le=1,
        description="pods: at most this share of rows is about nobody, beyond what must be.",
    )
    distortion: float = Field(
        0.1,
        ge=0,
        le=1,
        description="pods: decoys should change the share of a value by at most this part of it, or half a point.",
    )
    impossible: Many[dict[str, str]] = Field(
        (),
        description="What everybody knows cannot be together, e.g. {sex: F, diagnosis: prostate cancer}.",
    )
    infeasible: Literal["hold-back", "suppress", "refuse"] = Field(
        "hold-back", description="Series: what happens to newcomers or leavers that cannot be hidden."
    )
    corrections: Literal["refuse", "keep", "hold-out"] = Field(
        "refuse",
        description="Series: people whose cells that do not change differ from what was published: an error, or they "
        "are published as they were, or all of them are left out as if they had left.",
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
    engine: EngineOptions = Field(EngineOptions(), description="Where large tables are worked on.")

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
        quasi: dict[str, QuasiIdentifier] = {}
        for name, attribute in self.attributes.items():
            if isinstance(attribute, QuasiIdentifier):
                quasi[name] = attribute
            elif isinstance(attribute, Insensitive) and self.released == "quasi-identifier":
                quasi[name] = QuasiIdentifier(role="quasi-identifier", missing="category")
        return quasi

    @property
    def linked(self) -> int | None:
        """Most people whose values may hang together, where pods are made: room for two pods at least."""
        from sequester.policy.pod_checks import seats_of

        if not isinstance(self.method, Pods) or not self.bounds_values:
            return None
        return self.protect.lineage or max(8, 2 * seats_of(self.model_dump()))

    @property
    def fewest(self) -> int:
        """Fewest rows that anything inferred from several releases may come down to; by pods, a pod's seats."""
        k, inferred = self.protect.k, self.protect.inferred
        if inferred is None and isinstance(self.method, Pods) and self.bounds_values:
            from sequester.policy.pod_checks import fewest_seats_of

            return min(k, fewest_seats_of(self.model_dump()))
        return k if inferred is None else inferred

    @property
    def fewest_people(self) -> int:
        """Fewest people of a class: only pods have rows about nobody."""
        k, people = self.protect.k, self.protect.people
        if not isinstance(self.method, Pods):
            return k
        if people is None:
            # A class of one type is small whatever is done: few people have the same values to share.
            return 1 if self.method.classes == "one-type" else -(-k // 2)
        return people

    @property
    def consent(self) -> tuple[str, Consent] | None:
        """The column that says whether a person agrees, and how it does."""
        return next(((name, a) for name, a in self.attributes.items() if isinstance(a, Consent)), None)

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
    def has_weights(self) -> bool:
        """Whether its releases have a column that says how many people a row stands for."""
        return isinstance(self.method, Pods) and self.output.weights == "column"

    @property
    def lasting(self) -> tuple[str, ...]:
        """Columns published as they are that do not change: they link the rows of a person."""
        attributes = ((name, self.attributes[name]) for name in self.insensitive)
        return tuple(name for name, a in attributes if isinstance(a, Insensitive) and not a.changes)

    def path(self, name: str) -> Path:
        """A file named in the policy, relative to the policy file."""
        return self._base / name
