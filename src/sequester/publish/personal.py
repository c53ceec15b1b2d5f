"""What people themselves allow, in a release: consent, grades, and what they gain and the data loses by it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.nodes import coarser, generality, nesting
from sequester.ingest.snapshot import Snapshot
from sequester.methods.classes import Classes
from sequester.metrics.gain import mean, quasi_gain, quasi_loss
from sequester.policy.model import Policy
from sequester.publish.plan import Personal

if TYPE_CHECKING:
    from sequester.publish.census import Census
    from sequester.publish.roster import Roster


def as_published(
    snapshot: Snapshot, policy: Policy, number: NDArray[np.int64], before: NDArray[np.int32]
) -> tuple[Snapshot, int]:
    """The snapshot with first values, and permanent graded ones, as they were published before, and for how many graded
    ones that is too fine now.

    What was published about a person stays as it was: a node in place of a value that is known hides nothing, and two
    versions of one value would say which row is hers. `number` is the person of each record, -1 for a new one;
    `before` (sensitive attributes, people) what was published.
    """
    snapshot = _first_values(snapshot, policy, number, before)
    graded = [p for p, a in enumerate(policy.sensitive.values()) if a.is_graded and a.stays]
    known = np.flatnonzero(number >= 0)
    if not graded or not len(known) or snapshot.exact is None:
        return snapshot, 0
    sensitive, late = snapshot.sensitive.copy(), np.zeros(len(known), np.bool_)
    for place in graded:
        domain = snapshot.sensitive_domains[place]
        old, value, new = before[place, number[known]], snapshot.exact[place, known], sensitive[place, known]
        # Whoever has another value than was published is left as she is: that is an error, told elsewhere.
        _, fits = coarser(domain, old, value)
        sensitive[place, known] = np.where(fits, old, new)
        late |= fits & (new != old) & nesting(domain, new, old)[0]
    return replace(snapshot, sensitive=sensitive), int(np.count_nonzero(late))


def _first_values(snapshot: Snapshot, policy: Policy, number: NDArray[np.int64], before: NDArray[np.int32]) -> Snapshot:
    """The snapshot in which everybody published before has what was published of values of which the first is kept."""
    kept = [place for place, attribute in enumerate(policy.sensitive.values()) if attribute.values == "first"]
    known = np.flatnonzero(number >= 0)
    if not kept or not len(known):
        return snapshot
    sensitive, exact = snapshot.sensitive.copy(), None if snapshot.exact is None else snapshot.exact.copy()
    for place in kept:
        sensitive[place, known] = before[place, number[known]]
        if exact is not None:
            exact[place, known] = sensitive[place, known]
    return replace(snapshot, sensitive=sensitive, exact=exact)


def personal_of(census: Census, roster: Roster) -> Personal:
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


def gain_of(records: Snapshot, classes: Classes) -> dict[str, float]:
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
