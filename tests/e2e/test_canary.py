"""A canary in every column is in nothing that the command line prints, and in no file where it may not be."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from command import invoke
from sequester.datasets import hospital, hospital_policy

CANARY = "CANARY-7f3a"
KINDS = {"age": "number", "zip": "code", "admitted": "date", "gender": "category", "diagnosis": "category"}
FORMATS = [("--format", "text"), ("--format", "json")]


def planted(*columns: str, rows: int = 1) -> pa.Table:
    """The hospital with the canary in the first rows of some columns, everything as text."""
    table = hospital(200, seed=6)
    cells = {name: table[name].cast(pa.string()).to_pylist() for name in table.column_names}
    for name in columns:
        cells[name][:rows] = [f"{CANARY}-{name}-{row}" for row in range(rows)]
    return pa.table(cells)


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".gz":
        plain = path.with_suffix("")
        csv.write_csv(table, plain)
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    else:
        csv.write_csv(table, path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(hospital_policy())
    return tmp_path


def run(*arguments: object, cwd: Path, code: int) -> str:
    """Run a command that ends with this code, and look for the canary in all it prints."""
    done = invoke(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert CANARY not in done.stdout
    assert CANARY not in done.stderr
    assert "internal error" not in done.stderr
    return done.stdout + done.stderr


def found_in(folder: Path, *, but: Path) -> dict[str, bytes]:
    """The files with the canary in them, packed or not, except the input."""
    found = {}
    for file in folder.rglob("*"):
        if file.is_file() and file != but:
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            if CANARY.encode() in data or CANARY.encode() in file.name.encode():
                found[file.name] = data
    return found


@pytest.mark.parametrize("column", [*KINDS, "patient_id"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_wrong_cell_is_printed_nowhere(folder: Path, column: str, suffix: str) -> None:
    # Two rows of one person are the mistake that a person's cell can make.
    rows = [f"{CANARY}-twice"] * 2 if column == "patient_id" else [f"{CANARY}-wrong"]
    table = planted()
    cells = table[column].to_pylist()
    cells[: len(rows)] = rows
    data = write(table.set_column(table.column_names.index(column), column, pa.array(cells)), folder / f"d{suffix}")
    for command in (("anonymize", data, "-p", "policy.yaml"), ("check", "policy.yaml", data)):
        assert column in run(*command, "--show-values", cwd=folder, code=6)
    assert found_in(folder, but=data) == {}


@pytest.mark.parametrize("column", ["age", "admitted", "zip", "gender"])
def test_measure_prints_no_cell_it_does_not_understand(folder: Path, column: str) -> None:
    data = write(planted(column), folder / "d.csv")
    for format in FORMATS:
        # A code that is too long, or an unknown category, may be somebody's own notation: not every one is refused.
        done = invoke("measure", data, "-p", "policy.yaml", *format, cwd=folder)
        assert done.returncode in (4, 6)
        assert CANARY not in done.stdout + done.stderr


def header_only_canary(folder: Path) -> Path:
    """A file without a header: its first record is where names are expected."""
    table = planted("name", "patient_id", "ward")
    data = write(table, folder / "d.csv")
    data.write_text("".join(data.read_text().splitlines(keepends=True)[1:]))
    return data


def ragged(folder: Path) -> Path:
    data = write(planted("name"), folder / "d.csv")
    data.write_text(data.read_text() + f"{CANARY},{CANARY}\n")
    return data


def open_quote(folder: Path) -> Path:
    data = write(planted("name"), folder / "d.csv")
    data.write_text(data.read_text() + f'"{CANARY},1,2,3,4,5,6,7\n')
    return data


def another_encoding(folder: Path) -> Path:
    data = write(planted("ward"), folder / "d.csv")
    data.write_bytes(data.read_bytes() + f'"{CANARY}\u00fc"\n'.encode("latin-1"))
    return data


def damaged(folder: Path) -> Path:
    data = write(planted("ward"), folder / "d.parquet")
    data.write_bytes(data.read_bytes()[:-20])
    return data


def nested(folder: Path) -> Path:
    table = planted()
    return write(table.set_column(2, "age", pa.array([{CANARY: 1}] * len(table))), folder / "d.parquet")


@pytest.mark.parametrize("make", [header_only_canary, ragged, open_quote, another_encoding, damaged, nested])
@pytest.mark.parametrize("format", FORMATS)
def test_a_broken_file_is_quoted_nowhere(folder: Path, make, format: tuple[str, str]) -> None:
    data = make(folder)
    run("anonymize", data, "-p", "policy.yaml", *format, cwd=folder, code=6)
    run("measure", data, "-p", "policy.yaml", *format, cwd=folder, code=6)
    assert found_in(folder, but=data) == {}


@pytest.mark.parametrize("format", FORMATS)
def test_a_promise_that_cannot_be_kept_names_no_value(folder: Path, format: tuple[str, str]) -> None:
    rules = hospital_policy().split("    hierarchy:")[0].replace("ordinary: [none, flu]", "ordinary: []")
    (folder / "policy.yaml").write_text(rules + hospital_policy()[hospital_policy().index("protect:") :])
    table = planted("patient_id", "name", "ward")
    sick = table.set_column(7, "diagnosis", pa.array([CANARY] * 150 + ["none"] * 50))
    data = write(sick, folder / "d.csv")
    assert "does not keep" in run("anonymize", data, "-p", "policy.yaml", *format, cwd=folder, code=4)
    assert "break" in run("measure", data, "-p", "policy.yaml", *format, cwd=folder, code=4)
    assert found_in(folder, but=data) == {}


@pytest.mark.parametrize("method", ["mondrian", "full-domain, suppression: 0.2", "specialize"])
@pytest.mark.parametrize("output", ["folder", "r.csv", "r.csv.gz", "r.parquet"])
def test_a_release_has_no_canary_but_in_columns_that_are_published(folder: Path, method: str, output: str) -> None:
    rules = hospital_policy().replace("name: mondrian", f"name: {method}")
    # Without a hierarchy the values of the data are the domain: what is most likely to slip through.
    rules = rules.split("    hierarchy:")[0] + rules[rules.index("protect:") :]
    (folder / "policy.yaml").write_text(rules)
    everywhere = ("patient_id", "name", "diagnosis", "ward")
    data = write(planted(*everywhere, rows=20), folder / "d.csv")
    for number, format in enumerate(FORMATS):
        out = folder / str(number) / output
        run("anonymize", data, "-p", "policy.yaml", "-o", out, *format, cwd=folder, code=0)
        file = out / "data.csv" if output == "folder" else out
        run("measure", file, "-p", "policy.yaml", "--original", data, "--queries", 5, *format, cwd=folder, code=0)
    found = found_in(folder, but=data)
    assert set(found) == {file.name}
    for text in found.values():
        for column in everywhere:
            assert (f"{CANARY}-{column}".encode() in text) == (column in ("diagnosis", "ward"))


@pytest.mark.parametrize("output", ["r.csv", "r.parquet"])
def test_values_of_records_that_are_left_out_are_in_no_file(folder: Path, output: str) -> None:
    """One person is nobody's neighbour, so full-domain recoding leaves them out, with all they have."""
    rules = hospital_policy().replace("name: mondrian", "name: full-domain, suppression: 0.05")
    rules = rules.split("    hierarchy:")[0] + rules[rules.index("protect:") :]
    rules = rules.replace("hierarchy: {Person: [Female, Male]}", "missing: refuse")
    (folder / "policy.yaml").write_text(rules)
    data = write(planted("gender", "diagnosis", "ward", "patient_id", "name"), folder / "d.csv")
    printed = run("anonymize", data, "-p", "policy.yaml", "-o", output, "--seed", 1, cwd=folder, code=0)
    assert "left out" in printed
    assert "none left out" not in printed
    assert found_in(folder, but=data) == {}


def test_init_and_check_print_and_write_no_cell(folder: Path) -> None:
    data = write(planted("patient_id", "name", "ward", "diagnosis", "gender"), folder / "d.csv")
    run("init", data, "-o", "proposed.yaml", cwd=folder, code=0)
    run("init", data, "-o", "-", cwd=folder, code=0)
    assert found_in(folder, but=data) == {}
