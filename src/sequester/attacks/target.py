"""One target, as the papers' own attacker asks for her: which published rows may be hers, and which cannot be, and why.

The attacker knows her quasi-identifiers and the first release that has her (Fung et al., section 3), and the releases,
and nobody else; she is in every release since. Rows that match her are excluded where too few rows of another release
could be their buddies:

* forward, of a release that has her, by a later one: all its rows are there again, few of them where she may be;
* cross, of a later release, by an earlier one that has her: few of its rows come from where she may have been;
* backward, of a release that has her, by one before she joined: some of its rows were there already.

Rows of one class with one label are alike, so what is excluded is a number of them: the rows left are the most that
can be about people like her in one world (`between` and `unforced` of `solvers.buddies`, for all classes that match
her together). Two releases are exact for a target whose quasi-identifiers are all known. With more releases the
smallest number of any two counts, which is a composition of attacks (section 7.1): sound, and not always the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import PEOPLE, Untried
from sequester.attacks.finding import Finding
from sequester.attacks.solvers.buddies import Classes, Counts, send
from sequester.attacks.solvers.comparison import Comparison, compare
from sequester.history import History
from sequester.history.boxes import intersecting
from sequester.history.drift import reach
from sequester.history.label import Labels
from sequester.policy.words import amount

Way = Literal["forward", "cross", "backward"]
Mask = NDArray[np.bool_]

_MOST_PAIRS = 1 << 14
"""Pairs of classes that are looked at for people who need not exist."""

_WHO = f"{PEOPLE}, or ask about one person (`target=...`)"

HER = "the target"
ANY_VALUE = "any value"


@dataclass(frozen=True)
class SoughtPerson:
    """A target: what is known of her quasi-identifiers, as it was given and as codes, and the first release with her.

    lo, hi  (quasi-identifiers,) what her values lie between
    told    per quasi-identifier, whether cells of the release she joined bound it
    since   counted from 0
    cells   how the box of a row is written, by its release and its place in it
    """

    values: dict[str, str]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    told: Mask
    since: int
    cells: Callable[[int, int], tuple[str, ...]]


@dataclass(frozen=True)
class Excluded:
    """How many rows an attack excludes, of so many, by reading another release (counted from 1)."""

    attack: Way
    release: int
    rows: int
    of: int

    def __str__(self) -> str:
        left, them = self.of - self.rows, "at least " * (self.rows < self.of)
        if self.attack == "forward":
            again = "it is" if self.of == 1 else f"all {self.of} are"
            there = f"at most {left} of them" if left else "but not"
            why = f"{again} in release {self.release} again, {there} among the rows there that match her"
        elif self.attack == "cross":
            most = f"at most {left} of them" if left else "none"
            why = f"{most} can come from the rows of release {self.release} that match her"
        else:
            why = f"{them}{self.rows} must have been in release {self.release}, before she joined"
        return f"{self.rows} of {self.of} {'is' if self.rows == 1 else 'are'} not hers: {why}"


@dataclass(frozen=True)
class Matching:
    """The rows of one class with one label that match her.

    number    of the class, counted from 1; `box` as it is published
    rows      their places in the release, counted from 1
    left      how many of them may be hers, by all attacks together
    excluded  what each attack excludes by itself
    """

    number: int
    box: tuple[str, ...]
    label: str
    rows: tuple[int, ...]
    left: int
    excluded: tuple[Excluded, ...]


@dataclass(frozen=True)
class SearchedRelease:
    """One release that may have her: the rows that match her, and per label how many of them may be hers at once."""

    number: int
    name: str
    matching: tuple[Matching, ...]
    labels: dict[str, int]

    @property
    def left(self) -> int:
        """How many rows may be hers at once."""
        return sum(self.labels.values())

    @property
    def rows(self) -> int:
        """How many rows match her by themselves."""
        return sum(len(one.rows) for one in self.matching)


@dataclass(frozen=True)
class Target:
    """What the releases tell about one target.

    values    what is known of her
    since     the first release that has her, counted from 1
    required  the fewest rows that must be left
    columns   names of the quasi-identifiers, in the order of the boxes
    label     names of what rows show beside
    notes     what was taken for granted
    """

    values: dict[str, str]
    since: int
    required: int
    columns: tuple[str, ...]
    label: str
    releases: tuple[SearchedRelease, ...]
    notes: tuple[str, ...]

    @property
    def left(self) -> int:
        """The fewest rows that may be hers, of any release; 0 where she can be in none."""
        return min((seen.left for seen in self.releases), default=0)

    def __str__(self) -> str:
        who = ", ".join(f"{name}={value}" for name, value in self.values.items())
        if not self.left:
            return f"Nobody with {who} can be in the releases since release {self.since}."
        worst = min(self.releases, key=lambda seen: (seen.left, seen.number))
        short = f"; {self.required} are required" if worst.left < self.required else ""
        rows = f"{worst.left} of the {worst.rows} rows of release {worst.number} that match may be hers"
        if worst.left == worst.rows:
            rows = f"{worst.rows} rows of release {worst.number} match, and none is excluded"
        if worst.rows == 1:
            rows = f"1 row of release {worst.number} matches, and it is hers"
        return f"{who}, since release {self.since}: {rows}{short}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values. They hold sensitive values: keep them private."""
        return {
            "target": dict(self.values),
            "since": self.since,
            "required": self.required,
            "left": self.left,
            "releases": [
                {
                    "release": seen.number,
                    "name": seen.name,
                    "rows": seen.rows,
                    "left": seen.left,
                    "matching": [
                        {
                            "class": one.number,
                            "box": dict(zip(self.columns, one.box, strict=True)),
                            "label": one.label,
                            "rows": list(one.rows),
                            "left": one.left,
                            "excluded": [
                                {"attack": by.attack, "release": by.release, "rows": by.rows, "why": str(by)}
                                for by in one.excluded
                            ],
                        }
                        for one in seen.matching
                    ],
                }
                for seen in self.releases
            ],
            "notes": list(self.notes),
        }


def anybody(history: History) -> Untried | None:
    """What the attacks tell about somebody in two classes who could exist, and need not; None where enough is left.

    Attacks on people who are not known look at those who exist in every world. A reader who looks for one person need
    not ask whether she does: of rows that match her too few may be left. Of what changes freely nothing is said, since
    then everybody matches everything.
    """
    fewest, least = history.fewest, history.fewest
    if not history.permanent or not history.links.any():
        return None
    for comparison in compare(history):
        pairs, buddies = comparison.comparable, comparison.buddies
        if len(pairs[0]) > _MOST_PAIRS:
            continue
        if buddies is not None:
            left = buddies.between(*pairs)
            newcomers = buddies.unforced(np.arange(len(comparison.after), dtype=np.int32)[comparison.after.any(axis=1)])
            # Where everybody has been there before, nobody is new.
            new = newcomers.sum(axis=1)
            least = min(least, int(new[new > 0].min(initial=fewest)))
        else:
            left = np.minimum(comparison.before[pairs[0]], comparison.after[pairs[1]])
        there = left.sum(axis=1)
        least = min(least, int(there[there > 0].min(initial=fewest)))
    if least >= fewest:
        return None
    why = f"somebody whom two classes fit would be left {amount(least, 'row')}, and {fewest:,} must be"
    return Untried(("forward", "cross", "backward"), why, ("people who need not exist",), _WHO)


def look_for(history: History, wanted: SoughtPerson, labels: Labels) -> Target:
    """The rows of every release that may be the target's; `labels` are the values of the history."""
    places = {number: _matching(history, wanted, number) for number in range(wanted.since, len(history))}
    notes = [f"no row of release {number + 1} matches her" for number, classes in places.items() if not len(classes)]
    if notes:
        places = {}
    search = _Search(history, wanted, places)
    for pair in compare(history):
        if pair.second not in places:
            continue
        if pair.first in places:
            search.both(pair)
        else:
            search.joined(pair)
        if pair.buddies is None:
            notes.append(f"rows of release {pair.first + 1} are not in release {pair.second + 1}: somebody left")
    return Target(
        values=wanted.values,
        since=wanted.since + 1,
        required=history.fewest,
        columns=history.quasi_names,
        label=", ".join(labels.columns),
        releases=tuple(search.seen(number) for number in places),
        notes=tuple(notes),
    )


def findings_of(target: Target, history: History, labels: Labels) -> Iterator[Finding]:
    """Releases of which too few rows are left, and values that too many of the rows left have."""
    names = history.values if history.permanent else (ANY_VALUE,)
    questions = labels.questions if history.permanent else ()
    for seen in target.releases if target.left else ():
        left = np.array([seen.labels.get(name, 0) for name in names])
        by: dict[str, int] = {}
        used = {seen.number}
        for one in seen.matching:
            for crack in one.excluded:
                by[crack.attack] = by.get(crack.attack, 0) + crack.rows
                used.add(crack.release)
        name = max(by, key=lambda attack: by[attack]) if by else None
        finding = Finding(
            attack=name or "k",
            adversary="neighbor" if by else "outsider",
            releases=tuple(sorted(used)),
            required=target.required,
            observed=seen.left,
            classes=tuple(dict.fromkeys((seen.number, one.number) for one in seen.matching)),
            people=(HER,),
            witness={
                "rows": {
                    label: [sum(len(one.rows) for one in seen.matching if one.label == label)] for label in seen.labels
                },
                "remaining": seen.labels,
            },
            attribute=history.attribute,
        )
        if seen.left < target.required:
            yield finding
        for question in questions:
            share = Fraction(int(left[question.labels].sum()), max(int(left.sum()), 1))
            if share > question.bound:
                yield replace(
                    finding,
                    attack=name or "confidence",
                    required=float(question.bound),
                    observed=float(share),
                    value=question.value,
                    attribute=question.attribute,
                )


def _matching(history: History, wanted: SoughtPerson, number: int) -> Classes:
    """The classes of a release that she may be in."""
    release = history.releases[number]
    near = history.sides(wanted.lo[:, None], wanted.hi[:, None])
    if number > wanted.since and history.moves.any():
        near = reach(near, history.pace, number - wanted.since)
    found = intersecting(*near, *history.sides(release.lo, release.hi))[1]
    if number == wanted.since:
        here = wanted.told
        meets = (release.lo[here] <= wanted.hi[here, None]) & (release.hi[here] >= wanted.lo[here, None])
        found = found[np.all(meets[:, found], axis=0)]
    return found


class _Search:
    """Rows left per release, class that matches and label; `most` bounds a label over all classes of a release."""

    def __init__(self, history: History, wanted: SoughtPerson, places: dict[int, Classes]) -> None:
        self.history, self.wanted, self.places = history, wanted, places
        self.rows = {number: history.rows_of(number)[classes] for number, classes in places.items()}
        self.left = {number: rows.copy() for number, rows in self.rows.items()}
        self.most = next((rows.sum(axis=0) for rows in self.rows.values()), np.zeros(0, np.int64))
        self.by: dict[int, list[tuple[Way, int, Counts]]] = {number: [] for number in places}

    def both(self, pair: Comparison) -> None:
        """Two releases that have her: rows of either that can be buddies where she may be."""
        ways: tuple[tuple[Way, int, int], ...] = (
            ("forward", pair.first, pair.second),
            ("cross", pair.second, pair.first),
        )
        alike = _Alike(pair)
        arcs = alike.between(self.places[pair.first], self.places[pair.second])
        for way, number, other in ways:
            ends = pair.comparable[way == "cross"]
            left = np.array([alike.buddies(arcs & (ends == one)) for one in self.places[number].tolist()])
            self._keep(way, number, other, left)
        self.most = np.minimum(self.most, alike.buddies(arcs))

    def joined(self, pair: Comparison) -> None:
        """A release before she joined: rows of the later one that need not have been there."""
        alike, places = _Alike(pair), self.places[pair.second]
        left = np.array([alike.alone(np.array([one], np.int32)) for one in places.tolist()])
        self._keep("backward", pair.second, pair.first, left)
        self.most = np.minimum(self.most, alike.alone(places))

    def _keep(self, way: Way, number: int, other: int, left: Counts) -> None:
        self.left[number] = np.minimum(self.left[number], left)
        self.by[number].append((way, other, left))

    def seen(self, number: int) -> SearchedRelease:
        """What was found out about one release."""
        release, classes = self.history.releases[number], self.places[number]
        rows, left = self.rows[number], self.left[number]
        kinds = release.row_value if self.history.permanent else np.zeros_like(release.row_value)
        matching = []
        for place, label in np.argwhere(rows).tolist():
            # Of every attack the release by which it excludes most.
            strongest: dict[str, Excluded] = {}
            for way, other, kept in self.by[number]:
                gone = int(rows[place, label] - kept[place, label])
                if gone > (strongest[way].rows if way in strongest else 0):
                    strongest[way] = Excluded(way, other + 1, gone, int(rows[place, label]))
            where = np.flatnonzero((release.row_class == classes[place]) & (kinds == label))
            matching.append(
                Matching(
                    number=int(classes[place]) + 1,
                    box=self.wanted.cells(number, int(where[0])),
                    label=self.history.values[label] if self.history.permanent else ANY_VALUE,
                    rows=tuple((where + 1).tolist()),
                    left=int(min(left[place, label], self.most[label])),
                    excluded=tuple(strongest.values()),
                )
            )
        total = np.minimum(left.sum(axis=0), self.most)
        names = self.history.values if self.history.permanent else (ANY_VALUE,)
        found = {names[label]: int(total[label]) for label in np.flatnonzero(rows.sum(axis=0)).tolist()}
        return SearchedRelease(number + 1, release.name, tuple(matching), found)


class _Alike:
    """Maximum flows of rows to buddies, one label at a time, in which some rows are sent to some classes only.

    In an assignment of buddies the most rows of some classes that can be in classes all of which they are comparable
    with is what is left of them when they may go nowhere else and the most rows are assigned: whoever is not assigned
    then takes the place of the last of them that must make room for the others.
    """

    def __init__(self, pair: Comparison) -> None:
        self.before, self.after = pair.before, pair.after
        self.first, self.second = pair.comparable
        self.whole = pair.buddies is not None

    def between(self, first: Classes, second: Classes) -> Mask:
        """Pairs of comparable classes that she may be in."""
        return np.isin(self.first, first) & np.isin(self.second, second)

    def buddies(self, arcs: Mask) -> Counts:
        """(labels,) the most rows that have their buddies along these pairs."""
        if not self.whole:
            return self._flow(arcs)
        bound = np.isin(self.first, self.first[arcs])
        rows = self.before[np.unique(self.first[arcs])].sum(axis=0)
        left: Counts = rows - (self.before.sum(axis=0) - self._flow(~bound | arcs))
        return left

    def alone(self, second: Classes) -> Counts:
        """(labels,) the most rows of later classes without a buddy."""
        rows: Counts = self.after[second].sum(axis=0)
        if not self.whole:
            return rows
        left: Counts = rows - (self.before.sum(axis=0) - self._flow(~np.isin(self.second, second)))
        return left

    def _flow(self, arcs: Mask) -> Counts:
        sent: Counts = send(self.before, self.after, self.first[arcs], self.second[arcs]).sum(axis=0)
        return sent
