"""From a plan to a visible release: the ledger first, then the folder, and nothing in between that a kill can lose.

    1  the folder is written whole, under a hidden name, and read back; of a release in parts, the parts are on their
       shelf, too, and neither counts for anything until an entry of the ledger knows their digests
    2  the ledger records the release as begun
    3  the folder gets its name: from here on the world may know
    4  the ledger records that it is published

A process that dies before 2 leaves a hidden folder that nobody knows of; between 2 and 4 the next command finds the
release begun, and finishes it if the folder is there, or withdraws it if it is not. It looks in the tree where it runs:
folders and ledger may have been moved together since.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.drafts import flush, remove
from sequester.errors import DataError, LedgerError, Problem, SequesterError, Unsettled
from sequester.ingest.snapshot import Snapshot
from sequester.ledger import Ledger
from sequester.ledger.evidence import differing
from sequester.ledger.state import HASH, Draft, Entry, WaitingList
from sequester.log import Progress, Stages
from sequester.methods.classes import Classes
from sequester.metrics.sketch import Sketch, sketch
from sequester.outputs import data_file
from sequester.policy.fingerprint import fingerprint, policy_text
from sequester.policy.model import Policy
from sequester.publish.candidate import Candidate
from sequester.publish.census import Census, check_written
from sequester.publish.emit import read_back
from sequester.publish.files import draft_of, show_folder, write_data
from sequester.publish.plan import Plan, stale
from sequester.publish.release import Release, whose
from sequester.publish.reporting import axes_of, public_page, told_of
from sequester.publish.roster import of_everybody
from sequester.regular import digest_of

if TYPE_CHECKING:
    from sequester.publish.parts.release import PartsToPublish

# What of a plan the ledger keeps beside what it has columns for.
_KEPT = (
    "change", "waiting", "personal", "gain", "listed", "records", "classes", "checks", "findings", "loss", "holds",
    "notes", "untried", "everybody_is_new", "people", "pods", "why", "since_last",
    "estimated", "belief",
)  # fmt: skip


def step(name: str) -> None:
    """A point between two durable actions, named for tests that stop the process there."""


def commit(ledger: Ledger, plan: Plan, policy: Policy, folder: Path, *, progress: Progress | None = None) -> Release:
    """Publish a plan into a folder of releases; nothing is published that the ledger does not know."""
    earlier = ledger.releases()
    if ledger.head != plan.head:
        raise stale(earlier, plan)
    place, making = folder / policy.series / plan.folder, _making(ledger, plan, policy)
    stages, release, draft = list(making.shares), making.release, draft_of(place)
    tell = Stages("publish", stages, progress, shares=list(making.shares.values()))

    def begin(stage: str) -> None:
        if stage in stages:
            tell(stages.index(stage))

    begin("describing")
    step("before writing")
    sweep(place.parent)
    drawn = making.sketch(axes_of(told_of(earlier)))
    begin("writing")
    with _gone_on_failure(place, draft, *making.hidden):
        draft.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        digests = making.write(draft)
        files = digests | _write_texts(draft, release, digests, earlier, drawn)
        step("written")
        begin("reading back")
        making.check(draft)
        begin("recording")
        kept = {"folder": where_of(ledger, place), "published": drawn.to_dict()}
        entry = making.record(facts_kept(plan, policy, kept=kept, files=files, data=next(iter(digests))))
    step("begun")
    show_folder(place)
    step("shown")
    settle(ledger, entry, place)
    step("finished")
    tell.done(release=entry.number)
    release.folder = place
    return release


def _making(ledger: Ledger, plan: Plan, policy: Policy) -> _Whole | PartsToPublish:
    if plan.parts is None:
        return _Whole(ledger, plan, policy)
    from sequester.publish.parts.release import PartsToPublish

    return PartsToPublish(ledger, plan, policy, facts_of(plan))


class _Whole:
    """A release of one table that is held in memory: what is written and recorded of it.

    release  with nothing yet about its files
    shares   of the time that each stage takes, by its name
    hidden   what else nobody knows of before the release is recorded
    """

    shares: ClassVar = {"describing": 0.15, "writing": 0.35, "reading back": 0.2, "recording": 0.3}
    hidden: tuple[Path, ...] = ()

    def __init__(self, ledger: Ledger, plan: Plan, policy: Policy) -> None:
        if plan.candidate is None:
            raise ValueError("a plan without its records cannot be published")
        self._ledger, self._plan, self._policy, self._made = ledger, plan, policy, plan.candidate
        self._data, people = data_file(policy.output.format), ~plan.candidate.decoy
        self.release = Release(
            table=self._made.table,
            measurement=self._made.measurement,
            policy=policy,
            person=self._made.records.without(~people).person,
            classes=self._made.of_people,
            facts=facts_of(plan),
            rows=whose(self._made.order, people, None),
        )

    def sketch(self, axes: tuple[str, str] | None) -> Sketch:
        """What it looks like."""
        return sketch(self.release.opened, self._policy, axes=axes)

    def write(self, draft: Path) -> dict[str, str]:
        """Write the data files, flushed; returns their digests."""
        write_data(self.release.as_written(self._data), draft / self._data)
        return {self._data: digest_of(draft / self._data)}

    def check(self, draft: Path) -> None:
        """What is left to be done before anything is recorded."""
        read_back(draft / self._data, self._made.judged)

    def record(self, facts: Mapping[str, Any]) -> Entry:
        """Begin the release in the ledger."""
        drafted = draft_of_release(self._ledger, self._made, self._policy, self._plan)
        return self._ledger.begin(replace(drafted, **facts))


def record(ledger: Ledger, plan: Plan, policy: Policy) -> None:
    """Note a plan in the ledger of a rehearsal, as if it had been published: no folder is made, and nobody sees it."""
    if plan.candidate is None:
        raise ValueError("a plan without its records cannot be recorded")
    data = data_file(policy.output.format)
    facts = facts_kept(plan, policy, kept={}, files={data: ""}, data=data)
    entry = ledger.begin(replace(draft_of_release(ledger, plan.candidate, policy, plan), **facts))
    ledger.finish(entry.number)


@contextlib.contextmanager
def _gone_on_failure(place: Path, draft: Path, *hidden: Path) -> Iterator[None]:
    """What nobody knows of yet, first the draft of a release, is removed when something fails; a full disk is told."""
    message = None
    try:
        yield
    except OSError as error:
        message = f"could not be written, nothing was published: {error.strerror or 'disk error'}"
    except Unsettled:
        # It may be recorded all the same: then its parts are the ledger's, until the next command withdraws it.
        shutil.rmtree(draft, ignore_errors=True)
        raise
    except BaseException:
        for one in (draft, *hidden):
            shutil.rmtree(one, ignore_errors=True)
        raise
    if message is not None:
        for one in (draft, *hidden):
            shutil.rmtree(one, ignore_errors=True)
        raise DataError(Problem(message, file=str(place)))


def settle(ledger: Ledger, entry: Entry, place: Path) -> None:
    """Say in the ledger that a release is visible; if that fails, it is visible all the same."""
    said = None
    try:
        ledger.finish(entry.number)
    except Unsettled as error:
        said = error.why
    except SequesterError as error:
        said = str(error).removesuffix(". Nothing was changed")
    if said is not None:
        message = f"release {entry.number} is recorded and visible; only the ledger does not say so yet ({said})"
        fix = "The next command completes it: do not publish it again"
        raise LedgerError(Problem(f"{message}. {fix}", file=str(place)))


def recover(ledger: Ledger, folder: Path, *, accept_loss: bool = False) -> tuple[str, ...]:
    """Finish or undo what an earlier command began; returns what was done, in words.

    What was begun elsewhere is not undone from here, since it may be visible there; with `accept_loss` it counts as
    visible, wherever its folder is.
    """
    pending = ledger.pending
    if pending is None:
        return ()
    what = f"release {pending.number} ({pending.name}) was begun by a command that did not end"
    place = folder / ledger.series / pending.folder
    if (not place.exists() and _is_release(draft_of(place), pending)) or _is_release(place, pending):
        show_folder(place)
        settle(ledger, pending, place)
        return (f"{what}; it is finished",)
    if place.exists():
        wrong = f"is not what the ledger says of release {pending.number}"
        raise DataError(Problem(f"{wrong}; put the right folder there, or remove this one", file=str(place)))
    begun = str(pending.summary["folder"])
    if not _is_here(ledger, begun, place) or not place.parent.is_dir():
        if accept_loss:
            settle(ledger, pending, place)
            return (f"{what}, and its folder is not here; it counts as published",)
        # Somebody may have seen it there.
        fix = (
            "say where its folder is now with `folder=...`, or bring it back; if it is lost, `accept_loss=True` counts "
        )
        message = f"is where {what}, and is not looked at from here; {fix}it as published"
        raise DataError(Problem(message, file=str(ledger.place.home / begun) if ledger.place.is_file else begun))
    ledger.withdraw(pending.number)
    remove(draft_of(place))
    return (f"{what}, and nobody saw it; it is withdrawn",)


def where_of(ledger: Ledger, place: Path) -> str:
    """How a ledger remembers a folder: from where it is itself, so that all can be moved together.

    One on a server is used from several machines: what is not on this one may be on another.
    """
    if ledger.place.is_file:
        return os.path.relpath(place, ledger.place.home)
    return f"{platform.node()}:{place.resolve()}"


def _is_here(ledger: Ledger, begun: str, place: Path) -> bool:
    """Whether a folder is the one that a ledger remembers."""
    if ledger.place.is_file:
        return (ledger.place.home / begun).resolve() == place.resolve()
    return begun == where_of(ledger, place)


def sweep(folder: Path) -> None:
    """Remove drafts of a series that its ledger does not know: whoever wrote them died, since this process has it."""
    for draft in folder.glob(draft_of(Path("[0-9]*-*")).name):
        remove(draft)


def _is_release(place: Path, entry: Entry) -> bool:
    """Whether a folder holds exactly what the ledger recorded."""
    return place.is_dir() and not differing(place, entry)


def facts_of(plan: Plan) -> dict[str, Any]:
    """What the release folder says beside the measures of the table.

    Nothing that is computed from other rows than the published ones: who waits, withdrew or asked for more, and what
    other tables would have lost, is for the plan and the ledger.
    """
    return {
        "number": plan.number,
        "name": plan.name,
        "date": _today(),
        "recipient": plan.recipient,
        "purpose": plan.purpose,
        "checks": [check.to_dict() for check in plan.checks],
        "untried": [one.to_dict() for one in plan.untried],
        "holds": plan.holds,
        "head": plan.head,
    }


def _today() -> str:
    """The day of a release, UTC; SOURCE_DATE_EPOCH sets it, where the same folder is to be made again later."""
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(said), UTC) if said.isdecimal() and len(said) < 12 else datetime.now(UTC)
    return now.date().isoformat()


def _write_texts(
    draft: Path, release: Release, data: Mapping[str, str], earlier: Sequence[Entry], drawn: Sketch
) -> dict[str, str]:
    """Write what goes with the data files, given their digests; returns the digests of these texts."""
    names = list(data)
    release.facts = {**release.facts, "digests": dict(data), "data": names if len(names) > 1 else names[0]}
    texts = {"dictionary.csv": release.dictionary(), "report.html": public_page(release, earlier=earlier, drawn=drawn)}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    release.facts = {**release.facts, "digests": {**data, **digests}}
    texts["release.json"] = release.to_json() + "\n"
    for name, text in texts.items():
        (draft / name).write_text(text, encoding="utf-8", newline="")
        flush(draft / name)
    flush(draft)
    return {**digests, "release.json": hashlib.sha256(texts["release.json"].encode()).hexdigest()}


def facts_kept(
    plan: Plan, policy: Policy, *, kept: Mapping[str, Any], files: Mapping[str, str], data: str
) -> dict[str, Any]:
    """What is recorded of a release beside its people, by the names of a draft; `kept` is more for its summary."""
    from sequester import __version__

    told = plan.to_dict()
    return {
        "input_digest": plan.input_digest,
        "output_digest": files[data],
        "files": files,
        "seed": plan.seed,
        "recipient": plan.recipient,
        "purpose": plan.purpose,
        "versions": {
            "sequester": __version__,
            "python": platform.python_version(),
            **{library: metadata.version(library) for library in ("numpy", "numba", "pyarrow", "scipy", "duckdb")},
        },
        "summary": {**kept, **{key: told[key] for key in _KEPT}},
        "fingerprint": fingerprint(policy),
        "policy_text": policy_text(policy),
    }


def draft_of_release(ledger: Ledger, candidate: Candidate, policy: Policy, plan: Plan) -> Draft:
    """Who is in which class of a release, with what, and who is new."""
    census, roster, past = candidate.census, candidate.roster, candidate.past
    new, people = roster.rows[census.number[roster.rows] < 0], len(past.first.people)
    known = len(census.last) + len(new)
    draft = drafted(
        census,
        candidate.records,
        past.person,
        candidate.classes,
        new,
        invented=ledger.invent(known, people - known),
        name=plan.name,
        head=plan.head,
        method=policy.method.name,
        retained=roster.retained,
        queue=_queue(plan.number, candidate),
        seats=candidate.seats,
    )
    check_written(candidate.table.num_rows, past.person, draft.member)
    return draft


def drafted(
    census: Census,
    records: Snapshot,
    person: NDArray[np.int64],
    classes: Classes,
    new: NDArray[np.int64],
    *,
    invented: pa.Array | None = None,
    **facts: Any,
) -> Draft:
    """What a ledger keeps of records in classes, whoever they are of, with more facts about the release.

    new       the records of the table of people who were never published; they are numbered in this order
    invented  hashes of decoys who are new, and are numbered after them
    """
    invented = pa.array([], HASH) if invented is None else invented
    member = np.full(len(census.last) + len(new) + len(invented), -1, np.int32)
    member[person] = classes.member
    values, plain = of_everybody(census, records, person, len(member))
    return Draft(
        quasi=records.quasi_names,
        sensitive=records.sensitive_names,
        insensitive=records.plain_names,
        domains=records.domains,
        lo=classes.lo,
        hi=classes.hi,
        member=member,
        values=values,
        plain=plain,
        newcomers=pa.concat_arrays([census.people.hashes.take(pa.array(new)).cast(HASH), invented]),
        digests=np.append(census.people.digests[new], np.zeros(len(invented), np.int64))[None],
        input_digest="",
        output_digest="",
        **facts,
    )


def _queue(number: int, candidate: Candidate) -> WaitingList:
    """Everybody who waits after this release: to be published, or no longer to be."""
    census, held = candidate.census, candidate.roster.held
    hashes, patience = [census.people.hashes.take(held).cast(HASH)], [census.patience[held]]
    if census.withdrawn is not None:
        stay = np.flatnonzero(np.isin(census.withdrawn.person, candidate.roster.retained))
        hashes.append(census.withdrawn.hashes.take(stay).cast(HASH))
        patience.append(census.withdrawn.patience[stay])
    return WaitingList(pa.concat_arrays(hashes), (number - np.concatenate(patience)).astype(np.int32))
