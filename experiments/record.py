"""What the experiments last gave, in `recorded.json`, and the pages of the documentation that show it.

A page has `<!-- recorded NAME: TITLE -->` before a table: the one with that title among what `NAME` gave. A run renews
both.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).parent / "recorded.json"
MARK = re.compile(r"<!-- recorded ([\w-]+): (.+?) -->\n\n((?:\|.*\n)*)")


def tables(text: str) -> dict[str, str]:
    """The tables of a text in Markdown, by the headings above each and the line before it, if that ends in a colon.

    Of a heading only what stands before a colon counts: sizes and shares may follow.
    """
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    caption, rows = "", list[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows:
            found[" / ".join(filter(None, [*(title for _, title in above), caption]))] = "\n".join(rows) + "\n"
            rows, caption = [], ""
        if line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            above = [one for one in above if one[0] < level] + [(level, line.lstrip("# ").split(":")[0])]
            caption = ""
        elif line.strip():
            caption = line[:-1] if line.endswith(":") else ""
    return found


def recorded() -> dict[str, dict[str, str]]:
    """Per experiment its tables, by their titles."""
    content: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def keep(name: str, text: str) -> None:
    """Record what an experiment gave, and show it on the pages."""
    now = {**recorded(), name: tables(text)}
    FILE.write_text(json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    for page in pages():
        page.write_text(shown(page.read_text(encoding="utf-8"), now), encoding="utf-8")


def pages() -> list[Path]:
    """The pages with recorded tables."""
    return [page for page in sorted((ROOT / "docs").glob("*.md")) if MARK.search(page.read_text(encoding="utf-8"))]


def shown(page: str, record: dict[str, dict[str, str]]) -> str:
    """A page with the tables of the record; KeyError where it asks for one that is not there."""
    return MARK.sub(lambda mark: f"<!-- recorded {mark[1]}: {mark[2]} -->\n\n{record[mark[1]][mark[2]]}", page)
