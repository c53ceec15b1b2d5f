"""The columns of a release in words, for analysts: what they are, and how to read a cell.

It is made from the policy and the names of the published columns, and from no cell: it has no count, no value of a
hierarchy, nothing that depends on rows. Letters stand for values in it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from sequester.domain.kinds import kind_of
from sequester.outputs import WEIGHT
from sequester.policy.attributes import Drift, Insensitive, QuasiIdentifier, Sensitive
from sequester.policy.methods import Pods
from sequester.policy.model import Policy

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


_ROWS = Row(
    "(rows)",
    "",
    "",
    "",
    "",
    "",
    f"{_DECOYS} Let every row count as the weight in release.json.",
)
_WEIGHT = Row(
    WEIGHT,
    "weight",
    "number",
    "a number from 0 to 1, the same in every row",
    "never",
    "yes",
    f"How many people a row stands for. {_DECOYS} Let every row count as its weight: they add up to the people.",
)


def dictionary(policy: Policy, table: pa.Table) -> str:
    """One line per published column, in the order of the table, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    known = {row.column: row for row in _rows(policy)}
    writer.writerows(known[name] for name in table.column_names)
    if isinstance(policy.method, Pods) and not policy.has_weights:
        writer.writerow(_ROWS)
    return text.getvalue()


def _rows(policy: Policy) -> Iterator[Row]:
    """Every column that a release under this policy may have."""
    for name, attribute in policy.attributes.items():
        generalized = policy.quasi_identifiers.get(name)
        if generalized is not None:
            yield from _quasi(policy, name, attribute.role, generalized)
        elif isinstance(attribute, Sensitive):
            yield _sensitive(name, attribute)
        elif isinstance(attribute, Insensitive):
            changes = "yes" if attribute.changes else "no"
            words = "Tells nothing about a person; published as it is."
            yield Row(name, attribute.role, "any", "the value as it is", "an empty cell", changes, words)
    if policy.has_weights:
        yield _WEIGHT


def _quasi(policy: Policy, name: str, role: str, attribute: QuasiIdentifier) -> Iterator[Row]:
    numbers, changes = policy.output.numbers, _changes(attribute)
    kind = kind_of(attribute)
    if not kind.numeric or numbers == "interval":
        words = f"{_GENERALIZED} Levels: {kind.levels(attribute, policy.path)}."
        yield Row(name, role, kind.name, kind.notation(attribute), _missing(attribute), changes, words)
        return
    missing = "an empty cell, where the value may be missing" if attribute.missing == "category" else _never(attribute)
    if numbers == "midpoint":
        notation = "a number: the middle between the lowest and the highest that the value may be"
        yield Row(name, role, kind.name, notation, missing, changes, _MIDDLE)
        return
    for end, word, other in (("min", "lowest", "max"), ("max", "highest", "min")):
        notation = f"a number: the {word} that the value of {name} may be"
        words = f"{_GENERALIZED} Belongs to {name}, with {name}_{other}; both ends are included."
        yield Row(f"{name}_{end}", role, kind.name, notation, missing, changes, words)


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


def _changes(attribute: QuasiIdentifier) -> str:
    if isinstance(attribute.changes, Drift):
        return "yes, within limits"
    return "yes" if attribute.changes else "no"


def _missing(attribute: QuasiIdentifier) -> str:
    if attribute.missing != "category":
        return _never(attribute)
    return "the word missing; {a, missing} where the value may be missing; * may be missing, too"


def _never(attribute: QuasiIdentifier | Sensitive) -> str:
    return "never: records without a value are left out" if attribute.missing == "suppress" else "never"
