"""What tests of engines share: a cluster of Spark, and a session that is somebody else's as far as Sequester knows."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import MEMORY, Cluster, wait_for
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
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers, which see this machine's files but work in folders of their own."""
    begun = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for _ in range(2):
            begun.begin_worker()
        yield begun
    finally:
        begun.end()


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Any]:
    """A session on the cluster."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": MEMORY["executor"],
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    with warnings.catch_warnings():
        # PySpark warns of versions of libraries that it looks for, and that are not used here.
        warnings.simplefilter("ignore")
        session = SparkSession.builder.master(cluster.url).appName("tests").config(map=settings).getOrCreate()
    wait_for(session, 2)
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine; every test that asks for it runs on both."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)
