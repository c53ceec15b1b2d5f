"""What it would buy if one key of the policy asked for one step less: the release is made so, audited and forgotten.

Nothing made here is published, or leaves as more than its loss and its counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sequester.causes import Cause, Relaxation
from sequester.domain.kinds import kind_of
from sequester.errors import GuaranteeError, PolicyError
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.metrics.loss import losses
from sequester.policy.document import Document
from sequester.policy.fingerprint import fingerprint
from sequester.policy.load import build_policy
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import make_candidate
from sequester.publish.census import Census

# Records of the largest table that is made once more for every key.
MOST_PRICED = 50_000
_FEWER = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 75, 100)
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.34, 0.5, 0.67, 0.8, 0.9)
_SHOWN = ("ail", "ncp")

Raw = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Eased:
    """A policy that differs in one key, by one step.

    now, then  what the key says, in words without a value of the table
    """

    key: str
    now: str
    then: str
    policy: Policy


def steps_of(policy: Policy, keys: Iterable[str], snapshot: Snapshot) -> tuple[Eased, ...]:
    """A step for every key that can ask for less; what the policy's own checks refuse is left out."""
    found: list[Eased] = []
    for key in dict.fromkeys(keys):
        for path, now, then, value in _steps(policy, key, snapshot):
            raw = policy.model_dump(mode="json", exclude_unset=True)
            _put(raw, path, value)
            try:
                changed = build_policy(Document("", raw), base=policy.path("."))
            except PolicyError:
                continue
            found.append(Eased(".".join(path), now, then, changed))
    return tuple(found)


def relax(
    census: Census,
    state: State,
    brief: Brief,
    causes: Sequence[Cause],
    remake: Callable[[Policy], Brief],
) -> tuple[Relaxation, ...]:
    """What each key that the causes name would buy; `remake` is the brief for another policy.

    Where somebody waits, or everybody does, values are not called ordinary: if the most frequent one is, and she waits
    no longer, then that is hers.
    """
    waits = any(cause.what in ("waiting", "left out", "refused") for cause in causes)
    keys = [key for cause in causes for key in cause.keys if not (waits and key.endswith(".ordinary"))]
    steps = steps_of(brief.policy, keys, census.snapshot)
    small = len(census.snapshot) <= MOST_PRICED
    priced = []
    for number, step in enumerate(steps):
        if brief.progress is not None:
            brief.progress(f"pricing {step.key}", number, len(steps))
        running = not state.releases or fingerprint(step.policy) == fingerprint(brief.policy)
        told = Relaxation(step.key, step.now, step.then, running)
        priced.append(_priced(told, census, state, remake(step.policy)) if small else told)
    return tuple(priced)


def _priced(told: Relaxation, census: Census, state: State, brief: Brief) -> Relaxation:
    try:
        made = make_candidate(census, state, brief)
    except GuaranteeError:
        return replace(told, tried=True)
    waiting, domains = made.roster.waiting(census), made.records.quasi_domains
    lost = losses(made.of_people, domains, suppressed=made.records.left_out)
    return replace(
        told,
        tried=True,
        made=True,
        loss={metric: lost[metric] for metric in _SHOWN},
        classes=len(made.classes),
        decoys=int(np.count_nonzero(made.decoy)),
        waiting=waiting.held + waiting.retained + waiting.left_out,
    )


def _put(raw: Raw, path: Sequence[str], value: Any) -> None:
    *above, last = path
    for key in above:
        if not isinstance(raw.get(key), dict):
            raw[key] = {}
        raw = raw[key]
    raw[last] = value


Path = tuple[str, ...]
Found = Iterator[tuple[Path, str, str, Any]]


def _steps(policy: Policy, key: str, snapshot: Snapshot) -> Found:
    """Where a key stands, what it says now and then in words, and its new value."""
    protect, path = policy.protect, tuple(key.split("."))
    match path:
        case ("protect", "k"):
            yield from _number(path, protect.k, _fewer(protect.k))
        case ("protect", "inferred"):
            yield from _number(path, policy.fewest, 2 if policy.fewest > 2 else None)
        case ("protect", "people"):
            yield from _number(path, policy.fewest_people, 1 if policy.fewest_people > 1 else None)
        case ("protect", "lineage") if policy.linked is not None:
            yield from _number(path, policy.linked, 2 * policy.linked)
        case ("protect", ("confidence" | "alpha" | "belief") as name):
            yield from _share(path, getattr(protect, name))
        case ("protect", "diversity") if protect.diversity is not None and protect.diversity.l > 2:
            yield from _number((*path, "l"), protect.diversity.l, protect.diversity.l - 1)
        case ("protect", "closeness") if protect.closeness is not None and protect.closeness.t < 1:
            yield from _number((*path, "t"), protect.closeness.t, round(min(1.0, 1.5 * protect.closeness.t), 4))
        case ("protect", "lifetime") if protect.lifetime is not None:
            yield from _lifetime(path, protect.lifetime.l, protect.lifetime.releases)
        case ("protect", "against") if len(protect.against) > 1:
            # Without one of several adversaries.
            for one in protect.against:
                left = [other for other in protect.against if other != one]
                yield path, f"[{', '.join(protect.against)}]", f"[{', '.join(left)}]", left
        case ("attributes", name, "confidence"):
            yield from _share(path, policy.sensitive[name].confidence)
        case ("attributes", name, "ordinary"):
            yield from _ordinary(policy, name, snapshot)
        case ("decoys",):
            more = min(1.0, 2 * policy.decoys) if policy.decoys else 0.05
            yield from _number(path, policy.decoys, more if more > policy.decoys else None)
        case ("infeasible",) if policy.infeasible == "refuse":
            yield path, "refuse", "hold-back", "hold-back"


def _lifetime(path: Path, now: float, releases: int | None) -> Found:
    yield from _number((*path, "l"), now, now - 1 if now > 2 else 1.5 if now > 1.5 else None)
    if releases is not None and releases > 1:
        yield from _number((*path, "releases"), releases, max(1, releases // 2))


def _number(path: Path, now: float, then: float | None) -> Found:
    if then is not None:
        yield path, f"{now:g}", f"{then:g}", then


def _fewer(k: int) -> int | None:
    below = [number for number in _FEWER if number < k]
    if not below:
        return None
    return below[-1] if k <= _FEWER[-1] else math.ceil(k / 2)


def _more(share: float) -> float | None:
    return next((other for other in _SHARES if other > share), None)


def _share(path: Path, now: float | Mapping[str, float] | None) -> Found:
    """A bound on shares, or one for each of several values, whose names are not told."""
    if isinstance(now, Mapping):
        more = {value: _more(bound) or bound for value, bound in now.items()}
        if more != dict(now):
            yield path, "as given", "one step more for every value", more
    elif now is not None:
        yield from _number(path, now, _more(now))


def _ordinary(policy: Policy, name: str, snapshot: Snapshot) -> Found:
    """The most frequent value that is not ordinary yet, which is not told, called ordinary."""
    attribute, place = policy.sensitive[name], snapshot.sensitive_names.index(name)
    if attribute.is_graded or attribute.bands is not None or kind_of(attribute).several:
        return
    domain = snapshot.sensitive_domains[place]
    counts = np.bincount(snapshot.sensitive[place], minlength=domain.size)
    for code in np.argsort(-counts, kind="stable").tolist():
        value = domain.names[0][code]
        if counts[code] and value not in attribute.ordinary and value not in attribute.permanent:
            now, then = len(attribute.ordinary), f"{len(attribute.ordinary) + 1}, the most frequent"
            yield ("attributes", name, "ordinary"), f"{now}", then, [*attribute.ordinary, value]
            return
