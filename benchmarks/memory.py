"""Ten million records from a Parquet file to a released Parquet file: peak memory and where the time goes.

The work is done in a process of its own, `python -m benchmarks.memory SOURCE TARGET`, which prints what it measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from benchmarks import synthetic
from benchmarks.figures import Figure

RECORDS = 10_000_000
_CHUNK = 1_000_000
_GIGABYTE = 1e9
K, CONFIDENCE = 10, 0.5


def run() -> list[Figure]:
    """Write the snapshot, release it in a child, and look at the release."""
    with tempfile.TemporaryDirectory(prefix="sequester-memory-") as folder:
        source, target = Path(folder, "snapshot.parquet"), Path(folder, "release.parquet")
        _write_snapshot(source)
        command = [sys.executable, "-m", "benchmarks.memory", str(source), str(target)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        released = parquet.read_metadata(target).num_rows
        sizes = f"{source.stat().st_size / _GIGABYTE:.2f} GB in, {target.stat().st_size / _GIGABYTE:.2f} GB out"
    stages = found["stages"]
    return [
        Figure("peak memory", found["peak"] / _GIGABYTE, "GB", at_most=6, note="peak resident set of the process"),
        Figure("records released", released, at_least=RECORDS),
        Figure("k of the release", found["k"], at_least=K),
        Figure("confidence of the release", found["confidence"], at_most=CONFIDENCE),
        Figure("whole", sum(stages.values()), "s", note=sizes),
        *(Figure(f"  {stage}", taken, "s") for stage, taken in stages.items()),
    ]


def _write_snapshot(path: Path) -> None:
    """A chunk at a time, so that this process stays small."""
    writer = None
    for first in range(0, RECORDS, _CHUNK):
        records = synthetic.make(_CHUNK, seed=first // _CHUNK)
        person = pa.array(np.arange(first, first + _CHUNK))
        quasi = dict(zip(synthetic.NAMES, map(pa.array, records.codes), strict=True))
        condition = pa.array(np.array(synthetic.VALUES)[records.sensitive[0]])
        table = pa.table({"person": person, **quasi, "condition": condition})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def release(source: Path, target: Path) -> dict[str, object]:
    """Anonymize and write through the public API; kernels may have to be loaded, as in any fresh process."""
    import sequester

    policy = synthetic.policy(person="person", k=K, confidence=CONFIDENCE)
    stages: list[tuple[str, float]] = []
    made = sequester.anonymize(
        source, policy, seed=1, progress=lambda stage, *_: stages.append((stage, time.perf_counter()))
    )
    stages.append(("writing the file", time.perf_counter()))
    made.save(target)
    ends = [begin for _, begin in stages[1:]] + [time.perf_counter()]
    return {
        "peak": peak_memory(),
        "k": made.measures["k"],
        "confidence": made.measures["confidence"],
        "stages": {stage: end - begin for (stage, begin), end in zip(stages, ends, strict=True)},
    }


def peak_memory() -> int:
    """The largest resident set of this process, in bytes.

    Linux counts it per program in /proc; the figure of getrusage also has what the parent held when it forked.
    """
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


if __name__ == "__main__":
    print(json.dumps(release(Path(sys.argv[1]), Path(sys.argv[2]))))
