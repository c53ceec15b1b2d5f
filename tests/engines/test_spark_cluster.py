"""Workers are other machines: they work in folders of their own, get lost, and may not see what the driver sees."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import sequester as sq
from cluster import Cluster, wait_for
from parted import KEY, SEED, begin, files, policy, waves, write
from sequester.errors import DataError
from sequester.ledger import Ledger

SPARK = {"name": "spark"}
DRIVER_AND_WORKERS = "driver and workers need the folders of ledger, spill and tables under the same names"


class Once:
    """A listener to progress that does something in the middle of a stage."""

    def __init__(self, stage: str, then: Callable[[], None]) -> None:
        self._stage, self._then, self.is_done = stage, then, False

    def __call__(self, what: str, done: int, of: int) -> None:
        if what == self._stage and done and not self.is_done:
            self.is_done = True
            self._then()


def test_tables_named_relatively_are_published_though_an_executor_dies_and_a_worker_is_lost(
    cluster: Cluster, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks read the first table where it is, and copy the second."""
    first, second = waves()
    parquet.write_table(first, tmp_path / "w1.parquet", row_group_size=100)
    for number in range(2):
        write(tmp_path / f"w2-{number}.csv", second.slice(number * 200, 200))
    monkeypatch.chdir(tmp_path)
    series = sq.Series.open("towns.ledger", policy("pods", engine=SPARK), key=KEY)
    for number, (source, lose) in enumerate(
        (("w1.parquet", cluster.end_executor), ("w2-*.csv", cluster.end_worker)), 1
    ):
        lost = Once("making parts", lose)
        series.publish(source, name=f"w{number}", seed=SEED + number, progress=lost)
        assert lost.is_done
    cluster.begin_worker()
    # A series of this name lies in that folder, and is not begun again beside it.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    by_this_machine = begin(tmp_path / "alone", policy("pods"))
    for number, table in enumerate((first, second), 1):
        by_this_machine.publish(table, name=f"w{number}", seed=SEED + number)
    monkeypatch.chdir(tmp_path)
    assert files(tmp_path) == files(tmp_path / "alone")
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        assert ledger.verify(releases=series.folder).holds
    wait_for(spark, 2)


@pytest.fixture(scope="module")
def blind(cluster: Cluster, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that one of three workers does not see: there is another one of that name on that machine."""
    folder = tmp_path_factory.mktemp("blind")
    own = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True).returncode:
        pytest.skip("a worker that sees other folders needs the right to mount (unshare -m)")
    cluster.begin_worker(*own)
    wait_for(spark, 3)
    yield folder
    cluster.end_worker()
    wait_for(spark, 2)


@pytest.mark.parametrize("unseen", ["spill", "ledger", "table", "tables of text"])
def test_a_worker_that_does_not_see_a_folder_says_so(blind: Path, unseen: str, tmp_path: Path, spark: Any) -> None:
    hidden, table = blind / unseen.replace(" ", "-"), waves()[0]
    hidden.mkdir()
    at_home = hidden if unseen == "ledger" else tmp_path
    begin(at_home, policy("pods")).publish(table, name="w1", seed=SEED)
    spill = hidden if unseen == "spill" else tmp_path
    series = begin(at_home, policy("pods", engine={**SPARK, "spill": str(spill)}))
    source: Any = spark.createDataFrame(waves()[1])
    if "table" in unseen:
        for number in range(8):
            write(hidden / f"{number}.csv", table.slice(number * 40, 40))
            parquet.write_table(table, hidden / f"{number}.parquet")
        source = hidden / ("*.csv" if "text" in unseen else "*.parquet")
    with pytest.raises(DataError, match=DRIVER_AND_WORKERS) as refused:
        series.plan(source, name="w2", seed=SEED)
    assert "on the worker" in str(refused.value)
    assert str(hidden) in str(refused.value)
    assert not list(spill.glob(".*.part"))
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        assert len(ledger.releases()) == 1


def test_rows_that_a_worker_wrote_where_nobody_sees_them_stop_the_release(
    blind: Path, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a worker that comes when all others have looked already; Spark itself copies, and looks at nothing."""
    monkeypatch.setattr("sequester.engine.spark.Seeing", lambda work, means: work)
    hidden = blind / "late"
    hidden.mkdir()
    series = begin(tmp_path, policy("pods", engine={**SPARK, "spill": str(hidden)}))
    with pytest.raises(DataError, match=f"not all that workers wrote is here; {DRIVER_AND_WORKERS}"):
        series.plan(spark.createDataFrame(waves()[0]).repartition(6), name="w1", seed=SEED)
    assert not list(hidden.iterdir())
