"""Files of Stata, SPSS and SAS. Codes stay codes: labels need not be different, and may change between waves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import MissingLibrary, Problem
from sequester.ingest.source import Source, Wanted, once, quietly

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def open_statistics(path: Path, wanted: Wanted) -> Source:
    """Open such a file by its suffix."""
    try:
        import pyreadstat
    except ImportError:
        message = "files of Stata, SPSS and SAS need the extra `statistics`: pip install 'sequester[statistics]'"
        raise MissingLibrary(Problem(message, file=str(path))) from None
    reader = getattr(pyreadstat, READERS[path.suffix.lower()])
    about = quietly(lambda: reader(path, metadataonly=True, output_format="dict")[1], lambda _: _damaged(path))
    names = tuple(map(str, about.column_names))

    def read() -> dict[str, pa.ChunkedArray]:
        columns = wanted.among(names)
        if not columns:
            return {}
        cells = quietly(lambda: reader(path, usecols=columns, output_format="dict")[0], lambda _: _damaged(path))
        return {name: pa.chunked_array([_column(name, cells[name])]) for name in columns}

    return Source(names, once(read))


def _column(name: str, cells: Any) -> pa.Array:
    """One column; text without a letter is how these files say that there is no value."""
    mixed = Problem("has values of several types; make it one before it is saved", column=name)
    array = quietly(lambda: pa.array(cells, from_pandas=True), lambda _: mixed)
    if not pa.types.is_string(array.type):
        return array
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)


def _damaged(path: Path) -> Problem:
    return Problem(f"is no {path.suffix} file that can be read, or is cut off or damaged; get it again", file=str(path))
