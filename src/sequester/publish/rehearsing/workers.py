"""Variants side by side, in processes of their own.

A process is given the waves and then one variant after the other on stdin, pickled, and answers on stdout with every
wave that is done and with the trial. It is started as a module, not as a copy of whoever calls: a script needs no
`if __name__ == "__main__"` to rehearse. Waves are on no disk but in the ledgers of the trials, in a folder that whoever
calls makes and removes.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from sequester import errors, kernels
from sequester.errors import OutOfMemory, SequesterError
from sequester.memory import is_lack_of_memory
from sequester.publish.rehearsing.trial import Trial, try_variant
from sequester.publish.rehearsing.variants import Variant
from sequester.publish.rehearsing.waves import Wave

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False, repr=False)
class Staging:
    """What all variants share: the waves, where their ledgers may be, and whether nobody need be recognised."""

    waves: tuple[Wave, ...]
    folder: Path
    new: bool

    def ledger(self, number: int) -> Path:
        """The place of the ledger of a variant."""
        return self.folder / f"{number}.ledger"


def try_all(staging: Staging, variants: Sequence[Variant], *, processes: int, told: Tell) -> tuple[Trial, ...]:
    """The trials of variants, in their order; `told` hears the name of a variant whenever one of its waves is done."""
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(variants)):
        waiting.put(number)
    processes = min(processes, len(variants))
    if processes <= 1:
        return tuple(_tried_here(staging, number, one, told) for number, one in enumerate(variants))
    found: dict[int, Trial] = {}
    workers = [_start() for _ in range(processes)]

    def work(worker: subprocess.Popen[bytes]) -> None:
        _send(worker, staging)
        with suppress(Empty):
            while True:
                number = waiting.get_nowait()
                found[number] = _have_tried(worker, number, variants[number], told)

    try:
        with ThreadPoolExecutor(processes) as pool:
            try:
                for done in [pool.submit(work, worker) for worker in workers]:
                    done.result()
            finally:
                # Also after Ctrl-C or an error: who waits for an answer hears that there is none.
                for worker in workers:
                    worker.terminate()
    finally:
        for worker in workers:
            worker.communicate()
    return tuple(found[number] for number in range(len(variants)))


def _tried_here(staging: Staging, number: int, variant: Variant, told: Tell) -> Trial:
    place = staging.ledger(number)
    return try_variant(variant, staging.waves, place, new=staging.new, tell=lambda _: told(variant.name))


def _have_tried(worker: subprocess.Popen[bytes], number: int, variant: Variant, told: Tell) -> Trial:
    _send(worker, (number, variant))
    for kind, what in _answers(worker, variant):
        if kind == "wave":
            told(variant.name)
        elif kind == "compiling":
            if kernels.announce is not None:
                kernels.announce(what)
        elif kind == "trial":
            trial: Trial = what
            return trial
        else:
            raise _error(kind, what)
    raise AssertionError("answers end with a trial or an error")


def _answers(worker: subprocess.Popen[bytes], variant: Variant) -> Iterator[tuple[str, Any]]:
    assert worker.stdout is not None
    while True:
        try:
            yield pickle.load(worker.stdout)
        except (EOFError, pickle.UnpicklingError):
            break
    message = f"the process that tried {variant.name} ended; there may not be enough memory for several at a time"
    raise SequesterError(f"{message}: try one with processes=1")


def _error(kind: str, what: Any) -> Exception:
    """What went wrong in a process; of mistakes of ours only where, since their text may quote cells."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, SequesterError):
        error: Exception = known(what)
        return error
    return RuntimeError(f"{kind} in {what}")


def _send(worker: subprocess.Popen[bytes], what: Any) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        pickle.dump(what, worker.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        worker.stdin.flush()


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sequester.publish.rehearsing.workers"]
    # Ctrl-C is for the process that started this one, which ends it and cleans up.
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def _serve() -> None:
    """Try the variants on stdin."""
    out = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints is no answer.
    os.dup2(2, 1)

    def answer(kind: str, what: Any) -> None:
        pickle.dump((kind, what), out, protocol=pickle.HIGHEST_PROTOCOL)
        out.flush()

    kernels.announce = lambda text: answer("compiling", text)
    staging: Staging = pickle.load(sys.stdin.buffer)
    while True:
        try:
            number, variant = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer(*_tried(staging, number, variant, answer))


def _tried(staging: Staging, number: int, variant: Variant, answer: Callable[[str, Any], None]) -> tuple[str, Any]:
    try:
        tell = lambda wave: answer("wave", wave)  # noqa: E731 - one line beside its use
        return "trial", try_variant(variant, staging.waves, staging.ledger(number), new=staging.new, tell=tell)
    except SequesterError as error:
        return type(error).__name__, getattr(error, "problems", str(error))
    except Exception as error:  # noqa: BLE001 - its text may quote cells, and stays in this process
        if is_lack_of_memory(error):
            return OutOfMemory.__name__, "there is not enough memory for these waves; try one at a time"
        if os.environ.get("SEQUESTER_DEBUG") == "1":
            traceback.print_exception(error, file=sys.stderr)
        last = traceback.extract_tb(error.__traceback__)[-1]
        return type(error).__name__, f"{Path(last.filename).name}, line {last.lineno}"


if __name__ == "__main__":
    # As it is imported by whoever calls, so that both mean the same classes.
    from sequester.publish.rehearsing.workers import _serve as serve

    # Whoever asked may be gone.
    with suppress(BrokenPipeError):
        serve()
