"""What people themselves allow: whether they are published at all, and how much their own value may say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain import codec
from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.domain.nodes import coarser
from sequester.errors import Problem
from sequester.ingest.source import quietly
from sequester.ingest.validate import DistinctCells, amount, missing_values, places
from sequester.policy.attributes import Consent


def withheld(
    column: pa.ChunkedArray, name: str, consent: Consent, *, tokens: Sequence[str]
) -> tuple[codec.Mask, list[Problem]]:
    """Per row, whether its person does not agree; an empty cell is no agreement, any other word is a problem."""
    values, index, absent = _texts(column, name, tokens)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    said = {}
    for key, listed in (("given", consent.given), ("withheld", consent.withheld)):
        said[key] = codec.to_mask(pc.is_in(words, value_set=pa.array([word.lower() for word in listed], pa.string())))
    agrees = said["given"] & ~absent
    wrong = np.append(~agrees & ~said["withheld"] & ~absent, False)[index]
    problems = []
    if count := int(wrong.sum()):
        message = f"{amount(count)} {'says' if count == 1 else 'say'} neither yes nor no ({places(wrong)})"
        fix = "correct them, or list the words with `given` and `withheld`"
        problems.append(Problem(f"{message}; {fix}", column=name, rows=count))
    return ~np.append(agrees, False)[index], problems


def guarding_nodes(column: pa.ChunkedArray, name: str, *, tokens: Sequence[str]) -> DistinctCells:
    """The nodes that people want their values published as; -1 for those who do not say."""
    values, index, absent = _texts(column, name, tokens)
    place = np.where(absent, np.int32(-1), np.arange(len(values), dtype=np.int32))
    return DistinctCells(pc.utf8_trim_whitespace(values), np.append(place, np.int32(-1))[index])


def raise_grades(
    codes: Codes, own: DistinctCells, domain: Hierarchy, *, column: str, rows: Codes | None
) -> tuple[Codes, list[Problem]]:
    """The codes that records are published as, no finer than their people want; `rows` are their rows in the column."""
    nodes = codec.to_codes(domain, own.values)
    index = own.index if rows is None else own.index[rows]
    wanted = np.append(nodes, np.int32(-1))[index]
    asked = index >= 0
    unknown = asked & (wanted < 0)
    published, fits = coarser(domain, codes, np.where(asked & ~unknown, wanted, codes))
    problems = []
    for wrong, what in ((unknown, "is no node of the hierarchy"), (~fits, "is not above the person's own value")):
        if count := int(wrong.sum()):
            where = np.zeros(len(own.index), np.bool_)
            where[np.arange(len(where)) if rows is None else rows] = wrong
            message = f"of {amount(count)} the node {what} ({places(where)}); correct the cells, or empty them"
            problems.append(Problem(message, column=column, rows=count))
    return published, problems


def _texts(column: pa.ChunkedArray, name: str, tokens: Sequence[str]) -> tuple[pa.Array, Codes, codec.Mask]:
    unread = Problem("has a type that cannot be read as text; convert it", column=name)
    values, index = quietly(lambda: codec.distinct(column), lambda _: unread, errors=pa.ArrowException)
    texts = quietly(lambda: codec.to_text(values), lambda _: unread, errors=pa.ArrowException)
    return texts, index, missing_values(texts, tokens)
