"""How many people an audit found exposed: the one number that somebody who answers for the data asks for first.

Beside it the few findings to read first, and all of them as one table: thousands in a Parquet file take little room,
and can be asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from sequester.attacks.finding import Finding, degree_of, leaves_out

Key = tuple[str | None, str | None]


@dataclass(frozen=True)
class Tally:
    """The exposed of some findings, each counted once.

    people    those who are known and exposed above what is allowed; `certain`: tied to a value with certainty, or left
              with nobody to hide among
    classes   where nobody is known: published classes whose people *may be* exposed, and of those `certain_classes`
    releases  whole releases, where findings are about no class (the order of rows)
    """

    people: int = 0
    certain: int = 0
    classes: int = 0
    certain_classes: int = 0
    releases: int = 0

    def __str__(self) -> str:
        parts = []
        if self.people:
            parts.append(f"{_many(self.people, 'person is', 'people are')} exposed, {self.certain:,} for certain")
        if self.classes:
            certain = f", of {self.certain_classes:,} for certain"
            parts.append(f"people of {_many(self.classes, 'class', 'classes')} may be exposed{certain}")
        if self.releases:
            parts.append(f"everybody in {_many(self.releases, 'release', 'releases')} may be exposed")
        return "; ".join(parts) or "nobody is exposed"

    def to_dict(self) -> dict[str, int]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Exposed:
    """Who is exposed, counted: in all, per attack, per value (None: who they are), per release.

    `at_least`: an attack found more than it tells, so there may be more.
    """

    total: Tally = Tally()
    by_attack: Mapping[str, Tally] = field(default_factory=dict)
    by_value: Mapping[Key, Tally] = field(default_factory=dict, repr=False)
    by_release: Mapping[int, Tally] = field(default_factory=dict)
    at_least: bool = False

    @classmethod
    def of(cls, findings: Sequence[Finding], *, nobody: Set[Any] = frozenset()) -> Exposed:
        """Count the exposed of findings; a person is in every group that one of her findings is in, once.

        nobody  ids of rows about nobody: whoever is misled to one of them exposes no person
        """
        told: dict[tuple[str, str | None], int] = {}
        for finding in findings:
            about = (finding.attack, finding.attribute)
            told[about] = told.get(about, 0) + 1
        return cls(
            total=_tally(findings, nobody),
            by_attack=_grouped(((finding.attack, finding) for finding in findings), nobody),
            by_value=_grouped(((_value(finding), finding) for finding in findings), nobody),
            by_release=dict(
                sorted(_grouped(((number, one) for one in findings for number in one.releases), nobody).items())
            ),
            at_least=leaves_out(max(told.values(), default=0)),
        )

    def __str__(self) -> str:
        """The sentence that every audit begins with."""
        said = f"at least {self.total}" if self.at_least else str(self.total)
        return f"{said[:1].upper()}{said[1:]}."

    def groups(self) -> list[tuple[str, str, Tally]]:
        """Every group as (per what, which, how many), the largest first."""
        return [
            *(("attack", attack, tally) for attack, tally in _largest(self.by_attack)),
            *(("release", str(number), tally) for number, tally in self.by_release.items()),
            *(("value", named_value(key), tally) for key, tally in _largest(self.by_value)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values. Values are sensitive: for the publisher."""
        return {
            **self.total.to_dict(),
            "at_least": self.at_least,
            "by_attack": {attack: tally.to_dict() for attack, tally in self.by_attack.items()},
            "by_value": [
                {"attribute": attribute, "value": value, **tally.to_dict()}
                for (attribute, value), tally in self.by_value.items()
            ],
            "by_release": [{"release": number, **tally.to_dict()} for number, tally in self.by_release.items()],
        }


def named_value(key: Key) -> str:
    """A value with its attribute; who somebody is has neither."""
    attribute, value = key
    return "who they are" if value is None else f"{attribute}: {value}" if attribute else value


def is_certain(finding: Finding) -> bool:
    """Whether a value is certain, or nobody is left to hide among; a distance or a share of rows is neither."""
    if finding.about_value:
        return finding.observed >= 1
    return finding.observed <= 1 and finding.observed < finding.required


def _value(finding: Finding) -> Key:
    return (None, None) if finding.value is None else (finding.attribute, finding.value)


def _grouped(pairs: Iterable[tuple[Any, Finding]], nobody: Set[Any]) -> dict[Any, Tally]:
    groups: dict[Any, list[Finding]] = {}
    for key, finding in pairs:
        groups.setdefault(key, []).append(finding)
    return {key: _tally(found, nobody) for key, found in groups.items()}


def _tally(findings: Sequence[Finding], nobody: Set[Any]) -> Tally:
    people: set[Any] = set()
    certain: set[Any] = set()
    classes: set[tuple[int, int]] = set()
    certain_classes: set[tuple[int, int]] = set()
    releases: set[int] = set()
    for finding in findings:
        sure = is_certain(finding)
        if finding.people:
            people.update(finding.people)
            certain.update(finding.people if sure else ())
        elif finding.classes:
            classes.update(finding.classes)
            certain_classes.update(finding.classes if sure else ())
        else:
            releases.update(finding.releases)
    people, certain = people - nobody, certain - nobody
    return Tally(len(people), len(certain), len(classes), len(certain_classes), len(releases))


def _largest(groups: Mapping[Any, Tally]) -> list[tuple[Any, Tally]]:
    return sorted(groups.items(), key=lambda group: (-group[1].people, -group[1].classes))


def _many(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def worst_findings(findings: Sequence[Finding], *, most: int = 5) -> tuple[int, ...]:
    """Their numbers, counted from 1, the worst first.

    What is certain comes before what is likely, known people before classes, values before who somebody is, then what
    misses the bound by the most. The worst of every attack are told before a second one of any, and nobody in the same
    classes twice while there are others.
    """
    ranked = sorted(range(len(findings)), key=lambda place: (*_rank(findings[place]), place))
    told: dict[str, int] = {}
    turns, known = {}, set()
    for place in ranked:
        attack, about = findings[place].attack, (findings[place].classes, findings[place].people)
        if about in known:
            turns[place] = len(findings)
            continue
        known.add(about)
        turns[place] = told[attack] = told.get(attack, 0) + 1
    first = sorted(ranked, key=lambda place: turns[place])[:most]
    return tuple(place + 1 for place in ranked if place in set(first))


def _rank(finding: Finding) -> tuple[bool, bool, bool, float]:
    return not is_certain(finding), not finding.people, not finding.about_value, -degree_of(finding)


_TEXT = pa.dictionary(pa.int32(), pa.string())
_PLACE = pa.struct([("release", pa.int32()), ("class", pa.int32())])
SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("attack", _TEXT),
        ("adversary", _TEXT),
        ("releases", pa.list_(pa.int32())),
        ("attribute", _TEXT),
        ("value", _TEXT),
        ("required", pa.float64()),
        ("observed", pa.float64()),
        ("certain", pa.bool_()),
        ("people", pa.list_(pa.string())),
        ("classes", pa.list_(_PLACE)),
        ("witness", pa.string()),
    ]
)
"""Columns as `Finding` has them. `number` is what `Audit.explain` takes, ids of people are text, a witness is JSON."""


def findings_table(findings: Sequence[Finding]) -> pa.Table:
    """One row per finding, in their order. Holds sensitive values and person ids: for the publisher."""
    columns = {name: [getattr(one, name, None) for one in findings] for name in SCHEMA.names} | {
        "number": range(1, len(findings) + 1),
        "certain": [is_certain(one) for one in findings],
        "people": [[str(person) for person in one.people] for one in findings],
        "classes": [[{"release": release, "class": number} for release, number in one.classes] for one in findings],
        "witness": [json.dumps(dict(one.witness), ensure_ascii=False, default=str) for one in findings],
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)
