"""Each release on its own: what the criteria demand of its classes (the outsider)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.attacks.attack import UNPROMISED, Attack, Setting
from sequester.attacks.finding import Finding, Result, name_counts, say_more, worst
from sequester.guarantees.criterion import Criterion, Declaration
from sequester.guarantees.requirement import CRITERIA
from sequester.history import History
from sequester.history.trajectory import Index


def find(history: History, attack: str, criterion: Criterion | None, *, since: int = 0) -> Result:
    """Classes of single releases that break a criterion; the measure is the worst class of all releases.

    `since` leaves the first releases out. What the policy does not ask for is not tried. In a release that nobody of a
    part is in there is nothing to try.
    """
    if criterion is None or len(history) <= since:
        return Result()
    places, degrees, extremes = [], [], []
    for number, release in enumerate(history.releases[since:], since):
        if not len(release):
            continue
        here = criterion.in_table(release.counts.sum(axis=0))
        observed = here.observed(release.counts)
        bad = np.flatnonzero(~here.holds(release.counts))
        extremes.append(float(observed.min() if criterion.at_least else observed.max()))
        places.append(np.column_stack([np.full(len(bad), number), bad]))
        degrees.append(observed[bad])
    if not places:
        return Result()
    unsafe, degree = np.concatenate(places), np.concatenate(degrees)
    told = worst(-degree if criterion.at_least else degree)
    people = _Members(history)
    findings = [
        _finding(
            history,
            attack,
            (number, where),
            people.of(number, where),
            **_broken(history, criterion, (number, where), reached),
        )
        for (number, where), reached in zip(unsafe[told].tolist(), degree[told].tolist(), strict=True)
    ]
    measure = (min if criterion.at_least else max)(extremes)
    attribute = history.attribute if criterion.about_values else ""
    return Result(findings, measure, say_more(attack, attribute, len(unsafe) - len(told)))


def _finding(history: History, attack: str, place: tuple[int, int], people: tuple[Any, ...], **told: Any) -> Finding:
    release, number = place
    return Finding(
        attack=attack,
        adversary="outsider",
        releases=(release + 1,),
        classes=((release + 1, number + 1),),
        people=people,
        attribute=history.attribute,
        **told,
    )


def _broken(history: History, criterion: Criterion, place: tuple[int, int], observed: float) -> dict[str, Any]:
    """What one class shows that breaks a criterion."""
    release, number = place
    counts = history.releases[release].counts[number]
    witness: dict[str, Any] = {"rows": int(counts.sum()), "values": name_counts(history, counts.tolist())}
    blamed = criterion.blame(counts)
    if blamed is None:
        return {"required": float(criterion.required), "observed": observed, "witness": witness}
    told = {"value": history.values[blamed.value], "required": blamed.required, "observed": blamed.observed}
    return told | {"witness": witness | {"bound": blamed.promise}}


def _few_people(history: History, asked: Setting) -> Result | None:
    """Classes with fewer people than are promised, where decoys are among their rows; None without any."""
    fewest, findings, people = asked.policy.fewest_people, [], _Members(history)
    if asked.nobody is None or asked.semantics == "paper":
        return None
    for number, release in enumerate(history.releases[asked.since("k") :], asked.since("k")):
        member = release.known_member
        count = np.bincount(member[(member >= 0) & ~asked.nobody], minlength=len(release))
        findings += [
            _finding(
                history,
                "k",
                (number, where),
                people.of(number, where),
                required=float(fewest),
                observed=float(count[where]),
                witness={"rows": int(release.size[where]), "people": int(count[where])},
            )
            for where in np.flatnonzero(count < fewest).tolist()
        ]
    return Result(findings) if findings else None


class _Members:
    """The people of classes, where they are known; each release is sorted once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._of: dict[int, Index] = {}

    def of(self, release: int, number: int) -> tuple[Any, ...]:
        """Their ids, in the order of the history; of a class of which only some are known, of these."""
        published = self._history.releases[release]
        member = published.certain if published.member is None else published.member
        if member is None:
            return ()
        if release not in self._of:
            self._of[release] = Index.of(member, len(published))
        return tuple(self._history.people[person] for person in self._of[release].members([number]))


def _declare(declared: Declaration, title: str) -> Attack:
    def find_classes(history: History, asked: Setting) -> Result:
        if asked.registered is not None and declared.left_to(asked.policy, history.attribute):
            # Whoever does not know who is in a class does not know its people's shares: breach says what there is.
            return Result()
        criterion = declared.judged(history, asked.policy)
        return find(history, declared.name, criterion, since=asked.since(declared.name))

    return Attack(
        name=declared.name,
        adversary="outsider",
        title=title,
        find=find_classes,
        smallest=declared.smallest,
        required=declared.required,
        releases=1,
        classes_only=True,
        besides=_few_people if declared.name == "k" else lambda history, asked: None,
        nothing=lambda history: UNPROMISED,
    )


ATTACKS = tuple(_declare(one, one.title) for one in CRITERIA if one.title is not None)
