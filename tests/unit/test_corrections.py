"""People whose cells that do not change did change: told by column and row, or held out as a set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sequester as sq
from towns import AGES, KEY, SEED, TOWNS, VALUES, people, rules

OTHER = {"flu": "cold", "cold": "flu", "asthma": "gout", "gout": "asthma"}


def opened(folder: Path, **changes: Any) -> sq.Series:
    series = sq.Series.open(folder / "first.ledger", rules(**changes), key=KEY)
    series.publish(people(100), name="one", seed=SEED)
    return series


def corrected(count: int, *numbers: int) -> dict[int, str]:
    assert max(numbers) < count
    return {n: OTHER[VALUES[n]] for n in numbers}


def test_the_error_names_columns_and_rows_and_no_cell(tmp_path: Path) -> None:
    series = opened(tmp_path)
    far = {n: int((AGES[n] + 30) % 60) for n in (4, 9)}
    moved = {20: "Rome" if TOWNS[20] != "Rome" else "Paris"}
    table = people(150, value=corrected(100, 2, 3), age=far, town=moved)
    with pytest.raises(sq.DataError, match="other values than in an earlier release") as caught:
        series.plan(table, name="two", seed=SEED)
    told = {problem.column: (problem.rows, problem.message) for problem in caught.value.problems}
    assert told["age"][0] == 2
    assert "(rows 5, 10)" in told["age"][1]
    assert told["value"][0] == 2
    assert "(rows 3, 4)" in told["value"][1]
    # Inside the published boxes nobody can tell which one it was.
    assert (told.keys() - {"age", "value"}) in ({"town"}, {None})
    assert "begin a new series" not in str(caught.value)
    assert not any(word in str(caught.value) for word in ("flu", "Rome", "p2"))


def test_rows_are_numbered_as_in_the_table_where_others_were_left_out(tmp_path: Path) -> None:
    age = {"role": "quasi-identifier", "kind": "number", "range": [0, 59], "levels": [5, 20], "missing": "suppress"}
    series = opened(tmp_path, attributes__age=age)
    table = people(150, value=corrected(100, 2), age={0: None})
    with pytest.raises(sq.DataError, match=r"1 person has other values than in an earlier release \(row 3\); put"):
        series.plan(table, name="two", seed=SEED)


def test_whoever_was_corrected_is_held_out_with_all_who_leave(tmp_path: Path) -> None:
    series = opened(tmp_path, corrections="hold-out")
    gone = (2, 3, 4, 5, 40, 41, 42, 43)
    plan = series.plan(people(160, leave=gone[4:], value=corrected(100, *gone[:4])), name="two", seed=SEED)
    assert plan.holds
    assert (plan.change.leavers, plan.change.newcomers, plan.change.stayers) == (8, 60, 92)
    assert plan.waiting.retained in (0, 8)
    series.publish(plan)
    assert series.audit().holds


def test_a_corrected_person_who_cannot_be_hidden_is_published_on_as_she_was(tmp_path: Path) -> None:
    series = opened(tmp_path, corrections="hold-out")
    plan = series.plan(people(160, value=corrected(100, 2)), name="two", seed=SEED)
    assert (plan.change.leavers, plan.waiting.retained, plan.records) == (1, 1, 160)
    assert plan.candidate is not None
    before, now = series.publish(plan).table["value"], people(160)["value"]
    assert sorted(before.to_pylist()) == sorted(now.to_pylist())


def test_with_refuse_a_corrected_person_alone_stops_the_release(tmp_path: Path) -> None:
    series = opened(tmp_path, corrections="hold-out", infeasible="refuse")
    with pytest.raises(sq.GuaranteeError, match="cannot be hidden"):
        series.plan(people(160, value=corrected(100, 2)), name="two", seed=SEED)


def keeping(folder: Path, **changes: Any) -> sq.Series:
    return opened(folder, **{"corrections": "keep", **changes})


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True), key=str)


def test_what_is_kept_is_published_as_if_no_cell_had_been_corrected(tmp_path: Path) -> None:
    """The whole release is the same, byte for byte: nobody can tell that there was a correction."""
    wrong = corrected(100, 2, 3, 40)
    plain, kept = (keeping(tmp_path / name) for name in ("plain", "kept"))
    without = plain.publish(people(160), name="two", seed=SEED)
    plan = kept.plan(people(160, value=wrong), name="two", seed=SEED)
    assert (plan.change.stayers, plan.change.leavers, plan.waiting.corrected) == (100, 0, 3)
    assert plan.personal.graded == 0
    assert any("value: fewer than 4); they are published as they were" in note for note in plan.notes)
    with_them = kept.publish(plan)
    assert with_them.table.equals(without.table)
    assert kept.releases()[-1].summary["waiting"]["corrected"] == 3
    assert kept.audit().holds


def test_a_kept_correction_is_still_held_in_later_releases(tmp_path: Path) -> None:
    series = keeping(tmp_path, protect__against=["insider", "neighbor"])
    wrong = corrected(100, *range(2, 9))
    for name, count in (("two", 160), ("three", 200)):
        plan = series.plan(people(count, value=wrong), name=name, seed=SEED)
        assert plan.waiting.corrected == 7
        assert any("7 people have cells that must not change" in note for note in plan.notes)
        series.publish(plan)
    assert series.audit(against=["insider", "neighbor"]).holds
    # Put right again, there is nothing to hold back.
    assert series.plan(people(220), name="four", seed=SEED).waiting.corrected == 0


@pytest.mark.parametrize("against", [["insider"], ["insider", "neighbor"]], ids="-".join)
def test_a_corrected_quasi_identifier_stays_inside_every_box_it_was_published_with(
    tmp_path: Path, against: list[str]
) -> None:
    series = keeping(tmp_path, protect__against=against)
    far = {n: int((AGES[n] + 30) % 60) for n in (4, 9, 11)}
    moved = {20: "Rome" if TOWNS[20] != "Rome" else "Paris"}
    for name, count in (("two", 160), ("three", 200)):
        plan = series.plan(people(count, age=far, town=moved), name=name, seed=SEED)
        assert (plan.waiting.corrected, plan.change.leavers, plan.records) == (4, 0, count)
        series.publish(plan)
    from sequester.ledger import Ledger

    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        state = ledger.load()
        number = ledger.match(ledger.identify(pa.array(["p4", "p9", "p11", "p20"])))
    for axis in range(2):
        boxes = [
            (
                [release.domains[state.quasi[axis]].names[0][code] for code in release.lo[axis, at]],
                [release.domains[state.quasi[axis]].names[0][code] for code in release.hi[axis, at]],
            )
            for release, at in ((one, state.path[state.trajectory[number], n]) for n, one in enumerate(state.releases))
        ]
        place = state.domains[state.quasi[axis]].names[0].index
        low = [max(place(lo[n]) for lo, _ in boxes) for n in range(4)]
        high = [min(place(hi[n]) for _, hi in boxes) for n in range(4)]
        assert all(first <= last for first, last in zip(low, high, strict=True))
    assert series.audit().holds


def test_a_corrected_insensitive_cell_is_shown_as_it_was(tmp_path: Path) -> None:
    ward = {"role": "insensitive"}

    def table(count: int, **odd: str) -> pa.Table:
        wards = [odd.get(f"p{n}", "east" if n % 3 else "west") for n in range(count)]
        return people(count).append_column("ward", pa.array(wards))

    series = sq.Series.open(tmp_path / "w.ledger", rules(corrections="keep", attributes__ward=ward), key=KEY)
    series.publish(table(100), name="one", seed=SEED)
    release = series.publish(table(160, p1="north", p5="north"), name="two", seed=SEED)
    assert "north" not in release.table["ward"].to_pylist()
    assert series.releases()[-1].summary["waiting"]["corrected"] == 2


def test_pods_keep_corrected_people_at_their_seats(tmp_path: Path) -> None:
    series = keeping(tmp_path, method={"name": "pods"}, protect__confidence=0.5, protect__inferred=2)
    plan = series.plan(people(160, value=corrected(100, 2, 3), age={5: 59}), name="two", seed=SEED)
    assert plan.holds
    assert plan.waiting.corrected in (2, 3)
    series.publish(plan)
    assert series.audit().holds


def test_a_value_that_moved_too_far_is_kept_in_reach(tmp_path: Path) -> None:
    age = {"role": "quasi-identifier", "kind": "number", "range": [0, 70], "changes": {"by": [0, 1]}}
    jumped = {n: int((AGES[n] + 30) % 60) for n in (4, 9)}
    refused = opened(tmp_path / "refused", attributes__age=age)
    with pytest.raises(sq.DataError, match="2 people have moved further"):
        refused.plan(people(160, age=jumped), name="two", seed=SEED)
    series = keeping(tmp_path / "kept", attributes__age=age, protect__against=["insider", "neighbor"])
    for name, count in (("two", 160), ("three", 200)):
        plan = series.plan(people(count, age=jumped), name=name, seed=SEED)
        assert plan.waiting.corrected == 2
        series.publish(plan)
    assert series.audit(against=["insider", "neighbor"]).holds


def test_notes_about_corrections_have_columns_and_counts_and_no_cell(tmp_path: Path) -> None:
    canary = dict.fromkeys(range(6), "c4n4ry")
    series = keeping(tmp_path)
    plan = series.plan(people(160, value=canary), name="two", seed=SEED)
    assert plan.waiting.corrected == 6
    assert "c4n4ry" not in plan.to_json() + str(plan.notes) + repr(plan)
    release = series.publish(plan)
    assert release.folder is not None
    assert release.folder.is_dir()
    assert all("c4n4ry" not in file.read_text() for file in release.folder.iterdir())


@pytest.mark.parametrize("method", ["pods", "mondrian", "cluster", "full-domain", "specialize", "merge", "grow"])
def test_no_method_makes_another_release_of_a_table_whose_corrections_are_kept(tmp_path: Path, method: str) -> None:
    how = {"method": {"name": method}, "protect__confidence": 0.5, "protect__inferred": 2}
    wrong = {n: OTHER[VALUES[n]] for n in range(0, 100, 7)}
    made = []
    for folder, cells in (("plain", {}), ("kept", wrong)):
        series = keeping(tmp_path / folder, **how)
        made.append(series.publish(people(140, leave=(3, 4, 5, 6, 8, 9), value=cells), name="two", seed=SEED).table)
    assert made[0].equals(made[1])


def test_corrections_are_not_kept_beside_a_registration_list(tmp_path: Path) -> None:
    from churn import rules as listed

    lifetime = {"l": 2.0, "releases": 6, "registered": "everybody.csv"}
    with pytest.raises(sq.PolicyError, match="corrections: people who are published as they were may not be where"):
        sq.Series.open(tmp_path / "l.ledger", listed(protect__lifetime=lifetime, corrections="keep"), key=KEY)
