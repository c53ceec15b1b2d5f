"""Write the sides of boxes as published text, and read published text back.

Every interval of a hierarchy has exactly one text, and reading that text gives the interval back. One leaf is its
own text; a group is its name; anything else is `[21-30]`, `[1964-04-01 - 1964-06-30]`, `[02138-02141]`, or for
categories a set of the largest groups inside, `{Asia, England}`. An interval that also holds the missing leaf is
`{[60-90], missing}`. Reading also understands what other tools write (see `intervals` and `sets`). A set whose
members are not neighbours is no interval; reading it as its hull would claim that people may have values which the
publisher ruled out, so it is not understood.

Both functions take distinct values, never rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain import sets
from sequester.domain.hierarchy import MISSING, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.domain.kinds.kind import Span
from sequester.domain.limits import refuse_listing

_NO_VALUE = frozenset({"", "na", "n/a", "nan", "nat", "none", "null"})


def write(hierarchy: Hierarchy, lo: Codes, hi: Codes) -> list[str]:
    """The published text of each interval of codes."""
    lo, hi = np.asarray(lo, np.int32), np.asarray(hi, np.int32)
    texts = _group_names(hierarchy, lo, hi)
    rest = np.flatnonzero(np.array([text is None for text in texts], bool))
    if len(rest):
        compose = _interval_texts if kind_of(hierarchy).ordered else _category_texts
        for place, text in zip(rest.tolist(), compose(hierarchy, lo[rest], hi[rest]), strict=True):
            texts[place] = text
    return [str(text) for text in texts]


def read(hierarchy: Hierarchy, texts: Sequence[str | None]) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """The interval of codes each text stands for, and whether it was understood; -1 where it was not."""
    reader = _Reader(hierarchy)
    spans = [reader.span(text or "") or (-1, -1) for text in texts]
    codes = np.array(spans, np.int32).reshape(-1, 2)
    return codes[:, 0], codes[:, 1], codes[:, 0] >= 0


def read_scattered(hierarchy: Hierarchy, texts: Sequence[str]) -> list[tuple[Span, ...] | None]:
    """Sets that other tools write whatever the order of the leaves: each as the runs of codes it consists of.

    For measuring only: such a set is no box. None where a text is no set of known values.
    """
    reader = _Reader(hierarchy)
    return [reader.runs(text.strip()) for text in texts]


def _group_names(hierarchy: Hierarchy, lo: Codes, hi: Codes) -> list[str | None]:
    """The name of each interval that is a leaf or a group, of the finest level; else None."""
    texts: list[str | None] = [None] * len(lo)
    open_ = np.ones(len(lo), bool)
    for level in range(hierarchy.height + 1):
        first, last = hierarchy.bounds(level)
        group = np.searchsorted(first, lo, side="right") - 1
        hits = np.flatnonzero(open_ & (first[group] == lo) & (last[group] == hi))
        open_[hits] = False
        names = hierarchy.names[level]
        for place, index in zip(hits.tolist(), group[hits].tolist(), strict=True):
            texts[place] = names[index]
    return texts


def _interval_texts(hierarchy: Hierarchy, lo: Codes, hi: Codes) -> list[str]:
    """Intervals of a scale, that is of numbers, dates or codes."""
    leaves = hierarchy.names[0]
    between = kind_of(hierarchy).between
    last = hierarchy.size - 1
    texts = []
    known = _group_names(hierarchy, lo, np.minimum(hi, last - 1)) if hierarchy.missing else [None] * len(lo)
    for low, high, name in zip(lo.tolist(), hi.tolist(), known, strict=True):
        absent = hierarchy.missing and high == last
        text = name or f"[{leaves[low]}{between}{leaves[high - absent]}]"
        texts.append(sets.join([text, MISSING], taken=hierarchy.labels) if absent else text)
    return texts


def _category_texts(hierarchy: Hierarchy, lo: Codes, hi: Codes) -> list[str]:
    """Each interval as the set of the largest groups inside it."""
    ends: list[list[int]] = [[] for _ in range(hierarchy.size)]
    for first, last in hierarchy.group_names:
        ends[first].append(last)
    texts, listed = [], 0
    for low, high in zip(lo.tolist(), hi.tolist(), strict=True):
        parts = []
        while low <= high:
            # Groups are found finest first, so their ends ascend.
            end = ends[low][bisect_right(ends[low], high) - 1]
            parts.append(hierarchy.group_names[low, end])
            low = end + 1
        listed += len(parts)
        refuse_listing(listed)
        texts.append(sets.join(parts, taken=hierarchy.labels))
    return texts


class _Reader:
    """Reads texts against one hierarchy."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy
        self.labels = hierarchy.labels
        self.kind = kind_of(hierarchy)
        # Plain lists are the fastest thing to bisect, one text at a time.
        self.scale: list[Any] = self.kind.worth(hierarchy.values).tolist()

    def span(self, text: str) -> Span | None:
        """The codes of a text, to the letter if possible, else without the blanks around it."""
        span = self._exactly(text)
        if span is None and text != text.strip():
            span = self._exactly(text.strip())
        if span is None and self.hierarchy.missing and text.strip().lower() in _NO_VALUE:
            span = self.labels[MISSING]
        return span

    def _exactly(self, text: str) -> Span | None:
        span = self._item(text)
        if span is not None or not self.kind.may_list(text):
            return span
        for parts in sets.readings(text):
            span = self._union(parts)
            if span is not None:
                return span
        return None

    def _item(self, text: str) -> Span | None:
        span = self.labels.get(text)
        if span is not None:
            return span
        if text and not text.strip("*"):
            return 0, self.hierarchy.size - 1
        return self.kind.span(text, self.scale)

    def _union(self, parts: Sequence[str]) -> Span | None:
        runs = self._runs(parts)
        return runs[0] if runs is not None and len(runs) == 1 else None

    def runs(self, text: str) -> tuple[Span, ...] | None:
        """The codes of a set as runs of neighbours, by the first way to take it apart that is understood."""
        return next((runs for parts in sets.readings(text) if (runs := self._runs(parts)) is not None), None)

    def _runs(self, parts: Sequence[str]) -> tuple[Span, ...] | None:
        spans = [self._item(part) for part in parts]
        merged: list[Span] = []
        for span in sorted(span for span in spans if span is not None):
            if merged and span[0] <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], span[1]))
            else:
                merged.append(span)
        return tuple(merged) if None not in spans else None
