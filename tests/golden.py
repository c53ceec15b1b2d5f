"""What every method makes of small seeded tables, as digests: whoever makes a method faster changes none of them.

`python tests/golden.py --write` renews the digests, after a change that is meant to change what is published.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

import sequester as sq
from policies import changed
from sequester.ledger import Key
from sequester.methods.pods import make

FILE = Path(__file__).parent / "golden.json"
KEY = Key.of_text("a key for tests only")
SEED = 1 << 64 | 5
PEOPLE = 420
DRAW = np.random.default_rng(20)
TOWNS = {"Land": {"North": {"Coast": ["Kiel", "Bremen"], "Plain": ["Celle"]}, "South": ["Ulm", "Passau", "Hof"]}}
ILLS = {"Any": {"Mild": ["flu", "cold", "cough"], "Grave": ["asthma", "gout", "lupus"]}}
NAMES = ["flu", "cold", "cough", "asthma", "gout", "lupus"]
COLUMNS: dict[str, Any] = {
    "id": np.array([f"p{n}" for n in range(PEOPLE)]),
    "age": np.minimum(DRAW.normal(45, 18, PEOPLE).clip(0), 99).astype(np.int64),
    "town": DRAW.choice(
        ["Kiel", "Bremen", "Celle", "Ulm", "Passau", "Hof"], PEOPLE, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1]
    ),
    "code": np.array([f"{n:03d}" for n in DRAW.integers(0, 400, PEOPLE)]),
    "born": np.datetime64("1950-01-01") + DRAW.integers(0, 15_000, PEOPLE),
    "illness": DRAW.choice(NAMES, PEOPLE, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]),
    "drugs": np.array(
        [";".join(sorted(DRAW.choice(list("uvwxyz"), n + 1, replace=False))) for n in DRAW.integers(0, 2, PEOPLE)]
    ),
    "ward": np.array([f"w{n % 3}" for n in range(PEOPLE)]),
    "agrees": np.where(DRAW.random(PEOPLE) < 0.1, "no", "yes"),
}
# Newcomers, leavers and people who return, in numbers that can be hidden.
TABLES = (np.arange(0, 260), np.arange(60, 360), np.r_[0:40, 120:420])
CHANGING: dict[str, Any] = {
    "attributes__illness": {"role": "sensitive", "values": "transient", "ordinary": ["flu", "cold", "cough"]},
    "protect": {"k": 3, "against": ["lifetime"], "lifetime": {"l": 1.5, "releases": 4}},
    "method": {"name": "group"},
}


@dataclass(frozen=True)
class Case:
    """A policy, by what is different in it, and how it is published."""

    changes: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ("id", "age", "town", "code", "born", "illness")
    series: bool = False
    listed: bool = False
    leaks: bool = False
    many: bool = False

    def policy(self, folder: Path) -> sq.Policy:
        """The policy; where it needs a list of everybody, for a lifetime or as a population, that is written here."""
        quasi: dict[str, Any] = {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "levels": [5, 20]},
            "town": {"role": "quasi-identifier", "hierarchy": TOWNS},
            "code": {"role": "quasi-identifier", "kind": "code", "length": 3},
            "born": {"role": "quasi-identifier", "kind": "date", "levels": ["month", "year", "decade"]},
            "illness": {"role": "sensitive", "hierarchy": ILLS},
            "drugs": {"role": "sensitive", "kind": "set"},
            "ward": {"role": "insensitive"},
            "agrees": {"role": "consent"},
        }
        raw: dict[str, Any] = {
            "version": 1,
            "series": "golden",
            "person": "id",
            "attributes": {name: quasi[name] for name in self.columns if name != "id"},
            "protect": {"k": 4, "confidence": 0.7},
            "method": {"name": "mondrian"},
        }
        policy_changes = json.loads(json.dumps(self.changes))
        if self.listed:
            everybody = pa.table({name: COLUMNS[name] for name in self.columns if name != "illness"})
            csv.write_csv(everybody, folder / "everybody.csv")
            if "method" in policy_changes:
                policy_changes["protect"]["lifetime"]["registered"] = str(folder / "everybody.csv")
            else:
                policy_changes["protect__k_map"] = {"k": 6, "population": str(folder / "everybody.csv")}
        return changed(raw, **policy_changes)


def cases() -> dict[str, Case]:
    """Every method, with its main options."""
    three = ("id", "age", "town", "illness")

    def method(name: str, **more: Any) -> dict[str, Any]:
        return {"method": {"name": name, **more}}

    whole = ("id", "age", "town", "code", "born", "illness", "drugs", "ward")
    found = {
        "gain": Case(),
        "median": Case(method("mondrian", cuts="median")),
        "relaxed": Case(method("mondrian", cuts="relaxed")),
        "regroup": Case(method("mondrian", regroup=True)),
        "many criteria": Case(
            {
                "protect__diversity": {"kind": "recursive", "l": 3, "c": 2},
                "protect__closeness": {"t": 0.3, "distance": "hierarchical"},
            },
        ),
        "sets and insensitive cells": Case({}, whole),
        "population": Case(listed=True),
        "full-domain ncp": Case(method("full-domain", loss="ncp")),
        "full-domain dm, suppression": Case(method("full-domain", loss="dm", suppression=0.1)),
        "full-domain entropy, suppression": Case(
            {**method("full-domain", loss="entropy", suppression=0.2), "protect__closeness": {"t": 0.5}}
        ),
        "specialize": Case(method("specialize")),
        "specialize discernibility": Case(method("specialize", score="discernibility")),
        "cluster": Case(method("cluster")),
        "cluster gain": Case(method("cluster", gain=0.5)),
        "cluster similarity": Case(method("cluster", similarity=0.8)),
        "cluster grades": Case({**method("cluster"), "attributes__illness__grades": {"lupus": "high"}}),
    }
    insider = {
        "mondrian": Case(columns=three, series=True),
        "mondrian, whole rows": Case({"protect__inferred": 2}, (*three, "drugs", "ward"), series=True),
        "mondrian, all adversaries": Case({"protect__against": ["insider", "neighbor"]}, three, series=True),
        "mondrian median": Case(method("mondrian", cuts="median"), three, series=True),
        "full-domain": Case(method("full-domain"), three, series=True),
        "specialize realised": Case(
            {**method("specialize"), "protect__against": ["insider", "neighbor"]}, three, series=True
        ),
        "specialize printed": Case(
            {**method("specialize", semantics="printed"), "protect": {"k": 4, "against": ["neighbor"]}},
            three,
            series=True,
        ),
        "cluster": Case(method("cluster"), three, series=True),
        "cluster, consent and grades": Case(
            {**method("cluster"), "attributes__illness__grades": {"lupus": "high", "asthma": "high"}},
            (*three, "agrees"),
            series=True,
        ),
        "cluster gain": Case(method("cluster", gain=0.5), three, series=True),
        "merge": Case(method("merge"), three, series=True),
        "grow": Case(method("grow"), three, series=True),
        "static": Case(method("static"), three, series=True, leaks=True),
        "group": Case(CHANGING, three, series=True),
        "group geometric": Case(
            {
                **CHANGING,
                "protect": {**CHANGING["protect"], "lifetime": {"l": 1.5, "strategy": "geometric", "alpha": 1.5}},
            },
            three,
            series=True,
        ),
        "group registered": Case(CHANGING, three, series=True, listed=True),
        "group sets": Case(
            {
                **CHANGING,
                "attributes__drugs": {
                    "role": "sensitive",
                    "kind": "set",
                    "values": "transient",
                    "ordinary": ["u", "v", "w", "x"],
                },
            },
            (*three, "drugs"),
            series=True,
        ),
        "group, values that stay": Case(
            {
                **CHANGING,
                "attributes__illness": {**CHANGING["attributes__illness"], "permanent": ["lupus"]},
                "protect": {**CHANGING["protect"], "confidence": 0.7, "against": ["insider", "lifetime"]},
            },
            three,
            series=True,
        ),
    }
    pods = {
        "two inferred": _pods(),
        "k inferred": _pods(protect__inferred=4),
        "lineage": _pods(protect__lineage=5, decoys=0.3),
        "belief": _pods(protect__belief=0.75),
        "three seats": _pods(protect__confidence=0.34),
        "one type": _pods(method={"name": "pods", "classes": "one-type"}),
        "blind": _pods(method={"name": "pods", "blind": True}),
        "impossible": _pods(impossible=[{"town": "Hof", "illness": "gout"}]),
        "whole rows": replace(_pods(), columns=(*three, "ward")),
        "many people": replace(_pods(), many=True),
        "many people, k inferred": replace(_pods(protect__inferred=4), many=True),
    }
    return (
        {f"once: {name}": case for name, case in found.items()}
        | {f"series: {name}": case for name, case in insider.items()}
        | {f"pods: {name}": case for name, case in pods.items()}
    )


def _pods(**more: Any) -> Case:
    changes = {"method": {"name": "pods"}, "protect__confidence": 0.5, "protect__inferred": 2, **more}
    return Case(changes, ("id", "age", "town", "illness"), series=True)


def table(case: Case, numbers: np.ndarray, release: int) -> pa.Table:
    """Some people, with the values they have now where values change."""
    rows = {name: COLUMNS[name][numbers] for name in case.columns}
    for name, sensitive in case.changes.items():
        if name.startswith("attributes__") and isinstance(sensitive, dict) and sensitive.get("values") == "transient":
            name = name.removeprefix("attributes__")
            moved = COLUMNS[name].copy()
            some = (np.arange(PEOPLE) + release) % 5 == 0
            kept = np.isin(moved, sensitive.get("permanent", []))
            other = np.roll(moved, 7 * release)
            some &= ~kept & ~np.isin(other, sensitive.get("permanent", []))
            rows[name] = np.where(some, other, moved)[numbers]
    return pa.table(rows)


def releases(case: Case, folder: Path) -> Iterator[sq.Release]:
    """What the case publishes."""
    policy = case.policy(folder)
    if not case.series:
        yield sq.anonymize(table(case, np.arange(PEOPLE), 0), policy, seed=SEED)
        return
    series = sq.Series.open(folder / "golden.ledger", policy, key=KEY)
    with _few_are_many() if case.many else nullcontext():
        for number, present in enumerate(TABLES):
            plan = series.plan(table(case, present, number), name=f"r{number}", seed=SEED + number)
            yield series.publish(plan, i_know_this_leaks=case.leaks)


@contextmanager
def _few_are_many() -> Iterator[None]:
    """Pods of few people, made by the quick loops for many."""
    with mock.patch.object(make, "MANY", 100), mock.patch.object(make, "_ANEW", 100):
        yield


def digests(case: Case, folder: Path) -> list[dict[str, Any]]:
    """Per release how many rows and classes it has, and digests of its rows and of its measures."""
    return [
        {
            "rows": release.table.num_rows,
            "classes": release.measurement.classes,
            "data": _digest(release.table.to_pydict()),
            "measures": _digest(
                {name: round(float(number), 9) for name, number in {**release.measures, **release.loss}.items()}
            ),
        }
        for release in releases(case, folder)
    ]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def main() -> None:
    """Compare with the digests that are kept, or renew them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what is published now")
    write = parser.parse_args().write
    found = {}
    for name, case in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = digests(case, Path(folder))
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    different = [name for name in found.keys() | kept.keys() if found.get(name) != kept.get(name)]
    if write:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    print("different:", ", ".join(sorted(different)) or "none")  # noqa: T201 - a script


if __name__ == "__main__":
    main()
