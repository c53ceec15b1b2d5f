"""Deniability where the true totals are known: how many people of every release have each label.

Somebody who knows the totals from elsewhere (a hospital's yearly report) knows what the decoys of every release show
together: what is published, less the totals. That is no promise of pods, which share values out between people and
decoys alike, and can undo it. The program is that of whole rows, told besides what people and decoys of each release
have, as if every release had been published once more with two classes: people, and decoys. Which rows are decoys is
taken to be known, which is more than anybody can know, so a series that passes is safe from weaker ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.deniability import find
from sequester.attacks.finding import Finding, LazyWitness, Result
from sequester.history.history import History
from sequester.history.label import Labels
from sequester.history.publication import Publication

_WHOSE = ("people", "decoys")


def find_totals(history: History, labels: Labels, decoy: NDArray[np.bool_]) -> Result:
    """Proofs that some person cannot deny a value, given the totals of people; `decoy` is per person of the history."""
    if history.trajectories is None:
        return Result()
    told = history
    for release in history.releases:
        told = told.extend(_told(release, decoy))
    result = find(told, labels=labels, decoy=decoy)
    return replace(result, findings=[_plain(finding, len(history)) for finding in result.findings])


def _told(release: Publication, decoy: NDArray[np.bool_]) -> Publication:
    """Who of a release is somebody and who is nobody, as two classes."""
    member = np.where(release.known_member < 0, -1, decoy).astype(np.int32)
    boxes, rows = np.zeros((len(release.lo), 2), np.int32), np.zeros(0, np.int32)
    counts = np.zeros((2, release.counts.shape[1]), np.int64)
    return Publication(release.name, boxes, boxes, counts, rows, rows, member)


def _plain(finding: Finding, releases: int) -> Finding:
    """The finding in terms of what was published, and of totals."""
    return replace(
        finding,
        releases=tuple(sorted({(number - 1) % releases + 1 for number in finding.releases})),
        classes=tuple(place for place in finding.classes if place[0] <= releases),
        witness=LazyWitness(partial(_witness, finding.witness, releases)),
    )


def _witness(told: Mapping[str, Any], releases: int) -> dict[str, Any]:
    def count(row: dict[str, Any]) -> dict[str, Any]:
        if row["release"] <= releases:
            return row
        return row | {"release": row["release"] - releases, "class": 0, "whose": _WHOSE[row["class"] - 1]}

    def people(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"classes": [place for place in row["classes"] if place[0] <= releases]}

    parts = {
        **{name: [count(row) for row in told[name]] for name in ("added", "subtracted", "absent")},
        **{name: [people(row) for row in told[name]] for name in ("sizes", "remaining")},
    }
    return {**told, **parts, "totals": True}
