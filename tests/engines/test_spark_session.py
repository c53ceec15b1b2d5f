"""What is needed for Spark is told where it is not there, and what cannot be used is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sequester.engine import spark_session
from sequester.engine.spark_session import has_java, lease
from sequester.errors import DataError, MissingLibrary


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingLibrary, match=r"sequester\[spark\]"):
        lease(None)


def test_without_java_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert not has_java()
    with pytest.raises(MissingLibrary, match="Spark needs Java 17"):
        lease(None)
    assert spark_session._own.users == 0


def test_a_session_that_does_work_twice_is_refused() -> None:
    conf = SimpleNamespace(get=lambda name, default: {"spark.speculation": "true"}.get(name, default))
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))
    with pytest.raises(DataError, match=r"spark\.speculation"):
        lease(None, session)
