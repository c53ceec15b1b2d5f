"""Runs the command line many times, each time in a forked process that `shim.c` disturbs.

Loading the libraries takes seconds, so it is done once. Requests and answers are lines of JSON; see `Driver` in `shim`.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.append(str(Path(__file__).parents[1]))

from agreement import tables
from parted import policy, publish_both
from sequester.cli import app as application
from sequester.cli import main
from sequester.ledger import Key, hashing

_SHIM = ctypes.CDLL(None)
_SHIM.shim_call.restype = _SHIM.shim_path.restype = _SHIM.shim_kinds.restype = ctypes.c_char_p
_SHIM.shim_calls.restype = _SHIM.shim_fired.restype = ctypes.c_long


def answer() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    warm_up()
    for line in sys.stdin:
        answers.write(json.dumps(serve(json.loads(line))) + "\n")
        answers.flush()


def warm_up() -> None:
    """Publish twice, so that what is loaded or compiled at first use is there in every process to come."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(name)
        tables(folder)
        for table in ("first", "second"):
            with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                application.app(
                    ["publish", str(folder / f"{table}.csv"), "-p", str(folder / "policy.yaml"), "--yes"],
                    prog_name="sequester",
                )
        assert list(folder.rglob("0002-second/data.csv")), "nothing could be published"
        publish_both(folder / "parts", policy("pods"))
    # Of many people ids are hashed by a loop that few do without; a compiler without memory takes the process with it.
    hashing.identify(pa.array(range(100_000)), Key.of_text("a key to warm up with"))


def serve(asked: dict[str, Any]) -> dict[str, Any]:
    """One run of the command line: its exit code, what it said, and what was disturbed."""
    out, err = (Path(asked["output"]) / name for name in ("stdout", "stderr"))
    _SHIM.shim_arm(os.fsencode(asked["folder"]), ctypes.c_long(asked["n"]), asked["mode"], asked["errno"])
    # Ctrl-C is about the command: before it begins and after it ended this process only stands in for an interpreter.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    child = os.fork()
    if child == 0:
        _run(asked, out, err)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    # The end of the process is awaited without a busy loop; a signal may be sent before it.
    handle = os.pidfd_open(child)
    if asked["signal"]:
        ended, _, _ = select.select([handle], [], [], asked["after"])
        if not ended:
            signal.pidfd_send_signal(handle, asked["signal"])
    ended, _, _ = select.select([handle], [], [], 120)
    if not ended:
        os.kill(child, signal.SIGKILL)
    os.close(handle)
    status = os.waitpid(child, 0)[1]
    return {
        "code": os.waitstatus_to_exitcode(status) if ended else "endless",
        "stdout": out.read_text(errors="replace"),
        "stderr": err.read_text(errors="replace"),
        "calls": _SHIM.shim_calls(),
        "fired": bool(_SHIM.shim_fired()),
        "call": os.fsdecode(_SHIM.shim_call()),
        "path": os.fsdecode(_SHIM.shim_path()),
        "kinds": _SHIM.shim_kinds().decode(),
    }


def _run(asked: dict[str, Any], out: Path, err: Path) -> None:
    """What the forked process does; it does not return."""
    code: int | str | None = 1
    try:
        for number, path in ((1, out), (2, err)):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, number)
            os.close(handle)
        os.chdir(asked["folder"])
        if asked["memory"]:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + asked["memory"]
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        sys.argv = ["sequester", *asked["arguments"]]
        application.run = _interruptible(application.run)
        _SHIM.shim_begin()
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - told to whoever asked
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _interruptible(run: Callable[[], None]) -> Callable[[], None]:
    """The same, with Ctrl-C let through while it runs."""

    def interruptible() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        try:
            run()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

    return interruptible


if __name__ == "__main__":
    answer()
