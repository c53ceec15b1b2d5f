"""What is asked of the rows that are left once cracked rows are excluded (Fung et al., section 7.2).

Buddies have the same sensitive value, so the rows of different values are cracked apart, and one assignment leaves of
every value as many rows as any assignment does. The shares of that assignment are asked: somebody who holds both
releases cannot prove that a value is more frequent among the rows that may be the target's, since it may be the truth.
Assignments that leave fewer rows of the other values are possible too, but nobody can prove them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import Setting
from sequester.attacks.finding import Finding
from sequester.attacks.solvers.buddies import Counts
from sequester.guarantees.confidence import judged_shares
from sequester.guarantees.criterion import Criterion
from sequester.history import History
from sequester.history.label import Answers

_CELLS = 1 << 24

_LIKE_CLASSES = ("diversity",)
"""Promises about classes, beside shares, that what is left must keep; a distance from the table says nothing here."""


@dataclass(frozen=True, eq=False, repr=False)
class Asked:
    """One promise about classes, of the values of one attribute that these rows have."""

    answers: Answers
    criterion: Criterion

    def counts(self, rows: Counts) -> Counts:
        """(sets of rows, values of the attribute) given their (sets of rows, kinds of rows)."""
        found = np.zeros((len(self.answers.values), len(rows)), np.int64)
        np.add.at(found, self.answers.of, rows.T)
        return np.ascontiguousarray(found.T)

    def broken(self, rows: Counts) -> NDArray[np.intp]:
        """The sets of rows that do not keep it; nothing is asked of no rows."""
        step = max(1, _CELLS // max(rows.shape[1], 1))
        parts = [
            start + np.flatnonzero(rows[start : start + step].any(axis=1) & ~self.criterion.holds(counts))
            for start in range(0, len(rows), step)
            for counts in (self.counts(rows[start : start + step]),)
        ]
        return np.concatenate([np.zeros(0, np.intp), *parts])

    def tell(self, finding: Finding, rows: Counts) -> Finding:
        """The finding of a target with these rows left, as one about what they say."""
        counts = self.counts(rows[None, :])
        blamed = self.criterion.blame(counts[0])
        if blamed is None:
            observed, required = float(self.criterion.observed(counts)[0]), float(self.criterion.required)
            value, bound = None, self.criterion.name
        else:
            observed, required, bound = blamed.observed, blamed.required, blamed.promise
            value = self.answers.values[blamed.value]
        witness = {**finding.witness, "bound": bound}
        attribute = self.answers.attribute
        return replace(finding, required=required, observed=observed, value=value, attribute=attribute, witness=witness)


def asked_of(history: History, asked: Setting | None = None) -> tuple[Asked, ...]:
    """What the rows of a history must keep of its values, or, where it is about whole rows, of every view of them."""
    if not history.permanent:
        return ()
    labels = None if asked is None else asked.labels_of(history)
    alpha = None if asked is None else asked.policy.protect.alpha
    own = Answers(
        history.attribute,
        np.arange(len(history.values), dtype=np.int32),
        history.values,
        history.bounds,
        history.criteria,
    )
    views: Sequence[Answers] = (own,) if labels is None else labels.answers
    return tuple(Asked(view, criterion) for view in views for criterion in _criteria(view, alpha))


def _criteria(view: Answers, alpha: float | Mapping[str, float] | None) -> Iterator[Criterion]:
    shares = judged_shares(view.bounds, view.values, alpha if view.attribute else None)
    if shares is not None:
        yield shares
    yield from (one for one in view.criteria if one.name in _LIKE_CLASSES)
