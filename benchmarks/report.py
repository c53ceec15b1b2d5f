"""The public report of a release of a million rows, from the released table to the page: processor seconds and size."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import sequester as sq
from benchmarks.figures import Figure
from sequester.datasets import hospital, hospital_policy
from sequester.publish.reporting import public_page

RECORDS = 1_000_000
_MEGABYTE = 1e6


def run() -> list[Figure]:
    """Anonymize a large hospital, and report it; measuring the published table counts."""
    with TemporaryDirectory() as folder:
        rules = Path(folder, "policy.yaml")
        rules.write_text(hospital_policy())
        policy = sq.Policy.load(rules)
    release = sq.anonymize(hospital(RECORDS, seed=1), policy, seed=1)
    began = time.process_time()
    page = public_page(release)
    taken = time.process_time() - began
    classes = release.measurement.classes
    return [
        Figure("time for the report", taken, "s", at_most=10, note=f"of a processor; {classes:,} classes"),
        Figure("size of the report", len(page.encode()) / _MEGABYTE, "MB", at_most=3),
        Figure("pictures in it", page.count("<svg"), at_least=8),
    ]
