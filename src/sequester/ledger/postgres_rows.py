"""Many rows of numbers to and from PostgreSQL at once, in the binary form of COPY.

A row is the number of its cells, and before each cell how many bytes it has. As all cells of a column are equally long,
so are all rows, and a table is one array of records. Numbers without a sign are moved to where they keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.ledger.rows import DTYPES
from sequester.ledger.schema import EVERY_TABLE

INT8, INT4, INT8S, INT4S = 20, 23, 1016, 1007
# What is UBIGINT in the schema has no counterpart.
UNSIGNED: Final = {name for table in EVERY_TABLE.values() for name, kind in table.items() if kind == "UBIGINT"}
_SIGN: Final = np.uint64(1 << 63)
_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
# Per type of a column: of which type a cell or an item of it is, and how wide that is.
_ITEMS: Final = {INT4: (INT4, 4), INT8: (INT8, 8), INT4S: (INT4, 4), INT8S: (INT8, 8)}
NUMBERS: Final = frozenset(_ITEMS)
_PLACE: Final = "place of the row"
_PACK: Final = 65536


def encode(rows: pa.Table, kinds: Sequence[str]) -> bytes | None:
    """The rows, of the types of the schema; None when their lists are not equally long, or something is missing."""
    cells: list[NDArray[Any]] = []
    for name, kind in zip(rows.column_names, kinds, strict=True):
        column = rows[name].combine_chunks()
        if column.null_count:
            return None
        if kind.endswith("[]"):
            flat, lengths = column.flatten(), np.diff(column.offsets.to_numpy())
            if flat.null_count or (len(lengths) and (lengths != lengths[0]).any()):
                return None
            column_cells = flat.to_numpy(zero_copy_only=False).reshape(len(column), -1 if len(flat) else 0)
        else:
            column_cells = column.to_numpy(zero_copy_only=False)
        cells.append(_signed(column_cells.astype(DTYPES[kind.removesuffix("[]")], copy=False)))
    types = [oid_of(kind) for kind in kinds]
    widths = [array.shape[1] if array.ndim == 2 else None for array in cells]
    shape = _record(types, widths)
    record = np.zeros(len(rows), shape)
    record["cells"] = len(types)
    for place, (array, constants) in enumerate(zip(cells, _constants(types, widths), strict=True)):
        for part, value in constants.items():
            record[f"{part}{place}"] = value
        if array.ndim == 2 and array.shape[1]:
            record[f"items{place}"]["size"] = array.dtype.itemsize
            record[f"items{place}"]["value"] = array
        elif array.ndim == 1:
            record[f"value{place}"] = array
    return _HEADER + record.tobytes() + _TRAILER


def decode(data: bytes, names: Sequence[str], types: Sequence[int]) -> pa.Table | None:
    """The rows of a query of numbers; None when they are not all equally long."""
    if data[: len(_HEADER)] != _HEADER or data[-2:] != _TRAILER:
        return None
    body = memoryview(data)[len(_HEADER) : -len(_TRAILER)]
    widths = _widths(body, types)
    if widths is None:
        return None
    shape = _record(types, widths)
    if len(body) % shape.itemsize:
        return None
    record = np.frombuffer(body, shape)
    if (record["cells"] != len(types)).any():
        return None
    columns: dict[str, pa.Array] = {}
    for place, (name, wide, constants) in enumerate(zip(names, widths, _constants(types, widths), strict=True)):
        if any((record[f"{part}{place}"] != value).any() for part, value in constants.items()):
            return None
        _, size = _ITEMS[types[place]]
        native = np.dtype(np.int32 if size == 4 else np.int64)
        if wide is None:
            columns[name] = pa.array(_unsigned(name, record[f"value{place}"].astype(native)))
            continue
        if wide and (record[f"items{place}"]["size"] != size).any():
            return None
        items = record[f"items{place}"]["value"].astype(native).ravel() if wide else np.zeros(0, native)
        ends = np.arange(len(record) + 1, dtype=np.int64) * wide
        columns[name] = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(items))
    return pa.table(columns)


def packing(sql: str, names: Sequence[str], types: Sequence[int]) -> str:
    """A query for the rows of another one as `unpack` takes them: by the thousand, since each single one costs time.

    With every row goes its place, for nobody promises in which order rows are put together.
    """
    cells = []
    for name, oid in zip((_PLACE, *names), (INT8, *types), strict=True):
        size = _ITEMS[oid][1]
        if oid in (INT4S, INT8S):
            cells.append(f'int4send(octet_length(array_send("{name}"))) || array_send("{name}")')
        else:
            cells.append(f"'\\x{size:08x}'::bytea || int{size}send(\"{name}\")")
    row = f"'\\x{len(cells):04x}'::bytea || {' || '.join(cells)}"
    placed = f'SELECT *, row_number() OVER () AS "{_PLACE}" FROM ({sql}) AS q'
    return f"SELECT count(*), string_agg({row}, ''::bytea) FROM ({placed}) AS r GROUP BY (\"{_PLACE}\" - 1) / {_PACK}"


def unpack(parts: Sequence[tuple[int, bytes | None]], names: Sequence[str], types: Sequence[int]) -> pa.Table | None:
    """The rows of a query of numbers; None when they are not all equally long, or something is missing."""
    whole = b"".join([_HEADER, *(part or b"" for _, part in parts), _TRAILER])
    table = decode(whole, (_PLACE, *names), (INT8, *types))
    if table is None or len(table) != sum(count for count, _ in parts):
        return None
    places = table[_PLACE].to_numpy()
    if (np.diff(places) < 0).any():
        table = table.take(np.argsort(places))
    return table.drop_columns([_PLACE])


def oid_of(kind: str) -> int:
    """The type of PostgreSQL that a type of the schema is kept as."""
    wide = kind.startswith(("BIGINT", "UBIGINT"))
    return (INT8S if wide else INT4S) if kind.endswith("[]") else (INT8 if wide else INT4)


def to_signed(number: int) -> int:
    """As `encode` writes a number without a sign."""
    return number - (1 << 63)


def to_unsigned(number: int) -> int:
    """The reverse."""
    return number + (1 << 63)


def _signed(array: NDArray[Any]) -> NDArray[Any]:
    return (array ^ _SIGN).view(np.int64) if array.dtype == np.uint64 else array


def _unsigned(name: str, array: NDArray[Any]) -> NDArray[Any]:
    return array.view(np.uint64) ^ _SIGN if name in UNSIGNED and array.dtype == np.int64 else array


def _record(types: Sequence[int], widths: Sequence[int | None]) -> np.dtype[Any]:
    """One row; a list is how many dimensions it has, whether something is missing, the type and number of its items."""
    parts: list[Any] = [("cells", ">i2")]
    for place, (oid, wide) in enumerate(zip(types, widths, strict=True)):
        parts.append((f"size{place}", ">i4"))
        number = f">i{_ITEMS[oid][1]}"
        if wide is None:
            parts.append((f"value{place}", number))
            continue
        parts += [(f"{part}{place}", ">i4") for part in ("dimensions", "missing", "type")]
        if wide:
            parts += [(f"{part}{place}", ">i4") for part in ("count", "first")]
            parts.append((f"items{place}", [("size", ">i4"), ("value", number)], (wide,)))
    return np.dtype(parts)


def _constants(types: Sequence[int], widths: Sequence[int | None]) -> list[dict[str, int]]:
    """What is the same in all rows, per column."""
    layout = []
    for oid, wide in zip(types, widths, strict=True):
        item, size = _ITEMS[oid]
        if wide is None:
            layout.append({"size": size})
        elif wide:
            layout.append(
                {"size": 20 + wide * (4 + size), "dimensions": 1, "missing": 0, "type": item, "count": wide, "first": 1}
            )
        else:
            layout.append({"size": 12, "dimensions": 0, "missing": 0, "type": item})
    return layout


def _widths(body: memoryview, types: Sequence[int]) -> list[int | None] | None:
    """How long the lists of the first row are; None for what is no list."""
    counts: list[int | None] = []
    at = 2
    for oid in types:
        is_list = oid in (INT4S, INT8S)
        if not len(body):
            counts.append(0 if is_list else None)
            continue
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        items = (size - 20) // (4 + _ITEMS[oid][1]) if size > 12 else 0
        if size < 0 or items < 0:
            return None
        counts.append(items if is_list else None)
        at += 4 + size
    return counts
