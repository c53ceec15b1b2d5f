"""Pictures: every number is in the table behind it, nothing is told by colour alone, and a file of its own is SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from sequester.metrics.placed import MapAxis, PlacedBox
from sequester.report.blocks import (
    Block,
    Bullets,
    Cards,
    Grid,
    Heading,
    Paragraph,
    Pictures,
    Remark,
    to_html,
    to_page,
    to_view,
)
from sequester.report.canvas import Picture, in_words, page_style, picture_style
from sequester.report.charts import Curve, Trend, bars, curves, histogram, lines
from sequester.report.charts_boxes import box_map, heat
from sequester.report.charts_flow import Stage, flow
from sequester.ticks import nice

HOSTILE = '</svg><script>"&'
RULER = MapAxis("age", 0, 100, ((0, "0"), (100, "100")))
PICTURES = {
    "lines": lines(HOSTILE, ["a", HOSTILE], [Trend(HOSTILE, [1, None]), Trend("required", [2, 2], required=True)]),
    "curves": curves(HOSTILE, [Curve(HOSTILE, [(3, 0.2), (5, 0.4)])], x_name="k", y_name=HOSTILE),
    "bars": bars(HOSTILE, [HOSTILE, "b"], {"before": [3, None], HOSTILE: [0, 5]}),
    "histogram": histogram(HOSTILE, [HOSTILE, "6"], [3, 0], x_name=HOSTILE, y_name="classes"),
    "box_map": box_map(HOSTILE, [PlacedBox((1, 5), (2, 8), HOSTILE)], [PlacedBox((0, 5), (0, 8), "b")], (RULER, RULER)),
    "heat": heat(HOSTILE, [HOSTILE], ["a", "b"], [[3, None]]),
    "flow": flow(HOSTILE, [Stage(HOSTILE, 0, 10), Stage("b", 8, 3, 1, 2)]),
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_svg_with_a_title_and_a_description_even_of_hostile_names(name: str) -> None:
    picture = PICTURES[name]
    root = ElementTree.fromstring(picture.file())
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    assert [one.tag.removeprefix(SVG) for one in list(root)[:2]] == ["title", "desc"]
    assert [one.get("id") for one in list(root)[:2]] == named
    assert root[0].text == HOSTILE
    assert "<script" not in picture.file() + picture.figure()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_stays_inside_its_frame(name: str) -> None:
    picture = PICTURES[name]
    for x, y in re.findall(r'<(?:rect|text|circle) (?:c?x)="([-\d.]+)" (?:c?y)="([-\d.]+)"', picture.body):
        assert 0 <= float(x) <= picture.width
        assert 0 <= float(y) <= picture.height


@pytest.mark.parametrize("name", PICTURES)
def test_a_figure_has_its_table_behind_it(name: str) -> None:
    figure = PICTURES[name].figure()
    assert figure.index("<figcaption>") < figure.index("<svg") < figure.index("<details") < figure.index("<table>")
    for row in PICTURES[name].rows:
        assert len(row) == len(PICTURES[name].heads)
        for value in row:
            assert (
                in_words(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
                in figure
            )


def test_series_differ_in_more_than_their_colour() -> None:
    trends = [Trend(f"t{n}", [n + 1.0, n + 2.0]) for n in range(8)]
    body = lines("many", ["a", "b"], trends).body
    paths = re.findall(r'<path d="M[^"]*L[^"]*" class="l k(\d)"( stroke-dasharray="[^"]*")?/>', body)
    assert len({dash for _, dash in paths}) == 8
    hatched = bars("two", ["a"], {"before": [1], "after": [2]}).body
    assert "url(#h" in hatched


def test_a_gap_breaks_a_line() -> None:
    body = lines("gap", ["a", "b", "c", "d"], [Trend("t", [1, None, 3, 4])]).body
    drawn = re.findall(r'class="l k1"', body)
    assert drawn
    path = next(path for path in re.findall(r'd="([^"]*)"', body) if path.count("M") == 2)
    assert path.count("L") == 1


def test_bars_are_as_long_as_their_numbers() -> None:
    body = bars("b", ["a", "b", "c"], {"rows": [100, 50, 0]}).body
    wide = [float(width) for width in re.findall(r'width="([\d.]+)"[^>]*class="f1', body)]
    assert wide[1] == pytest.approx(wide[0] / 2, rel=0.01)
    assert wide[2] == 0


def test_bands_of_a_flow_are_as_thick_as_their_people() -> None:
    body = flow("f", [Stage("a", 0, 100), Stage("b", 50, 0, 0, 50)]).body
    high = [float(height) for height in re.findall(r'height="([\d.]+)" class="f1', body)]
    assert high[1] == pytest.approx(high[0] / 2, rel=0.01)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ((0, 7), [0, 2, 4, 6, 8]),
        ((3, 3), [3, 4, 5, 6]),
        ((-2, 2), [-2, -1, 0, 1, 2]),
    ],
)
def test_ticks_are_round_and_cover_the_range(ends: tuple[float, float], expected: list[float]) -> None:
    assert nice(*ends) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (5, "5"),
        (1234567, "1,234,567"),
        (0.12345, "0.123"),
        (1234.56, "1,234.6"),
        (float("nan"), ""),
        (True, "yes"),
    ],
)
def test_numbers_are_written_as_people_read_them(value: object, text: str) -> None:
    assert in_words(value) == text


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        digits = colour.lstrip("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("which", [0, 1])
def test_text_can_be_read_in_the_light_and_in_the_dark(which: int) -> None:
    found = re.findall(r"--([a-z0-9]+): (#[0-9a-f]+)", picture_style())
    half = len(found) // 3
    colours = dict(found[which * half : (which + 1) * half])
    for text in ("ink", "soft", "good", "bad", "c1"):
        for behind in ("page", "card"):
            assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)
    assert contrast(colours["markink"], colours["mark"]) >= 4.5
    for number in range(1, 9):
        assert contrast(colours[f"c{number}"], colours["page"]) >= 3


BLOCKS: list[Block] = [
    Heading("Title <of> all", 1),
    Remark("keep private", "private"),
    Cards(((1500, "rows"), (None, "nothing"), (0.123, "loss"))),
    Heading("Part"),
    Paragraph("Words & more."),
    Grid(("what", "n"), (("a", 1), ("b", None)), "numbers"),
    Bullets(("one", "two"), numbered=True),
    Pictures((PICTURES["bars"],)),
]


def test_a_page_has_every_block_and_no_figure_that_is_not_there() -> None:
    page = to_html(BLOCKS)
    assert "<h1>Title &lt;of&gt; all</h1>" in page
    assert "<b>1,500</b><span>rows</span>" in page
    assert "nothing" not in page
    assert "<ol><li>one</li><li>two</li></ol>" in page
    assert '<div class="note private" role="note"><p>keep private</p></div>' in page


def test_a_page_has_landmarks_a_language_and_a_way_past_its_head() -> None:
    page = to_page("Title", BLOCKS, foot="made here")
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert '<a class="jump" href="#main">' in page
    assert re.search(r'<header><h1>.*</header><main id="main"><h2>.*</main><footer>made here</footer>', page, re.DOTALL)
    assert page.count("<h1>") == 1
    assert '<meta name="robots" content="noindex">' in page


def test_a_view_for_a_notebook_styles_nothing_but_itself() -> None:
    view = to_view(BLOCKS)
    assert "<h1>" not in view
    assert "<h3>Title" in view
    for rule in re.findall(r"(?:^|[{}])([^{}@]+)\{", re.sub(r"@media[^{]*\{", "", page_style())):
        for selector in rule.split(","):
            assert ".sq" in selector, selector


def test_a_long_table_is_not_printed_and_a_short_one_is() -> None:
    short, long = (Picture("t", "d", 10, 10, "", ("a",), tuple((n,) for n in range(size))) for size in (40, 41))
    assert '<details class="long">' in long.figure()
    assert "<details>" in short.figure()
