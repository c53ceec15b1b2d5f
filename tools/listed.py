"""Docstrings of this project as Markdown: lines of names and meanings in two columns become lists.

Griffe, which reads the sources for the API reference, loads this as an extension (mkdocs.yml).
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*)(?P<gap> {2,})(?P<text>\S.*)$")


class Listed(Extension):
    """Rewrites every docstring that is shown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Griffe tells of every object it has read."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The same text, with a list for each run of entries and what goes on below their second column."""
    lines: list[str] = []
    column = -1
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            if column < 0 and lines and lines[-1]:
                lines.append("")
            column = entry.end("gap")
            names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
            lines.append(f"- {names}: {entry['text']}")
        elif column >= 0 and line.startswith(" " * column):
            lines[-1] += " " + line.strip()
        else:
            if column >= 0 and line:
                lines.append("")
            column = -1
            lines.append(line)
    return "\n".join(lines)
