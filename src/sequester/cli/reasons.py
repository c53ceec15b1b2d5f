"""On a terminal: why a release is what it is, what keys of the policy would buy, and how it differs from the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sequester.causes import SERIES
from sequester.cli.summary import columns, grid, many, number

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sequester.causes import Cause, Relaxation
    from sequester.publish.since_last import SinceLast


def show_why(screen: Console, why: Sequence[Cause], relaxations: Sequence[Relaxation]) -> None:
    """Every cause with the keys that would relax it; nothing where there is none."""
    from rich.text import Text

    if not why:
        return
    coarse = [cause for cause in why if cause.what == "coarse"]
    others = [cause for cause in why if cause.what != "coarse"]
    if others:
        screen.print()
        screen.print("Why")
        table, last = grid(), ""
        for cause in others:
            table.add_row("" if cause.what == last else f"  {cause.what}", Text(str(cause)))
            if cause.keys:
                table.add_row("", Text.assemble("eased by ", (", ".join(cause.keys), "cyan")))
            last = cause.what
        screen.print(table)
    if coarse:
        screen.print()
        screen.print(_coarse(coarse))
        screen.print(_eased(list(dict.fromkeys(key for cause in coarse for key in cause.keys))))
    if not relaxations:
        screen.print(Text("  `sequester plan --why` tells what one step of each key would buy.", "dim"))


def _coarse(coarse: Sequence[Cause]) -> Table:
    """What promises and the past cost, then the attacks that would work if the past did not matter."""
    table = columns(**{"Why classes are coarse": False, "classes": True, "people": True, "AIL": True})
    steps, attacks = ([one for one in coarse if (one.lost is None) is attack] for attack in (False, True))
    for cause in steps:
        figures = (f"{cause.classes:,}", f"{cause.people:,}", f"+{number(cause.lost)}")
        table.add_row(f"  {_named(cause)}", *figures)
    if attacks:
        table.add_row("  without a memory these would work:")
    for cause in attacks:
        table.add_row(f"    {_named(cause)}", f"{cause.classes:,}", f"{cause.people:,}")
    return table


def _named(cause: Cause) -> str:
    if cause.attack == SERIES:
        return cause.who
    return f"{cause.attack} of {cause.attribute}" if cause.attribute else cause.attack


def _eased(keys: Sequence[str]) -> Table:
    from rich.text import Text

    table = grid()
    table.add_row("  eased by", Text(", ".join(keys), "cyan"))
    return table


def show_relaxations(
    screen: Console, relaxations: Sequence[Relaxation], loss: Mapping[str, float], *, decoys: int, waiting: int
) -> None:
    """What one step of each key would buy, those that buy most first; nothing where that was not asked.

    loss, decoys, waiting  of the release as planned; no loss where it is refused
    """
    from rich.text import Text

    if not relaxations:
        return
    tried = [one for one in relaxations if one.tried]
    titles = {"decoys": decoys or any(one.decoys for one in tried), "waiting": waiting or any(o.waiting for o in tried)}
    shown = [title for title, wanted in titles.items() if wanted]
    table = columns(**{"if": False, "AIL": True, "": True}, **dict.fromkeys(shown, True))
    now = loss.get("ail")
    figures = {"decoys": decoys, "waiting": waiting}
    table.add_row("as planned", "refused" if now is None else number(now), "", *(f"{figures[t]:,}" for t in shown))
    for one in sorted(tried, key=lambda one: one.loss.get("ail", float("inf"))):
        mark = "" if one.running else " *"
        label = Text.assemble((one.key, "cyan"), f": {one.now} to {one.then}{mark}")
        if not one.made:
            table.add_row(label, "refused")
            continue
        then = one.loss["ail"]
        change = "" if not now else f"{then / now - 1:+.0%}"
        table.add_row(label, number(then), change, *(f"{getattr(one, title):,}" for title in shown))
    screen.print()
    screen.print("What one step of a key would buy")
    if tried:
        screen.print(table)
    if any(not one.running for one in tried):
        star = "* a series that has begun keeps these: they need another that goes on from it (`after`)"
        screen.print(Text(star, "dim"))
    if len(tried) < len(relaxations):
        left = ", ".join(one.key for one in relaxations if not one.tried)
        screen.print(Text(f"not priced, the table is too large: {left}", "dim"))


def show_since_last(screen: Console, since: SinceLast | None) -> None:
    """People, classes and columns beside the last release; nothing for the first."""
    if since is None:
        return
    from rich.text import Text

    screen.print()
    screen.print(f"Beside release {since.number}")
    facts = grid()
    facts.add_row("  people", _people(since))
    facts.add_row("  classes", _classes(since))
    if any(since.decoys):
        facts.add_row("  decoys", f"{since.decoys[1]:,}, {since.decoys[0]:,} before")
    screen.print(facts)
    table = columns(**{"  column": False, "loss before": True, "now": True, "": False})
    styles = {"coarser": "red", "finer": "green"}
    for column in since.columns:
        became = Text(column.became, styles.get(column.became, ""))
        table.add_row(Text(f"  {column.name}"), f"{column.before:.3f}", f"{column.now:.3f}", became)
    table.add_row("  all (NCP)", f"{since.ncp[0]:.3f}", f"{since.ncp[1]:.3f}")
    screen.print(table)


def _people(since: SinceLast) -> str:
    parts = [
        f"{since.came:,} came" if since.came else "",
        f"{since.returned:,} returned" if since.returned else "",
        f"{since.stayed:,} stay",
        f"({since.kept:,} of them have left the table)" if since.kept else "",
        f"{since.left:,} left" if since.left else "",
    ]
    said = ", ".join(part for part in parts if part).replace(", (", " (")
    boxes = f"of those who stay {since.coarser:,} are in wider boxes, {since.finer:,} in narrower"
    return f"{said}; {boxes}" if since.coarser or since.finer else f"{said}; no box of those who stay is wider"


def _classes(since: SinceLast) -> str:
    classes = since.classes
    parts = [
        f"{classes.kept:,} kept ({classes.as_they_were:,} as they were)" if classes.kept else "",
        f"{classes.merged:,} merged" if classes.merged else "",
        f"{classes.split:,} split" if classes.split else "",
        f"{classes.mixed:,} mixed with others" if classes.mixed else "",
        f"{classes.gone:,} gone" if classes.gone else "",
    ]
    new = f"; {many(classes.new, 'is', 'are')} new" if classes.new else ""
    return f"{classes.now:,}, {classes.before:,} before: {', '.join(part for part in parts if part)}{new}"
