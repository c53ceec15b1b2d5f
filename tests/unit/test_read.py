"""Reading files and frames: text stays text, and whatever cannot be read is said clearly."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sequester.errors import DataError
from sequester.ingest import read

TEXT = "id,zip,word\na1,02139,x\na2,00501,y\n"
TABLE = {"id": ["a1", "a2"], "zip": ["02139", "00501"], "word": ["x", "y"]}


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".CSV"])
def test_every_cell_of_a_delimited_file_stays_text(tmp_path, suffix):
    table = read(write(tmp_path / f"t{suffix}", TEXT))
    assert table.to_pydict() == TABLE
    assert set(table.schema.types) == {pa.string()}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_from_the_header(tmp_path, delimiter):
    assert read(write(tmp_path / "t.csv", TEXT.replace(",", delimiter))).to_pydict() == TABLE


def test_the_delimiter_that_finds_the_expected_columns_wins_over_the_one_with_most_fields(tmp_path):
    path = write(tmp_path / "t.csv", "id;name, first, middle, last\n1;a, b, c, d\n")
    assert read(path).column_names[0] == "id;name"
    assert read(path, columns=["id"]).to_pydict() == {"id": ["1"]}


def test_a_given_delimiter_and_quote_are_used(tmp_path):
    path = write(tmp_path / "t.csv", "id:word\n1:'x:y'\n")
    assert read(path, delimiter=":", quote="'").to_pydict() == {"id": ["1"], "word": ["x:y"]}


def test_quoted_cells_may_hold_delimiters_quotes_and_newlines(tmp_path):
    path = write(tmp_path / "t.csv", 'id,"wo\nrd"\n1,"a,""b""\nc"\n')
    assert read(path).to_pydict() == {"id": ["1"], "wo\nrd": ['a,"b"\nc']}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
def test_encodings_and_byte_order_marks_are_understood(tmp_path, encoding):
    path = write(tmp_path / "t.csv", "näme,b\né,1\n".encode(encoding))
    given = "utf-8" if encoding == "utf-8-sig" else encoding
    assert read(path, encoding=given).to_pydict() == {"näme": ["é"], "b": ["1"]}


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".zst", lambda b: pa.compress(b, codec="zstd", asbytes=True))],
)
def test_packed_files_are_read_and_cut_off_ones_refused(tmp_path, suffix, pack):
    packed = pack(TEXT.encode())
    assert read(write(tmp_path / f"t.csv{suffix}", packed)).to_pydict() == TABLE
    with pytest.raises(DataError, match="cut off or damaged"):
        read(write(tmp_path / f"cut.csv{suffix}", packed[:-6]))


def test_a_large_packed_file_that_is_cut_off_is_refused_while_its_rows_are_read(tmp_path):
    packed = gzip.compress(("a,b\n" + "".join(f"{i},{i * 7919 % 10007}\n" for i in range(300_000))).encode())
    with pytest.raises(DataError, match="cut off or damaged"):
        read(write(tmp_path / "t.csv.gz", packed[: len(packed) - 100]))


def test_missing_tokens_are_null_also_in_quotes(tmp_path):
    table = read(write(tmp_path / "t.csv", 'a,b\n,"?"\n?,NA\n'), missing=("", "?"))
    assert table.to_pydict() == {"a": [None, None], "b": [None, "NA"]}


def test_only_the_named_columns_are_read(tmp_path):
    assert read(write(tmp_path / "t.csv", TEXT), columns=["word", "absent"]).to_pydict() == {"word": ["x", "y"]}


def test_a_header_without_rows_is_an_empty_table(tmp_path):
    for number, text in enumerate(["a,b", "a,b\n", "a,b\r\n\r\n"]):
        table = read(write(tmp_path / f"{number}.csv", text))
        assert (table.column_names, table.num_rows) == (["a", "b"], 0)


def test_a_ragged_row_is_an_error_that_gives_its_line(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n1,2\n\n"x\ny",4\n5\n6,7,8\n9,10\n')
    with pytest.raises(
        DataError, match=r"2 rows have too few or too many cells \(the header has 2\), .* line 6, 7;"
    ) as e:
        read(path)
    assert e.value.problems[0].rows == 2


def test_a_quote_that_is_never_closed_does_not_swallow_rows(tmp_path):
    with pytest.raises(DataError, match="opened and never closed"):
        read(write(tmp_path / "t.csv", 'a,b\n1,"2\n3,4\n'))


def test_a_quote_that_is_never_closed_is_found_in_a_column_that_is_not_read(tmp_path):
    path = write(tmp_path / "t.csv", b'a,b\n1,"\xe9\n3,4\n')
    with pytest.raises(DataError, match="opened and never closed"):
        read(path, columns=["a"])


def test_the_line_of_a_ragged_row_is_right_after_a_byte_order_mark(tmp_path):
    with pytest.raises(DataError, match=r"1 row has .* first on line 3;"):
        read(write(tmp_path / "t.csv", '\ufeff"a,a",b\n1,2\n3\n'))


def test_a_single_quote_inside_a_cell_is_text(tmp_path):
    assert read(write(tmp_path / "t.csv", 'a,b\n1,5" pipe\n3,4\n')).to_pydict() == {
        "a": ["1", "3"],
        "b": ['5" pipe', "4"],
    }


def test_names_that_occur_twice_are_refused_and_quoted_only_if_the_caller_knows_them(tmp_path):
    path = write(tmp_path / "t.csv", "a,secret,a,secret\n1,2,3,4\n")
    with pytest.raises(DataError, match=r"1 and 3 \('a'\); 2 and 4;") as e:
        read(path, columns=["a"])
    assert "secret" not in str(e.value)
    with pytest.raises(DataError, match="1 and 2;"):
        read(pa.table([[1], [2]], names=["a", "a"]))


def test_the_wrong_encoding_is_named_with_the_usual_other_one(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\né,1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"not utf-8.*`encoding: latin-1`"):
        read(path)
    with pytest.raises(DataError, match=r"not utf-8.*`encoding: latin-1`"):
        read(write(tmp_path / "h.csv", "é,b\n1,1\n".encode("latin-1")))
    with pytest.raises(DataError, match=r"not ascii.*`encoding: utf-8`"):
        read(path, encoding="ascii")
    with pytest.raises(DataError, match=r"input\.encoding: is no encoding of text"):
        read(path, encoding="klingon")


def test_foreign_bytes_in_a_column_that_is_not_wanted_do_no_harm(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\né,1\n".encode("latin-1"))
    assert read(path, columns=["b"]).to_pydict() == {"b": ["1"]}


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "absent.csv")
    with pytest.raises(DataError, match=r"folder without \.parquet files"):
        read(tmp_path)
    with pytest.raises(DataError, match="the file is empty"):
        read(write(tmp_path / "empty.csv", ""))
    with pytest.raises(DataError, match="the file is empty"):
        read(write(tmp_path / "blank.csv", "\n \n"))
    with pytest.raises(DataError, match=r"unknown kind of file; known are .csv, .tsv, .txt, .parquet"):
        read(write(tmp_path / "t.docx", TEXT))
    with pytest.raises(DataError, match="unknown kind of file"):
        read(write(tmp_path / "bare", TEXT))


def test_parquet_and_a_folder_of_its_parts_are_read(tmp_path):
    whole = pa.table(TABLE)
    pq.write_table(whole, tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").equals(whole)
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(2):
        pq.write_table(whole.slice(number, 1), folder / f"part-{number}.parquet")
    assert read(folder).to_pydict() == TABLE
    pq.write_table(pa.table({"other": [1]}), folder / "part-2.parquet")
    with pytest.raises(DataError, match="1 of the folder's 3 files have other columns than part-0"):
        read(folder)


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [str(i * 7919) for i in range(10_000)]}), path, compression="zstd")
    good = path.read_bytes()
    for bad in (good[:-10], b"no parquet at all", good[:200] + bytes(4000) + good[4200:]):
        with pytest.raises(DataError, match="not Parquet, or is cut off or damaged"):
            read(write(path, bad))


def test_columns_with_dots_and_quotes_in_their_names_are_read(tmp_path):
    table = pa.table({"a.b": ["x"], 'c"d': [1]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").equals(table)
    assert read(duckdb.from_arrow(table)).to_pydict() == table.to_pydict()


@pytest.mark.parametrize(
    "wrap",
    [
        pd.DataFrame,
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
        lambda t: pa.table(t).to_reader(),
        lambda t: pa.table(t).to_batches()[0],
        lambda t: duckdb.from_arrow(pa.table(t)),
    ],
    ids=["pandas", "polars", "lazy", "table", "reader", "batch", "duckdb"],
)
def test_frames_are_read_whole_and_by_column(wrap):
    data = {**TABLE, "n": [1, 2]}
    assert read(wrap(data)).to_pydict() == data
    assert read(wrap(data), columns=["n", "zip"]).to_pydict() == {"zip": data["zip"], "n": [1, 2]}


def test_a_frame_of_another_library_is_read_if_it_offers_an_arrow_stream():
    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(TABLE).__arrow_c_stream__(requested_schema)

    assert read(Foreign()).to_pydict() == TABLE


def test_an_object_that_is_no_table_is_refused_by_its_type():
    with pytest.raises(DataError, match="object of type dict; give a path, a pandas or polars frame"):
        read({"a": [1]})


def test_a_failing_query_is_refused_without_its_message():
    failing = duckdb.sql("select cast(word as integer) as n from (values ('CANARY-7f3a')) t(word)")
    with pytest.raises(DataError, match="cannot be read") as e:
        read(failing)
    assert "CANARY" not in str(e.value) + repr(e.value.__context__) + repr(e.value.__cause__)


def test_reading_imports_no_frame_library(tmp_path):
    delimited, parquet = write(tmp_path / "t.csv", TEXT), tmp_path / "t.parquet"
    pq.write_table(pa.table(TABLE), parquet)
    program = (
        "import sys; from sequester.ingest import read\n"
        f"read(read({str(delimited)!r})); read({str(parquet)!r})\n"
        "assert not {'pandas', 'polars', 'duckdb', 'numba'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
