"""The next table beside everything published before: which person each record is about, and her values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.history.history import History, Publication
from sequester.history.label import Labels, Rows


@dataclass(frozen=True, eq=False, repr=False)
class Past:
    """What a method for a series is given beside the records themselves.

    histories  one per protected sensitive view, all with the same people and the same membership; their people
               include the newcomers, who are in no class of any release yet
    person     per record of the next table, its person in the histories; everyone at most once
    value      per history and record, the code of its value among the history's values
    labels     what rows show beside a single view, of all people of the histories; None where that is no more
    retained   per record, whether it is about somebody who left but is kept in the release: there is no raw record
               of her, so her class of the last release goes on whole, with its box
    """

    histories: tuple[History, ...]
    person: NDArray[np.int64]
    value: tuple[NDArray[np.int32], ...]
    retained: NDArray[np.bool_]
    labels: Labels | None = None

    def __len__(self) -> int:
        """Number of records."""
        return len(self.person)

    def __repr__(self) -> str:
        return f"<Past: {len(self)} records, {len(self.histories[0])} releases before>"

    @property
    def first(self) -> History:
        """Any of the histories: all have the same people and classes."""
        return self.histories[0]

    def views(self, *, permanent: bool) -> Past:
        """The same of those views whose values stay, or of those whose values change."""
        chosen = [place for place, history in enumerate(self.histories) if history.permanent is permanent]
        return replace(
            self,
            histories=tuple(self.histories[place] for place in chosen),
            value=tuple(self.value[place] for place in chosen),
        )

    def with_rows(self) -> Past:
        """The same with whole rows as one view more, where they show more than one view and can be counted."""
        counted = None if self.labels is None else Rows.of_people(self.first, self.labels, counted=True).counted
        if counted is None or self.labels is None:
            return self
        codes: NDArray[np.int32] = self.labels.of[self.person]
        return replace(self, histories=(*self.histories, counted), value=(*self.value, codes))

    def last_member(self) -> NDArray[np.int32]:
        """Per person of the histories, her class of the last release, -1 for those who were not in it."""
        if not len(self.first):
            return np.full(len(self.first.people), -1, np.int32)
        member = self.first.releases[-1].member
        if member is None:
            raise AssertionError("whoever publishes knows who is in which class")
        return member

    def last_class(self) -> NDArray[np.int32]:
        """Per record, its class of the last release, -1 for those who were not in it."""
        of_records: NDArray[np.int32] = self.last_member()[self.person]
        return of_records

    def extend(
        self,
        member: NDArray[np.int32],
        lo: NDArray[np.int32],
        hi: NDArray[np.int32],
        *,
        order: NDArray[np.int64],
        name: str,
    ) -> tuple[History, ...]:
        """The histories after these records are published in these classes, rows in this order; -1 is left out."""
        people, classes = len(self.first.people), lo.shape[1]
        placed = np.full(people, -1, np.int32)
        placed[self.person] = member
        kept = member >= 0
        extended = []
        for history, value in zip(self.histories, self.value, strict=True):
            values = len(history.values)
            counts = np.bincount(member[kept].astype(np.int64) * values + value[kept], minlength=classes * values)
            known = np.full(people, -1, np.int32)
            known[self.person[kept]] = value[kept]
            extended.append(
                history.extend(
                    Publication(
                        name=name,
                        lo=lo,
                        hi=hi,
                        counts=counts.reshape(classes, values).astype(np.int64),
                        row_class=member[order],
                        row_value=value[order],
                        member=placed,
                        value=known,
                    )
                )
            )
        return tuple(extended)
