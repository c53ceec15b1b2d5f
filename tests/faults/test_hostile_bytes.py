"""Tables with random bytes changed, put in or cut out: used or refused, and never a mistake of ours."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from command import invoke
from hostile import POLICY, ROWS, TABLE, spread

TIMES = 40
SPICE = [b'"', b"\x00", b"\xff", b"\r", b"\n", b",", b";", b"\t", b"\x1b", b"=", b"'", b"\xef\xbb\xbf", b"1e999", b"*"]


def mutated(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(found))
        match rng.randrange(5):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at:at] = rng.choice(SPICE)
            case 2:
                del found[at : at + rng.randrange(1, 40)]
            case 3:
                found[at:at] = found[at : at + rng.randrange(1, 60)]
            case _:
                found[at] ^= 1 << rng.randrange(8)
        if not found:
            return b"\n"
    return bytes(found)


def parquet_bytes(folder: Path, compression: str) -> bytes:
    names = TABLE.splitlines()[0].split(",")
    columns = zip(*(row.split(",") for row in ROWS), strict=True)
    table = pa.table(dict(zip(names, map(list, columns), strict=True)))
    parquet.write_table(table, folder / "whole.parquet", compression=compression)
    return (folder / "whole.parquet").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "none", "snappy"])
@pytest.mark.parametrize("command", ["check", "anonymize", "measure", "init"])
def test_no_bytes_end_in_a_mistake_of_ours(tmp_path: Path, kind: str, command: str) -> None:
    spread(tmp_path)
    whole = TABLE.encode() if kind == "csv" else parquet_bytes(tmp_path, kind)
    rng = random.Random(f"{kind} {command}")
    file = "spoiled.csv" if kind == "csv" else "spoiled.parquet"
    words = {
        "check": ("check", "policy.yaml", file),
        "anonymize": ("anonymize", file, "-p", "policy.yaml", "-o", "out.csv", "--force"),
        "measure": ("measure", file, "-p", "policy.yaml"),
        "init": ("init", file, "-o", "new.yaml", "--force"),
    }[command]
    codes = []
    for _ in range(TIMES):
        data = mutated(whole, rng)
        (tmp_path / file).write_bytes(data)
        done = invoke(*words, cwd=tmp_path)
        codes.append(done.returncode)
        assert done.returncode in (0, 4, 6), (data, done.stderr)
        assert "p11" not in done.stderr
    assert 6 in codes


def test_no_policy_of_spoiled_bytes_ends_in_a_mistake_of_ours(tmp_path: Path) -> None:
    spread(tmp_path)
    rng = random.Random(13)
    codes = []
    for _ in range(2 * TIMES):
        (tmp_path / "policy.yaml").write_bytes(mutated(POLICY.encode(), rng))
        done = invoke("check", "policy.yaml", "data.csv", cwd=tmp_path)
        codes.append(done.returncode)
        assert done.returncode in (0, 6), done.stderr
    assert 6 in codes
