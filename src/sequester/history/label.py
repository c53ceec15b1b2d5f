"""Labels: everything a published row shows beside its box that stays with its person.

A row is published with all its cells. Whoever compares releases matches whole rows: the sensitive cells that stay and
the insensitive cells that stay, together. So people are told apart, or hidden, by their *label*, the tuple of these
cells; two attributes that are safe one by one can be certain together. What may change from release to release is no
part of a label.

Cells are taken as they are written: a set of values, a node of a taxonomy or `*` is one cell, and a person's is written
the same each time (of releases in which it is not, the finest is taken, see `finest`). Which values a cell has or may
have matters for what is asked: a `Question` is a value with a bound, and the labels that have it, or may have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.criterion import Criterion
from sequester.history.sight import permanent_part

if TYPE_CHECKING:
    from sequester.history.history import History
    from sequester.history.sight import Sight
    from sequester.policy.model import Policy

Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Question:
    """Whether somebody has a value: nobody may be tied to it more surely than the bound.

    labels  the labels with it, in order
    """

    attribute: str
    value: str
    bound: Fraction
    labels: Codes


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """What people, or labels, say to one sensitive view: the code of each, and what its values are called.

    bounds, criteria  what every class must keep, as in a history of the view
    """

    attribute: str
    of: Codes
    values: tuple[str, ...]
    bounds: tuple[Fraction, ...]
    criteria: tuple[Criterion, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Plain:
    """Insensitive cells: names of the columns, codes (columns, people or rows), and how every code is written."""

    names: tuple[str, ...] = ()
    codes: Codes = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    texts: tuple[Sequence[str], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Everybody's label, and what is asked about them.

    columns    names of the columns that labels are made of
    cells      (columns, labels) codes
    texts      per column, how every code is written
    of         per person of the history, her label; -1 for one whose label is not known
    questions  values with a bound
    answers    what every label says to each view
    """

    columns: tuple[str, ...]
    cells: Codes
    texts: tuple[Sequence[str], ...]
    of: Codes
    questions: tuple[Question, ...]
    answers: tuple[Answers, ...] = ()

    def __len__(self) -> int:
        """Number of labels."""
        return int(self.cells.shape[1])

    def __repr__(self) -> str:
        return f"<Labels: {len(self)} of {', '.join(self.columns)}, {len(self.questions)} questions>"

    def name(self, label: int) -> str:
        """A label as it is written."""
        return ", ".join(texts[code] for texts, code in zip(self.texts, self.cells[:, label].tolist(), strict=True))

    @cached_property
    def asked(self) -> tuple[Codes, Codes]:
        """Pairs of a question and a label that has it, sorted by label and question."""
        question = np.repeat(np.arange(len(self.questions), dtype=np.int32), [len(q.labels) for q in self.questions])
        label = np.concatenate([np.zeros(0, np.int32), *(q.labels for q in self.questions)]).astype(np.int32)
        order = np.lexsort((question, label))
        return question[order], label[order]

    def questions_of(self, label: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every question that these labels answer with yes: the place in the list, and the question."""
        question, of = self.asked
        first, last = np.searchsorted(of, label), np.searchsorted(of, label, side="right")
        number = last - first
        place = np.repeat(np.arange(len(label)), number)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
        return place, question[np.repeat(first, number) + offset].astype(np.int64)

    @classmethod
    def of_history(cls, history: History) -> Labels:
        """The labels of a history that is all there is: its values."""
        known = np.full(len(history.people), -1, np.int32) if history.value is None else history.value
        bounded = [code for code, bound in enumerate(history.bounds) if bound < 1]
        questions = tuple(
            Question(history.attribute, history.values[code], history.bounds[code], np.array([code], np.int32))
            for code in bounded
        )
        every = np.arange(len(history.values), dtype=np.int32)[None, :]
        return cls((history.attribute,), every, (history.values,), known, questions)

    @classmethod
    def of_cells(
        cls,
        columns: Sequence[str],
        cells: Codes,
        texts: Sequence[Sequence[str]],
        answers: Sequence[Answers],
    ) -> Labels:
        """Labels of people with these cells (columns, people) and answers."""
        group, first = row_groups(cells) if len(cells) else (np.zeros(cells.shape[1], np.int64), np.zeros(1, np.int64))
        said = tuple(replace(one, of=one.of[first]) for one in answers)
        questions = [
            Question(one.attribute, value, bound, np.flatnonzero(one.of == code).astype(np.int32))
            for one in said
            for code, (value, bound) in enumerate(zip(one.values, one.bounds, strict=True))
            if bound < 1
        ]
        asked = tuple(question for question in questions if len(question.labels))
        return cls(tuple(columns), cells[:, first], tuple(texts), group.astype(np.int32), asked, said)

    @classmethod
    def of_policy(
        cls, policy: Policy, domains: Sequence[Hierarchy], sights: Sequence[Sight], sensitive: Codes, plain: Plain
    ) -> Labels | None:
        """Labels of people, or of rows, with these sensitive codes (attributes, people) and insensitive cells.

        None where they say no more than one view does.
        """
        columns, cells, texts = [], [], []
        stays = permanent_part(policy, domains, sensitive)
        for (name, attribute), domain, codes in zip(policy.sensitive.items(), domains, stays, strict=True):
            if attribute.stays or attribute.permanent:
                columns.append(name)
                cells.append(codes)
                texts.append((*domain.names[0], "a value that changes"))
        for name, codes, names in zip(plain.names, plain.codes, plain.texts, strict=True):
            if name in policy.lasting:
                columns.append(name)
                cells.append(codes)
                texts.append(tuple(names))
        asked = [sight for sight in sights if sight.permanent]
        if not columns or (len(columns) == len(asked) == 1 and _tells_all(asked[0].codes, cells[0])):
            return None
        answers = [Answers(one.view.name, one.codes, one.names, one.bounds, one.criteria) for one in asked]
        return cls.of_cells(columns, np.array(cells, np.int32), texts, answers)


def _tells_all(answers: Codes, cells: Codes) -> bool:
    """Whether a view tells all cells apart; that of one element of sets, or of what nodes and `*` hide, need not."""
    return len(np.unique(answers)) == len(np.unique(cells))


WHOLE_ROW = "the whole row"
"""What attacks on labels are about, in place of an attribute."""

_DENSE = 1 << 26
"""Classes times labels up to which labels are counted class by class, for attacks on counts."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Whole rows, where they show more than one attribute.

    labels   everybody's, where people are known
    people   a history of the same releases: who is in which class, and `counted` if there is one
    counted  the same with labels for values, each bounded as the strictest value it has; None where that is too much
    """

    labels: Labels
    people: History
    counted: History | None

    @classmethod
    def of_people(cls, base: History, labels: Labels, *, counted: bool) -> Rows:
        """Of a history whose people are known, by their labels; counts are made where they are wanted."""
        return cls.of_rows(base, labels, [None] * len(base)) if counted else cls(labels, _of_rows(base), None)

    @classmethod
    def of_rows(cls, base: History, labels: Labels, rows: Sequence[Codes | None]) -> Rows:
        """The same, given the label of every published row of each release; None where people tell it."""
        fits = sum(len(one) for one in base.releases) * len(labels) <= _DENSE
        counted = _counted(base, labels, rows) if fits else None
        return cls(labels, _of_rows(base) if counted is None else counted, counted)


def _of_rows(base: History) -> History:
    return replace(base, attribute=WHOLE_ROW, element=None, permanent=True, notes=())


def _counted(base: History, labels: Labels, rows: Sequence[Codes | None]) -> History:
    """A history with labels for values; `rows` has the label of every published row, None where people tell it."""
    bounds = [Fraction(1)] * len(labels)
    for question in labels.questions:
        for label in question.labels.tolist():
            bounds[label] = min(bounds[label], question.bound)
    history = replace(
        _of_rows(base),
        values=tuple(labels.name(label) for label in range(len(labels))),
        bounds=tuple(bounds),
        criteria=(),
        value=labels.of if base.trajectories is not None and (labels.of >= 0).any() else None,
    )
    publications = []
    for release, own in zip(base.releases, rows, strict=True):
        if own is None:
            inside = np.flatnonzero(release.known_member >= 0)
            classes, codes = release.known_member[inside], labels.of[inside]
        else:
            classes, codes = release.row_class, own
        counts = np.bincount(classes.astype(np.int64) * len(labels) + codes, minlength=len(release) * len(labels))
        known = None if release.member is None else np.where(release.member >= 0, labels.of, -1).astype(np.int32)
        publications.append(
            replace(
                release,
                counts=counts.reshape(len(release), len(labels)).astype(np.int64),
                row_value=np.zeros(0, np.int32) if own is None else own,
                row_class=release.row_class[:0] if own is None else release.row_class,
                value=known,
            )
        )
    return replace(history, releases=tuple(publications))
