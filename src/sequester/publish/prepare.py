"""From a table and a ledger to a plan: who is in it, in which classes, what an adversary can do, what it costs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import Audited
from sequester.causes import Cause, Relaxation
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, GuaranteeError
from sequester.ingest.encode import encode, encode_list, encode_next
from sequester.ingest.named import whole_name
from sequester.ingest.snapshot import Snapshot
from sequester.ledger import Ledger
from sequester.ledger.state import Entry, State
from sequester.log import Stages
from sequester.policy.fingerprint import fingerprint
from sequester.policy.model import Policy
from sequester.publish.brief import Brief, Progress
from sequester.publish.candidate import Candidate, make_candidate
from sequester.publish.census import take_census
from sequester.publish.listed import check_registered
from sequester.publish.meaning import check_boxes
from sequester.publish.parts.choose import is_for_parts
from sequester.publish.personal import gain_of, personal_of
from sequester.publish.plan import Plan
from sequester.publish.price import Price, checks_of, pods_of
from sequester.publish.relax import relax
from sequester.publish.repeated import name_taken, note_repeated, repeats
from sequester.publish.since_last import since_last

_WRITTEN = {"bounds": "two columns", "interval": "intervals", "midpoint": "their middle"}
_STAGES = ("reading", "matching people", "anonymizing", "comparing")
# Of the time for the second release of a million people; classes take most of the third, and the audit the rest.
_SHARES = (0.16, 0.2, 0.49, 0.15)
_MADE = 0.8


@dataclass(frozen=True)
class Request:
    """What is asked for.

    source              path, frame or relation: the private table now
    recipient, purpose  who the release is for
    everybody_is_new    nobody in the table need be recognised
    show_values         errors may carry offending values
    priced              whether the plan tells what the release costs; what is published does not depend on it
    beside_others       whether that is compared with others that might be made of the same table
    why                 whether it also prices what keys of the policy would buy if they asked for less
    whole               it is made whole, however large it is
    """

    source: Any
    seed: int
    recipient: str | None = None
    purpose: str | None = None
    everybody_is_new: bool = False
    show_values: bool = False
    name: str = ""
    priced: bool = True
    beside_others: bool = True
    why: bool = False
    whole: bool = False


def prepare(ledger: Ledger, policy: Policy, request: Request, *, progress: Progress | None = None) -> Plan:
    """The next release as a plan, with everything needed to publish it."""
    if not request.whole and is_for_parts(ledger, policy, request.source):
        return _in_parts(ledger, policy, request, progress=progress)
    tell = Stages("publish", _STAGES, progress, shares=_SHARES)
    tell(0)
    state, entries = ledger.load(), ledger.releases()
    snapshot, registered, listed = _read(request, policy, state, entries, progress=tell.part(0))
    tell(1)
    census, notes = take_census(ledger, state, snapshot, policy, everybody_is_new=request.everybody_is_new)
    digest = census.people.digest()
    repeated = repeats(entries, digest)
    if request.name in {entry.name for entry in entries}:
        raise DataError(name_taken(repeated))
    tell(2)
    number, source = len(state.releases) + 1, request.source
    brief = replace(
        Brief.of(policy, census.snapshot, [request.seed, number]),
        name=request.name,
        registered=registered,
        audited=_audited(entries, policy),
        progress=tell.part(2, 0, _MADE),
        judging=tell.part(2, _MADE, 1),
    )

    def priced(causes: Sequence[Cause]) -> tuple[Relaxation, ...]:
        def remake(other: Policy) -> Brief:
            changed = Brief.of(other, census.snapshot, brief.draws)
            return replace(changed, name=brief.name, registered=registered, audited=_audited(entries, other))

        told = replace(brief, progress=tell.part(3))
        return relax(census, state, told, causes, remake) if request.why else ()

    try:
        candidate = make_candidate(census, state, brief)
    except GuaranteeError as error:
        error.relaxations = priced(error.causes)
        raise
    tell(3)
    price = _price(candidate, brief, request)
    tell.done(release=number, records=len(candidate.order), classes=len(candidate.classes))
    return Plan(
        series=policy.series,
        number=number,
        name=request.name,
        head=state.head,
        fingerprint=fingerprint(policy),
        source=whole_name(source) if isinstance(source, str | os.PathLike) else None,
        input_digest=digest,
        content=candidate.content(),
        method=policy.method.model_dump(mode="json"),
        seed=request.seed,
        recipient=request.recipient,
        purpose=request.purpose,
        change=census.change(changed=_moved(candidate)),
        personal=personal_of(census, candidate.roster),
        gain=gain_of(candidate.records.without(candidate.decoy), candidate.of_people),
        listed=listed,
        waiting=candidate.roster.waiting(census),
        records=len(candidate.order),
        people=int(np.count_nonzero(~candidate.decoy[candidate.order])),
        pods=pods_of(candidate, price),
        classes=len(candidate.classes),
        checks=checks_of(candidate.audit, policy),
        findings=len(candidate.audit.findings),
        loss=price.loss,
        levers=price.levers,
        notes=(*note_repeated(repeated), *_note_written(entries, policy), *notes, *candidate.notes, *price.notes),
        untried=candidate.audit.untried,
        everybody_is_new=request.everybody_is_new,
        repeats=None if repeated is None else repeated.number,
        why=price.why,
        relaxations=priced(price.why),
        estimated=price.estimated,
        belief=price.belief,
        since_last=since_last(candidate),
        candidate=candidate,
    )


def _in_parts(ledger: Ledger, policy: Policy, request: Request, *, progress: Progress | None) -> Plan:
    """The same of a large table: made, judged and written in parts."""
    from sequester.publish.parts.prepare import Work, at_work, told_by_parts

    entries = ledger.releases()
    work = Work(request.source, request.name, request.seed, request.show_values, _audited(entries, policy))
    if request.name in {entry.name for entry in entries}:
        raise DataError(name_taken(None))
    with at_work(ledger, policy, work, progress=progress) as shop:
        parts = shop.make(shop.open())
        told = told_by_parts(parts, policy, everybody_is_new=request.everybody_is_new)
    repeated = repeats(entries, told["input_digest"])
    unasked = ("what keys of the policy would buy is not told of tables that are made in parts",) if request.why else ()
    told["notes"] = (*note_repeated(repeated), *_note_written(entries, policy), *told["notes"], *unasked)
    source = request.source
    return Plan(
        series=policy.series,
        number=len(entries) + 1,
        name=request.name,
        head=ledger.head,
        fingerprint=fingerprint(policy),
        source=whole_name(source) if isinstance(source, str | os.PathLike) else None,
        method=policy.method.model_dump(mode="json"),
        seed=request.seed,
        recipient=request.recipient,
        purpose=request.purpose,
        everybody_is_new=request.everybody_is_new,
        repeats=None if repeated is None else repeated.number,
        **told,
    )


def _read(
    request: Request, policy: Policy, state: State, entries: Sequence[Entry], *, progress: Progress | None
) -> tuple[Snapshot, NDArray[np.int32] | None, str | None]:
    """The table, the registration list as codes, and a digest of the list."""
    tell = None if progress is None else lambda _, number, columns: progress(_STAGES[0], number, columns)
    if state.releases:
        show = request.show_values
        snapshot = encode_next(request.source, policy, state.domains, show_values=show, progress=tell)
        check_boxes(state, policy, snapshot.domains)
    else:
        snapshot = encode(request.source, policy, show_values=request.show_values, progress=tell)
    if policy.registration_list is None:
        return snapshot, None, None
    domains, registered = encode_list(
        policy.registration_list, policy, snapshot.domains, show_values=request.show_values
    )
    snapshot = snapshot.within(domains)
    return snapshot, registered, check_registered(snapshot, registered, policy, before=entries)


def _price(candidate: Candidate, brief: Brief, request: Request) -> Price:
    if not request.priced:
        return Price()
    if request.beside_others or request.why:
        return Price.of(candidate, brief, thorough=request.why)
    return Price.alone(candidate, brief)


def _audited(entries: Sequence[Entry], policy: Policy) -> Audited | None:
    """What was found when the last release was published, under the same policy: of all releases until then."""
    if not entries or entries[-1].fingerprint != fingerprint(policy) or not entries[-1].summary.get("holds"):
        return None
    reached = {check["attack"]: check["reached"] for check in entries[-1].summary["checks"]}
    return Audited(len(entries), {attack: value for attack, value in reached.items() if value is not None})


def _note_written(entries: Sequence[Entry], policy: Policy) -> tuple[str, ...]:
    """What a plan notes where numbers are not written as in the last release: analysts look for other columns."""
    before = None if not entries else json.loads(entries[-1].policy_text).get("output", {}).get("numbers")
    numeric = any(kind_of(attribute).numeric for attribute in policy.quasi_identifiers.values())
    if not numeric or before not in _WRITTEN or before == policy.output.numbers:
        return ()
    return (
        f"numbers are written as {_WRITTEN[policy.output.numbers]} now, and as {_WRITTEN[before]} in the last release; "
        f"`output: {{numbers: {before}}}` keeps them as they were",
    )


def _moved(candidate: Candidate) -> int:
    """People whose attributes are no longer inside the box they were last published with."""
    census, history = candidate.census, candidate.past.first
    if not len(history):
        return 0
    box, known = history.releases[-1], np.flatnonzero(census.number >= 0)
    last = census.last[census.number[known]]
    known, last = known[last >= 0], last[last >= 0]
    codes = census.snapshot.quasi[:, known]
    return int(np.count_nonzero(((codes < box.lo[:, last]) | (codes > box.hi[:, last])).any(axis=0)))
