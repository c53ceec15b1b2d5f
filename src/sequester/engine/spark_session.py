"""Sessions of Spark: somebody else's, which is left as it is, or one of our own, which is stopped after its last use.

A session of our own is quiet: whatever Spark would log of a table stays unsaid (SEQUESTER_DEBUG=1 shows it), it has no
page, and what it writes to disk beside the spill is encrypted.

Every item of work is a task, and results come as they are done. Errors come back as answers, as they do from processes:
nothing that a task raises is ever seen by Spark, whose log would quote it. Whatever ends a job early, the last of its
tasks has ended before anybody cleans up after it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sequester.engine.engine import SAME
from sequester.errors import DataError, MissingLibrary, OutOfMemory, SequesterError
from sequester.memory import is_lack_of_memory
from sequester.processes import Item, Result, answer_of, error_of

_EXTRA = "tables of Spark need the extra `spark`: pip install 'sequester[spark]'"
_JAVA = "Spark needs Java 17 or newer, which is not here; install it, or set JAVA_HOME to where it is"
_BEGIN = "Spark could not be started; check `engine.master`, and try `pyspark --master ...` on its own to see why"
_CONNECT = (
    "sessions of Spark Connect have no workers that can be reached from here; use one of a cluster, or a table name"
)
_TWICE = "the session of Spark does work twice to be faster (spark.speculation); parts are files, so turn it off"
_LOCAL = "local[*]"


@dataclass
class _Own:
    """Our own session, and how many use it."""

    session: Any = None
    users: int = 0


_own = _Own()
_lock = threading.Lock()


class Lease:
    """A session that may be used until it is given back."""

    def __init__(self, session: Any, *, own: bool) -> None:
        self.session = session
        self._own = own

    def give_back(self) -> None:
        """Stop the session if it is ours and nobody else uses it."""
        own, self._own = self._own, False
        if not own:
            return
        with _lock:
            _own.users -= 1
            if not _own.users:
                session, _own.session = _own.session, None
                # A cluster that is gone cannot be told.
                with contextlib.suppress(Exception):
                    session.stop()


def lease(master: str | None, session: Any = None) -> Lease:
    """The session given, else the one that is active here, else one of our own at `master`."""
    sql = _library()
    with _lock:
        if session is None and _own.session is None:
            session = sql.SparkSession.getActiveSession()
        if session is not None and session is not _own.session:
            return Lease(_usable(session), own=False)
        if _own.session is None:
            _own.session = _started(sql, master or _LOCAL)
        _own.users += 1
        return Lease(_own.session, own=True)


def _library() -> Any:
    try:
        return import_module("pyspark.sql")
    except ImportError:
        pass
    raise MissingLibrary(_EXTRA)


def _usable(session: Any) -> Any:
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise DataError(_CONNECT)
    if session.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise DataError(_TWICE)
    return session


def _started(sql: Any, master: str) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setAppName("sequester").setMaster(master)
    for name, value in _settings(master).items():
        conf.set(name, value)
    refusal: MissingLibrary | DataError
    try:
        with _this_python(), warnings.catch_warnings():
            # Of libraries that Spark looks for, and that are not used here.
            warnings.simplefilter("ignore")
            if SparkContext._gateway is None:
                if not has_java():
                    raise MissingLibrary(_JAVA)
                # Java itself and workers of Python write to it, too.
                quiet = {} if _is_debugged() else {"stderr": subprocess.DEVNULL}
                SparkContext._gateway = launch_gateway(conf, popen_kwargs=quiet)
                SparkContext._jvm = SparkContext._gateway.jvm
            return _usable(sql.SparkSession.builder.config(conf=conf).getOrCreate())
    except (DataError, MissingLibrary):
        raise
    except Exception as error:  # noqa: BLE001 - Java says it at length
        refusal = MissingLibrary(_JAVA) if "JAVA_GATEWAY_EXITED" in str(error) else DataError(_BEGIN)
    raise refusal


def _settings(master: str) -> dict[str, str]:
    given = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN" if _is_debugged() else "OFF",
        "spark.io.encryption.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Else they would import from the working folder first, where anybody's files may lie.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
    if master.startswith("local"):
        given |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return given


@contextlib.contextmanager
def _this_python() -> Iterator[None]:
    """Workers run this Python, unless somebody has said which."""
    name = "PYSPARK_PYTHON"
    given = os.environ.get(name)
    os.environ[name] = given or sys.executable
    try:
        yield
    finally:
        if given is None:
            del os.environ[name]


def has_java() -> bool:
    """Whether there is a Java to be started."""
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


def _is_debugged() -> bool:
    return os.environ.get("SEQUESTER_DEBUG") == "1"


_OFTEN = 0.02
# Spark ends a worker of Python that goes on after its job was cancelled, four seconds later.
_LONGEST = 30.0
_FAILED = (
    "the work in Spark was cancelled, or its workers ended; nothing was published. Workers need this Python and "
    "package (PYSPARK_PYTHON), enough memory, and the folders of ledger and spill; Spark's own log says more"
)
_UNSEEN = f"a worker does not see every folder that it needs, or may not write there; {SAME}"
_MEMORY = "there is not enough memory in Spark; give its workers more, or make smaller parts (`engine.part`)"


class Job:
    """A call of Spark that runs beside this thread, and can be ended."""

    def __init__(self, context: Any, call: Callable[[], Any]) -> None:
        from pyspark import InheritableThread

        self._context, self._call = context, call
        self._group = f"sequester-{uuid.uuid4().hex}"
        self._failure: SequesterError | None = None
        self._result: Any = None
        self._thread = InheritableThread(target=self._run, session=None)
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._group, "sequester")
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 - its text may quote cells
            lacking = is_lack_of_memory(error) or "OutOfMemoryError" in str(error)
            self._failure = OutOfMemory(_MEMORY) if lacking else SequesterError(_FAILED)
            if SAME in str(error):
                self._failure = DataError(_UNSEEN)

    def is_over(self, seconds: float) -> bool:
        """Wait so long; whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Any:
        """What it returned, once it is over; what went wrong, without what Spark says about it."""
        while not self.is_over(60):
            pass
        if self._failure is not None:
            raise self._failure
        return self._result

    def end(self) -> None:
        """End it, if it is not over, and wait for its last task."""
        # A session that was stopped has no tasks left.
        with contextlib.suppress(Exception):
            until = time.monotonic() + _LONGEST
            while not self.is_over(_OFTEN) and time.monotonic() < until:
                self._context.cancelJobGroup(self._group)
            while self._active() and time.monotonic() < until:
                time.sleep(_OFTEN)

    def _active(self) -> int:
        """Tasks that go on."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage is not None)


class _Answers:
    """Lists of answers, put together as tasks end; how Spark wants to be told how that is done."""

    def zero(self, value: list[Any]) -> list[Any]:
        """Nothing yet."""
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - as Spark calls it
        """Both."""
        value1.extend(value2)
        return value1


def run_job(context: Any, call: Callable[[], Result]) -> Result:
    """What a call of Spark returns; interrupted or failed, it leaves no task behind."""
    job = Job(context, call)
    try:
        result: Result = job.result()
        return result
    finally:
        job.end()


def run_each(context: Any, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Results of work on every item, as they are done. The first error ends everything."""
    answers = context.accumulator([], _Answers())

    def task(item: Item) -> None:
        answers.add([answer_of(work, item)])

    job = Job(context, lambda: context.parallelize(items, len(items)).foreach(task))
    try:
        told = 0
        while True:
            over = job.is_over(_OFTEN)
            for kind, what in answers.value[told:]:
                told += 1
                if kind != "done":
                    raise error_of(kind, what)
                yield what
            if over:
                break
        job.result()
        if told != len(items):
            raise SequesterError(_FAILED)
    finally:
        job.end()
