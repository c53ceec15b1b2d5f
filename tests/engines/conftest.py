"""What tests of engines share: one session of Spark, which belongs to somebody else as far as Sequester knows."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sequester.engine.spark_session import has_java


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder runs apart."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engines)


@pytest.fixture(scope="session")
def java() -> None:
    """Skips what needs Spark where there is no Java; without PySpark itself tests fail."""
    if not has_java():
        pytest.skip("Spark needs Java 17, which is not installed here")
    assert importlib.util.find_spec("pyspark") is not None, "make test-engines installs PySpark"


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[Any]:
    """A session on two threads of this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    with warnings.catch_warnings():
        # PySpark warns of versions of libraries that it looks for, and that are not used here.
        warnings.simplefilter("ignore")
        session = SparkSession.builder.master("local[2]").appName("tests").config(map=settings).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine; every test that asks for it runs on both."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)
