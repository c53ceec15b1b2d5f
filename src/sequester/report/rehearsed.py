"""A rehearsal as pictures and blocks: loss over waves by variant, who naive releases expose, what was varied.

Made from the plain values of a rehearsal: counts and shares, names of columns and files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sequester.report.blocks import Block, Bullets, Grid, Paragraph, Pictures
from sequester.report.canvas import WIDE, Picture, at
from sequester.report.charts import Curve, Trend, curves, lines

# Lines of one picture that can be told apart.
_MOST = 8
_GAP = 40


def picture(told: Mapping[str, Any]) -> str:
    """All pictures of a rehearsal below each other, as one SVG file."""
    first, *others = pictures(told)
    body, height = first.body, first.height
    for other in others:
        head = at(10, height + _GAP - 12, other.title, "t")
        note = at(10, height + _GAP + 8, other.note, "s") if other.note else ""
        top = height + _GAP + (16 if other.note else 0)
        body, height = f'{body}{head}{note}<g transform="translate(0 {top})">{other.body}</g>', top + other.height
    words = " ".join(one.told for one in (first, *others))
    return replace(first, body=body, height=height, told=words).file()


def pictures(told: Mapping[str, Any]) -> tuple[Picture, ...]:
    """Loss and people exposed: over waves or, where something was varied, against it."""
    return _frontier(told) if told["varied"] else _over_waves(told)


def blocks(told: Mapping[str, Any]) -> tuple[Block, ...]:
    """The whole rehearsal."""
    advice = told["recommendation"]
    said = "No variant holds in every wave." if advice is None else f"Recommended: {advice['name']}."
    reasons = () if advice is None else (Bullets((*advice["reasons"], f"The rule: {advice['rule']}.")),)
    return (
        Paragraph(said),
        *reasons,
        Pictures(pictures(told)),
        Grid(*trials_table(told), name="variants"),
        Grid(*columns_table(told), name="loss by column"),
    )


def trials_table(told: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Heads and rows: every variant, its losses, and who is not in it or exposed."""
    heads = (
        *told["varied"], "variant", "NCP", "AIL", "decoys %", "values off", "wait", "kept", "left out", "exposed",
        "certain", "seconds", "why not",
    )  # fmt: skip
    return heads, tuple(_trial_row(told, trial) for trial in told["trials"])


def columns_table(told: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Heads and rows: mean NCP of every column by every variant that was published at all."""
    rows = [
        (*(trial["point"][name] for name in told["varied"]), trial["name"], *map(_digits, trial["columns"].values()))
        for trial in told["trials"]
        if trial["waves"]
    ]
    return (*told["varied"], "variant", *told["columns"]), tuple(rows)


def _trial_row(told: Mapping[str, Any], trial: Mapping[str, Any]) -> tuple[Any, ...]:
    named = (*(trial["point"][name] for name in told["varied"]), trial["name"])
    if not trial["waves"]:
        return (*named, *[None] * 10, trial["why"])
    last = trial["waves"][-1]
    return (
        *named,
        _digits(trial["ncp"]),
        _digits(trial["ail"]),
        _digits(100 * trial["decoys"], 1),
        trial["distorted"],
        trial["waiting"],
        trial["kept"],
        trial["left_out"],
        last["exposed"],
        last["certain"],
        trial["seconds"],
        trial["why"],
    )


def _over_waves(told: Mapping[str, Any]) -> tuple[Picture, ...]:
    labels = [wave["name"] for wave in told["waves"]]
    published = [trial for trial in told["trials"] if trial["waves"]]
    shown = published[:_MOST]
    trends = [Trend(trial["name"], _by_wave(trial, "ncp", len(labels)), required=trial["naive"]) for trial in shown]
    more = f"; {len(published) - _MOST} more in the table" if len(published) > _MOST else ""
    note = f"NCP by wave, 0: nothing is lost, 1: everything; without marks: no memory, which exposes people{more}"
    loss = lines("What each way to publish would lose", labels, trends, note=note, width=WIDE)
    naive = next((trial for trial in published if trial["naive"]), None)
    if naive is None:
        return (loss,)
    exposed = [
        Trend("above what is promised", [_share(wave, "exposed") for wave in naive["waves"]]),
        Trend("for certain", [_share(wave, "certain") for wave in naive["waves"]]),
    ]
    note = "% of everybody published until then, if each wave is anonymized on its own; nobody by ways that hold"
    return loss, lines(
        "Whom naive releases would expose", labels[: len(naive["waves"])], exposed, note=note, width=WIDE
    )


def _frontier(told: Mapping[str, Any]) -> tuple[Picture, ...]:
    across, *others = told["varied"]
    safe = [trial for trial in told["trials"] if trial["holds"]]
    naive = [trial for trial in told["trials"] if trial["naive"] and trial["waves"] and trial["why"] is None]
    found = _curves(safe, across, others, lambda trial: trial["ncp"])
    found += _curves(naive, across, others, lambda trial: trial["ncp"])
    note = f"mean NCP over the waves, against {across}"
    if len(found) > _MOST:
        note += f"; {len(found) - _MOST} more lines in the table"
    loss = curves("What more protection costs", found[:_MOST], x_name=across, y_name="NCP", note=note, width=WIDE)
    exposed = _curves(naive, across, others, lambda trial: _share(trial["waves"][-1], "exposed"))
    title = "Whom naive releases would expose"
    note = "% of everybody published, above what is promised, if each wave is anonymized on its own"
    return loss, curves(title, exposed[:_MOST], x_name=across, y_name="%", note=note, width=WIDE)


def _curves(trials: Sequence[Mapping[str, Any]], across: str, others: Sequence[str], y: Any) -> list[Curve]:
    """One line per variant and combination of what else is varied."""
    groups: dict[str, list[tuple[float, float, str]]] = {}
    for trial in trials:
        name = ", ".join([trial["name"], *(f"{other} {trial['point'][other]:g}" for other in others)])
        groups.setdefault(name, []).append((trial["point"][across], y(trial), ""))
    return [Curve(name, sorted(places)) for name, places in groups.items()]


def _by_wave(trial: Mapping[str, Any], key: str, waves: int) -> list[float | None]:
    values = [wave[key] for wave in trial["waves"]]
    return [*values, *[None] * (waves - len(values))]


def _share(wave: Mapping[str, Any], key: str) -> float:
    return 100 * float(wave[key]) / max(int(wave["everybody"]), 1)


def _digits(number: float, digits: int = 3) -> float:
    return float(round(number, digits))
