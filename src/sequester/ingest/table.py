"""A table that is read and checked against its policy, but not yet in codes: domains may need all its values first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.build import observe
from sequester.domain.codec import Mask
from sequester.domain.grid import with_grid
from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.domain.nodes import is_value
from sequester.domain.people import bare
from sequester.errors import DataError, Problem
from sequester.ingest.decimals import with_points
from sequester.ingest.personal import guarding_nodes, withheld
from sequester.ingest.read import open_source
from sequester.ingest.source import Wanted, quietly
from sequester.ingest.validate import DistinctCells, Examination, check_people, missing_columns, repeated_people
from sequester.log import tell
from sequester.policy.attributes import Consent, QuasiIdentifier, Sensitive
from sequester.policy.model import Input

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Reading:
    """Which columns to read, as what.

    known     hierarchies that are fixed before the data
    fixes     per attribute with a known hierarchy, what to do about a value outside it
    consent   the column that says who agrees to be published, and how it does
    listed    in a list of people, the column that says who they are, if it has one: nobody may be in it twice
    guarding  per sensitive attribute, the column with the nodes that people want their values published as
    """

    attributes: Mapping[str, QuasiIdentifier | Sensitive]
    known: Mapping[str, Hierarchy]
    fixes: Mapping[str, str]
    form: Input
    person: str | None = None
    plain: tuple[str, ...] = ()
    show_values: bool = False
    consent: tuple[str, Consent] | None = None
    guarding: Mapping[str, str] = field(default_factory=dict)
    listed: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Everything to read; the person first, since looking for repeated people takes the most memory."""
        first = [self.person] if self.person is not None else []
        asked = [self.consent[0]] if self.consent is not None else []
        return (*first, *asked, *self.attributes, *self.guarding.values(), *self.plain)


@dataclass(repr=False)
class RawTable:
    """The columns of one input. With problems, it is good for nothing but reporting them."""

    reading: Reading
    rows: int = 0
    cells: dict[str, DistinctCells] = field(default_factory=dict)
    person: pa.Array | None = None
    withheld: Mask | None = None
    plain: dict[str, pa.ChunkedArray] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def kept(self) -> Mask | None:
        """The rows that consent and `missing: suppress` leave in; None for all."""
        lacking = np.zeros(self.rows, np.bool_) if self.withheld is None else self.withheld.copy()
        for name, cells in self.cells.items():
            if name in self.reading.attributes and self.reading.attributes[name].missing == "suppress":
                lacking |= cells.index < 0
        return ~lacking if lacking.any() else None

    @property
    def records(self) -> int:
        """How many rows are left in."""
        return self.rows if self.kept is None else int(self.kept.sum())

    def all_problems(self) -> list[Problem]:
        """What was found while reading, and a table of which nothing is left."""
        if self.problems or self.records:
            return self.problems
        if self.withheld is not None and self.withheld.all():
            return [Problem(f"nobody in the {self.rows} rows agrees to be published")]
        return [Problem(f"all {self.rows} rows lack a value that `missing: suppress` asks for; nothing is left")]

    def values(self, name: str) -> pa.Array | NDArray[Any]:
        """The distinct values of an attribute in the rows that are left in."""
        cells = self.cells[name]
        used = np.zeros(len(cells.values) + 1, np.bool_)
        used[cells.index if self.kept is None else cells.index[self.kept]] = True
        used = used[:-1]
        return cells.values.filter(pa.array(used)) if isinstance(cells.values, pa.Array) else cells.values[used]

    def codes(self, names: tuple[str, ...], domains: Mapping[str, Hierarchy]) -> NDArray[np.int32]:
        """One row of codes per attribute. Lets go of the cells, so that a large table is not held twice."""
        kept = self.kept
        codes = np.empty((len(names), self.records), np.int32)
        for row, name in zip(codes, names, strict=True):
            cells, domain = self.cells.pop(name), domains[name]
            # The place after the last value stands for a missing one; index -1 finds it.
            code = np.append(_codes(self.reading.attributes[name], domain, cells), np.int32(domain.size - 1))
            np.take(code, cells.index if kept is None else cells.index[kept], mode="wrap", out=row)
        return codes


def read_table(source: Any, reading: Reading, *, progress: Progress | None = None) -> RawTable:
    """Read and check every column that is asked for; whatever is wrong is collected in the table."""
    table = RawTable(reading)
    perhaps = () if reading.listed is None else (reading.listed,)
    try:
        opened = open_source(
            source, Wanted((*perhaps, *reading.columns), frozenset(reading.attributes)), form=reading.form
        )
    except DataError as error:
        table.problems += error.problems
        return table
    table.problems += missing_columns(reading.columns, opened.names)
    present = [name for name in (*perhaps, *reading.columns) if name in opened.names]
    problems: list[Problem] = []
    for number, name in enumerate(present, start=1):
        if progress is not None:
            progress(name, number, len(present))
        try:
            take(table, name, opened.load(name), problems)
        except DataError as error:
            problems += error.problems
    if present and not table.rows and not problems:
        problems.append(Problem("the table has no rows"))
    tell("ingest", "read", rows=table.rows, columns=len(present), problems=len(problems) or None)
    # An input that fails as a whole fails for each of its columns.
    table.problems += dict.fromkeys(problems)
    return table


def observe_domains(*tables: RawTable) -> dict[str, Hierarchy]:
    """The hierarchies of the first table's attributes: the known ones, and the others from the values of all tables."""
    reading, domains, problems = tables[0].reading, dict(tables[0].reading.known), []
    for name, attribute in reading.attributes.items():
        if name in domains:
            continue
        values = [table.values(name) for table in tables if name in table.cells]
        try:
            domains[name] = observe(attribute, with_grid(attribute, _together(values)))
        except DataError as error:
            problems += [replace(problem, column=name) for problem in error.problems]
    if problems:
        raise DataError(problems)
    return domains


def take(table: RawTable, name: str, column: pa.ChunkedArray, problems: list[Problem]) -> None:
    """Read one column into a table; what is wrong with it is added to the problems."""
    reading, table.rows = table.reading, len(column)
    if not table.rows:
        return
    if name == reading.person:
        problems += check_people(column, name, tokens=reading.form.missing)
        table.person = bare(_whole(column, name))
    elif name == reading.listed:
        problems += repeated_people(column, name, tokens=reading.form.missing)
    elif reading.consent is not None and name == reading.consent[0]:
        table.withheld, wrong = withheld(column, *reading.consent, tokens=reading.form.missing)
        problems += wrong
    elif name in reading.guarding.values():
        table.cells[name] = guarding_nodes(column, name, tokens=reading.form.missing)
    elif name in reading.attributes:
        examination = Examination(name, reading.attributes[name], show_values=reading.show_values)
        if reading.form.decimal == "," and kind_of(reading.attributes[name]).numeric:
            column = with_points(column)
        try:
            cells = examination.understand(column, tokens=reading.form.missing)
            if name in reading.known:
                codes = _codes(reading.attributes[name], reading.known[name], cells)
                examination.look_up(cells, codes, fix=reading.fixes[name])
            table.cells[name] = cells
        finally:
            problems += examination.problems
    else:
        table.plain[name] = column


def _codes(attribute: QuasiIdentifier | Sensitive, domain: Hierarchy, cells: DistinctCells) -> Codes:
    codes = kind_of(attribute).codes(attribute, domain, cells.values)
    if isinstance(attribute, Sensitive) and attribute.is_graded:
        # A node is a way to publish a value, not a value.
        codes = np.where(np.append(is_value(domain), False)[codes], codes, np.int32(-1)).astype(np.int32)
    return codes


def _together(parts: list[pa.Array | NDArray[Any]]) -> list[str] | NDArray[Any]:
    if all(isinstance(part, pa.Array) for part in parts):
        texts: list[str] = pa.concat_arrays(parts).to_pylist()
        return texts
    return np.concatenate(parts)


def _whole(column: pa.ChunkedArray, name: str) -> pa.Array:
    """One array; text beyond what 32-bit offsets reach is widened."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) and column.nbytes > np.iinfo(np.int32).max:
        column = column.cast(pa.large_string())
    return quietly(lambda: pa.concat_arrays(column.chunks), lambda _: Problem("cannot be read", column=name))
