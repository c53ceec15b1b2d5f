"""Category hierarchies: an inline tree, the rows of an ARX hierarchy file, or a flat list of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sequester.domain.hierarchy import EVERYTHING, MISSING, Codes, Hierarchy, nested
from sequester.domain.limits import MOST_LEVELS, refuse_large, too_deep
from sequester.errors import DataError, PolicyError, Problem

Rows = Sequence[Sequence[str]]


def from_tree(tree: dict[str, Any] | list[Any], *, missing: bool = False) -> Hierarchy:
    """Leaves depth-first, as written. Level L cuts the tree L steps above its deepest leaf, so that in an unbalanced
    tree a shallow leaf stays itself at the low levels."""
    problems: list[Problem] = []
    paths = list(_paths(tree, (), problems))
    if not paths and not problems:
        problems.append(Problem("the hierarchy has no values"))
    if problems:
        raise PolicyError(problems)
    single_root = isinstance(tree, dict) and len(tree) == 1 and next(iter(tree.values())) is not None
    if not single_root:
        paths = [(EVERYTHING, *path) for path in paths]
    height = max(len(path) for path in paths) - 1
    refuse_large(len(paths), height + 1)
    rows = [[path[min(len(path) - 1, height - level)] for level in range(height + 1)] for path in paths]
    return _from_checked(_check(rows, missing=missing), missing=missing)


def from_rows(rows: Rows, *, missing: bool = False) -> Hierarchy:
    """The rows of an ARX hierarchy: leaf, its group at level 1, at level 2, ...; the last column may be `*`.

    Siblings keep the order in which they first appear, or the order of their numbers if every leaf is one.
    """
    checked = _check(rows, missing=missing)
    order = _as_numbers(row[0] for row in checked)
    if order is not None:
        checked = [checked[i] for i in np.argsort(order, kind="stable")]
    return _from_checked(checked, missing=missing)


def from_values(values: Iterable[str], *, missing: bool = False, known: Sequence[str] = ()) -> Hierarchy:
    """A flat category: the known values as they are, the other distinct values in sorted order, then `*`."""
    distinct = {str(value) for value in values}
    leaves = [*known, *sorted(distinct.difference(known))]
    problems = []
    if not leaves:
        problems.append(Problem("there is no value to build a domain from"))
    if EVERYTHING in distinct:
        problems.append(Problem("'*' occurs as a value, but stands for any value; give it another name"))
    if missing and MISSING in leaves:
        problems.append(Problem(f"'{MISSING}' occurs as a value; add it to input.missing, or give it another name"))
    if problems:
        raise DataError(problems)
    codes = np.arange(len(leaves), dtype=np.int32)
    return nested("category", np.array(leaves, object), [(codes, tuple(leaves))], missing=missing)


def _paths(node: Any, above: tuple[str, ...], problems: list[Problem], depth: int = 1) -> Iterator[tuple[str, ...]]:
    """The labels from the top to each leaf, depth-first."""
    if len(above) > MOST_LEVELS:
        raise PolicyError(too_deep())
    if depth > 3 * MOST_LEVELS:
        raise PolicyError("the hierarchy is nested too deeply; leave out lists within lists")
    if isinstance(node, dict):
        for key, below in node.items():
            label = _label(key, problems)
            if below is None:
                yield (*above, label)
            else:
                yield from _paths(below, (*above, label), problems, depth + 1)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _paths(item, above, problems, depth + 1)
    else:
        label = _label(node, problems)
        if label == EVERYTHING:
            problems.append(Problem("the hierarchy has the leaf '*', which stands for any value"))
        yield (*above, label)
    if isinstance(node, dict | list | tuple) and not node and above:
        problems.append(Problem(f"group '{above[-1]}' of the hierarchy has no values"))


def _label(scalar: Any, problems: list[Problem]) -> str:
    if isinstance(scalar, bool):
        word = "true" if scalar else "false"
        problems.append(Problem(f"a label of the hierarchy reads as {word}; quote labels such as 'yes', 'no' or 'on'"))
    elif scalar is None or scalar == "":
        problems.append(Problem("a label of the hierarchy is empty; quote labels such as 'null'"))
    return str(scalar)


def _check(rows: Rows, *, missing: bool) -> Rows:
    """The distinct rows without columns that only say `*`, or one error with everything that is wrong."""
    if not rows:
        raise PolicyError("the hierarchy has no values")
    refuse_large(len(rows), max(map(len, rows)))
    problems = _problems_by_row(rows)
    if not problems:
        rows = list(dict.fromkeys(tuple(row) for row in rows))
        while len(rows[0]) > 1 and all(row[-1] and not row[-1].strip("*") for row in rows):
            rows = [row[:-1] for row in rows]
        problems = _problems_by_label(rows, missing=missing)
    if problems:
        raise PolicyError(problems)
    return rows


def _problems_by_row(rows: Rows) -> list[Problem]:
    columns = Counter(len(row) for row in rows).most_common(1)[0][0]
    problems = []
    for number, row in enumerate(rows, start=1):
        if len(row) != columns:
            problems.append(Problem(f"row {number} of the hierarchy has {len(row)} columns instead of {columns}"))
        elif not all(row):
            problems.append(Problem(f"row {number} of the hierarchy has an empty label in column {row.index('') + 1}"))
        elif row[0] == EVERYTHING:
            problems.append(Problem(f"row {number} of the hierarchy has the leaf '*', which stands for any value"))
    return problems


def _problems_by_label(rows: Rows, *, missing: bool) -> list[Problem]:
    problems = []
    for level in range(len(rows[0]) - 1):
        above: dict[str, dict[str, None]] = {}
        for row in rows:
            above.setdefault(row[level], {})[row[level + 1]] = None
        what = "value" if level == 0 else f"level {level} group"
        problems += [
            Problem(f"{what} '{label}' lies in several groups of level {level + 1}: {_quoted(groups)}; keep one")
            for label, groups in above.items()
            if len(groups) > 1
        ]
    members: dict[str, list[set[str]]] = {}
    for level in range(len(rows[0])):
        groups: dict[str, set[str]] = {}
        for row in rows:
            groups.setdefault(row[level], set()).add(row[0])
        for label, leaves in groups.items():
            sets = members.setdefault(label, [])
            if leaves not in sets:
                sets.append(leaves)
    everything = {row[0] for row in rows}
    problems += [
        Problem(f"'{label}' names {len(sets)} different groups; give each its own name")
        for label, sets in members.items()
        if len(sets) > 1
    ]
    if any(leaves != everything for leaves in members.get(EVERYTHING, ())):
        problems.append(Problem("'*' names a group that is not everything; give it another name"))
    if missing and MISSING in members:
        problems.append(Problem(f"the label '{MISSING}' stands for missing values; give it another name"))
    return problems


def _from_checked(rows: Rows, *, missing: bool) -> Hierarchy:
    rows = _depth_first(rows)
    labels = [[row[level] for row in rows] for level in range(len(rows[0]))]
    levels = [(_starts(column), tuple(dict.fromkeys(column))) for column in labels]
    return nested("category", np.array(labels[0], object), levels, missing=missing)


def _depth_first(rows: Rows) -> Rows:
    """Rows sorted so that every group of every level is a run, siblings in order of first appearance."""
    columns = range(len(rows[0]) - 1, -1, -1)
    first: list[dict[str, int]] = [{} for _ in columns]
    for number, row in enumerate(rows):
        for column, label in enumerate(row):
            first[column].setdefault(label, number)
    return sorted(rows, key=lambda row: [first[column][row[column]] for column in columns])


def _starts(column: list[str]) -> Codes:
    return np.array([i for i, label in enumerate(column) if i == 0 or column[i - 1] != label], np.int32)


def _as_numbers(leaves: Iterable[str]) -> list[float] | None:
    try:
        numbers = [float(leaf) for leaf in leaves]
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _quoted(labels: Iterable[str]) -> str:
    return ", ".join(f"'{label}'" for label in labels)
