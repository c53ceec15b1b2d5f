"""The people of a table among everybody published before: who is new, who stayed, who left, and who only looks new
because ids are written otherwise.

One person has one row: that is asked where rows become people, and once more where people are recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain.codec import distinct, to_text
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.people import lookalikes, names, other_spellings
from sequester.errors import DataError, GuaranteeError, LedgerError, PolicyError, Problem
from sequester.history.sight import permanent_part
from sequester.history.trajectory import linked, number_through
from sequester.ingest.encode import check_domains
from sequester.ingest.snapshot import Snapshot
from sequester.ledger import Ledger
from sequester.ledger.rows import split_hashes
from sequester.ledger.state import HASH, State
from sequester.methods.registry import method_of
from sequester.policy.fingerprint import growth
from sequester.policy.model import Policy
from sequester.publish.corrections import Corrections, as_published, check_moves, keep_in_reach
from sequester.publish.plan import Change
from sequester.publish.recall import carry

Integers = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Withdrawn:
    """People of the last release who no longer agree to be published: numbers, keyed hashes, and for how many releases
    each has waited already to leave unseen."""

    person: Integers
    hashes: pa.Array
    patience: Integers


@dataclass(frozen=True, eq=False, repr=False)
class Identified:
    """A table and who each of its records is about.

    ids      as they stand in the table
    hashes   the same, keyed: how the ledger knows people
    digests  keyed, of what must not change about them
    """

    snapshot: Snapshot
    ids: pa.Array
    hashes: pa.Array
    digests: Integers

    @classmethod
    def of(cls, ledger: Ledger, snapshot: Snapshot, policy: Policy) -> Identified:
        """The people of a table as this ledger knows them."""
        if snapshot.person is None:
            raise PolicyError(Problem("a series needs the column that says who a record is about", key="person"))
        _refuse_former(ledger, snapshot, policy)
        hashes = ledger.identify(snapshot.person)
        check_distinct(hashes)
        lasting = [place for place, attribute in enumerate(policy.quasi_identifiers.values()) if not attribute.changes]
        names = [pa.array(snapshot.quasi_domains[place].names[0], pa.string()) for place in lasting]
        codes = [pa.array(snapshot.quasi[place]) for place in lasting]
        texts = [pa.DictionaryArray.from_arrays(*both) for both in zip(codes, names, strict=True)]
        return cls(snapshot, snapshot.person, hashes, ledger.digest(hashes, texts))

    def by_hash(self) -> Identified:
        """The same in the order of keyed hashes, which no order of the rows of the table changes."""
        high, low = split_hashes(self.hashes)
        order = np.lexsort((low, high))
        chosen = pa.array(order)
        return Identified(
            self.snapshot.take(order), self.ids.take(chosen), self.hashes.take(chosen), self.digests[order]
        )

    def without(self, out: Mask) -> Identified:
        """The same without these records."""
        keep = pa.array(~out)
        return Identified(
            self.snapshot.without(out), self.ids.filter(keep), self.hashes.filter(keep), self.digests[~out]
        )

    def digest(self) -> str:
        """Of everything that is read from the input, whatever kind of input it is."""
        snapshot, digest = self.snapshot, hashlib.sha256()
        for codes, domain in (
            *zip(snapshot.quasi, snapshot.quasi_domains, strict=True),
            *zip(snapshot.sensitive, snapshot.sensitive_domains, strict=True),
        ):
            digest.update("\0".join(domain.names[0]).encode())
            digest.update(codes.tobytes())
        digest.update(self.hashes.buffers()[1])
        for name in snapshot.insensitive.column_names:
            values, index = distinct(snapshot.insensitive[name])
            digest.update(name.encode())
            digest.update("\0".join(to_text(values).to_pylist()).encode())
            digest.update(index.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Census:
    """The people of the table and everybody published before.

    people    those of the table; a record below is one of theirs
    number    per record, its person; -1 for one never published
    last      per person published before, her class of the last release, -1 when absent from it
    values    (sensitive attributes, people published before) codes, in the domains of the table
    plain     (insensitive columns, people published before) codes, likewise
    component per person published before, the people she is tied to by sharing classes, directly or through others
    patience  per record, for how many releases it has waited already
    decoy     per person published before, whether there is nobody
    withdrawn people of the last release who no longer agree, where people are asked
    late      people who want their value published as a node after it was published as it is
    corrected people with cells that must not change and did, who are published as they were
    """

    people: Identified
    number: Integers
    last: Codes
    values: Codes
    plain: Codes
    component: Codes
    patience: Integers
    decoy: Mask
    withdrawn: Withdrawn | None = None
    late: int = 0
    corrected: int = 0

    @property
    def snapshot(self) -> Snapshot:
        """The table."""
        return self.people.snapshot

    @property
    def leavers(self) -> Integers:
        """People of the last release who are not in the table."""
        gone = (self.last >= 0) & ~self.decoy
        gone[self.number[self.number >= 0]] = False
        return np.flatnonzero(gone)

    @property
    def newcomers(self) -> Integers:
        """Records of people who were never published."""
        return np.flatnonzero(self.number < 0)

    @property
    def returners(self) -> Integers:
        """Records of people who were published before, but are not in the last release."""
        return np.flatnonzero((self.number >= 0) & (np.append(self.last, np.int32(-1))[self.number] < 0))

    def change(self, *, changed: int) -> Change:
        """How the table differs from the last release."""
        newcomers, returned = len(self.newcomers), len(self.returners)
        return Change(
            newcomers=newcomers,
            returned=returned,
            stayers=len(self.snapshot) - newcomers - returned,
            changed=changed,
            leavers=len(self.leavers),
        )


def take_census(
    ledger: Ledger, state: State, snapshot: Snapshot, policy: Policy, *, everybody_is_new: bool
) -> tuple[Census, tuple[str, ...]]:
    """The people of a table among everybody published before, and what there is to note about them."""
    people = Identified.of(ledger, snapshot, policy).by_hash()
    number = ledger.match(people.hashes) if state.people else np.full(len(snapshot), -1, np.int64)
    notes = _strangers(ledger, state, people, number, policy, everybody_is_new=everybody_is_new)
    if state.releases and (told := growth_of(policy, ledger.releases()[-1].policy_text, state.domains)):
        notes = (*notes, f"the policy is not that of the last release: {'; '.join(told)}")
    census, more = census_of(ledger, state, people, number, policy)
    return census, (*notes, *more)


def census_of(
    ledger: Ledger, state: State, people: Identified, number: Integers, policy: Policy
) -> tuple[Census, tuple[str, ...]]:
    """People who were identified, among everybody published before (`number`, -1 for those who are new)."""
    snapshot = people.snapshot
    notes: tuple[str, ...] = ()
    values, plain = (np.zeros((len(codes), 0), np.int32) for codes in (snapshot.sensitive, snapshot.plain))
    if state.people:
        _refuse_unkept(ledger, state, snapshot)
        domains = snapshot.domains
        values = carry(state.values, [(state.domains[name], domains[name]) for name in state.sensitive])
        plain = carry(state.plain, [(state.domains[name], domains[name]) for name in state.insensitive])
    snapshot, late = as_published(snapshot, policy, number, values)
    people = replace(people, snapshot=snapshot)
    kept = 0
    if state.people:
        wrong = _corrections(state, people, policy, number, values, plain)
        if policy.corrections == "refuse":
            wrong.refuse(snapshot, number, state, policy)
        elif policy.corrections == "keep":
            snapshot, moved = keep_in_reach(snapshot, number, state, policy)
            wrong = replace(wrong, moved=moved)
            people = replace(people, snapshot=wrong.keep(snapshot, number, state, policy, (values, plain)))
            kept = int(np.count_nonzero(wrong.records))
        notes = (*notes, *wrong.note(snapshot, number, state, policy))
        if policy.corrections == "hold-out" and (out := wrong.records).any():
            # As if they were not in the table: whoever of them was in the last release leaves it, with all who leave.
            people, number = people.without(out), number[~out]
        check_moves(people.snapshot, number, state, policy)
    census = Census(
        people=people,
        number=number,
        last=state.member,
        values=values,
        plain=plain,
        component=_components(state, policy),
        patience=_patience(state, people.hashes),
        decoy=state.decoy,
        withdrawn=_withdrawn(ledger, state, people.snapshot),
        late=late,
        corrected=kept,
    )
    return census, notes


def _refuse_former(ledger: Ledger, snapshot: Snapshot, policy: Policy) -> None:
    """Stop where people have ids that were replaced by others: they would count as new, and twice."""
    if count := sum(ledger.former(ids) for ids in (snapshot.person, snapshot.refused) if ids is not None):
        message = (
            f"{'1 id was' if count == 1 else f'{count:,} ids were'} replaced by others with a mapping, and nobody is "
            "known by them any more; give the new ids, or undo the mapping (`sequester ledger people`, undo=True)"
        )
        raise DataError(Problem(message, column=policy.person, rows=count))


def _strangers(
    ledger: Ledger, state: State, people: Identified, number: Integers, policy: Policy, *, everybody_is_new: bool
) -> tuple[str, ...]:
    """What to say about people who are not recognised; DataError where that is nearly everybody."""
    if not state.people:
        return note_spelling(people.ids)
    recognised, asked, refused = int(np.count_nonzero(number >= 0)), len(number), people.snapshot.refused
    if refused is not None:
        # Whoever does not agree any longer is known all the same.
        recognised += int(np.count_nonzero(ledger.match(ledger.identify(refused)) >= 0))
        asked += len(refused)
    misspelt = count_misspelt(ledger, people.ids, number)
    new = check_known(
        recognised,
        asked,
        int(np.count_nonzero((state.member >= 0) & ~state.decoy)),
        column=policy.person,
        everybody_is_new=everybody_is_new,
        misspelt=misspelt,
    )
    return (*new, *note_spelling(people.ids, misspelt))


def _corrections(
    state: State, people: Identified, policy: Policy, number: Integers, values: Codes, plain: Codes
) -> Corrections:
    """Whoever was published before and has other cells now than then, of those that do not change."""
    snapshot = people.snapshot
    before, now = (permanent_part(policy, snapshot.sensitive_domains, codes) for codes in (values, snapshot.sensitive))
    cells = {name: (before[place], now[place]) for place, name in enumerate(snapshot.sensitive_names)}
    for place, name in enumerate(snapshot.plain_names):
        if name in policy.lasting:
            cells[name] = (plain[place], snapshot.plain[place])
    return Corrections.find(number, (state.digests[0], people.digests), cells)


def _refuse_unkept(ledger: Ledger, state: State, snapshot: Snapshot) -> None:
    """Stop where a ledger does not know what was published of columns that link a person's rows."""
    if state.insensitive != snapshot.plain_names:
        raise LedgerError(
            Problem(
                "was written by a Sequester that did not keep insensitive cells, so nobody can tell what the releases "
                "so far say together with the next; the series cannot go on with insensitive columns",
                file=str(ledger.place),
            )
        )


def _withdrawn(ledger: Ledger, state: State, snapshot: Snapshot) -> Withdrawn | None:
    """People of the last release who no longer agree."""
    if snapshot.refused is None or not state.people:
        return None
    hashes = ledger.identify(snapshot.refused)
    number = ledger.match(hashes)
    rows = np.flatnonzero((number >= 0) & (np.append(state.member, np.int32(-1))[number] >= 0))
    rows = rows[np.argsort(number[rows])]
    return Withdrawn(number[rows], hashes.take(rows), _patience(state, hashes)[rows])


def _components(state: State, policy: Policy) -> Codes:
    """Per person published before, the people she is tied to by sharing classes, directly or through others."""
    if method_of(policy.method).seats:
        # Nobody is held back or leaves with others.
        return np.zeros(state.people, np.int32)
    component: Codes = linked(*number_through(state.path, [len(one) for one in state.releases]))
    return component[state.trajectory]


def _patience(state: State, hashes: pa.Array) -> Integers:
    """Per record, for how many releases it has waited."""
    place = pc.index_in(hashes, value_set=state.queue.hashes).fill_null(-1).to_numpy(zero_copy_only=False)
    waited = np.append(len(state.releases) + 1 - state.queue.since.astype(np.int64), 0)
    patience: Integers = waited[place]
    return patience


# Of those who could have been recognised: the people of the table or of the last release, whichever are fewer.
FEW = 0.05
# So many newcomers are looked up under other spellings of their ids.
_LOOKED_UP = 10_000


def check_known(
    recognised: int, people: int, last: int, *, column: str | None, everybody_is_new: bool, misspelt: int = 0
) -> tuple[str, ...]:
    """Stop where nearly nobody is recognised, unless that was said before; returns what a plan notes then.

    last  people of the last release, or of whatever else the table is held against
    """
    if not last or not people or recognised >= FEW * min(people, last):
        return ()
    table = f"of the {people:,} people in the table"
    known = f"only {recognised:,} {table} are" if recognised else f"none {table} is"
    what = f"{known} recognised, though {last:,} were published last"
    if everybody_is_new:
        return (f"{what}: they were said to be other people, and count as such",)
    cause = (
        f"{misspelt:,} or more of their ids are numbers that were written in another way then (1 and 1.0, 7 and 007)"
        if misspelt
        else "their ids are probably from another column, written in another way, or made with another secret"
    )
    message = (
        f"{what}; {cause}. Published like this, everybody would count twice. Give the ids as they were; if these "
        "really are other people, say so with everybody_is_new=True"
    )
    raise DataError(Problem(message, column=column))


def count_misspelt(ledger: Ledger, ids: pa.Array, number: NDArray[np.int64]) -> int:
    """How many of those who are not recognised would be, were their ids numbers written in another way.

    `number` is -1 for them. Of very many newcomers only some are looked up, so there may be more.
    """
    strangers = np.flatnonzero(number < 0)
    chosen = strangers[:: max(1, -(-len(strangers) // _LOOKED_UP))]
    ways = other_spellings(names(ids.take(pa.array(chosen))))
    row = np.concatenate([np.flatnonzero(way.is_valid().to_numpy(zero_copy_only=False)) for way in ways])
    if not len(row):
        return 0
    known = ledger.match(ledger.identify(pa.concat_arrays([way.drop_null() for way in ways])))
    return len(np.unique(row[known >= 0]))


def note_spelling(ids: pa.Array, misspelt: int = 0) -> tuple[str, ...]:
    """What a steward should know about ids that are numbers written in several ways."""
    notes = []
    if alike := lookalikes(names(ids)):
        notes.append(
            f"{_people(alike)} an id that is a number and written in another way than another one of the table (1 and "
            "1.0, 7 and 007): these count as different people; if they are not, correct the ids"
        )
    if misspelt:
        notes.append(
            f"{_people(misspelt)} an id that is not known, but would be if the number was written in another way (1 "
            "and 1.0, 7 and 007): they count as new people; if they are not, give the ids as they were"
        )
    return tuple(notes)


def _people(count: int) -> str:
    return "1 person has" if count == 1 else f"{count:,} people have"


def check_distinct(hashes: pa.Array) -> None:
    """Stop where two rows are about one person: whatever let them pass, no class may count her twice."""
    if _may_repeat(hashes) and len(hashes) != pc.count_distinct(hashes).as_py():
        raise _refusal("two rows are about one person, so classes would hide fewer people than they have rows")


def _may_repeat(hashes: pa.Array) -> bool:
    """Whether halves of two hashes are alike: sorting them is quicker than comparing all of each."""
    if hashes.type != HASH:
        return True
    halves = np.frombuffer(hashes.buffers()[1], np.uint64)[2 * hashes.offset :][: 2 * len(hashes) : 2]
    ordered = np.sort(halves)
    return bool((ordered[1:] == ordered[:-1]).any())


def check_written(written: int, person: NDArray[np.int64], member: NDArray[np.int32]) -> None:
    """Stop where a release has not one row for each of its people, or not those that are recorded.

    written  rows of the table that others will see
    person   the person of each record, and `member` per person her class, -1 for whoever is not in the release
    """
    if np.bincount(person, minlength=1).max() > 1:
        raise _refusal("two rows are about one person, so classes would hide fewer people than they have rows")
    if not written == len(person) == np.count_nonzero(member >= 0):
        raise _refusal("the rows to publish are not as many as the people to record")


def _refusal(why: str) -> GuaranteeError:
    return GuaranteeError(f"{why}. Nothing was published.", guarantee="series")


def growth_of(policy: Policy, text: str, before: Mapping[str, Hierarchy]) -> list[str]:
    """In words, names of columns and counts only; PolicyError where a hierarchy lost values, or moved some.

    text    the policy of the last release
    before  the domains of its columns then
    """
    told = growth(policy, text)
    for name, domain in check_domains(policy, before).known.items():
        if new := domain.size - before[name].size:
            values = "1 new value" if new == 1 else f"{new:,} new values"
            told.append(f"the hierarchy of {name} has {values}")
    return told
