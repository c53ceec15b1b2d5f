"""The columns of a release, for programs and in words: what each is, and how to read a cell.

Both are made from the policy and the names of the columns. Programs also learn what the names of groups stand for that
the published table shows itself: what a group holds is what the policy declares, whoever is in the table, and domains
that come from the data have no groups. The words have no count, no value of a hierarchy, nothing that depends on rows;
letters stand for values in them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain import sets
from sequester.domain.build import declared
from sequester.domain.kinds import kind_of
from sequester.outputs import WEIGHT
from sequester.policy.attributes import Drift, QuasiIdentifier, Sensitive
from sequester.policy.methods import Pods
from sequester.policy.model import Policy

MOST_VALUES = 20_000
_WRITTEN = {
    "interval": (("", "interval"),),
    "midpoint": (("", "middle"),),
    "bounds": (("_min", "min"), ("_max", "max")),
}
_GENERALIZED = "May be known about a person, so it is generalized: the value is one that the cell allows."
_MIDDLE = "May be known about a person, so only the middle of the range that the value lies in is given."
_DECOYS = (
    "Some rows are decoys: they are about nobody, and nobody can tell which. They stand in where people are missing, "
    "so that values hide each other."
)


class Row(NamedTuple):
    """What the dictionary says of one column."""

    column: str
    role: str
    kind: str
    notation: str
    missing: str
    changes: str
    explanation: str


def columns_of(policy: Policy, table: pa.Table) -> list[dict[str, Any]]:
    """What a program needs to know of every column, in their order.

    name, role  as published
    kind        of the values, "any" where they are published as they are
    of          the attribute that it belongs to
    written     how cells say it: min or max (of two columns), interval, middle, group (names and sets of them),
                prefix, calendar, value, band, several, weight (how many people a row stands for)
    missing     whether a cell may stand for no value
    range       lowest and highest value, where the policy declares them
    groups      the values in every group that a cell names
    values      "first" where it is what a person had when she was first published
    """
    known = {column["name"]: column for column in _columns(policy)}
    columns = [dict(known[name]) for name in table.column_names]
    for column in columns:
        attribute = policy.quasi_identifiers.get(column["of"])
        if attribute is not None and (groups := _groups(policy, attribute, table[column["name"]])):
            column["groups"] = groups
    return columns


def dictionary(policy: Policy, table: pa.Table) -> str:
    """One line per published column, in the order of the table, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    known = {column["name"]: column for column in _columns(policy)}
    writer.writerows(_in_words(policy, known[name]) for name in table.column_names)
    if isinstance(policy.method, Pods) and not policy.has_weights:
        said = f"{_DECOYS} Let every row count as the weight in release.json."
        writer.writerow(Row("(rows)", "", "", "", "", "", said))
    return text.getvalue()


def _in_words(policy: Policy, column: Mapping[str, Any]) -> Row:
    name, of, role = column["name"], column["of"], column["role"]
    if role == "weight":
        said = (
            f"How many people a row stands for. {_DECOYS} Let every row count as its weight: they add up to the people."
        )
        return Row(name, role, "number", "a number from 0 to 1, the same in every row", "never", "yes", said)
    attribute = policy.attributes[of]
    if (quasi := policy.quasi_identifiers.get(of)) is not None:
        return _quasi_in_words(policy, column, quasi)
    if isinstance(attribute, Sensitive):
        return _sensitive(name, attribute)
    changes = "yes" if getattr(attribute, "changes", False) else "no"
    said = "Tells nothing about a person; published as it is."
    return Row(name, role, "any", "the value as it is", "an empty cell", changes, said)


def _quasi_in_words(policy: Policy, column: Mapping[str, Any], attribute: QuasiIdentifier) -> Row:
    kind, of, end = kind_of(attribute), column["of"], column["written"]
    about = (column["name"], column["role"], kind.name)
    changes = "yes" if attribute.changes else "no"
    if isinstance(attribute.changes, Drift):
        changes = "yes, within limits"
    if end not in ("min", "max", "middle"):
        missing = "the word missing; {a, missing} where the value may be missing; * may be missing, too"
        missing = missing if attribute.missing == "category" else _never(attribute)
        words = f"{_GENERALIZED} Levels: {kind.levels(attribute, policy.path)}."
        return Row(*about, kind.notation(attribute), missing, changes, words)
    missing = "an empty cell, where the value may be missing" if attribute.missing == "category" else _never(attribute)
    if end == "middle":
        notation = "a number: the middle between the lowest and the highest that the value may be"
        return Row(*about, notation, missing, changes, _MIDDLE)
    word, other = ("lowest", "max") if end == "min" else ("highest", "min")
    words = f"{_GENERALIZED} Belongs to {of}, with {of}_{other}; both ends are included."
    return Row(*about, f"a number: the {word} that the value of {of} may be", missing, changes, words)


def _columns(policy: Policy) -> Iterator[dict[str, Any]]:
    """Every column that a release under this policy may have."""
    for name, attribute in policy.attributes.items():
        if (quasi := policy.quasi_identifiers.get(name)) is not None:
            yield from _quasi(policy, name, attribute.role, quasi)
        elif isinstance(attribute, Sensitive):
            several = kind_of(attribute).several
            yield {
                "name": name,
                "role": attribute.role,
                "kind": attribute.kind,
                "of": name,
                "written": "band" if attribute.bands is not None else "several" if several else "value",
                "missing": attribute.missing == "category",
                **({"separator": attribute.separator or ";"} if several else {}),
                **({"values": "first"} if attribute.values == "first" else {}),
            }
        else:
            yield {"name": name, "role": attribute.role, "kind": "any", "of": name, "written": "value", "missing": True}
    if policy.has_weights:
        # How many people a row stands for.
        about = {"role": "weight", "kind": "number", "of": WEIGHT, "written": "weight", "missing": False}
        yield {"name": WEIGHT, **about, "range": [0, 1]}


def _quasi(policy: Policy, name: str, role: str, attribute: QuasiIdentifier) -> Iterator[dict[str, Any]]:
    kind = kind_of(attribute)
    for end, written in _WRITTEN[policy.output.numbers] if kind.numeric else (("", kind.written),):
        yield {
            "name": f"{name}{end}",
            "role": role,
            "kind": kind.name,
            "of": name,
            "written": written,
            "missing": attribute.missing == "category",
            **({} if attribute.range is None else {"range": list(attribute.range)}),
        }


def _groups(policy: Policy, attribute: QuasiIdentifier, cells: pa.ChunkedArray) -> dict[str, list[str]]:
    """The values in every group that cells name, alone or in a set; none of a domain that is not declared."""
    hierarchy = declared(attribute, policy.path) if attribute.hierarchy is not None else None
    if hierarchy is None:
        return {}
    leaves, groups = hierarchy.names[0], {}
    for text in sorted(pc.unique(cells.cast(pa.string())).drop_null().to_pylist()):
        names = [text] if text in hierarchy.labels else next(sets.readings(text), [])
        for name in names:
            first, last = hierarchy.labels.get(name, (0, 0))
            if first < last and last - first + 1 < hierarchy.size:
                groups[name] = list(leaves[first : last + 1])
    return groups if sum(map(len, groups.values())) <= MOST_VALUES else {}


def _sensitive(name: str, attribute: Sensitive) -> Row:
    words = ["Must not be learnt about a person; rows that look alike otherwise hide whose it is."]
    notation = kind_of(attribute).sensitive_notation(attribute)
    if attribute.bands is not None:
        words.append("Numbers are published as their bands.")
    if attribute.is_graded:
        notation += ", or the name of a group of values: one of them, untold which; * any value"
        words.append("Some are published less exactly than known, by their kind or because people want it.")
    changes = "no" if attribute.stays else "yes"
    if attribute.values == "first":
        words.append("What a person had when she was first published; what it became later is not.")
    if attribute.permanent:
        changes = "yes, but some values stay"
    missing = "the word missing" if attribute.missing == "category" else _never(attribute)
    return Row(name, attribute.role, attribute.kind, notation, missing, changes, " ".join(words))


def _never(attribute: QuasiIdentifier | Sensitive) -> str:
    return "never: records without a value are left out" if attribute.missing == "suppress" else "never"
