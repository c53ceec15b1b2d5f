"""Every kind of page, made from invented people; and one in which every name is an attempt to run something."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

import sequester as sq
from sequester.datasets import hospital_panel, hospital_panel_policy
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")
SEED = 1 << 63
# Pages of releases, of audits, and notebooks with everything that has a view.
PLAIN = ("first", "third", "internal", "audit", "audit-public", "audit-holds", "notebook")
HOSTILE = ("hostile", "hostile-internal", "hostile-audit", "hostile-notebook")
NAMES = (*PLAIN, *HOSTILE)

# What JupyterLab's dark theme does to everything in a cell, whatever the system prefers.
JUPYTER = """
body { background: #111; color: #fff }
.jp-RenderedHTMLCommon { color: rgba(255, 255, 255, 1); font-size: 14px; line-height: 1.6 }
.jp-RenderedHTMLCommon h3 { line-height: 1; margin: 1em 0 .5em; font-weight: 500 }
.jp-RenderedHTMLCommon table { border-collapse: collapse; border: none; table-layout: fixed; margin: 0 auto 1em }
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th { text-align: right; vertical-align: middle; padding: .5em }
.jp-RenderedHTMLCommon thead { border-bottom: 1px solid #616161 }
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: #111 }
.jp-RenderedHTMLCommon tbody tr:nth-child(even) { background: #212121 }
.jp-RenderedHTMLCommon tbody tr:hover { background: #303f9f }
.jp-RenderedHTMLCommon ul:not(.list-inline) { padding-left: 2em }
.jp-RenderedHTMLCommon p { margin: 0 0 1em }
"""
ATTEMPTS = (
    "<script>alert('script')</script>",
    "\"><img src=missing.png onerror=alert('attribute')>",
    "</title></style></svg><svg onload=alert('svg')>",
    "'-alert('quoted')-'",
    "{{constructor.constructor('alert(1)')()}}",
)


def made(folder: Path) -> dict[str, Path]:
    """Pages by the names above."""
    panel = sq.Policy.model_validate(yaml.safe_load(hospital_panel_policy()))
    tables = hospital_panel(400, releases=3, seed=5)
    safe = _published(folder / "safe", panel, tables)
    leaky = _published(folder / "leaky", _naive(), tables)
    hostile = _published(folder / "hostile", *_hostile(), recipient=ATTEMPTS[0], purpose=ATTEMPTS[1])
    audits = {name: one.series.audit(belief=True) for name, one in (("leaky", leaky), ("hostile", hostile))}
    texts = {
        "internal": leaky.series.report(3, audience="internal", tables=tables),
        "hostile-internal": hostile.series.report(2, audience="internal", tables=hostile.tables),
        "audit": audits["leaky"].report(),
        "audit-public": audits["leaky"].report(audience="public"),
        "audit-holds": safe.series.audit().report(),
        "notebook": notebook(*_everything(safe), audits["leaky"], audits["leaky"].findings[0]),
        "hostile-audit": audits["hostile"].report(),
        "hostile-notebook": notebook(*_everything(hostile), audits["hostile"], audits["hostile"].findings[0]),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {
        "first": safe.releases[0].folder / "report.html",
        "third": safe.releases[2].folder / "report.html",
        "hostile": hostile.releases[-1].folder / "report.html",
        **{name: folder / f"{name}.html" for name in texts},
    }


def notebook(*things: Any) -> str:
    """Cells of a notebook, one below the other, in a page that is not ours."""
    cells = "".join(
        f'<h2>Cell {number}</h2><div class="jp-RenderedHTMLCommon">{thing._repr_html_()}</div>'
        for number, thing in enumerate(things, start=1)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A notebook</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{JUPYTER}</style></head>'
        f"<body><main><h1>A notebook</h1>{cells}</main></body></html>"
    )


@dataclass(frozen=True)
class Made:
    """A series, its last plan, and what it published."""

    series: sq.Series
    plan: sq.Plan
    tables: list[pa.Table]
    releases: list[sq.Release]


def _published(folder: Path, policy: sq.Policy, tables: list[pa.Table], **to: Any) -> Made:
    folder.mkdir()
    series = sq.Series.open(folder / "series.ledger", policy, key=KEY)
    releases = []
    for year, table in enumerate(tables, start=1):
        plan = series.plan(table, name=f"year-{year}", seed=SEED + year, **to)
        releases.append(series.publish(plan, i_know_this_leaks=True))
    return Made(series, plan, tables, releases)


def _everything(one: Made) -> tuple[Any, ...]:
    return one.series.policy, one.series, one.plan, one.releases[-1], one.releases[-1].measurement


def _naive() -> sq.Policy:
    raw = yaml.safe_load(hospital_panel_policy())
    del raw["decoys"], raw["protect"]["inferred"]
    raw["protect"]["against"] = ["insider", "neighbor"]
    return sq.Policy.model_validate(raw | {"method": {"name": "static"}})


def _hostile() -> tuple[sq.Policy, list[pa.Table]]:
    """Columns and values are such attempts, and releases by a method that leaks, so that findings name them."""
    script, image, svg, quoted, braces = ATTEMPTS
    raw: dict[str, Any] = {
        "version": 1,
        "series": "hostile",
        "person": "id",
        "attributes": {
            script: {"role": "quasi-identifier", "kind": "number", "range": [0, 59]},
            image: {"role": "quasi-identifier", "hierarchy": {svg: [f"{svg}{n}" for n in range(4)]}},
            svg: {"role": "insensitive"},
            quoted: {"role": "sensitive", "ordinary": [f"{image}0"]},
        },
        "protect": {"k": 3, "confidence": 0.6},
        "method": {"name": "static"},
    }
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "id": [f"p{n}" for n in range(120)],
            script: draw.integers(0, 60, 120),
            image: [f"{svg}{n}" for n in draw.integers(0, 4, 120)],
            svg: [braces] * 120,
            quoted: [f"{image}{n}" for n in draw.integers(0, 4, 120)],
        }
    )
    return sq.Policy.model_validate(raw), [table.slice(0, 80), table]
