"""Compile kernels before anybody waits for them, in two processes of their own.

A process is given one name after the other on stdin, and answers each with a line when it is done. Names are those of
tiny tasks that call the kernels (`publish.tiny_tasks`).
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from sequester.errors import SequesterError
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
    from sequester.publish.tiny_tasks import DEFAULT, OTHERS

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
    from sequester.publish.tiny_tasks import TASKS

    # Ctrl-C is for the process that started this one, which says so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for line in sys.stdin:
        TASKS[line.strip()]()
        sys.stdout.write("kept\n" if kernels.is_kept() else "lost\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
