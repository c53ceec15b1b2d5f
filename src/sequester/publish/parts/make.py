"""One part of a release: made, judged, and written down for whoever puts the release together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.attacks.registry import attack_of
from sequester.causes import Cause
from sequester.ledger.part_ledger import PartLedger
from sequester.ledger.parts import Card, write_rows
from sequester.ledger.rows import split_hashes
from sequester.ledger.state import State
from sequester.metrics.measure import Measurement
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate, make_candidate
from sequester.publish.census import census_of, check_known
from sequester.publish.commit import draft_of_release
from sequester.publish.emit import read_back
from sequester.publish.parts.division import Errand, identified
from sequester.publish.parts.sliced import write_slices
from sequester.publish.plan import Change, Check, Personal, Plan, PodFigures, Waiting
from sequester.publish.prepare import described
from sequester.publish.price import Price, compare
from sequester.publish.roster import Move


@dataclass(frozen=True, eq=False, repr=False)
class MadePart:
    """What is told of a part that was made: counts and digests, no cell and no person.

    card      for the ledger
    plan      of the part
    known     people of the table who were recognised, and `last` those who were in the last release
    schema    of its published rows, and `sums` a checksum of the rows of every file that they go to
    cells     the different texts that its quasi-identifiers are published with
    sizes     different sizes of classes, and how many classes have each
    """

    card: Card
    plan: Plan
    known: int
    last: int
    measurement: Measurement
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
        draws = [errand.plan.seed, errand.plan.number, part]
        brief = replace(Brief.of(policy, census.snapshot, draws), name=errand.plan.name, audited=errand.audited)
        candidate = make_candidate(census, state, brief, only=self.move)
        # As anybody will read it: what is judged is what is written, and files are compared by checksums after that.
        schema, sums = candidate.table.schema, (0,) * errand.slices
        if candidate.table.num_rows:
            read_back(candidate.table, candidate.judged)
            schema, sums = write_slices(errand.place("rows") / f"{part:05d}.arrow", candidate.table, errand, draws)
        hashes = people.hashes.filter(pa.array(number < 0))
        _note_people(errand, part, ledger.everybody(), hashes, state)
        loss = {"release": compare(candidate.of_people, candidate)} if len(candidate.order) else {}
        price = Price(loss=loss, why=candidate.causes)
        return MadePart(
            card=self._record(ledger, part, candidate),
            plan=described(errand.plan, candidate, policy, price, digest=people.digest(), notes=notes),
            known=int(np.count_nonzero(number >= 0)),
            last=int(np.count_nonzero((state.member >= 0) & ~state.decoy)),
            measurement=candidate.measurement,
            schema=schema,
            sums=sums,
            cells=_texts(candidate.table, tuple(policy.quasi_identifiers)),
            sizes=np.unique(candidate.classes.size, return_counts=True),
        )

    def _record(self, ledger: PartLedger, part: int, candidate: Candidate) -> Card:
        """Write what the ledger will keep of this part."""
        errand = self.errand
        draft = draft_of_release(ledger, candidate, errand.policy, errand.plan)
        tables = write_rows(errand.place("recorded") / f"{part:05d}", ledger.rows_of(draft))
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
    place = errand.place("people") / f"{part:05d}.npy"
    place.touch(0o600)
    np.save(place, np.stack([high[order], low[order]]))


@dataclass(frozen=True, eq=False, repr=False)
class Twins:
    """Counts people who are in several parts, by a range of hashes at a time."""

    errand: Errand
    ranges: int

    def __call__(self, number: int) -> int:
        """How many of the hashes of one range are there more than once."""
        # Where the hashes of this range begin and end, among sorted ones.
        first, last = (place * (1 << 64) // self.ranges for place in (number, number + 1))
        found: list[NDArray[np.uint64]] = []
        for file in sorted(self.errand.place("people").glob("*.npy")):
            hashes = np.load(file, mmap_mode="r")
            begin = np.searchsorted(hashes[0], np.uint64(first))
            end = hashes.shape[1] if last >= 1 << 64 else np.searchsorted(hashes[0], np.uint64(last))
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


Counted = TypeVar("Counted", Change, Personal, Waiting)

# A release is as good as its worst class, whichever part that is in; losses are those of a record, on average.
_SUMS = ("dm",)


def together(plan: Plan, made: Sequence[MadePart], policy: Policy) -> Plan:
    """The plan of a release that is made in parts."""
    plans = [part.plan for part in made]
    known, last = sum(part.known for part in made), sum(part.last for part in made)
    change, people = _added([one.change for one in plans]), sum(one.people for one in plans)
    asked = change.newcomers + change.stayers + change.returned
    new = check_known(known, asked, last, column=policy.person, everybody_is_new=plan.everybody_is_new)
    return replace(
        plan,
        input_digest=_digest(one.input_digest for one in plans),
        content=_digest(one.content for one in plans),
        change=change,
        personal=_added([one.personal for one in plans]),
        waiting=_added([one.waiting for one in plans]),
        gain={name: sum(one.gain[name] * one.people for one in plans) / people for name in plans[0].gain},
        records=sum(one.records for one in plans),
        people=people,
        classes=sum(one.classes for one in plans),
        pods=_pods([one.pods for one in plans if one.pods is not None]),
        checks=_checks(plans, policy),
        findings=sum(one.findings for one in plans),
        untried=tuple(dict.fromkeys(one for each in plans for one in each.untried)),
        loss={"release": _averaged([(one.loss["release"], one.people) for one in plans if one.people])},
        notes=(*new, f"made in {len(made):,} parts", *_notes(plans)),
        why=_causes(plans),
    )


def _digest(of_parts: Iterable[str]) -> str:
    """One digest of what every part has a digest of."""
    return hashlib.sha256("\n".join(of_parts).encode()).hexdigest()


def _added(counted: Sequence[Counted]) -> Counted:
    """Counts of all parts together; of how long somebody waits, the longest."""
    kind = type(counted[0])
    together = {
        one.name: (max if one.name == "oldest" else sum)(getattr(part, one.name) for part in counted)
        for one in fields(kind)
    }
    return kind(**together)


def _checks(plans: Sequence[Plan], policy: Policy) -> tuple[Check, ...]:
    """What the audit reached, attack by attack, in the part where it reached most."""
    found: dict[str, list[Check]] = {}
    for check in (check for plan in plans for check in plan.checks):
        found.setdefault(check.attack, []).append(check)
    return tuple(
        replace(
            checks[0],
            reached=_over(attack_of(attack).worse(policy), [check.reached for check in checks]),
            holds=all(check.holds for check in checks),
        )
        for attack, checks in found.items()
    )


def _averaged(losses: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """Losses over several numbers of people: averages by how many they are, and sums where they are sums."""
    total = sum(people for _, people in losses)
    return {
        name: sum(loss[name] * (1 if name in _SUMS else people / total) for loss, people in losses)
        for name in losses[0][0]
    }


def measurement_of_parts(made: Sequence[MadePart]) -> Measurement:
    """How anonymous the release is, by its worst class; how far values are from those of the whole is not known."""
    parts = [part.measurement for part in made if part.card.records]
    promises = []
    for outcomes in zip(*(part.promises for part in parts), strict=True):
        broken = [outcome for outcome in outcomes if not outcome.holds]
        promises.append(broken[0] if broken else min(outcomes, key=_room))
    people = [part.people if part.people is not None else part.records for part in parts]
    return replace(
        parts[0],
        records=sum(part.records for part in parts),
        classes=sum(part.classes for part in parts),
        k=min(part.k for part in parts),
        l=_over(min, [part.l for part in parts]),
        entropy_l=_over(min, [part.entropy_l for part in parts]),
        t=None,
        confidence=_over(max, [part.confidence for part in parts]),
        loss=_averaged([(part.loss, count) for part, count in zip(parts, people, strict=True) if count]),
        promises=tuple(promises),
        sensitive={},
        suppressed=sum(part.suppressed for part in parts),
        people=None if parts[0].people is None else sum(people),
        fewest_people=_over(min, [part.fewest_people for part in parts]),
    )


def _room(outcome: Any) -> float:
    """How far a promise is from being broken, whichever way it is counted."""
    if outcome.observed is None:
        return float("inf")
    return abs(float(outcome.observed) - float(outcome.required))


def _over(worst: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return worst(known) if known else None


def _pods(pods: Sequence[PodFigures]) -> PodFigures | None:
    """The pods of all parts; None where nobody is seated."""
    if not pods:
        return None
    lineages = sum(one.lineages for one in pods)
    return PodFigures(
        **{name: sum(getattr(one, name) for one in pods) for name in ("decoys", "needed", "ever", "pods", "returners")},
        fewest=min((one.fewest for one in pods if one.pods), default=0),
        promised=max(one.promised for one in pods),
        lineages=lineages,
        largest=max(one.largest for one in pods),
        mean=sum(one.mean * one.lineages for one in pods) / max(lineages, 1),
        # The worst of any part: together they are nearer, since what is too much in one is too little in another.
        shares={
            name: {figure: max(one.shares[name][figure] for one in pods if one.shares) for figure in figures}
            for name, figures in next((one.shares for one in pods if one.shares), {}).items()
        },
    )


def _notes(plans: Sequence[Plan]) -> tuple[str, ...]:
    """What is to be noted, once, and in how many parts."""
    count = Counter(note for plan in plans for note in dict.fromkeys(plan.notes))
    of = len(plans)
    return tuple(note if parts == of else f"in {parts:,} of {of:,} parts: {note}" for note, parts in count.items())


def _causes(plans: Sequence[Plan]) -> tuple[Cause, ...]:
    """Why somebody waits or classes are larger, over all parts: people and classes are added up."""
    found: dict[tuple[str, ...], Cause] = {}
    for cause in (cause for plan in plans for cause in plan.why):
        key = (cause.what, cause.attack, cause.attribute, cause.who)
        before = found.get(key, replace(cause, people=0, classes=0))
        found[key] = replace(before, people=before.people + cause.people, classes=before.classes + cause.classes)
    return tuple(found.values())
