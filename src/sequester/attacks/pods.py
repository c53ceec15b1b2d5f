"""Pods as a witness: whether what the maker of a series recorded proves that everybody can deny, and what that spares
an audit: attacks that are ruled out, and findings about nobody.

A pod is whole in every release, lies in one class, and each of its seats is taken once; whoever has a seat of a type
has its label, in all releases. Then shift the labels of a type's seats by one, for everybody of the type and all
releases at once: every class shows the same rows, everybody keeps one label, so it is a world like the true one. All
shifts together, equally likely, tie nobody to a value with more than its share of the seats. A set of people that
classes determine has equally many of each seat of a type, so it has as many rows as a pod has seats, or none, and
values have the shares they have in the types. A row can be any member's of its pod.

The check is one pass over people and one over the rows of every release. It shares nothing with what makes pods, and
believes nothing: a witness that is wrong anywhere proves nothing, and the attacks are tried as on any releases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Finding, Result, leaves_out
from sequester.history.history import History, Publication
from sequester.history.label import Labels, Question, Rows
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
    if not history.people or leaves_out(len(result.findings)):
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


Integers = NDArray[np.integer[Any]]

REFUSED = "the pods on record do not prove that everybody can deny: all was tried as on releases made by anyone"


@dataclass(frozen=True, eq=False)
class PodProof:
    """What pods prove, if there is nothing wrong with them.

    problems  what is wrong, and how often
    fewest    fewest seats of a pod; `bounded`: of a pod with a label that has a value with a bound, None without any
    share     the largest share that a value with a bound has of the seats of a type, and `strain` the largest multiple
              of its bound that this is for any value
    seats     what was checked
    labels    of everybody
    """

    problems: dict[str, int]
    seats: Seats
    labels: Labels
    fewest: int = 0
    bounded: int | None = None
    share: float = 0.0
    strain: float = 0.0

    def __repr__(self) -> str:
        wrong = ", ".join(f"{name}: {count}" for name, count in self.problems.items())
        return f"<Witness: {wrong or f'holds, at least {self.fewest} seats, share {self.share:.4g}'}>"

    @property
    def holds(self) -> bool:
        """Whether it proves anything."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: for the publisher, as everything about pods."""
        if not self.holds:
            return {"holds": False, "problems": dict(self.problems)}
        return {"holds": True, "fewest": self.fewest, "bounded": self.bounded, "share": self.share}

    def lineages(self) -> int:
        """How many groups of people and decoys are linked through pods."""
        return len(np.unique(self.seats.lineages()))

    def owners(self, history: History) -> NDArray[np.int64]:
        """Per class and label that is shown, in order of release, class and label, how many rows it can be at least.

        All members of pods of the class that have the label: each of them has it in one of the shifts.
        """
        width, company = len(self.labels), [np.zeros(0, np.int64)]
        for release, pod in zip(history.releases, self.seats.pods, strict=True):
            here = np.flatnonzero(pod >= 0)
            size = np.bincount(pod[here])
            # A label that a pod has twice counts its members once.
            once = np.unique(pod[here].astype(np.int64) * width + self.labels.of[here], return_index=True)[1]
            one = here[once]
            key = release.known_member[one].astype(np.int64) * width + self.labels.of[one]
            _, group = np.unique(key, return_inverse=True)
            company.append(np.bincount(group, weights=size[pod[one]]).astype(np.int64))
        return np.concatenate(company)


def check(seats: Seats, histories: Sequence[History], labels: Labels, *, before: int = 0) -> PodProof:
    """Whether these pods are a witness for releases whose people and labels are known.

    histories  of the same people and classes, one for every view whose values stay
    labels     everything that stays of everybody's rows
    before     so many releases, the first ones, were checked before with these seats: their rows are not looked at
    """
    if _shapes(seats, histories, labels):
        return PodProof({"sizes that do not fit": 1}, seats, labels)
    people = _People.of(seats, histories, labels)
    problems = Counter(people.problems)
    if not people.problems:
        for number in range(before, len(seats.pods)):
            problems.update(_rows(people, seats.pods[number], [history.releases[number] for history in histories]))
            for history in histories:
                problems.update(_counts(history, number))
    share, strain, beyond = people.shares(labels)
    problems["types with too much of a value"] += beyond
    if wrong := dict(+problems):
        return PodProof(wrong, seats, labels)
    return PodProof({}, seats, labels, people.fewest, people.bounded(labels), share, strain)


def _shapes(seats: Seats, histories: Sequence[History], labels: Labels) -> bool:
    """Whether something has not the size, or the kind, that it must have."""
    if not histories or not len(histories[0]):
        return True
    people, releases = len(histories[0].people), len(histories[0])
    numbers = (seats.type, seats.seat, *seats.pods, labels.of)
    return (
        len(seats.pods) != releases
        or any(one.shape != (people,) or one.dtype.kind != "i" for one in numbers)
        or seats.decoy.shape != (people,)
        or seats.decoy.dtype != np.bool_
        or any(len(history) != releases or len(history.people) != people for history in histories)
        or any(history.value is None or history.value.shape != (people,) for history in histories)
        or any(
            release.member is None or release.member.shape != (people,)
            for history in histories
            for release in history.releases
        )
    )


@dataclass(frozen=True, eq=False, repr=False)
class _People:
    """Everybody who was ever in a release, by type and seat.

    kind    per person, the number of her type among those that occur, -1 for one who was in no release
    place   per person, which of the seats of her type that occur she has
    width   per type, how many seats occur
    label   per seat, types one after the other, its label
    """

    kind: Integers
    place: Integers
    width: Integers
    label: Integers
    problems: dict[str, int]

    @classmethod
    def of_nobody(cls, problems: dict[str, int]) -> _People:
        none = np.zeros(0, np.int64)
        return cls(none, none, none, none, problems)

    @classmethod
    def of(cls, seats: Seats, histories: Sequence[History], labels: Labels) -> _People:
        ever = _ever(histories[0])
        who = np.flatnonzero(ever)
        kind, seat, label = seats.type[who], seats.seat[who], labels.of[who]
        missing = (kind < 0) | (seat < 0) | (label < 0) | (label >= len(labels))
        if missing.any():
            return cls.of_nobody({"people without a type, a seat or a label": int(missing.sum())})
        kinds, number = _numbered(kind)
        broad = int(seat.max(initial=0)) + 1
        slots, slot = _numbered(number.astype(np.int64) * broad + seat)
        of_slot = slots // broad
        width = np.bincount(of_slot, minlength=len(kinds))
        start = np.cumsum(width) - width
        own = np.empty(len(slots), label.dtype)
        own[slot] = label
        problems = Counter({"people with another label than their seat": int(np.count_nonzero(own[slot] != label))})
        for history in histories:
            assert history.value is not None
            value = history.value[who]
            answer = np.full(len(labels), -1, value.dtype)
            answer[label] = value
            other = int(np.count_nonzero((answer[label] != value) | (value < 0)))
            problems["people with another value than their label"] += other
            problems["values with a bound that are not asked about"] += _unasked(history, labels, answer)
        numbers, place = np.full(len(ever), -1, np.int64), np.full(len(ever), -1, np.int64)
        numbers[who], place[who] = number, slot - start[number]
        return cls(numbers, place, width, own, dict(+problems))

    @property
    def fewest(self) -> int:
        return int(self.width.min(initial=np.iinfo(np.int64).max))

    def bounded(self, labels: Labels) -> int | None:
        """Fewest seats of a type that has a value with a bound."""
        asked = np.zeros(len(labels), np.bool_)
        for question in labels.questions:
            asked[question.labels] = True
        width = np.repeat(self.width, self.width)[asked[self.label]]
        return int(width.min()) if len(width) else None

    def shares(self, labels: Labels) -> tuple[float, float, int]:
        """The largest share and multiple of a bound that a type has, and how many types have too much of a value."""
        questions = len(labels.questions)
        if self.problems or not questions:
            return 0.0, 0.0, 0
        type_ = np.repeat(np.arange(len(self.width)), self.width)
        slot, question = labels.questions_of(self.label)
        if not len(slot):
            return 0.0, 0.0, 0
        key = np.sort(type_[slot] * questions + question)
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        count = np.diff(np.append(first, len(key)))
        kind, asked = key[first] // questions, key[first] % questions
        top = np.array([question.bound.numerator for question in labels.questions], np.int64)[asked]
        bottom = np.array([question.bound.denominator for question in labels.questions], np.int64)[asked]
        share = count / self.width[kind]
        beyond = count * bottom > top * self.width[kind]
        strain = np.divide(share * bottom, top, out=np.full(len(share), inf), where=top > 0)
        return float(share.max()), float(strain.max()), len(np.unique(kind[beyond]))


def _ever(history: History) -> NDArray[np.bool_]:
    """Who was in any release."""
    ever = np.zeros(len(history.people), np.bool_)
    for release in history.releases:
        ever |= release.known_member >= 0
    return ever


def _unasked(history: History, labels: Labels, answer: Integers) -> int:
    """Values with a bound that no question is about, or not of all labels that have them; `answer` is per label."""
    asked: dict[tuple[str, str], list[Question]] = {}
    for question in labels.questions:
        asked.setdefault((question.attribute, question.value), []).append(question)
    unasked = 0
    for value, bound in enumerate(history.bounds):
        having = np.flatnonzero(answer == value)
        if bound < 1 and len(having):
            about = asked.get((history.attribute, history.values[value]), [])
            unasked += not any(one.bound <= bound and np.isin(having, one.labels).all() for one in about)
    return unasked


def _numbered(keys: Integers) -> tuple[Integers, Integers]:
    """The different keys in order, and which of them each is; without sorting where they are small."""
    largest = int(keys.max(initial=-1))
    if largest > 8 * len(keys) + 1024:
        found, inverse = np.unique(keys, return_inverse=True)
        return found, inverse
    there = np.zeros(largest + 1, np.bool_)
    there[keys] = True
    number = np.cumsum(there) - 1
    return np.flatnonzero(there), number[keys]


def _rows(people: _People, pod: Integers, releases: Sequence[Publication]) -> dict[str, int]:
    """What is wrong with the pods of one release: everybody there is in one, and it is whole, in one class."""
    member = releases[0].known_member
    problems = {"classes that differ": sum(not _same(one.member, member) for one in releases[1:])}
    problems["people without a pod, or absent ones with one"] = int(np.count_nonzero((member >= 0) != (pod >= 0)))
    if any(problems.values()):
        return problems
    here = np.flatnonzero(pod >= 0)
    pods, pod = _numbered(pod[here])
    member, kind, place = member[here], people.kind[here], people.place[here]
    at, of = np.empty(len(pods), member.dtype), np.empty(len(pods), kind.dtype)
    at[pod], of[pod] = member, kind
    split, mixed = at[pod] != member, of[pod] != kind
    problems["members outside the class of their pod"] = int(np.count_nonzero(split))
    problems["members with another type than their pod"] = int(np.count_nonzero(mixed))
    if mixed.any():
        return problems
    width = people.width[of]
    taken = np.zeros(int(width.sum()), np.bool_)
    taken[(np.cumsum(width) - width)[pod] + place] = True
    empty = int(np.count_nonzero(~taken))
    problems["seats of pods that are empty"] = empty
    problems["seats of pods that are taken twice"] = len(here) - (len(taken) - empty)
    return problems


def _same(one: Integers | None, other: Integers) -> bool:
    return one is other or (one is not None and np.array_equal(one, other))


def _counts(history: History, number: int) -> dict[str, int]:
    """Whether the classes show what their people have."""
    release, value = history.releases[number], history.value
    assert value is not None
    here = np.flatnonzero(release.known_member >= 0)
    member, values = release.known_member[here].astype(np.int64), release.counts.shape[1]
    if int(member.max(initial=-1)) >= len(release) or int(value[here].max(initial=-1)) >= values:
        return {"people in classes, or with values, that there are not": 1}
    counts = np.bincount(member * values + value[here], minlength=release.counts.size)
    return {
        "classes that show other values than their people have": int(
            np.count_nonzero((counts.reshape(release.counts.shape) != release.counts).any(axis=1))
        )
    }
