"""From a release in parts to a visible one, in the steps of `publish.commit`: a kill in between loses nothing.

Before the ledger records anything, the files are in a hidden folder and the parts are on their shelf; neither counts
for anything until an entry of the ledger knows their digests.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.drafts import flush
from sequester.errors import DataError, Problem, Unsettled
from sequester.ingest.read import read
from sequester.ledger import Ledger
from sequester.ledger.parts import Shelf
from sequester.ledger.state import HASH, Draft, Entry
from sequester.log import Progress, Stages
from sequester.metrics.sketch import Sketch, sizes_of, sketch
from sequester.policy.model import Policy
from sequester.publish import commit
from sequester.publish.commit import facts_of, settle, sweep, where_of, with_facts
from sequester.publish.files import draft_of, show_folder
from sequester.publish.parts.gather import measurement_of_parts
from sequester.publish.parts.prepare import InParts
from sequester.publish.parts.release import LargeRelease
from sequester.publish.plan import Plan
from sequester.publish.repeated import stale
from sequester.publish.reporting import axes_of, public_page, told_of

_STAGES = ("writing", "recording")
_SHARES = (0.7, 0.3)
# Pictures are drawn from the first rows of the release, which are in an order that was drawn.
_DRAWN = 200_000


def commit_parts(
    ledger: Ledger, plan: Plan, policy: Policy, folder: Path, *, progress: Progress | None = None
) -> LargeRelease:
    """Publish a plan of a release in parts; nothing is published that the ledger does not know."""
    parts = plan.parts
    if parts is None:
        raise ValueError("a plan without its parts cannot be published")
    earlier = ledger.releases()
    if ledger.head != plan.head:
        raise stale(earlier, plan)
    place, shelf = folder / policy.series / plan.folder, Shelf(ledger.place)
    release = LargeRelease(parts, measurement=measurement_of_parts(parts.made), policy=policy, facts=facts_of(plan))
    tell = Stages("publish", _STAGES, progress, shares=_SHARES)
    tell(0)
    commit.step("before writing")
    sweep(place.parent)
    shelf.sweep(earlier)
    draft = draft_of(place)
    with _gone_on_failure(draft, shelf.draft(plan.number)):
        files, drawn = _write(draft, release, parts, earlier)
        commit.step("written")
        tell(1)
        shelf.put(plan.number, parts.errand.recorded, parts.listed)
        commit.step("shelved")
        kept = {"folder": where_of(ledger, place), "published": drawn.to_dict()}
        recorded = with_facts(
            _nobody(plan, parts, policy), plan, policy, kept=kept, files=files, data=parts.files[0].name
        )
        entry = ledger.begin_parts(recorded, parts.listed)
    commit.step("begun")
    show_folder(place)
    commit.step("shown")
    settle(ledger, entry, place)
    commit.step("finished")
    tell.done(release=plan.number)
    release.folder = place
    return release


def _write(draft: Path, release: LargeRelease, parts: InParts, earlier: list[Entry]) -> tuple[dict[str, str], Sketch]:
    """The folder of a release under the name of its draft, whole and on disk; returns digests of its files."""
    draft.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    for file in parts.files:
        shutil.move(parts.errand.written / file.name, draft / file.name)
        # From another disk it was copied.
        flush(draft / file.name)
    drawn = _sketch(draft, release.policy, parts, axes=axes_of(told_of(earlier)))
    digests = {file.name: file.digest for file in parts.files}
    names = [file.name for file in parts.files]
    release.facts = {**release.facts, "digests": digests, "data": names if len(names) > 1 else names[0]}
    texts = {"dictionary.csv": release.dictionary(), "report.html": public_page(release, earlier=earlier, drawn=drawn)}
    digests |= {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    release.facts = {**release.facts, "digests": digests}
    texts["release.json"] = release.to_json() + "\n"
    for name, text in texts.items():
        (draft / name).write_text(text, encoding="utf-8", newline="")
        flush(draft / name)
    flush(draft)
    return {**digests, "release.json": hashlib.sha256(texts["release.json"].encode()).hexdigest()}, drawn


def _sketch(draft: Path, policy: Policy, parts: InParts, *, axes: Any) -> Sketch:
    """What the release looks like: its classes are counted, and pictures are those of its first rows, times as many."""
    escaped = policy.output.formulas == "escape"
    first = read(draft / parts.files[0].name, delimiter=",", escaped=escaped).slice(0, _DRAWN)
    drawn = sketch(first, policy, axes=axes)
    rows, classes = (sum(getattr(part.card, name) for part in parts.made) for name in ("records", "classes"))
    sizes = np.concatenate([part.sizes[0] for part in parts.made])
    counts = np.concatenate([part.sizes[1] for part in parts.made])
    different, place = np.unique(sizes, return_inverse=True)
    times = rows / max(first.num_rows, 1)
    spread = {name: tuple((text, _times(count, times)) for text, count in bars) for name, bars in drawn.spread.items()}
    together = np.bincount(place, weights=counts).astype(np.int64)
    return replace(drawn, rows=rows, classes=classes, sizes=sizes_of(different, together), spread=spread)


def _times(count: float | None, times: float) -> float | None:
    return None if count is None else float(round(count * times))


def _nobody(plan: Plan, parts: InParts, policy: Policy) -> Draft:
    """What the ledger itself records of a release whose people are on the shelf."""
    quasi, sensitive, plain = tuple(policy.quasi_identifiers), tuple(policy.sensitive), policy.insensitive
    none = np.zeros((0, 0), np.int32)
    return Draft(
        name=plan.name,
        head=plan.head,
        quasi=quasi,
        sensitive=sensitive,
        domains=parts.errand.domains,
        lo=np.zeros((len(quasi), 0), np.int32),
        hi=np.zeros((len(quasi), 0), np.int32),
        member=np.zeros(0, np.int32),
        values=np.zeros((len(sensitive), 0), np.int32),
        newcomers=pa.array([], HASH),
        digests=np.zeros((1, 0), np.int64),
        input_digest="",
        output_digest="",
        method=policy.method.name,
        insensitive=plain,
        plain=np.zeros((len(plain), 0), np.int32) if plain else none,
    )


@contextlib.contextmanager
def _gone_on_failure(*places: Path) -> Iterator[None]:
    """Folders that nobody knows of yet, first the release's, are removed when something fails; a full disk is told."""
    message = None
    try:
        yield
    except OSError as error:
        message = f"could not be written, nothing was published: {error.strerror or os.strerror(error.errno or 5)}"
    except Unsettled:
        # It may be recorded all the same: then its parts are the ledger's, until the next command withdraws it.
        shutil.rmtree(places[0], ignore_errors=True)
        raise
    except BaseException:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        raise
    if message is not None:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        raise DataError(Problem(message, file=str(places[0])))
