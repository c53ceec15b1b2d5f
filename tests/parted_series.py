"""Random series whose parts are towns, and what must hold of them beside the same series made whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import sequester as sq
from parted import KEY, SEED, begin, people, policy
from sequester.errors import GuaranteeError
from sequester.ledger import Ledger
from sequester.ledger.part_ledger import Parts
from sequester.ledger.parts import is_parted

AGES = {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True}
TOWNS = ("Bonn", "Jena", "Halle", "Koeln", "Trier")
COUNT, PART = 150, 24


@dataclass(frozen=True)
class Churn:
    """A method, and for every later release what becomes of every town."""

    method: str
    seed: int
    fates: tuple[tuple[str, ...], ...]

    def tables(self) -> list[pa.Table]:
        """The tables: people of a town all leave, stay as they are, all come, or a fifth of them comes and goes."""
        draw = np.random.default_rng(self.seed)
        everybody = people(COUNT, seed=self.seed)
        city = everybody["city"].to_numpy(zero_copy_only=False)
        here = draw.random(COUNT) < 0.9
        told = [everybody.filter(pa.array(here))]
        for fates in self.fates:
            before, here = here, np.zeros(COUNT, np.bool_)
            for town, fate in zip(TOWNS, fates, strict=True):
                moved = {"closed": before & False, "same": before, "open": before | True}
                here |= (city == town) & moved.get(fate, before ^ (draw.random(COUNT) < 0.2))
            table = everybody.filter(pa.array(here))
            told.append(table.set_column(3, "income", pa.array(draw.integers(0, 50, table.num_rows))))
        return told


_FATE = st.sampled_from(["same", "closed", "open", "churn"])
# One town is never without people: a table has rows.
_WAVE = st.tuples(st.just("same"), _FATE, _FATE, _FATE, _FATE)
CHURN = st.builds(
    Churn,
    st.sampled_from(["pods", "mondrian", "merge", "grow", "cluster"]),
    st.integers(0, 99),
    st.lists(_WAVE, min_size=2, max_size=4).map(tuple),
)


def check_as_whole(folder: Path, churn: Churn, **engine: Any) -> None:
    """Both series are published to the end, by pods of the same people; the audit that knows of no parts finds nothing.

    By other methods people wait, in parts for other company than in the whole: nobody is lost all the same.
    """
    published = {}
    for name, part in (("parts", PART), ("whole", 10**6)):
        more = engine if name == "parts" else {}
        chosen = policy(churn.method, part=part, engine=more, attributes={"age": AGES})
        series = begin(folder / name, chosen)
        for number, table in enumerate(churn.tables(), 1):
            try:
                release = series.publish(table, name=f"w{number}", seed=SEED + number, everybody_is_new=True)
            except GuaranteeError:
                # That a whole table is refused is another matter; of parts none is the reason.
                assert name == "whole"
                continue
            summary = series.releases()[-1].summary
            waiting = summary["waiting"]
            assert summary["people"] == table.num_rows - waiting["held"] - waiting["left_out"] + waiting["retained"]
            if churn.method == "pods":
                assert (waiting["held"], waiting["retained"]) == (0, 0)
                assert release.measurement.holds
        with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
            assert is_parted(ledger.releases()) == (name == "parts")
            assert ledger.verify(releases=series.folder).holds
            if name == "parts":
                views, paths = published_rows(ledger)
                assert series.audit().holds
                assert sq.audit(views, chosen).holds
                published[name] = paths
            else:
                state = ledger.load()
                published[name] = _paths(ledger.everybody(), state.path[state.trajectory] >= 0, state.decoy)
    if churn.method == "pods":
        assert published["parts"] == published["whole"]


def published_rows(ledger: Ledger) -> tuple[list[pa.Table], dict[bytes, tuple[bool, ...]]]:
    """Every release with who each row is about, of all parts together; and who was in which releases."""
    parts = Parts.of(ledger)
    tables: list[list[pa.Table]] = [[] for _ in parts.entries]
    paths: dict[bytes, tuple[bool, ...]] = {}
    for number in range(len(parts.lists[-1].cards)):
        part = parts.open(number)
        state = part.load()
        paths |= _paths(part.everybody(), state.path[state.trajectory] >= 0, state.decoy)
        for release, memory in enumerate(state.releases):
            member = state.path[state.trajectory, release]
            here = np.flatnonzero(member >= 0)
            columns: dict[str, Any] = {"id": [f"{number}-{person}" for person in here]}
            for place, name in enumerate(state.quasi):
                lo, hi, leaves = memory.lo[place][member[here]], memory.hi[place][member[here]], memory.domains[name]
                if name == "city":
                    names = leaves.names[0]
                    columns[name] = ["{" + ", ".join(names[a : b + 1]) + "}" for a, b in zip(lo, hi, strict=True)]
                else:
                    columns |= {f"{name}_min": leaves.values[lo], f"{name}_max": leaves.values[hi]}
            columns["illness"] = np.array(state.domains["illness"].names[0])[state.values[0][here]]
            if len(here):
                tables[release].append(pa.table(columns))
    draw = np.random.default_rng(5)
    return [one.take(pa.array(draw.permutation(one.num_rows))) for one in map(pa.concat_tables, tables)], paths


def _paths(hashes: pa.Array, here: np.ndarray, decoy: np.ndarray) -> dict[bytes, tuple[bool, ...]]:
    rows = zip(hashes.to_pylist(), here.tolist(), decoy.tolist(), strict=True)
    return {who: tuple(path) for who, path, nobody in rows if not nobody}
