"""Pages show what experiments gave when they were last run, and what is quickly done gives the same now."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest
from benchmarks import adult
from experiments import byun, fung, minimality
from experiments.__main__ import SUBJECTS
from experiments.record import ROOT, pages, recorded, shown, tables
from experiments.tables import table

from sequester.metrics.loss import ail

PAGE = (ROOT / "docs/experiments.md").read_text(encoding="utf-8")
needs_adult = pytest.mark.skipif(not adult.DATA.exists(), reason=f"Adult is not in {adult.DATA}")


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_table_differs_from_the_record(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert shown(text, recorded()) == text


def test_no_table_of_the_experiments_is_typed_by_hand() -> None:
    before = [
        PAGE[: found.start()].rstrip().splitlines()[-1] for found in re.finditer(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
    ]
    assert len(before) > 15
    assert [line for line in before if not line.startswith("<!-- recorded ")] == []


def test_what_methods_cost_on_their_page_is_what_was_recorded() -> None:
    page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    shown_rows = re.findall(r"^\| `([\w-]+)`(.*?) \| (\.\d+) \| (\.\d+) \|$", page, re.MULTILINE)
    record = cells(recorded()["byun"]["k = 5, c = 0.7 / Average information loss (AIL)"])
    kept = {row[0].split(" (")[0]: (row[1].lstrip("0"), row[-1].lstrip("0")) for row in record}
    kept["mondrian"] = kept["mondrian against insiders and neighbors"]
    found = {method + more: (first, last) for method, more, first, last in shown_rows if method + more in kept}
    assert len(found) == 4
    assert {name: kept[name] for name in found} == found


def test_nothing_is_recorded_of_an_experiment_that_is_not_there() -> None:
    assert set(recorded()) <= set(SUBJECTS)


def test_a_table_is_known_by_its_headings_and_its_caption() -> None:
    small = table(["a"], [[1]])
    text = f"# Page\n\n{small}\n## Part: of 12 rows\n\nLosses:\n\n{small}\nA sentence.\n\n{small}\n### Inner\n\n{small}"
    assert list(tables(text)) == ["Page", "Page / Part / Losses", "Page / Part", "Page / Part / Inner"]
    page = "Before.\n\n<!-- recorded x: Page / Part -->\n\n| old |\n|---|\n| 7 |\n\nAfter.\n"
    assert shown(page, {"x": tables(text)}) == f"Before.\n\n<!-- recorded x: Page / Part -->\n\n{small}\nAfter.\n"


def test_rates_of_minimality_are_those_recorded() -> None:
    first, later = minimality.cases(40, 6, seed=2007), minimality.cases(4, 8, letters="Hbcd", seed=2008)
    found = {
        "One release of six people, 40 random tables": minimality.rates(
            world
            for quasi, values in first
            for world in minimality.known(minimality.once(minimality.METHODS["specialize"], quasi), values).values()
        ),
        "Four people, then four more, 4 random tables": minimality.rates(
            world
            for quasi, values in later
            for world in minimality.known(minimality.twice(*minimality.SERIES["merge"], quasi, 4), values).values()
        ),
    }
    for (title, rates), method in zip(found.items(), ("specialize", "merge"), strict=True):
        (row,) = [row for row in cells(recorded()["minimality"][title]) if row[0] == method]
        assert row[1:] == cells(table(["", *map(str, rates)], [["", *rates]]))[2][1:]


@needs_adult
def test_violations_and_costs_of_two_releases_are_those_recorded() -> None:
    kept = cells(recorded()["fung"]["Fung et al., section 6"])[2:4]
    made = [fung.run_case("Sen1", "200D2", k) for k in (40, 80)]
    assert [row[:-1] for row in cells(fung._cases(made))[2:]] == [row[:-1] for row in kept]  # but for the time


@needs_adult
def test_losses_of_a_growing_table_are_those_recorded() -> None:
    kept = {
        row[0].split(" (")[0]: row[1:3]
        for row in cells(recorded()["byun"]["k = 5, c = 0.7 / Average information loss (AIL)"])
    }
    data = adult.load().take(np.random.default_rng(1).permutation(30_162)[: byun.SIZES[1]].astype(np.int64))
    for name in (
        "static, median cuts",
        "static, gain cuts",
        "merge",
        "grow",
        "mondrian against insiders",
    ):
        history, losses = data.history(byun.SIZES[-1], k=5, confidence=0.7), []
        for size in byun.SIZES[:2]:
            part = data.take(np.arange(size))
            past = part.past(history)
            classes = byun._METHODS[name][0](past, part, part.guard(k=5, confidence=0.7))
            losses.append(f"{ail(classes, part.domains):.3f}")
            history = adult.publish(past, classes)
        assert losses == kept[name], name


MODULES = sorted(
    f"{room}.{file.stem}" for room in ("benchmarks", "experiments") for file in (ROOT / room).glob("[a-z]*.py")
)


@pytest.mark.parametrize("module", MODULES)
def test_every_benchmark_and_experiment_loads(module: str) -> None:
    missing = None
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = str(error.name).split(".")[0]
    # What benchmarks are compared with is installed for them alone.
    assert missing not in ("benchmarks", "experiments", "sequester")
