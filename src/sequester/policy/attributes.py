"""What a column is, as the policy says it: one model per role, with the options that its kinds take.

What a kind does with its options, and how they must go together, is in `sequester.domain.kinds`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sequester.policy.base import LARGEST, Fraction, Many, Pair, Strict

_LONGEST_CODE = 255

Missing = Annotated[
    Literal["refuse", "category", "suppress"],
    Field(description="What a missing cell means: an error, a value of its own, or a record left out."),
]
# The first and the last band may be open-ended.
Edge = Annotated[float, Field(allow_inf_nan=True)]


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
        le=LARGEST,
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
    values: Literal["permanent", "transient", "first"] = Field(
        "permanent",
        description="Whether a person keeps the value, it may differ in every release, or it may change and what she "
        "had in her first release is published ever after.",
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
    def stays(self) -> bool:
        """Whether all that is published of a person is the same in every release."""
        return self.values != "transient"

    @property
    def is_graded(self) -> bool:
        """Whether values may be published as nodes of their taxonomy."""
        return self.grades is not None or self.guarding is not None


Attribute = Annotated[Identifier | Insensitive | Consent | QuasiIdentifier | Sensitive, Field(discriminator="role")]
