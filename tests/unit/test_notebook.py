"""What notebooks show of objects: blocks of the report that leave the notebook around them as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from sequester.report import results
from sequester.viewable import Viewable
from towns import KEY, SEED, VALUES, people, rules

SHOWN = ("Audit", "Finding", "Measurement", "Plan", "Policy", "Rehearsal", "Release", "Series")
PRIVATE = ("Audit", "Finding")


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of each, of a series that leaks; people are p0, p1, ..."""
    folder = tmp_path_factory.mktemp("series")
    series = sq.Series.open(folder / "first.ledger", rules(method={"name": "static"}), key=KEY)
    series.publish(people(150), name="q1", seed=SEED, recipient="the archive")
    plan = series.plan(people(200, leave=(3, 4)), name="q2", seed=SEED + 1)
    release = series.publish(plan, i_know_this_leaks=True)
    audit = series.audit()
    assert not audit.holds
    return {
        "Audit": audit,
        "Finding": next(one for one in audit.findings if one.value is not None),
        "Measurement": release.measurement,
        "Plan": plan,
        "Policy": series.policy,
        "Rehearsal": sq.rehearse([people(150), people(200)], rules(), methods=["merge"], processes=1),
        "Release": release,
        "Series": series,
    }


def words(html: str) -> str:
    without = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", without).split())


def test_everything_with_a_view_is_public_and_has_one() -> None:
    assert set(results._VIEWS) == set(SHOWN)
    for name in SHOWN:
        assert issubclass(getattr(sq, name), Viewable)


@pytest.mark.parametrize("name", SHOWN)
def test_a_view_is_one_closed_frame_that_styles_nothing_else(things: dict[str, Any], name: str) -> None:
    html = things[name]._repr_html_()
    assert html.startswith('<div class="sq"')
    assert html.endswith("</div>")
    assert html.count("<div") == html.count("</div>")
    assert "<script" not in html
    assert not re.search(r"(src|href)=|url\((?!#)|@import", html)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    plain = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    # Of a group such as @media only what is in it selects something.
    selectors = [one.strip() for one in re.findall(r"([^{}]+)\{", plain) if not one.strip().startswith("@")]
    assert len(selectors) > 20
    for selector in selectors:
        for part in selector.split(","):
            assert re.search(r"\.sq\b", part), part


@pytest.mark.parametrize("name", [name for name in SHOWN if name not in PRIVATE])
def test_what_may_be_shown_around_has_no_value_no_person_and_no_seed(things: dict[str, Any], name: str) -> None:
    said = words(things[name]._repr_html_())
    assert not [value for value in set(VALUES) if re.search(rf"\b{value}\b", said)]
    assert not re.search(r"\bp\d+\b", said)
    assert str(SEED)[:8] not in said
    assert "Keep private" not in said


@pytest.mark.parametrize("name", PRIVATE)
def test_what_names_values_says_that_it_is_private(things: dict[str, Any], name: str) -> None:
    said = words(things[name]._repr_html_())
    assert "Keep private" in said
    assert any(re.search(rf"\b{value}\b", said) for value in set(VALUES))


def test_views_say_what_their_objects_say(things: dict[str, Any]) -> None:
    said = {name: words(thing._repr_html_()) for name, thing in things.items()}
    assert str(things["Audit"].exposed) in said["Audit"]
    assert re.search(r"\b1 q1 20\d\d-", said["Series"])
    assert re.search(r"\b2 q2 20\d\d-", said["Series"])
    assert "the archive" in said["Series"]
    assert f"Release 2 of first, 0002-q2, by static: {things['Plan'].records} records" in said["Plan"]
    assert "would work on the series with this release" in said["Plan"]
    for cause in things["Plan"].why:
        who = cause.who if cause.attack == "series" else " of ".join(filter(None, (cause.attack, cause.attribute)))
        told = f"{who} {cause.classes} {cause.people} " if cause.what == "coarse" else str(cause)
        assert told in said["Plan"]
    assert things["Plan"].why
    assert "first, release 2: q2" in said["Release"]
    assert "does not hold" in said["Release"]
    assert "Every class" in said["Policy"] or "every class" in said["Policy"]
    assert "never published" in said["Policy"]


def test_a_series_whose_ledger_is_gone_shows_that_and_is_no_error(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "first.ledger", rules(), key=KEY)
    assert "nothing was published yet" in words(series._repr_html_())
    series.place.file.unlink()
    assert "cannot be read now" in words(series._repr_html_())


def test_the_view_of_a_policy_names_no_value_of_a_hierarchy() -> None:
    said = words(rules()._repr_html_())
    assert "town" in said
    assert not any(place in said for place in ("Paris", "France", "Milan"))
