"""What each column must be. Problems give counts and row numbers; values only if the caller asked for them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain import codec, people
from sequester.domain.hierarchy import EVERYTHING, Codes
from sequester.domain.kinds import kind_of
from sequester.domain.kinds.kind import Fault
from sequester.errors import Problem
from sequester.ingest.source import quietly
from sequester.policy.attributes import QuasiIdentifier, Sensitive

_ROWS_SHOWN = 5
_VALUES_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class DistinctCells:
    """A column as its distinct values, understood as their kind, and which of them each row has (-1: missing)."""

    values: pa.Array | NDArray[Any]
    index: Codes


class Examination:
    """One attribute's column under examination; collects what is wrong with it."""

    def __init__(self, name: str, attribute: QuasiIdentifier | Sensitive, *, show_values: bool) -> None:
        self.name, self.attribute, self.show_values = name, attribute, show_values
        self.problems: list[Problem] = []

    def understand(self, column: pa.ChunkedArray, *, tokens: Sequence[str]) -> DistinctCells:
        """The cells as the kind of the attribute; wrong ones are reported, and count as missing from then on."""
        unsuited = Problem(f"has {_type(column)}, which is no {self.attribute.kind}", column=self.name)
        values, index = quietly(lambda: codec.distinct(column), lambda _: unsuited, errors=pa.ArrowException)
        absent = quietly(lambda: missing_values(values, tokens), lambda _: unsuited, errors=pa.ArrowException)
        if self.attribute.missing == "refuse":
            rows = np.append(absent, True)[index]
            fix = "fill them in, or say what they mean with `missing: category` or `missing: suppress`"
            self._report(rows, "has no value", "have no value", fix)
        parsed, wrong = quietly(
            lambda: self._parse(values, index, ~absent), lambda _: unsuited, errors=pa.ArrowException
        )
        # Distinct cells may be one value (5 and 5.0); that does no harm, since both get the same code.
        places = np.where(absent | wrong, np.int32(-1), np.arange(len(values), dtype=np.int32))
        return DistinctCells(parsed, np.append(places, np.int32(-1))[index])

    def look_up(self, cells: DistinctCells, codes: Codes, *, fix: str) -> None:
        """Report the rows whose value has no code in the hierarchy."""
        used = np.zeros(len(codes) + 1, np.bool_)
        used[cells.index] = True
        wrong = (codes < 0) & used[:-1]
        if not wrong.any():
            return
        shown = cells.values if isinstance(cells.values, pa.Array) else pa.array(cells.values)
        if codec.is_text(shown.type):
            strays = shown.filter(pa.array(wrong))
            if not pc.any(pc.equal(strays, pc.utf8_trim_whitespace(strays))).as_py():
                fix = "remove the blanks around the cells"
        outside = f"value outside the hierarchy, {int(wrong.sum())} distinct"
        rows = np.append(wrong, False)[cells.index]
        self._report(rows, f"has a {outside}", f"have a {outside}", fix, values=shown.filter(pa.array(wrong)))

    def _parse(self, values: pa.Array, index: Codes, present: codec.Mask) -> tuple[Any, codec.Mask]:
        parsed, faults = kind_of(self.attribute).parse(self.attribute, values, present)
        if isinstance(self.attribute, Sensitive) and isinstance(parsed, pa.Array):
            starred = present & codec.to_mask(pc.equal(parsed, EVERYTHING).fill_null(False))
            one, many = "is '*', which stands for no value", "are '*', which stands for none"
            faults = (*faults, Fault(starred, one, many, "give the value another name"))
        wrong = np.zeros(len(values), np.bool_)
        for fault in faults:
            rows = np.append(fault.wrong, False)[index]
            self._report(rows, fault.one, fault.many, fault.fix, values=values.filter(pa.array(fault.wrong)))
            wrong |= fault.wrong
        return parsed, wrong

    def _report(self, rows: codec.Mask, one: str, many: str, fix: str, *, values: pa.Array | None = None) -> None:
        count = int(rows.sum())
        if not count:
            return
        shown: tuple[str, ...] = ()
        if self.show_values and values is not None:
            shown = tuple(codec.to_text(values.slice(0, _VALUES_SHOWN)).to_pylist())
        message = f"{amount(count)} {one if count == 1 else many} ({places(rows)}); {fix}"
        self.problems.append(Problem(message, column=self.name, rows=count, values=shown))


def missing_values(values: pa.Array, tokens: Sequence[str]) -> codec.Mask:
    """Which values mean that there is none: null, NaN, and text that is a token once blanks around it are gone."""
    absent = pc.is_null(values, nan_is_null=True)
    if codec.is_text(values.type) and tokens:
        bare = pc.utf8_trim_whitespace(codec.to_text(values))
        listed = pa.array(sorted({token.strip() for token in tokens}), pa.string())
        absent = pc.or_(absent, pc.is_in(bare, value_set=listed))
    return codec.to_mask(absent)


def missing_columns(columns: Sequence[str], names: Sequence[str]) -> list[Problem]:
    """The columns that the policy needs and the table does not have, each with the closest name it does have.

    If it has none at all there may be no header line; its names are then cells, so none is quoted.
    """
    absent = [name for name in columns if name not in names]
    if len(absent) == len(columns):
        message = f"none of the {len(columns)} columns of the policy is in the table"
        return [Problem(f"{message}; it needs a header line with their names, and the right delimiter")]
    free = [name for name in names if name not in columns]
    problems = []
    for name in absent:
        close = difflib.get_close_matches(name, free, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "correct the policy or the header"
        problems.append(Problem(f"the table has no such column; {hint}", column=name))
    return problems


def check_people(column: pa.ChunkedArray, name: str, *, tokens: Sequence[str]) -> list[Problem]:
    """Every record has a person, and every person one record: ids are compared as they are hashed later."""
    lost, again = _nobody_and_repeated(column, name, tokens)
    problems = []
    if count := int(lost.sum()):
        message = f"{amount(count)} {'does' if count == 1 else 'do'} not say who they are about ({places(lost)})"
        problems.append(Problem(f"{message}; fill them in", column=name, rows=count))
    problems += _repeated(column, name, again, "a snapshot has one row per person")
    rounded = people.inexact(column) & ~lost
    if count := int(rounded.sum()):
        message = f"{amount(count)} {'has an id' if count == 1 else 'have ids'} too large for a column of floats"
        fix = "others may have been rounded to the same; store them as integers or text"
        problems.append(Problem(f"{message} ({places(rounded)}), and {fix}", column=name, rows=count))
    return problems


def repeated_people(column: pa.ChunkedArray, name: str, *, tokens: Sequence[str]) -> list[Problem]:
    """The people who are in a list twice: of those who hide others, everybody counts once."""
    return _repeated(column, name, _nobody_and_repeated(column, name, tokens)[1], "everybody counts once")


def _repeated(column: pa.ChunkedArray, name: str, again: codec.Mask, why: str) -> list[Problem]:
    count = int(again.sum())
    if not count:
        return []
    message = f"{amount(count)} {'is' if count == 1 else 'are'} about a person who has an earlier row"
    fix = f"{why}, so keep one"
    if len(codec.distinct(column)[0]) == len(column) - column.null_count:
        fix += " (blanks around an id, and how its letters are composed, make no other person)"
    return [Problem(f"{message} ({places(again)}); {fix}", column=name, rows=count)]


def _nobody_and_repeated(column: pa.ChunkedArray, name: str, tokens: Sequence[str]) -> tuple[codec.Mask, codec.Mask]:
    unsuited = Problem(f"has {_type(column)}, which cannot say who a record is about", column=name)
    known_as = quietly(lambda: people.names(column), lambda _: unsuited, errors=pa.ArrowException)
    values, index = codec.distinct(pa.chunked_array([known_as]))
    tokens = tokens if codec.is_text(_kind(column)) else ()
    nobody = np.zeros(len(values), np.bool_)
    if tokens:
        nobody = codec.to_mask(pc.is_in(values, value_set=people.names(pa.array(tokens, pa.string()))))
    lost = np.append(nobody, True)[index]
    if len(values) == len(index):
        return lost, np.zeros(len(index), np.bool_)
    # Written backwards, the first row of every person is the one that stays.
    earliest = np.zeros(len(values) + 1, np.int64)
    earliest[index[::-1]] = np.arange(len(index))[::-1]
    return lost, (earliest[index] != np.arange(len(index))) & ~lost


def amount(count: int) -> str:
    """'1 row', '2 rows'."""
    return f"{count} {'row' if count == 1 else 'rows'}"


def places(rows: codec.Mask) -> str:
    """The numbers of the first few rows, counted from 1 without the header."""
    first = (np.flatnonzero(rows) + 1)[: _ROWS_SHOWN + 1].tolist()
    listed = ", ".join(map(str, first[:_ROWS_SHOWN]))
    if len(first) > _ROWS_SHOWN:
        return f"rows {listed}, ..."
    return f"{'row' if len(first) == 1 else 'rows'} {listed}"


def _type(column: pa.ChunkedArray) -> str:
    """The type in words: that of a nested column names the keys of its cells."""
    kind = _kind(column)
    return "nested cells" if pa.types.is_nested(kind) else f"the type {kind}"


def _kind(column: pa.ChunkedArray) -> pa.DataType:
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type
