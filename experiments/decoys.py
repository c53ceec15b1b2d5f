"""Readers with boosted trees who look for decoys: which rows of published files are about nobody.

The reader has files of other panels of which she knows the decoys, a synthetic town and people of Adult who come and
go, and learns from them; then she reads nlswork and the hospital of the demo. She has nothing but the published rows:
how frequent a label is, now and before, how large a class and its box are, how often labels stand in a class, and how
many earlier releases had the label near; a column `weight` is read, too, where there is one. AUC .5 is guessing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from benchmarks.adult import DATA
from benchmarks.figures import DataMissing
from numpy.typing import NDArray

import sequester as sq
from experiments.naive import policy, women
from experiments.tables import table
from sequester.datasets import hospital_panel, hospital_panel_policy
from sequester.ledger import Key

Floats = NDArray[np.float64]
SETTINGS: dict[str, dict[str, Any]] = {
    "thrifty": {"decoys": 0.025},
    "confidence 1/3": {"protect": {"confidence": 0.334, "k": 6}, "decoys": 0.3},
    "resilient": {"protect": {"lineage": 5}, "decoys": 0.25},
}
WAVES, SEED, WEIGHT = 6, 2**64, "weight"


@dataclass(frozen=True)
class Published:
    """The rows of a series, one after the other: what a reader sees of each, and whether it is about nobody."""

    features: Floats
    decoy: NDArray[np.bool_]


def town(waves: int = WAVES, people: int = 2_400) -> tuple[sq.Policy, list[pa.Table]]:
    """A synthetic town: a fifth leave every year, others come, and an illness that depends on age stays."""
    random = np.random.default_rng(11)
    age, street = random.integers(0, 90, people), random.integers(0, 40, people)
    sex, skew = random.choice(["f", "m"], people), random.dirichlet(np.arange(1, 15)[::-1] ** 1.5, 9)
    ill = np.array([f"illness {random.choice(14, p=skew[years // 10]):02d}" for years in age])
    columns = {"id": np.arange(people), "age": age, "street": street, "sex": sex, "illness": ill}
    quasi = {"age": [0, 100], "street": [0, 39]}
    return _policy(quasi, "sex", "illness"), list(_coming_and_going(columns, random, waves))


def adult(waves: int = WAVES, people: int = 3_600) -> tuple[sq.Policy, list[pa.Table]]:
    """People of Adult who come and go, and their occupations."""
    from benchmarks import adult as read

    data = read.load().take(np.random.default_rng(12).permutation(30_162)[:people])
    texts = {
        name: np.array(domain.names[0], object)[codes]
        for name, codes, domain in zip(data.names, data.codes, data.domains, strict=True)
    }
    columns = {
        "id": np.arange(people),
        "age": texts["age"].astype(float).astype(np.int64),
        "school": np.unique(texts["education"], return_inverse=True)[1],
        "sex": texts["sex"].astype(str),
        "occupation": np.array(data.occupations.names[0], object)[data.sensitive[0]].astype(str),
    }
    quasi = {"age": [0, 100], "school": [0, 20]}
    return _policy(quasi, "sex", "occupation"), list(_coming_and_going(columns, np.random.default_rng(13), waves))


def _coming_and_going(columns: dict[str, Any], random: np.random.Generator, waves: int) -> Iterator[pa.Table]:
    people = len(columns["id"])
    joins = np.sort(np.r_[np.zeros(people // 2, np.int64), random.integers(1, waves, people - people // 2)])
    joins = random.permutation(joins)
    here = np.zeros(people, np.bool_)
    for wave in range(waves):
        draw = random.random(people)
        here = np.where(here, draw >= 0.2, (joins < wave) & (draw < 0.2)) | (joins == wave)
        yield pa.table({name: cells[here] for name, cells in columns.items()})


def _policy(quasi: dict[str, list[int]], sex: str, sensitive: str) -> sq.Policy:
    attributes: dict[str, Any] = {
        name: {"role": "quasi-identifier", "kind": "number", "range": ends} for name, ends in quasi.items()
    }
    attributes |= {sex: {"role": "quasi-identifier"}, sensitive: {"role": "sensitive"}}
    protect = {"k": 5, "confidence": 0.5, "inferred": 2}
    raw = {"version": 1, "series": "panel", "person": "id", "attributes": attributes, "protect": protect}
    return sq.Policy.model_validate({**raw, "method": {"name": "pods"}})


def nlswork(waves: int = 8) -> tuple[sq.Policy, list[pa.Table]]:
    """The women of nlswork and their first occupations."""
    return policy("pods"), [wave for _, wave in women(waves)]


def hospital(waves: int = WAVES) -> tuple[sq.Policy, list[pa.Table]]:
    """The demo."""
    tables = hospital_panel(releases=waves)
    return sq.Policy.model_validate(yaml.safe_load(hospital_panel_policy())), tables


TAUGHT: tuple[Callable[[], tuple[sq.Policy, list[pa.Table]]], ...] = (town, adult)
READ: dict[str, Callable[[], tuple[sq.Policy, list[pa.Table]]]] = {"nlswork": nlswork, "the demo": hospital}


def published(made: tuple[sq.Policy, list[pa.Table]], setting: dict[str, Any]) -> Published:
    """A series under a setting, as its reader sees it."""
    plain, tables = made
    raw = plain.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raw = {**raw, **setting, "protect": {**raw["protect"], **setting.get("protect", {})}}
    chosen = sq.Policy.model_validate(raw)
    shown, decoy = [], []
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "panel.ledger", chosen, key=Key.of_text("the key of an experiment"))
        for number, snapshot in enumerate(tables):
            plan = series.plan(snapshot, name=f"wave-{number}", seed=SEED + number, price=False)
            candidate = plan.candidate
            assert candidate is not None
            shown.append(series.publish(plan).table)
            decoy.append(candidate.decoy[candidate.order])
    return Published(seen(shown, chosen), np.concatenate(decoy))


def seen(releases: list[pa.Table], policy: sq.Policy) -> Floats:
    """What a reader computes of every published row, from public files alone."""
    before: list[tuple[Floats, Floats, NDArray[np.int64], list[str]]] = []
    found = []
    ends = _spans(releases, policy)
    for release in releases:
        low, high = _boxes(release, ends)
        label = [
            "|".join(map(str, row))
            for row in zip(*(release[name].to_pylist() for name in policy.sensitive), strict=True)
        ]
        _, place = np.unique(np.vstack([low, high]), axis=1, return_inverse=True)
        place = place.ravel()
        labels, code = np.unique(label, return_inverse=True)
        size = np.bincount(place)[place]
        share = np.bincount(code)[code] / len(code)
        _, pair, among = np.unique(place * len(labels) + code, return_inverse=True, return_counts=True)
        width = high - low
        order = np.argsort(np.argsort(-np.bincount(code)))[code] / max(len(labels) - 1, 1)
        own = [share, order, size / np.median(size), among[pair], among[pair] / size, width.mean(0), width.max(0),
               np.bincount(place, weights=share)[place] / size]  # fmt: skip
        own += [_weights(release), *_history(before, low, high, np.asarray(label), share)]
        found.append(np.column_stack(own))
        before.append((low, high, place, label))
    return np.vstack(found)


def _spans(releases: list[pa.Table], policy: sq.Policy) -> dict[str, list[Any]]:
    """Per quasi-identifier its written cells: a number's as two columns, another's in the order of its texts."""
    spans: dict[str, list[Any]] = {}
    for name in policy.quasi_identifiers:
        columns = [f"{name}_min", f"{name}_max"] if f"{name}_min" in releases[0].column_names else [name]
        cells = [cell for release in releases for column in columns for cell in release[column].to_pylist()]
        spans[name] = (
            sorted({str(cell) for cell in cells})
            if len(columns) == 1
            else [
                min(float(cell) for cell in cells if cell is not None),
                max(float(cell) for cell in cells if cell is not None),
            ]
        )
    return spans


def _boxes(release: pa.Table, spans: dict[str, list[Any]]) -> tuple[Floats, Floats]:
    """The ends of boxes between 0 and 1; of texts, what is cut off or in braces is wide."""
    low, high = [], []
    for name, span in spans.items():
        if f"{name}_min" in release.column_names:
            first, last = (
                np.array([np.nan if cell is None else float(cell) for cell in release[f"{name}_{end}"].to_pylist()])
                for end in ("min", "max")
            )
            scale = max(span[1] - span[0], 1e-9)
            first, last = (
                (np.nan_to_num(first, nan=span[0]) - span[0]) / scale,
                (np.nan_to_num(last, nan=span[1]) - span[0]) / scale,
            )
        else:
            texts = [str(cell) for cell in release[name].to_pylist()]
            first = np.array([0.0 if _wide(text) == 1 else span.index(text) / len(span) for text in texts])
            last = first + np.array([_wide(text) for text in texts])
        low.append(first)
        high.append(last)
    return np.array(low), np.array(high)


def _wide(text: str) -> float:
    if text == "*":
        return 1.0
    return min(1.0, 0.2 * text.count("*") + 0.15 * text.count(",") + 0.3 * text.startswith("["))


def _weights(release: pa.Table) -> Floats:
    """Relative to their mean; where there are none, as if all were alike."""
    if WEIGHT not in release.column_names:
        return np.ones(release.num_rows)
    weights = np.array(release[WEIGHT].to_pylist(), np.float64)
    return weights / weights.mean()


def _history(
    before: list[tuple[Floats, Floats, NDArray[np.int64], list[str]]],
    low: Floats,
    high: Floats,
    label: NDArray[Any],
    share: Floats,
) -> list[Floats]:
    """Releases so far; the share of them that had the label in a class that the box meets, in how large a part of
    these classes' rows, and in the last one; and how the label's share has changed."""
    count = low.shape[1]
    if not before:
        return [np.zeros(count), *(np.full(count, np.nan) for _ in range(4))]
    near, part, change = (np.zeros((len(before), count)) for _ in range(3))
    boxes, box = np.unique(np.vstack([low, high]), axis=1, return_inverse=True)
    box = box.ravel()
    axes = len(low)
    for at, (first, last, place, told) in enumerate(before):
        classes = np.unique(place, return_index=True)[1]
        meets = np.ones((boxes.shape[1], len(classes)))
        for axis in range(axes):
            own_low, own_high = boxes[axis][:, None], boxes[axes + axis][:, None]
            meets *= (first[axis, classes] <= own_high) & (own_low <= last[axis, classes])
        names, code = np.unique(told, return_inverse=True)
        counts = np.zeros((len(classes), len(names) + 1))
        np.add.at(counts, (place, code), 1)
        column = np.where(np.isin(label, names), np.searchsorted(names, label), len(names))
        column = np.minimum(column, len(names))
        met = meets @ counts
        here, all_of_them = met[box, column], np.maximum(met.sum(1)[box], 1)
        near[at], part[at] = here > 0, here / all_of_them
        change[at] = share - (counts.sum(0) / len(told))[column]
    return [np.full(count, len(before)), near.mean(0), part.mean(0), near[-1], change[-1]]


def told(taught: list[Published], read: Published) -> tuple[float, float, float]:
    """AUC of trees taught by other panels; the share of decoys in the most suspect hundredth of rows, and in all."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
    except ImportError as error:
        raise DataMissing("scikit-learn is not there; `make bench` installs it") from error
    trees = HistGradientBoostingClassifier(max_iter=150, learning_rate=0.06, min_samples_leaf=40, random_state=0)
    trees.fit(np.vstack([one.features for one in taught]), np.concatenate([one.decoy for one in taught]))
    chance = trees.predict_proba(read.features)[:, 1]
    most = np.argsort(-chance, kind="stable")[: max(len(chance) // 100, 1)]
    return float(roc_auc_score(read.decoy, chance)), float(read.decoy[most].mean()), float(read.decoy.mean())


def run() -> str:
    """Every setting, as Markdown."""
    if not DATA.exists():
        raise DataMissing(f"{DATA} is not there; see the README of the data folder")
    rows: list[list[object]] = []
    for name, setting in SETTINGS.items():
        taught = [published(make(), setting) for make in TAUGHT]
        for panel, make in READ.items():
            auc, precision, share = told(taught, published(make(), setting))
            rows.append([name, panel, f"{auc:.2f}", f"{100 * share:.1f} %", f"{100 * precision:.1f} %"])
            print(*rows[-1], sep=" | ", flush=True)
    heads = ["decoys", "files read", "AUC", "decoys among all rows", "decoys among the most suspect hundredth"]
    return f"## Decoys told by boosted trees\n\n{table(heads, rows)}"


if __name__ == "__main__":
    print(run())
