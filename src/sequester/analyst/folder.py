"""A release folder: what its `release.json` says, and its data as it was published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import DataError, Problem
from sequester.ingest.read import read
from sequester.outputs import OUTPUTS, data_file
from sequester.regular import bytes_of, digest_of

FACTS = "release.json"


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """The table of a release and what is said about it."""

    table: pa.Table
    facts: Mapping[str, Any]

    @property
    def columns(self) -> list[Mapping[str, Any]]:
        """What is said of every column, in their order."""
        return list(self.facts["columns"])

    def __repr__(self) -> str:
        return f"<Published: {len(self.table)} rows>"


def open_folder(folder: Path, *, verify: bool = True) -> Published:
    """The release in a folder. With `verify`, data that is not what was published is refused."""
    facts = facts_of(folder)
    said = facts.get("data") or _data_in(folder)
    # Large releases are in several files.
    files = [folder / Path(str(name)).name for name in (said if isinstance(said, list) else [said])]
    if verify and not set(facts.get("digests", {})) >= {file.name for file in files}:
        unsaid = "this release does not say what its data was; read it with verify=False if you trust it"
        raise DataError(Problem(unsaid, file=str(folder)))
    escaped = facts.get("output", {}).get("formulas") == "escape"
    tables = []
    for file in files:
        if not file.is_file():
            raise DataError(Problem("the data of this release is not there", file=str(file)))
        if verify and facts["digests"][file.name] != digest_of(file):
            changed = "is not the file that was published: it was edited or damaged; get it again, or say verify=False"
            raise DataError(Problem(changed, file=str(file)))
        tables.append(read(file, delimiter=",", missing=("",), escaped=escaped))
    return checked(Published(pa.concat_tables(tables), facts), str(files[0]))


def checked(published: Published, file: str = "") -> Published:
    """The same, or an error where table and description do not belong together."""
    described = [column["name"] for column in published.columns]
    if described != published.table.column_names:
        raise DataError(Problem("does not have the columns that release.json describes", file=file or None))
    return published


def facts_of(folder: Path) -> dict[str, Any]:
    """What the `release.json` of a folder says."""
    try:
        facts = json.loads(bytes_of(folder / FACTS))
    except FileNotFoundError:
        said = f"is no release folder: it has no {FACTS}" if folder.is_dir() else "there is no such folder"
        raise DataError(Problem(said, file=str(folder))) from None
    except (OSError, ValueError, RecursionError):
        raise DataError(Problem("cannot be read", file=str(folder / FACTS))) from None
    columns = facts.get("columns") if isinstance(facts, dict) else None
    if not isinstance(columns, list) or not all(isinstance(one, dict) and "written" in one for one in columns):
        said = "does not describe its columns well enough; it was made by an earlier version, or by something else"
        raise DataError(Problem(said, file=str(folder / FACTS)))
    return dict(facts)


def _data_in(folder: Path) -> str:
    return next((name for name in map(data_file, OUTPUTS) if (folder / name).is_file()), data_file("csv"))
