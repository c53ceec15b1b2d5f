"""The ledger of a series: an append-only, hash-chained file of what the world already knows.

One file is one series; its tables are described in `schema`. A release is recorded with `begin`, before anyone can see
it, and is `published` once it is visible; one that never became visible is withdrawn. Who is who is kept as keyed
hashes, but what is known about each of them is there in the clear: the file is as private as the table itself.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester import log
from sequester.domain.hierarchy import Hierarchy
from sequester.drafts import sweep
from sequester.errors import LedgerError, Problem, StalePlan, Unsettled
from sequester.ledger import chain, evidence, hashing, schema
from sequester.ledger.domains import lost_leaves, to_json
from sequester.ledger.evidence import Trouble
from sequester.ledger.key import Key
from sequester.ledger.living import Life
from sequester.ledger.opening import new_store, open_store, remove_ledger
from sequester.ledger.parts import PARTS, PartList, Shelf, is_parted
from sequester.ledger.place import Place
from sequester.ledger.rows import (
    Rows,
    changed_domains,
    join_hashes,
    joining_values,
    make_rows,
    problems_of,
    seats_of,
    stacked,
)
from sequester.ledger.state import Draft, Entry, Event, Memory, State, Verification, WaitingList
from sequester.ledger.store import Store, Versions, domains_by_release, latest, must, now, paths, to_entry
from sequester.ledger.verify import chained
from sequester.ledger.witness import remember as write_head

Codes = NDArray[np.int32]

_WAIT = 2.0
# Tables of which the next release needs the last one's rows alone.
_REPLACED = ("state", "changes", "queue", "retained")


class Ledger:
    """An open ledger. Close it, or use it in a `with` statement, so that other commands can have it."""

    def __init__(self, store: Store, facts: Mapping[str, str], key: Key | None, *, encrypted: bool) -> None:
        self._store = store
        self._facts = dict(facts)
        self._key = key
        self._trusted = False
        self.encrypted = encrypted
        # Where a command that died left private rows that cannot be removed from here.
        self.left: tuple[Path, ...] = ()

    @classmethod
    def create(
        cls,
        path: str | Path | Place,
        *,
        series: str,
        policy_text: str,
        fingerprint: str,
        key: Key,
        encrypted: bool = False,
    ) -> Ledger:
        """A new ledger without releases; it is there whole or not at all."""
        from sequester import __version__

        facts = _facts(series, policy_text, fingerprint, key)
        with new_store(Place.of(path), key, encrypted=encrypted) as store:
            store.state_facts(facts)
            store.record("created", None, f"sequester {__version__}")
        return cls.open(path, key=key)

    @classmethod
    def open(
        cls,
        path: str | Path | Place,
        *,
        key: Key | None,
        read_only: bool = False,
        series: str | None = None,
        timeout: float = _WAIT,
    ) -> Ledger:
        """A ledger that exists. Without a key nobody can be recognised and nothing be recorded.

        series   what it must be the ledger of
        timeout  seconds to wait while another command has it, before that is Busy
        """
        place = Place.of(path)
        how = "to read" if read_only else "to write"
        with log.timed("ledger", f"opened {how}", ledger=str(place)) as told:
            store, facts, encrypted = open_store(place, key, read_only=read_only, series=series, timeout=timeout)
            told |= {"series": facts["series"], "version": facts["schema"], "encrypted": encrypted}
        ledger = cls(store, facts, key, encrypted=encrypted)
        # Whoever died while a large table was made left private rows behind.
        ledger.left = tuple(sweep(place.spill))
        return ledger

    def close(self) -> None:
        """Let other commands have it."""
        self._store.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger of {self.series}>"

    @property
    def place(self) -> Place:
        """Where it is."""
        return self._store.connection.place

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading."""
        return self._store.connection.read_only

    @property
    def series(self) -> str:
        """The name of the series."""
        return self._facts["series"]

    @property
    def fingerprint(self) -> str:
        """Of the policy it was created with."""
        return self._facts["fingerprint"]

    @property
    def policy_text(self) -> str:
        """The policy it was created with."""
        return self._facts["policy_text"]

    @property
    def created(self) -> str:
        """When it was created, UTC."""
        return self._facts["created"]

    @property
    def head(self) -> str:
        """The hash of the last entry: a plan remembers it, and is stale when it has changed."""
        entries = self.releases()
        return entries[-1].hash if entries else self._genesis

    @property
    def pending(self) -> Entry | None:
        """The release that was begun and is neither finished nor withdrawn."""
        entries = self.releases()
        return entries[-1] if entries and entries[-1].status == "begun" else None

    def releases(self) -> list[Entry]:
        """All releases, in order."""
        return self._store.entries()

    @property
    def life(self) -> Life:
        """What happens to the series beside its releases."""
        return Life(self, self._store)

    def domains(self) -> dict[str, Hierarchy]:
        """Of every attribute, in the last release; none before the first."""
        entries = self.trusted()
        versions = self._store.versions(entries)
        return self._store.decode(lambda: domains_by_release(versions, len(entries))[-1]) if entries else {}

    def log(self) -> list[Event]:
        """What happened to the ledger, in order."""
        return self._store.events()

    def identify(self, people: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The keyed hash of every person id, as people with this id are recorded."""
        key = self.key
        return self.life.aliases().resolve(hashing.identify(people, key), key)

    def former(self, people: pa.Array | pa.ChunkedArray) -> int:
        """How many of these ids are no longer anybody's, since people got others."""
        known_as = self.life.aliases()
        if not len(known_as):
            return 0
        return int(pc.sum(known_as.is_former(hashing.identify(people, self.key))).as_py() or 0)

    def invent(self, first: int, count: int) -> pa.Array:
        """The keyed hashes of decoys with these numbers: made of the key and the number, and nobody's."""
        return hashing.invent(first, count, self.key)

    def digest(self, hashes: pa.Array, columns: Sequence[pa.Array | pa.ChunkedArray]) -> NDArray[np.int64]:
        """One keyed number per person over her cells of some columns: it changes when one of them does."""
        return hashing.digest(hashes, columns, self.key)

    def match(self, hashes: pa.Array) -> NDArray[np.int64]:
        """The number of everybody who was published before; -1 for the others."""
        number = pc.index_in(hashes, value_set=self.everybody())
        return np.asarray(number.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)

    def everybody(self) -> pa.Array:
        """The keyed hashes of everybody who was published, decoys included, by number."""
        entries = self.trusted()
        people = self._store.by_release("people", entries) if entries else []
        halves = [[rows[half] for rows in people] or [np.zeros(0, np.uint64)] for half in ("high", "low")]
        return join_hashes(*(np.concatenate(parts) for parts in halves))

    def load(self) -> State:
        """Everything the next release needs; LedgerError when any of it is not what was recorded, or is in parts."""
        entries = self.trusted()
        self.refuse_parts("this needs all of it at once")
        return self._store.decode(lambda: self._state(entries)) if entries else _nothing(self._genesis)

    @property
    def texts(self) -> Versions:
        """Per release, the domains that are new or changed in it, as text; they are what was recorded."""
        return self._store.versions(self.trusted())

    def check_rows(self) -> None:
        """Raise LedgerError unless all rows are what was recorded; of a series in parts there are none in its file."""
        self._store.check_rows(self.trusted())

    def refuse_parts(self, why: str) -> None:
        """Raise LedgerError if the series is kept in parts."""
        if is_parted(self.releases()):
            message = f"the series is kept in parts, since its tables are large, and {why}"
            raise LedgerError(Problem(message, file=str(self.place)))

    def begin(self, draft: Draft) -> Entry:
        """Record a release, before anyone can see it: on disk when this returns, and not at all when it raises.

        Raises StalePlan if the ledger is not at `draft.head`, and ValueError for a draft that does not fit together.
        """
        entries = self._ready(draft)
        self._check(draft, entries)
        if pc.any(pc.is_in(draft.newcomers, value_set=self.life.aliases().now)).as_py():
            raise StalePlan("people got other ids since this release was planned; plan it again")
        versions, before, joining = self._before(draft, entries)
        rows = make_rows(draft, before, joining)
        size = (draft.lo.shape[1], int(np.count_nonzero(draft.member >= 0)), len(draft.member))
        return self._append(draft, entries, rows, latest(versions), size)

    def begin_parts(self, draft: Draft, listed: PartList) -> Entry:
        """Record a release of which everything that grows with it is in parts, on disk already. As `begin`.

        draft  the same without classes and people
        """
        entries = self._ready(draft)
        if self.encrypted:
            message = "parts of large tables are kept as plain files, and this ledger is encrypted; use one that is not"
            raise LedgerError(Problem(message, file=str(self.place)))
        none = np.zeros((len(draft.kept_names), 0), np.int32)
        rows = make_rows(draft, np.zeros(0, np.int32), none)
        cards = listed.cards
        size = tuple(sum(numbers) for numbers in zip(*((c.classes, c.records, c.people) for c in cards), strict=True))
        return self._append(draft, entries, rows, latest(self._store.versions(entries)), size, listed)

    def _ready(self, draft: Draft) -> list[Entry]:
        """The releases so far, if one more can be recorded."""
        self.key  # noqa: B018 - nothing is recorded without one
        entries = self.trusted()
        if draft.head != (entries[-1].hash if entries else self._genesis):
            raise StalePlan("the ledger has moved on since this release was planned; plan it again")
        self.check_open()
        if entries and entries[-1].status == "begun":
            raise LedgerError(f"release {len(entries)} was begun and not finished; finish or withdraw it first")
        if draft.name in {entry.name for entry in entries}:
            raise LedgerError("a release of this name is in the ledger already; give this one another name")
        return entries

    def _append(
        self,
        draft: Draft,
        entries: Sequence[Entry],
        rows: Rows,
        before: Mapping[str, str],
        size: tuple[int, ...],
        listed: PartList | None = None,
    ) -> Entry:
        """Record a release with these rows; `size` is how many classes, records and people it has."""
        domains = changed_domains(
            {name: to_json(draft.domains[name]) for name in (*draft.quasi, *draft.kept_names)}, before
        )
        kept = chain.digests(rows, domains) | ({} if listed is None else {PARTS: listed.digest})
        classes, records, people = size
        columns: dict[str, Any] = {
            "number": len(entries) + 1,
            "name": draft.name,
            "created": now(),
            "recipient": draft.recipient,
            "purpose": draft.purpose,
            "fingerprint": self.fingerprint if draft.fingerprint is None else draft.fingerprint,
            "policy_text": self.policy_text if draft.policy_text is None else draft.policy_text,
            "input_digest": draft.input_digest,
            "output_digest": draft.output_digest,
            "method": draft.method,
            "seed": None if draft.seed is None else str(draft.seed),
            "versions": _json(draft.versions),
            "summary": _json(draft.summary),
            "quasi": _json(draft.quasi),
            "sensitive": _json(draft.sensitive),
            "insensitive": _json(draft.insensitive) if draft.insensitive else None,
            "classes": classes,
            "records": records,
            "people": people,
            "content": chain.content(kept),
            "previous": draft.head,
            "tables": _json(kept),
            "files": _json(draft.files) if draft.files else None,
        }
        columns["hash"] = chain.entry(columns)
        columns |= {"seal": self.key.sign("entry", columns["hash"].encode()).hex(), "status": "begun"}
        entry = to_entry(columns)
        if listed is not None:
            Shelf(self.place).check_kept(entry, listed)
        with self._store.connection.transaction():
            self._store.append(columns, rows, domains)
            self._store.record("begun", entry.number, entry.hash)
            self._store.check_kept(entry)
        self.remember()
        return entry

    def finish(self, number: int) -> None:
        """The release is visible. To say so again is no error."""
        entries = self.trusted()
        if not 1 <= number <= len(entries):
            raise LedgerError(f"there is no release {number} in the ledger")
        if entries[number - 1].status == "published":
            return
        with self._store.connection.transaction():
            self._store.connection.execute("UPDATE releases SET status = 'published' WHERE number = ?", [number])
            if self.releases()[number - 1].status != "published":
                raise self._store.connection.not_kept("releases")
            self._store.record("published", number, entries[number - 1].hash)
        if is_parted(entries[:number]):
            Shelf(self.place).show(entries[number - 1])
        self.remember()

    def withdraw(self, number: int) -> None:
        """Forget a release that was begun and never became visible; the log keeps that it was."""
        pending = next((entry for entry in self.trusted()[-1:] if entry.status == "begun"), None)
        if pending is None or pending.number != number:
            raise LedgerError(f"release {number} is not one that was begun last and is not visible yet; it stays")
        with self._store.connection.transaction():
            self._store.remove(number)
            self._store.record("withdrawn", number, pending.hash)
        if is_parted([pending]):
            Shelf(self.place).sweep(self.releases())
        self.remember()

    def remove(self) -> None:
        """Remove a ledger with which nothing was published."""
        if self.releases():
            raise LedgerError(Problem("there are releases in this ledger; it stays", file=str(self.place)))
        remove_ledger(self._store.connection)

    def verify(self, releases: str | Path | None = None) -> Verification:
        """Whether everything is what was written and adds up; and, given their folder, the releases and the head."""
        from sequester.ledger.verify import verify

        if releases is None:
            return verify(self._store, facts=self._store.facts())
        folder = Path(releases)
        return verify(self._store, facts=self._store.facts(), around=lambda entries: self._around(folder, entries))

    def _around(self, folder: Path, entries: Sequence[Entry]) -> list[str]:
        looks = (evidence.row_counts, evidence.additions)
        found = [problem for look in looks for problem in look(folder, self.series, entries)]
        return [*map(str, self.troubles(folder)), *found]

    def troubles(self, folder: Path, *, digest: evidence.Digest = evidence.digest_of) -> list[Trouble]:
        """What does not agree with the ledger in the folder of releases, or beside its key, and is not accepted."""
        entries, events = self.releases(), self.log()
        carried = self.carried
        troubles = [*evidence.of_folders(folder, self.series, entries, events=events, carried=carried, digest=digest)]
        if self._key is not None:
            troubles += evidence.of_head(self.place, self.series, events, self._key, begun=_has_begun(events))
        if is_parted(entries):
            troubles += Shelf(self.place).troubles(entries)
        troubles += evidence.of_parts(self.place, len(entries), digest=digest)
        known = evidence.accepted(events)
        return [trouble for trouble in troubles if trouble.mark not in known]

    def strangers(self, folder: Path) -> list[str]:
        """What lies among the release folders and is nothing of Sequester's."""
        return evidence.strangers(folder, self.series)

    def accept(self, troubles: Sequence[Trouble]) -> None:
        """Record that this does not agree with the ledger, and is known; from here on the head is the ledger's."""
        self.check_chain()
        with self._store.connection.transaction():
            self._store.record(evidence.ACCEPTED, None, _json([trouble.mark for trouble in troubles]))
        self.remember()

    def export(self, folder: str | Path) -> Path:
        """Everything as Parquet files with a manifest, whole or not at all. As private as the ledger."""
        from sequester.ledger.transfer import export

        self.refuse_parts("these are files already: copy the ledger, and the folder of parts beside it")
        return export(self._store, self.head, Path(folder))

    @classmethod
    def import_(
        cls,
        folder: str | Path,
        path: str | Path | Place,
        key: Key,
        *,
        encrypted: bool = False,
        releases: str | Path | None = None,
        accept_loss: bool = False,
    ) -> Ledger:
        """A new ledger from an export, after everything in it was verified and agrees with what is around it.

        releases     the folder of releases; `releases` beside the ledger by default
        accept_loss  what does not agree is recorded as lost
        """
        from sequester.ledger.transfer import import_

        place = Place.of(path)
        shown = place.releases if releases is None else Path(releases)

        def finish(store: Store) -> None:
            troubles = cls(store, store.facts(), key, encrypted=encrypted)._import_troubles(place, shown)
            if not accept_loss:
                evidence.refuse(troubles)
            elif troubles:
                store.record(evidence.ACCEPTED, None, _json([trouble.mark for trouble in troubles]))

        import_(Path(folder), place, key, encrypted=encrypted, finish=finish)
        opened = cls.open(place, key=key)
        opened.remember()
        return opened

    def _import_troubles(self, place: Place, folder: Path) -> list[Trouble]:
        """What does not agree with an imported ledger at its place, where there need not be a head."""
        events, known = self.log(), evidence.accepted(self.log())
        troubles = [
            *evidence.of_folders(folder, self.series, self.releases(), events=events, carried=self.carried),
            *evidence.of_head(place, self.series, events, self.key, begun=False),
            *evidence.of_parts(place, len(self.releases())),
        ]
        return [trouble for trouble in troubles if trouble.mark not in known]

    def hand_over(
        self, path: str | Path | Place, *, series: str, policy_text: str, fingerprint: str, encrypted: bool = False
    ) -> Ledger:
        """The ledger of a new series of the same people, with everything published in this one as known.

        Nothing can be published with this one afterwards: what either published the other would not know. That is
        recorded first, so that a command that dies in between can be repeated, for the same series.
        """
        from sequester.ledger.transfer import carry_over

        self.refuse_parts("no other series can go on from it yet")
        key = self.key
        self.load()
        if self.pending is not None:
            raise LedgerError(
                Problem("a release was begun and not finished; open its series first", file=str(self.place))
            )
        if self.successor not in (None, series):
            message = "another series goes on from this one already; go on from that"
            raise LedgerError(Problem(message, file=str(self.place)))
        if self.successor is None:
            with self._store.connection.transaction():
                self._store.record("handed over", None, series)
        self.remember()
        carry_over(self._store, _facts(series, policy_text, fingerprint, key), Place.of(path), key, encrypted=encrypted)
        ledger = Ledger.open(path, key=key)
        ledger.remember()
        return ledger

    @property
    def successor(self) -> str | None:
        """The series that goes on from this one, if one does."""
        last = [event for event in self.log() if event.action in ("handed over", "carried over")][-1:]
        return last[0].detail if last and last[0].action == "handed over" else None

    def check_open(self) -> None:
        """Raise LedgerError if nothing more is published here: the series is closed, or another one goes on from it."""
        message = None
        if self.successor is not None:
            message = "another series goes on from this one and would not know what is published here; publish there"
        elif (closed := self.life.closed) is not None:
            message = (
                f"the series was closed on {closed.at[:10]}, and nothing more is published in it; open it again "
                "(`sequester ledger close`, undo=True)"
            )
        if message is not None:
            raise LedgerError(Problem(message, file=str(self.place)))

    @property
    def carried(self) -> int:
        """How many of its first releases are those of the series before, from which it goes on."""
        return int(self._facts.get("after_releases", "0"))

    @property
    def _genesis(self) -> str:
        return chain.genesis(self._facts)

    @property
    def key(self) -> Key:
        """Its key; LedgerError where it was opened without."""
        if self._key is None:
            raise LedgerError(Problem("this needs the key of the ledger; it was opened without", file=str(self.place)))
        return self._key

    def lend_key(self) -> bytes | None:
        """Its key for a process that works for this one; None where it was opened without."""
        return None if self._key is None else self._key.lend()

    def check_chain(self) -> None:
        """Raise LedgerError if list, log or meta are not what was written."""
        self.trusted()

    def trusted(self) -> list[Entry]:
        """All releases, after list, log and meta were found to be what was written."""
        entries = self.releases()
        if not self._trusted and (problems := [*chained(self._store, entries, self._facts)]):
            raise self._store.connection.damaged("; ".join(problems))
        self._trusted = True
        return entries

    def remember(self) -> None:
        """Write down how far the ledger is; what was recorded stays recorded when that fails."""
        try:
            write_head(self._store, self.series)
            return
        except LedgerError as error:
            failure = Unsettled(error.problems[0].message, file=error.problems[0].file)
        raise failure

    def _check(self, draft: Draft, entries: Sequence[Entry], *, empty: bool = False) -> None:
        problems = problems_of(draft, entries[-1].people if entries else 0, empty=empty)
        if entries and (draft.quasi, draft.sensitive, draft.insensitive) != (
            entries[-1].quasi,
            entries[-1].sensitive,
            entries[-1].insensitive,
        ):
            problems.append("the attributes are not those of the releases before")
        if entries and not problems and len(draft.newcomers):
            if stacked(self._store.by_release("people", entries), "digests").shape[1] != len(draft.digests):
                problems.append("there are not as many digests as in the releases before")
            if (self.match(draft.newcomers) >= 0).any():
                problems.append("a newcomer was published before")
        if problems:
            raise ValueError("; ".join(problems))

    def _before(self, draft: Draft, entries: Sequence[Entry]) -> tuple[Versions, Codes, Codes]:
        """Domains as text, everybody's trajectory, and what everybody was first published with, in the new domains."""
        if not entries:
            return {}, np.zeros(0, np.int32), np.zeros((len(draft.kept_names), 0), np.int32)
        last, store = entries[-1], self._store
        versions = store.versions(entries)
        domains = store.decode(lambda: domains_by_release(versions, len(entries)))
        if lost := lost_leaves(domains[-1], draft.domains):
            message = "the domain lost values that it had in an earlier release; it may only gain some"
            raise LedgerError(Problem(message, column=name, rows=count) for name, count in lost.items())
        people, state = store.by_release("people", entries), store.rows(last, ("state",))["state"]

        def joining() -> Codes:
            must(np.array_equal(state["person"], np.arange(last.people)))
            must(sum(len(rows["person"]) for rows in people) == last.people)
            now_ = [draft.domains[name] for name in draft.kept_names]
            return joining_values(people, _kept(domains, last), now_)

        return versions, state["trajectory"], store.decode(joining)

    def _state(self, entries: Sequence[Entry]) -> State:
        last, store = entries[-1], self._store
        domains = domains_by_release(store.versions(entries), len(entries))
        classes, counts = store.by_release("classes", entries), store.by_release("counts", entries)
        people, steps = store.by_release("people", entries), store.by_release("trajectories", entries)
        memories = tuple(
            Memory(
                number=entry.number,
                name=entry.name,
                sensitive=entry.sensitive,
                domains=domains[place],
                lo=np.ascontiguousarray(classes[place]["lo"].T),
                hi=np.ascontiguousarray(classes[place]["hi"].T),
                cell_class=counts[place]["class"],
                cell_codes=np.ascontiguousarray(counts[place]["codes"].T),
                cell_count=counts[place]["n"].astype(np.int64),
            )
            for place, entry in enumerate(entries)
        )
        seated, pods = store.by_release("seats", entries), store.by_release("pods", entries)
        seats = seats_of(seated, pods, last.people, records=[entry.records for entry in entries])
        # Of earlier releases nothing of these is needed, but an edit of it is an edit of what is built upon.
        store.check_rows(entries[:-1], _REPLACED)
        rows = store.rows(last, _REPLACED)
        joined = [len(new["person"]) for new in people]
        must(np.array_equal(rows["state"]["person"], np.arange(last.people)))
        must(sum(joined) == last.people)
        of = _kept(domains, last)
        kept, changes = joining_values(people, of, of[-1]), rows["changes"]
        kept[changes["attribute"], changes["person"]] = changes["code"]
        values, plain = np.split(kept, [len(last.sensitive)])
        return State(
            head=last.hash,
            people=last.people,
            quasi=last.quasi,
            sensitive=last.sensitive,
            insensitive=last.insensitive,
            domains=domains[-1],
            releases=memories,
            path=paths(steps),
            trajectory=rows["state"]["trajectory"],
            values=values,
            plain=plain,
            digests=np.ascontiguousarray(stacked(people, "digests").T),
            joined=np.repeat(np.arange(1, len(people) + 1, dtype=np.int32), joined),
            retained=rows["retained"]["person"].astype(np.int64),
            queue=WaitingList(join_hashes(rows["queue"]["high"], rows["queue"]["low"]), rows["queue"]["since"]),
            seats=seats,
        )


def _facts(series: str, policy_text: str, fingerprint: str, key: Key) -> dict[str, str]:
    """What a new ledger says about itself."""
    from sequester import __version__

    return {
        "series": series,
        "fingerprint": fingerprint,
        "policy_text": policy_text,
        "created": now(),
        "sequester": __version__,
        "key_check": key.check,
        "schema": str(schema.VERSION),
        "nonce": secrets.token_hex(16),
    }


def _has_begun(events: Sequence[Event]) -> bool:
    """Whether anything was recorded in a ledger since it was made."""
    return any(event.action not in ("created", "recovered") for event in events)


def _nothing(head: str) -> State:
    """Before the first release."""
    return State(
        head=head,
        people=0,
        quasi=(),
        sensitive=(),
        insensitive=(),
        domains={},
        releases=(),
        path=np.zeros((0, 0), np.int32),
        trajectory=np.zeros(0, np.int32),
        values=np.zeros((0, 0), np.int32),
        plain=np.zeros((0, 0), np.int32),
        digests=np.zeros((0, 0), np.int64),
        joined=np.zeros(0, np.int32),
        retained=np.zeros(0, np.int64),
        queue=WaitingList.none(),
    )


def _kept(domains: Sequence[Mapping[str, Hierarchy]], entry: Entry) -> list[list[Hierarchy]]:
    return [[of[name] for name in entry.kept_names] for of in domains]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
