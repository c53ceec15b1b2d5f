"""docs/theory.md names the test of every statement: those tests exist, and so do the sections that code cites."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

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


PAPERS = {
    "byun": "Byun et al.",
    "fung": "Fung et al.",
    "wong": "Wong et al.",
    "reddy": "Reddy et al. and Sweeney",
    "sweeney": "Reddy et al. and Sweeney",
}


def claims(heading: str) -> list[str]:
    """What the page says that a paper says, row by row."""
    section = PAGE.split(f"\n### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = re.findall(r"^\|((?:[^|]|(?<=\\)\|)+)(?<!\\)\|", section, re.MULTILINE)
    return [row.strip() for row in rows[2:]]


@pytest.mark.parametrize("heading", sorted(set(PAPERS.values())))
def test_no_paper_is_said_to_say_what_is_not_quoted(heading: str) -> None:
    rows = claims(heading)
    assert rows
    assert [row for row in rows if '"' not in row and "the text leaves open" not in row] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_quoted_stands_in_the_paper(paper: str) -> None:
    texts = list((ROOT.parent / "shared/papers").glob(f"{paper}-*.txt"))
    if not texts:
        pytest.skip("the papers are not in the repository; they would be in ../shared/papers")
    rows = claims(PAPERS[paper])
    if list(PAPERS.values()).count(PAPERS[paper]) > 1:
        rows = [row for row in rows if row.lower().startswith(paper)]
    quoted = [quote for row in rows for quote in re.findall(r'"([^"]+)"', row)]
    assert quoted
    text = plain(texts[0].read_text(encoding="utf-8"))
    assert [quote for quote in quoted if plain(quote) not in text] == []


def plain(text: str) -> str:
    """Letters and signs alone, as formulas and line ends are marked differently everywhere."""
    return re.sub(r"[^a-z0-9=<,.'-]+", "", text.lower().replace("\\", ""))
