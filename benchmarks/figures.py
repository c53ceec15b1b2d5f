"""What a benchmark finds: numbers with their targets, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
_LIBRARIES = ("anonypy", "duckdb", "numba", "numpy", "pandas", "pyarrow", "sequester")


class DataMissing(Exception):
    """A subject cannot run without data that is not here; says how to get it."""


@dataclass(frozen=True)
class Figure:
    """One measured number. Without a target it is there to explain the others."""

    what: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.at_most is not None:
            return bool(self.value <= self.at_most)
        if self.at_least is not None:
            return bool(self.value >= self.at_least)
        return None


def show(subject: str, figures: Sequence[Figure]) -> None:
    """Print the figures of one subject."""
    table = Table(title=subject, title_justify="left", title_style="bold")
    for heading in ("what", "measured", "target", "result", "note"):
        table.add_column(heading, justify="right" if heading in ("measured", "target") else "left")
    words = {True: "[green]pass[/]", False: "[bold red]FAIL[/]", None: ""}
    for figure in figures:
        table.add_row(figure.what, _text(figure.value, figure.unit), _target(figure), words[figure.passed], figure.note)
    Console(width=None if os.isatty(1) else 170).print(table)


def save(subject: str, figures: Sequence[Figure], *, seconds: float) -> Path:
    """Write the figures of one subject to `results/<subject>.json`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{subject}.json"
    document = {
        "subject": subject,
        "seconds": round(seconds, 1),
        "machine": {
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
        "figures": [{**asdict(figure), "passed": figure.passed} for figure in figures],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path


def _target(figure: Figure) -> str:
    if figure.at_most is not None:
        return f"≤ {_text(figure.at_most, figure.unit)}"
    if figure.at_least is not None:
        return f"≥ {_text(figure.at_least, figure.unit)}"
    return ""


def _text(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {unit}".strip()
