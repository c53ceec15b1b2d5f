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


def test_every_class_is_defined_once() -> None:
    assert {name for name, times in DEFINED.items() if times > 1} == set()


def test_classes_that_the_glossary_names_exist() -> None:
    rows = re.findall(r"^\|.*\|([^|]*)\|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 20
    assert named - set(DEFINED) == set()


def test_no_word_has_two_rows_in_the_glossary() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    terms = Counter(term.strip() for row in words if row not in ("word", "---") for term in row.split(","))
    assert [term for term, times in terms.items() if times > 1] == []
