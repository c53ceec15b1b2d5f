"""Fung et al., section 6, run anew: which separately anonymized releases leak, and what BCF-anonymity costs.

Figures 1a-1d are F- and B-anonymity of releases that are k-anonymized one by one; Figures 2a-2f the discernibility cost
of the BCF-anonymized R2, of the unsafe k-anonymized R2 and of D2 on its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import mean

import numpy as np
from benchmarks.timing import seconds

from experiments.fung_data import SENSITIVE, Tables, tables
from experiments.tables import table
from sequester.attacks.cracks import find
from sequester.history import History
from sequester.methods.classes import Classes
from sequester.methods.specialize.refine import specialize
from sequester.methods.specialize.respecialize import respecialize

NEWCOMERS = {"200D2": 200, "2000D2": 2000, "allD2": None}
KS = (40, 80, 120, 160, 200)


@dataclass(frozen=True)
class Case:
    """One of the 30 cases: anonymity of the separate releases, as printed and for people who exist; costs; seconds."""

    sensitive: str
    newcomers: str
    k: int
    printed: tuple[int, int]
    realised: tuple[int, int]
    bcf: float
    separate: float
    alone: float
    after: tuple[int, int]
    seconds: float


def run_case(sensitive: str, newcomers: str, k: int) -> Case:
    """Anonymize separately, measure, anonymize again with BCF, and measure what that costs."""
    data = tables(sensitive, NEWCOMERS[newcomers], k)
    old, new, everyone = np.arange(data.first), np.arange(data.first, len(data)), np.arange(len(data))
    history = data.extend(data.start(), old, _anonymize(data, old))
    apart = _anonymize(data, everyone)
    leaky = data.extend(history, everyone, apart)
    taken, safe = seconds(lambda: _bcf(data, history))
    return Case(
        sensitive,
        newcomers,
        k,
        printed=_anonymity(leaky, "paper"),
        realised=_anonymity(leaky, "exact"),
        bcf=_cost(safe),
        separate=_cost(apart),
        alone=_cost(_anonymize(data, new)),
        after=_anonymity(data.extend(history, everyone, safe), "exact"),
        seconds=taken,
    )


def _bcf(data: Tables, history: History) -> Classes:
    past, guard = data.past(history, np.arange(len(data))), data.guard(np.arange(len(data)))
    return respecialize(past, data.codes, data.domains, guard, against=["neighbor"], score="discernibility")


def _anonymize(data: Tables, records: np.ndarray) -> Classes:
    codes = np.ascontiguousarray(data.codes[:, records])
    return specialize(codes, data.domains, data.guard(records), score="discernibility")


def _anonymity(history: History, semantics: str) -> tuple[int, int]:
    """F-anonymity, which is C-anonymity, and B-anonymity."""
    found = [find(history, way, semantics=semantics).measure for way in ("forward", "cross", "backward")]  # type: ignore[arg-type]
    assert found[0] == found[1]
    return int(found[0] or 0), int(found[2] or 0)


def _cost(classes: Classes) -> float:
    """Discernibility cost as in section 6.2: squares of class sizes over the square of the table's."""
    size = classes.size.astype(np.float64)
    return float(size @ size / size.sum() ** 2)


def run() -> str:
    """All 30 cases, as Markdown."""
    begin = time.perf_counter()
    cases = [run_case(sensitive, newcomers, k) for sensitive in SENSITIVE for newcomers in NEWCOMERS for k in KS]
    assert all(min(case.after) >= case.k for case in cases)
    slowest = max(case.seconds for case in cases)
    return "\n".join(
        [
            "# Fung et al., section 6",
            "",
            "Adult: D1 are the 15,060 test records, D2 the first 200, 2,000 or all 30,162 training records; Sen1 is",
            "the native country, Sen3 country, education and occupation together. FA (= CA) and BA are of R1 and R2",
            "k-anonymized separately, as printed and, in brackets, for people who exist; **below k** is a violation.",
            "Costs are normalized discernibility; `after` are FA and BA of the BCF-anonymized R2.",
            "",
            _cases(cases),
            "Average cost of the BCF-anonymized R2 against both alternatives (section 6.2):",
            "",
            _averages(cases),
            f"{len(cases)} cases: {time.perf_counter() - begin:.0f} s; the slowest BCF run: {slowest * 1000:.0f} ms.",
            "",
        ]
    )


def _cases(cases: list[Case]) -> str:
    heads = ("sensitive", "D2", "k", "FA", "BA", "BCF R2", "k-anonymous R2 (unsafe)", "D2 alone", "after", "BCF, ms")
    rows = []
    for case in cases:
        found = [
            f"{f'**{printed}**' if printed < case.k else printed} ({realised})"
            for printed, realised in zip(case.printed, case.realised, strict=True)
        ]
        after = ", ".join(map(str, case.after))
        costs = (case.bcf, case.separate, case.alone)
        rows.append((case.sensitive, case.newcomers, case.k, *found, *costs, after, round(case.seconds * 1000)))
    return table(heads, rows)


def _averages(cases: list[Case]) -> str:
    rows = []
    for sensitive in SENSITIVE:
        for newcomers in NEWCOMERS:
            some = [case for case in cases if (case.sensitive, case.newcomers) == (sensitive, newcomers)]
            bcf = mean(case.bcf for case in some)
            alone, separate = mean(case.alone for case in some), mean(case.separate for case in some)
            rows.append((sensitive, newcomers, f"{bcf / alone - 1:+.0%}", f"{bcf / separate - 1:+.0%}"))
    return table(("sensitive", "D2", "against D2 alone", "against k-anonymous R2 (unsafe)"), rows)
