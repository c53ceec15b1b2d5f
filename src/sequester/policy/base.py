"""What all models of a policy have in common."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

# Counts beyond this are mistakes, and overflow in compiled loops.
LARGEST = 1_000_000_000

Fraction = Annotated[float, Field(gt=0, le=1)]

T = TypeVar("T")
# Strict models take no list for a tuple; files have only lists.
Many = Annotated[tuple[T, ...], BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]
Pair = Annotated[tuple[T, T], BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]


class Strict(BaseModel):
    """Unknown keys are errors, nothing is guessed, and nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, hide_input_in_errors=True)
