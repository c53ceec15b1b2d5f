"""A rehearsal as pictures and blocks: loss over waves by variant, who naive releases expose, what was varied.

Made from the plain values of a rehearsal: counts and shares, names of columns and files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sequester.policy.words import amount
from sequester.report.blocks import Block, Bullets, Grid, Heading, Paragraph, Pictures, Remark
from sequester.report.canvas import WIDE, Picture, at
from sequester.report.charts import Curve, Trend, curves, lines

# Lines of one picture that can be told apart.
_MOST = 8
# Waves whose losses are shown one by one.
_WAVES = 8
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


def rehearsal_blocks(told: Mapping[str, Any]) -> Iterator[Block]:
    """The whole rehearsal: every variant, why others were not tried, where the loss is, and which one to take."""
    sizes = ", ".join(f"{wave['records']:,}" for wave in told["waves"])
    waves = amount(len(told["waves"]), "wave")
    yield Heading(f"{told['series']}: {waves} of {sizes} records, rehearsed in {told['seconds']:.0f} s.", 1)
    yield Pictures(pictures(told))
    tried = [trial for trial in told["trials"] if trial["waves"]]
    best = None if told["recommendation"] is None else told["recommendation"]["name"]
    tones = tuple(_tone(trial, best) for trial in tried)
    # Of counts only those that somebody has.
    counts = {"distorted": "values off", "waiting": "wait", "kept": "kept", "left_out": "left out"}
    used = {name: title for name, title in counts.items() if any(trial[name] for trial in tried)}
    by_wave = () if told["varied"] else ("NCP by wave",)
    heads = ("variant", "NCP", "AIL", "decoys", *used.values(), "exposed", "certain", "processor", *by_wave)
    rows = tuple((*_point(trial), *_row(trial, used), *map(_by_wave, [trial] * len(by_wave))) for trial in tried)
    yield Grid((*told["varied"], *heads), rows, "Variants", tones)
    for trial in told["trials"]:
        if trial["why"] is not None:
            yield Paragraph(f"{_named(trial)}: {trial['why']}", lead=True)
    yield Heading("Loss by column (mean NCP)")
    columns = tuple(
        (*_point(trial), trial["name"], *(f"{loss:.3f}" for loss in trial["columns"].values())) for trial in tried
    )
    yield Grid((*told["varied"], "variant", *told["columns"]), columns, "Loss by column", tones)
    yield from _advice(told)


def _advice(told: Mapping[str, Any]) -> Iterator[Block]:
    advice = told["recommendation"]
    less = dict.fromkeys(one["name"] for one in told["trials"] if one["holds"] and not one["promises_as_much"])
    if less and not told["varied"]:
        yield Paragraph(f"Promise less than the policy, and are not recommended: {', '.join(less)}.", lead=True)
    if advice is not None:
        yield Remark(f"Recommended: {advice['name']}.", "good")
        yield Bullets(tuple(advice["reasons"]))
        yield Paragraph(f"The rule: {advice['rule']}.", lead=True)
    elif less:
        yield Paragraph("Every variant that holds promises less than the policy: none is recommended.")
    else:
        yield Remark("No variant keeps what the policy promises in every wave.", "bad")


def _tone(trial: Mapping[str, Any], best: str | None) -> Literal["", "good", "bad", "faint"]:
    if trial["naive"]:
        return "bad"
    return "good" if _named(trial) == best else "" if trial["holds"] and trial["promises_as_much"] else "faint"


def _named(trial: Mapping[str, Any]) -> str:
    point = ", ".join(f"{name} {value:g}" for name, value in trial["point"].items())
    return f"{trial['name']} ({point})" if point else str(trial["name"])


def _point(trial: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{value:g}" for value in trial["point"].values())


def _row(trial: Mapping[str, Any], counts: Iterable[str]) -> tuple[Any, ...]:
    last = trial["waves"][-1]
    name = f"{trial['name']} (stopped)" if trial["why"] is not None else trial["name"]
    losses = (f"{trial['ncp']:.3f}", f"{trial['ail']:.3f}", f"{100 * trial['decoys']:.1f}%")
    more = "+" if last["at_least"] else ""
    exposed = (f"{last['exposed']:,}{more}", f"{last['certain']:,}{more}") if last["exposed"] else ("nobody", "")
    return name, *losses, *(trial[count] for count in counts), *exposed, f"{trial['seconds']:.1f} s"


def _by_wave(trial: Mapping[str, Any]) -> str:
    losses = [f"{wave['ncp']:.2f}".removeprefix("0") for wave in trial["waves"]]
    if len(losses) > _WAVES:
        losses = [*losses[: _WAVES // 2], "...", *losses[-_WAVES // 2 :]]
    return " ".join(losses)


def _over_waves(told: Mapping[str, Any]) -> tuple[Picture, ...]:
    labels = [wave["name"] for wave in told["waves"]]
    published = [trial for trial in told["trials"] if trial["waves"]]
    shown = published[:_MOST]
    trends = []
    for trial in shown:
        losses = [wave["ncp"] for wave in trial["waves"]]
        trends.append(Trend(trial["name"], [*losses, *[None] * (len(labels) - len(losses))], required=trial["naive"]))
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
    loss = curves("What more protection costs", found[:_MOST], x_name=across, y_name="NCP", note=note)
    exposed = _curves(naive, across, others, lambda trial: _share(trial["waves"][-1], "exposed"))
    title = "Whom naive releases would expose"
    note = "% of everybody published, above what is promised, if each wave is anonymized on its own"
    return loss, curves(title, exposed[:_MOST], x_name=across, y_name="%", note=note)


def _curves(trials: Sequence[Mapping[str, Any]], across: str, others: Sequence[str], y: Any) -> list[Curve]:
    """One line per variant and combination of what else is varied."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for trial in trials:
        name = ", ".join([trial["name"], *(f"{other} {trial['point'][other]:g}" for other in others)])
        groups.setdefault(name, []).append((trial["point"][across], y(trial)))
    return [Curve(name, sorted(places)) for name, places in groups.items()]


def _share(wave: Mapping[str, Any], key: str) -> float:
    return 100 * float(wave[key]) / max(int(wave["everybody"]), 1)
