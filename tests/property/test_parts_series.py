"""Series in parts beside the same made whole, whoever comes and goes: towns that close, empty and fill again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings

from parted_series import CHURN, Churn, check_as_whole


@settings(deadline=None, max_examples=4)
@given(CHURN)
def test_a_series_in_parts_publishes_whom_the_whole_one_does_and_is_as_safe(churn: Churn) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_as_whole(Path(folder), churn)
