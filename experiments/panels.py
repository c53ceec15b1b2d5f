"""Real panels with values that stay: people join, leave and return every wave, and whole rows are judged.

nlswork: yearly waves of a panel of women; protected is everybody's first occupation, published beside her first
industry, which stays and so links her rows, and whether she is married, which changes. desynpuf: Medicare beneficiaries
over three years; protected is the first chronic condition of their first year, beside their first state, and how many
conditions they have now. Every method publishes the same waves through a ledger. Then four things are checked: nobody's
row is marked by an empty cell, of newcomers, returners and leavers all move or nobody does, the audit holds, and a
linear program written here from the definition, over the tuples that rows show, finds a world in which nobody is tied
to a value beyond the promise.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from benchmarks.adult import DATA
from benchmarks.figures import DataMissing
from benchmarks.timing import seconds
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import sequester as sq
from experiments.tables import table
from sequester.errors import GuaranteeError
from sequester.ledger import Key
from sequester.publish.plan import Plan

# The last one has no memory: it shows that what is checked can fail.
METHODS = ("mondrian", "cluster", "full-domain", "specialize", "grow", "merge", "static")
CONFIDENCE = 0.6
Waves = list[tuple[str, pa.Table]]
Tuple = tuple[int, ...]


@dataclass
class Rows:
    """What a series has published, as the definition wants it: everybody's class in every release, and her tuple.

    ordinary  codes of values that may be as frequent as they are
    """

    ordinary: frozenset[int] = frozenset()
    waves: int = 0
    classes: dict[int, list[int]] = field(default_factory=dict)
    tuples: dict[int, Tuple] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    last: set[str] = field(default_factory=set)

    def add(self, plan: Plan, snapshot: pa.Table) -> bool:
        """One more release; returns whether of newcomers, returners and leavers all moved, or nobody of a kind did."""
        made = plan.candidate
        assert made is not None
        assert made.records.person is not None
        (domain,) = made.records.sensitive_domains
        self.ordinary = frozenset(code for code, name in enumerate(domain.names[0]) if name == "none")
        ever, people = set(self.names.values()), made.past.person.tolist()
        ids = zip(people, made.records.person.to_pylist(), strict=True)
        self.names |= {number: str(name) for number, name in ids if name is not None}
        here, there = {self.names[number] for number in people}, {str(name) for name in snapshot["id"].to_pylist()}
        kinds = (there - ever, (there & ever) - self.last, self.last - there)
        moved = all(kind <= here or not kind & here for kind in kinds)
        self.last = here
        cells = np.vstack([made.records.sensitive, made.records.plain[:1]]).T.tolist()
        for person, place, row in zip(made.past.person.tolist(), made.classes.member.tolist(), cells, strict=True):
            path = self.classes.setdefault(person, [])
            path += [-1] * (self.waves - len(path)) + [place]
            if self.tuples.setdefault(person, tuple(row)) != tuple(row):
                raise AssertionError("a cell that stays has changed")
        self.waves += 1
        return moved

    def is_deniable(self, bound: float) -> bool:
        """Whether some world, in the mean, ties nobody to a first cell beyond the bound; `ordinary` ones have none.

        x[t, s] people of trajectory t have tuple s: classes show their tuples, and of a trajectory no value has more
        than its share. Components of trajectories that share no class are apart, and those in which the truth itself
        is such a world need no program.
        """
        paths = defaultdict(list)
        for person, path in self.classes.items():
            paths[(*path, *[-1] * (self.waves - len(path)))].append(person)
        trajectories = list(paths.items())
        places = [[(wave, at) for wave, at in enumerate(path) if at >= 0] for path, _ in trajectories]
        names = {place: number for number, place in enumerate({one for part in places for one in part})}
        ends = [(number, names[place]) for number, part in enumerate(places) for place in part]
        start, end = np.array(ends).T
        size = len(trajectories) + len(names)
        graph = coo_array((np.ones(len(ends)), (start, end + len(trajectories))), shape=(size, size))
        component = connected_components(graph, directed=False)[1]
        members = defaultdict(list)
        for number, (_, people) in enumerate(trajectories):
            members[component[number]].append((places[number], people))
        return all(self._has_world(part, bound) for part in members.values() if self._is_open(part, bound))

    def _is_open(self, part: Sequence[tuple[list[tuple[int, int]], list[int]]], bound: float) -> bool:
        """Whether the truth ties somebody to a value too surely."""
        for _, people in part:
            counts = Counter(self.tuples[person][0] for person in people)
            if any(count > bound * len(people) for code, count in counts.items() if code not in self.ordinary):
                return True
        return False

    def _has_world(self, part: Sequence[tuple[list[tuple[int, int]], list[int]]], bound: float) -> bool:
        shown: dict[tuple[int, int], dict[Tuple, int]] = defaultdict(lambda: defaultdict(int))
        for places, people in part:
            for place in places:
                for person in people:
                    shown[place][self.tuples[person]] += 1
        equal: dict[Any, list[int]] = defaultdict(list)
        most: dict[Any, list[int]] = defaultdict(list)
        variables = 0
        for number, (places, _) in enumerate(part):
            for one in set.intersection(*(set(shown[place]) for place in places)):
                equal[number].append(variables)
                if one[0] not in self.ordinary:
                    most[number, one[0]].append(variables)
                for place in places:
                    equal[place, one].append(variables)
                variables += 1
        wanted = {number: len(people) for number, (_, people) in enumerate(part)}
        wanted |= {(place, one): count for place, counts in shown.items() for one, count in counts.items()}  # type: ignore[misc]
        caps = [bound * len(part[number][1]) for number, _ in most]
        solved = linprog(
            np.zeros(variables),
            A_ub=_matrix(most.values(), variables),
            b_ub=caps,
            A_eq=_matrix(equal.values(), variables),
            b_eq=[wanted[key] for key in equal],
        )
        return bool(solved.status == 0)


def _matrix(rows: Any, variables: int) -> Any:
    cells = [(number, variable) for number, row in enumerate(rows) for variable in row]
    across, down = np.array(cells).T
    return coo_array((np.ones(len(cells)), (across, down)), shape=(int(across.max()) + 1, variables)).tocsr()


def is_marked(plan: Plan) -> bool:
    """Whether an insensitive cell is empty; no cell of these tables is."""
    made = plan.candidate
    assert made is not None
    return any(made.table[name].null_count for name in made.records.plain_names)


def published(policy: sq.Policy, waves: Waves) -> tuple[list[object], list[str]]:
    """A series of these waves: what it lost and did wave by wave, and what was checked."""
    losses, waiting, kept, times, marked, split = [], [], [], [], 0, 0
    rows, holds = Rows(), True
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "panel.ledger", policy, key=Key.of_text("the key of an experiment"))
        for number, (name, snapshot) in enumerate(waves):
            try:
                made, plan = seconds(lambda: series.plan(snapshot, name=name, seed=2**63 + number))  # noqa: B023
            except GuaranteeError:
                losses.append("refused")
                continue
            series.publish(plan, i_know_this_leaks=policy.method.name == "static")
            split += not rows.add(plan, snapshot)
            losses.append(f"{plan.loss['release']['ail']:.2f}")
            waiting.append(plan.waiting.held)
            kept.append(plan.waiting.retained)
            times.append(made)
            marked += is_marked(plan)
        if rows.waves:
            holds = series.audit().holds
    world = rows.is_deniable(CONFIDENCE) if rows.waves else True
    checks = [str(marked), str(split), "holds" if holds else "BROKEN", "a world" if world else "NO WORLD"]
    done = [" ".join(losses), " ".join(map(str, waiting)), " ".join(map(str, kept)), f"{sum(times):.1f} s"]
    return list(done), checks


def policy_of(attributes: dict[str, Any], method: str) -> sq.Policy:
    """Against insiders, k 5."""
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "panel",
            "person": "id",
            "attributes": attributes,
            "protect": {"k": 5, "confidence": CONFIDENCE},
            "method": {"name": method},
        }
    )


def nlswork(people: int, waves: int) -> tuple[dict[str, Any], Waves]:
    """Attributes and waves of the panel of women."""
    whole = _read(DATA.parent / "nlswork" / "nlswork.csv.gz")
    names = ["idcode", "year", "birth_yr", "race", "grade", "msp", "occ_code", "ind_code"]
    whole = _some(
        whole.select(names).drop_null().sort_by([("idcode", "ascending"), ("year", "ascending")]), "idcode", people
    )
    first = _first(whole, "idcode", ["birth_yr", "race", "grade", "occ_code", "ind_code"])
    number = {"role": "quasi-identifier", "kind": "number"}
    attributes = {
        "birth": {**number, "range": [40, 55]},
        "grade": {**number, "range": [0, 18]},
        "race": {"role": "quasi-identifier"},
        "occupation": {"role": "sensitive"},
        "industry": {"role": "insensitive"},
        "married": {"role": "insensitive", "changes": True},
    }
    found: Waves = []
    for year in sorted(pc.unique(whole["year"]).to_pylist())[:waves]:
        wave = whole.filter(pc.equal(whole["year"], year))
        own = [first[person] for person in wave["idcode"].to_pylist()]
        columns = {
            "id": wave["idcode"],
            "birth": [row["birth_yr"] for row in own],
            "grade": [row["grade"] for row in own],
            "race": [f"race {row['race']}" for row in own],
            "occupation": [f"occupation {row['occ_code']:g}" for row in own],
            "industry": [f"industry {row['ind_code']:g}" for row in own],
            "married": pc.cast(wave["msp"], pa.string()),
        }
        found.append((f"19{year}", pa.table(columns)))
    return attributes, found


def desynpuf(people: int, waves: int) -> tuple[dict[str, Any], Waves]:
    """Attributes and waves of the beneficiaries."""
    folder = DATA.parent / "desynpuf"
    years = [_read(folder / f"beneficiary_{year}.csv.gz") for year in (2008, 2009, 2010)[:waves]]
    conditions = [name for name in years[0].column_names if name.startswith("SP_") and name != "SP_STATE_CODE"]
    whole = pa.concat_tables(
        [year.append_column("year", pa.array([number] * len(year))) for number, year in enumerate(years)],
        promote_options="permissive",
    )
    whole = _some(whole, "DESYNPUF_ID", people)
    ill = np.array([pc.equal(whole[name], 1).to_numpy() for name in conditions])
    main = np.where(ill.any(axis=0), ill.argmax(axis=0), len(conditions))
    whole = whole.append_column("main", pa.array([[*conditions, "none"][place] for place in main.tolist()]))
    whole = whole.append_column("count", pa.array([f"{count} conditions" for count in ill.sum(axis=0).tolist()]))
    names = ["BENE_BIRTH_DT", "BENE_SEX_IDENT_CD", "BENE_RACE_CD", "BENE_COUNTY_CD", "main", "SP_STATE_CODE"]
    first = _first(whole, "DESYNPUF_ID", names)
    attributes = {
        "born": {"role": "quasi-identifier", "kind": "number", "range": [1900, 1990]},
        "sex": {"role": "quasi-identifier"},
        "race": {"role": "quasi-identifier"},
        "county": {"role": "quasi-identifier", "kind": "number", "range": [0, 999]},
        "condition": {"role": "sensitive", "ordinary": ["none"]},
        "state": {"role": "insensitive"},
        "count": {"role": "insensitive", "changes": True},
    }
    found: Waves = []
    for number in range(len(years)):
        wave = whole.filter(pc.equal(whole["year"], number))
        own = [first[person] for person in wave["DESYNPUF_ID"].to_pylist()]
        columns = {
            "id": wave["DESYNPUF_ID"],
            "born": [row["BENE_BIRTH_DT"] // 10_000 for row in own],
            "sex": [f"sex {row['BENE_SEX_IDENT_CD']}" for row in own],
            "race": [f"race {row['BENE_RACE_CD']}" for row in own],
            "county": [row["BENE_COUNTY_CD"] for row in own],
            "condition": [row["main"] for row in own],
            "state": [f"state {row['SP_STATE_CODE']}" for row in own],
            "count": wave["count"],
        }
        found.append((str(2008 + number), pa.table(columns)))
    return attributes, found


def _read(file: Path) -> pa.Table:
    if not file.exists():
        raise DataMissing(f"{file} is not there; see the README of the data folder")
    with gzip.open(file) as stream:
        return csv.read_csv(stream)


def _some(whole: pa.Table, person: str, people: int) -> pa.Table:
    """The rows of so many people, drawn at random."""
    everybody = pc.unique(whole[person])
    drawn = np.random.default_rng(1968).permutation(len(everybody))[:people]
    return whole.filter(pc.is_in(whole[person], value_set=everybody.take(pa.array(drawn))))


def _first(whole: pa.Table, person: str, names: list[str]) -> dict[Any, dict[str, Any]]:
    """Everybody's first row."""
    found: dict[Any, dict[str, Any]] = {}
    for row in whole.select([person, *names]).to_pylist():
        found.setdefault(row[person], row)
    return found


def run(people: int = 1500, waves: int = 15) -> str:
    """Both panels by every method, as Markdown; all of it takes about seven minutes."""
    heads = ["method", "AIL by wave", "newcomers who wait", "leavers published on", "time", "waves with marked rows",
             "waves that split a kind of people", "audit", "program over tuples"]  # fmt: skip
    return "\n".join(f"## {title}\n\n{table(heads, rows)}" for title, rows in _panels(people, waves))


def _panels(people: int, waves: int) -> Iterator[tuple[str, list[list[object]]]]:
    for name, panel in (("nlswork", nlswork), ("desynpuf", desynpuf)):
        attributes, tables = panel(people, waves)
        sizes = ", ".join(str(len(wave)) for _, wave in tables)
        rows = []
        for method in METHODS:
            done, checks = published(policy_of(attributes, method), tables)
            rows.append([method, *done, *checks])
            print(name, *rows[-1], sep=" | ", flush=True)
        yield f"{name}: {people} people, waves of {sizes}", rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1500)
    parser.add_argument("--waves", type=int, default=15)
    given = parser.parse_args()
    print(run(given.people, given.waves))
