"""Delimited text: every cell stays text, so that codes keep their zeros and nothing is guessed."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from sequester.errors import DataError, Problem
from sequester.ingest.source import Source, Wanted, once, quietly
from sequester.memory import is_lack_of_memory
from sequester.policy.encodings import UNKNOWN, known_encoding
from sequester.policy.model import Input
from sequester.regular import size

COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
DELIMITERS = (",", ";", "\t", "|")
_OPENING = 1 << 20
_SHOWN = 5
# Arrow reads in blocks, and takes no row that is longer than one.
_BLOCK = 1 << 20
_LARGEST = 1 << 26


@dataclass(frozen=True)
class _File:
    path: Path
    quote: str
    encoding: str
    delimiter: str
    names: tuple[str, ...]
    bare: bool

    def bytes(self) -> pa.NativeFile:
        return _stream(self.path)


class _Counted(io.RawIOBase):
    """Passes bytes through and counts the quotes, to notice one that is never closed."""

    def __init__(self, stream: pa.NativeFile, quote: str) -> None:
        self._stream, self._quote = stream, quote.encode()
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._stream.read(None if size < 0 else size)
        self.quotes += block.count(self._quote)
        return block


def open_delimited(path: Path, wanted: Wanted, *, form: Input) -> Source:
    """Open a delimited file; its delimiter is found from the header unless given."""
    file = _open(path, wanted, form)
    return Source(file.names, once(lambda: _read(file, wanted, form)))


def stream_delimited(path: Path, wanted: Wanted, *, form: Input) -> Iterator[pa.Table]:
    """The wanted columns of a delimited file, some rows at a time: a file that is larger than memory can be read."""
    file = _open(path, wanted, form)
    columns = wanted.among(file.names)
    if file.bare or not columns:
        return
    stream = _Counted(file.bytes(), file.quote)
    options = _options(file, dict.fromkeys(columns, pa.string()), form.missing, _LARGEST)
    reader = quietly(lambda: arrow_csv.open_csv(stream, **options), lambda error: _explain(file, error))
    while (batch := quietly(lambda: next(reader, None), lambda error: _explain(file, error))) is not None:
        yield pa.Table.from_batches([batch])
    _refuse_open_quote(file, stream.quotes)


def _open(path: Path, wanted: Wanted, form: Input) -> _File:
    """What the beginning of a file tells about it."""
    encoding = _known(form.encoding)
    opening = quietly(lambda: bytes(_stream(path).read(_OPENING)), lambda _: _damaged(path))
    # Cut-off or foreign bytes further down are judged when their column is read.
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    whole = len(opening) < _OPENING
    text = quietly(lambda: decoder.decode(opening, final=whole), lambda _: _wrong_encoding(path, form.encoding))
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise DataError(Problem("the file is empty", file=str(path)))
    delimiter, names = _header(text, wanted, form)
    if any("\ufffd" in name for name in names):
        raise DataError(_wrong_encoding(path, form.encoding))
    records = _first(text, delimiter, form.quote, 2)
    if not whole and len(records) < 2:
        message = (
            f"the header line does not end within {size(_OPENING)}; close its quotes ({form.quote}), or shorten it"
        )
        raise DataError(Problem(message, file=str(path)))
    bare = whole and len(records) < 2
    return _File(path, form.quote, encoding, delimiter, names, bare)


def _read(file: _File, wanted: Wanted, form: Input) -> dict[str, pa.ChunkedArray]:
    columns = wanted.among(file.names)
    if file.bare or not columns:
        return {name: pa.chunked_array([], pa.string()) for name in columns}
    text = pa.string()
    types = {name: pa.dictionary(pa.int32(), text) if name in wanted.repeats else text for name in columns}
    table, quotes = _parse(file, types, form.missing)
    _refuse_open_quote(file, quotes)
    return dict(zip(table.column_names, table.columns, strict=True))


def _refuse_open_quote(file: _File, quotes: int) -> None:
    # An odd number of quotes is usual inside unquoted text (5" pipe); it hides records only if the last cell runs on.
    if quotes % 2 and not file.encoding.startswith(("utf-16", "utf-32")) and _runs_on(file):
        message = f"a quote ({file.quote}) is opened and never closed, so the last records run into one cell"
        raise DataError(Problem(f"{message}; close it, or set input.quote", file=str(file.path)))


def _parse(file: _File, types: dict[str, pa.DataType], missing: tuple[str, ...]) -> tuple[pa.Table, int]:
    """The columns, and how many quotes the file has. A very long row is rare: then the file is read once more."""
    lacking = False
    for block in (_BLOCK, _LARGEST):
        stream = _Counted(file.bytes(), file.quote)
        try:
            return _parse_blocks(file, stream, types, missing, block), stream.quotes
        except Exception as error:  # noqa: BLE001 - Arrow quotes cells, and Python's decoders bytes
            lacking = is_lack_of_memory(error)
            problem = _explain(file, error)
            if not _is_long(error):
                break
    # Outside the handler, as in `quietly`.
    if lacking:
        raise MemoryError
    raise DataError(problem)


def _parse_blocks(
    file: _File, stream: object, types: dict[str, pa.DataType], missing: tuple[str, ...], block: int
) -> pa.Table:
    return arrow_csv.read_csv(stream, **_options(file, types, missing, block))


def _options(file: _File, types: dict[str, pa.DataType], missing: tuple[str, ...], block: int) -> dict[str, Any]:
    encoding = "utf8" if file.encoding == "utf-8" else file.encoding
    # No handler for ragged rows: Arrow would print what it cannot decode of them on stderr.
    return {
        "read_options": arrow_csv.ReadOptions(encoding=encoding, block_size=block),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=file.delimiter, quote_char=file.quote, newlines_in_values=True
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    }


def _is_long(error: Exception) -> bool:
    return "straddl" in str(error)


def _runs_on(file: _File) -> bool:
    """Whether the last cell of the file holds a newline. As bytes: the column may be one that nobody asked for."""
    types = {file.names[-1]: pa.binary()}
    last = _parse(file, types, ())[0].column(0)
    return len(last) > 0 and b"\n" in last[-1].as_py()


def _header(text: str, wanted: Wanted, form: Input) -> tuple[str, tuple[str, ...]]:
    """The delimiter that finds most of the wanted columns, else most fields; and the names."""
    known = set(wanted.columns or ())
    readings: list[tuple[int, int, str, tuple[str, ...]]] = []
    for delimiter in [form.delimiter] if form.delimiter else DELIMITERS:
        names = tuple(next(iter(_first(text, delimiter, form.quote, 1)), ()))
        readings.append((len(known.intersection(names)), len(names), delimiter, names))
    best = max(readings, key=lambda one: one[:2])
    return best[2], best[3]


def _first(text: str, delimiter: str, quote: str, most: int) -> list[list[str]]:
    """The first records that are not blank, as far as the text can be read."""
    records: list[list[str]] = []
    with _large_cells(), contextlib.suppress(csv.Error):
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote):
            if record:
                records.append(record)
            if len(records) == most:
                break
    return records


@contextlib.contextmanager
def _large_cells() -> Iterator[None]:
    """Python's reader stops at cells of more than 128 KB, as if the file were wrong."""
    before = csv.field_size_limit(_LARGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _ragged(file: _File) -> Problem | None:
    """Counts the rows and names the first lines by a second, slower reading: the parallel one stops at any of them."""
    lines: list[int] = []
    count = 0
    encoding = "utf-8-sig" if file.encoding == "utf-8" else file.encoding
    text = io.TextIOWrapper(_Counted(file.bytes(), file.quote), encoding, errors="replace", newline="")  # type: ignore[type-var]
    records = csv.reader(text, delimiter=file.delimiter, quotechar=file.quote)
    line = 1
    with _large_cells(), contextlib.suppress(csv.Error):
        for record in records:
            if record and len(record) != len(file.names):
                count += 1
                if count <= _SHOWN:
                    lines.append(line)
            line = records.line_num + 1
    if not count:
        return None
    where = f", first on line {', '.join(map(str, lines))}"
    return Problem(
        f"{count} {'row has' if count == 1 else 'rows have'} too few or too many cells (the header has "
        f"{len(file.names)}){where}; put cells that contain the delimiter in quotes, or set input.delimiter",
        file=str(file.path),
        rows=count,
    )


def _explain(file: _File, error: Exception) -> Problem:
    if _is_long(error):
        message = (
            f"a row is longer than {size(_LARGEST)}, the most that is read; often a quote ({file.quote}) is opened"
        )
        return Problem(f"{message} and never closed", file=str(file.path))
    if str(error).startswith("CSV parse error") and (problem := _ragged(file)):
        return problem
    if isinstance(error, UnicodeError) or "UTF8" in str(error):
        return _wrong_encoding(file.path, file.encoding)
    if isinstance(error, OSError):
        return _damaged(file.path)
    return Problem(
        "the file cannot be read as delimited text; check input.delimiter and input.quote", file=str(file.path)
    )


def _wrong_encoding(path: Path, encoding: str) -> Problem:
    other = "latin-1" if encoding == "utf-8" else "utf-8"
    return Problem(f"the text is not {encoding}; say how it is written, often `encoding: {other}`", file=str(path))


def _damaged(path: Path) -> Problem:
    how = "cannot be unpacked: it is cut off or damaged" if path.suffix.lower() in COMPRESSION else "cannot be read"
    return Problem(f"the file {how}; get it again", file=str(path))


def _known(encoding: str) -> str:
    name = known_encoding(encoding)
    if name is None:
        raise DataError(f"input.encoding: {UNKNOWN}")
    return name


def _stream(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression=COMPRESSION.get(path.suffix.lower()))
