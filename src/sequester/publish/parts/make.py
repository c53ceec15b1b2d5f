"""One part of a release: made, judged, and written down for whoever puts the release together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.attacks.attack import Untried
from sequester.causes import Cause
from sequester.ledger.parts import Card, write_rows
from sequester.ledger.rows import split_hashes
from sequester.ledger.state import State
from sequester.metrics.measure import Measurement
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate, make_candidate
from sequester.publish.census import census_of
from sequester.publish.commit import draft_of_release
from sequester.publish.exact import read_back
from sequester.publish.parts.coding import identified
from sequester.publish.parts.errand import Errand
from sequester.publish.parts.sliced import write_slices
from sequester.publish.personal import gain_of, personal_of
from sequester.publish.plan import Change, Check, Personal, PodFigures, Waiting
from sequester.publish.price import Price, checks_of, compare, pods_of
from sequester.publish.roster import Move


@dataclass(frozen=True, eq=False, repr=False)
class MadePart:
    """What is told of a part that was made: counts and digests, no cell and no person.

    card      for the ledger
    known     people of the table who were recognised, and `last` those who were in the last release
    digest    of everything that was read of it
    schema    of its published rows, and `sums` a checksum of the rows of every file that they go to
    cells     the different texts that its quasi-identifiers are published with
    sizes     different sizes of classes, and how many classes have each
    """

    card: Card
    known: int
    last: int
    digest: str
    content: str
    change: Change
    waiting: Waiting
    personal: Personal
    gain: Mapping[str, float]
    people: int
    checks: tuple[Check, ...]
    findings: int
    untried: tuple[Untried, ...]
    loss: Mapping[str, float]
    measurement: Measurement
    pods: PodFigures | None
    notes: tuple[str, ...]
    causes: tuple[Cause, ...]
    schema: pa.Schema
    sums: tuple[int, ...]
    cells: Mapping[str, pa.Array]
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False, repr=False)
class Maker:
    """Makes one part after the other; who may come and go is the same in all."""

    errand: Errand
    move: Move

    def __call__(self, part: int) -> MadePart:
        """Make, judge and write down one part."""
        errand = self.errand
        policy, ledger = errand.policy, errand.parts.open(part)
        state = ledger.load()
        people = identified(errand, part)
        number = ledger.match(people.hashes) if state.people else np.full(len(people.hashes), -1, np.int64)
        census, notes = census_of(ledger, state, people, number, policy)
        draws = [errand.seed, errand.number, part]
        brief = replace(Brief.of(policy, census.snapshot, draws), name=errand.name, audited=errand.audited)
        candidate = make_candidate(census, state, brief, only=self.move)
        # As anybody will read it: what is judged is what is written, and files are compared by checksums after that.
        schema, sums = candidate.table.schema, (0,) * errand.slices
        if candidate.table.num_rows:
            read_back(candidate.table, candidate.judged)
            schema, sums = write_slices(errand.rows / f"{part:05d}.arrow", candidate.table, errand, draws)
        hashes = people.hashes.filter(pa.array(number < 0))
        _note_people(errand, part, ledger.everybody(), hashes, state)
        card = self._record(part, candidate)
        return MadePart(
            card=card,
            known=int(np.count_nonzero(number >= 0)),
            last=int(np.count_nonzero((state.member >= 0) & ~state.decoy)),
            digest=people.digest(),
            content=candidate.content(),
            change=census.change(changed=0),
            waiting=candidate.roster.waiting(census),
            personal=personal_of(census, candidate.roster),
            gain=gain_of(candidate.records.without(candidate.decoy), candidate.of_people),
            people=int(np.count_nonzero(~candidate.decoy[candidate.order])),
            checks=checks_of(candidate.audit, policy),
            findings=len(candidate.audit.findings),
            untried=candidate.audit.untried,
            loss=compare({"release": candidate.of_people}, candidate)["release"] if len(candidate.order) else {},
            measurement=candidate.measurement,
            pods=pods_of(candidate, Price()),
            notes=(*notes, *candidate.notes),
            causes=candidate.causes,
            schema=schema,
            sums=sums,
            cells=_texts(candidate.table, tuple(policy.quasi_identifiers)),
            sizes=np.unique(candidate.classes.size, return_counts=True),
        )

    def _record(self, part: int, candidate: Candidate) -> Card:
        """Write what the ledger will keep of this part."""
        errand = self.errand
        ledger = errand.parts.open(part)
        draft = draft_of_release(
            ledger, candidate, errand.policy, name=errand.name, head=errand.head, number=errand.number
        )
        tables = write_rows(errand.recorded / f"{part:05d}", ledger.rows_of(draft))
        records = int(np.count_nonzero(draft.member >= 0))
        ever = 0 if candidate.seats is None else int(np.count_nonzero(candidate.seats.decoy))
        return Card(part, records, draft.lo.shape[1], len(draft.member), ever, tables)


def _texts(table: pa.Table, names: Sequence[str]) -> dict[str, pa.Array]:
    """Different texts of the columns that have any."""
    columns = {name: table[name] for name in names if name in table.column_names}
    return {
        name: pc.unique(column.cast(pa.string()))
        for name, column in columns.items()
        if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)
    }


def _note_people(errand: Errand, part: int, known: pa.Array, new: pa.Array, state: State) -> None:
    """Write down the hashes of everybody ever in this part, sorted, so that nobody is in two parts unseen."""
    before, now = split_hashes(known), split_hashes(new)
    high, low = (np.concatenate([old[~state.decoy], more]) for old, more in zip(before, now, strict=True))
    order = np.argsort(high)
    place = errand.people / f"{part:05d}.npy"
    place.touch(0o600)
    np.save(place, np.stack([high[order], low[order]]))


@dataclass(frozen=True, eq=False, repr=False)
class Twins:
    """Counts people who are in several parts, by a range of hashes at a time."""

    errand: Errand
    ranges: int

    def __call__(self, number: int) -> int:
        """How many of the hashes of one range are there more than once."""
        ends = [place * (1 << 64) // self.ranges for place in (number, number + 1)]
        found: list[NDArray[np.uint64]] = []
        for file in sorted(self.errand.people.glob("*.npy")):
            hashes = np.load(file, mmap_mode="r")
            begin, end = (_place(hashes[0], end) for end in ends)
            found.append(np.asarray(hashes[:, begin:end]))
        together = np.concatenate(found, axis=1)
        high = np.sort(together[0])
        again = high[1:][high[1:] == high[:-1]]
        if not len(again):
            return 0
        # Halves of two hashes may be the same by chance.
        together = together[:, np.isin(together[0], again)]
        together = together[:, np.lexsort(together[::-1])]
        return int(np.count_nonzero((together[:, 1:] == together[:, :-1]).all(axis=0)))


def _place(high: NDArray[np.uint64], first: int) -> int:
    """Where the hashes from `first` on begin, among sorted ones."""
    return len(high) if first >= 1 << 64 else int(np.searchsorted(high, np.uint64(first)))
