"""From a table and a ledger to a plan: who is in it, in which classes, what an adversary can do, what it costs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.attacks.attack import Audited
from sequester.causes import Cause, Relaxation
from sequester.domain.kinds import kind_of
from sequester.domain.nodes import generality
from sequester.errors import DataError, GuaranteeError, PolicyError, Problem
from sequester.ingest.encode import encode, encode_list, encode_next
from sequester.ingest.named import whole_name
from sequester.ingest.snapshot import Snapshot
from sequester.ingest.stream import rows_of
from sequester.ledger import Ledger
from sequester.ledger.parts import is_parted
from sequester.ledger.state import Entry, State
from sequester.log import Progress, Stages, tell
from sequester.methods.classes import Classes
from sequester.methods.registry import method_of
from sequester.metrics.gain import mean, quasi_gain, quasi_loss
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.fingerprint import fingerprint
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate, make_candidate
from sequester.publish.census import Census, take_census
from sequester.publish.plan import Personal, Plan, name_taken, note_repeated, repeats
from sequester.publish.price import Price, checks_of, pods_of
from sequester.publish.recall import check_boxes
from sequester.publish.relax import relax
from sequester.publish.roster import Roster
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
    entries, source = ledger.releases(), request.source
    plan = Plan(
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
    )
    audited = _audited(entries, policy)
    if not request.whole and is_for_parts(ledger, policy, source):
        from sequester.publish.parts.prepare import make_in_parts

        _refuse_taken(entries, request.name, None)
        made = make_in_parts(ledger, policy, request, plan, audited=audited, progress=progress)
        if request.why:
            unasked = "what keys of the policy would buy is not told of tables that are made in parts"
            made = replace(made, notes=(*made.notes, unasked))
    else:
        made = _made_whole(ledger, policy, request, plan, audited=audited, progress=progress)
    repeated = repeats(entries, made.input_digest)
    return replace(
        made,
        notes=(*note_repeated(repeated), *_note_written(entries, policy), *made.notes),
        repeats=None if repeated is None else repeated.number,
    )


def _made_whole(
    ledger: Ledger,
    policy: Policy,
    request: Request,
    plan: Plan,
    *,
    audited: Audited | None,
    progress: Progress | None,
) -> Plan:
    """The plan of a table that is made as a whole."""
    tell = Stages("publish", _STAGES, progress, shares=_SHARES)
    tell(0)
    state, entries = ledger.load(), ledger.releases()
    snapshot, registered, listed = _read(request, policy, state, entries, progress=tell.part(0))
    tell(1)
    census, notes = take_census(ledger, state, snapshot, policy, everybody_is_new=request.everybody_is_new)
    digest = census.people.digest()
    _refuse_taken(entries, request.name, repeats(entries, digest))
    tell(2)
    brief = replace(
        Brief.of(policy, census.snapshot, [request.seed, plan.number]),
        name=request.name,
        registered=registered,
        audited=audited,
        progress=tell.part(2, 0, _MADE),
        judging=tell.part(2, _MADE, 1),
    )

    def relaxed(causes: Sequence[Cause]) -> tuple[Relaxation, ...]:
        def remake(other: Policy) -> Brief:
            changed = Brief.of(other, census.snapshot, brief.draws)
            return replace(changed, name=brief.name, registered=registered, audited=_audited(entries, other))

        told = replace(brief, progress=tell.part(3))
        return relax(census, state, told, causes, remake) if request.why else ()

    try:
        candidate = make_candidate(census, state, brief)
    except GuaranteeError as error:
        error.relaxations = relaxed(error.causes)
        raise
    tell(3)
    price = Price()
    if request.priced:
        others = request.beside_others or request.why
        price = Price.of(candidate, brief, thorough=request.why) if others else Price.alone(candidate, brief)
    tell.done(release=plan.number, records=len(candidate.order), classes=len(candidate.classes))
    return replace(
        described(plan, candidate, policy, price, digest=digest, notes=notes),
        listed=listed,
        relaxations=relaxed(price.why),
        since_last=since_last(candidate),
        candidate=candidate,
    )


def described(
    plan: Plan, candidate: Candidate, policy: Policy, price: Price, *, digest: str, notes: Sequence[str]
) -> Plan:
    """The plan with what there is to tell of a release, or of a part of it, that is made."""
    census, audit = candidate.census, candidate.audit
    return replace(
        plan,
        input_digest=digest,
        content=candidate.content(),
        change=census.change(changed=_moved(candidate)),
        personal=_personal(census, candidate.roster),
        gain=_gain(candidate.records.without(candidate.decoy), candidate.of_people),
        waiting=candidate.roster.waiting(census),
        records=len(candidate.order),
        people=int(np.count_nonzero(~candidate.decoy[candidate.order])),
        pods=pods_of(candidate, price),
        classes=len(candidate.classes),
        checks=checks_of(audit, policy),
        findings=len(audit.findings),
        loss=price.loss,
        levers=price.levers,
        notes=(*notes, *candidate.notes, *price.notes),
        untried=audit.untried,
        why=price.why,
        estimated=price.estimated,
        belief=price.belief,
    )


def _refuse_taken(entries: Sequence[Entry], name: str, repeated: Entry | None) -> None:
    """Stop where a name is another release's; `repeated` is the release of the same table."""
    if name in {entry.name for entry in entries}:
        raise DataError(name_taken(repeated))


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


# A first table of so many parts or fewer is made whole: then parts save nothing.
FEWEST_PARTS = 4


def is_for_parts(ledger: Ledger, policy: Policy, source: Any) -> bool:
    """Whether the next table of a series is made in parts: as those before, or since a first one is large."""
    entries = ledger.releases()
    why_not = whole_because(policy)
    if entries:
        if is_parted(entries) and why_not is not None:
            raise PolicyError(Problem(f"the series is made in parts, which cannot be where {why_not}", key="method"))
        return is_parted(entries)
    if policy.engine.name == "spark" or type(source).__module__.startswith("pyspark."):
        if why_not is not None:
            raise PolicyError(Problem(f"spark makes tables in parts, which cannot be where {why_not}", key="engine"))
        return True
    most = FEWEST_PARTS * policy.engine.part
    if not ledger.place.is_file or ledger.encrypted or rows_of(source, more_than=most) <= most:
        return False
    if why_not is not None:
        tell("publish", "is made whole", because=why_not)
    return why_not is None


def whole_because(policy: Policy) -> str | None:
    """Why tables of a policy cannot be made in parts; None where they can."""
    protect, quasi, sensitive = policy.protect, policy.quasi_identifiers.values(), policy.sensitive.values()
    read: list[QuasiIdentifier | Sensitive] = [*quasi, *sensitive]
    reasons = {
        "the method recodes the whole table alike": not method_of(policy.method).in_parts,
        "consent is asked": policy.consent is not None,
        "there is a registration list": policy.registration_list is not None,
        "closeness compares classes with the whole table": protect.closeness is not None,
        "k_map compares with a population": protect.k_map is not None,
        "rows are left out by `missing: suppress`": any(a.missing == "suppress" for a in read),
        "sensitive values are graded": any(a.is_graded for a in sensitive),
        "every quasi-identifier may change": all(a.changes for a in quasi),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def check_registered(
    snapshot: Snapshot, registered: NDArray[np.int32], policy: Policy, *, before: Sequence[Entry]
) -> str:
    """Whoever is in the table must be in the registration list, as far as attributes that do not change can tell.

    The list must be the one of all releases `before`: people who were not in it then diluted nothing. Returns a digest.
    """
    links = [place for place, attribute in enumerate(policy.quasi_identifiers.values()) if not attribute.changes]
    group, first = row_groups(np.hstack([snapshot.quasi[links], registered[links]]))
    here, listed = group[: len(snapshot)], group[len(snapshot) :]
    lacking = np.bincount(here, minlength=len(first)) - np.bincount(listed, minlength=len(first))
    people = int(np.maximum(lacking, 0).sum())
    digest = _list_digest(snapshot, registered, links)
    problem = ""
    if people:
        who = "1 person is" if people == 1 else f"{people:,} people are"
        problem = f"{who} not in it; the list must have everybody who may be in a release, or it hides nobody"
    elif any(entry.summary.get("listed") not in (None, digest) for entry in before):
        problem = (
            "is not the list of the earlier releases, whose promise rests on it: people who were not in it then hid "
            "nobody; put it back"
        )
    if problem:
        raise DataError(Problem(problem, key="protect.lifetime.registered"))
    return digest


def _list_digest(snapshot: Snapshot, registered: NDArray[np.int32], links: Sequence[int]) -> str:
    """Of the list as people by what links them: whatever its order, what else is in it, and which leaves came since."""
    digest = hashlib.sha256()
    codes = np.empty((len(links), registered.shape[1]), np.int64)
    for row, place in zip(codes, links, strict=True):
        # Domains only grow, and keep their order: among its own values a list has the same codes for ever.
        used, row[:] = np.unique(registered[place], return_inverse=True)
        names = snapshot.quasi_domains[place].names[0]
        digest.update("\0".join(names[code] for code in used.tolist()).encode())
    group, first = row_groups(codes)
    digest.update(codes[:, first].tobytes())
    digest.update(np.bincount(group).astype(np.int64).tobytes())
    return digest.hexdigest()


def _personal(census: Census, roster: Roster) -> Personal:
    """Who does not agree, who waits to leave, and whose values are nodes."""
    snapshot, withdrawn = census.snapshot, census.withdrawn
    people = np.zeros(0, np.int64) if withdrawn is None else withdrawn.person
    rows = roster.rows
    graded = np.zeros(len(rows), np.bool_)
    if snapshot.exact is not None:
        graded = (snapshot.sensitive[:, rows] != snapshot.exact[:, rows]).any(axis=0)
    return Personal(
        withheld=snapshot.withheld,
        withdrawn=len(people),
        waiting=int(np.count_nonzero(np.isin(people, roster.retained))),
        graded=int(np.count_nonzero(graded)),
        raised=snapshot.raised,
        late=census.late,
    )


def _gain(records: Snapshot, classes: Classes) -> dict[str, float]:
    """Privacy gain and information loss of a release, of quasi-identifiers and of sensitive values."""
    kept = classes.member[classes.member >= 0]
    scores = {}
    for name, score in (("quasi_gain", quasi_gain), ("quasi_loss", quasi_loss)):
        by_class = mean(score(classes.lo, classes.hi, records.quasi_domains))
        scores[name] = float(by_class[kept].mean()) if len(kept) else 0.0
    if not len(kept):
        return {**scores, "sensitive_gain": 0.0, "sensitive_loss": 0.0}
    shares = [
        [general[codes[classes.member >= 0]].mean() for general in generality(domain)]
        for codes, domain in zip(records.sensitive, records.sensitive_domains, strict=True)
    ]
    gain, loss = np.mean(shares, axis=0) if shares else (0.0, 0.0)
    return {**scores, "sensitive_gain": float(gain), "sensitive_loss": float(loss)}
