"""Who shares values with whom: the pods of every release, and everybody's seat for ever.

A pod is a smallest group of people who share their labels out among themselves. Its labels are its *type*; a person
keeps her type and her seat in it in all releases, and every class of every release is a union of whole pods. Then the
labels of a type's seats can be permuted among everybody who is linked through pods, a *lineage*, and no class shows it.
Rows about nobody, *decoys*, are numbered like people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import numbered

Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Seats:
    """What the maker of a series knows beside its classes; private.

    decoy  per person of the histories, whether there is nobody: a row that stands in for somebody
    type   per person, the number of her type
    seat   per person, which seat of it she has, from 0
    pods   per release, per person, the pod she is in; -1 when absent
    """

    decoy: NDArray[np.bool_]
    type: Numbers
    seat: Numbers
    pods: tuple[Numbers, ...]

    @classmethod
    def none(cls) -> Seats:
        """Before the first release."""
        return cls(np.zeros(0, np.bool_), np.zeros(0, np.int32), np.zeros(0, np.int32), ())

    def __len__(self) -> int:
        """People and decoys."""
        return len(self.type)

    def __repr__(self) -> str:
        return f"<Seats: {len(self)} people, {int(self.decoy.sum())} of them decoys, over {len(self.pods)} releases>"

    def extend(self, decoy: NDArray[np.bool_], type_: Numbers, seat: Numbers, pod: Numbers) -> Seats:
        """The same after one more release: first three of those who are new, then everybody's pod, -1 for absence."""
        fill = len(decoy)
        before = tuple(np.append(one, np.full(fill, -1, np.int32)) for one in self.pods)
        return Seats(
            np.append(self.decoy, decoy),
            np.append(self.type, type_).astype(np.int32),
            np.append(self.seat, seat).astype(np.int32),
            (*before, pod),
        )

    def until(self, releases: int) -> Seats:
        """The same after so many releases; whoever joined later is in no pod."""
        return replace(self, pods=self.pods[:releases])

    def lineages(self) -> Numbers:
        """Per person (or decoy), her lineage: everybody she is linked to through pods, directly or through others.

        Release by release, since after the first ones hardly any pod links people who are not linked already.
        """
        return self._lineages

    @cached_property
    def _lineages(self) -> Numbers:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        label = np.arange(len(self))
        for pod in self.pods:
            here = np.flatnonzero(pod >= 0)
            own, of = label[here], pod[here]
            other = np.zeros(int(of.max(initial=-1)) + 1, np.int64)
            other[of] = own
            apart = own != other[of]
            ends = np.concatenate([own[apart], other[of][apart]])
            nodes, _, place = numbered(ends)
            one, two = np.split(place, 2)
            links = coo_array((np.ones(len(one), np.int8), (one, two)), shape=(len(nodes), len(nodes)))
            joined = connected_components(links, directed=False)[1] if len(nodes) else place
            first = numbered(joined)[1]
            goes_to = np.arange(len(self))
            goes_to[nodes] = nodes[first][joined]
            label = goes_to[label]
        return numbered(label)[2].astype(np.int32)
