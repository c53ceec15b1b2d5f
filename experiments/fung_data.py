"""UCI Adult as in Fung et al., section 6: D1 are the test records, D2 the first training records, eight categories."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from benchmarks.adult import DATA
from benchmarks.figures import DataMissing
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.tree import from_tree, from_values
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.policy import Policy

ATTRIBUTES = (
    "education", "marital-status", "occupation", "native-country", "workclass", "relationship", "race", "sex",
)  # fmt: skip
SENSITIVE = {"Sen1": ("native-country",), "Sen3": ("native-country", "education", "occupation")}


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """D1, then D2: codes (attributes, records) of the quasi-identifiers, and of one, perhaps joint, sensitive value."""

    policy: Policy
    domains: tuple[Hierarchy, ...]
    codes: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    sensitive_domains: tuple[Hierarchy, ...]
    joint: NDArray[np.int32]
    first: int

    def __len__(self) -> int:
        return self.codes.shape[1]

    def guard(self, records: NDArray[np.int64]) -> ClassGuard:
        """What one release of these records has to keep."""
        requirement = Requirement.from_policy(self.policy, self.sensitive_domains)
        return ClassGuard.of(requirement, self.sensitive[:, records])

    def start(self) -> History:
        """Nothing published yet."""
        kinds = int(self.joint.max()) + 1
        return History(
            attribute="sensitive",
            values=tuple(f"s{code}" for code in range(kinds)),
            k=self.policy.protect.k,
            bounds=(1,) * kinds,  # type: ignore[arg-type]
            domains=self.domains,
            quasi_names=tuple(self.policy.quasi_identifiers),
            links=np.ones(len(self.domains), np.bool_),
            people=tuple(range(len(self))),
        )

    def past(self, history: History, records: NDArray[np.int64]) -> Past:
        """These records as the next table."""
        return Past((history,), records, (self.joint[records],), np.zeros(len(records), np.bool_))

    def extend(self, history: History, records: NDArray[np.int64], classes: Classes) -> History:
        """The history after these records are published in these classes."""
        past, name = self.past(history, records), f"R{len(history) + 1}"
        return past.extend(classes.member, classes.lo, classes.hi, order=np.arange(len(records)), name=name)[0]


def tables(sensitive: str, newcomers: int | None, k: int) -> Tables:
    """D1 and the first `newcomers` of D2 (None: all), with Sen1 or Sen3 as the sensitive attribute."""
    columns, first = _columns()
    hidden = SENSITIVE[sensitive]
    count = len(columns["sex"]) if newcomers is None else first + newcomers
    names = [name for name in ATTRIBUTES if name not in hidden]
    domains = _domains()
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in names}
    attributes |= {name: {"role": "sensitive"} for name in hidden}
    protect = {"k": k, "against": ["neighbor"], "sensitive": "joint"}
    policy = Policy.model_validate(
        {"version": 1, "series": "adult", "person": "id", "attributes": attributes, "protect": protect}
    )
    codes = np.array([columns[name][:count] for name in names], np.int32)
    values = np.array([columns[name][:count] for name in hidden], np.int32)
    joint = np.unique(values, axis=1, return_inverse=True)[1].ravel().astype(np.int32)
    own = tuple(from_values(domains[name].names[0], known=domains[name].names[0]) for name in hidden)
    return Tables(policy, tuple(domains[name] for name in names), codes, values, own, joint, first)


@cache
def _domains() -> dict[str, Hierarchy]:
    file = DATA / "taxonomy_fung_tds" / "taxonomytree.json"
    if not file.exists():
        raise DataMissing(f"It needs the taxonomies of Fung's top-down specialization papers in {file}.")
    trees = json.loads(file.read_text(encoding="utf-8"))
    return {name: from_tree({"Any": _tree(trees[name.replace("-", "_")])}) for name in ATTRIBUTES}


def _tree(node: dict[str, Any]) -> list[Any]:
    """Children as the policy writes trees: a leaf is its name, a group is its name with its children."""
    return [child["parent"] if not child["leaves"] else {child["parent"]: _tree(child)} for child in node["leaves"]]


@cache
def _columns() -> tuple[dict[str, NDArray[np.int32]], int]:
    """Codes of every attribute, the test records first, and how many those are."""
    rows: list[list[str]] = []
    first = 0
    for name in ("adult_test_15060.csv.gz", "adult_train_30162.csv.gz"):
        file = DATA / name
        if not file.exists():
            raise DataMissing(f"It needs UCI Adult without missing values in {file}.")
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            head, *table = [row for row in csv.reader(lines, skipinitialspace=True) if row]
        rows += table
        first = first or len(table)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    found = {}
    for name, domain in _domains().items():
        code = {leaf: number for number, leaf in enumerate(domain.names[0])}
        found[name] = np.array([code[cell] for cell in columns[name]], np.int32)
    return found, first
