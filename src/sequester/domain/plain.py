"""Cells that are published as they are: codes to tell them apart and to keep them, and back to cells of a column.

Whatever text a cell may have is a value, `*` and `missing` included, and an empty cell is one more: who has which of
them links the rows of a person, so none may be taken for another.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sequester.domain.codec import distinct, to_codes, to_text
from sequester.domain.hierarchy import Codes, Hierarchy, nested


def text_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as text, so that columns of different types can be compared."""
    values, index = distinct(column)
    texts = pa.concat_arrays([to_text(values).cast(pa.string()), pa.nulls(1, pa.string())])
    return pa.chunked_array([texts.take(pa.array(np.where(index < 0, len(values), index)))])


def plain_codes(column: pa.ChunkedArray, before: Hierarchy | None = None) -> tuple[Hierarchy, Codes]:
    """The domain of a column and the code of every cell; values that an earlier domain has come first, as there."""
    values, index = distinct(column)
    texts = to_text(values).cast(pa.string())
    known = [] if before is None else before.values.tolist()
    new = sorted(set(texts.to_pylist()).difference(known))
    domain = _flat([*known, *new]) if before is None or new else before
    code = np.append(to_codes(domain, texts), np.int32(domain.size - 1))
    return domain, code[index].astype(np.int32)


def plain_cells(domain: Hierarchy, codes: Codes, kind: pa.DataType) -> pa.Array:
    """The cells that codes stand for, of the type of a column; ArrowInvalid where they do not fit it."""
    leaves = pa.array([*domain.values.tolist(), None], pa.string())
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    cells: pa.Array = leaves.take(pa.array(codes)).cast(value)
    return cells.cast(kind) if pa.types.is_dictionary(kind) else cells


def _flat(leaves: list[str]) -> Hierarchy:
    named = np.empty(len(leaves), object)
    named[:] = leaves
    return nested("category", named, [(np.arange(len(leaves), dtype=np.int32), tuple(leaves))], missing=True)
