"""How often the intervals of `sq.estimate` hold the private table's own figure: waves of nlswork, several methods.

    python -m experiments.estimates [--waves 70 78 88] [--methods mondrian pods] [--k 5]

Every wave is published with its numbers blurred, naively (mondrian, cluster) and safely (pods), the release is asked
what the private wave answers exactly, and the answers are compared. Figures that are published exactly are left out.
How far draws lean (`analyst.spread`) was set by trying on the default waves; `--waves 69 72 75 77 82 85 87` are others.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

import sequester as sq

DATA = Path(__file__).parents[2] / "shared/data/nlswork/nlswork.csv.gz"
QUASI: dict[str, dict[str, Any]] = {
    "birth_yr": {"kind": "number", "range": [40, 60]},
    "grade": {"kind": "number", "range": [0, 20]},
    "ttl_exp": {"kind": "number", "range": [0, 40]},
    "ln_wage": {"kind": "number", "range": [0, 6]},
    "race": {},
    "msp": {},
    "south": {},
}
QUESTIONS = {
    "mean": [
        *(f"mean({x})" for x in ("birth_yr", "grade", "ttl_exp", "ln_wage")),
        *(f"mean({x}) by {y}" for x in ("ln_wage", "ttl_exp", "grade") for y in ("race", "msp", "south")),
        "mean(ln_wage) by occ_code",
        "mean(ttl_exp) where grade >= 13",
    ],
    "share": [
        "share(race = black)",
        "share(msp = 1) by race",
        "share(south = 1) by occ_code",
        "share(grade >= 13) by race",
        "share(ln_wage > 1.7) by south",
        "share(ttl_exp < 5) by msp",
    ],
    "quantile": [f"quantile({x}, {q})" for x in ("birth_yr", "grade", "ttl_exp", "ln_wage") for q in (0.25, 0.5, 0.75)]
    + ["median(ln_wage) by race", "median(ttl_exp) by south"],
    "table": ["count() by race, msp", "count() by south, occ_code", "count() by race where ln_wage > 1.7"],
    "ols": [
        "ols(ln_wage ~ grade + ttl_exp)",
        "ols(ln_wage ~ grade + ttl_exp + race + south)",
        "ols(ttl_exp ~ birth_yr + msp)",
    ],
}
METHODS: dict[str, dict[str, Any]] = {
    "mondrian": {"method": {"name": "mondrian"}},
    "cluster": {"method": {"name": "cluster"}},
    "pods": {"method": {"name": "pods"}},
}


def wave(year: int, data: Path = DATA) -> pa.Table:
    """The women of one wave, without those who lack a value."""
    names = ["idcode", *QUASI, "occ_code"]
    table = csv.read_csv(data)
    table = table.filter(pc.equal(table["year"], year)).select(names)
    for name in names:
        table = table.filter(pc.is_valid(table[name]))
    words = {"1": "white", "2": "black", "3": "other"}
    for name in ("race", "msp", "south", "occ_code"):
        texts = [str(int(value)) for value in table[name].to_pylist()]
        table = table.set_column(names.index(name), name, pa.array([words[t] if name == "race" else t for t in texts]))
    return table


def policy(method: str, *, k: int = 5, confidence: float = 0.7) -> sq.Policy:
    """Numbers and names are quasi-identifiers, occupation is sensitive."""
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier", **more} for name, more in QUASI.items()}
    attributes["occ_code"] = {"role": "sensitive"}
    raw = {"version": 1, "series": "nls", "person": "idcode", "attributes": attributes}
    return sq.Policy.model_validate({**raw, "protect": {"k": k, "confidence": confidence}, **METHODS[method]})


def truth(table: pa.Table) -> pa.Table:
    """The private table as a frame in which everything is exact."""
    columns: dict[str, Any] = {}
    for name in table.column_names[1:]:
        if QUASI.get(name, {}).get("kind") == "number":
            columns |= {f"{name}_{end}": table[name].cast(pa.float64()) for end in ("lo", "hi", "mid")}
        else:
            columns[name] = table[name]
    columns["class"], columns["weight"] = pa.array(np.arange(len(table))), pa.array(np.ones(len(table)))
    return pa.table(columns)


class Figure(NamedTuple):
    """What is true, and what is told."""

    kind: str
    question: str
    truth: float
    value: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low - 1e-9 <= self.truth <= self.high + 1e-9


def compared(table: pa.Table, release: sq.Release, *, draws: int = 20) -> Iterator[Figure]:
    """Every figure of at least 30 people, and every count, that is not published exactly."""
    raw = truth(table)
    for kind, questions in QUESTIONS.items():
        for question in questions:
            exact = sq.estimate(raw, question, draws=2)
            right = {group: at for at, group in enumerate(exact.groups)}
            told = sq.estimate(release, question, draws=draws)
            for at, group in enumerate(told.groups):
                place = right.get(group)
                if place is None and kind != "table":
                    continue
                value = 0.0 if place is None else exact.value[place]
                known = told.se[at] == 0 and abs(told.value[at] - value) < 1e-9
                if not known and (kind == "table" or exact.people[right[group]] >= 30):
                    yield Figure(kind, question, value, told.value[at], told.low[at], told.high[at])


def main() -> None:
    """Print the share of intervals that hold the truth, by method, kind of figure and question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waves", type=int, nargs="+", default=[70, 73, 78, 80, 83, 88])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--k", type=int, default=5)
    given = parser.parse_args()
    for method in given.methods:
        hits: dict[str, list[bool]] = defaultdict(list)
        for year in given.waves:
            table = wave(year)
            release = sq.anonymize(table, policy(method, k=given.k), seed=1)
            for figure in compared(table, release):
                for key in ("all", figure.kind, f"  {figure.question}"):
                    hits[key].append(figure.inside)
        questions = sorted((key for key in hits if key[0] == " "), key=lambda key: np.mean(hits[key]))
        for key in ("all", *QUESTIONS, *questions):
            print(f"{method:9} {np.mean(hits[key]):6.1%} of {len(hits[key]):5}  {key}")


if __name__ == "__main__":
    main()
