"""A standalone cluster of Spark on this machine: a master and workers of one core each, in processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

MEMORY = {"executor": "512m", "worker": "600m", "daemon": "128m"}
# Nobody is left for long when the tests are killed.
_LONGEST = "1800"
_PATIENCE = 90.0


class Cluster:
    """A master, and the workers that were begun."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--port", str(port))

    def begin_worker(self, *before: str) -> None:
        """A worker more; `before` is a command that begins another, such as unshare."""
        options = ("--cores", "1", "--memory", MEMORY["worker"], "--work-dir", str(self._folder / "work"))
        self._start("worker.Worker", *options, self.url, before=before)

    def end_executor(self) -> None:
        """Kill the process of one worker in which work is done; the worker begins another."""
        groups = {process.pid for process in self._processes}
        for place in Path("/proc").glob("[0-9]*"):
            # Whoever ends meanwhile is none.
            with contextlib.suppress(OSError):
                is_executor = b"CoarseGrainedExecutorBackend" in (place / "cmdline").read_bytes()
                if is_executor and os.getpgid(int(place.name)) in groups:
                    os.kill(int(place.name), signal.SIGKILL)
                    return
        raise AssertionError("there is no executor")

    def end_worker(self) -> None:
        """Kill the worker that was begun last, and all that it has begun, as when a machine is lost."""
        process = self._processes.pop()
        # Workers of Python end with their executor.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """Kill everybody."""
        while self._processes:
            self.end_worker()

    def _start(self, name: str, *options: str, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": MEMORY["daemon"],
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
        }
        place = ("--host", "127.0.0.1", "--webui-port", "0")
        command = [*before, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *place, *options]
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                ["timeout", "-s", "KILL", _LONGEST, *command],
                cwd=self._folder, env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process


def wait_for(session: Any, executors: int) -> None:
    """Until a session has so many executors."""
    tracker, until = session.sparkContext._jsc.sc().statusTracker(), time.monotonic() + _PATIENCE
    # The driver is among them.
    while len(tracker.getExecutorInfos()) - 1 != executors:
        assert time.monotonic() < until, "executors did not come, or did not go"
        time.sleep(0.05)
