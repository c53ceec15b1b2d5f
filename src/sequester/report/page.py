"""The public report of one release: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dde5; --good: #1a7f4b; --bad: #b3261e;
  --page: #ffffff; --card: #f5f7fa; --bar: #3f6fb5; --bar2: #9db7dd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa5b4; --line: #333c48; --good: #58c48b;
  --bad: #ff8a80; --page: #14181e; --card: #1c222a; --bar: #7ba6e8; --bar2: #3b5478; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 56rem;
  margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.lead { color: var(--soft); margin-top: 0; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .35rem .8rem .35rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; } th { color: var(--soft); font-weight: 500; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.kept { color: var(--good); } .broken { color: var(--bad); font-weight: 600; }
.cards { display: flex; flex-wrap: wrap; gap: .75rem; } .card { background: var(--card); border-radius: .5rem;
  padding: .7rem 1rem; min-width: 8rem; } .card b { display: block; font-size: 1.35rem; }
.card span, footer { color: var(--soft); font-size: .85rem; } footer { margin-top: 3rem; }
.bar { fill: var(--bar); } .bar.other { fill: var(--bar2); } svg text { fill: var(--ink); font-size: 13px; }
"""

_NAMES = {"release": "this release", "static": "without a memory (unsafe)", "merge": "merge (Byun et al.)"}
_ATTACKS = {
    "k": "People with the same published row",
    "confidence": "Share of one sensitive value in a class",
    "diversity": "Different sensitive values in a class",
    "closeness": "Distance of a class from the table",
    "forward": "Rows left to an earlier target (forward)",
    "cross": "Rows left to an earlier target (cross)",
    "backward": "Rows left to a newcomer (backward)",
    "intersection": "Confidence from intersecting releases",
    "difference": "People left by subtracting releases",
    "tracing": "People who can own a traced row",
    "deniability": "Confidence no belief can avoid",
    "breach": "Chance of ever being linked to a value",
    "row-order": "Agreement of row orders beyond chance",
    "complementary": "People linked by other releases",
}

_WAITING = {
    "held": "people who came and are not published yet: they are too few, or too much alike, to be hidden",
    "retained": "people who left and are published on: their going could not be hidden",
    "left_out": "records that are left out",
}

_PERSONAL = {
    "withheld": "records without consent, which are not published",
    "withdrawn": "people of the last release who withdrew their consent",
    "waiting": "of them published on until enough others leave, so that their going does not show",
    "graded": "sensitive values published as a more general one",
    "raised": "of them because the person wants it",
    "late": "people who want it only now: what was published before stays as it was",
}


def release_page(facts: Mapping[str, Any]) -> str:
    """The page of a release, from what its `release.json` says."""
    number = facts.get("number")
    title = f"{facts['series']}, release {number}: {facts['name']}" if number else str(facts["series"])
    waiting = facts.get("waiting") or {}
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">Anonymized by Sequester {escape(str(facts["sequester"]))}, method '
        f"{escape(str(facts['method']['name']))}. Checked together with everything published before.</p>",
        _cards(facts),
        "<h2>What is promised</h2>",
        _table(
            ("promise", "required", "reached", ""),
            [(p["promise"], p["required"], p["observed"], _mark(p["holds"])) for p in facts["promises"]],
        ),
    ]
    if facts.get("checks"):
        parts += [
            "<h2>What an adversary with all releases can do</h2>",
            _table(
                ("attack", "adversary", "required", "reached", ""),
                [
                    (_ATTACKS.get(c["attack"], c["attack"]), c["adversary"], c["required"], c["reached"],
                     _mark(c["holds"]))
                    for c in facts["checks"]
                ],
            ),
        ]  # fmt: skip
    parts += ["<h2>What it cost</h2>", _losses(facts)]
    if any(waiting.get(key) for key in _WAITING):
        parts += ["<h2>Who waits</h2>", _waiting(waiting)]
    personal = facts.get("personal", {})
    if any(personal.values()):
        rows = [(f"{personal[key]:,}", text) for key, text in _PERSONAL.items() if personal.get(key)]
        parts += ["<h2>What people allowed</h2>", _table(("", ""), rows)]
    if facts.get("gain"):
        parts += ["<h2>Privacy gained against detail lost</h2>", _gains(facts["gain"])]
    columns = _table(("column", "role"), [(column["name"], column["role"]) for column in facts["columns"]])
    parts += ["<h2>Columns</h2>", columns]
    digest = facts.get("digests", {}).get("data")
    if digest:
        parts.append(f"<footer>SHA-256 of the data: {escape(digest)}</footer>")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _cards(facts: Mapping[str, Any]) -> str:
    figures = [
        (f"{facts['records']:,}", "records"),
        (f"{facts['classes']:,}", "classes"),
        (_text(facts["k"]), "fewest people in a class"),
        (_text(facts["confidence"]), "largest confidence in one release"),
        (_text(facts["loss"]["ncp"]), "loss (NCP, 0 to 1)"),
    ]
    cards = (f'<div class="card"><b>{value}</b><span>{label}</span></div>' for value, label in figures if value)
    return f'<div class="cards">{"".join(cards)}</div>'


def _losses(facts: Mapping[str, Any]) -> str:
    price = facts.get("price") or {"release": facts["loss"]}
    rows = [(_NAMES.get(name, name), price[name]["ail"], place > 0) for place, name in enumerate(price)]
    picture = _bars(rows, max([value for _, value, _ in rows] + [1e-9]), "average information loss")
    metrics = ", ".join(f"{name} {_text(value)}" for name, value in facts["loss"].items())
    note = "Average information loss per record (AIL), summed over the quasi-identifiers; lower is better."
    return f'<p class="lead">{note}</p>{picture}<p class="lead">All measures: {escape(metrics)}.</p>'


def _gains(gain: Mapping[str, float]) -> str:
    """Two pairs of bars from 0 to 1 (Reddy et al.): what is hidden, and what is no longer said."""
    rows = [
        (f"{label}, {what}", gain[f"{key}_{what}"], what == "loss")
        for key, label in (("quasi", "quasi-identifiers"), ("sensitive", "sensitive values"))
        for what in ("gain", "loss")
        if f"{key}_{what}" in gain
    ]
    note = "Privacy gain and information loss, each from 0 (everything exact) to 1 (nothing said)."
    return f'<p class="lead">{note}</p>{_bars(rows, 1.0, "privacy gain and information loss")}'


def _bars(rows: Sequence[tuple[str, float, bool]], whole: float, label: str) -> str:
    """Named values as bars of a share of the whole; those marked in the second colour."""
    bars = []
    for place, (name, value, other) in enumerate(rows):
        width, top = max(2.0, 320 * value / whole), 28 * place
        bars.append(
            f'<text x="0" y="{top + 18}">{escape(name)}</text>'
            f'<rect class="bar{" other" if other else ""}" x="210" y="{top + 5}" height="18" rx="3" '
            f'width="{width:.1f}"/>'
            f'<text x="{218 + width:.1f}" y="{top + 18}">{value:.3f}</text>'
        )
    return (
        f'<svg viewBox="0 0 620 {28 * len(rows) + 4}" width="100%" style="max-width:40rem" role="img" '
        f'aria-label="{label}">{"".join(bars)}</svg>'
    )


def _waiting(waiting: Mapping[str, int]) -> str:
    rows = [(f"{waiting[key]:,}", text) for key, text in _WAITING.items() if waiting.get(key)]
    if waiting.get("oldest"):
        rows.append((f"{waiting['oldest']:,}", "releases the longest has waited"))
    return _table(("", ""), rows)


def _mark(holds: bool) -> str:
    return "kept" if holds else "broken"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    numbers = {"required", "reached"}
    top = "".join(f'<th class="{"n" if head in numbers else ""}">{escape(head)}</th>' for head in heads)
    body = "".join("<tr>" + "".join(map(_cell, heads, row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


def _cell(head: str, value: Any) -> str:
    if value in ("kept", "broken"):
        return f'<td class="{value}">{value}</td>'
    kind = ' class="n"' if head in ("required", "reached") else ""
    return f"<td{kind}>{escape(value if isinstance(value, str) else _text(value))}</td>"


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"
