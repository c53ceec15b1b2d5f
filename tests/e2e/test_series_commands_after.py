"""A series with another promise goes on from an earlier one, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinic import POLICY, contents, people, publish_two, write
from command import invoke

RULES = ("-p", "next.yaml")


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Two releases, and the policy of a series that goes on from them."""
    folder = publish_two(tmp_path)
    later = POLICY.replace("series: clinic", "series: hospital").replace("confidence: 0.6", "confidence: 0.7")
    (folder / "next.yaml").write_text(later + "after: clinic.ledger\n")
    write(folder / "q4.csv", people(120))
    return folder


def test_a_plan_hands_nothing_over(series: Path) -> None:
    before = contents(series)
    done = invoke("plan", "q4.csv", *RULES, cwd=series)
    assert done.returncode == 0, done.stderr
    assert "Release 3 of hospital, 0003-q4" in done.stdout
    assert contents(series) == before


def test_a_saved_plan_is_published_as_the_next_release_of_both(series: Path) -> None:
    assert invoke("plan", "q4.csv", *RULES, "--out", "next.plan", cwd=series).returncode == 0
    done = invoke("publish", "next.plan", *RULES, cwd=series)
    assert done.returncode == 0, done.stderr
    assert (series / "releases" / "hospital" / "0003-q4" / "data.csv").is_file()
    for policy in ("next.yaml", "policy.yaml"):
        verified = invoke("ledger", "verify", "-p", policy, cwd=series)
        assert verified.returncode == 0, verified.stderr
    refused = invoke("publish", "q4.csv", "-p", "policy.yaml", "--yes", cwd=series)
    assert refused.returncode == 6
    assert "another series goes on from this one" in refused.stderr
