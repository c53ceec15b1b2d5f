"""Every case that was ever saved, tried again: some found by exploring, some worth keeping from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

import judged
from saved import CASES
from tiny import from_json

SAVED = sorted(CASES.glob("*.json"))


@pytest.mark.parametrize("path", SAVED, ids=[path.stem for path in SAVED])
def test_a_saved_case_is_judged_right(path: Path) -> None:
    check = path.name.split("-")[0]
    assert check in ("check_audit", "check_measure", "check_published")
    getattr(judged, check)(from_json(path.read_text()))
