"""The public report of one release: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dde5; --good: #1a7f4b; --bad: #b3261e;
  --page: #ffffff; --card: #f5f7fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa5b4; --line: #333c48; --good: #58c48b;
  --bad: #ff8a80; --page: #14181e; --card: #1c222a; } }
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
"""

_LOSSES = {
    "ail": "average information loss per record (AIL), summed over the quasi-identifiers",
    "ncp": "normalized certainty penalty (NCP), 0 to 1",
    "dm": "discernibility",
    "dm_normalized": "discernibility, 0 to 1",
    "class_size": "average class size",
    "precision": "precision, 1 is exact",
}
_LEAKS = (
    "This release was published although attacks work on it together with the releases before: what is marked broken "
    "below does not hold."
)


_DECOYS = (
    "Some rows are decoys: they are about nobody, and nobody can tell which. They stand in where people are missing, "
    "so that values hide each other and nobody has to wait. Every row counts as {weight} people on average; "
    "release.json has the weights of classes. What is counted above are rows."
)


def release_page(facts: Mapping[str, Any]) -> str:
    """The page of a release, from what its `release.json` says."""
    from sequester.attacks.registry import attack_of

    number = facts.get("number")
    title = f"{facts['series']}, release {number}: {facts['name']}" if number else str(facts["series"])
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">Anonymized by Sequester {escape(str(facts["sequester"]))}, method '
        f"{escape(str(facts['method']['name']))}.</p>",
    ]
    if not facts["holds"]:
        parts.append(f'<p class="broken">{_LEAKS}</p>')
    parts += [
        _cards(facts),
        "<h2>Promised of this release on its own</h2>",
        '<p class="lead">Against an outsider, who sees this release and knows a person\'s quasi-identifiers.</p>',
        _table(
            ("promise", "required", "reached", ""),
            [(p["promise"], p["required"], p["observed"], _mark(p["holds"])) for p in facts["promises"]],
        ),
    ]
    series = [check for check in facts.get("checks", ()) if check["about"] == "the series"]
    if series:
        parts += [
            "<h2>Promised of this and all earlier releases together</h2>",
            _table(
                ("attack", "adversary", "required", "reached", ""),
                [
                    (attack_of(c["attack"]).title, c["adversary"], c["required"], c["reached"],
                     _mark(c["holds"]))
                    for c in series
                ],
            ),
        ]  # fmt: skip
    if facts.get("untried"):
        rows = [(_listed(one["attacks"], one["on"]), one["why"]) for one in facts["untried"]]
        parts += ["<h2>Not tried, and so not promised</h2>", _table(("attack", "why"), rows)]
    if "weights" in facts:
        parts += ["<h2>Decoys</h2>", f"<p>{_DECOYS.format(weight=_text(facts['weights']['table']))}</p>"]
    parts += ["<h2>What it cost</h2>", _losses(facts)]
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
        (_text(facts["k"]), "fewest people in a class" if "weights" not in facts else "fewest rows in a class"),
        (_text(facts["confidence"]), "largest confidence in one release"),
        (_text(facts["loss"].get("ncp")), "loss (NCP, 0 to 1)"),
    ]
    cards = (f'<div class="card"><b>{value}</b><span>{label}</span></div>' for value, label in figures if value)
    return f'<div class="cards">{"".join(cards)}</div>'


def _losses(facts: Mapping[str, Any]) -> str:
    rows = [(_LOSSES.get(name, name), _text(value)) for name, value in facts["loss"].items()]
    note = "Measured on the published table alone, against the values that the policy and the table itself show."
    return f'<p class="lead">{note}</p>{_table(("measure", "reached"), rows)}'


def _listed(attacks: Sequence[str], on: Sequence[str]) -> str:
    return ", ".join(attacks) + (f" (on {', '.join(on)})" if on else "")


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
