"""What happens to a series beside its releases: closed, a release withdrawn, people with other ids. In every store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sequester as sq
from books import Books, tamper
from sequester.ledger import Ledger, Place, shelf
from towns import KEY, SEED, people, rules


@pytest.fixture
def place(books: Books, tmp_path: Path) -> Place:
    (tmp_path / "home").mkdir()
    return replace(books / "first.ledger", home=tmp_path / "home")


def opened(place: Place, **changes: Any) -> sq.Series:
    return sq.Series.open(place, rules(**changes), key=KEY)


def begun(place: Place, *counts: int) -> sq.Series:
    series = opened(place)
    for number, count in enumerate(counts, 1):
        series.publish(people(count), name=f"r{number}", seed=SEED)
    return series


def ledger_of(series: sq.Series) -> Ledger:
    return Ledger.open(series.place, key=KEY, read_only=True)


def agrees(series: sq.Series) -> bool:
    with ledger_of(series) as ledger:
        return ledger.verify(series.folder).problems == () and not ledger.strangers(series.folder)


def renamed(table: pa.Table, column: str = "id") -> pa.Table:
    """The same people with other ids: q7 was p7."""
    ids = [name.replace("p", "q") for name in table["id"].to_pylist()]
    return table.drop_columns("id").append_column(column, pa.array(ids))


def mapping(*numbers: int) -> pa.Table:
    return pa.table({"was": [f"p{n}" for n in numbers], "is": [f"q{n}" for n in numbers]})


COLUMNS: dict[str, Any] = {"old": "was", "new": "is"}


# Closed


def test_nothing_is_planned_or_published_in_a_closed_series(place: Place) -> None:
    series = begun(place, 100)
    made = series.plan(people(160), name="two", seed=SEED)
    step = series.close(reason="the study has ended")
    assert (step.action, step.done, step.facts) == ("closed", True, {"releases": 1})
    for again in (made, people(160)):
        named: dict[str, Any] = {} if again is made else {"name": "two", "seed": SEED}
        with pytest.raises(sq.LedgerError, match=r"the series was closed on .*, and nothing more is published in it"):
            opened(place).publish(again, **named)
    assert series.audit().holds
    assert agrees(series)
    with pytest.raises(sq.LedgerError, match="the series was closed on"):
        series.close()


def test_a_closed_series_is_opened_again(place: Place) -> None:
    series = begun(place, 100)
    with pytest.raises(sq.LedgerError, match="the series is not closed; nothing was changed"):
        series.close(undo=True)
    series.close(reason="by mistake")
    assert series.close(undo=True).action == "reopened"
    series.publish(people(160), name="two", seed=SEED)
    assert agrees(series)


def test_another_series_goes_on_from_a_closed_one(place: Place, books: Books) -> None:
    series = begun(place, 100)
    series.close()
    second = replace(books / "second.ledger", home=place.home)
    after = sq.Series.open(second, rules(series="second"), key=KEY, after=place)
    after.publish(people(160), name="two", seed=SEED)
    assert after.audit().holds
    with pytest.raises(sq.LedgerError, match="another series goes on from this one; nothing was changed"):
        series.close(undo=True)


# Withdrawn


def test_a_withdrawn_release_is_set_aside_and_stays_known(place: Place) -> None:
    series = begun(place, 100, 160)
    told = series.audit().to_dict()
    step = series.withdraw(2, reason="wrong table")
    assert (step.action, step.done, step.facts["number"], step.facts["name"]) == ("withdrawn", True, 2, "r2")
    shown, hidden = series.folder / "first" / "0002-r2", series.folder / "first" / "withdrawn" / "0002-r2"
    assert (shown.exists(), (hidden / "release.json").is_file()) == (False, True)
    assert hidden.parent.stat().st_mode & 0o777 == 0o700
    assert agrees(series)
    with ledger_of(series) as ledger:
        assert ledger.life.withdrawals[2].reason == "wrong table"
        assert [entry.status for entry in ledger.releases()] == ["published"] * 2
    # Nobody is forgotten: the audit is the same, and the next release is judged with it.
    assert series.audit().to_dict() == told
    plan = opened(place).plan(people(220), name="three", seed=SEED)
    assert (plan.number, plan.change.stayers) == (3, 160)
    series.publish(plan)
    assert agrees(series)


def test_what_a_withdrawn_release_told_still_counts(place: Place) -> None:
    """One person of the withdrawn release is missing in the next: the two together would be her."""
    series = sq.Series.open(place, rules(infeasible="refuse"), key=KEY)
    series.publish(people(160), name="one", seed=SEED)
    series.withdraw(1)
    with pytest.raises(sq.GuaranteeError, match="cannot be hidden"):
        series.plan(people(160, leave=(7,)), name="two", seed=SEED)


def test_a_withdrawal_is_undone(place: Place) -> None:
    series = begun(place, 100, 160)
    with pytest.raises(sq.LedgerError, match="release 1 is not withdrawn"):
        series.withdraw(1, undo=True)
    series.withdraw(1)
    with pytest.raises(sq.LedgerError, match="release 1 is withdrawn already"):
        series.withdraw(1)
    assert series.withdraw(1, undo=True).action == "restored"
    assert (series.folder / "first" / "0001-r1" / "report.html").is_file()
    assert agrees(series)
    with pytest.raises(sq.LedgerError, match="there is no release 3 in the ledger"):
        series.withdraw(3)


def test_the_folder_of_a_withdrawn_release_may_be_deleted_and_is_needed_to_undo_it(place: Place) -> None:
    import shutil

    series = begun(place, 100)
    series.withdraw(1)
    hidden = series.folder / "first" / "withdrawn" / "0001-r1"
    kept = shutil.copytree(hidden, place.home / "kept")
    shutil.rmtree(hidden)
    assert agrees(series)
    series.publish(people(160), name="two", seed=SEED)
    with pytest.raises(sq.LedgerError, match="the folder of the withdrawn release is gone; put it back"):
        series.withdraw(1, undo=True)
    shutil.copytree(kept, hidden)
    series.withdraw(1, undo=True)
    assert agrees(series)


def test_a_withdrawn_folder_that_was_changed_or_set_aside_by_hand_is_trouble(place: Place) -> None:
    series = begun(place, 100, 160)
    series.withdraw(1)
    data = series.folder / "first" / "withdrawn" / "0001-r1" / "data.csv"
    data.write_text(data.read_text() + "\n")
    with pytest.raises(sq.LedgerError, match=r"release 1 is not what was recorded \(data.csv\)"):
        series.plan(people(220), name="three", seed=SEED)
    data.write_text(data.read_text()[:-1])
    (series.folder / "first" / "0002-r2").rename(series.folder / "first" / "withdrawn" / "0002-r2")
    with pytest.raises(sq.LedgerError, match="release 2 was published, but its folder is not there"):
        series.plan(people(220), name="three", seed=SEED)


@pytest.mark.parametrize("undo", [False, True])
def test_a_command_that_died_before_the_folder_moved_is_finished_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch, undo: bool
) -> None:
    series = begun(place, 100)
    if undo:
        series.withdraw(1)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt, match="killed"):
            series.withdraw(1, undo=undo)
    assert agrees(series)
    places = {True: series.folder / "first" / "0001-r1", False: series.folder / "first" / "withdrawn" / "0001-r1"}
    assert places[not undo].is_dir()
    opened(place)
    assert (places[undo].is_dir(), places[not undo].is_dir()) == (True, False)
    assert agrees(series)


def test_a_folder_that_cannot_be_moved_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    series = begun(place, 100)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shelf, "arrange", full)
        with pytest.raises(
            sq.LedgerError, match="the ledger has it, but the folder of release 1 cannot be moved: No sp"
        ):
            series.withdraw(1)
    opened(place)
    assert (series.folder / "first" / "withdrawn" / "0001-r1").is_dir()


def test_a_release_of_the_series_before_is_withdrawn_there(place: Place, books: Books) -> None:
    series = begun(place, 100)
    second = replace(books / "second.ledger", home=place.home)
    after = sq.Series.open(second, rules(series="second"), key=KEY, after=place)
    with pytest.raises(sq.LedgerError, match="release 1 is of the series before this one, and can be withdrawn there"):
        after.withdraw(1)
    series.withdraw(1)
    assert agrees(series)


# Other ids


def test_whoever_has_another_id_is_who_she_was(place: Place) -> None:
    series = begun(place, 100)
    step = series.rename_people(mapping(*range(160)), **COLUMNS)
    assert step.facts == {"people": 100, "unchanged": 0, "unknown": 60, "others": 0}
    series = opened(place, person="number")
    plan = series.plan(renamed(people(160), "number"), name="two", seed=SEED)
    assert (plan.change.stayers, plan.change.newcomers, plan.change.leavers) == (100, 60, 0)
    series.publish(plan)
    assert series.audit().holds
    assert agrees(series)
    # From here on the column has this name.
    assert (
        opened(place, person="number").plan(renamed(people(200), "number"), name="x", seed=SEED).change.stayers == 160
    )
    with pytest.raises(sq.PolicyError, match="person: is not what it was when the series began"):
        opened(place)


def test_the_releases_are_those_that_old_ids_would_have_given(tmp_path: Path, place: Place) -> None:
    with_old = begun(Place.of(tmp_path / "other" / "first.ledger"), 100, 160)
    series = begun(place, 100)
    series.rename_people(mapping(*range(100)), **COLUMNS)
    # Rows are sorted by what ids are recorded as, so who is new keeps hers.
    everybody = people(160)
    now = pa.concat_tables([renamed(everybody.slice(0, 100)).select(everybody.column_names), everybody.slice(100)])
    release = series.publish(now, name="r2", seed=SEED)
    assert with_old.folder != series.folder
    old = (with_old.folder / "first" / "0002-r2" / "data.csv").read_bytes()
    assert release.folder is not None
    assert (release.folder / "data.csv").read_bytes() == old


def test_pods_keep_seats_and_decoys_of_people_with_other_ids(place: Place) -> None:
    how = {"method": {"name": "pods"}, "protect__confidence": 0.5, "protect__inferred": 2}
    series = opened(place, **how)
    series.publish(people(60), name="one", seed=SEED)
    with ledger_of(series) as ledger:
        before = ledger.load()
    series.rename_people(mapping(*range(60)), **COLUMNS)
    with ledger_of(series) as ledger:
        after = ledger.load()
    assert before.seats is not None
    assert after.seats is not None
    assert after.seats.seat.tolist() == before.seats.seat.tolist()
    assert series.publish(renamed(people(50)), name="two", seed=SEED).table.num_rows >= 50
    assert series.audit().holds


def test_a_table_with_old_ids_is_refused(place: Place) -> None:
    series = begun(place, 100)
    series.rename_people(mapping(*range(90)), **COLUMNS)
    with pytest.raises(sq.DataError, match="90 ids were replaced by others with a mapping") as caught:
        series.plan(people(160), name="two", seed=SEED)
    assert "p1" not in str(caught.value)


def test_a_mapping_is_undone(place: Place) -> None:
    series = begun(place, 100)
    with pytest.raises(sq.LedgerError, match="nobody got another id, or all of that was undone"):
        series.rename_people(undo=True)
    series.rename_people(mapping(*range(100)), **COLUMNS)
    assert series.rename_people(undo=True, plan=True).done is False
    assert series.rename_people(undo=True).facts["people"] == 100
    with pytest.raises(sq.DataError, match="100 ids were replaced"):
        series.plan(renamed(people(160)), name="two", seed=SEED)
    assert series.plan(people(160), name="two", seed=SEED).change.stayers == 100
    with pytest.raises(sq.LedgerError, match="nobody got another id, or all of that was undone"):
        series.rename_people(undo=True)
    assert agrees(series)
    # And the other way round, by the reverse mapping.
    series.rename_people(mapping(*range(100)), **COLUMNS)
    series.rename_people(mapping(*range(100)), old="is", new="was")
    assert series.plan(people(160), name="two", seed=SEED).change.stayers == 100


def test_people_may_swap_their_ids(place: Place) -> None:
    series = begun(place, 100)
    series.rename_people(pa.table({"was": ["p1", "p2"], "is": ["p2", "p1"]}), **COLUMNS)
    table = people(160)
    ids = [{"p1": "p2", "p2": "p1"}.get(name, name) for name in table["id"].to_pylist()]
    plan = series.plan(table.set_column(0, "id", pa.array(ids)), name="two", seed=SEED)
    assert plan.change.stayers == 100
    with pytest.raises(sq.DataError, match="other values than in an earlier release"):
        series.plan(table, name="two", seed=SEED)


@pytest.mark.parametrize(
    ("was", "now", "error", "message"),
    [
        (["x1", "x2"], ["y1", "y2"], sq.LedgerError, "none of the old ids is known"),
        (["p1", "p1"], ["y1", "y2"], sq.DataError, "1 row is about a person who has an earlier row"),
        (["p1", "p2"], ["y1", "y1"], sq.DataError, "1 row is about a person who has an earlier row"),
        (["p1", "p2"], ["y1", " "], sq.DataError, "1 row does not say who they are about"),
        (["p1", "p2"], ["p3", "p4"], sq.LedgerError, "2 of the new ids are those of other people, who keep theirs"),
        (["p1"], ["p1"], sq.LedgerError, "all of these people have the new ids already"),
    ],
)
def test_a_mapping_that_is_not_one_to_one_is_refused(
    place: Place, was: list[str], now: list[str], error: type[Exception], message: str
) -> None:
    series = begun(place, 20)
    with pytest.raises(error, match=message) as caught:
        series.rename_people(pa.table({"was": was, "is": now}), **COLUMNS)
    assert not any(word in str(caught.value) for word in ("p1", "p3", "y1", "x1"))
    with ledger_of(series) as ledger:
        assert [event.action for event in ledger.log()] == ["created", "begun", "published"]


def test_a_plan_made_before_a_mapping_of_its_newcomers_is_stale(place: Place) -> None:
    """Planned as other people, and then said to be the same ones: each would be there twice."""
    series = begun(place, 100)
    plan = series.plan(renamed(people(160)), name="two", seed=SEED, everybody_is_new=True)
    series.rename_people(mapping(*range(100)), **COLUMNS)
    with pytest.raises(sq.StalePlan, match="people got other ids since this release was planned"):
        series.publish(plan)


def test_whoever_waits_is_known_by_her_new_id(place: Place) -> None:
    series = begun(place, 100)
    plan = series.plan(people(101), name="two", seed=SEED)
    assert plan.waiting.held == 1
    series.publish(plan)
    assert series.rename_people(mapping(*range(101)), **COLUMNS).facts["people"] == 101
    plan = series.plan(renamed(people(101)), name="three", seed=SEED)
    assert (plan.waiting.held, plan.waiting.oldest) == (1, 2)


def test_the_next_series_knows_people_by_their_new_ids(place: Place, books: Books) -> None:
    series = begun(place, 100)
    series.rename_people(mapping(*range(100)), **COLUMNS)
    second = replace(books / "second.ledger", home=place.home)
    after = sq.Series.open(second, rules(series="second", person="number"), key=KEY, after=place)
    assert after.plan(renamed(people(160), "number"), name="two", seed=SEED).change.stayers == 100
    assert agrees(after)


def test_other_ids_survive_export_and_import(place: Place, tmp_path: Path) -> None:
    series = begun(place, 100)
    series.rename_people(mapping(*range(100)), **COLUMNS)
    with ledger_of(series) as ledger:
        ledger.export(tmp_path / "export")
    moved = Place.of(place.home / "moved.ledger")
    Ledger.import_(tmp_path / "export", moved, KEY, releases=series.folder).close()
    again = sq.Series.open(moved, rules(), key=KEY, folder=series.folder)
    assert again.plan(renamed(people(160)), name="two", seed=SEED).change.stayers == 100


@pytest.mark.parametrize("statement", ["UPDATE aliases SET now_low = 5 WHERE low = (SELECT min(low) FROM aliases)",
    "DELETE FROM aliases WHERE low = (SELECT min(low) FROM aliases)", "UPDATE aliases SET change = 99"])  # fmt: skip
def test_a_mapping_that_was_changed_is_noticed(place: Place, statement: str) -> None:
    series = begun(place, 40)
    series.rename_people(mapping(*range(40)), **COLUMNS)
    tamper(place, statement)
    assert not agrees(series)
    with pytest.raises(sq.LedgerError, match=r"damaged|what is recorded of people with other ids was changed"):
        series.plan(renamed(people(60)), name="two", seed=SEED)


def test_a_plan_of_any_of_these_changes_nothing(place: Place) -> None:
    series = begun(place, 60)
    with ledger_of(series) as ledger:
        before = ledger.log()
    steps = [
        series.close(plan=True),
        series.withdraw(1, plan=True),
        series.rename_people(mapping(1), **COLUMNS, plan=True),
    ]
    assert [step.done for step in steps] == [False] * 3
    with ledger_of(series) as ledger:
        assert ledger.log() == before
    assert (series.folder / "first" / "0001-r1").is_dir()


def test_a_reason_is_in_the_log_and_in_no_release(place: Place) -> None:
    series = begun(place, 60)
    series.withdraw(1, reason="c4n4ry Mrs Smith")
    series.close(reason="c4n4ry again")
    series.close(undo=True)
    series.publish(people(100), name="two", seed=SEED)
    files = [file for file in series.folder.rglob("*") if file.is_file()]
    assert len(files) == 8
    assert not any(b"c4n4ry" in file.read_bytes() for file in files)
    with ledger_of(series) as ledger:
        assert sum("c4n4ry" in event.detail for event in ledger.log()) == 2
        assert all("c4n4ry" not in json.dumps(dict(entry.summary)) for entry in ledger.releases())
    with pytest.raises(sq.DataError, match="a reason has at most 1,000 characters"):
        series.close(reason="x" * 1001)


def test_whoever_does_not_agree_is_known_by_her_new_id_too(tmp_path: Path) -> None:
    from consenting import people as asked
    from consenting import rules as asking

    series = sq.Series.open(tmp_path / "c.ledger", asking(), key=KEY)
    table = asked(range(100))
    series.publish(table, name="one", seed=SEED)
    column = series.policy.person
    assert column is not None
    ids = [str(name) for name in table[column].to_pylist()]
    series.rename_people(pa.table({"was": ids, "is": [f"n{name}" for name in ids]}), **COLUMNS)
    later = asked(range(100), refusing=frozenset(range(20)))
    place = later.column_names.index(column)
    with pytest.raises(sq.DataError, match="100 ids were replaced"):
        series.plan(later, name="two", seed=SEED)
    new = later.set_column(place, column, pa.array([f"n{name}" for name in later[column].to_pylist()]))
    plan = series.plan(new, name="two", seed=SEED)
    assert (plan.personal.withdrawn, plan.change.newcomers) == (20, 0)
