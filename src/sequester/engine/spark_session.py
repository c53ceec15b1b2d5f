"""Sessions of Spark: somebody else's, which is left as it is, or one of our own, which is stopped after its last use.

A session of our own is quiet: whatever Spark would log of a table stays unsaid (SEQUESTER_DEBUG=1 shows it), it has no
page, and what it writes to disk beside the spill is encrypted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sequester.errors import DataError, MissingLibrary

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
