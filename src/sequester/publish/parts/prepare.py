"""The next release of a large table: surveyed, dealt out, made and judged part by part, and written in files.

What a single table goes through in `publish.prepare` happens here to each part. Before that, all that is looked at are
the different cells of every column and how many rows have them; after it, that nobody is in two parts.
"""

from __future__ import annotations

import contextlib
import shutil
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sequester.attacks.attack import Audited
from sequester.domain.hierarchy import Hierarchy
from sequester.drafts import draft_elsewhere
from sequester.engine import Engine, Means, engine_of
from sequester.engine.engine import CELL, COUNT
from sequester.errors import DataError, GuaranteeError, Problem
from sequester.ingest.source import Wanted
from sequester.ingest.survey import Observed, Surveyor
from sequester.ingest.validate import missing_columns
from sequester.ledger import Ledger
from sequester.ledger.part_ledger import Parts
from sequester.ledger.parts import PartList, Shelf, refuse_readable
from sequester.log import Progress, Stages, tell
from sequester.policy.model import Policy
from sequester.processes import unwritten
from sequester.publish.parts.division import Between, Coder, Division, Errand, StepGrid, twins
from sequester.publish.parts.make import MadePart, Maker, Twins, together
from sequester.publish.parts.sliced import ROWS, Writer, WrittenFile, common_schema
from sequester.publish.plan import Plan
from sequester.publish.roster import moves_of, nobody

if TYPE_CHECKING:
    from sequester.publish.prepare import Request


_STAGES = ("reading", "dealing out", "making parts", "comparing people", "writing")
# Of the time of a whole plan, about, at ten million rows.
_SHARES = (0.03, 0.15, 0.65, 0.02, 0.15)
# Memory of one process per row of a part, measured with eight quasi-identifiers by pods (benchmark `scale`).
_NEED = 2_500
# Hashes of so many people are compared at a time.
_COMPARED = 8_000_000


@dataclass(frozen=True, eq=False, repr=False)
class InParts:
    """A release made in parts, in a private folder that is gone when nobody has this any more."""

    errand: Errand
    made: tuple[MadePart, ...]
    files: tuple[WrittenFile, ...]
    schema: pa.Schema
    listed: PartList
    weight: float | None

    @property
    def shown(self) -> tuple[MadePart, ...]:
        """The parts that have rows in the release."""
        return tuple(part for part in self.made if part.card.records)


def make_in_parts(
    ledger: Ledger,
    policy: Policy,
    request: Request,
    plan: Plan,
    *,
    audited: Audited | None,
    progress: Progress | None,
) -> Plan:
    """The plan of a release with the release, made and judged. Where that fails nothing is left of it; a full disk is
    told as what it is."""
    with contextlib.ExitStack() as keep:
        failure = None
        try:
            shop = _Workshop(ledger, policy, request, plan, audited, keep, progress)
            parts = shop.make(shop.open())
            made = replace(together(plan, parts.made, policy), parts=parts)
            weakref.finalize(parts, keep.pop_all().close)
            return made
        except OSError as error:
            failure = DataError(unwritten(error))
        raise failure


class _Workshop:
    """One release in the making; what is in between is removed when `keep` is closed."""

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy,
        request: Request,
        plan: Plan,
        audited: Audited | None,
        keep: contextlib.ExitStack,
        progress: Progress | None,
    ) -> None:
        self.ledger, self.policy, self.request, self.plan, self.audited = ledger, policy, request, plan, audited
        self._tell = Stages("publish", _STAGES, progress, shares=_SHARES)
        options = policy.engine
        folders = tuple(filter(Path.is_dir, map(Shelf(ledger.place).of_release, ledger.releases())))
        spill = ledger.place.spill
        where = spill.parent if options.spill is None else policy.path(options.spill)
        self.spill = keep.enter_context(draft_elsewhere(spill, where))
        refuse_readable(self.spill, "what is in between, on this disk; name a folder on another with `engine.spill`")
        self.engine: Engine = engine_of(options, Means.of(options, self.spill, folders=folders), request.source)
        keep.callback(self.engine.close)

    def open(self) -> Any:
        """The table, opened: its rows may have been copied."""
        self._tell(0)
        reading = Surveyor.of(self.policy, {}, show_values=False).reading
        wanted = Wanted(reading.columns, frozenset(reading.attributes))
        rows = self.engine.open(self.request.source, wanted, form=self.policy.input)
        if problems := missing_columns(reading.columns, rows.names):
            raise DataError(problems)
        if not rows.count:
            raise DataError("the table has no rows")
        return rows

    def make(self, rows: Any) -> InParts:
        """The release, made and judged."""
        errand = self._errand(rows)
        for what in get_args(Between):
            errand.place(what).mkdir(mode=0o700)
        self._tell(1)
        dealt = self.engine.deal(rows, Coder(errand), errand.place("dealt"))
        if dealt != rows.count:
            raise AssertionError("every row is dealt to a part")
        made = self._made(errand)
        self._tell(3)
        self._refuse_twins(errand, made)
        self._tell(4)
        schema = common_schema([part.schema for part in made if part.card.records])
        sums = tuple(sum(column) % (1 << 64) for column in zip(*(part.sums for part in made), strict=True))
        # How many people a row stands for, where some rows may be decoys.
        rows_of_all = sum(part.card.records for part in made)
        weight = None
        if any(part.plan.pods is not None for part in made):
            weight = round(sum(part.plan.people for part in made) / max(rows_of_all, 1), 6)
        files = self._all(Writer(errand, schema, sums, weight), range(errand.slices), need=ROWS * 400)
        self._tell.done(release=self.plan.number, parts=len(made), records=rows_of_all)
        listed = PartList(tuple(part.card for part in made), errand.division.to_dict())
        return InParts(errand, made, tuple(sorted(files, key=lambda file: file.name)), schema, listed, weight)

    def _errand(self, rows: Any) -> Errand:
        parts, before = Parts.of(self.ledger), self.ledger.domains()
        observed, spread, cells = self._survey(rows, before)
        now = {name: one.domain for name, one in observed.items()}
        if parts.lists:
            division = Division.from_dict(parts.lists[-1].division).within(before, now)
        else:
            division = self._divide(rows, observed, spread, cells)
        tell("publish", "divides", rows=rows.count, parts=division.parts)
        return Errand(
            policy=self.policy,
            plan=self.plan,
            domains=now,
            division=division,
            spill=self.spill,
            slices=max(1, -(-rows.count // ROWS)),
            parts=parts,
            audited=self.audited,
        )

    def _survey(
        self, rows: Any, before: Mapping[str, Hierarchy]
    ) -> tuple[dict[str, Observed], dict[str, np.ndarray], dict[str, pa.ChunkedArray]]:
        """The domain of every column; of quasi-identifiers that stay, people per code, and their different cells."""
        surveyor = Surveyor.of(self.policy, before, show_values=self.request.show_values)
        observed: dict[str, Observed] = {}
        spread: dict[str, np.ndarray] = {}
        cells: dict[str, pa.ChunkedArray] = {}
        problems: list[Problem] = []
        names = (*self.policy.quasi_identifiers, *self.policy.sensitive, *self.policy.insensitive)
        for place, name in enumerate(names):
            _show(self._tell.part(0), _STAGES[0], place, len(names))
            found = self.engine.distinct(rows, name)
            try:
                observed[name] = surveyor.observe(name, found[CELL])
            except DataError:
                # What is wrong is counted by rows, not by different cells.
                problems += self._problems(surveyor, rows, name)
                continue
            if name in self.policy.quasi_identifiers and not self.policy.quasi_identifiers[name].changes:
                codes, count = observed[name].codes, found[COUNT].to_numpy()
                spread[name] = np.bincount(codes, weights=count, minlength=observed[name].domain.size).astype(np.int64)
                cells[name] = found[CELL]
        if problems:
            raise DataError(problems)
        return observed, spread, cells

    def _problems(self, surveyor: Surveyor, rows: Any, name: str) -> Sequence[Problem]:
        try:
            surveyor.observe(name, self.engine.column(rows, name))
        except DataError as error:
            return error.problems
        raise AssertionError("what is wrong with cells is wrong with the rows that have them")

    def _divide(
        self,
        rows: Any,
        observed: Mapping[str, Observed],
        spread: Mapping[str, np.ndarray],
        cells: Mapping[str, pa.ChunkedArray],
    ) -> Division:
        """How people are divided from now on."""
        grid = StepGrid.over(spread)
        steps = {
            name: pa.table({CELL: cells[name], "step": pa.array(grid.steps(name, observed[name].codes))})
            for name in grid.names
        }
        tally = self.engine.tally(rows, {name: table.filter(pc.is_valid(table[CELL])) for name, table in steps.items()})
        people = np.zeros(grid.shape, np.int64)
        np.add.at(people, tuple(tally[name].to_numpy() for name in grid.names), tally[COUNT].to_numpy())
        return Division.of(grid, people, most=self.policy.engine.part)

    def _made(self, errand: Errand) -> tuple[MadePart, ...]:
        """Every part, with as many kinds of people coming and going as can be hidden in all of them.

        Of each kind all move or nobody does, whichever part they are in: who waits tells no more than in one table.
        """
        self._tell(2)
        parts, lists = range(errand.division.parts), errand.parts.lists
        need = max((self.policy.engine.part, *(card.people for listed in lists for card in listed.cards))) * _NEED
        refused: GuaranteeError | None = None
        for move in moves_of([True, bool(lists), bool(lists)], self.policy):
            for folder in (errand.place("recorded"), errand.place("rows"), errand.place("people")):
                shutil.rmtree(folder)
                folder.mkdir(mode=0o700)
            try:
                made = self._all(Maker(errand, move), parts, need=need)
            except GuaranteeError as error:
                refused = refused or error
            else:
                if any(part.card.records for part in made):
                    return tuple(sorted(made, key=lambda part: part.card.part))
        raise refused or nobody(None)

    def _all(self, work: Any, items: Sequence[int], *, need: int) -> list[Any]:
        """Work on all items, with progress."""
        done = []
        for result in self.engine.each(work, list(items), need=need):
            done.append(result)
            stage = 2 if isinstance(result, MadePart) else 4
            _show(self._tell.part(stage), _STAGES[stage], len(done), len(items))
        return done

    def _refuse_twins(self, errand: Errand, made: Sequence[MadePart]) -> None:
        """Stop where somebody is in several parts."""
        ever = sum(part.card.people for part in made)
        ranges = max(1, -(-ever // _COMPARED))
        if again := sum(self.engine.each(Twins(errand, ranges), list(range(ranges)), need=_COMPARED * 64)):
            raise twins(errand, again)


def _show(progress: Progress | None, what: str, done: int, of: int) -> None:
    if progress is not None:
        progress(what, done, of)
