"""Small releases and what an audit of them says."""

from __future__ import annotations

import pyarrow as pa

import sequester as sq


def table(*rows: str, names: str = "id age ill") -> pa.Table:
    """A table of cells that are written with blanks between them."""
    cells = [row.split() for row in rows]
    return pa.table({name: [row[place] for row in cells] for place, name in enumerate(names.split())})


def nameless(*tables: pa.Table) -> list[pa.Table]:
    """The tables as outsiders see them."""
    return [one.drop_columns(["id"]) for one in tables]


def noted(found: sq.Audit, words: str) -> list[str]:
    """The notes, and what was not tried, with these words in them."""
    return [note for note in (*found.notes, *map(str, found.untried)) if words in note]
