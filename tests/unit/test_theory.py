"""docs/theory.md names the test of every statement: those tests exist, and so do the sections that code cites."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/theory.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
SECTIONS = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", PAGE, re.MULTILINE))


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_the_tests_that_the_theory_names_exist(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {test for where, test in NAMED if where == file} - defined == set()


def test_every_footnote_names_a_test_and_is_used() -> None:
    notes = dict(re.findall(r"^\[\^(\w+)\]: (.+)$", PAGE, re.MULTILINE))
    used = set(re.findall(r"\[\^(\w+)\](?!:)", PAGE))
    assert len(notes) > 80
    assert used == set(notes)
    assert [name for name, text in notes.items() if "::test_" not in text] == []


def test_sections_that_code_cites_exist() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    cited = {
        section
        for file in files
        for section in re.findall(r"docs/theory\.md, section (\d+(?:\.\d+)?)", file.read_text(encoding="utf-8"))
    }
    assert cited
    assert cited - SECTIONS == set()


def test_links_to_sections_lead_somewhere() -> None:
    anchors = {
        re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#{2,3} (.+)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) - anchors == set()
