"""Examples are the same in every run; HYPOTHESIS_PROFILE=explore looks for new ones (see explore.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from books import STORES, Books
from postgres import SERVER

settings.register_profile("steady", derandomize=True, print_blob=True)
# Of what is found by chance a saved case or a blob must be left: the database is of one machine.
settings.register_profile("explore", derandomize=False, print_blob=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(params=STORES)
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Books:
    """Places for ledgers: in files, and again on a server, where there is one."""
    if request.param == "postgres" and SERVER.why_not is not None:
        pytest.skip(SERVER.why_not)
    return Books(request.param, tmp_path)
