"""What pods that were checked spare an audit: attacks they rule out, and findings about nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sequester.attacks import difference, exposure, tracing
from sequester.attacks.finding import Finding, Result
from sequester.attacks.witness import Witness, check
from sequester.history.history import History
from sequester.history.label import WHOLE_ROW, Labels, Rows
from sequester.history.seats import Seats


def check_pods(histories: Sequence[History], rows: Rows | None, seats: Seats, *, before: int = 0) -> Witness | None:
    """The check of pods against what an audit is about; None where nothing stays that they could be about.

    before  so many releases, the first ones, were checked before with these seats
    """
    stays = [history for history in histories if history.permanent]
    if not stays:
        return None
    if rows is None and len(stays) > 1:
        return Witness({"views without whole rows": len(stays)})
    labels = Labels.of_history(stays[0]) if rows is None else rows.labels
    return check(seats, stays, labels, before=before)


def proven(attack: str, history: History, witness: Witness, *, since: int = 0) -> Result | None:
    """What an insider's attack comes to by pods that hold; None where it must be tried as on any releases.

    Measures are what the pods prove: attacks themselves may reach less. `since` leaves out the classes of the first
    releases, whose measure is known.
    """
    assert witness.labels is not None
    if attack == "deniability":
        bounds = [float(question.bound) for question in witness.labels.questions]
        free = history.attribute != WHOLE_ROW and all(bound >= 1 for bound in history.bounds)
        if not bounds or free:
            return Result()
        return Result([], min(1.0, round(witness.strain * max(bounds), 9)))
    if len(history) < 2:
        return None
    if attack == "difference":
        # Of people whose values have no bound nothing is learned that is protected, where there are such values.
        seats = witness.bounded if history.is_guarded else witness.fewest
        if seats is None or seats >= history.fewest:
            sizes = [release.size for release in history.releases[since:]]
            smallest = [int(size[size > 0].min()) for size in sizes]
            return Result([], float(min([*smallest, *([] if seats is None else [seats])])))
        return difference.find(history, by_value=False)
    if attack == "tracing":
        if witness.fewest >= history.fewest:
            return Result([], float(witness.fewest))
        company = witness.owners(history)
        least = int(company.min()) if len(company) else witness.fewest
        if least >= history.fewest:
            # Whatever is published later changes nothing about it.
            return Result([], float(least))
        return tracing.find(history, labels=witness.labels, at_least=company)
    return None


def of_people(result: Result, history: History, witness: Witness, *, smallest: bool) -> Result:
    """The same without decoys: whoever is nobody is not exposed. Where findings were left out all are kept.

    smallest  whether the smallest measure is the worst
    """
    assert witness.seats is not None
    if not history.people or len(result.findings) >= exposure.MOST:
        return result
    nobody = {history.people[number] for number in np.flatnonzero(witness.seats.decoy).tolist()}
    kept: list[Finding] = []
    reached: list[float] = []
    for finding in result.findings:
        people = tuple(person for person in finding.people if person not in nobody)
        told = bool(people) or not finding.people
        if told:
            kept.append(finding if len(people) == len(finding.people) else replace(finding, people=people))
        if finding.about_value is not smallest:
            reached.append(finding.observed if told else finding.required)
    if len(kept) == len(result.findings):
        return replace(result, findings=kept)
    measure = (min if smallest else max)(reached, default=result.measure)
    return replace(result, findings=kept, measure=measure)
