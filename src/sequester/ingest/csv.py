"""Delimited text: every cell stays text, so that codes keep their zeros and nothing is guessed."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from sequester.errors import DataError, Problem
from sequester.ingest.source import Source, Wanted, once, quietly
from sequester.policy.model import Input

COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
DELIMITERS = (",", ";", "\t", "|")
_OPENING = 1 << 20
_SHOWN = 5


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
    encoding = _known_encoding(form.encoding)
    opening = quietly(lambda: bytes(_stream(path).read(_OPENING)), lambda _: _damaged(path))
    # Cut-off or foreign bytes further down are judged when their column is read.
    text = codecs.getincrementaldecoder(encoding)("replace").decode(opening, final=len(opening) < _OPENING)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise DataError(Problem("the file is empty", file=str(path)))
    delimiter, names = _header(text, wanted, form)
    if any("\ufffd" in name for name in names):
        raise DataError(_wrong_encoding(path, form.encoding))
    filled = islice(filter(None, _records(text, delimiter, form.quote)), 2)
    bare = len(opening) < _OPENING and len(list(filled)) < 2
    file = _File(path, form.quote, encoding, delimiter, names, bare)
    return Source(names, once(lambda: _read(file, wanted, form)))


def _read(file: _File, wanted: Wanted, form: Input) -> dict[str, pa.ChunkedArray]:
    columns = wanted.among(file.names)
    if file.bare or not columns:
        return {name: pa.chunked_array([], pa.string()) for name in columns}
    text = pa.string()
    types = {name: pa.dictionary(pa.int32(), text) if name in wanted.repeats else text for name in columns}
    stream = _Counted(file.bytes(), form.quote)
    table = quietly(lambda: _parse(file, stream, types, form.missing), lambda error: _explain(file, error))
    # An odd number of quotes is usual inside unquoted text (5" pipe); it hides records only if the last cell runs on.
    if stream.quotes % 2 and not file.encoding.startswith(("utf-16", "utf-32")) and _runs_on(file):
        message = f"a quote ({form.quote}) is opened and never closed, so the last records run into one cell"
        raise DataError(Problem(f"{message}; close it, or set input.quote", file=str(file.path)))
    return dict(zip(table.column_names, table.columns, strict=True))


def _parse(file: _File, stream: object, types: dict[str, pa.DataType], missing: tuple[str, ...]) -> pa.Table:
    # No handler for ragged rows: Arrow would print what it cannot decode of them on stderr.
    return arrow_csv.read_csv(
        stream,
        read_options=arrow_csv.ReadOptions(encoding="utf8" if file.encoding == "utf-8" else file.encoding),
        parse_options=arrow_csv.ParseOptions(delimiter=file.delimiter, quote_char=file.quote, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _runs_on(file: _File) -> bool:
    """Whether the last cell of the file holds a newline. As bytes: the column may be one that nobody asked for."""
    types = {file.names[-1]: pa.binary()}
    last = quietly(lambda: _parse(file, file.bytes(), types, ()), lambda error: _explain(file, error)).column(0)
    return len(last) > 0 and b"\n" in last[-1].as_py()


def _header(text: str, wanted: Wanted, form: Input) -> tuple[str, tuple[str, ...]]:
    """The delimiter that finds most of the wanted columns, else most fields; and the names."""
    known = set(wanted.columns or ())
    found: list[tuple[int, int, str, tuple[str, ...]]] = []
    for delimiter in [form.delimiter] if form.delimiter else DELIMITERS:
        names = tuple(next((record for record in _records(text, delimiter, form.quote) if record), ()))
        found.append((len(known.intersection(names)), len(names), delimiter, names))
    best = max(found, key=lambda one: one[:2])
    return best[2], best[3]


def _records(text: str, delimiter: str, quote: str) -> Iterator[list[str]]:
    records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote)
    while True:
        try:
            yield next(records)
        except (StopIteration, csv.Error):
            return


def _ragged(file: _File) -> Problem | None:
    """Counts the rows and names the first lines by a second, slower reading: the parallel one stops at any of them."""
    lines: list[int] = []
    count = 0
    encoding = "utf-8-sig" if file.encoding == "utf-8" else file.encoding
    text = io.TextIOWrapper(_Counted(file.bytes(), file.quote), encoding, errors="replace", newline="")  # type: ignore[type-var]
    records = csv.reader(text, delimiter=file.delimiter, quotechar=file.quote)
    line = 1
    try:
        for record in records:
            if record and len(record) != len(file.names):
                count += 1
                if count <= _SHOWN:
                    lines.append(line)
            line = records.line_num + 1
    except csv.Error:
        pass
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


def _known_encoding(encoding: str) -> str:
    """The usual name of an encoding; a leading byte order mark is skipped in any case."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        name = ""
    if not name:
        raise DataError(f"unknown encoding '{encoding}'; usual ones are utf-8, latin-1, cp1252 and utf-16")
    return "utf-8" if name == "utf-8-sig" else name


def _stream(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression=COMPRESSION.get(path.suffix.lower()))
