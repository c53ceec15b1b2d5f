"""What pods that were checked spare an audit: attacks they rule out, and findings about nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sequester.attacks import exposure
from sequester.attacks.finding import Finding, Result
from sequester.attacks.pods.proof import PodProof, check
from sequester.history.history import History
from sequester.history.label import Labels, Rows
from sequester.history.seats import Seats


def check_pods(histories: Sequence[History], rows: Rows | None, seats: Seats, *, before: int = 0) -> PodProof | None:
    """The check of pods against what an audit is about; None where nothing stays that they could be about.

    before  so many releases, the first ones, were checked before with these seats
    """
    stays = [history for history in histories if history.permanent]
    if not stays:
        return None
    labels = Labels.of_history(stays[0]) if rows is None else rows.labels
    if rows is None and len(stays) > 1:
        return PodProof({"views without whole rows": len(stays)}, seats, labels)
    return check(seats, stays, labels, before=before)


def of_people(result: Result, history: History, pods: PodProof, *, smallest: bool) -> Result:
    """The same without decoys: whoever is nobody is not exposed. Where findings were left out all are kept.

    smallest  whether the smallest measure is the worst
    """
    if not history.people or len(result.findings) >= exposure.MOST:
        return result
    nobody = {history.people[number] for number in np.flatnonzero(pods.seats.decoy).tolist()}
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
