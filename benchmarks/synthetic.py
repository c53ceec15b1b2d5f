"""Seeded synthetic records of any number, with the domain sizes of usual quasi-identifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement
from sequester.methods.class_guard.guard import ClassGuard
from sequester.policy import Policy

SIZES = (74, 2, 16, 7, 5, 41, 100, 1000)
NAMES = tuple(f"q{number}" for number in range(len(SIZES)))
VALUES = tuple(f"value {number:02d}" for number in range(20))


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Codes (attributes, records) of eight quasi-identifiers and of one sensitive attribute (1, records)."""

    codes: NDArray[np.int32]
    sensitive: NDArray[np.int32]

    def guard(self, **protect: Any) -> ClassGuard:
        """The guard of a policy that promises this."""
        return ClassGuard.of(Requirement.from_policy(policy(**protect), [from_values(VALUES)]), self.sensitive)


def make(count: int, *, seed: int = 0) -> Records:
    """Bell-shaped quasi-identifiers, and twenty sensitive values, the first thirty times as frequent as the last."""
    random = np.random.default_rng(seed)
    codes = np.empty((len(SIZES), count), np.int32)
    for attribute, size in enumerate(SIZES):
        codes[attribute] = np.minimum(random.beta(2, 3, count) * size, size - 1)
    share = 1 / np.linspace(1, 30, len(VALUES))
    sensitive = random.choice(len(VALUES), size=(1, count), p=share / share.sum()).astype(np.int32)
    return Records(codes, sensitive)


def domains() -> tuple[Hierarchy, ...]:
    """Every quasi-identifier is a number from 0."""
    return tuple(from_numbers(np.arange(size, dtype=np.float64)) for size in SIZES)


def policy(*, person: str | None = None, **protect: Any) -> Policy:
    """A policy over such records, released as Parquet."""
    quasi = {
        name: {"role": "quasi-identifier", "kind": "number", "range": [0, size - 1]}
        for name, size in zip(NAMES, SIZES, strict=True)
    }
    return Policy.model_validate(
        {
            "version": 1,
            "series": "synthetic",
            "person": person,
            "attributes": {**quasi, "condition": {"role": "sensitive"}},
            "protect": protect,
            "output": {"format": "parquet"},
        }
    )
