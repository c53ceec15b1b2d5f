"""Parquet columns of every type in every role, and files that are damaged on purpose: used, or refused by name."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from command import invoke
from hostile import POLICY, refused, spread

N = 12
NESTED = {
    "struct": pa.array([{"a": n} for n in range(N)]),
    "list": pa.array([[n] for n in range(N)]),
    "large list": pa.array([[n] for n in range(N)], pa.large_list(pa.int64())),
    "map": pa.array([[("a", n)] for n in range(N)], pa.map_(pa.string(), pa.int64())),
    "lists of structs": pa.array([[{"a": [n]}] for n in range(N)]),
}
BYTES = {
    "binary": pa.array([bytes([n, 255]) for n in range(N)]),
    "large binary": pa.array([bytes([n, 255]) for n in range(N)], pa.large_binary()),
    "fixed binary": pa.array([bytes([n, 255]) for n in range(N)], pa.binary(2)),
}
SIMPLE = {
    "text as bytes": pa.array([b"a%d" % n for n in range(N)]),
    "decimal": pa.array([Decimal(n) for n in range(N)], pa.decimal128(38, 5)),
    "decimal of 256 bits": pa.array([Decimal(10) ** 60 + n for n in range(N)], pa.decimal256(76, 5)),
    "seconds": pa.array([time(n) for n in range(N)], pa.time32("s")),
    "microseconds": pa.array([time(n) for n in range(N)], pa.time64("us")),
    "duration": pa.array([timedelta(n) for n in range(N)]),
    "date": pa.array([date(2000, 1, 1 + n) for n in range(N)]),
    "zone": pa.array([datetime(2000, 1, 1 + n) for n in range(N)], pa.timestamp("us", "Europe/Berlin")),
    "far away": pa.array([2**62 + n for n in range(N)], pa.timestamp("ms")),
    "far day": pa.array([2**31 - 1 - n for n in range(N)], pa.date32()),
    "dictionary": pa.array([f"x{n % 2}" for n in range(N)]).dictionary_encode(),
    "dictionary of numbers": pa.array([n % 2 for n in range(N)]).dictionary_encode(),
    "null": pa.nulls(N),
    "large string": pa.array([f"x{n}" for n in range(N)], pa.large_string()),
    "string view": pa.array([f"x{n}" for n in range(N)], pa.string_view()),
    "truth": pa.array([n % 2 == 0 for n in range(N)]),
    "half": pa.array([float(n) for n in range(N)], pa.float16()),
    "no number": pa.array([float("nan")] * N),
    "unsigned": pa.array([2**64 - 1 - n for n in range(N)], pa.uint64()),
    "null characters": pa.array([f"x\0{n}" for n in range(N)]),
}
COLUMNS = ("id", "age", "sex", "note", "illness")
COMMANDS = (
    ("check", "policy.yaml", "data.parquet"),
    ("anonymize", "data.parquet", "-p", "policy.yaml", "--force"),
    ("plan", "data.parquet", "-p", "policy.yaml"),
    ("measure", "data.parquet", "-p", "policy.yaml"),
    ("audit", "data.parquet", "-p", "policy.yaml"),
    ("init", "data.parquet", "-o", "new.yaml", "--force"),
)


def table(**other: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "id": [f"p{n}" for n in range(N)],
        "age": [20 + n for n in range(N)],
        "sex": ["fm"[n % 2] for n in range(N)],
        "note": [f"n{n % 3}" for n in range(N)],
        "illness": [("flu", "none", "cold")[n % 3] for n in range(N)],
    }
    return pa.table({**columns, **other})


def write(folder: Path, found: pa.Table, **options: Any) -> Path:
    spread(folder, policy=POLICY.replace(", hierarchy: {Person: [f, m]}", ""))
    parquet.write_table(found, folder / "data.parquet", **options)
    return folder / "data.parquet"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("kind", [*NESTED, *BYTES])
def test_cells_that_are_no_single_value_are_refused_with_the_name_of_their_column(
    tmp_path: Path, kind: str, column: str
) -> None:
    write(tmp_path, table(**{column: {**NESTED, **BYTES}[kind]}))
    for command in COMMANDS[:3]:
        said = refused(*command, cwd=tmp_path)
        assert f"column '{column}': has {'nested cells' if kind in NESTED else 'bytes that are no UTF-8 text'}" in said


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("kind", [*SIMPLE, "struct", "binary"])
def test_no_type_in_any_role_is_a_mistake_of_ours(tmp_path: Path, kind: str, column: str) -> None:
    write(tmp_path, table(**{column: {**SIMPLE, **NESTED, **BYTES}[kind]}))
    for command in COMMANDS:
        done = invoke(*command, cwd=tmp_path)
        assert done.returncode in (0, 4, 6), (command[0], done.stderr)
        assert done.returncode != 6 or column in done.stderr


@pytest.mark.parametrize("kind", [kind for kind in SIMPLE if kind not in ("null", "no number")])
def test_a_simple_column_is_published_as_it_is(tmp_path: Path, kind: str) -> None:
    write(tmp_path, table(note=SIMPLE[kind]))
    assert invoke(*COMMANDS[1], cwd=tmp_path).returncode == 0


class Own(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.int64(), "sequester.test")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Own:
        return cls()


def test_types_of_other_programs_are_refused_or_read_as_what_they_are_stored_as(tmp_path: Path) -> None:
    column = pa.ExtensionArray.from_storage(Own(), pa.array(range(N)))
    write(tmp_path, table(note=column))
    assert invoke(*COMMANDS[0], cwd=tmp_path).returncode == 0
    pa.register_extension_type(Own())
    try:
        assert "column 'note': has cells of a type that is not understood" in refused(*COMMANDS[0], cwd=tmp_path)
    finally:
        pa.unregister_extension_type("sequester.test")


def test_text_that_is_no_utf8_and_unknown_zones_are_refused(tmp_path: Path) -> None:
    cells = pa.array([bytes([255, n]) for n in range(N)])
    text = pa.StringArray.from_buffers(N, *cells.buffers()[1:])
    zone = pa.array([datetime(2000, 1, 1)] * N, pa.timestamp("us", "Mars/Olympus"))
    for column, words in ((text, "text that is not UTF-8"), (zone, "times in a zone that is not known here")):
        write(tmp_path, table(note=column))
        assert f"column 'note': has {words}" in refused(*COMMANDS[0], cwd=tmp_path)


def test_files_that_lie_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, table())
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    lies = {
        "a footer that is too long": whole[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        "a footer of nothing": whole[:-8] + (0).to_bytes(4, "little") + b"PAR1",
        "a footer of noise": whole[: -8 - size] + b"\xff" * size + whole[-8:],
        "an encrypted footer": whole[:-4] + b"PARE",
        "pages of noise": whole[:4] + b"\xff" * (len(whole) - size - 12) + whole[-8 - size :],
        "text": b"id,age\n1,2\n",
    }
    for case, data in lies.items():
        path.write_bytes(data)
        assert "not Parquet, or is cut off or damaged" in refused(*COMMANDS[0], cwd=tmp_path), case


def test_tables_without_rows_and_with_a_name_twice_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, table().slice(0, 0))
    assert "the table has no rows" in refused(*COMMANDS[0], cwd=tmp_path)
    with parquet.ParquetWriter(path, table().schema):
        pass
    assert "the table has no rows" in refused(*COMMANDS[0], cwd=tmp_path)
    columns = table()
    parquet.write_table(pa.table([*columns.columns, columns["note"]], names=[*COLUMNS, "note"]), path)
    assert "column names must differ" in refused(*COMMANDS[0], cwd=tmp_path)
