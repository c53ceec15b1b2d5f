"""Makes the two pictures of the README anew, of an invented hospital: a rehearsal on a terminal, a report in a browser.

python tools/pictures.py    # needs Chromium; writes docs/pictures/rehearse.png and report.png
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import yaml
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import sequester as sq
from sequester.datasets import hospital_panel, hospital_panel_policy

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
YEARS = range(2021, 2026)
COLUMNS = 100
# The parts of a report that are shown: all of it would be a long picture.
PARTS = ["What is promised to a person in this table", "How much room is left", "Classes", "Boxes"]
_TERMINAL = """<body style="margin:0;background:#14181e;color:#e8eaed">
<pre style="margin:0;padding:22px;width:max-content;font:14px/1.45 'DejaVu Sans Mono',monospace">{code}</pre></body>"""
_ONLY = """parts => {
    let shown = true;
    for (const one of [...document.querySelector("main").children]) {
        if (one.tagName === "H2") shown = parts.includes(one.textContent);
        if (!shown) one.remove();
    }
}"""


def terminal(folder: Path) -> Path:
    """What `sequester rehearse` prints, as a page."""
    files = [f"{year}.csv" for year in YEARS]
    words = ["sequester", "rehearse", *files]
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    screen = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    screen.print(Text.assemble(("$ ", "dim"), " ".join(words)))
    screen.print(Text.from_ansi(done.stdout))
    page = folder / "rehearse.html"
    page.write_text(_TERMINAL.format(code=screen.export_html(theme=MONOKAI, inline_styles=True, code_format="{code}")))
    return page


def report(folder: Path) -> Path:
    """The public report of the last of five releases."""
    policy = sq.Policy.load(folder / "policy.yaml")
    series = sq.Series.open(folder / "series.ledger", policy)
    for place, year in enumerate(YEARS, start=1):
        series.publish(folder / f"{year}.csv", name=str(year), seed=1 << 63 | place)
    page = folder / "report.html"
    page.write_text(series.report(len(YEARS)))
    return page


def main() -> None:
    """Both pictures."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise SystemExit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        (folder / "policy.yaml").write_text(yaml.safe_dump(yaml.safe_load(hospital_panel_policy()), sort_keys=False))
        for year, table in zip(YEARS, hospital_panel(releases=len(YEARS)), strict=True):
            csv.write_csv(table, folder / f"{year}.csv")
        browser: Any = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        view = browser.new_page(viewport={"width": 1060, "height": 400})
        view.goto(report(folder).as_uri())
        view.evaluate(_ONLY, PARTS)
        view.screenshot(path=PICTURES / "report.png", full_page=True)
        view.set_viewport_size({"width": 960, "height": 400})
        view.goto(terminal(folder).as_uri())
        view.screenshot(path=PICTURES / "rehearse.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
