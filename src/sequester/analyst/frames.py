"""Whatever an analyst has of a release, as releases that are decoded: folders, releases, and frames made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.analyst.decode import Column, Measured, Words, texts_of, words_of
from sequester.analyst.folder import FACTS, open_folder
from sequester.analyst.read import CLASS, META, Decoded, decoded, of_release, stacked
from sequester.domain.codec import distinct, to_numbers
from sequester.errors import DataError
from sequester.outputs import WEIGHT

_ACCEPTED = "give a release, its folder, the folder of a series, or a frame by read_release or read_series"
_MADE = (CLASS, WEIGHT, "release", "name")
_MISSING = {"no": 0, "maybe": 1, "yes": 2}


def releases_of(data: Any) -> list[Decoded]:
    """The releases in a folder, a frame or memory."""
    if isinstance(data, str | Path):
        place = Path(data)
        if (place / FACTS).exists() or not any(place.glob(f"*/{FACTS}")):
            return [decoded(open_folder(place))]
        return _of_table(stacked(place))
    if hasattr(data, "to_dict") and isinstance(getattr(data, "table", None), pa.Table):
        return [of_release(data)]
    return _of_table(_arrow(data))


def _arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "attrs") and hasattr(frame, "columns"):
        told = frame.attrs.get(META.decode())
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return table.replace_schema_metadata(None if told is None else {META: json.dumps(told)})
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    raise DataError(f"cannot estimate from an object of type {type(frame).__name__}; {_ACCEPTED}")


def _of_table(table: pa.Table) -> list[Decoded]:
    """The releases of a frame; what it does not say of itself is taken from the names of its columns."""
    if not {CLASS, WEIGHT} <= set(table.column_names):
        raise DataError(f"this frame has no columns 'class' and 'weight'; {_ACCEPTED}")
    said = (table.schema.metadata or {}).get(META)
    told = json.loads(said) if said else {"columns": _guessed(table.column_names)}
    if "release" not in table.column_names or "release" in told["columns"]:
        return [_decoded(table, told, told.get("number"), stacked=False)]
    release = table["release"].to_numpy(zero_copy_only=False)
    return [
        _decoded(table.filter(pa.array(release == number)), told, int(number), stacked=True)
        for number in np.unique(release).tolist()
    ]


def _decoded(table: pa.Table, told: Mapping[str, Any], number: Any, *, stacked: bool) -> Decoded:
    columns: dict[str, Column] = {}
    for name, described in told["columns"].items():
        if described["kind"] in ("numbers", "days"):
            if f"{name}_lo" in table.column_names:
                columns[name] = _scale(table, name, described)
        elif name in table.column_names:
            plain = _plain(table[name]) if described["kind"] == "plain" else None
            columns[name] = plain or _words(table[name], described)
    if stacked:
        for name in ("release", "name"):
            columns[name] = _plain(table[name]) or _words(table[name], {})
    number_of, weights = (_floats(table[_made(table, made)]) for made in (CLASS, WEIGHT))
    if len(np.unique(weights)) > 1:
        raise DataError("the rows of one release have different weights; all stand for the same number of people")
    member = np.unique(number_of, return_inverse=True)[1].astype(np.int64)
    quasi = tuple(name for name in columns if told["columns"].get(name, {}).get("quasi"))
    facts = {"method": {"name": told.get("method")}, "number": number}
    weight = float(weights[0]) if len(weights) else 1.0
    return Decoded(columns, quasi, member, weight, facts, frozenset(told.get("first", ())))


def _made(table: pa.Table, made: str) -> str:
    """The column that was made, also where the release has one of its name."""
    other = f"{made}_"
    return other if other in table.column_names else made


def _guessed(names: list[str]) -> dict[str, Any]:
    """What the columns of a frame are, by their names."""
    scales = [name[:-3] for name in names if name.endswith("_lo") and f"{name[:-3]}_hi" in names]
    made = {f"{name}_{end}" for name in scales for end in ("lo", "hi", "mid", "exact", "missing")} | set(_MADE)
    made |= {f"{name}_{end}" for name in names for end in ("exact", "leaves") if f"{name}_exact" in names}
    found: dict[str, Any] = {name: {"kind": "numbers", "quasi": True} for name in scales}
    for name in names:
        if name not in made:
            found[name] = {"kind": "plain", "quasi": f"{name}_exact" in names}
    return found


def _scale(table: pa.Table, name: str, described: Mapping[str, Any]) -> Measured:
    lo, hi = (_floats(table[f"{name}_{end}"]) for end in ("lo", "hi"))
    days = pa.types.is_temporal(table[f"{name}_lo"].type) or described["kind"] == "days"
    missing = np.where(np.isnan(lo), 2, 0).astype(np.int8)
    if f"{name}_missing" in table.column_names:
        words = table[f"{name}_missing"].cast(pa.string()).to_pylist()
        missing = np.array([_MISSING.get(word, 0) for word in words], np.int8)
    middle = _floats(table[f"{name}_mid"]) if np.isnan(lo).all() and f"{name}_mid" in table.column_names else None
    ends = np.append(lo, hi)
    ends = ends[np.isfinite(ends)]
    whole = days or bool(described.get("whole", bool((ends == np.floor(ends)).all())))
    return Measured(lo, hi, missing, days=days, whole=whole, middle=middle)


def _plain(cells: pa.ChunkedArray) -> Measured | None:
    """A column that is published as it is, where it is one of numbers."""
    if not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
        return None
    found = _floats(cells)
    return Measured(found, found, np.where(np.isnan(found), 2, 0).astype(np.int8), plain=True)


def _words(cells: pa.ChunkedArray, described: Mapping[str, Any]) -> Words:
    texts, index = texts_of(cells)
    general = described.get("general")
    if general is None:
        leaves = words_of(texts, {}) if described.get("quasi") else tuple((text,) for text in texts)
    else:
        found = ((text, general.get(text, [text])) for text in texts)
        leaves = tuple(None if some is None else tuple(some) for _, some in found)
    return Words(texts, index, leaves)


def _floats(cells: pa.ChunkedArray) -> np.ndarray:
    values, index = distinct(cells)
    if pa.types.is_temporal(values.type):
        days = values.cast(pa.timestamp("s")).cast(pa.date32()).cast(pa.int32())
        return np.append(np.asarray(days, np.float64), np.nan)[index]
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return np.append(to_numbers(values)[0], np.nan)[index]
