"""From a table and a ledger to a plan: who is in it, in which classes, what an adversary can do, what it costs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.attacks.attack import Audited
from sequester.domain.codec import distinct, to_text
from sequester.errors import DataError, GuaranteeError, LedgerError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.history.past import Past
from sequester.history.sight import permanent_part
from sequester.history.trajectory import linked, number_through
from sequester.ingest.encode import encode, encode_list, encode_next
from sequester.ingest.snapshot import Snapshot
from sequester.ledger import Ledger
from sequester.ledger.state import Entry, State
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.registry import method_of
from sequester.policy.attributes import Insensitive
from sequester.policy.fingerprint import fingerprint
from sequester.policy.methods import Pods, Specialize
from sequester.policy.model import Policy
from sequester.publish.candidate import Candidate, make_candidate
from sequester.publish.corrections import Corrections
from sequester.publish.distinct import check_distinct
from sequester.publish.meaning import check_boxes
from sequester.publish.moved import check_moves
from sequester.publish.personal import as_published, gain_of, personal_of
from sequester.publish.plan import Plan
from sequester.publish.price import checks_of, compare, levers, pods_of
from sequester.publish.recall import carry, recall, recall_labels
from sequester.publish.repeated import name_taken, note_repeated, repeats
from sequester.publish.roster import (
    Crowd,
    Roster,
    Withdrawn,
    assemble,
    check_registered,
    delays,
    may_move,
    moves,
    refusal,
    refuse_suppression,
    roster_of,
)
from sequester.publish.strangers import check_known, count_misspelt, note_spelling

Progress = Callable[[str, int, int], None]

_STAGES = ("reading", "matching people", "anonymizing", "comparing")


def prepare(
    ledger: Ledger,
    policy: Policy,
    source: Any,
    *,
    name: str,
    seed: int,
    recipient: str | None,
    purpose: str | None,
    show_values: bool,
    progress: Progress | None,
    everybody_is_new: bool = False,
) -> Plan:
    """The next release as a plan, with everything needed to publish it."""

    def tell(stage: int) -> None:
        if progress is not None:
            progress(_STAGES[stage], stage, len(_STAGES))

    tell(0)
    state = ledger.load()
    number = len(state.releases) + 1
    if state.releases:
        snapshot = encode_next(source, policy, state.domains, show_values=show_values)
        check_boxes(state, policy, snapshot.domains)
    else:
        snapshot = encode(source, policy, show_values=show_values)
    registered = listed = None
    if policy.registration_list is not None:
        domains, registered = encode_list(policy.registration_list, policy, snapshot.domains, show_values=show_values)
        snapshot = snapshot.within(domains)
        listed = check_registered(snapshot, registered, policy, before=ledger.releases())
    tell(1)
    crowd, hashes, digests, told = _recognise(ledger, state, snapshot, policy, everybody_is_new=everybody_is_new)
    snapshot = crowd.snapshot
    digest = _digest(snapshot, hashes)
    entries = ledger.releases()
    repeated = repeats(entries, digest)
    if name in {entry.name for entry in entries}:
        raise DataError(name_taken(repeated))
    crowd = replace(crowd, registered=registered)
    tell(2)
    draws = [seed, number]
    audited = _audited(entries, policy)
    candidate = _candidate(crowd, state, policy, name=name, draws=draws, audited=audited, progress=progress)
    tell(3)
    return Plan(
        series=policy.series,
        number=number,
        name=name,
        head=state.head,
        fingerprint=fingerprint(policy),
        source=os.fspath(source) if isinstance(source, str | os.PathLike) else None,
        input_digest=digest,
        content=candidate.content(),
        method=policy.method.model_dump(mode="json"),
        seed=seed,
        recipient=recipient,
        purpose=purpose,
        change=crowd.change(changed=_moved(crowd, candidate.past)),
        personal=personal_of(crowd, candidate.roster, candidate.records),
        gain=gain_of(candidate.records.without(candidate.decoy), candidate.of_people),
        listed=listed,
        waiting=candidate.roster.waiting(crowd),
        records=len(candidate.order),
        people=int(np.count_nonzero(~candidate.decoy[candidate.order])),
        pods=pods_of(candidate, crowd),
        classes=len(candidate.classes),
        checks=checks_of(candidate.audit, policy),
        findings=len(candidate.audit.findings),
        loss=compare(candidate, policy),
        levers=levers(candidate, policy, seed=draws),
        notes=(*note_repeated(repeated), *told, *candidate.notes, *_new_chain(candidate, policy)),
        untried=candidate.audit.untried,
        everybody_is_new=everybody_is_new,
        repeats=None if repeated is None else repeated.number,
        candidate=replace(candidate, hashes=hashes, digests=digests, crowd=crowd),
    )


def _recognise(
    ledger: Ledger, state: State, snapshot: Snapshot, policy: Policy, *, everybody_is_new: bool
) -> tuple[Crowd, pa.Array, NDArray[np.int64], tuple[str, ...]]:
    """The snapshot's people among everybody published before; keyed hashes and digests of all its people; notes."""
    assert snapshot.person is not None
    assert policy.person is not None
    hashes = ledger.identify(snapshot.person)
    check_distinct(hashes)
    permanent = [place for place, attribute in enumerate(policy.quasi_identifiers.values()) if not attribute.changes]
    texts = [_texts(snapshot.quasi_domains[place].names[0], snapshot.quasi[place]) for place in permanent]
    digests = ledger.digest(hashes, texts)
    number = ledger.match(hashes) if state.people else np.full(len(snapshot), -1, np.int64)
    told = _strangers(ledger, state, snapshot, number, policy, everybody_is_new=everybody_is_new)
    values, plain = (np.zeros((len(codes), 0), np.int32) for codes in (snapshot.sensitive, snapshot.plain))
    if state.people:
        _refuse_unkept(ledger, state, snapshot)
        domains = snapshot.domains
        values = carry(state.values, [(state.domains[name], domains[name]) for name in state.sensitive])
        plain = carry(state.plain, [(state.domains[name], domains[name]) for name in state.insensitive])
    snapshot, late = as_published(snapshot, policy, number, values)
    if state.people:
        wrong = _corrections(state, snapshot, policy, number, digests, values, plain)
        if policy.corrections == "refuse":
            wrong.refuse(snapshot, number, state, policy)
        held_out = wrong.records
        if held_out.any():
            # As if they were not in the table: whoever of them was in the last release leaves it, with all who leave.
            snapshot, hashes = snapshot.without(held_out), hashes.filter(pa.array(~held_out))
            digests, number = digests[~held_out], number[~held_out]
        check_moves(snapshot, number, state, policy)
    crowd = Crowd(
        snapshot=snapshot,
        withdrawn=_withdrawn(ledger, state, snapshot),
        late=late,
        number=number,
        last=state.member,
        values=values,
        plain=plain,
        component=_components(state, policy),
        decoy=state.decoy,
        patience=_patience(state, hashes),
    )
    return crowd, hashes, digests, told


def _strangers(
    ledger: Ledger,
    state: State,
    snapshot: Snapshot,
    number: NDArray[np.int64],
    policy: Policy,
    *,
    everybody_is_new: bool,
) -> tuple[str, ...]:
    """What to say about people who are not recognised; DataError where that is nearly everybody."""
    assert snapshot.person is not None
    if not state.people:
        return note_spelling(snapshot.person)
    recognised, people = int(np.count_nonzero(number >= 0)), len(number)
    if snapshot.refused is not None:
        # Whoever does not agree any longer is known all the same.
        recognised += int(np.count_nonzero(ledger.match(ledger.identify(snapshot.refused)) >= 0))
        people += len(snapshot.refused)
    misspelt = count_misspelt(ledger, snapshot.person, number)
    new = check_known(
        recognised,
        people,
        int(np.count_nonzero((state.member >= 0) & ~state.decoy)),
        column=policy.person,
        everybody_is_new=everybody_is_new,
        misspelt=misspelt,
    )
    return (*new, *note_spelling(snapshot.person, misspelt))


def _corrections(
    state: State,
    snapshot: Snapshot,
    policy: Policy,
    number: NDArray[np.int64],
    digests: NDArray[np.int64],
    values: NDArray[np.int32],
    plain: NDArray[np.int32],
) -> Corrections:
    """Whoever was published before and has other cells now than then, of those that do not change."""
    before, now = (permanent_part(policy, snapshot.sensitive_domains, codes) for codes in (values, snapshot.sensitive))
    cells = {name: (before[place], now[place]) for place, name in enumerate(snapshot.sensitive_names)}
    for place, name in enumerate(snapshot.plain_names):
        if not _may_change(policy, name):
            cells[name] = (plain[place], snapshot.plain[place])
    return Corrections.find(number, (state.digests[0], digests), cells)


def _may_change(policy: Policy, name: str) -> bool:
    attribute = policy.attributes[name]
    return isinstance(attribute, Insensitive) and attribute.changes


def _refuse_unkept(ledger: Ledger, state: State, snapshot: Snapshot) -> None:
    """Stop where a ledger does not know what was published of columns that link a person's rows."""
    if state.insensitive != snapshot.plain_names:
        raise LedgerError(
            Problem(
                "was written by a Sequester that did not keep insensitive cells, so nobody can tell what the releases "
                "so far say together with the next; the series cannot go on with insensitive columns",
                file=str(ledger.place),
            )
        )


def _withdrawn(ledger: Ledger, state: State, snapshot: Snapshot) -> Withdrawn | None:
    """People of the last release who no longer agree."""
    if snapshot.refused is None or not state.people:
        return None
    hashes = ledger.identify(snapshot.refused)
    number = ledger.match(hashes)
    rows = np.flatnonzero((number >= 0) & (np.append(state.member, np.int32(-1))[number] >= 0))
    return Withdrawn(number[rows], hashes.take(rows), _patience(state, hashes)[rows])


def _texts(names: tuple[str, ...], codes: NDArray[np.int32]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string())).dictionary_decode()


def _components(state: State, policy: Policy) -> NDArray[np.int32]:
    """Per person published before, the people she is tied to by sharing classes, directly or through others."""
    if isinstance(policy.method, Pods):
        # Nobody is held back or leaves with others.
        return np.zeros(state.people, np.int32)
    found: NDArray[np.int32] = linked(*number_through(state.path, [len(one) for one in state.releases]))
    return found[state.trajectory]


def _patience(state: State, hashes: pa.Array) -> NDArray[np.int64]:
    """Per record, for how many releases it has waited."""
    place = pc.index_in(hashes, value_set=state.queue.hashes).fill_null(-1).to_numpy(zero_copy_only=False)
    waited = np.append(len(state.releases) + 1 - state.queue.since.astype(np.int64), 0)
    found: NDArray[np.int64] = waited[place]
    return found


def _candidate(
    crowd: Crowd,
    state: State,
    policy: Policy,
    *,
    name: str,
    draws: list[int],
    audited: Audited | None,
    progress: Progress | None,
) -> Candidate:
    """The release in which as many kinds of people come and go as can be hidden: of each kind all, or nobody."""
    if isinstance(policy.method, Pods):
        from sequester.publish.podded import make_podded

        return make_podded(crowd, state, policy, name=name, seed=draws, audited=audited, progress=progress)
    requirement = Requirement.from_policy(policy, crowd.snapshot.sensitive_domains)
    make = partial(make_candidate, policy=policy, name=name, seed=draws, registered=crowd.registered, progress=progress)
    refused = None
    for move in moves(crowd, policy):
        roster = roster_of(crowd, move, policy)
        if not len(roster):
            continue
        if not may_move(crowd, move, requirement, policy):
            refused = refusal(crowd) if state.people and policy.infeasible == "refuse" else refused
            continue
        try:
            found = _made(crowd, roster, state, policy, make, as_before=move.nobody)
        except GuaranteeError as error:
            refused = error
        else:
            return replace(found, notes=(*found.notes, *delays(crowd, move, policy)))
    raise _nobody(crowd) if refused is None else refused


def _audited(entries: Sequence[Entry], policy: Policy) -> Audited | None:
    """What was found when the last release was published, under the same policy: of all releases until then."""
    if not entries or entries[-1].fingerprint != fingerprint(policy) or not entries[-1].summary.get("holds"):
        return None
    reached = {check["attack"]: check["reached"] for check in entries[-1].summary["checks"]}
    return Audited(len(entries), {attack: value for attack, value in reached.items() if value is not None})


def _made(
    crowd: Crowd, roster: Roster, state: State, policy: Policy, make: Callable[..., Candidate], *, as_before: bool
) -> Candidate:
    """The release of a roster; GuaranteeError when no classes of it are safe.

    `as_before`: nobody comes or goes, so that the last release as it is tells nothing new, whatever the method says.
    """
    past, corners = _past(crowd, roster, state, policy)
    records = assemble(crowd, roster, corners=corners)
    try:
        found = make(roster, records, past)
    except GuaranteeError:
        if not (as_before and state.releases) or not method_of(policy.method).repairs:
            raise
        found = make(roster, records, past, made=_again(past, records, policy))
    refuse_suppression(policy, found.classes.suppressed)
    if not found.classes.suppressed:
        return found
    # Whoever the method left out is not in the release: as if she were not in the table.
    out = found.classes.member < 0
    roster = roster.without(out)
    past, corners = _past(crowd, roster, state, policy)
    records = assemble(crowd, roster, corners=corners)
    return make(roster, records, past, made=replace(found.classes, member=found.classes.member[~out]))


def _again(past: Past, records: Snapshot, policy: Policy) -> Classes:
    """The classes of the last release."""
    from sequester.methods.merge import merge

    guard = ClassGuard.of(Requirement.from_policy(policy, records.sensitive_domains), records.sensitive)
    return merge(past, records.quasi, records.quasi_domains, guard, against=policy.protect.against)


def _nobody(crowd: Crowd) -> GuaranteeError:
    """Why no record is left to publish."""
    if crowd.withdrawn is not None and len(crowd.withdrawn.person):
        return GuaranteeError(
            "nobody can be published: some withdrew their consent, too few or too much alike for their going not to "
            "show, and everybody else was published with them. Let withdrawals wait for others with `wait`. "
            "Nothing was published.",
            guarantee="series",
        )
    return GuaranteeError(
        "nobody can be published yet: these people are too few, or too much alike, to hide each other; collect "
        "more records, require less, or call frequent values ordinary. Nothing was published.",
        guarantee="series",
    )


def _past(crowd: Crowd, roster: Roster, state: State, policy: Policy) -> tuple[Past, NDArray[np.int32]]:
    """Everything published before beside these records, and the lower corners of the last release's boxes."""
    rows = roster.rows
    person = crowd.number[rows].copy()
    new = np.flatnonzero(person < 0)
    person[new] = state.people + np.arange(len(new))
    values = np.hstack([crowd.values, crowd.snapshot.sensitive[:, rows[new]]])
    values[:, person] = crowd.snapshot.sensitive[:, rows]
    plain = np.hstack([crowd.plain, crowd.snapshot.plain[:, rows[new]]])
    plain[:, person] = crowd.snapshot.plain[:, rows]
    histories, codes = recall(state, policy, crowd.snapshot.domains, values=values)
    labels = recall_labels(state, policy, crowd.snapshot.domains, values=values, plain=plain)
    everyone = np.concatenate([person, roster.retained])
    retained = np.zeros(len(everyone), np.bool_)
    retained[len(rows) :] = True
    past = Past(histories, everyone, tuple(code[everyone] for code in codes), retained, labels)
    releases = past.first.releases
    return past, releases[-1].lo if releases else np.zeros((len(crowd.snapshot.quasi), 0), np.int32)


def _moved(crowd: Crowd, past: Past) -> int:
    """People whose attributes are no longer inside the box they were last published with."""
    if not len(past.first):
        return 0
    box, known = past.first.releases[-1], np.flatnonzero(crowd.number >= 0)
    last = crowd.last[crowd.number[known]]
    known, last = known[last >= 0], last[last >= 0]
    codes = crowd.snapshot.quasi[:, known]
    return int(np.count_nonzero(((codes < box.lo[:, last]) | (codes > box.hi[:, last])).any(axis=0)))


def _new_chain(candidate: Candidate, policy: Policy) -> tuple[str, ...]:
    """Whether newcomers would lose much less in a series of their own; only taxonomy cuts tie them to the past."""
    if not isinstance(policy.method, Specialize) or not len(candidate.past.first):
        return ()
    from sequester.methods.specialize.bcf_chain import new_chain

    records = candidate.records
    chain = new_chain(candidate.past, candidate.classes, records.quasi, records.quasi_domains, candidate.guard)
    return (str(chain),) if chain is not None and chain.is_cheaper else ()


def _digest(snapshot: Snapshot, hashes: pa.Array) -> str:
    """Of everything that is read from the input, whatever kind of input it is."""
    found = hashlib.sha256()
    for codes, domain in (
        *zip(snapshot.quasi, snapshot.quasi_domains, strict=True),
        *zip(snapshot.sensitive, snapshot.sensitive_domains, strict=True),
    ):
        found.update("\0".join(domain.names[0]).encode())
        found.update(codes.tobytes())
    found.update(hashes.buffers()[1])
    for name in snapshot.insensitive.column_names:
        values, index = distinct(snapshot.insensitive[name])
        found.update(name.encode())
        found.update("\0".join(to_text(values).to_pylist()).encode())
        found.update(index.tobytes())
    return found.hexdigest()
