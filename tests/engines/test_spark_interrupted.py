"""A job of Spark that is killed, and a spill without room: ledger, parts and release folders stay as they were."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parted import KEY, SEED, begin, policy, waves, write
from sequester.engine import Means
from sequester.engine.spark import SparkEngine
from sequester.errors import DataError, SequesterError
from sequester.ledger import Ledger

SPARK = {"name": "spark"}


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A folder with one release, and the table of the next."""
    first, second = waves()
    begin(tmp_path, policy("pods")).publish(first, name="first", seed=SEED)
    write(tmp_path / "second.csv", second)
    return tmp_path


def state_of(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Everything beside the ledger, release folders, and releases on the shelf."""
    with Ledger.open(folder / "towns.ledger", key=KEY, read_only=True) as ledger:
        assert len(ledger.releases()) == 1
        assert ledger.verify(releases=folder / "releases").holds
    releases, shelf = folder / "releases" / "towns", folder / "towns.ledger.parts"
    return tuple(sorted(path.name for path in place.iterdir()) for place in (folder, releases, shelf))  # type: ignore[return-value]


def engine_in(folder: Path, session: Any) -> SparkEngine:
    return SparkEngine(Means(10**9, folder, 2), session=session)


def cancel_in(session: Any, stage: str) -> Callable[[str, int, int], None]:
    """A listener to progress, which has all jobs cancelled once some run in a stage."""
    context, begun = session.sparkContext, threading.Event()

    def cancel() -> None:
        until = time.monotonic() + 60
        while not context.statusTracker().getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.001)
        context.cancelAllJobs()

    def hear(what: str, done: int, of: int) -> None:
        if what == stage and not begun.is_set():
            begun.set()
            threading.Thread(target=cancel, daemon=True).start()

    return hear


@pytest.mark.parametrize("stage", ["reading", "dealing out", "making parts", "writing"])
def test_cancelled_jobs_publish_nothing_and_leave_nothing(begun: Path, stage: str, spark: Any) -> None:
    before = state_of(begun)
    series = begin(begun, policy("pods", engine=SPARK))
    with pytest.raises(SequesterError, match="cancelled, or its workers ended; nothing was published"):
        series.plan(begun / "second.csv", name="second", seed=SEED + 2, progress=cancel_in(spark, stage))
    assert state_of(begun) == before
    series.publish(begun / "second.csv", name="second", seed=SEED + 2)


def test_mistakes_in_tasks_are_told_by_where_they_are_and_not_by_what_they_quote(spark: Any, tmp_path: Path) -> None:
    def work(item: int) -> int:
        return int({"CANARY": 1}[f"CANARY{item}"])

    with pytest.raises(RuntimeError, match=r"KeyError in test_spark_interrupted.py, line \d+") as refused:
        list(engine_in(tmp_path, spark).each(work, [1, 2, 3]))
    assert "CANARY" not in repr(refused.value)
    assert refused.value.__context__ is None


def test_errors_of_ours_arrive_as_they_were_raised(spark: Any, tmp_path: Path) -> None:
    def work(item: int) -> int:
        raise DataError(f"wrong {item}")

    with pytest.raises(DataError, match="wrong 7"):
        list(engine_in(tmp_path, spark).each(work, [7]))


def test_the_first_error_ends_tasks_that_go_on(spark: Any, tmp_path: Path) -> None:
    """When the error arrives nobody works any more: a folder that is removed then stays removed."""
    place = tmp_path / "ticks"

    def work(item: int) -> int:
        if item:
            raise DataError("wrong")
        for _ in range(600):
            with place.open("a") as file:
                file.write("tick\n")
            time.sleep(0.05)
        return item

    with pytest.raises(DataError, match="wrong"):
        list(engine_in(tmp_path, spark).each(work, [0, 1]))
    ticks = place.stat().st_size if place.exists() else 0
    time.sleep(0.5)
    assert (place.stat().st_size if place.exists() else 0) == ticks


def test_a_worker_that_dies_is_told(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(SequesterError, match="its workers ended") as refused:
        list(engine_in(tmp_path, spark).each(lambda item: os._exit(9), [1]))
    assert refused.value.__context__ is None


def test_results_come_as_they_are_done(spark: Any, tmp_path: Path) -> None:
    def work(item: int) -> int:
        time.sleep(0.05 if item else 4)
        return item

    results = engine_in(tmp_path, spark).each(work, [0, 1])
    begun = time.monotonic()
    assert next(results) == 1
    assert time.monotonic() - begun < 4
    assert list(results) == [0]


PUBLISH = """
import contextlib, itertools, os, resource, signal, sys, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from parted import SEED, begin, policy, write, waves
from sequester.engine import Means
from sequester.engine.spark import SparkEngine
from sequester.engine.spark_session import lease

folder, most = Path(sys.argv[1]), int(sys.argv[2])
series = begin(folder, policy("pods", engine={"name": "spark", "master": "local[2]"}))
held = lease("local[2]")
if most:
    # As on a disk that is full: no file grows beyond so many bytes, whoever writes it.
    from pyspark import SparkContext
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for process in (SparkContext._gateway.proc.pid, os.getpid()):
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, most))
def work(item):
    begun = time.time()
    time.sleep(0.3)
    return begun, time.time()

try:
    if not most:
        engine = SparkEngine(Means(10**9, folder, 2), session=held.session)
        spans = sorted(engine.each(work, [1, 2, 3], need=10**9))
        engine.close()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    series.publish(folder / "second.csv", name="second", seed=SEED + 2)
    print("published")
except Exception as error:
    print(type(error).__name__, error)
held.give_back()
from pyspark import SparkContext
print("stopped" if SparkContext._active_spark_context is None else "runs on")
"""


def run(
    script: str, *arguments: object, python: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", script, *map(str, arguments), str(Path(__file__).parents[1])]
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {} if python is None else {"PYSPARK_PYTHON": python}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment, cwd=cwd)


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("most", [2_000, 20_000])
def test_a_full_disk_is_told_and_changes_nothing(begun: Path, most: int) -> None:
    before = state_of(begun)
    told = run(PUBLISH, begun, most)
    assert "Error" in told.stdout, told.stderr
    assert not any(text in told.stdout + told.stderr for text in ("Bonn", "lupus", "p17", "Traceback"))
    assert state_of(begun) == before


@pytest.mark.usefixtures("java")
def test_a_session_of_our_own_is_silent_stopped_and_does_no_more_at_a_time_than_fits_memory(begun: Path) -> None:
    # Nor does it import from where it was begun.
    work = begun / "unpacked"
    work.mkdir()
    (work / "pickle.py").write_text(f"open({str(begun / 'victim')!r}, 'w')\n")
    told = run(PUBLISH, begun, 0, cwd=work)
    assert told.stdout.split() == ["published", "stopped"]
    assert told.stderr == ""
    assert not (begun / "victim").exists()


@pytest.mark.usefixtures("java")
def test_a_spill_folder_that_cannot_be_made_is_told(begun: Path, spark: Any) -> None:
    (begun / "file").write_text("no folder")
    series = begin(begun, policy("pods", engine={**SPARK, "spill": str(begun / "file" / "spill")}))
    with pytest.raises(SequesterError, match="could not be written"):
        series.plan(begun / "second.csv", name="second", seed=SEED + 2)


LOGGED = '''
import sys, warnings
sys.path.insert(0, sys.argv[2])
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession
from parted import SEED, begin, policy

folder = Path(sys.argv[1])
(folder / "events").mkdir()
# Without a file Spark lets a shell, for which it takes this, see warnings only.
(folder / "log4j2.properties").write_text("""
rootLogger.level = info
logger.spark.name = org.apache.spark
logger.spark.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
""")
settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.eventLog.compress": "false", "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"}
session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
series = begin(folder, policy("pods", engine={"name": "spark"}))
series.publish(folder / "second.csv", name="second", seed=SEED + 2)
session.stop()
'''


@pytest.mark.usefixtures("java")
def test_neither_cells_nor_the_key_are_in_what_spark_logs_and_shows(begun: Path) -> None:
    """Events are what its pages and plans are made from."""
    told = run(LOGGED, begun, python=sys.executable)
    assert told.returncode == 0, told.stderr[-2000:]
    written = [path.read_bytes() for path in (begun / "events").rglob("*") if path.is_file()]
    assert sum(map(len, written)) > 100_000
    assert told.stderr.count("INFO") > 100
    secret = KEY.lend()
    for text in (secret, secret.hex().encode(), b"Bonn", b"lupus", b"p17"):
        assert not [text for place in (*written, told.stdout.encode(), told.stderr.encode()) if text in place]
