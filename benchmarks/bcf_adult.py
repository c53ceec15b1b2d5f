"""BCF-anonymity on Adult as in Fung et al., section 6: one run on 45,222 records, beside plain specialization."""

from __future__ import annotations

import numpy as np
from experiments.fung import KS, NEWCOMERS, run_case
from experiments.fung_data import SENSITIVE, tables

from benchmarks.figures import Figure
from benchmarks.timing import medians, seconds
from sequester.methods.specialize.refine import specialize
from sequester.methods.specialize.respecialize import respecialize
from sequester.metrics.loss import dm

K = 40


def run() -> list[Figure]:
    """Times and costs of single runs, then the whole set of section 6."""
    figures = []
    for name in SENSITIVE:
        figures += _one(name)
    taken, cases = seconds(lambda: [run_case(s, d, k) for s in SENSITIVE for d in NEWCOMERS for k in KS])
    broken = sum(min(case.after) < case.k for case in cases)
    leaking = sum(min(case.printed) < case.k for case in cases)
    return [
        *figures,
        Figure("section 6, all 30 cases", taken, "s", at_most=60, note="three releases and all measures each"),
        Figure("cases that leak when anonymized separately", leaking, note="of 30; FA or BA below k"),
        Figure("cases where BCF leaves fewer than k rows", broken, at_most=0),
    ]


def _one(name: str) -> list[Figure]:
    data = tables(name, None, K)
    first, everyone = np.arange(data.first), np.arange(len(data))
    guard = data.guard(everyone)
    old = specialize(np.ascontiguousarray(data.codes[:, first]), data.domains, data.guard(first))
    past = data.past(data.extend(data.start(), first, old), everyone)
    taken = medians(
        15,
        plain=lambda: specialize(data.codes, data.domains, guard),
        bcf=lambda: respecialize(past, data.codes, data.domains, guard, against=["neighbor"]),
    )
    plain = specialize(data.codes, data.domains, guard)
    bcf = respecialize(past, data.codes, data.domains, guard, against=["neighbor"])
    return [
        Figure(f"{name}: plain specialize", taken["plain"] * 1000, "ms", note=f"{len(data):,} records, k = {K}"),
        Figure(f"{name}: BCF", taken["bcf"] * 1000, "ms", at_most=1000, note="the paper: under 7 s"),
        Figure(f"{name}: time, BCF / plain", taken["bcf"] / taken["plain"], note="preparing the past is most of it"),
        Figure(f"{name}: discernibility, BCF / plain", dm(bcf) / dm(plain), note="plain is not safe"),
    ]
