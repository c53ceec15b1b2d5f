"""Work done by Spark: every item is a task, and results come as they are done.

Errors of work come back as answers, as they do from processes: nothing that a task raises is ever seen by Spark, whose
log would quote it. Whatever ends a job early, the last of its tasks has ended before anybody cleans up after it.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sequester.engine.seen import SAME
from sequester.errors import DataError, OutOfMemory, SequesterError
from sequester.memory import is_lack_of_memory
from sequester.processes import answer_of, error_of

Item = TypeVar("Item")
Result = TypeVar("Result")

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
