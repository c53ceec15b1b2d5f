"""Compile kernels before anybody waits for them, in two processes of their own.

A process is given one name after the other on stdin, and answers each with a line when it is done. Names are those of
tiny tasks that call the kernels.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.errors import SequesterError
from sequester.ledger import Key
from sequester.policy.model import Policy
from sequester.processes import module

PROCESSES = 2
Done = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Warmth:
    """What was prepared, how long it took, and whether it is kept on disk for the next process."""

    names: tuple[str, ...]
    seconds: float
    kept: bool


def names(*, everything: bool = False) -> tuple[str, ...]:
    """What there is to prepare: the default path, and with `everything` the other methods."""
    # Those that take longest come first; others need kernels of the default path themselves.
    return (*reversed(tuple(DEFAULT)), *(OTHERS if everything else ()))


def warm_up(*, everything: bool = False, done: Done | None = None) -> Warmth:
    """Compile what is not on disk yet; `done` hears of each name with its number and how many there are."""
    wanted, began = names(everything=everything), time.monotonic()
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in wanted:
        waiting.put(name)
    finished: list[str] = []

    def work(worker: subprocess.Popen[str]) -> bool:
        kept = True
        with suppress(Empty):
            while True:
                name = waiting.get_nowait()
                kept &= _prepare(worker, name)
                finished.append(name)
                if done is not None:
                    done(name, len(finished), len(wanted))
        return kept

    workers = [_start() for _ in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        try:
            kept = all(list(pool.map(work, workers)))
        finally:
            # Also after Ctrl-C: who waits for an answer hears that there is none.
            for worker in workers:
                worker.terminate()
    for worker in workers:
        worker.communicate()
    return Warmth(wanted, time.monotonic() - began, kept)


def _prepare(worker: subprocess.Popen[str], name: str) -> bool:
    """Have a process prepare this; returns whether it is kept."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(f"{name}\n")
        worker.stdin.flush()
    answer = worker.stdout.readline().strip()
    if answer not in ("kept", "lost"):
        raise SequesterError(f"{name} could not be compiled: the process that should have done it ended")
    return answer == "kept"


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        module("sequester.publish.warm_up"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _serve() -> None:
    """Prepare the names on stdin, and answer whether the result is kept."""
    from sequester import kernels

    # Ctrl-C is for the process that started this one, which says so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for line in sys.stdin:
        TASKS[line.strip()]()
        sys.stdout.write("kept\n" if kernels.is_kept() else "lost\n")
        sys.stdout.flush()


COUNT = 420
SEED = 1 << 63
TOWNS = {"Land": [{"North": ["Kiel", "Bremen"]}, {"South": ["Celle", "Ulm"]}]}
# Newcomers, leavers and people who return, in numbers that can be hidden.
PRESENT = (np.arange(260), np.arange(60, 360), np.r_[0:40, 120:420])
_QUASI: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
    "town": {"role": "quasi-identifier", "hierarchy": TOWNS},
}
_CHANGING: dict[str, Any] = {
    "attributes": {**_QUASI, "illness": {"role": "sensitive", "values": "transient", "ordinary": ["flu", "cold"]}},
    "protect": {"k": 3, "lifetime": {"l": 1.5, "releases": 4}, "against": ["lifetime"]},
    "method": {"name": "group"},
}
_LISTED: dict[str, Any] = {
    "attributes": {**_QUASI, "illness": {"role": "sensitive", "hierarchy": {"all": ["flu", "cold", "asthma", "gout"]}}},
    "protect": {"k": 4, "confidence": 0.5, "inferred": 2},
}


def _table(numbers: Any) -> pa.Table:
    """Some of the same invented people."""
    random = np.random.default_rng(7)
    columns = {
        "id": np.array([f"p{number}" for number in range(COUNT)]),
        "age": random.integers(0, 100, COUNT),
        "town": random.choice(["Kiel", "Bremen", "Celle", "Ulm"], COUNT),
        "illness": random.choice(["flu", "cold", "asthma", "gout"], COUNT, p=[0.4, 0.3, 0.15, 0.15]),
    }
    return pa.table({name: column[numbers] for name, column in columns.items()})


def _policy(**more: Any) -> Policy:
    given: dict[str, Any] = {
        "version": 1,
        "series": "tiny",
        "person": "id",
        "attributes": {**_QUASI, "illness": {"role": "sensitive"}},
        "protect": {"k": 4, "confidence": 0.7},
        "method": {"name": "pods"},
    }
    return Policy.model_validate({**given, **more})


def _once(**more: Any) -> None:
    from sequester.publish.anonymize import anonymize

    anonymize(_table(np.arange(COUNT)), _policy(**more), seed=SEED)


def _series(releases: int, **more: Any) -> None:
    """Plan so many releases in a folder that is then deleted, and publish those before the last."""
    from sequester.publish.series import Series

    with tempfile.TemporaryDirectory(prefix="sequester-tiny-") as folder:
        key = Key.of_text("nobody is in this series")
        series = Series.open(Path(folder) / "tiny.ledger", _policy(**more), key=key)
        for number, people in enumerate(PRESENT[:releases]):
            plan = series.plan(_table(people), name=f"r{number}", seed=SEED)
            if number + 1 < releases:
                series.publish(plan)


DEFAULT: Mapping[str, Callable[[], None]] = {
    "anonymize": partial(_once, method={"name": "mondrian"}),
    "first plan": partial(_series, 1),
    "second plan": partial(_series, 2),
}
"""What people wait for first: one table, and a series by pods, which most policies should use."""

OTHERS: Mapping[str, Callable[[], None]] = {
    "mondrian": partial(_series, 3, method={"name": "mondrian"}),
    "cluster": partial(_series, 2, method={"name": "cluster"}),
    "specialize": partial(_series, 2, method={"name": "specialize"}, protect={"k": 4, "against": ["neighbor"]}),
    "group": partial(_series, 2, **_CHANGING),
    "pods of two seats": partial(_series, 2, protect={"k": 4, "confidence": 0.7, "inferred": 2}),
    "blind pods": partial(_series, 2, **_LISTED, method={"name": "pods", "blind": True}),
    "full-domain": partial(_once, method={"name": "full-domain"}),
}
"""Ways with kernels that are not of the default path, those that take longest first."""

TASKS: Mapping[str, Callable[[], None]] = {**DEFAULT, **OTHERS}


if __name__ == "__main__":
    _serve()
