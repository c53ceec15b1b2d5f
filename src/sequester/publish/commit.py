"""From a plan to a visible release: the ledger first, then the folder, and nothing in between that a kill can lose.

    1  the folder is written whole, under a hidden name, and read back
    2  the ledger records the release as begun
    3  the folder gets its name: from here on the world may know
    4  the ledger records that it is published

A process that dies before 2 leaves a hidden folder that nobody knows of; between 2 and 4 the next command finds the
release begun, and finishes it if the folder is there, or withdraws it if it is not. It looks in the tree where it runs:
folders and ledger may have been moved together since.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.drafts import remove
from sequester.errors import DataError, LedgerError, Problem, SequesterError, Unsettled
from sequester.ledger import Ledger
from sequester.ledger.evidence import differing
from sequester.ledger.state import HASH, Draft, Entry, WaitingList
from sequester.log import Progress, Stages
from sequester.metrics.sketch import sketch
from sequester.outputs import data_file
from sequester.policy.fingerprint import fingerprint, policy_text
from sequester.policy.model import Policy
from sequester.publish.candidate import Candidate
from sequester.publish.distinct import check_written
from sequester.publish.exact import read_back
from sequester.publish.files import draft_folder, draft_of, show_folder
from sequester.publish.plan import Plan
from sequester.publish.release import Release, whose
from sequester.publish.repeated import stale
from sequester.publish.reporting import axes_of, public_page, told_of
from sequester.regular import digest_of

# What of a plan the ledger keeps beside what it has columns for.
_KEPT = (
    "change", "waiting", "personal", "gain", "listed", "records", "classes", "checks", "findings", "loss", "holds",
    "notes", "untried", "everybody_is_new", "people", "pods", "why", "since_last",
    "estimated", "belief",
)  # fmt: skip

_STAGES = ("describing", "writing", "reading back", "recording")
# Of the time for a release of a million people.
_SHARES = (0.15, 0.35, 0.2, 0.3)


def step(name: str) -> None:
    """A point between two durable actions, named for tests that stop the process there."""


def commit(ledger: Ledger, plan: Plan, policy: Policy, folder: Path, *, progress: Progress | None = None) -> Release:
    """Publish a plan into a folder of releases; nothing is published that the ledger does not know."""
    tell = Stages("publish", _STAGES, progress, shares=_SHARES)
    tell(0)
    candidate = plan.candidate
    if candidate is None:
        raise ValueError("a plan without its records cannot be published")
    if ledger.head != plan.head:
        raise stale(ledger.releases(), plan)
    place = folder / policy.series / plan.folder
    people = ~candidate.decoy
    release = Release(
        table=candidate.table,
        measurement=candidate.measurement,
        policy=policy,
        person=candidate.records.without(~people).person,
        classes=candidate.of_people,
        facts=facts_of(plan),
        rows=whose(candidate.order, people, None),
    )
    data = data_file(policy.output.format)
    step("before writing")
    sweep(place.parent)
    earlier = ledger.releases()
    drawn = sketch(release.opened, policy, axes=axes_of(told_of(earlier)))

    def texts(digest: str) -> Mapping[str, str]:
        return _texts(release, data, digest, lambda: public_page(release, earlier=earlier, drawn=drawn))

    tell(1)
    draft = draft_folder(place, release.as_written(data), data, texts)
    step("written")
    try:
        tell(2)
        read_back(draft / data, candidate.judged)
        tell(3)
        files = {file.name: digest_of(file) for file in draft.iterdir()}
        where = where_of(ledger, place)
        kept = {"folder": where, "published": drawn.to_dict()}
        entry = ledger.begin(_draft(ledger, plan, candidate, policy, kept=kept, files=files, data=data))
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    step("begun")
    show_folder(place)
    step("shown")
    settle(ledger, entry, place)
    step("finished")
    tell.done(release=entry.number)
    release.folder = place
    return release


def record(ledger: Ledger, plan: Plan, policy: Policy) -> None:
    """Note a plan in the ledger of a rehearsal, as if it had been published: no folder is made, and nobody sees it."""
    if plan.candidate is None:
        raise ValueError("a plan without its records cannot be recorded")
    data = data_file(policy.output.format)
    entry = ledger.begin(_draft(ledger, plan, plan.candidate, policy, kept={}, files={data: ""}, data=data))
    ledger.finish(entry.number)


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


def _texts(release: Release, data: str, digest: str, page: Callable[[], str]) -> Mapping[str, str]:
    release.facts = {**release.facts, "digests": {data: digest}, "data": data}
    texts = {"dictionary.csv": release.dictionary(), "report.html": page()}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    release.facts = {**release.facts, "digests": {data: digest, **digests}}
    return {**texts, "release.json": release.to_json() + "\n"}


def _draft(
    ledger: Ledger,
    plan: Plan,
    candidate: Candidate,
    policy: Policy,
    *,
    kept: Mapping[str, Any],
    files: Mapping[str, str],
    data: str,
) -> Draft:
    """What the ledger keeps of a release; `kept` is what its summary has beside what the plan says."""
    recorded = draft_of_release(ledger, candidate, policy, name=plan.name, head=plan.head, number=plan.number)
    return with_facts(recorded, plan, policy, kept=kept, files=files, data=data)


def with_facts(
    draft: Draft, plan: Plan, policy: Policy, *, kept: Mapping[str, Any], files: Mapping[str, str], data: str
) -> Draft:
    """What is recorded of a release with what its plan says about it."""
    from sequester import __version__

    told = plan.to_dict()
    return replace(
        draft,
        input_digest=plan.input_digest,
        output_digest=files[data],
        files=files,
        seed=plan.seed,
        recipient=plan.recipient,
        purpose=plan.purpose,
        versions={
            "sequester": __version__,
            "python": platform.python_version(),
            **{library: metadata.version(library) for library in ("numpy", "numba", "pyarrow", "scipy", "duckdb")},
        },
        summary={**kept, **{key: told[key] for key in _KEPT}},
        fingerprint=fingerprint(policy),
        policy_text=policy_text(policy),
    )


def draft_of_release(
    ledger: Ledger, candidate: Candidate, policy: Policy, *, name: str, head: str, number: int
) -> Draft:
    """Who is in which class of a release, with what, and who is new."""
    census, roster, past, records = candidate.census, candidate.roster, candidate.past, candidate.records
    known, people = len(census.last), len(past.first.people)
    member = np.full(people, -1, np.int32)
    member[past.person] = candidate.classes.member
    check_written(candidate.table.num_rows, past.person, member)
    values = np.zeros((len(records.sensitive), people), np.int32)
    values[:, :known] = census.values
    values[:, past.person] = records.sensitive
    plain = np.zeros((len(records.plain), people), np.int32)
    plain[:, :known] = census.plain
    plain[:, past.person] = records.plain
    new = roster.rows[census.number[roster.rows] < 0]
    invented = ledger.invent(known + len(new), people - known - len(new))
    return Draft(
        name=name,
        head=head,
        quasi=records.quasi_names,
        sensitive=records.sensitive_names,
        domains=records.domains,
        lo=candidate.classes.lo,
        hi=candidate.classes.hi,
        member=member,
        values=values,
        insensitive=records.plain_names,
        plain=plain,
        newcomers=pa.concat_arrays([census.people.hashes.take(new).cast(HASH), invented]),
        digests=np.append(census.people.digests[new], np.zeros(len(invented), np.int64))[None],
        input_digest="",
        output_digest="",
        method=policy.method.name,
        retained=roster.retained,
        queue=_queue(number, candidate),
        seats=candidate.seats,
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
