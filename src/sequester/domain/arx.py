"""Read hierarchy files in the format of ARX: one line per leaf, `leaf;level1;...;*`, no header."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

from sequester.domain.limits import refuse_large
from sequester.errors import PolicyError, Problem
from sequester.regular import Unreadable, read_regular

_MOST_BYTES = 16 << 20
_DELIMITERS = (";", "\t", ",", "|")
_UNREAD = f"a quoted label is not closed, goes on after its quote, or has more than {csv.field_size_limit():,} letters"

Lines = list[tuple[int, list[str]]]


def read_arx(path: Path) -> list[list[str]]:
    """The rows of a hierarchy file. The delimiter is found out; blank lines and a byte order mark are skipped."""
    try:
        text = read_regular(path, most=_MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError(Problem("the hierarchy file is not UTF-8; save it as UTF-8", file=str(path))) from None
    except Unreadable as error:
        raise PolicyError(Problem(f"the hierarchy file cannot be used: {error}", file=str(path))) from None
    if not text.strip():
        raise PolicyError(Problem("the hierarchy file is empty", file=str(path)))
    refuse_large(text.count("\n"), 1, file=str(path))
    lines = _split(text)
    if lines is None:
        raise PolicyError(Problem(_UNREAD, file=str(path)))
    columns = Counter(len(cells) for _, cells in lines).most_common(1)[0][0]
    refuse_large(len(lines), columns, file=str(path))
    problems = [
        Problem(f"{len(cells)} columns instead of {columns}", file=str(path), line=line)
        for line, cells in lines
        if len(cells) != columns
    ]
    problems += [
        Problem(f"column {cells.index('') + 1} is empty; every value needs a label at every level", str(path), line)
        for line, cells in lines
        if len(cells) == columns and "" in cells
    ]
    if problems:
        raise PolicyError(problems)
    return [cells for _, cells in lines]


def _split(text: str) -> Lines | None:
    """Line numbers and cells, by the first delimiter that gives every line equally many; else by the most frequent."""
    readings: list[Lines] = []
    for delimiter in _DELIMITERS:
        lines = _cells(text, delimiter)
        if lines is None:
            continue
        if len(lines[0][1]) > 1 and len({len(cells) for _, cells in lines}) == 1:
            return lines
        readings.append(lines)
    return max(readings, key=lambda lines: sum(len(cells) for _, cells in lines), default=None)


def _cells(text: str, delimiter: str) -> Lines | None:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error:
        return None
