"""One word per concept: no two classes of the package share a name, and the glossary names classes that exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEFINED = Counter(
    node.name
    for file in sorted((ROOT / "src").rglob("*.py"))
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
)
# Names that still stand for two things. The list only gets shorter; empty is the goal.
DOUBLED: set[str] = {"Cuts", "Earlier", "Joining", "Lineup", "Lists", "Output", "Units", "Waiting", "Wanted", "_Room"}


def test_every_class_is_defined_once() -> None:
    assert {name for name, times in DEFINED.items() if times > 1} - DOUBLED == set()


def test_names_that_no_longer_stand_for_two_things_leave_the_list() -> None:
    assert {name for name in DOUBLED if DEFINED[name] < 2} == set()


def test_classes_that_the_glossary_names_exist() -> None:
    rows = re.findall(r"^\|.*\|([^|]*)\|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 20
    assert named - set(DEFINED) == set()


def test_no_word_has_two_rows_in_the_glossary() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    terms = Counter(term.strip() for row in words if row not in ("word", "---") for term in row.split(","))
    assert [term for term, times in terms.items() if times > 1] == []
