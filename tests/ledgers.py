"""Small ledgers for tests: people p0, p1, ... in the classes one says, with values and boxes made up from numbers."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import Busy, SequesterError
from sequester.ledger import HASH, Draft, Key, Ledger, Place, WaitingList
from series import axis

SECRET = "a secret that nobody knows"
KEY = Key.of_text(SECRET)
QUASI, SENSITIVE = ("age", "zip"), ("illness", "ward")
DOMAINS: Mapping[str, Hierarchy] = {"age": axis(9), "zip": axis(5), "illness": axis(4), "ward": axis(3)}


def new(path: Path | Place, **options: Any) -> Ledger:
    """A ledger without releases."""
    return Ledger.create(path, **{"series": "s", "policy_text": "k: 2", "fingerprint": "f", "key": KEY, **options})


def draft(ledger: Ledger, member: Sequence[int], **changes: Any) -> Draft:
    """A release with everybody in a class: those the ledger knows, then newcomers. -1 is absent."""
    entries = ledger.releases()
    known, classes = entries[-1].people if entries else 0, max(member) + 1
    people = np.arange(len(member))
    ids = pa.array([f"p{person}" for person in people[known:]], pa.string())
    hashes = ledger.identify(ids)
    lo = np.stack([np.arange(classes) % 5, np.arange(classes) % 3]).astype(np.int32)
    given: dict[str, Any] = {
        "name": f"release {len(entries) + 1}",
        "head": ledger.head,
        "quasi": QUASI,
        "sensitive": SENSITIVE,
        "domains": DOMAINS,
        "lo": lo,
        "hi": lo + 2,
        "member": np.array(member, np.int32),
        "values": np.stack([people % 4, people % 3]).astype(np.int32),
        "newcomers": hashes,
        "digests": ledger.digest(hashes, [ids])[None],
        "input_digest": "in",
        "output_digest": "out",
        "method": "mondrian",
        "seed": 2**70,
        "summary": {"k": 2},
    }
    return Draft(**{**given, **changes})


def publish(ledger: Ledger, member: Sequence[int], **changes: Any) -> None:
    """Record a release and say that it is visible."""
    ledger.finish(ledger.begin(draft(ledger, member, **changes)).number)


def three_releases(path: Path | Place) -> Ledger:
    """People join, leave and return; one waits, one is retained."""
    ledger = new(path)
    publish(ledger, [0, 0, 1, 1, 0])
    waiting = WaitingList(ledger.identify(pa.array(["w1"])), np.array([2], np.int32))
    publish(ledger, [0, 0, 0, -1, 1, 1, 1], queue=waiting, retained=np.array([4]))
    publish(ledger, [1, 1, 0, 0, -1, 1, 0, 0, 1], recipient="university", purpose="study")
    return ledger


def crowd(ledger: Ledger, people: int, newcomers: int) -> Draft:
    """A larger release: most people stay together, some are reshuffled, a few are new."""
    known = ledger.releases()[-1].people if ledger.releases() else 0
    total = (known or people) + (newcomers if known else 0)
    classes = total // 5
    rng = np.random.default_rng(total)
    member = np.where(rng.random(total) < 0.9, np.arange(total) // 5, rng.integers(classes, size=total)) % classes
    member[:classes] = np.arange(classes)
    return draft(ledger, member.tolist())


def publish_until_killed(path: Path, told: Connection) -> None:
    """Publish release after release and say so; the parent kills at any time."""
    with Ledger.open(path, key=KEY, timeout=30) as ledger:
        if ledger.pending is not None:
            ledger.finish(ledger.pending.number)
        told.send(("open", 0, ledger.head))
        while True:
            given = crowd(ledger, 3000, 50)
            told.send(("begins", 0, given.head))
            entry = ledger.begin(given)
            told.send(("begun", entry.number, entry.hash))
            ledger.finish(entry.number)
            told.send(("finished", entry.number, entry.hash))


def begin_without_checkpoint(path: Path, told: Connection) -> None:
    """Record a release that is only in DuckDB's own log, as when the process dies right after the commit."""
    with Ledger.open(path, key=KEY) as ledger:
        store = ledger._store.connection
        run = store.execute
        store.execute = lambda sql, values=(): [] if sql.startswith("CHECKPOINT") else run(sql, values)  # type: ignore[method-assign, assignment]
        entry = ledger.begin(draft(ledger, [0, 0, 0, 0]))
        told.send((entry.number, entry.hash))
        told.recv()


def hold(path: Path, told: Connection, *, read_only: bool) -> None:
    """Have the ledger until told otherwise."""
    with Ledger.open(path, key=KEY, read_only=read_only):
        told.send("held")
        told.recv()


def race(path: Path, told: Connection, *, rounds: int) -> None:
    """Publish several times against somebody else who does, too; every time plans anew."""
    published = 0
    while published < rounds:
        try:
            with Ledger.open(path, key=KEY, timeout=60) as ledger:
                publish(ledger, crowd(ledger, 200, 10).member.tolist())
            published += 1
        except Busy:
            continue
    told.send(published)


def read_corrupted(path: Path, told: Connection, *, offsets: Sequence[int]) -> None:
    """Say for every offset what happens when that byte is another; one process, so that a crash is seen as one."""
    whole = path.read_bytes()
    place = path.with_name("corrupted.ledger")
    place.touch(mode=0o600)
    for offset in offsets:
        changed = bytearray(whole)
        changed[offset] ^= 0x41
        place.write_bytes(changed)
        told.send((offset, what_is_said(place), place.read_bytes() == changed))


def what_is_said(path: Path) -> tuple[str, str]:
    """What opening for writing, loading and verifying a ledger gives: an error, problems, or the head."""
    try:
        with Ledger.open(path, key=KEY) as ledger:
            ledger.load()
            found = ledger.verify()
            return ("problems", "; ".join(found.problems)) if found.problems else ("holds", ledger.head)
    except SequesterError as error:
        return type(error).__name__, str(error)


def begin_with_little_room(path: Path, told: Connection, *, room: int) -> None:
    """Record a release when files cannot grow beyond some size, as on a disk that is full."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Ledger.open(path, key=KEY) as ledger:
        given = crowd(ledger, 20_000, 5_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            told.send(("begun", ledger.begin(given).hash))
        except SequesterError as error:
            told.send((type(error).__name__, str(error)))


def wait_for(told: Connection, seconds: float) -> list[Any]:
    """Everything that is said within some seconds."""
    found = []
    end = time.monotonic() + seconds
    while told.poll(max(0.0, end - time.monotonic())):
        try:
            found.append(told.recv())
        except EOFError:
            break
    return found


NOBODY = pa.array([], HASH)
