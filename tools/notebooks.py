"""Runs the notebooks in examples/ without Jupyter: cells one after the other, in one namespace.

    python tools/notebooks.py            # run them; what they show must be what is kept in them
    python tools/notebooks.py --write    # run them, and keep what they show

A cell shows what it prints and, like in Jupyter, the value of its last expression.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

KEY = "the key of notebooks, in which nobody is"
EXAMPLES = Path(__file__).parents[1] / "examples"
# How values show themselves: ours, and those of classes that notebooks define.
_RICH = {"image/svg+xml": "_repr_svg_", "text/html": "_repr_html_"}


def run(notebook: Path) -> tuple[dict[str, Any], list[int]]:
    """The notebook with the outputs of this run, and the numbers of the code cells whose outputs were others before."""
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    changed = []
    with _elsewhere():
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(code, start=1):
            outputs = _outputs("".join(cell["source"]), names, f"{notebook.name}, code cell {number}", number)
            if _told(outputs) != _told(cell["outputs"]):
                changed.append(number)
            cell["execution_count"], cell["outputs"] = number, outputs
    return content, changed


def _outputs(source: str, names: dict[str, Any], title: str, number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source, filename=title)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, title, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), title, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)}
        )
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        for kind, method in _RICH.items():
            if type(value).__module__.startswith(("__main__", "sequester")) and hasattr(value, method):
                data[kind] = getattr(value, method)().splitlines(keepends=True)
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _told(outputs: list[dict[str, Any]]) -> str:
    """Outputs without the style sheets in them: how something looks may change, what it says may not."""
    return re.sub(r"<style>.*?</style>", "", json.dumps(outputs))


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Notebooks write into the folder they run in: an empty one, which is gone afterwards. Their ledgers have one key,
    since what is published depends on it a little."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"SEQUESTER_KEY": KEY}):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def main() -> int:
    """Run all notebooks; 1 if one shows something else than is kept in it."""
    parser = argparse.ArgumentParser(description="Run the notebooks in examples/.")
    parser.add_argument("--write", action="store_true", help="keep what they show")
    write = parser.parse_args().write
    stale = 0
    for notebook in sorted(EXAMPLES.glob("*.ipynb")):
        content, changed = run(notebook)
        if write:
            notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        elif changed:
            stale += 1
            sys.stderr.write(f"{notebook.name}: code cells {changed} show something else; --write keeps it\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
