"""The documentation names everything there is, and the repository says nothing it should not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import sequester
from sequester.cli.app import app
from sequester.methods.registry import PLACES
from sequester.policy.base import Strict
from sequester.policy.model import Policy

ROOT = Path(__file__).parents[2]
MODELS = [Policy, *(part for part in Strict.__subclasses__() if part is not Policy)]
"""Everything that a policy is made of: whatever is a part of it was loaded with it."""


@pytest.mark.parametrize("part", MODELS, ids=lambda part: part.__name__)
def test_every_policy_key_is_documented(part: type[Strict]) -> None:
    documented = set(re.findall(r"`([a-z_]+)[`:]|\b([a-z_]+):", (ROOT / "docs/policy.md").read_text()))
    words = {word for pair in documented for word in pair}
    words |= set(re.findall(r"`([a-z_]+)`", (ROOT / "docs/policy.md").read_text()))
    assert set(part.model_fields) - words == set()


def test_every_command_is_in_the_changelog() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    text = (ROOT / "CHANGELOG.md").read_text()
    assert [name for name in commands if f"`{name}`" not in text] == []


def test_every_dependency_has_a_reason() -> None:
    declared = re.findall(r'^  "([a-z]+)[>=]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    reasons = (ROOT / "docs/architecture.md").read_text()
    assert len(declared) >= 5
    assert [name for name in declared if name not in reasons] == []


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "CONTRIBUTING.md"])
def test_the_links_of_the_first_pages_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text())
    assert len(links) >= 3
    assert [link for link in links if not leads_somewhere(link)] == []


def leads_somewhere(link: str) -> bool:
    """Whether the file is there and, where one is named, a heading in it."""
    file, _, heading = link.partition("#")
    if not heading or not (ROOT / file).is_file():
        return (ROOT / file).exists()
    titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(), re.MULTILINE)
    return heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_reference_has_every_public_name_and_no_other() -> None:
    shown = re.findall(r"^::: [\w.]+\.(\w+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(set(sequester.__all__) - {"__version__"})


def test_every_method_is_among_those_to_choose_from() -> None:
    page = (ROOT / "docs/methods.md").read_text()
    assert [name for name in PLACES if f"`{name}`" not in page] == []


def test_the_site_has_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f": {page.name}\n" not in navigation] == []
