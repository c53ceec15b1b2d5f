"""What goes into a ledger for one release, and what comes back for the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.history.seats import Seats

Status = Literal["begun", "published"]

# Keyed hashes of people: the first half of HMAC-SHA256, enough that no two people ever share one.
HASH = pa.binary(16)


def folder_name(number: int, name: str) -> str:
    """What the folder of a release is called."""
    return f"{number:04d}-{name}"


@dataclass(frozen=True, eq=False, repr=False)
class WaitingList:
    """People held back, by keyed hash (`HASH`), and the number of the first release that held each of them back."""

    hashes: pa.Array
    since: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.since)

    def __repr__(self) -> str:
        return f"<WaitingList: {len(self)} people>"

    @classmethod
    def none(cls) -> WaitingList:
        """Nobody."""
        return cls(pa.array([], HASH), np.zeros(0, np.int32))


@dataclass(frozen=True, eq=False, repr=False)
class Draft:
    """One release to record.

    name           of the release
    head           the ledger's head that it was made for: if the ledger has moved on, it is stale
    quasi          names of the quasi-identifiers, in the order of the rows of `lo` and `hi`
    sensitive      names of the sensitive attributes, in the order of the rows of `values`
    insensitive    names of the columns published as they are, in the order of the rows of `plain`
    domains        of all these attributes, that the codes below are of
    lo, hi         (quasi-identifiers, classes) published boxes
    member         per person the ledger knows, then per newcomer, her class; -1 when not in this release. Newcomers
                   are all in a class
    values         (sensitive attributes, people as in `member`) codes; only those of people in a class count
    plain          (insensitive columns, people as in `member`) codes; likewise
    newcomers      keyed hash of every newcomer, as `Ledger.identify` gives it
    digests        (any, newcomers) keyed digests of what must not change, as `Ledger.digest` gives them
    retained       people (numbers) who left, but are kept in the release
    queue          everybody held back after this release
    method         what made it, and `seed` the row order
    versions, summary   whatever belongs to the release: kept as JSON, so nothing private
    output_digest  SHA-256 of the data file of the release folder, and `files` of all its files, by name
    fingerprint, policy_text   of the policy, when it is not the one the ledger was created with
    seats          everybody's seat and pods with this release, of a series made by pods
    """

    name: str
    head: str
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    domains: Mapping[str, Hierarchy]
    lo: Codes
    hi: Codes
    member: Codes
    values: Codes
    newcomers: pa.Array
    digests: NDArray[np.int64]
    input_digest: str
    output_digest: str
    method: str
    insensitive: tuple[str, ...] = ()
    plain: Codes = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    retained: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    queue: WaitingList = field(default_factory=WaitingList.none)
    seed: int | None = None
    recipient: str | None = None
    purpose: str | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None
    policy_text: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    seats: Seats | None = None

    def __repr__(self) -> str:
        return f"<Draft: {len(self.member)} people, {self.lo.shape[1]} classes>"

    @property
    def kept_names(self) -> tuple[str, ...]:
        """The columns of which everybody's codes are kept."""
        return (*self.sensitive, *self.insensitive)

    @property
    def kept(self) -> Codes:
        """(those columns, people) the codes."""
        return np.vstack([self.values, self.plain]) if self.insensitive else self.values


@dataclass(frozen=True)
class Entry:
    """One release as the ledger lists it.

    number     from 1
    created    when it was recorded, UTC, ISO 8601
    classes, records, people   classes and rows published; everybody numbered so far, decoys included
    content    digest of everything recorded of the release
    previous   hash of the entry before, and `hash` of this one, which covers `content`, `previous` and all the above
    seal       `hash` signed with the ledger's key
    tables     digests of what is recorded of the release, table by table
    files      digests of the files of the release folder
    status     'begun' until the release is known to be visible; covered by no hash, but the log has it
    """

    number: int
    name: str
    created: str
    recipient: str | None
    purpose: str | None
    fingerprint: str
    policy_text: str = field(repr=False)
    input_digest: str
    output_digest: str
    method: str
    seed: int | None = field(repr=False)
    versions: Mapping[str, Any]
    summary: Mapping[str, Any] = field(repr=False)
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    insensitive: tuple[str, ...]
    classes: int
    records: int
    people: int
    content: str
    previous: str
    tables: Mapping[str, str] = field(repr=False)
    files: Mapping[str, str] = field(repr=False)
    hash: str
    seal: str
    status: Status

    @property
    def kept_names(self) -> tuple[str, ...]:
        """The columns of which everybody's codes are kept."""
        return (*self.sensitive, *self.insensitive)

    @property
    def persons(self) -> int:
        """Everybody published so far, without decoys."""
        return self.people - int((self.summary.get("pods") or {}).get("ever", 0))

    @property
    def folder(self) -> str:
        """The name of the release folder."""
        return folder_name(self.number, self.name)


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """One release as it was published.

    domains     of all attributes, as they were then; all codes are of these
    lo, hi      (quasi-identifiers, classes) the boxes
    cell_class, cell_codes, cell_count   (cells), (sensitive attributes, cells), (cells): how often each combination of
                values is in each class, by class and then by codes
    """

    number: int
    name: str
    sensitive: tuple[str, ...]
    domains: Mapping[str, Hierarchy]
    lo: Codes
    hi: Codes
    cell_class: Codes
    cell_codes: Codes
    cell_count: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of classes."""
        return int(self.lo.shape[1])

    def __repr__(self) -> str:
        return f"<Memory of release {self.number}: {int(self.cell_count.sum())} rows in {len(self)} classes>"

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """Rows per class."""
        return self._sum(self.cell_class.astype(np.int64), len(self))

    @cached_property
    def counts(self) -> tuple[NDArray[np.int64], ...]:
        """Per sensitive attribute (classes, values): how often each value is in each class."""
        counts = []
        for name, codes in zip(self.sensitive, self.cell_codes, strict=True):
            values = self.domains[name].size
            flat = self._sum(self.cell_class.astype(np.int64) * values + codes, len(self) * values)
            counts.append(flat.reshape(len(self), values))
        return tuple(counts)

    def _sum(self, places: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        return np.bincount(places, weights=self.cell_count, minlength=count).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Everything the next release needs to know, from the last release's rows and the classes of all.

    head        hash of the last entry
    people      everybody published so far, numbered from 0
    quasi, sensitive, insensitive   names of the attributes, in the order of the rows of the arrays
    domains     of all these, in the last release
    releases    what was published, in order
    path        (trajectories, releases) the class in every release, -1 for absence
    trajectory  per person, hers
    values      (sensitive attributes, people) codes in `domains`: of those in the last release what was published then,
                of the others what they were first published with, which is the same where values are permanent
    plain       (insensitive columns, people) codes in `domains`, likewise
    digests     (any, people) keyed digests of what must not change
    joined      per person, the number of the release she was first in
    retained    people of the last release who had left before
    queue       everybody held back after the last release
    seats       everybody's seat and pods, where all releases were made by pods; decoys count among `people`
    """

    head: str
    people: int
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    insensitive: tuple[str, ...]
    domains: Mapping[str, Hierarchy]
    releases: tuple[Memory, ...]
    path: Codes
    trajectory: Codes
    values: Codes
    plain: Codes
    digests: NDArray[np.int64]
    joined: NDArray[np.int32]
    retained: NDArray[np.int64]
    queue: WaitingList
    seats: Seats | None = None

    def __repr__(self) -> str:
        return f"<State: {self.people} people, {len(self.path)} trajectories over {len(self.releases)} releases>"

    @property
    def decoy(self) -> NDArray[np.bool_]:
        """Per person, whether there is nobody."""
        return np.zeros(self.people, np.bool_) if self.seats is None else self.seats.decoy

    @property
    def member(self) -> Codes:
        """Per person, her class of the last release, -1 when absent from it."""
        if not self.releases:
            return np.zeros(0, np.int32)
        member: Codes = self.path[self.trajectory, -1]
        return member


@dataclass(frozen=True)
class Event:
    """One thing that happened to the ledger: created, begun, published, withdrawn, recovered, imported, handed
    over (to the series that goes on from it), carried over (from the series before), loss accepted (what does
    not agree with it, and is known); and those of `life`."""

    number: int
    at: str
    action: str
    release: int | None
    detail: str
    hash: str
    seal: str | None = field(repr=False)


@dataclass(frozen=True)
class Verification:
    """Whether the ledger is what was written. Problems name releases and counts, never values or people."""

    releases: int
    people: int
    head: str
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "holds": self.holds,
            "releases": self.releases,
            "people": self.people,
            "head": self.head,
            "problems": list(self.problems),
        }
