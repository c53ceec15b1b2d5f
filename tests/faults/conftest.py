"""What tests of faults share: a process that forks one for each command, and folders to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shim import Driver, starting_points


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a test of faults, which runs apart."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Loads everything once."""
    running = Driver(tmp_path_factory.mktemp("driver"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def starts(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders as they are before the publish that is disturbed; they are copied, never changed."""
    return starting_points(driver, tmp_path_factory.mktemp("starts"))
