"""Reports of releases: what they say, to whom, and what they must not say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from consenting import KEY, SEED
from policies import changed
from sequester.metrics.placed import place_boxes
from sequester.metrics.sketch import OTHERS, Sketch, sketch
from sequester.publish.reporting import public_page
from sequester.report.parts import Told, margins
from sequester.report.release import release_page

FACTS: dict[str, Any] = {
    "series": "clinic",
    "number": 3,
    "name": "2026-q3",
    "sequester": "0.1.0",
    "method": {"name": "mondrian"},
    "columns": [{"name": "age", "role": "quasi-identifier"}],
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


RANDOM = np.random.default_rng(3)
AGES, TOWNS = RANDOM.integers(0, 99, 400), RANDOM.integers(0, 4, 400)
VALUES = np.array(["flu", "gout", "cold", "lupus", "none"])[np.arange(400) % 5]


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
            "town": {
                "role": "quasi-identifier",
                "kind": "category",
                "hierarchy": {"East": ["Ash", "Birch"], "West": ["Elm", "Fir"]},
            },
            "disease": {"role": "sensitive"},
        },
        "protect": {"k": 4, "confidence": 0.6},
        "method": {"name": "mondrian"},
        "output": {},
    }
    return changed(raw, **changes)


def people(numbers: range) -> pa.Table:
    rows = list(numbers)
    towns = np.array(["Ash", "Birch", "Elm", "Fir"])[TOWNS[rows]]
    return pa.table({"id": [f"p{n}" for n in rows], "age": AGES[rows], "town": towns, "disease": VALUES[rows]})


class Reader(HTMLParser):
    """Collects the text of a page and checks that every tag is closed and that nothing is loaded."""

    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.named: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        assert held.get("href", "#").startswith("#"), "the page needs nothing else"
        assert not {"src", "srcset", "data", "xlink:href", "style", "onload", "onclick"} & set(held)
        assert tag not in ("script", "link", "img", "iframe", "object", "form")
        self.tags.append(tag)
        self.ids += [held["id"]] if held.get("id") else []
        self.named += (held.get("aria-labelledby") or "").split()
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def reader(page: str) -> Reader:
    found = Reader()
    found.feed(page)
    assert found.open == []
    return found


def text_of(page: str) -> str:
    return " ".join(" ".join(reader(page).words).split())


def read(facts: dict[str, Any], policy: sq.Policy | None = None) -> str:
    return text_of(release_page(facts, policy or rules()))


def test_the_page_says_what_is_promised_what_works_and_what_it_cost() -> None:
    text = read(FACTS)
    assert "clinic, release 3: 2026-q3" in text
    assert "What is promised to a person in this table" in text
    assert "every class has at least 5 records 5 5 kept" in text
    assert "People left by subtracting releases (difference; insider) 5 1 broken" in text
    assert "Not tried, and so not promised" in text
    assert "attack why backward, cross (on job) nobody joined" in text
    assert "normalized certainty penalty (NCP), 0 to 1 0.146" in text
    assert "Share of one sensitive value" not in text
    assert "ab" * 32 in text


def test_every_sentence_of_check_is_in_the_report_and_no_other() -> None:
    from sequester.policy.describe import knows, promises, unpromised

    policy = rules()
    text = read(FACTS, policy)
    said = [*map(str, promises(policy)), *unpromised(policy), *(knows(name) for name in policy.protect.against)]
    assert len(said) > 4
    for sentence in said:
        assert sentence in text


def test_ordinary_values_are_named_and_said_to_be_unprotected() -> None:
    text = read(FACTS, rules(attributes__disease__ordinary=["flu", "cold"]))
    assert "disease: flu and cold" in text
    assert "not protected as one" in text
    assert "not protected as one" not in read(FACTS, rules())


def test_recipient_and_purpose_stand_at_the_top() -> None:
    text = read({**FACTS, "recipient": "Institute", "purpose": "planning"})
    assert "for Institute. Purpose: planning." in text


def test_the_share_of_decoys_is_told_and_no_number_by_value() -> None:
    text = read({**FACTS, "weight": 0.96})
    assert "4.0% of the rows are decoys" in text
    assert "decoys" not in read(FACTS)


def test_names_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    page = release_page({**FACTS, "series": hostile, "name": hostile, "recipient": hostile}, rules())
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_a_release_that_leaks_says_so_in_words() -> None:
    assert "published although attacks work" in read(FACTS)
    assert "attacks work" not in read({**FACTS, "holds": True})


@pytest.mark.parametrize("missing", ["checks", "untried", "digests"])
def test_what_a_single_release_does_not_have_is_left_out(missing: str) -> None:
    text = read({key: value for key, value in FACTS.items() if key != missing})
    assert ("all earlier releases together. " in text) == (missing != "checks")
    assert ("Not tried, and" in text) == (missing != "untried")
    assert ("SHA-256" in text) == (missing != "digests")


def published(place: Path, policy: sq.Policy, *tables: pa.Table, **how: Any) -> tuple[sq.Series, list[str]]:
    """A series of these tables, and its public pages."""
    series = sq.Series.open(place / "clinic.ledger", policy, key=KEY)
    pages = []
    for number, table in enumerate(tables, start=1):
        folder = series.publish(table, name=f"r{number}", seed=SEED, again=True, **how).folder
        assert folder is not None
        pages.append((folder / "report.html").read_text())
    return series, pages


def test_the_pages_of_a_series_draw_all_releases_so_far_with_a_table_behind_each_picture(tmp_path: Path) -> None:
    _, (first, second) = published(tmp_path, rules(), people(range(100)), people(range(160)))
    one, two = reader(first), reader(second)
    assert one.tags.count("svg") >= 4
    for found in (one, two):
        assert found.tags.count("svg") == found.tags.count("figure") == found.tags.count("details")
        assert len(found.ids) == len(set(found.ids))
        assert set(found.named) <= set(found.ids)
        assert found.tags.count("h1") == 1
        assert {"main", "header", "footer", "title"} <= set(found.tags)
    assert "the release before: r1" not in text_of(first)
    assert "release before: r1" in text_of(second)
    assert "Rows of every release" in text_of(second)


def test_a_page_draws_no_release_that_went_to_somebody_else(tmp_path: Path) -> None:
    series, _ = published(tmp_path, rules(), people(range(100)), recipient="an institute")
    told = []
    for number, recipient in ((2, "a newspaper"), (3, "an institute")):
        made = series.publish(people(range(160)), name=f"r{number}", seed=SEED, recipient=recipient, again=True)
        assert made.folder is not None
        told.append(text_of((made.folder / "report.html").read_text()))
    assert "r1" not in told[0]
    assert "Rows of every release" not in told[0]
    assert "release before: r1" in told[1]
    assert "newspaper" not in told[1]


def test_the_day_of_a_release_stands_at_the_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(86_400 * 365))
    _, (page,) = published(tmp_path, rules(), people(range(100)))
    assert "published on 1971-01-01" in text_of(page)


def test_a_page_asks_the_browser_to_load_and_run_nothing(tmp_path: Path) -> None:
    _, (page,) = published(tmp_path, rules(), people(range(100)))
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"https?://|url\((?!#)|@import", page)


def test_the_same_table_seed_and_policy_give_the_same_page(tmp_path: Path) -> None:
    tables = people(range(100)), people(range(160))
    _, first = published(tmp_path / "a", rules(), *tables)
    _, again = published(tmp_path / "b", rules(), *tables)
    assert first == again


def test_public_pages_name_sensitive_values_only_where_the_policy_does(tmp_path: Path) -> None:
    values = sorted(set(people(range(100))["disease"].to_pylist()))
    _, (page,) = published(tmp_path / "a", rules(), people(range(100)))
    assert not any(f">{value}<" in page for value in values)
    assert f">{OTHERS}<" in page
    named = rules(attributes__disease__ordinary=[values[0]])
    _, (page,) = published(tmp_path / "b", named, people(range(100)))
    assert f">{values[0]}<" in page
    assert not any(f">{value}<" in page for value in values[1:])


def test_no_public_page_holds_a_person(tmp_path: Path) -> None:
    table = people(range(100))
    ids = [str(one) for one in table["id"].to_pylist()]
    marked = table.set_column(0, "id", pa.array([f"CANARY-{one}" for one in ids]))
    _, pages = published(tmp_path, rules(), marked)
    assert not any("CANARY" in page for page in pages)


def test_a_sketch_survives_the_ledger(tmp_path: Path) -> None:
    series, _ = published(tmp_path, rules(), people(range(100)))
    (entry,) = series.releases()
    kept = Sketch.from_dict(entry.summary["published"])
    folder = next((tmp_path / "releases").glob("*/*"))
    assert kept == sketch(folder / "data.csv", rules())


def test_a_sketch_counts_every_row_once_and_tells_no_number_below_k(tmp_path: Path) -> None:
    release = sq.anonymize(people(range(100)), rules(), seed=SEED)
    found = sketch(release.table, rules())
    assert sum(count for _, _, count in found.sizes) == found.classes
    assert found.rows == 100
    for name, bars in found.spread.items():
        counts = [count for _, count in bars]
        assert all(count is None or count == 0 or count >= rules().protect.k for count in counts), name
        known = sum(count for count in counts if count is not None)
        assert abs(100 - known) <= (rules().protect.k + 1) * len(counts)


def test_values_of_a_box_are_spread_evenly_over_it() -> None:
    table = pa.table({"age": ["[20-39]"] * 10, "town": ["Ash"] * 10, "disease": ["flu"] * 10})
    bars = dict(sketch(table, rules()).spread["age"])
    inside = [count for name, count in bars.items() if count]
    assert sum(inside) == pytest.approx(10, abs=1)
    assert max(inside) - min(inside) <= 1


def test_the_map_keeps_its_two_attributes_and_places_boxes_of_both_releases() -> None:
    policy = rules()
    one = sketch(sq.anonymize(people(range(100)), policy, seed=SEED).table, policy)
    two = sketch(sq.anonymize(people(range(160)), policy, seed=SEED).table, policy, axes=("town", "age"))
    assert one.boxes is not None
    assert two.boxes is not None
    assert two.boxes.axes == ("town", "age")
    alike = sketch(sq.anonymize(people(range(160)), policy, seed=SEED).table, policy, axes=one.boxes.axes)
    assert alike.boxes is not None
    placed = place_boxes(alike.boxes, one.boxes, policy)
    assert len(placed.now) == len(alike.boxes.boxes)
    assert len(placed.before) == len(one.boxes.boxes)
    for box in (*placed.now, *placed.before):
        assert placed.x.low <= box.x[0] <= box.x[1] <= placed.x.high
        assert placed.y.low <= box.y[0] <= box.y[1] <= placed.y.high
    assert place_boxes(alike.boxes, two.boxes, policy).before == ()


def test_ledgers_of_earlier_versions_show_fewer_points(tmp_path: Path) -> None:
    release = sq.anonymize(people(range(100)), rules(), seed=SEED)
    own = Told(2, "r2", 100, FACTS["checks"], sketch(release.table, rules()))
    page = release_page(FACTS, rules(), told=[Told(1, "r1", 90), own])
    assert "Loss of every column" in text_of(page)


def test_a_release_by_itself_has_a_page() -> None:
    release = sq.anonymize(people(range(100)), rules(), seed=SEED)
    text = text_of(public_page(release))
    assert "It stands by itself" in text
    assert "Classes by their size" in text


def test_midpoints_show_no_loss_and_no_boxes() -> None:
    policy = rules(output__numbers="midpoint")
    found = sketch(sq.anonymize(people(range(100)), policy, seed=SEED).table, policy)
    assert found.columns == {}
    assert found.boxes is None
    assert "age" in found.spread


def test_the_internal_report_counts_people_and_says_to_keep_it_private(tmp_path: Path) -> None:
    tables = people(range(100)), people(range(20, 160))
    series, _ = published(tmp_path, rules(), *tables)
    text = text_of(series.report(2, audience="internal"))
    assert "Internal: keep private" in text
    assert "People between releases" in text
    assert "By everything published so far: nobody is exposed." in text
    assert "Worst-off groups" in text
    assert "Name them in order with --data" in text
    with_tables = text_of(series.report(2, audience="internal", tables=tables))
    assert "Each table anonymized on its own" in with_tables
    assert "Before and after" in with_tables
    assert series.report(1) == next((tmp_path / "releases").glob("*/0001-r1/report.html")).read_text()


def test_people_in_the_flow_are_those_of_the_tables(tmp_path: Path) -> None:
    from sequester.publish.reporting import gather

    series, _ = published(tmp_path, rules(infeasible="hold-back"), people(range(100)), people(range(200)))
    with series._ledger(read_only=True) as ledger:
        inside = gather(ledger, rules(infeasible="hold-back"), 2)
    one, two = inside.stages
    assert (one.joined, one.stayed, one.left, one.returned) == (100, 0, 0, 0)
    assert (two.stayed, two.left, two.returned) == (100, 0, 0)
    assert two.people == inside.facts["people"]


def test_findings_of_a_series_that_leaks_are_told_to_the_publisher_only(tmp_path: Path) -> None:
    policy = rules(method={"name": "static"})
    _, pages = published(tmp_path, policy, people(range(200)), people(range(300)), i_know_this_leaks=True)
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    inside = text_of(series.report(2, audience="internal"))
    assert "Finding 1" in inside
    assert "exposed" in inside
    assert "Finding 1" not in text_of(pages[-1])


def test_a_report_that_is_not_what_was_recorded_is_not_handed_out(tmp_path: Path) -> None:
    series, _ = published(tmp_path, rules(), people(range(100)))
    page = next((tmp_path / "releases").glob("*/*/report.html"))
    page.write_text(page.read_text().replace("clinic", "another"))
    with pytest.raises(sq.DataError, match="is not what was recorded"):
        series.report(1)
    page.unlink()
    with pytest.raises(sq.DataError, match="the report is not there"):
        series.report(1)


def test_a_number_that_is_no_release_and_tables_that_are_too_few_are_refused(tmp_path: Path) -> None:
    series, _ = published(tmp_path, rules(), people(range(100)), people(range(160)))
    with pytest.raises(sq.DataError, match="no release 3; there are 2"):
        series.report(3)
    with pytest.raises(sq.DataError, match="1 tables are given; give those of releases 1 to 2"):
        series.report(2, audience="internal", tables=[people(range(100))])


def test_every_requirement_has_its_own_line_and_the_attacks_that_it_is_of() -> None:
    """Otherwise what is required of one attack is drawn above what another reached, as if that were broken."""

    def checks(*series: str) -> list[dict[str, Any]]:
        known = [{"attack": "k", "required": 5, "reached": 6}]
        return known + [{"attack": name, "required": 2, "reached": 2} for name in series]

    told = [Told(1, "a", 9, checks()), Told(2, "b", 9, checks("difference", "tracing"))]
    (picture,) = margins(told)
    assert picture.heads == ("release", "k", "difference; tracing", "required of k", "required of difference; tracing")
    assert picture.rows == (("a", 6, None, 5, 2), ("b", 6, 2, 5, 2))
    alike = [Told(1, "a", 9, checks()), Told(2, "b", 9, checks())]
    assert next(margins(alike)).heads == ("release", "k", "required")
