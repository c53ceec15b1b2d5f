"""What compiling costs: processor seconds of fresh processes whose cache of kernels is empty, path by path.

Each path runs in a process of its own, `python -m benchmarks.compile PATH`, which prints what it compiled: every kernel
and helper with its signatures, and the processor seconds. `--list` prints those of one path for people to read.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.figures import Figure
from sequester.publish.warm_up import TASKS

DEFAULT = {"anonymize": 7.0, "first plan": 10.0, "second plan": 15.0}
OTHER = 30.0


def run() -> list[Figure]:
    """Every path with an empty cache, and what of it is compiling."""
    figures = []
    for path in TASKS:
        measured = measure(path)
        times = [len(signatures) for signatures in measured["compiled"].values()]
        note = f"{len(times)} kernels and helpers, {sum(count - 1 for count in times)} more signatures"
        goal = DEFAULT.get(path, OTHER)
        figures.append(Figure(f"compiling for {path}", measured["seconds"], "s", at_most=goal, note=note))
    return figures


def measure(path: str) -> dict[str, Any]:
    """What a fresh process compiles on this path, and the processor seconds it takes for that."""
    with tempfile.TemporaryDirectory(prefix="sequester-compile-") as folder:
        command = [sys.executable, "-m", "benchmarks.compile", path]
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        cold, warm = (
            json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)
            for _ in range(2)
        )
    # What is not compiling takes as long with a full cache.
    return {**cold, "seconds": cold["processor"] - warm["processor"], "warm": warm["processor"]}


def main() -> None:
    """Run one path and print what it compiled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", choices=TASKS)
    parser.add_argument("--list", action="store_true", help="for people to read")
    arguments = parser.parse_args()
    if arguments.list:
        for name, signatures in sorted(measure(arguments.path)["compiled"].items()):
            print(len(signatures), name)
        return
    TASKS[arguments.path]()
    from sequester import kernels

    print(json.dumps({"processor": time.process_time(), "compiled": kernels.compiled()}))


if __name__ == "__main__":
    main()
