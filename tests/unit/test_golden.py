"""Every method publishes, from the same seeds, the bytes it always did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden import FILE, cases, digests

CASES = cases()
KEPT = json.loads(FILE.read_text())


def test_every_case_has_its_digests() -> None:
    assert sorted(KEPT) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_what_is_published_is_what_it_was(name: str, tmp_path: Path) -> None:
    # Where this is meant to change: python tests/golden.py --write
    assert digests(CASES[name], tmp_path) == KEPT[name]
