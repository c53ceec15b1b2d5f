"""What is looked at as one sensitive value, and how: criteria are over the value counts of a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes

if TYPE_CHECKING:
    from sequester.guarantees.criterion import Criterion

C = TypeVar("C", bound="Criterion")

Places = Sequence[Sequence[int]] | Literal["all"]
"""Per value, which of the bounds that are asked for it must keep; `all`: every value has its own."""


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """An attribute, one element of its sets, or the combination of all.

    codes     one value per record, below `size`
    place     the number of the attribute, None for a combination
    of        per code of the attribute, that of the view
    element   which of the attribute's elements it is about: code 0 says that a record has it, 1 that it does not
    first     of a combination, a record with each
    names     of the values, where they are not those of the attribute
    criteria  what every class must keep

    How its values are looked at decides which criteria are defined on them:

    bounds    which bounds of the attribute its values must keep; None: bounds are about other views of it
    apart     whether its values exclude each other, so that different ones can be counted
    own       whether its values are those of the attribute, in their order
    """

    name: str
    codes: Codes
    size: int
    place: int | None = None
    of: Codes | None = None
    element: str | None = None
    first: NDArray[np.int64] | None = None
    names: tuple[str, ...] | None = None
    criteria: tuple[Criterion, ...] = ()
    bounds: Places | None = None
    apart: bool = False
    own: bool = False

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often the table has each value."""
        return np.bincount(self.codes, minlength=self.size)

    def criterion(self, kind: type[C]) -> C | None:
        """The one of this kind, where it is asked for."""
        return next((one for one in self.criteria if isinstance(one, kind)), None)

    def under(self, asked: Iterable[Criterion]) -> View:
        """The same with those of these criteria that are defined on it."""
        return replace(self, criteria=tuple(seen for one in asked if (seen := one.on(self)) is not None))
