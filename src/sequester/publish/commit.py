"""From a plan to a visible release: the ledger first, then the folder, and nothing in between that a kill can lose.

    1  the folder is written whole, under a hidden name, and read back
    2  the ledger records the release as begun
    3  the folder gets its name: from here on the world may know
    4  the ledger records that it is published

A process that dies before 2 leaves a hidden folder that nobody knows of; between 2 and 4 the next command finds the
release begun, and finishes it if the folder is there, or withdraws it if it is not.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.errors import DataError, Problem, StalePlan
from sequester.ledger import Ledger
from sequester.ledger.state import HASH, Draft, Entry, Queue
from sequester.policy.fingerprint import fingerprint, policy_text
from sequester.policy.model import Policy
from sequester.publish.candidate import Candidate
from sequester.publish.exact import read_back
from sequester.publish.files import digest_of, draft_folder, draft_of, show_folder
from sequester.publish.plan import Plan
from sequester.publish.release import Release
from sequester.publish.roster import Crowd

# What of a plan the ledger keeps beside what it has columns for.
_KEPT = (
    "change", "waiting", "personal", "gain", "listed", "records", "classes", "checks", "findings", "loss", "holds",
    "notes", "untried",
)  # fmt: skip


def step(name: str) -> None:
    """A point between two durable actions, named for tests that stop the process there."""


def commit(ledger: Ledger, plan: Plan, policy: Policy, folder: Path) -> Release:
    """Publish a plan into a folder of releases; nothing is published that the ledger does not know."""
    candidate = plan.candidate
    if candidate is None:
        raise ValueError("a plan without its records cannot be published")
    if ledger.head != plan.head:
        raise StalePlan("the ledger has moved on since this release was planned; plan it again")
    place = folder / plan.folder
    if place.exists():
        raise DataError(Problem("is there, but the ledger does not know it; move it away", file=str(place)))
    release = Release(
        table=candidate.table,
        measurement=candidate.measurement,
        policy=policy,
        person=candidate.records.person,
        classes=candidate.classes,
        facts=_facts(plan),
    )
    data = f"data.{policy.output.format}"
    step("before writing")
    _sweep(folder)
    draft = draft_folder(place, release.table, data, lambda digest: _texts(release, data, digest))
    step("written")
    try:
        read_back(draft / data, candidate.judged)
        entry = ledger.begin(_draft(plan, candidate, policy, place=place, output_digest=digest_of(draft / data)))
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    step("begun")
    show_folder(place)
    step("shown")
    ledger.finish(entry.number)
    step("finished")
    release.folder = place
    return release


def recover(ledger: Ledger, folder: Path) -> tuple[str, ...]:
    """Finish or undo what an earlier command began; returns what was done, in words.

    Looks where that command was to put the release, and in this folder, should all have been moved together.
    """
    pending = ledger.pending
    if pending is None:
        return ()
    recorded = Path(str(pending.summary["folder"]))
    what = f"release {pending.number} ({pending.name}) was begun by a command that did not end"
    for place in (recorded, folder / pending.folder):
        if not place.exists() and _is_release(draft_of(place), pending):
            show_folder(place)
        if _is_release(place, pending):
            ledger.finish(pending.number)
            return (f"{what}; it is finished",)
        if place.exists():
            raise DataError(
                Problem(
                    f"is not what the ledger says of release {pending.number}; put the right folder there, or remove "
                    "this one",
                    file=str(place),
                )
            )
    if not recorded.parent.is_dir():
        raise DataError(
            Problem(
                f"is where {what}, and cannot be seen from here; say where it is now with `--releases`, or bring it "
                "back",
                file=str(recorded),
            )
        )
    ledger.withdraw(pending.number)
    shutil.rmtree(draft_of(recorded), ignore_errors=True)
    return (f"{what}, and nobody saw it; it is withdrawn",)


def _sweep(folder: Path) -> None:
    """Remove drafts that no ledger knows of: whoever wrote them died, since this process has the ledger."""
    for draft in folder.glob(draft_of(Path("[0-9]*-*")).name):
        shutil.rmtree(draft, ignore_errors=True)


def _is_release(place: Path, entry: Entry) -> bool:
    """Whether a folder holds exactly the data that the ledger recorded."""
    found = [place / name for name in ("data.csv", "data.parquet") if (place / name).is_file()]
    return len(found) == 1 and digest_of(found[0]) == entry.output_digest


def _facts(plan: Plan) -> dict[str, Any]:
    """What the release folder says beside the measures of the table.

    Nothing that is computed from other rows than the published ones: who waits, withdrew or asked for more, and what
    other tables would have lost, is for the plan and the ledger.
    """
    return {
        "number": plan.number,
        "name": plan.name,
        "recipient": plan.recipient,
        "purpose": plan.purpose,
        "checks": [check.to_dict() for check in plan.checks],
        "untried": [one.to_dict() for one in plan.untried],
        "holds": plan.holds,
    }


def _texts(release: Release, data: str, digest: str) -> Mapping[str, str]:
    from sequester.report.page import release_page

    release.facts = {**release.facts, "digests": {"data": digest}, "data": data}
    return {"release.json": release.to_json() + "\n", "report.html": release_page(release.to_dict())}


def _draft(plan: Plan, candidate: Candidate, policy: Policy, *, place: Path, output_digest: str) -> Draft:
    """What the ledger keeps of a release."""
    from sequester import __version__

    crowd, roster, past, records = candidate.crowd, candidate.roster, candidate.past, candidate.records
    assert crowd is not None
    assert candidate.hashes is not None
    assert candidate.digests is not None
    known, people = len(crowd.last), len(past.first.people)
    member = np.full(people, -1, np.int32)
    member[past.person] = candidate.classes.member
    values = np.zeros((len(records.sensitive), people), np.int32)
    values[:, :known] = crowd.values
    values[:, past.person] = records.sensitive
    plain = np.zeros((len(records.plain), people), np.int32)
    plain[:, :known] = crowd.plain
    plain[:, past.person] = records.plain
    new = roster.rows[crowd.number[roster.rows] < 0]
    told = plan.to_dict()
    return Draft(
        name=plan.name,
        head=plan.head,
        quasi=records.quasi_names,
        sensitive=records.sensitive_names,
        domains=records.domains,
        lo=candidate.classes.lo,
        hi=candidate.classes.hi,
        member=member,
        values=values,
        insensitive=records.plain_names,
        plain=plain,
        newcomers=candidate.hashes.take(new).cast(HASH),
        digests=candidate.digests[None, new],
        input_digest=plan.input_digest,
        output_digest=output_digest,
        method=policy.method.name,
        retained=roster.retained,
        queue=_queue(plan, candidate, crowd),
        seed=plan.seed,
        recipient=plan.recipient,
        purpose=plan.purpose,
        versions={
            "sequester": __version__,
            "python": platform.python_version(),
            **{library: metadata.version(library) for library in ("numpy", "numba", "pyarrow", "scipy", "duckdb")},
        },
        summary={"folder": str(place.resolve()), **{key: told[key] for key in _KEPT}},
        fingerprint=fingerprint(policy),
        policy_text=policy_text(policy),
    )


def _queue(plan: Plan, candidate: Candidate, crowd: Crowd) -> Queue:
    """Everybody who waits after this release: to be published, or no longer to be."""
    assert candidate.hashes is not None
    held = candidate.roster.held
    hashes, patience = [candidate.hashes.take(held).cast(HASH)], [crowd.patience[held]]
    if crowd.withdrawn is not None:
        stay = np.flatnonzero(np.isin(crowd.withdrawn.person, candidate.roster.retained))
        hashes.append(crowd.withdrawn.hashes.take(stay).cast(HASH))
        patience.append(crowd.withdrawn.patience[stay])
    return Queue(pa.concat_arrays(hashes), (plan.number - np.concatenate(patience)).astype(np.int32))
