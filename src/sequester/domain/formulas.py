"""Text that a spreadsheet would run instead of showing it, and the apostrophe that keeps it from that.

A formula begins with = + - @, a tab or a line end, and goes on; a number such as -5 or +3.2 is none. Written with
`escape` it has one apostrophe more before it, and so has whatever begins with apostrophes and then a formula:
`unescape` takes one away from exactly these, and so gives back every text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain.codec import Mask, is_text, to_mask

APOSTROPHE = "'"
# Some spreadsheets take the wide signs of East Asian keyboards for the narrow ones.
_SIGNS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_FORMULA = f"^[{_SIGNS}](?s:.)"
_QUOTED = f"^'*[{_SIGNS}](?s:.)"
_QUOTED_NUMBER = f"^'*{_NUMBER}$"

_Change = Callable[[pa.Array], pa.Array]


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a text."""
    return re.match(_FORMULA, text) is not None and re.fullmatch(_NUMBER, text) is None


def escape_name(name: str) -> str:
    """A header as it is written."""
    return APOSTROPHE + name if is_formula(name.lstrip(APOSTROPHE)) else name


def unescape_name(name: str) -> str:
    """The header that was written so."""
    return name[1:] if name[:1] == APOSTROPHE and is_formula(name.lstrip(APOSTROPHE)) else name


def formulas(texts: pa.Array) -> Mask:
    """Which of distinct values are formulas; those that are no text never are."""
    return _begins(texts, _FORMULA, f"^{_NUMBER}$")


def escape(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as they are written; columns that are no text stay as they are."""
    return _changed(column, lambda texts: pc.binary_join_element_wise(APOSTROPHE, texts, ""), _QUOTED)


def unescape(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells that were written so."""
    return _changed(column, lambda texts: pc.utf8_slice_codeunits(texts, 1), f"^'{_QUOTED[1:]}")


def _changed(column: pa.ChunkedArray, change: _Change, pattern: str) -> pa.ChunkedArray:
    listed = pa.types.is_dictionary(column.type)
    if not is_text(column.type.value_type if listed else column.type):
        return column
    return pa.chunked_array([_array(chunk, change, pattern) for chunk in column.iterchunks()], column.type)


def _array(chunk: pa.Array, change: _Change, pattern: str) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):
        return pa.DictionaryArray.from_arrays(chunk.indices, _array(chunk.dictionary, change, pattern))
    quoted = _begins(chunk, pattern, _QUOTED_NUMBER)
    return pc.if_else(pa.array(quoted), change(chunk), chunk).cast(chunk.type) if quoted.any() else chunk


def _begins(texts: pa.Array, pattern: str, number: str) -> Mask:
    if not is_text(texts.type):
        return np.zeros(len(texts), np.bool_)
    signed = pc.match_substring_regex(texts, pattern).fill_null(False)
    numbers = pc.match_substring_regex(texts, number).fill_null(False)
    return to_mask(pc.and_not(signed, numbers))
