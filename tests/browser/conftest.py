"""What tests in a browser share: the browser, and pages of every kind made from invented people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium import running, why_not
from pages import made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a browser, and runs apart."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running() as started:
        yield started


@pytest.fixture(scope="session")
def pages(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by name; they are looked at, never changed. Without a browser none is made."""
    return made(tmp_path_factory.mktemp("pages"))
