"""Whether what is around a ledger agrees with it: the release folders, the head beside its key, and its parts.

A ledger that forgot a release would let the next one tell what the two tell together. So three witnesses are heard
before anything is planned or published: the ledger, the folders that the world has seen, and the head; of a large
series its parts as well. What does not agree is trouble, each with what to do; trouble that is known and cannot be
mended is accepted, and the log says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sequester import regular
from sequester.errors import LedgerError, Problem
from sequester.ledger import witness
from sequester.ledger.key import Key
from sequester.ledger.life import ever_withdrawn, withdrawals
from sequester.ledger.place import Place
from sequester.ledger.shelf import ASIDE, aside
from sequester.ledger.state import Entry, Event
from sequester.outputs import output_of
from sequester.visible import visible

ACCEPTED = "loss accepted"
_NUMBERED = re.compile(r"(\d{4,})-.")
_REPAIR = "`accept_loss=True` records that it is lost for good: no audit will count what it told"

Digest = Callable[[Path], str | None]


@dataclass(frozen=True)
class Trouble:
    """One way in which the world does not agree with a ledger.

    mark  what it is recorded as when it is accepted: it covers the digests of what was found, and nothing else
    """

    mark: str
    message: str
    file: str

    def __str__(self) -> str:
        return str(self.to_problem())

    def to_problem(self) -> Problem:
        """As part of an error."""
        return Problem(self.message, file=self.file)


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None when it cannot be read."""
    with contextlib.suppress(OSError):
        return regular.digest_of(path)
    return None


class Digests:
    """Digests of files that are read again only when they were touched: between a plan and its publication."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, ...], str | None]] = {}

    def __call__(self, path: Path) -> str | None:
        """SHA-256 of a file; None when it cannot be read."""
        try:
            status = path.stat()
        except OSError:
            return None
        sign = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if path not in self._known or self._known[path][0] != sign:
            self._known[path] = (sign, digest_of(path))
        return self._known[path][1]


def accepted(events: Sequence[Event]) -> set[str]:
    """The marks of all trouble that is known."""
    return {mark for event in events if event.action == ACCEPTED for mark in json.loads(event.detail)}


def refuse(troubles: Sequence[Trouble]) -> None:
    """Stop where something does not agree."""
    if troubles:
        raise LedgerError(trouble.to_problem() for trouble in troubles)


def of_head(place: Place, series: str, events: Sequence[Event], key: Key, *, begun: bool) -> Iterator[Trouble]:
    """The head beside the key is a row of the log, as is that of any other ledger of this series beside it.

    `begun`: something was recorded, so that there is a head.
    """
    if not place.head.is_file() and begun:
        message = (
            "the head of the ledger is not beside its key, so nobody can tell whether this is the newest ledger; put "
            "it back from where ledger and key were. If this is the newest for certain, `accept_loss=True` records that"
        )
        # Accepting it writes a head, so that one which is lost later is trouble again.
        yield Trouble(f"no head {len(events)}", message, str(place.head))
    others = [path for path, head in witness.beside(place).items() if head.series == series]
    for path in [*([place.head] if place.head.is_file() else []), *others]:
        yield from _of_one_head(path, series, events, key)


def _of_one_head(path: Path, series: str, events: Sequence[Event], key: Key) -> Iterator[Trouble]:
    said = None
    try:
        head = witness.read(path)
    except LedgerError as error:
        said = error.problems[0].message
    if said is None and not head.is_by(key):
        said = "was not written with the key of this ledger; put the right head back"
    if said is not None:
        yield Trouble(f"head {digest_of(path)}", said, str(path))
        return
    row = events[head.rows - 1] if 1 <= head.rows <= len(events) else None
    if head.series != series or row is None or row.hash != head.hash:
        message = (
            f"the ledger is older than its head, or another one: {head.rows:,} things had happened to the ledger that "
            f"was here last, {len(events):,} to this one. Put the newest ledger back, from a backup or an export. If "
            "there is none, what was published since is not known any more: `accept_loss=True` records that"
        )
        yield Trouble(f"head {digest_of(path)}", message, str(path))


def of_folders(
    folder: Path,
    series: str,
    entries: Sequence[Entry],
    *,
    events: Sequence[Event] = (),
    carried: int = 0,
    digest: Digest = digest_of,
) -> Iterator[Trouble]:
    """Every published release has its folder, with the files that were recorded, and there is no other folder.

    events   what happened to the ledger: one that was withdrawn may be set aside, and its folder may be gone
    carried  the folders of so many first releases, of the series before, may be elsewhere
    """
    there, hidden = (
        {place.name: place for place in _numbered(where)} for where in (folder / series, aside(folder, series))
    )
    ever, gone = ever_withdrawn(events), withdrawals(events)
    for entry in entries:
        places = [there.pop(entry.folder, None), hidden.pop(entry.folder, None) if entry.number in ever else None]
        found = [place for place in places if place is not None]
        if not found and entry.status == "published" and entry.number > carried and entry.number not in gone:
            message = (
                f"release {entry.number} was published, but its folder is not there; put it back, or say with "
                "`folder=...` where the folders are. If nobody has it any more, `accept_loss=True` records that"
            )
            yield Trouble(f"missing {entry.folder}", message, str(folder / series / entry.folder))
        for place in found:
            if wrong := differing(place, entry, digest=digest):
                message = (
                    f"release {entry.number} is not what was recorded ({', '.join(wrong)}); put the folder back as it "
                    "was published. If it cannot be, `accept_loss=True` records that"
                )
                yield Trouble(f"changed {entry.folder} {_contents(place, digest)}", message, str(place))
    for place in (*there.values(), *hidden.values()):
        message = (
            "is a release that the ledger does not know: the ledger is older than its releases, or another one. Put "
            f"the newest ledger back, from a backup or an export; or move a folder away that nobody has seen. {_REPAIR}"
        )
        yield Trouble(f"unknown {place.name} {_contents(place, digest)}", message, str(place))


def of_nothing(place: Place, series: str, folder: Path, *, digest: Digest = digest_of) -> Iterator[Trouble]:
    """Where there is no ledger, there was none: no head of this series, and none of its releases."""
    heads = [path for path, head in witness.beside(place).items() if head.series == series]
    for path in [place.head] if place.head.is_file() else heads:
        message = (
            "a ledger of this series was here, and is not any more; put the newest back, from a backup or an export. "
            f"If there is none, {_REPAIR}"
        )
        yield Trouble(f"head {digest(path)}", message, str(path))
    yield from of_folders(folder, series, (), digest=digest)
    yield from of_parts(place, 0, digest=digest)


def of_parts(place: Place, releases: int, *, digest: Digest = digest_of) -> Iterator[Trouble]:
    """Parts have their name once their release is published: there are none beyond the last release of the ledger."""
    named = place.parts.iterdir() if place.is_file and place.parts.is_dir() else ()
    newer = [one for one in named if one.name.isdecimal() and int(one.name) > releases and one.is_dir()]
    for parts in sorted(newer):
        message = (
            "are parts of a release that the ledger does not know: the ledger is older than its parts, or another "
            f"one. Put the newest ledger back, with the parts that were beside it. If there is none, {_REPAIR}"
        )
        yield Trouble(f"parts {parts.name} {_contents(parts, digest)}", message, str(parts))


def folders(folder: Path, series: str) -> list[Path]:
    """The release folders of a series, those of withdrawn releases last."""
    return [*_numbered(folder / series), *_numbered(aside(folder, series))]


def place_of(folder: Path, series: str, entry: Entry) -> Path:
    """Where the folder of a release is, or belongs."""
    places = [place for place in folders(folder, series) if place.name == entry.folder]
    return places[0] if places else folder / series / entry.folder


def strangers(folder: Path, series: str) -> list[str]:
    """What lies among the folders of a series and is nothing of Sequester's."""
    own, strange = folder / series, []
    for place in (own, aside(folder, series)):
        with contextlib.suppress(OSError):
            strange += [one for one in place.iterdir() if not _is_numbered(one) and one != own / ASIDE]
    return sorted(str(place.relative_to(folder)) for place in strange)


def additions(folder: Path, series: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Whatever is in the folder of a release and was not published with it: readers would take it for a part of it."""
    known = {entry.folder: entry for entry in entries if entry.files}
    for place in folders(folder, series):
        entry = known.get(place.name)
        for file in sorted(place.iterdir()) if entry is not None else ():
            if entry is not None and file.name not in entry.files:
                yield f"release {entry.number}: {visible(file.name)} was added to its folder; move it away"


def row_counts(folder: Path, series: str, entries: Sequence[Entry]) -> Iterator[str]:
    """The data of every release have as many rows as were recorded."""
    for entry in entries:
        place = place_of(folder, series, entry)
        # Large releases are in several files.
        counts = [_rows(data) for data in sorted(place.glob("data[.-]*"))] if place.is_dir() else []
        if counts and None not in counts and (rows := sum(filter(None, counts))) != entry.records:
            yield f"release {entry.number}: the data have {rows:,} rows, and {entry.records:,} were recorded"


def differing(place: Path, entry: Entry, *, digest: Digest = digest_of) -> list[str]:
    """The files of a release folder that are not what was recorded."""
    return [name for name, known in sorted(entry.files.items()) if digest(place / name) != known]


def _numbered(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [place for place in sorted(folder.iterdir()) if _is_numbered(place)]
    return []


def _is_numbered(place: Path) -> bool:
    return bool(_NUMBERED.match(place.name)) and place.is_dir()


def _rows(data: Path) -> int | None:
    """Rows of a data file; None when it cannot be read, which its digest tells."""
    with contextlib.suppress(pa.ArrowException, OSError):
        return output_of(data.name).rows(data) if data.is_file() else None
    return None


def _contents(place: Path, digest: Digest) -> str:
    """One digest of all files of a folder."""
    files = [[file.name, digest(file)] for file in sorted(place.iterdir()) if file.is_file()]
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
