"""Codes of fixed length, generalized by their prefixes: 02139, 0213*, 021*, ..., *."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequester.domain.hierarchy import EVERYTHING, MISSING, Codes, Hierarchy, nested
from sequester.domain.kinds.kind import Fault, Issue, Kind, Mask, Parsed, Span, amount, between, span_of
from sequester.errors import DataError, PolicyError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.policy.attributes import QuasiIdentifier, Sensitive

_MASKED = re.compile(r"(?P<prefix>[^*]+)\*+", re.DOTALL)


def from_codes(values: Iterable[str], *, length: int, missing: bool = False) -> Hierarchy:
    """The distinct codes in sorted order; level i keeps all but the last i characters."""
    leaves = sorted({str(value) for value in values})
    problems = []
    if not leaves:
        problems.append(Problem("there is no code to build a domain from"))
    if wrong := sum(len(leaf) != length for leaf in leaves):
        problems.append(Problem(f"{wrong} distinct codes are not {length} characters long; correct the length"))
    if starred := sum(EVERYTHING in leaf for leaf in leaves):
        problems.append(Problem(f"{starred} distinct codes contain '*', which stands for any character"))
    if missing and MISSING in leaves:
        problems.append(Problem(f"'{MISSING}' occurs as a code; add it to input.missing, or give it another name"))
    if problems:
        raise DataError(problems)
    levels = [(np.arange(len(leaves), dtype=np.int32), tuple(leaves))]
    levels += [_masked(leaves, kept) for kept in range(length - 1, 0, -1)]
    return nested("code", np.array(leaves, object), levels, missing=missing)


def _masked(leaves: list[str], kept: int) -> tuple[Codes, tuple[str, ...]]:
    """First code and name of every group of codes that share their first characters."""
    runs = groupby(enumerate(leaves), key=lambda item: item[1][:kept])
    groups = [(next(run)[0], prefix + EVERYTHING) for prefix, run in runs]
    return np.array([start for start, _ in groups], np.int32), tuple(name for _, name in groups)


class Code(Kind):
    """Codes of one length, generalized by their prefixes."""

    name = "code"
    written = "prefix"
    options = ("length",)

    def check(self, given: Mapping[str, Any]) -> Iterator[Issue]:
        if given.get("length") is None:
            yield ("length",), "is missing; kind: code needs the number of characters, such as length: 5"

    def treatment(self, attribute: QuasiIdentifier | Sensitive) -> Iterator[str]:
        yield f"prefixes of {_length(attribute)} characters"

    def notation(self, attribute: QuasiIdentifier) -> str:
        return "a code; its first characters and a * for any others after them; [a-b] from code a to code b; * any code"

    def levels(self, attribute: QuasiIdentifier, path: Callable[[str], Path]) -> str:
        return f"all {amount(_length(attribute), 'character')}, then one fewer each, *"

    def observe(self, attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
        return from_codes(values, length=_length(attribute), missing=attribute.missing == "category")

    def parse(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array, present: Mask) -> Parsed:
        from sequester.domain.codec import to_fixed_width

        length = _length(attribute)
        codes, fits = to_fixed_width(cells, length=length)
        one, many = (f"{verb} not have {length} characters" for verb in ("does", "do"))
        fix = "correct them (text that lost its leading zeros must get them back), or change `length`"
        return Parsed(codes, (Fault(present & ~fits, one, many, fix),))

    def texts(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array) -> list[str | None]:
        import pyarrow as pa

        from sequester.domain.codec import to_fixed_width

        if pa.types.is_integer(cells.type):
            return list(to_fixed_width(cells, length=_length(attribute))[0].to_pylist())
        return super().texts(attribute, cells)

    def span(self, text: str, scale: Sequence[Any]) -> Span | None:
        masked = _MASKED.fullmatch(text)
        if masked:
            prefix = masked["prefix"]
            last = bisect_right(scale, prefix, key=lambda leaf: leaf[: len(prefix)]) - 1
            return span_of(bisect_left(scale, prefix), last)
        length = len(scale[0])
        bracketed = len(text) > 2 and text[0] == "[" and text[-1] == "]"
        body = text[1:-1] if bracketed else text
        # All codes have one length, so the ends are found by position, whatever characters they have.
        middle = body[length:-length].strip()
        if (
            text.startswith("{")
            or len(body) <= 2 * length
            or middle not in ({"-", "–", "..", ",", ";"} if bracketed else {"-", "–", ".."})
        ):
            return None
        return between(scale, body[:length], body[-length:])

    def ends(self, attribute: QuasiIdentifier, texts: Sequence[str]) -> Any:
        """Codes as they stand, both ends of an interval, and the first and last code that a prefix may hide."""
        length = _length(attribute)
        signs = {sign for text in texts for sign in text if sign.isalnum()} | {"0", "9"}
        codes: set[str] = set()
        for text in map(str.strip, texts):
            prefix = text.rstrip("*")
            if prefix != text:
                codes.update(prefix.ljust(length, fill) for fill in (min(signs), max(signs)) if prefix)
            elif len(text) > 2 * length:
                body = text.strip("[]")
                codes.update((body[:length], body[-length:]))
            else:
                codes.add(text)
        return sorted(codes)

    def with_another(self, attribute: QuasiIdentifier, ends: Any) -> Any:
        return sorted({*ends, *(sign * _length(attribute) for sign in "09")})


def _length(attribute: QuasiIdentifier | Sensitive) -> int:
    if attribute.role == "sensitive" or attribute.length is None:
        raise PolicyError(Problem("a code needs its number of characters", key="length"))
    return attribute.length


CODE = Code()
