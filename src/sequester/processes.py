"""A piece of work on many items, in processes of their own.

A process is given the work and then one item after the other on stdin, pickled, and answers on stdout with what it has
to tell and with the result. It is started as a module, not as a copy of whoever calls: a script needs no
`if __name__ == "__main__"`.
"""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sequester import errors, kernels
from sequester.errors import DataError, GuaranteeError, OutOfMemory, SequesterError
from sequester.memory import is_lack_of_memory

Item = TypeVar("Item")
Result = TypeVar("Result")
Hear = Callable[[Any], None]

_heard: Hear | None = None
_ENDED = "a process that worked ended; there may not be enough memory for several at a time"


def run_all(
    work: Callable[[Item], Result], items: Sequence[Item], *, processes: int, hear: Hear | None = None
) -> Iterator[Result]:
    """Results, as they are done. The first error ends everything.

    work  picklable, as the items are; with one process it is done in this one
    hear  is given what the work tells (`tell`) meanwhile
    """
    processes = min(processes, len(items))
    if processes <= 1:
        yield from _here(work, items, hear)
        return
    waiting: SimpleQueue[Item] = SimpleQueue()
    for item in items:
        waiting.put(item)
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    workers = [_start() for _ in range(processes)]

    def serve(worker: subprocess.Popen[bytes]) -> None:
        try:
            _send(worker, work)
            with suppress(Empty):
                while True:
                    done.put((_have_done(worker, waiting.get_nowait(), hear), None))
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits for results
            done.put((None, error))

    try:
        with ThreadPoolExecutor(processes) as pool:
            try:
                for worker in workers:
                    pool.submit(serve, worker)
                for _ in items:
                    result, error = done.get()
                    if error is not None:
                        raise error
                    yield result
            finally:
                # Also after Ctrl-C or an error: who waits for an answer hears that there is none.
                for worker in workers:
                    worker.terminate()
    finally:
        for worker in workers:
            worker.communicate()


def apart(work: Callable[[Item], Result], item: Item) -> Result:
    """Work that may take its process with it, as a library does that cannot bear its input; SequesterError if so.

    What it prints before that stays unsaid: it may quote the input.
    """
    worker = _start(subprocess.DEVNULL)
    try:
        _send(worker, work)
        result: Result = _have_done(worker, item, None)
        return result
    finally:
        worker.kill()
        worker.communicate()


def tell(what: Any) -> None:
    """What work has to say while it is done: it reaches whoever asked for the work."""
    if _heard is not None:
        _heard(what)


def _here(work: Callable[[Item], Result], items: Sequence[Item], hear: Hear | None) -> Iterator[Result]:
    global _heard
    before, _heard = _heard, hear
    try:
        for item in items:
            yield work(item)
    finally:
        _heard = before


def _have_done(worker: subprocess.Popen[bytes], item: Any, hear: Hear | None) -> Any:
    _send(worker, item)
    for kind, what in _answers(worker):
        if kind == "told":
            if hear is not None:
                hear(what)
        elif kind == "compiling":
            kernels.say(what)
        elif kind == "done":
            return what
        else:
            raise error_of(kind, what)
    raise AssertionError("answers end with a result or an error")


def _answers(worker: subprocess.Popen[bytes]) -> Iterator[tuple[str, Any]]:
    assert worker.stdout is not None
    while True:
        try:
            yield pickle.load(worker.stdout)
        except (EOFError, pickle.UnpicklingError):
            break
    raise SequesterError(f"{_ENDED}: try one with processes=1")


def unwritten(error: OSError) -> str:
    """What to say where there is no room for what is in between."""
    return (
        f"what is in between could not be written or read: {os.strerror(error.errno or errno.EIO)}; nothing was changed"
    )


def error_of(kind: str, what: Any) -> Exception:
    """What went wrong in a process; of mistakes of ours only where, since their text may quote cells."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, SequesterError):
        error: Exception = what if isinstance(what, known) else known(what)
        return error
    return RuntimeError(f"{kind} in {what}")


def _send(worker: subprocess.Popen[bytes], what: Any) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        pickle.dump(what, worker.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        worker.stdin.flush()


def module(name: str) -> list[str]:
    """The command that runs a module of ours, which imports from where this process does.

    `python -m` would import from the working folder first, where anybody's files may lie.
    """
    run = "import sys; sys.path[:] = sys.argv[2:]; import runpy; runpy.run_module(sys.argv[1], run_name='__main__')"
    return [sys.executable, "-P", "-c", run, name, *sys.path]


def _start(stderr: int | None = None) -> subprocess.Popen[bytes]:
    # Ctrl-C is for the process that started this one, which ends it and cleans up.
    pipe, command = subprocess.PIPE, module("sequester.processes")
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True)


def _serve() -> None:
    """Do the work on the items on stdin."""
    global _heard
    out = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints is no answer.
    os.dup2(2, 1)

    def answer(kind: str, what: Any) -> None:
        pickle.dump((kind, what), out, protocol=pickle.HIGHEST_PROTOCOL)
        out.flush()

    kernels.announce = lambda text: answer("compiling", text)
    _heard = lambda what: answer("told", what)  # noqa: E731 - one line beside its use
    work = pickle.load(sys.stdin.buffer)
    while True:
        try:
            item = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer(*answer_of(work, item))


def answer_of(work: Callable[[Any], Any], item: Any) -> tuple[str, Any]:
    """The result of work on an item ("done"), or what `error_of` makes an error of; nothing is raised."""
    try:
        return "done", work(item)
    except SequesterError as error:
        # Rooms have kinds of their own of these errors.
        kind = next(one.__name__ for one in type(error).__mro__ if hasattr(errors, one.__name__))
        return kind, error if isinstance(error, GuaranteeError) else getattr(error, "problems", str(error))
    except OSError as error:
        return DataError.__name__, unwritten(error)
    except Exception as error:  # noqa: BLE001 - its text may quote cells, and stays in this process
        if is_lack_of_memory(error):
            return OutOfMemory.__name__, "there is not enough memory for several at a time; try one"
        if os.environ.get("SEQUESTER_DEBUG") == "1":
            traceback.print_exception(error, file=sys.stderr)
        last = traceback.extract_tb(error.__traceback__)[-1]
        return type(error).__name__, f"{Path(last.filename).name}, line {last.lineno}"


if __name__ == "__main__":
    # As it is imported by whoever calls, so that both mean the same classes.
    from sequester.processes import _serve as serve

    # Whoever asked may be gone.
    with suppress(BrokenPipeError):
        serve()
