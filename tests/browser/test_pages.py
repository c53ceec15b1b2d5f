"""Every page as somebody sees it: on a phone and a desk, by day and by night, on paper, by keyboard, by ear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium import LOOKS, Look, Seen, brightness, colours, looked_at, sheets, violations
from pages import ATTEMPTS, HOSTILE, NAMES, PLAIN

every_page = pytest.mark.parametrize("name", NAMES)
# Whatever hostile names do, they do by day and by night.
LOOKED_AT = [(name, look) for name in PLAIN for look in LOOKS] + [(name, LOOKS[1]) for name in HOSTILE]


@pytest.fixture(scope="module", params=LOOKED_AT, ids=lambda one: f"{one[0]}, {one[1]}")
def seen(request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]) -> Iterator[Seen]:
    """A page in one look, with everything open that can be opened."""
    name, look = request.param
    with looked_at(browser, pages[name], look) as opened:
        opened.page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")
        yield opened


# What a keyboard reaches, one press of the tab key after the other, until it comes round.
FOCUSED = """() => {
    const here = document.activeElement;
    if (!here || here === document.body) return null;
    const all = [...document.querySelectorAll("*")];
    return all.indexOf(here);
}"""

# Contrast (WCAG) of every word in a drawing with the page behind it.
CONTRASTS = """() => {
    const light = colour => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
        const [r, g, b] = parts.map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll(".sq svg text")].map(word => {
        const page = light(getComputedStyle(word.closest(".sq")).backgroundColor);
        const ink = light(getComputedStyle(word).fill);
        return (Math.max(page, ink) + 0.05) / (Math.min(page, ink) + 0.05);
    });
}"""


@pytest.fixture(scope="module")
def counter(browser: Any) -> Iterator[Any]:
    """An empty page whose canvas counts colours."""
    page = browser.new_page()
    yield page
    page.close()


def pictures(seen: Seen) -> list[Any]:
    return seen.page.locator("svg:not(svg svg)").all()


def test_a_page_says_nothing_to_the_console_and_asks_for_nothing(seen: Seen) -> None:
    seen.page.wait_for_load_state("networkidle")
    assert seen.said == []
    assert seen.asked_for == []


def test_everybody_can_read_a_page(seen: Seen) -> None:
    assert violations(seen.page) == []


def test_nothing_is_wider_than_the_screen(seen: Seen) -> None:
    wide, screen = seen.page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= screen


def test_pictures_are_there_and_not_blank(seen: Seen, counter: Any) -> None:
    for picture in pictures(seen):
        box = picture.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 8
        counts = colours(counter, picture.screenshot())
        # Letters alone have many shades, and marks more pixels than lines do.
        assert len(counts) > 2
        assert max(counts.values()) < 0.995 * sum(counts.values())


def test_words_in_pictures_stand_out_from_the_page(seen: Seen) -> None:
    """axe does not look into drawings."""
    found = seen.page.evaluate(CONTRASTS)
    assert found == [] or min(found) >= 4.5


@pytest.mark.parametrize("name", ["third", "audit", "notebook"])
def test_pages_have_pictures(browser: Any, pages: dict[str, Path], name: str) -> None:
    """So that nothing is said about none."""
    with looked_at(browser, pages[name]) as seen:
        assert len(pictures(seen)) >= 2
        assert len(seen.page.evaluate(CONTRASTS)) > 10


def test_a_blank_picture_would_be_noticed(browser: Any, counter: Any, tmp_path: Path) -> None:
    (tmp_path / "blank.html").write_text(
        '<svg width="90" height="90"><rect width="90" height="90" fill="white"/></svg>'
    )
    with looked_at(browser, tmp_path / "blank.html") as seen:
        (picture,) = pictures(seen)
        assert len(colours(counter, picture.screenshot())) == 1


@pytest.mark.parametrize("name", [name for name in NAMES if "notebook" not in name])
def test_the_page_is_dark_by_night_light_by_day_and_on_paper(browser: Any, pages: dict[str, Path], name: str) -> None:
    def ground(look: Look) -> float:
        with looked_at(browser, pages[name], look) as seen:
            return brightness(seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor"))

    assert ground(Look(dark=False)) > 0.9
    assert ground(Look(dark=True)) < 0.2
    assert ground(Look(printed=True)) > 0.9
    assert ground(Look(printed=True, dark=True)) > 0.9


@every_page
def test_a_page_can_be_printed(browser: Any, pages: dict[str, Path], name: str) -> None:
    with looked_at(browser, pages[name], Look(printed=True)) as seen:
        assert sheets(seen.page.pdf(format="A4")) >= 1


@every_page
def test_everything_that_opens_is_reached_and_opened_by_keyboard(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    with looked_at(browser, pages[name]) as seen:
        wanted = seen.page.evaluate(
            "() => { const all = [...document.querySelectorAll('*')];"
            " return [...document.querySelectorAll('summary')].map(one => all.indexOf(one)); }"
        )
        reached = set()
        for _ in range(4 * len(wanted) + 40):
            seen.page.keyboard.press("Tab")
            place = seen.page.evaluate(FOCUSED)
            if place is None or (place in reached and place == min(reached)):
                break
            if place in wanted and place not in reached:
                seen.page.keyboard.press("Enter")
                assert seen.page.evaluate("() => document.activeElement.parentElement.open")
            reached.add(place)
        assert set(wanted) <= reached


@every_page
def test_a_page_is_the_same_without_scripts(browser: Any, pages: dict[str, Path], name: str) -> None:
    def content(look: Look) -> tuple[str, int]:
        with looked_at(browser, pages[name], look) as seen:
            return seen.page.inner_text("body"), len(pictures(seen))

    assert content(Look(scripts=False)) == content(Look())
    assert len(content(Look())[0]) > 500


def test_what_a_hostile_page_tries_is_noticed(browser: Any, tmp_path: Path) -> None:
    """The test of the tests: the same names, not escaped, are seen to run and to load."""
    (tmp_path / "open.html").write_text("".join(ATTEMPTS))
    with looked_at(browser, tmp_path / "open.html") as seen:
        seen.page.wait_for_load_state("networkidle")
        assert {"alert: script", "alert: attribute", "alert: svg"} <= set(seen.said)
        assert [address.rsplit("/", 1)[1] for address in seen.asked_for] == ["missing.png"]
