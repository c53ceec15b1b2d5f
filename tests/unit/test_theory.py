"""docs/theory.md names the test of every statement: those tests exist, and so do the sections that code cites."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/theory.md").read_text()
SECTIONS = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", PAGE, re.MULTILINE))


def missing_tests(page: str) -> set[tuple[str, str]]:
    """The tests that a page names and that are not there."""
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page))
    there = {
        (file, node.name)
        for file in {file for file, _ in named}
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    return named - there


def test_the_tests_that_the_theory_names_exist() -> None:
    assert missing_tests(PAGE) == set()


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
