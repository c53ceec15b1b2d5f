"""The public page of a release."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from sequester.report.page import release_page

FACTS: dict[str, Any] = {
    "series": "clinic",
    "number": 3,
    "name": "2026-q3",
    "sequester": "0.1.0",
    "method": {"name": "mondrian"},
    "columns": [{"name": "age <years>", "role": "quasi-identifier"}],
    "records": 1500,
    "classes": 271,
    "k": 5,
    "confidence": 0.5,
    "loss": {"ail": 0.537, "ncp": 0.146},
    "promises": [{"promise": "every class has at least 5 records", "required": 5.0, "observed": 5.0, "holds": True}],
    "checks": [
        {
            "attack": "difference",
            "adversary": "insider",
            "required": 5.0,
            "reached": 1.0,
            "holds": False,
            "about": "the series",
        },
        {
            "attack": "confidence",
            "adversary": "outsider",
            "required": None,
            "reached": 0.5,
            "holds": True,
            "about": "each release",
        },
    ],
    "untried": [{"attacks": ["backward", "cross"], "why": "nobody joined", "on": ["job"]}],
    "holds": False,
    "digests": {"data": "ab" * 32},
}


class Reader(HTMLParser):
    """Collects the text of a page and checks that every tag is closed."""

    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name in ("src", "href") for name, _ in attrs), "the page needs nothing else"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def read(facts: dict[str, Any]) -> str:
    reader = Reader()
    reader.feed(release_page(facts))
    assert reader.open == []
    return " ".join(" ".join(reader.words).split())


def test_the_page_says_what_is_promised_what_works_and_what_it_cost() -> None:
    text = read(FACTS)
    assert "clinic, release 3: 2026-q3" in text
    assert "every class has at least 5 records 5 5 kept" in text
    assert "People left by subtracting releases insider 5 1 broken" in text
    assert "Not tried, and so not promised attack why backward, cross (on job) nobody joined" in text
    assert "normalized certainty penalty (NCP), 0 to 1 0.146" in text
    assert "Share of one sensitive value" not in text
    assert "ab" * 32 in text


def test_names_are_escaped() -> None:
    assert "age &lt;years&gt;" in release_page(FACTS)
    assert "<script>" not in release_page({**FACTS, "name": "<script>"})


def test_a_release_that_leaks_says_so_in_words() -> None:
    assert "published although attacks work" in read(FACTS)
    assert "attacks work" not in read({**FACTS, "holds": True})


@pytest.mark.parametrize("missing", ["checks", "untried", "digests"])
def test_what_a_single_release_does_not_have_is_left_out(missing: str) -> None:
    text = read({key: value for key, value in FACTS.items() if key != missing})
    assert ("all earlier releases together" in text) == (missing != "checks")
    assert ("Not tried" in text) == (missing != "untried")
    assert ("SHA-256" in text) == (missing != "digests")
