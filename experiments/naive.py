"""What a reader of a whole series believes: each release made on its own, beside pods.

nlswork: 15 yearly waves of a panel of women, six quasi-identifiers, and everybody's first occupation, which stays.
The naive series publishes every wave on its own, 5-anonymous with confidence 1/2 (cluster): as safe as single tables
are made. A reader knows who is in which class, and no value; she believes what is most even given all classes. Then the
same with the values of some women known, drawn at random. The picture is docs/pictures/belief.svg.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from benchmarks.adult import DATA
from benchmarks.figures import DataMissing

import sequester as sq
from experiments.curves import Curve, draw
from experiments.tables import table
from sequester.attacks.belief import KNOWN, Resilience, resilience
from sequester.attacks.solvers.belief import believe
from sequester.history import History, Publication
from sequester.history.seats import Seats
from sequester.ledger import Key

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "belief.svg"
MARKS = (1, 2, 4, 8, 15)
_QUASI = ("birth_yr", "grade", "race", "msp", "south", "c_city")
Waves = list[tuple[str, pa.Table]]
Told = tuple[History, Seats | None]


def women(waves: int = 15) -> Waves:
    """The waves: id, six quasi-identifiers as they are now, and the first occupation."""
    file = DATA.parent / "nlswork" / "nlswork.csv.gz"
    if not file.exists():
        raise DataMissing(f"{file} is not there; see the README of the data folder")
    with gzip.open(file) as stream:
        whole = csv.read_csv(stream)
    whole = whole.select(["idcode", "year", *_QUASI, "occ_code", "ind_code"]).drop_null()
    whole = whole.sort_by([("idcode", "ascending"), ("year", "ascending")])
    first: dict[int, str] = {}
    for person, code in zip(whole["idcode"].to_pylist(), whole["occ_code"].to_pylist(), strict=True):
        first.setdefault(person, f"occupation {code:g}")
    own = pa.array([first[person] for person in whole["idcode"].to_pylist()])
    race = pc.binary_join_element_wise("race", pc.cast(whole["race"], pa.string()), " ")
    whole = whole.append_column("occupation", own).set_column(whole.column_names.index("race"), "race", race)
    columns = {"id": "idcode", **{name: name for name in _QUASI}, "occupation": "occupation"}
    found = []
    for year in sorted(pc.unique(whole["year"]).to_pylist())[:waves]:
        wave = whole.filter(pc.equal(whole["year"], year))
        found.append((f"19{year}", pa.table({name: wave[column] for name, column in columns.items()})))
    return found


def policy(method: str | dict[str, Any], **more: Any) -> sq.Policy:
    """k 5, confidence 1/2; for a series two rows for anything inferred."""
    number = {"role": "quasi-identifier", "kind": "number", "changes": True}
    ranges = {"birth_yr": [40, 55], "grade": [0, 18], "msp": [0, 1], "south": [0, 1], "c_city": [0, 1]}
    attributes: dict[str, Any] = {name: {**number, "range": ends} for name, ends in ranges.items()}
    attributes |= {"race": {"role": "quasi-identifier", "changes": True}, "occupation": {"role": "sensitive"}}
    protect = {"k": 5, "confidence": 0.5, "inferred": 2, **more.pop("protect", {})}
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "women",
            "person": "id",
            "attributes": attributes,
            "protect": protect,
            "method": {"name": method} if isinstance(method, str) else method,
            **more,
        }
    )


def naive(waves: Waves) -> Told:
    """Every wave on its own by cluster, as a history whose people are known."""
    made = [sq.anonymize(snapshot, policy("cluster")) for _, snapshot in waves]
    number: dict[Any, int] = {}
    for _, snapshot in waves:
        for person in snapshot["id"].to_pylist():
            number.setdefault(person, len(number))
    names = sorted({value for _, snapshot in waves for value in snapshot["occupation"].to_pylist()})
    code = {value: place for place, value in enumerate(names)}
    history = History(
        attribute="occupation",
        values=tuple(names),
        k=5,
        bounds=(Fraction(1, 2),) * len(names),
        domains=(),
        quasi_names=(),
        links=np.zeros(0, np.bool_),
        people=tuple(number),
    )
    for (name, snapshot), release in zip(waves, made, strict=True):
        value = np.full(len(number), -1, np.int32)
        value[[number[one] for one in snapshot["id"].to_pylist()]] = [
            code[one] for one in snapshot["occupation"].to_pylist()
        ]
        member, given = np.full(len(number), -1, np.int32), release.members()
        here = [number[int(one)] for one in given["person"].to_pylist()]
        member[here] = given["class"].to_numpy()
        history = history.extend(_publication(name, member, np.where(member >= 0, value, -1), len(names)))
    return history, None


def _publication(name: str, member: Any, value: Any, values: int) -> Publication:
    there = member >= 0
    classes = int(member.max()) + 1
    counts = np.bincount(member[there].astype(np.int64) * values + value[there], minlength=classes * values)
    box, rows = np.zeros((0, classes), np.int32), np.zeros(0, np.int32)
    counted = counts.reshape(classes, values).astype(np.int64)
    return Publication(name, box, box, counted, rows, rows, member.astype(np.int32), value.astype(np.int32))


def in_series(given: sq.Policy, waves: Waves) -> Told:
    """A series with a ledger: its history, decoys among the people, and seats where pods made it."""
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "women.ledger", given, key=Key.of_text("the key of an experiment"))
        for number, (name, snapshot) in enumerate(waves):
            plan = series.plan(snapshot, name=name, seed=2**63 + number)
            series.publish(plan)
        assert plan.candidate is not None
        return plan.candidate.audit.histories[0], plan.candidate.seats


def above(told: Told, waves: Sequence[int]) -> list[tuple[float, float | None]]:
    """After each of these waves: the share of the women believed above .9, and the share of these beliefs that is
    right."""
    history, seats = told
    found = []
    for number in waves:
        spread = believe(history.until(number)).spread(None if seats is None else ~seats.decoy)
        found.append((spread.above[-1], spread.right))
    return found


def panel_resilience(
    told: Told, waves: Sequence[int], *, known: Sequence[float] = KNOWN, draws: int = 3, seed: int = 0
) -> dict[int, dict[float, Resilience]]:
    """What is believed of the others after each of these waves, by the share of people whose values are known."""
    history, seats = told
    return {
        number: resilience(
            history.until(number), None if seats is None else seats.until(number), known=known, draws=draws, seed=seed
        )
        for number in waves
    }


def run(waves: int = 15) -> str:
    """Both series, as Markdown, and the picture."""
    tables = women(waves)
    marks = [mark for mark in MARKS if mark <= waves]
    series: dict[str, Callable[[], Told]] = {
        "each wave on its own": lambda: naive(tables),
        "pods": lambda: in_series(policy("pods"), tables),
        "pods, lineage 4": lambda: in_series(policy("pods", protect={"lineage": 4}, decoys=0.3), tables),
    }
    rows, known, curves = [], [], []
    for title, make in series.items():
        told = make()
        beliefs = above(told, range(1, waves + 1))
        curves.append(Curve(title, [100 * share for share, _ in beliefs]))
        right = beliefs[-1][1]
        shares = [_percent(beliefs[mark - 1][0]) for mark in marks]
        rows.append([title, *shares, "" if right is None else f"{100 * right:.4g} %"])
        print(*rows[-1], sep=" | ", flush=True)
        for mark, found in panel_resilience(told, [mark for mark in marks if mark >= 4]).items():
            known.append([title, mark, *_carried(found)])
            print(*known[-1], sep=" | ", flush=True)
    PICTURE.parent.mkdir(exist_ok=True)
    title = "Women whose first occupation a reader is more than 90 % sure of"
    below = "who knows in which class of every release they are, and nobody's occupation (nlswork, k 5, confidence 1/2)"
    PICTURE.write_text(draw(curves, title=title, below=below), encoding="utf-8")
    heads = ["series", *(f"after {mark}" for mark in marks), f"right after {waves}"]
    more = ["series", "waves", *(f"{100 * share:g} % known" for share in KNOWN), "5 % and all pods known",
            "20 % and all pods known"]  # fmt: skip
    return (
        f"Women believed above .9, no value known:\n\n{table(heads, rows)}\n"
        f"The others believed above .9 when some values are known:\n\n{table(more, known)}"
    )


def _carried(found: dict[float, Resilience]) -> list[str]:
    by_belief = [_percent(one.belief.above[-1]) for one in found.values()]
    told = [one.lineage for share, one in found.items() if share]
    return [*by_belief, *("" if one is None else _percent(one.above[-1]) for one in told)]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waves", type=int, default=15)
    print(run(parser.parse_args().waves))
