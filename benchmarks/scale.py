"""Whole releases of large tables, first and second, beside what DuckDB needs to pass over the same rows.

`python -m benchmarks.scale ROWS [METHOD]` measures one size, 100,000,000 for example, which takes a while and 30 GB
of disk; every run is kept in `results/scale-runs.json`, which `benchmarks.cost` fits its model to.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from benchmarks.figures import RESULTS, Figure
from benchmarks.timing import seconds

SIZES = (100, 20, 50, 8, 4, 2, 30, 10)
QUASI = tuple(f"q{place}" for place in range(len(SIZES)))
MEMORY = "8GB"
K, CONFIDENCE = 10, 0.5
RUNS = RESULTS / "scale-runs.json"
_CHUNK = 1_000_000
_LEFT = 0.2


def run() -> list[Figure]:
    """One and ten million people, of whom a fifth leaves and as many come; and twenty releases of a million."""
    figures = []
    for rows, kind in ((1_000_000, "csv"), (10_000_000, "parquet")):
        found = measure(rows, kind=kind)
        figures += figures_of(found)
    return [*figures, *flat()]


def figures_of(found: dict[str, Any]) -> list[Figure]:
    """What a run came to, with the targets."""
    rows, many = found["rows"], found["rows"] >= 100_000_000
    size = f"{rows:,} rows, {found['kind']}"
    return [
        Figure(f"{size}: first release", found["first"], "s", note=_stages(found["first_stages"])),
        Figure(f"{size}: second release", found["second"], "s", note=_stages(found["second_stages"])),
        Figure("  DuckDB: both tables, join, GROUP BY, write", found["joined"], "s"),
        Figure("  DuckDB: copy and GROUP BY", found["copied"], "s"),
        Figure("  second release / DuckDB's join", found["second"] / found["joined"], at_most=None if many else 15),
        Figure("  first release / DuckDB's copy", found["first"] / found["copied"], at_most=4 if many else None),
        Figure("  second / first release", found["second"] / found["first"], at_most=2.5 if many else None),
        Figure("  peak memory, all processes", found["peak"] / 1e9, "GB", at_most=8),
        Figure("  ledger and parts, two releases", found["ledger"] / 1e9, "GB", at_most=10 if many else None),
    ]


def measure(rows: int, *, kind: str = "parquet", method: str = "pods") -> dict[str, Any]:
    """Two releases in a process of their own, and DuckDB in this one."""
    with tempfile.TemporaryDirectory(prefix="sequester-scale-") as folder:
        waves = [write_wave(Path(folder), rows, wave, kind) for wave in (1, 2)]
        joined, copied = (seconds(call)[0] for call in (lambda: _join(*waves), lambda: _copy(waves[0])))
        command = [sys.executable, "-m", "benchmarks.scale", "--release", method, *map(str, waves)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {"rows": rows, "kind": kind, "method": method, "joined": joined, "copied": copied, **json.loads(told)}
    RESULTS.mkdir(exist_ok=True)
    kept = json.loads(RUNS.read_text()) if RUNS.exists() else []
    RUNS.write_text(json.dumps([*kept, found], indent=1))
    return found


def write_wave(folder: Path, rows: int, wave: int, kind: str) -> Path:
    """Narrow columns of people, a chunk at a time; in the second wave a fifth has left and as many came."""
    path = folder / f"wave{wave}.{kind}"
    writer: Any = None
    for table in _chunks(rows, wave):
        if writer is None:
            writer = csv.CSVWriter(path, table.schema) if kind == "csv" else parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    return path


def _chunks(rows: int, wave: int) -> Iterator[pa.Table]:
    for first in range(0, rows, _CHUNK):
        table = _people(first, min(_CHUNK, rows - first))
        if wave == 2:
            table = table.filter(pa.array(np.random.default_rng([first, 2]).random(table.num_rows) >= _LEFT))
        yield table
    new = int(_LEFT * rows) if wave == 2 else 0
    for first in range(rows, rows + new, _CHUNK):
        yield _people(first, min(_CHUNK, rows + new - first))


def _people(first: int, count: int) -> pa.Table:
    draw = np.random.default_rng([first, 1])
    quasi = {name: draw.integers(0, size, count, np.uint8) for name, size in zip(QUASI, SIZES, strict=True)}
    return pa.table(
        {"id": np.arange(first, first + count), **quasi, "condition": draw.integers(0, 14, count, np.uint8)}
    )


def policy(method: str, kind: str) -> Any:
    """k 10, confidence 1/2, against insiders, in 8 GB."""
    import sequester

    quasi = {
        name: {"role": "quasi-identifier", "kind": "number", "range": [0, size - 1]}
        for name, size in zip(QUASI, SIZES, strict=True)
    }
    return sequester.Policy.model_validate(
        {
            "version": 1,
            "series": "scale",
            "person": "id",
            "attributes": {**quasi, "condition": {"role": "sensitive"}},
            "protect": {"k": K, "confidence": CONFIDENCE, "inferred": 2, "against": ["insider"]},
            "method": {"name": method},
            **({"decoys": 0.01} if method == "pods" else {}),
            "output": {"format": kind},
            "engine": {"memory": MEMORY},
        }
    )


def release(method: str, waves: list[Path]) -> dict[str, Any]:
    """Publish all waves one after the other: seconds, stages, memory, the size of the ledger."""
    import sequester
    from sequester.ledger import Key

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="sequester-scale-", dir=waves[0].parent) as folder:
        chosen = policy(method, waves[0].suffix[1:])
        place = Path(folder) / "scale.ledger"
        series = sequester.Series.open(place, chosen, key=Key.of_text("a key for benchmarks only"))
        watch = _Peak()
        for name, wave in zip(("first", "second"), waves, strict=False):
            stages: dict[str, float] = {}
            start = time.perf_counter()
            plan = series.plan(
                wave,
                name=name,
                seed=2**63 + 1,
                progress=lambda what, *_, s=stages: s.setdefault(what, time.perf_counter()),
            )
            stages["publishing"] = time.perf_counter()
            records, classes, loss = plan.records, plan.classes, plan.loss["release"]["ail"]
            series.publish(plan)
            end = time.perf_counter()
            del plan
            found |= {name: end - start, f"{name}_stages": _taken(stages, start, end)}
            found |= {f"{name}_records": records, f"{name}_classes": classes, f"{name}_ail": loss}
        kept = [file for file in Path(folder).rglob("*") if file.is_file() and "releases" not in file.parts]
        found |= {"ledger": sum(file.stat().st_size for file in kept), "peak": watch.stop()}
    return found


def _taken(stages: dict[str, float], start: float, end: float) -> dict[str, float]:
    begins = [*stages.values(), end]
    begins[0] = start
    return {name: after - before for name, before, after in zip(stages, begins, begins[1:], strict=False)}


def flat(releases: int = 20, rows: int = 1_000_000) -> list[Figure]:
    """Whether a release takes longer the more there were: the twentieth of a million people beside the third."""
    import sequester
    from sequester.ledger import Key

    taken = []
    with tempfile.TemporaryDirectory(prefix="sequester-scale-") as folder:
        everybody = pa.concat_tables([_people(first, _CHUNK) for first in range(0, 2 * rows, _CHUNK)])
        series = sequester.Series.open(
            Path(folder) / "scale.ledger", policy("pods", "parquet"), key=Key.of_text("a key for benchmarks only")
        )
        for number in range(releases):
            # One in fifty leaves each time, and as many come.
            table = everybody.slice(number * rows // 50, rows)
            taken.append(
                seconds(lambda t=table, n=number: series.publish(t, name=f"r{n}", seed=2**63 + 1, price=False))[0]
            )  # type: ignore[misc]
    note = " ".join(f"{one:.1f}" for one in taken)
    return [Figure(f"release {releases} / release 3 of 1,000,000 people", taken[-1] / taken[2], at_most=1.3, note=note)]


class _Peak:
    """The largest memory of this process and its children together, looked at a few times a second (Linux)."""

    def __init__(self) -> None:
        import threading

        self._largest, self._stopped = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stopped.wait(0.2):
            self._largest = max(self._largest, sum(_resident(one) for one in (os.getpid(), *_children())))

    def stop(self) -> int:
        """The peak, in bytes."""
        self._stopped.set()
        self._thread.join()
        return self._largest


def _children() -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        # A thread may be gone by now.
        with contextlib.suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found


def _resident(process: int) -> int:
    """Memory of a process that is its own, in bytes: pages of files that are mapped do not count."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(fields.get("RssAnon", "0 kB").split()[0]) * 1024


def _duck() -> Any:
    import duckdb

    return duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()})


def _read(path: Path) -> str:
    return f"read_csv('{path}')" if path.suffix == ".csv" else f"read_parquet('{path}')"


def _join(first: Path, second: Path) -> None:
    """Both tables, joined on the person, grouped by the quasi-identifiers, written."""
    quasi, target = ", ".join(QUASI), second.with_name(f"joined{second.suffix}")
    with _duck() as connection:
        connection.execute(
            f"COPY (SELECT {quasi}, count(*) AS n, count(a.id) AS known FROM {_read(second)} AS b "
            f"LEFT JOIN (SELECT id FROM {_read(first)}) AS a USING (id) GROUP BY {quasi}) TO '{target}'"
        )
    target.unlink()


def _copy(first: Path) -> None:
    """One table copied, and grouped by the quasi-identifiers."""
    quasi, target = ", ".join(QUASI), first.with_name(f"copied{first.suffix}")
    with _duck() as connection:
        connection.execute(f"COPY (SELECT * FROM {_read(first)}) TO '{target}'")
        connection.execute(
            f"CREATE TEMP TABLE grouped AS SELECT {quasi}, count(*) AS n FROM {_read(first)} GROUP BY {quasi}"
        )
    target.unlink()


def _stages(taken: dict[str, float]) -> str:
    return ", ".join(f"{name} {time_:.1f}" for name, time_ in taken.items())


if __name__ == "__main__":
    if sys.argv[1] == "--release":
        print(json.dumps(release(sys.argv[2], [Path(one) for one in sys.argv[3:]])))
    else:
        from benchmarks.figures import show

        show("scale", figures_of(measure(int(sys.argv[1]), method=(sys.argv[2:] or ["pods"])[0])))
