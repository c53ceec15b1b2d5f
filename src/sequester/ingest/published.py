"""A table as published, by us or by another tool, as classes and codes.

Cells may be raw, generalized, or a mix. Domains are those the policy declares; what it leaves open is taken from the
cells themselves: of numbers, dates and codes the ends of the published intervals, of categories the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.arrays import numbered, row_groups
from sequester.domain import codec, notation
from sequester.domain.hierarchy import EVERYTHING, MISSING, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, Problem
from sequester.ingest.ends import domain_of, is_unbounded
from sequester.ingest.read import read
from sequester.ingest.source import quietly
from sequester.ingest.validate import check_people
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.model import Input, Policy

_VALUES_SHOWN = 10
_COUNT = "count"
_UNREAD = "has a type that cannot be read as text; convert it"


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One attribute's cells: the distinct texts, and for every row which of them it has (-1: none)."""

    name: str
    attribute: QuasiIdentifier | Sensitive
    texts: tuple[str, ...]
    index: Codes


@dataclass(frozen=True, eq=False, repr=False)
class PublishedTable:
    """The columns that count of one table; `left_out` rows lacked a value where the policy suppresses them.

    `person` says who each row is about, as given, where that was asked for and the table has it; `plain` are the
    insensitive columns that it has.
    """

    quasi: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    rows: int
    left_out: int
    person: pa.ChunkedArray | None = None
    plain: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<PublishedTable: {self.rows} rows>"


@dataclass(frozen=True, eq=False, repr=False)
class PublishedClasses:
    """Classes of a published table: boxes as (quasi-identifiers, classes), and the class of every record."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    member: NDArray[np.int64]
    domains: tuple[Hierarchy, ...]

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """Records per class."""
        size = np.bincount(self.member, minlength=self.lo.shape[1])
        size.flags.writeable = False
        return size

    def __len__(self) -> int:
        return int(self.lo.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class OpenedTable:
    """A published table that was read, and its classes, for whoever asks several things of it."""

    table: PublishedTable
    classes: PublishedClasses

    @classmethod
    def of(cls, source: Any, policy: Policy) -> OpenedTable:
        """Read a table that is written as a release is; one that was read is as it is."""
        if isinstance(source, OpenedTable):
            return source
        table = open_table(source, policy)
        return cls(table, classes_of(table, publish_domains(policy, table, None)))


def open_table(
    source: Any, policy: Policy, *, sensitive: bool = True, own: bool = False, person: bool = False
) -> PublishedTable:
    """The columns of a table. `own` says it is written as the policy's input; a release may be written otherwise.

    `person` asks for the policy's person column too, if the table has it.
    """
    attributes: dict[str, QuasiIdentifier | Sensitive] = {**policy.quasi_identifiers}
    if sensitive:
        attributes |= policy.sensitive
    wanted = [*attributes, *(f"{name}{end}" for name in policy.quasi_identifiers for end in ("_min", "_max"))]
    plain = policy.insensitive if sensitive else ()
    wanted += plain
    if person and policy.person is not None:
        wanted.append(policy.person)
    if _COUNT not in policy.attributes:
        wanted.append(_COUNT)
    table = _read(source, policy, wanted, own=own)
    if not own and _COUNT not in policy.attributes:
        table = _uncounted(table)
    problems: list[Problem] = []
    columns: list[Column] = []
    for name, attribute in attributes.items():
        cells = _cells(table, name, attribute)
        if cells is None:
            problems.append(Problem("is not in the table; add it, or take it out of the policy", column=name))
            continue
        columns.append(_column(name, attribute, cells, policy))
    if not problems and not len(table):
        problems.append(Problem("the table has no rows"))
    people = table.column(policy.person) if person and policy.person in table.column_names else None
    if people is not None and policy.person is not None:
        problems += check_people(people, policy.person, tokens=policy.input.missing)
    for column in columns:
        empty = int(np.count_nonzero(column.index < 0))
        if empty and column.attribute.missing == "refuse":
            fix = "fill them, or say with `missing` what they mean"
            problems.append(Problem(f"{_rows(empty)} no value; {fix}", column=column.name, rows=empty))
    if problems:
        raise DataError(problems)
    keep = np.ones(len(table), bool)
    for column in columns:
        if column.attribute.missing == "suppress":
            keep &= column.index >= 0
    kept = [replace(column, index=column.index[keep]) for column in columns]
    rows = int(keep.sum())
    cut = len(policy.quasi_identifiers)
    cells = {name: table.column(name) for name in plain if name in table.column_names}
    if rows < len(table):
        people = None if people is None else people.filter(pa.array(keep))
        cells = {name: column.filter(pa.array(keep)) for name, column in cells.items()}
    return PublishedTable(tuple(kept[:cut]), tuple(kept[cut:]), rows, len(table) - rows, people, cells)


def domains_of(policy: Policy, *tables: Sequence[Column]) -> tuple[Hierarchy, ...]:
    """The domain of every column, declared or from the cells of all tables given, which have the same columns."""
    domains, problems = [], []
    for columns in zip(*tables, strict=True):
        try:
            attribute = columns[0].attribute
            # As a release writes a sensitive cell without a value.
            lacking = isinstance(attribute, Sensitive) and attribute.missing == "category"
            texts = [text for column in columns for text in column.texts if not (lacking and text == MISSING)]
            domains.append(domain_of(columns[0].attribute, texts, path=policy.path))
        except DataError as error:
            problems += [replace(problem, column=columns[0].name) for problem in error.problems]
    if problems:
        raise DataError(problems)
    return tuple(domains)


def publish_domains(policy: Policy, table: PublishedTable, original: PublishedTable | None) -> tuple[Hierarchy, ...]:
    """Quasi-identifier domains: the original's, as the publisher had them, where they explain the published cells."""
    if original is None:
        return domains_of(policy, table.quasi)
    domains = list(domains_of(policy, original.quasi))
    for place, (published, raw) in enumerate(zip(table.quasi, original.quasi, strict=True)):
        if not notation.read(domains[place], published.texts)[2].all():
            domains[place] = domains_of(policy, [raw], [published])[0]
    return tuple(domains)


def classes_of(table: PublishedTable, domains: Sequence[Hierarchy], *, show_values: bool = False) -> PublishedClasses:
    """The classes of a table: records are in one class when all their published values mean the same.

    `*` is a class of its own even where the interval of all values seen is written out: it excludes nobody. A set
    whose members are no neighbours is told from others with the same ends.
    """
    cells = meanings_of(table, domains, show_values=show_values)
    keys = np.array([cell.meaning[column.index] for cell, column in zip(cells, table.quasi, strict=True)], np.int32)
    member, first = row_groups(keys)
    return PublishedClasses(*_boxes(table, [(cell.lo, cell.hi) for cell in cells], first), member, tuple(domains))


@dataclass(frozen=True, eq=False, repr=False)
class Meanings:
    """What the texts of one column mean, and last no value: codes from `lo` to `hi`; `meaning` is one number for texts
    that mean the same."""

    lo: Codes
    hi: Codes
    meaning: Codes


def meanings_of(table: PublishedTable, domains: Sequence[Hierarchy], *, show_values: bool = False) -> list[Meanings]:
    """What the texts of every quasi-identifier mean."""
    meanings = []
    for column, domain, (lo, hi) in zip(table.quasi, domains, _sides(table, domains, show_values), strict=True):
        kind = kind_of(column.attribute)
        free = [is_unbounded(kind, text) for text in column.texts]
        meaning, _ = row_groups(np.array([lo, hi, np.append(free, False), np.append(_sets(column, domain), 0)]))
        meanings.append(Meanings(lo, hi, meaning.astype(np.int32)))
    return meanings


def boxes_of(
    table: PublishedTable, domains: Sequence[Hierarchy], *, first: NDArray[np.int64], show_values: bool = False
) -> tuple[Codes, Codes]:
    """The boxes of classes, given one record of each, in any domains that explain the published values."""
    return _boxes(table, _sides(table, domains, show_values), first)


def exact_codes(columns: Sequence[Column], domains: Sequence[Hierarchy], *, show_values: bool = False) -> Codes:
    """One code per record and column, for raw quasi-identifiers and sensitive values: (columns, records)."""
    codes, problems = [], []
    for column, domain in zip(columns, domains, strict=True):
        lo, hi, understood = _spans(column, domain)
        if isinstance(column.attribute, Sensitive) and EVERYTHING in domain.names[0]:
            blank = np.append([text == EVERYTHING for text in column.texts], False).astype(np.bool_)
            lo[blank] = hi[blank] = domain.names[0].index(EVERYTHING)
        understood &= lo == hi
        if not understood.all():
            problems.append(_unread(column, understood, show_values=show_values))
        codes.append(lo[column.index])
    if problems:
        raise DataError(problems)
    rows = len(columns[0].index) if columns else 0
    return np.array(codes, np.int32).reshape(len(columns), rows)


def _read(source: Any, policy: Policy, wanted: Sequence[str], *, own: bool) -> pa.Table:
    form = policy.input
    how: dict[str, Any] = {"missing": form.missing, "columns": wanted}
    if own:
        # The publisher's own table is no release.
        return read(source, delimiter=form.delimiter, encoding=form.encoding, quote=form.quote, **how)
    how["escaped"] = policy.output.formulas == "escape"
    try:
        return read(source, **how)
    except DataError:
        if form.encoding.lower() in ("utf-8", "utf8") and form.quote == Input().quote:
            raise
    return read(source, encoding=form.encoding, quote=form.quote, **how)


def _uncounted(table: pa.Table) -> pa.Table:
    """Every row as often as its column `count` says, where no two rows are the same: as AnonyPy and AnonyPyx write."""
    if _COUNT not in table.column_names or not len(table):
        return table
    counts, readable = codec.to_numbers(pc.cast(table[_COUNT].combine_chunks(), pa.string()))
    rows = table.drop_columns(_COUNT)
    counted = bool(readable.all()) and bool(((counts >= 1) & (counts == np.floor(counts))).all())
    if not counted or not rows.num_columns or len(rows.group_by(rows.column_names).aggregate([])) < len(rows):
        return rows
    return rows.take(pa.array(np.repeat(np.arange(len(rows)), counts.astype(np.int64))))


def _cells(table: pa.Table, name: str, attribute: QuasiIdentifier | Sensitive) -> pa.ChunkedArray | None:
    if name in table.column_names:
        return table.column(name)
    ends = (f"{name}_min", f"{name}_max")
    if isinstance(attribute, Sensitive) or not set(ends) <= set(table.column_names):
        return None
    absent, unread = attribute.missing == "category", Problem(_UNREAD, column=name)
    low, high = (table.column(end) for end in ends)
    return quietly(lambda: _joined(low, high, absent=absent), lambda _: unread, errors=pa.ArrowException)


def _joined(low: pa.ChunkedArray, high: pa.ChunkedArray, *, absent: bool) -> pa.ChunkedArray:
    """Two columns of bounds as intervals. Where values may be missing, no bounds exclude nothing."""
    (lows, first), (highs, last) = codec.distinct(low), codec.distinct(high)
    pairs, _, index = numbered(first.astype(np.int64) * (len(highs) + 1) + last)
    one, other = np.divmod(pairs + 1, len(highs) + 1)
    ends = [
        pc.take(codec.to_text(_without_nan(values)), pa.array(np.where(at < 0, 0, at), mask=at < 0))
        for values, at in ((lows, one), (highs, other - 1))
    ]
    joined = pc.binary_join_element_wise("[", ends[0], ", ", ends[1], "]", "")
    if absent:
        joined = joined.fill_null(EVERYTHING)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), joined)])


def _without_nan(values: pa.Array) -> pa.Array:
    """A float that is not a number is no value."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def _column(name: str, attribute: QuasiIdentifier | Sensitive, cells: pa.ChunkedArray, policy: Policy) -> Column:
    unread = Problem(_UNREAD, column=name)
    values, index = quietly(lambda: codec.distinct(cells), lambda _: unread, errors=pa.ArrowException)
    no_value = set(policy.input.missing)
    values = _without_nan(values)
    if codec.is_text(values.type):
        # As they are written: a set of letters, or a day in a format of its own, is not written as it is read.
        empty = pc.is_in(values.cast(pa.string()), value_set=pa.array(sorted(no_value), pa.string()))
        values = pc.if_else(empty, pa.scalar(None, values.type), values)
    texts = quietly(lambda: kind_of(attribute).texts(attribute, values), lambda _: unread, errors=pa.ArrowException)
    present = [place for place, text in enumerate(texts) if text is not None and text not in no_value]
    places = np.full(len(texts) + 1, -1, np.int32)
    places[present] = np.arange(len(present), dtype=np.int32)
    return Column(name, attribute, tuple(str(texts[place]) for place in present), places[index])


def _sides(table: PublishedTable, domains: Sequence[Hierarchy], show_values: bool) -> list[tuple[Codes, Codes]]:
    sides, problems = [], []
    for column, domain in zip(table.quasi, domains, strict=True):
        lo, hi, understood = _spans(column, domain)
        if not understood.all():
            problems.append(_unread(column, understood, show_values=show_values))
        sides.append((lo, hi))
    if problems:
        raise DataError(problems)
    return sides


def _boxes(
    table: PublishedTable, sides: Sequence[tuple[Codes, Codes]], first: NDArray[np.int64]
) -> tuple[Codes, Codes]:
    lo, hi = np.empty((2, len(sides), len(first)), np.int32)
    for place, (column, side) in enumerate(zip(table.quasi, sides, strict=True)):
        lo[place], hi[place] = (end[column.index[first]] for end in side)
    return lo, hi


def _spans(column: Column, domain: Hierarchy) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """Code interval of every distinct text and, last, of no value."""
    lo, hi, understood = notation.read(domain, column.texts)
    if isinstance(column.attribute, Sensitive):
        raw = kind_of(column.attribute).raw_codes(column.attribute, column.texts)
        lo, hi = np.where(understood, lo, raw), np.where(understood, hi, raw)
        understood = lo >= 0
    elif not understood.all():
        # What a set lets people guess lies between its ends, so its loss is at most that of the interval.
        for place, runs in _scattered(column, domain).items():
            lo[place], hi[place] = runs[0][0], runs[-1][1]
        understood = lo >= 0
    absent = np.int32(domain.size - 1 if domain.missing else -1)
    return np.append(lo, absent), np.append(hi, absent), np.append(understood, True)


def _scattered(column: Column, domain: Hierarchy) -> dict[int, tuple[tuple[int, int], ...]]:
    """The texts that are sets of values which are no neighbours, as AnonyPy writes them, by their place.

    Of numbers and dates these are intervals with the missing leaf, where other cells tell of leaves in between: the
    last day that anybody has is not the end of its month.
    """
    ordered, last = kind_of(domain).ordered, domain.size - 1
    if ordered and not domain.missing:
        return {}
    understood = notation.read(domain, column.texts)[2]
    places = np.flatnonzero(~understood).tolist()
    sets = notation.read_scattered(domain, [column.texts[place] for place in places])
    found = {place: runs for place, runs in zip(places, sets, strict=True) if runs is not None}
    return {p: runs for p, runs in found.items() if not ordered or (len(runs) == 2 and runs[1] == (last, last))}


def _sets(column: Column, domain: Hierarchy) -> NDArray[np.int64]:
    """A number for every text that is such a set, the same for the same set; 0 for all other texts."""
    numbers: dict[tuple[tuple[int, int], ...], int] = {}
    number = np.zeros(len(column.texts), np.int64)
    for place, runs in _scattered(column, domain).items():
        number[place] = numbers.setdefault(runs, len(numbers) + 1)
    return number


def _unread(column: Column, understood: NDArray[np.bool_], *, show_values: bool) -> Problem:
    rows = int(np.count_nonzero(~understood[column.index]))
    shown = [text for text, ok in zip(column.texts, understood.tolist(), strict=False) if not ok]
    return Problem(
        f"{_rows(rows)} a value that is not understood; check its kind and hierarchy in the policy",
        column=column.name,
        rows=rows,
        values=tuple(shown[:_VALUES_SHOWN]) if show_values else (),
    )


def _rows(number: int) -> str:
    return "1 row has" if number == 1 else f"{number} rows have"
