"""The examples do what they say: notebooks show what is kept in them, policies are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import invoke

EXAMPLES = Path(__file__).parents[2] / "examples"
TOOL = EXAMPLES.parent / "tools" / "notebooks.py"
POLICIES = sorted((EXAMPLES / "policies").glob("*.yaml"))


def test_notebooks_show_what_is_kept_in_them() -> None:
    ran = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


def test_a_notebook_that_shows_something_else_is_told(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": ["1 + 1"], "outputs": []}
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": [cell]}))
    code = f"import sys; sys.path.insert(0, {str(TOOL.parent)!r}); import notebooks; from pathlib import Path; "
    code += f"content, changed = notebooks.run(Path({str(tmp_path / 'one.ipynb')!r})); "
    code += "print(changed, content['cells'][0]['outputs'][0]['data']['text/plain'])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[1] ['2']"


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.stem)
def test_example_policies_are_right(policy: Path) -> None:
    ran = invoke("check", policy, cwd=policy.parent)
    assert ran.returncode == 0, ran.stderr


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    examples = [*EXAMPLES.glob("*.ipynb"), *POLICIES]
    assert len(examples) >= 6
    assert [example.name for example in examples if f"({example.relative_to(EXAMPLES)})" not in listed] == []
