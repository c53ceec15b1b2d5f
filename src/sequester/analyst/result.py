"""An estimate: a small table of figures with intervals."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

from sequester.errors import MissingLibrary

_ABOUT = {
    "table": "the private table's own figure, which was blurred",
    "population": "those that the people of the table are a sample of",
}


@dataclass(frozen=True)
class Estimate:
    """The answer to a question, one row per group.

    by      columns that tell groups, and `groups` their values
    value   the estimate; `se` its standard error; from `low` to `high` with a chance of `level`
    people  how many it is about
    target  what the interval is about: the private table, or the population
    draws   tables that were drawn
    notes   what else must be known to read it
    """

    question: str
    by: tuple[str, ...]
    groups: tuple[tuple[Any, ...], ...]
    value: tuple[float, ...]
    se: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    people: tuple[float, ...]
    level: float
    target: str
    draws: int
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.value)

    def rows(self) -> list[dict[str, Any]]:
        """One mapping per group."""
        return [
            {
                **dict(zip(self.by, group, strict=True)),
                "value": self.value[at],
                "se": self.se[at],
                "low": self.low[at],
                "high": self.high[at],
                "people": self.people[at],
            }
            for at, group in enumerate(self.groups)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "question": self.question,
            "level": self.level,
            "target": self.target,
            "draws": self.draws,
            "notes": list(self.notes),
            "rows": self.rows(),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_pandas(self) -> Any:
        """The rows as a frame of pandas."""
        try:
            import pandas
        except ImportError:
            raise MissingLibrary("pandas is not installed: pip install pandas, or use to_dict()") from None
        return pandas.DataFrame(self.rows(), columns=[*self.by, "value", "se", "low", "high", "people"])

    def __repr__(self) -> str:
        share = f"{self.level:.0%}".replace("%", " %")
        if len(self) == 1 and not self.by:
            return f"<Estimate {self.value[0]:.6g}, {share} from {self.low[0]:.6g} to {self.high[0]:.6g}>"
        return f"<Estimate: {len(self)} rows with {share} intervals>"

    def __str__(self) -> str:
        """The rows as text, in columns."""
        lines = [[*self.by, "value", "low", "high", "people"], *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = (self.by and len(self.by)) or 0
        shown = (
            "  ".join(
                cell.ljust(width) if at < texts else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        return "\n".join([*shown, *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in (*self.by, "value", "low", "high", "people"))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in self._cells()
        )
        about = f"{html.escape(self.question)}: {self.level:.0%} intervals for {_ABOUT[self.target]}"
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p>{about}</p><table><tr>{head}</tr>{body}</table>{notes}"

    def _cells(self) -> list[list[str]]:
        return [
            [
                *map(str, group),
                *(f"{number:.6g}" for number in (self.value[at], self.low[at], self.high[at])),
                f"{self.people[at]:,.0f}",
            ]
            for at, group in enumerate(self.groups)
        ]
