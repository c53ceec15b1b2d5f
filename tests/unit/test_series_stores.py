"""A series is the same wherever its ledger is kept: one body for files and for a server."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from books import Books
from sequester.ledger import Ledger, Place
from sequester.publish import commit
from towns import KEY, SEED, people, rules


@pytest.fixture
def place(books: Books, tmp_path: Path) -> Place:
    (tmp_path / "home").mkdir()
    return replace(books / "first.ledger", home=tmp_path / "home")


def open_series(place: Place, **changes: Any) -> sq.Series:
    return sq.Series.open(place, rules(**changes), key=KEY)


def agree(series: sq.Series) -> list[str]:
    """Ledger, folders and head agree; returns the releases."""
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        assert ledger.verify(series.folder).problems == ()
        return [f"{entry.name} {entry.status}" for entry in ledger.releases()]


def test_releases_are_planned_published_and_audited(place: Place) -> None:
    series = open_series(place)
    series.publish(people(100), name="one", seed=SEED)
    plan = series.plan(people(200), name="two", seed=SEED)
    assert (plan.number, plan.change.newcomers, plan.change.stayers) == (2, 100, 100)
    open_series(place).publish(plan)
    assert agree(series) == ["one published", "two published"]
    assert series.audit().holds
    with pytest.raises(sq.StalePlan, match="was published already"):
        series.publish(plan)


def test_the_same_tables_give_the_same_releases_on_both(tmp_path: Path, place: Place) -> None:
    other = Place.of(tmp_path / "other" / "first.ledger")
    made = []
    for where in (place, other):
        series = open_series(where)
        made.append([series.publish(people(count), name=f"r{count}", seed=SEED).table for count in (100, 200)])
    assert all(one.equals(two) for one, two in zip(*made, strict=True))
    loaded = []
    for where in (place, other):
        with Ledger.open(where, key=KEY, read_only=True) as ledger:
            loaded.append(([entry.tables for entry in ledger.releases()], ledger.load().values.tolist()))
    assert loaded[0] == loaded[1]


def test_until_the_first_release_the_policy_may_change(place: Place) -> None:
    open_series(place)
    changed = open_series(place, protect__k=3)
    changed.publish(people(100), name="one", seed=SEED)
    assert agree(changed) == ["one published"]
    with pytest.raises(sq.PolicyError, match=r"protect\.k: is not what it was"):
        open_series(place)


@pytest.mark.parametrize("stop", ["begun", "shown"])
def test_what_was_interrupted_is_put_in_order(place: Place, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    series = open_series(place)
    series.publish(people(100), name="one", seed=SEED)

    def die(name: str) -> None:
        if name == stop:
            raise KeyboardInterrupt(stop)

    with monkeypatch.context() as patched:
        patched.setattr(commit, "step", die)
        with pytest.raises(KeyboardInterrupt):
            series.publish(people(200), name="two", seed=SEED)
    assert "finished" in open_series(place).recovered[0]
    assert agree(series) == ["one published", "two published"]


def test_what_was_begun_on_another_machine_is_not_undone_from_here(
    books: Books, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On that machine the release may be visible: it is never taken back where nobody can see that."""
    if books.store == "file":
        pytest.skip("a file is on one machine")
    series = open_series(place)
    series.publish(people(100), name="one", seed=SEED)

    def die(name: str) -> None:
        if name == "begun":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(commit, "step", die)
        patched.setattr(platform, "node", lambda: "elsewhere")
        with pytest.raises(KeyboardInterrupt):
            series.publish(people(200), name="two", seed=SEED)
    drafts = place.releases / "first" / ".0002-two.draft"
    drafts.rename(place.home / "on the other machine")
    with pytest.raises(sq.DataError, match=r"elsewhere:.*is not looked at from here.*counts it as published"):
        open_series(place)
    found = sq.Series.open(place, rules(), key=KEY, accept_loss=True)
    assert "counts as published" in found.recovered[0]
    assert agree(found) == ["one published", "two published"]


def test_a_new_series_goes_on_from_an_old_one(books: Books, place: Place) -> None:
    old = open_series(place)
    old.publish(people(100), name="one", seed=SEED)
    later = replace(books / "second.ledger", home=place.home)
    new = sq.Series.open(later, rules(series="second"), key=KEY, after=place)
    new.publish(people(200), name="two", seed=SEED)
    assert agree(new) == ["one published", "two published"]
    with pytest.raises(sq.LedgerError, match="another series goes on from this one"):
        old.publish(people(200), name="three", seed=SEED)


def test_a_ledger_moves_from_one_store_to_the_other_and_back(books: Books, place: Place, tmp_path: Path) -> None:
    series = open_series(place)
    series.publish(people(100), name="one", seed=SEED)
    heads, at = [series.releases()[-1].hash], place
    for number, to in enumerate((Place.of(tmp_path / "there" / "first.ledger"), books / "back.ledger")):
        with Ledger.open(at, key=KEY, read_only=True) as ledger:
            export = ledger.export(tmp_path / f"export{number}")
        # The folders stay where they are.
        with Ledger.import_(export, to, KEY, releases=place.releases) as ledger:
            heads.append(ledger.head)
            assert ledger.verify(place.releases).holds
        at = to
    assert len(set(heads)) == 1
