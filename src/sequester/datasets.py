"""Invented tables about invented people, for demonstrations and tests. The same seed gives the same table anywhere."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST_NAMES = {
    "Female": ("Ada", "Bella", "Cora", "Dora", "Edda", "Fanny", "Greta", "Hilda", "Ida", "Juno", "Kira", "Lotte"),
    "Male": ("Abel", "Bruno", "Cosmo", "Dario", "Emil", "Fritz", "Gustav", "Hugo", "Ivo", "Jonas", "Kuno", "Leo"),
}
_LAST_NAMES = (
    "Alphabet", "Blank", "Cipher", "Dummy", "Example", "Fictional", "Generic", "Hypothesis", "Invented", "Jest",
    "Keyword", "Lorem", "Mockup", "Nobody", "Ordinal", "Placeholder", "Quotient", "Random", "Sample", "Testcase",
)  # fmt: skip

# Share of the people in per cent, and the codes of each region.
_REGIONS = (
    (34, ("02138", "02139", "02140", "02141", "02142")),
    (26, ("02215", "02216", "02217")),
    (20, ("01901", "01902", "01904", "01905")),
    (12, ("03060", "03062", "03063")),
    (8, ("00501", "00544")),
)
# First age, last age, and share of the people in per cent.
_AGES = ((0, 4, 7), (5, 17, 10), (18, 34, 20), (35, 49, 19), (50, 64, 20), (65, 79, 16), (80, 89, 6), (90, 100, 2))
_YEAR = np.datetime64("2025-01-01")
_WARDS = ("W1", "W2", "W3", "W4", "W5", "W6")
# Shares of the patients who leave or move in a year, and of those who left who return.
_LEAVES, _MOVES, _RETURNS = 0.2, 0.08, 0.2

# How frequent each is, relative to the others, in childhood, youth, middle and old age; from ordinary to rare and
# serious. The last age of the first three stages of life is in _STAGES.
_STAGES = (17, 39, 64)
_DIAGNOSES = {
    "none": (300, 330, 240, 150),
    "flu": (260, 190, 150, 140),
    "fracture": (110, 100, 60, 90),
    "appendicitis": (70, 60, 30, 10),
    "gastritis": (50, 70, 80, 60),
    "asthma": (90, 60, 50, 40),
    "migraine": (20, 60, 60, 20),
    "diabetes": (15, 25, 90, 120),
    "hypertension": (2, 20, 110, 150),
    "depression": (10, 50, 50, 30),
    "heart failure": (2, 5, 30, 90),
    "stroke": (1, 4, 20, 60),
    "cancer": (4, 8, 30, 60),
    "hepatitis": (2, 12, 14, 6),
    "HIV": (1, 10, 8, 2),
}


def hospital(n: int = 2000, *, seed: int = 0) -> pa.Table:
    """Admissions of `n` invented people, one row each: diagnoses depend on age, frequent ones are harmless."""
    import pyarrow as pa

    random = np.random.default_rng(seed)
    band = _draw(random, n, [share for *_, share in _AGES])
    lowest, highest = (np.array([ages[end] for ages in _AGES])[band] for end in (0, 1))
    age = random.integers(lowest, highest, endpoint=True)
    # Women live longer, which ties gender to age.
    female = random.integers(100, size=n) < np.where(age >= 80, 64, 50)
    zips = [(share / len(codes), code) for share, codes in _REGIONS for code in codes]
    zip_code = _draw(random, n, [share for share, _ in zips])
    day = random.integers(365, size=n)
    diagnosis = _diagnose(random, age, day)
    ward = random.integers(len(_WARDS), size=n)
    first = random.integers(len(_FIRST_NAMES["Female"]), size=n)
    last = random.integers(len(_LAST_NAMES), size=n)
    names = np.where(female, *(np.array(_FIRST_NAMES[gender], object)[first] for gender in ("Female", "Male")))
    # Numbers in random order: who came first is not in them.
    number = 100_000 + random.permutation(n)
    return pa.table(
        {
            "patient_id": [f"P{digits}" for digits in number.tolist()],
            "name": names + " " + np.array(_LAST_NAMES, object)[last],
            "age": age,
            "gender": np.where(female, "Female", "Male"),
            "zip": np.array([code for _, code in zips], object)[zip_code],
            "admitted": _YEAR + day,
            "ward": np.array(_WARDS, object)[ward],
            "diagnosis": np.array([*_DIAGNOSES], object)[diagnosis],
        }
    )


def hospital_panel(n: int = 3000, *, releases: int = 5, seed: int = 0) -> list[pa.Table]:
    """The patients of the same hospital year by year: of `n` people some come, leave, return, move and grow older.

    The diagnosis with which somebody came first stays; all other cells but name and gender may change.
    """
    import pyarrow as pa

    people = hospital(n, seed=seed)
    random = np.random.default_rng([seed, 1])
    # Most of them are there from the start; of the others as many come each year.
    joins = np.maximum(np.arange(n) * 2 * releases // max(n, 1) - releases, 0)
    here, age, zips = np.zeros(n, np.bool_), people["age"].to_numpy(), people["zip"].to_numpy()
    tables = []
    for year in range(releases):
        draw = random.random(n)
        here = np.where(here, draw >= _LEAVES, (joins < year) & (draw < _RETURNS)) | (joins == year)
        zips = np.where(random.random(n) < _MOVES, zips[random.permutation(n)], zips)
        cells = {
            "age": pa.array(np.minimum(age + year, 100)),
            "zip": pa.array(zips),
            "days": pa.array(np.minimum(random.geometric(0.15, size=n), 60)),
            "ward": pa.array(np.array(_WARDS, object)[random.integers(len(_WARDS), size=n)]),
        }
        names = ("patient_id", "name", "age", "gender", "zip", "days", "ward", "diagnosis")
        table = pa.table({name: cells[name] if name in cells else people[name] for name in names})
        tables.append(table.filter(pa.array(here)))
    return tables


def hospital_panel_policy() -> str:
    """A policy for `hospital_panel`, as the text of a policy file."""
    return _policy("hospital-panel.yaml")


def hospital_policy() -> str:
    """A policy for `hospital`, as the text of a policy file."""
    return _policy("hospital.yaml")


def _policy(name: str) -> str:
    return (files("sequester") / name).read_text(encoding="utf-8")


def _draw(random: np.random.Generator, n: int, shares: list[float]) -> NDArray[np.int64]:
    """n places, each as often as its share says."""
    return _place(random.random(n), np.cumsum(shares, dtype=np.float64)[None, :])


def _place(at: NDArray[np.float64], sums: NDArray[Any]) -> NDArray[np.int64]:
    drawn: NDArray[np.int64] = (at[:, None] * sums[:, -1:] >= sums).sum(axis=1)
    return drawn


def _diagnose(random: np.random.Generator, age: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.int64]:
    """A diagnosis for everybody, by stage of life; flu is a thing of the winter."""
    weights = np.array([*_DIAGNOSES.values()]).T[np.searchsorted(_STAGES, age)]
    flu = [*_DIAGNOSES].index("flu")
    winter = (day < 90) | (day >= 330)
    weights[:, flu] = np.where(winter, weights[:, flu] * 2, weights[:, flu] // 2)
    return _place(random.random(len(age)), np.cumsum(weights, axis=1))
