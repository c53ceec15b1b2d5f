"""What a steward does with a series beside publishing: withdraw a release, close the series, give people other ids.

Each is one row of the ledger's log, after the three witnesses were heard; each can be looked at first (`plan`) and
undone. Nothing is ever removed: what was published stays known, and every audit counts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import DataError, LedgerError, Problem
from sequester.ingest.read import read
from sequester.ingest.validate import check_people, missing_columns
from sequester.ledger import Key, Ledger, Place, evidence
from sequester.publish.commit import recover

# Seconds to wait while another command has the ledger.
_WAIT = 5.0
_MISSING = ("",)


@dataclass(frozen=True)
class LifeStep:
    """One thing that was done to a series, or would be.

    action  closed, reopened, withdrawn, restored or renamed
    done    False for a plan
    notes   what it means, in words
    facts   what there is to count or to name
    """

    series: str
    action: str
    done: bool
    notes: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Books:
    """Where the ledger of a series is, its key, and the folder of its release folders."""

    place: Place
    key: Key
    folder: Path

    @contextmanager
    def open(self, *, plan: bool) -> Iterator[Ledger]:
        """The ledger, where ledger, folders and head agree and nothing was interrupted; only to be read for a plan."""
        with Ledger.open(self.place, key=self.key, read_only=plan, timeout=_WAIT) as ledger:
            ledger.check_chain()
            if not plan:
                recover(ledger, self.folder)
                ledger.life.arrange(self.folder)
            evidence.refuse(ledger.troubles(self.folder))
            yield ledger

    def close(self, *, reason: str | None = None, undo: bool = False, plan: bool = False) -> LifeStep:
        """Nothing more is published in the series; or, to undo that, it is."""
        with self.open(plan=plan) as ledger:
            if undo:
                ledger.life.reopen(plan=plan)
                return LifeStep(ledger.series, "reopened", not plan, ("releases can be planned and published again",))
            notes = (
                "nothing more can be planned or published; audits, reports and `after` of another series go on",
                "it can be opened again, with undo=True",
            )
            ledger.life.close(reason, plan=plan)
            return LifeStep(ledger.series, "closed", not plan, notes, {"releases": len(ledger.releases())})

    def withdraw(self, number: int, *, reason: str | None = None, undo: bool = False, plan: bool = False) -> LifeStep:
        """A published release is withdrawn: its folder is set aside, and what it told stays known."""
        with self.open(plan=plan) as ledger:
            entries = ledger.releases()
            name = entries[number - 1].name if 1 <= number <= len(entries) else ""
            facts: dict[str, Any] = {"number": number, "name": name}
            notes: tuple[str, ...] = ("its folder is where it was, among the others",)
            if undo:
                if not plan:
                    self._need_folder(ledger, number)
                ledger.life.restore(number, plan=plan)
            else:
                ledger.life.withdraw(number, reason, plan=plan)
                notes = (
                    "its folder is moved to 'withdrawn' beside the others, and may be deleted there",
                    "whoever has the release keeps it: it stays known, and every later plan and audit counts it",
                )
            if not plan:
                self._arrange(ledger, number)
            facts["folder"] = str(evidence.place_of(self.folder, ledger.series, entries[number - 1]))
            return LifeStep(ledger.series, "restored" if undo else "withdrawn", not plan, notes, facts)

    def rename(self, mapping: Any, *, old: str, new: str, plan: bool = False) -> LifeStep:
        """People get other ids: `mapping` is a table with the old and the new one of everybody who has another."""
        before, after = _pairs(mapping, old, new)
        with self.open(plan=plan) as ledger:
            return _renamed(ledger, ledger.life.rename(before, after, plan=plan), plan=plan)

    def undo_rename(self, *, plan: bool = False) -> LifeStep:
        """Undo the last mapping of ids."""
        with self.open(plan=plan) as ledger:
            return _renamed(ledger, ledger.life.undo_rename(plan=plan), plan=plan)

    def _need_folder(self, ledger: Ledger, number: int) -> None:
        """Stop where the folder of a withdrawn release is gone: a release that counts as shown has one."""
        if number in ledger.life.withdrawals:
            place = evidence.place_of(self.folder, ledger.series, ledger.releases()[number - 1])
            if not place.is_dir():
                raise LedgerError(Problem("the folder of the withdrawn release is gone; put it back", file=str(place)))

    def _arrange(self, ledger: Ledger, number: int) -> None:
        failure = None
        try:
            ledger.life.arrange(self.folder)
        except OSError as error:
            message = (
                f"the ledger has it, but the folder of release {number} cannot be moved: {error.strerror}; the next "
                "command moves it"
            )
            failure = LedgerError(Problem(message, file=str(self.folder / ledger.series)))
        if failure is not None:
            raise failure


def _renamed(ledger: Ledger, counted: Any, *, plan: bool) -> LifeStep:
    notes = [f"{_people(counted.people)} another id from now on; what was published of them stays theirs"]
    if counted.others:
        notes.append(f"{_people(counted.others)} no new id in the mapping, and keep what they have")
    if counted.unknown:
        notes.append(f"{_people(counted.unknown)} an old id in the mapping that was never published: passed over")
    notes.append("the next table has the new ids, and the policy may name another `person` column")
    return LifeStep(ledger.series, "renamed", not plan, tuple(notes), asdict(counted))


def _people(count: int) -> str:
    return "1 person has" if count == 1 else f"{count:,} people have"


def _pairs(mapping: Any, old: str, new: str) -> tuple[pa.Array, pa.Array]:
    """The ids before and after; everybody is there once, on either side."""
    table = read(mapping, columns=(old, new))
    file = str(mapping) if isinstance(mapping, str | Path) else None
    problems = missing_columns((old, new), table.column_names)
    if not problems and old == new:
        problems = [Problem("old and new ids are in one column; name two", column=old)]
    if not problems:
        problems = [*check_people(table[old], old, tokens=_MISSING), *check_people(table[new], new, tokens=_MISSING)]
    if problems:
        raise DataError(Problem(one.message, file=file, column=one.column, rows=one.rows) for one in problems)
    return table[old].combine_chunks(), table[new].combine_chunks()
