"""How far a ledger was, kept beside its key.

A ledger that was put back to an earlier day is whole in itself: every hash and every seal of it is right. Only what is
kept apart from it can tell. So each time the ledger's log grows, the number and the hash of its last row are written
to a small file, sealed with the key; a ledger whose log has not that row is not the one that was here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sequester.drafts import write_whole
from sequester.errors import LedgerError, Problem
from sequester.ledger.connection import private
from sequester.ledger.key import Key, flush_names
from sequester.ledger.place import Place
from sequester.ledger.store import Store, need
from sequester.regular import bytes_of

_FORMAT = 1
_SUFFIX = ".head"


@dataclass(frozen=True)
class Witness:
    """What is remembered of a ledger.

    rows, hash  of its log: how many rows, and the hash of the last
    columns     digest of what is published, to notice the same table in another series
    """

    series: str
    rows: int
    hash: str
    columns: str
    seal: str = ""

    def sealed(self, key: Key) -> Witness:
        """The same with its seal."""
        return Witness(self.series, self.rows, self.hash, self.columns, key.sign("witness", self._text()).hex())

    def is_by(self, key: Key) -> bool:
        """Whether it was sealed with this key."""
        return self.seal == key.sign("witness", self._text()).hex()

    def _text(self) -> bytes:
        return json.dumps([_FORMAT, self.series, self.rows, self.hash, self.columns]).encode()


def columns_digest(names: Sequence[str]) -> str:
    """Of the names of the published columns, in any order."""
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()


def remember(store: Store, series: str) -> None:
    """Write down how far a ledger is now. Before anything was recorded there is nothing to remember."""
    events, entries = store.events(), store.entries()
    if not any(event.action != "created" for event in events):
        return
    names = (*entries[-1].quasi, *entries[-1].kept_names) if entries else ()
    head = Witness(series, len(events), events[-1].hash, columns_digest(names))
    write(store.connection.place.head, head.sealed(need(store.key)))


def write(path: Path, witness: Witness) -> None:
    """Put a witness in its place, at once and durably; whoever writes has the ledger, so nobody else does."""
    draft = path.with_name(f".{path.name}.draft")
    text = json.dumps({"sequester-head": _FORMAT, **asdict(witness)}, indent=2) + "\n"
    reason = None
    try:
        with private(), contextlib.suppress(FileNotFoundError):
            draft.unlink()
        write_whole(draft, text.encode())
        draft.replace(path)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        with contextlib.suppress(OSError):
            draft.unlink()
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(path)))
    flush_names(path.parent)


def read(path: Path) -> Witness:
    """What is remembered; LedgerError when the file is not one of these."""
    reason = None
    try:
        raw = json.loads(bytes_of(path))
        if raw.pop("sequester-head") != _FORMAT:
            raise ValueError
        head = Witness(**raw)
        if [type(value) for value in asdict(head).values()] != [str, int, str, str, str]:
            raise ValueError
        return head
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        reason = "does not say how far a ledger was; put the right file back"
    raise LedgerError(Problem(reason, file=str(path)))


def beside(place: Place) -> dict[Path, Witness]:
    """The witnesses of other ledgers in the same folder; files that are none are passed over."""
    heads = {}
    for path in sorted(place.home.glob(f"*{_SUFFIX}")) if place.home.is_dir() else ():
        if path != place.head and path.is_file():
            with contextlib.suppress(LedgerError):
                heads[path] = read(path)
    return heads
