"""What tables are written as: one declaration per format. Policies name them, and files are known by their suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

WEIGHT = "weight"
"""The column that says how many people a row stands for, where some rows are decoys."""


@dataclass(frozen=True)
class FileFormat:
    """One format.

    suffixes  of its files; the first is that of a release
    write     a table into a file; pyarrow's errors where the format cannot hold it
    rows      how many rows a file has
    is_text   whether a spreadsheet that opens it may run cells as formulas
    """

    suffixes: tuple[str, ...]
    write: Callable[[pa.Table, Path], None]
    rows: Callable[[Path], int]
    is_text: bool


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv

    with pa.output_stream(path, compression="gzip" if path.suffix == ".gz" else None) as stream:
        csv.write_csv(table, stream)


def _rows_of_csv(path: Path) -> int:
    from pyarrow import csv

    parsing, nothing = csv.ParseOptions(newlines_in_values=True), csv.ConvertOptions(include_columns=[])
    with csv.open_csv(path, parse_options=parsing, convert_options=nothing) as stream:
        return sum(len(batch) for batch in stream)


def _write_parquet(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path)


def _rows_of_parquet(path: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


OUTPUTS = {
    "csv": FileFormat((".csv", ".csv.gz"), _write_csv, _rows_of_csv, is_text=True),
    "parquet": FileFormat((".parquet",), _write_parquet, _rows_of_parquet, is_text=False),
}
"""By the name that policies have for them (`output.format`)."""
SUFFIXES = tuple(suffix for output in OUTPUTS.values() for suffix in output.suffixes)


def output_of(file: str) -> FileFormat:
    """The format of a file by its name; csv where that tells nothing."""
    known = (output for output in OUTPUTS.values() if file.endswith(output.suffixes))
    return next(known, OUTPUTS["csv"])


def data_file(format: str) -> str:
    """The name of the data in a release folder."""
    return f"data{OUTPUTS[format].suffixes[0]}"
