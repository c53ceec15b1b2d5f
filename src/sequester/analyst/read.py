"""A release, or a series of them, as a frame to compute with.

Per number and day four columns: the lowest and the highest value that a cell allows, their middle, and whether it is
exact. Names stay as they were published, with whether they are exact. `class` numbers the rows that look alike, and
`weight` says how many people a row stands for, where some rows are about nobody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.analyst.decode import Column, Measured, decode
from sequester.analyst.folder import FACTS, Published, checked, facts_of, open_folder
from sequester.arrays import row_groups
from sequester.domain.codec import distinct
from sequester.errors import DataError, MissingLibrary, Problem
from sequester.outputs import WEIGHT

Frame = Literal["pandas", "polars", "arrow"]
CLASS = "class"
META = b"sequester"
_MISSING = ("no", "maybe", "yes")


@dataclass(frozen=True, eq=False, repr=False)
class Decoded:
    """One release as numbers.

    columns  by attribute, in the order of the table
    quasi    which of them may be known about a person
    member   the class of every row
    weight   how many people a row stands for
    first    columns that have what people had when they were first published
    facts    what is said about the release
    """

    columns: Mapping[str, Column]
    quasi: tuple[str, ...]
    member: NDArray[np.int64]
    weight: float
    facts: Mapping[str, Any]
    first: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.member)

    def digest(self) -> str:
        """The same for releases that say the same."""
        found = hashlib.sha256(repr((self.facts.get("method"), self.facts.get("number"))).encode())
        for name, column in self.columns.items():
            found.update(name.encode())
            if isinstance(column, Measured):
                found.update(b"".join(side.tobytes() for side in (column.lo, column.hi, column.missing)))
            else:
                found.update(repr((column.texts, column.leaves)).encode() + column.index.tobytes())
        found.update(self.member.tobytes() + repr(self.weight).encode())
        return found.hexdigest()

    def __repr__(self) -> str:
        return f"<Decoded: {len(self)} rows>"


def read_release(folder: str | Path, as_: Frame = "pandas", *, leaves: bool = False, verify: bool = True) -> Any:
    """A release folder as a frame of pandas or polars, or as an Arrow table.

    leaves  further columns with the values that a name may stand for, where the release says so
    verify  refuse data that is not what was published
    """
    release = decoded(open_folder(Path(folder), verify=verify))
    return _framed(_table(release, leaves=leaves), as_)


def read_series(folder: str | Path, as_: Frame = "pandas", *, leaves: bool = False, verify: bool = True) -> Any:
    """All releases in a folder of a series, one below the other, in order, with columns `release` and `name`.

    Releases that were withdrawn are set aside by whoever publishes, and are not in it.
    """
    return _framed(stacked(Path(folder), leaves=leaves, verify=verify), as_)


def stacked(folder: Path, *, leaves: bool = False, verify: bool = True) -> pa.Table:
    """The releases of a series as one Arrow table."""
    places = sorted(place.parent for place in folder.glob(f"*/{FACTS}") if not place.parent.name.startswith("."))
    if not places:
        said = "has no release folders in it" if folder.is_dir() else "there is no such folder"
        raise DataError(Problem(said, file=str(folder)))
    facts = [facts_of(place) for place in places]
    if len({one.get("series") for one in facts}) > 1:
        raise DataError(Problem("has releases of several series; name the folder of one", file=str(folder)))
    order = sorted(range(len(places)), key=lambda at: (facts[at].get("number") or 0, places[at].name))
    parts, told = [], []
    for at in order:
        release = decoded(open_folder(places[at], verify=verify))
        table = _table(release, leaves=leaves)
        number, name = facts[at].get("number") or 0, str(facts[at].get("name") or places[at].name)
        extra: dict[str, Any] = {"release": pa.array([number] * len(release), pa.int64())}
        extra["name"] = pa.array([name] * len(release), pa.string())
        parts.append(pa.table({**extra, **{one: table[one] for one in table.column_names}}))
        told.append(json.loads(table.schema.metadata[META]))
    try:
        whole = pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException:
        whole = None
    if whole is None:
        raise DataError(Problem("has releases whose columns have different types", file=str(folder)))
    return whole.replace_schema_metadata({META: json.dumps(_merged(told))})


def decoded(published: Published) -> Decoded:
    """A release as numbers, with classes and how many people a row stands for."""
    table, columns = published.table, {}
    described = [column for column in published.columns if column["role"] != "weight"]
    for name, own in groupby(described, key=lambda column: str(column["of"])):
        columns[name] = decode(list(own), table)
    quasi = [column for column in published.columns if _is_quasi(column)]
    cells = [distinct(table[str(column["name"])])[1] for column in quasi]
    member = row_groups(np.array(cells, np.int32))[0] if cells else np.zeros(len(table), np.int64)
    # Numbered by the first row of each.
    first = np.unique(member, return_index=True)[1]
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    names = tuple(dict.fromkeys(str(column["of"]) for column in quasi))
    first_values = frozenset(str(column["of"]) for column in described if column.get("values") == "first")
    weight = float(published.facts.get("weight", 1.0))
    return Decoded(columns, names, rank[member], weight, published.facts, first_values)


def of_release(release: Any) -> Decoded:
    """A release that is in memory, by what it would write."""
    return decoded(checked(Published(release.table, release.to_dict())))


def _is_quasi(column: Mapping[str, Any]) -> bool:
    return column["written"] in ("min", "max", "interval", "middle", "group", "prefix", "calendar")


def _table(release: Decoded, *, leaves: bool) -> pa.Table:
    """The release as an Arrow table; its schema says what programs need to know of the columns."""
    taken = set(release.columns)
    columns: dict[str, Any] = {}
    for name, column in release.columns.items():
        for made, cells in _parts(name, column, quasi=name in release.quasi, leaves=leaves):
            if made != name and made in taken:
                said = f"is also the name of a column that is made of '{name}'; read the release as arrow data instead"
                raise DataError(Problem(said, column=made))
            columns[made] = cells
    for made, numbers in ((CLASS, release.member), (WEIGHT, np.full(len(release), release.weight))):
        columns[f"{made}_" if made in columns else made] = pa.array(numbers)
    return pa.table(columns).replace_schema_metadata({META: json.dumps(_told(release))})


def _parts(name: str, column: Column, *, quasi: bool, leaves: bool) -> Iterator[tuple[str, pa.Array]]:
    if isinstance(column, Measured) and column.plain:
        yield name, _side(column.lo, column, "lo")
        return
    if isinstance(column, Measured):
        for end, side in (("lo", column.lo), ("hi", column.hi), ("mid", column.mid)):
            yield f"{name}_{end}", _side(side, column, end)
        yield f"{name}_exact", pa.array(column.exact)
        if column.missing.any():
            words = pa.array(_MISSING, pa.string())
            yield f"{name}_missing", pa.DictionaryArray.from_arrays(pa.array(column.missing), words)
        return
    texts = pa.array(column.texts, pa.string())
    absent = column.index < 0
    yield name, pa.DictionaryArray.from_arrays(pa.array(np.where(absent, 0, column.index), mask=absent), texts)
    if quasi:
        yield f"{name}_exact", pa.array(column.exact)
    if quasi and leaves:
        listed = pa.array([None if some is None else list(some) for some in column.leaves], pa.list_(pa.string()))
        yield f"{name}_leaves", listed.take(pa.array(column.index, mask=absent))


def _side(side: NDArray[np.float64], column: Measured, end: str) -> pa.Array:
    nothing = np.isnan(side)
    if column.days:
        return pa.array(np.floor(np.where(nothing, 0, side)).astype(np.int32), mask=nothing).cast(pa.date32())
    if column.whole and end != "mid":
        return pa.array(np.where(nothing, 0, side).astype(np.int64), mask=nothing)
    return pa.array(side, mask=nothing)


def _told(release: Decoded) -> dict[str, Any]:
    """What a frame keeps beside its cells: kinds of columns, and what names stand for."""
    columns: dict[str, Any] = {}
    for name, column in release.columns.items():
        quasi = name in release.quasi
        if isinstance(column, Measured):
            kind = "plain" if column.plain else "days" if column.days else "numbers"
            columns[name] = {"kind": kind, "whole": column.whole, "quasi": quasi}
        else:
            groups = zip(column.texts, column.leaves, strict=True)
            general = {text: None if some is None else list(some) for text, some in groups if some != (text,)}
            columns[name] = {"kind": "words", "quasi": quasi, "general": general}
    method = release.facts.get("method")
    return {
        "columns": columns,
        "method": method.get("name") if isinstance(method, Mapping) else None,
        "number": release.facts.get("number"),
        "first": sorted(release.first),
    }


def _merged(told: list[dict[str, Any]]) -> dict[str, Any]:
    """What is kept of several releases: where one knows what a name stands for, all do."""
    whole = json.loads(json.dumps(told[-1]))
    for one in told:
        for name, column in one["columns"].items():
            mine = whole["columns"].setdefault(name, column)
            if mine["kind"] == column["kind"] == "words":
                mine["general"] = {**column["general"], **mine["general"]}
            elif mine["kind"] != "words":
                mine["whole"] = mine["whole"] and column.get("whole", False)
    whole["number"] = [one["number"] for one in told]
    whole["first"] = sorted({name for one in told for name in one["first"]})
    return dict(whole)


def _framed(table: pa.Table, as_: Frame) -> Any:
    if as_ == "arrow":
        return table
    if as_ not in ("pandas", "polars"):
        raise DataError("a release is read as 'pandas', 'polars' or 'arrow'")
    try:
        if as_ == "polars":
            import polars

            return polars.from_arrow(table)
        import pandas  # noqa: F401 - only whether it is there
    except ImportError:
        said = f"{as_} is not installed: pip install {as_}, or read the release with as_='arrow'"
        raise MissingLibrary(said) from None
    frame = table.to_pandas()
    frame.attrs["sequester"] = json.loads(table.schema.metadata[META])
    return frame
