"""Mondrian on Adult against AnonyPy, and what gain cuts lose against the published median cuts."""

from __future__ import annotations

import anonypy
import numpy as np
import pandas as pd
from anonypy.anonypy import anonymize as write_rows

import sequester
from benchmarks import adult
from benchmarks.figures import DataMissing, Figure
from benchmarks.timing import medians, seconds
from sequester.methods.mondrian.cut import mondrian
from sequester.metrics.loss import ail

K = 5
UTILITY = ("age", "workclass", "education-num", "marital-status", "race", "sex", "native-country", "salary-class")


def run() -> list[Figure]:
    """Times on all records, then losses on 30,000 of them."""
    return [*_times(), *_losses()]


def _times() -> list[Figure]:
    data, frame = adult.load(), _frame()
    guard, policy = data.guard(k=K), adult.policy(adult.BYUN, k=K)
    ours = medians(
        9,
        gain=lambda: mondrian(data.codes, data.domains, guard, cuts="gain"),
        median=lambda: mondrian(data.codes, data.domains, guard, cuts="median"),
        whole=lambda: sequester.anonymize(frame, policy, seed=1),
    )
    theirs = anonypy.Preserver(frame, list(adult.BYUN), adult.SENSITIVE).modrian
    cutting, partitions = seconds(lambda: theirs.partition(K))
    writing, _ = seconds(lambda: write_rows(frame, partitions, list(adult.BYUN), adult.SENSITIVE))
    return [
        Figure("AnonyPy 0.2.1: cutting", cutting, "s", note=f"{len(partitions):,} classes, k = {K}"),
        Figure("AnonyPy 0.2.1: cutting and rows", cutting + writing, "s"),
        Figure("mondrian, gain cuts", ours["gain"] * 1000, "ms"),
        Figure("mondrian, median cuts", ours["median"] * 1000, "ms"),
        Figure("sequester.anonymize, frame to table", ours["whole"] * 1000, "ms", note="read, cut, verify, write"),
        Figure("AnonyPy cutting / gain cuts", cutting / ours["gain"], at_least=300),
        Figure("AnonyPy cutting / median cuts", cutting / ours["median"], at_least=300),
        Figure("AnonyPy whole / sequester.anonymize", (cutting + writing) / ours["whole"], at_least=300),
    ]


def _losses() -> list[Figure]:
    """AIL with k = 5 and confidence 0.7 of 30,000 records in random order."""
    try:
        adult.require_hierarchies()
    except DataMissing:
        return []
    everyone = adult.load(UTILITY)
    data = everyone.take(np.random.default_rng(1).permutation(everyone.codes.shape[1])[:30_000])
    guard = data.guard(k=K, confidence=0.7)
    lost = {
        cuts: ail(mondrian(data.codes, data.domains, guard, cuts=cuts), data.domains) for cuts in ("gain", "median")
    }
    return [
        Figure("AIL of gain cuts", lost["gain"], at_most=0.19, note="k = 5, confidence 0.7, 30,000 records"),
        Figure("AIL of median cuts", lost["median"], note="the cut nearest to the median of the widest attribute"),
        Figure("AIL, gain / median cuts", lost["gain"] / lost["median"]),
    ]


def _frame() -> pd.DataFrame:
    """The records as AnonyPy wants them: numbers and categories."""
    columns = adult.read_columns()
    frame = pd.DataFrame({name: columns[name] for name in (*adult.BYUN, adult.SENSITIVE)})
    return frame.astype({name: "int64" if name == "age" else "category" for name in frame.columns})
