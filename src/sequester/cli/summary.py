"""A measurement on a terminal: what it is, what it promises, what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from sequester.guarantees.criterion import Outcome
    from sequester.metrics.measure import Measurement

_LOSSES = {"ail": "AIL", "ncp": "NCP", "dm": "DM", "precision": "precision", "entropy": "entropy"}


def show_measurement(screen: Console, found: Measurement) -> None:
    """The figures, then every promise with what was required and what was reached."""
    figures = grid()
    left_out = f"{found.suppressed:,} left out" if found.suppressed else "none left out"
    figures.add_row("records", f"{found.records:,} published, {left_out}")
    each = found.records / found.classes
    figures.add_row("classes", f"{found.classes:,} of {found.k:,} or more people, {each:.3g} on average")
    for name, figure in (("k", found.k), ("confidence", found.confidence), ("l", found.l), ("t", found.t)):
        if figure is not None:
            figures.add_row(name, number(figure))
    figures.add_row("loss", losses(found))
    if found.query_error is not None:
        figures.add_row("query error", f"{number(found.query_error)} (relative, on average)")
    screen.print(figures)
    screen.print()
    screen.print(_promises(found.promises))


def show_files(screen: Console, files: Iterable[Path]) -> None:
    """Where the result is."""
    from rich.text import Text

    screen.print()
    for file in files:
        screen.print(Text(str(file), "bold"), soft_wrap=True)


def grid() -> Table:
    """Names on the left, what they are on the right."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def losses(found: Measurement) -> str:
    """The losses of the literature on one line."""
    return ", ".join(f"{label} {number(found.loss[name])}" for name, label in _LOSSES.items() if name in found.loss)


def number(value: float | None) -> str:
    """A number with as many digits as anybody needs."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def _promises(promises: Iterable[Outcome]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("promise", overflow="fold")
    columns: dict[str, dict[str, Any]] = {"required": {"justify": "right"}, "reached": {"justify": "right"}, "": {}}
    for title, how in columns.items():
        table.add_column(title, no_wrap=True, **how)
    for promise in promises:
        verdict = Text("kept", "green") if promise.holds else Text("broken", "bold red")
        what = f"{promise.view}: {promise.promise}" if promise.view else promise.promise
        table.add_row(Text(what), number(promise.required), number(promise.observed), verdict)
    return table
