"""Names of inputs: a file, a table or sheet inside one (`clinic.duckdb::patients`), or one of a server.

What is behind `::` is the name of a table or a sheet, or a query that begins with SELECT or WITH.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sequester.errors import DataError, Problem

BETWEEN = "::"
# A path that was made of an address has lost one of its two strokes.
_ADDRESS = re.compile(r"postgres(?:ql)?:/+", re.IGNORECASE)
_QUERY = re.compile(r"\s*(select|with)\b", re.IGNORECASE)


@dataclass(frozen=True)
class InputName:
    """An input by its name.

    place  a file, or the address of a server
    table  what of it: a table, a sheet or a query; None where the place is all that was said
    """

    place: str
    table: str | None = None

    @property
    def is_address(self) -> bool:
        """Whether it is on a server."""
        return _ADDRESS.match(self.place) is not None

    @property
    def is_query(self) -> bool:
        """Whether what is asked for is a query."""
        return self.table is not None and _QUERY.match(self.table) is not None

    def __str__(self) -> str:
        return self.place if self.table is None else f"{self.place}{BETWEEN}{self.table}"


def named(source: str | os.PathLike[str]) -> InputName:
    """What the name of an input says. A file whose own name has `::` in it is that file."""
    text = os.fspath(source)
    address = _ADDRESS.match(text)
    if address is not None:
        place, _, table = f"postgresql://{text[address.end() :]}".partition(BETWEEN)
        _refuse_password(place)
        return InputName(place, table or None)
    place, between, table = text.partition(BETWEEN)
    return InputName(place, table) if between and table and not Path(text).exists() else InputName(text)


def whole_name(source: str | os.PathLike[str]) -> str:
    """The same input as it is named from any folder; a table of Spark's catalog has one name everywhere."""
    name = named(source)
    path = Path(name.place)
    here = not name.is_address and (path.exists() or bool(files_of(path)))
    return str(InputName(str(path.resolve()), name.table)) if here else str(name)


def files_of(path: Path) -> list[Path]:
    """The files that a name with * or ? stands for, in the order of their names; none for any other name."""
    if not set("*?[") & set(path.name):
        return []
    return sorted(found for found in path.parent.glob(path.name) if found.is_file())


def stem_of(source: str | os.PathLike[str]) -> str:
    """What a release of this input may be called: like the table if one is named, else like the file."""
    name = named(source)
    if name.table is not None and not name.is_query:
        return name.table.rpartition(".")[2]
    return "" if name.is_address else Path(name.place).name.split(".")[0]


def _refuse_password(address: str) -> None:
    """An address is printed, and kept in plans; a password in it would be, too."""
    try:
        parts = urlsplit(address)
        secret = parts.password is not None or "password" in parts.query.lower()
    except ValueError:
        secret = True
    if secret:
        fix = "leave it out, and give it as PGPASSWORD or in ~/.pgpass"
        raise DataError(Problem(f"the address of the table holds a password, or cannot be read; {fix}"))
