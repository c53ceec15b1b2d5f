"""The lifetime guarantee on real churn: whole series from tables through the ledger, every wave audited.

nlswork: 15 yearly waves of a panel of women, whose occupation changes; protected are occupations that fewer than one in
forty have in every wave. desynpuf: 180,000 Medicare beneficiaries over three years with sets of chronic conditions;
protected are those that fewer than one in six have. What a larger part of a table has at any time cannot be promised to
be linked with at most one half over all releases: its share alone spends that.
"""

from __future__ import annotations

import gzip
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from benchmarks.adult import DATA
from benchmarks.figures import DataMissing
from benchmarks.timing import seconds

import sequester as sq
from experiments.tables import table
from sequester.ledger import Key

_CONDITIONS = {
    "SP_ALZHDMTA": "dementia", "SP_CHF": "heart failure", "SP_CHRNKIDN": "kidney disease", "SP_CNCR": "cancer",
    "SP_COPD": "lung disease", "SP_DEPRESSN": "depression", "SP_DIABETES": "diabetes",
    "SP_ISCHMCHT": "ischemic heart disease", "SP_OSTEOPRS": "osteoporosis", "SP_RA_OA": "arthritis",
    "SP_STRKETIA": "stroke",
}  # fmt: skip


def run() -> str:
    """Both series, as Markdown."""
    parts = []
    for title, series in (("nlswork, 15 waves", _nlswork), ("desynpuf, 3 years", _desynpuf)):
        try:
            policy, tables = series()
        except DataMissing as missing:
            parts.append(f"## {title}\n\nskipped. {missing}\n")
            continue
        parts.append(f"## {title}\n\n{_published(policy, tables)}")
    return "\n".join(parts)


def _published(policy: sq.Policy, tables: Iterator[tuple[str, pa.Table]]) -> str:
    rows: list[list[object]] = []
    protected = ""
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "series.ledger", policy, key=Key.of_text("the key of an experiment"))
        for name, snapshot in tables:
            made, plan = seconds(lambda: series.plan(snapshot, name=name, seed=2**63 + len(rows)))  # noqa: B023 - called at once
            series.publish(plan)
            judged, found = seconds(series.audit)
            if not found.holds:
                raise AssertionError(f"{name} breaks the promise")
            named = {
                value
                for history in found.histories
                for value, bound in zip(history.values, history.bounds, strict=True)
                if bound < 1
            }
            protected = ", ".join(sorted(named))
            waiting, change, loss = plan.waiting, plan.change, plan.loss
            alone = loss.get("static", loss["release"])["ail"]
            rows.append(
                [name, plan.records, change.newcomers + change.returned, change.leavers, plan.classes, waiting.left_out,
                 round(loss["release"]["ail"], 3), round(alone, 3),
                 f"{found.measures['breach']:.3f}", f"{made:.1f} s", f"{judged:.1f} s"]
            )  # fmt: skip
    heads = ["", "records", "came", "left", "classes", "left out", "AIL", "AIL without a memory",
             "largest chance", "made", "audited"]  # fmt: skip
    return f"Protected: {protected}. Promised: at most {1 / policy.protect.lifetime.l:g}.\n\n{table(heads, rows)}"  # type: ignore[union-attr]


def _read(file: Path) -> pa.Table:
    with gzip.open(file) as stream:
        return csv.read_csv(stream)


def _policy(attributes: dict[str, Any], *, k: int, lifetime: dict[str, Any]) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "churn",
            "person": "id",
            "attributes": attributes,
            "protect": {"k": k, "lifetime": lifetime, "against": ["lifetime"]},
            "method": {"name": "group"},
            "infeasible": "suppress",
        }
    )


def _nlswork() -> tuple[sq.Policy, Iterator[tuple[str, pa.Table]]]:
    file = DATA.parent / "nlswork" / "nlswork.csv.gz"
    if not file.exists():
        raise DataMissing(f"{file} is not there; see the README of the data folder")
    whole = _read(file)
    names = ["idcode", "year", "birth_yr", "race", "grade", "msp", "south", "c_city", "occ_code"]
    whole = whole.select(names).drop_null()
    years = sorted(whole["year"].unique().to_pylist())
    waves = {year: whole.filter(pc.equal(whole["year"], year)) for year in years}
    often: Counter[str] = Counter()
    for wave in waves.values():
        for value, count in Counter(wave["occ_code"].to_pylist()).items():
            often[f"occupation {value:g}"] = max(often[f"occupation {value:g}"], count / wave.num_rows)  # type: ignore[assignment]
    changing = {"role": "quasi-identifier", "kind": "number", "changes": True}
    policy = _policy(
        {
            "birth": {"role": "quasi-identifier", "kind": "number", "range": [40, 55]},
            "race": {"role": "quasi-identifier", "changes": True},
            "grade": {**changing, "range": [0, 18]},
            **{name: {"role": "quasi-identifier", "changes": True} for name in ("married", "south", "city")},
            "occupation": {
                "role": "sensitive",
                "values": "transient",
                "ordinary": [name for name, share in often.items() if share >= 1 / 40],
            },
        },
        k=5,
        lifetime={"l": 2.0, "releases": 15},
    )  # fmt: skip

    def tables() -> Iterator[tuple[str, pa.Table]]:
        for year, wave in waves.items():
            text = {name: pc.cast(wave[name], pa.string()) for name in ("race", "msp", "south", "c_city")}
            yield (
                f"19{year}",
                pa.table(
                    {
                        "id": wave["idcode"], "birth": wave["birth_yr"], "race": text["race"], "grade": wave["grade"],
                        "married": text["msp"], "south": text["south"], "city": text["c_city"],
                        "occupation": [f"occupation {value:g}" for value in wave["occ_code"].to_pylist()],
                    }
                ),
            )  # fmt: skip

    return policy, tables()


def _desynpuf() -> tuple[sq.Policy, Iterator[tuple[str, pa.Table]]]:
    folder = DATA.parent / "desynpuf"
    if not folder.is_dir():
        raise DataMissing(f"{folder} is not there; see the README of the data folder")
    years = {year: _read(folder / f"beneficiary_{year}.csv.gz") for year in (2008, 2009, 2010)}
    share = {
        name: max(pc.mean(pc.equal(whole[column], 1)).as_py() for whole in years.values())
        for column, name in _CONDITIONS.items()
    }
    common = ["none", *(name for name, part in share.items() if part >= 1 / 6)]
    policy = _policy(
        {
            "born": {"role": "quasi-identifier", "kind": "date", "format": "%Y%m%d"},
            **{name: {"role": "quasi-identifier", "changes": True} for name in ("sex", "race", "state")},
            "county": {"role": "quasi-identifier", "kind": "number", "changes": True},
            "conditions": {"role": "sensitive", "kind": "set", "values": "transient", "ordinary": common},
        },
        k=5,
        lifetime={"l": 2.0, "releases": 3},
    )  # fmt: skip

    def tables() -> Iterator[tuple[str, pa.Table]]:
        for year, whole in years.items():
            parts = [pc.if_else(pc.equal(whole[column], 1), f"{name};", "") for column, name in _CONDITIONS.items()]
            cells = pc.binary_join_element_wise(*parts, "")
            yield (
                str(year),
                pa.table(
                    {
                        "id": whole["DESYNPUF_ID"],
                        "born": pc.cast(whole["BENE_BIRTH_DT"], pa.string()),
                        "sex": pc.cast(whole["BENE_SEX_IDENT_CD"], pa.string()),
                        "race": pc.cast(whole["BENE_RACE_CD"], pa.string()),
                        "state": pc.cast(whole["SP_STATE_CODE"], pa.string()),
                        "county": whole["BENE_COUNTY_CD"],
                        "conditions": pc.if_else(pc.equal(cells, ""), "none", cells),
                    }
                ),
            )

    return policy, tables()
