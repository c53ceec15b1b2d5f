"""The driver as tests use it: `shim.c` is compiled on the spot, and the command line runs under it."""

from __future__ import annotations

import enum
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agreement import check_known, check_order, check_words, publish, tables

HERE = Path(__file__).parent


class Mode(enum.IntEnum):
    """What happens at the n-th call; as in `shim.c`."""

    NOTHING = 0
    KILL = 1
    TORN = 2
    ONCE = 3
    ONWARD = 4
    INTERRUPT = 5


@dataclass(frozen=True)
class Done:
    """What one run of the command line came to."""

    code: int
    stdout: str
    stderr: str
    calls: int
    fired: bool
    call: str
    path: str
    kinds: str

    @property
    def said(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr


class Driver:
    """A process that forks one more for every run."""

    def __init__(self, work: Path) -> None:
        library = work / "shim.so"
        build = ["-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "shim.c"), "-ldl"]
        subprocess.run([compiler() or "cc", *build], check=True)
        self._output = work
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py")],
            # One thread each, so that nothing runs while the driver forks.
            env={
                **os.environ,
                **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
                "LD_PRELOAD": str(library),
                "COLUMNS": "200",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, folder: Path, *arguments: object, n: int = 0, mode: Mode = Mode.NOTHING, errno: int = 0,
        signal: int = 0, after: float = 0.0, memory: int = 0,
    ) -> Done:  # fmt: skip
        """`sequester ...` in a folder, disturbed at its n-th call that changes something there, or by a signal.

        memory  bytes that it may take beyond what is taken when it begins; 0 is no limit
        """
        asked: dict[str, Any] = {
            "folder": str(folder.resolve()),
            "arguments": [str(word) for word in arguments],
            "n": n, "mode": int(mode), "errno": errno, "signal": int(signal), "after": after, "memory": memory,
            "output": str(self._output),
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the driver died"
        return Done(**json.loads(answer))

    def close(self) -> None:
        """End the process that forks."""
        self._process.kill()
        self._process.communicate()


def survive(driver: Driver, start: Path, name: str, folder: Path, *, then: str = "third", **fault: Any) -> Done:
    """Publish one table with a fault, from a fresh copy of a folder, and the next without: all that must hold does."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(start, folder)
    done = driver.run(folder, *publish(name), **fault)
    entries = check_known(folder)
    check_words(folder, name, entries, code=done.code, said=done.said)
    again = driver.run(folder, *publish(then))
    assert again.code == 0, again.said
    now = check_order(folder)
    assert now[-1].name == then
    before = {entry.hash for entry in entries if entry.status == "published"}
    assert before <= {entry.hash for entry in now}, "a published release was forgotten"
    return done


def starting_points(driver: Driver, work: Path) -> dict[str, Path]:
    """Folders as they are before the first and before the next publish."""
    empty, begun = work / "empty", work / "begun"
    empty.mkdir()
    tables(empty)
    shutil.copytree(empty, begun)
    done = driver.run(begun, *publish("first"))
    assert done.code == 0, done.said
    return {"first": empty, "second": begun}


def compiler() -> str | None:
    """The C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc")


needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler to build the shim with")
