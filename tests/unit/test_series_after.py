"""A new series of the same people goes on from the old one: what was published then is known, and counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from sequester.ledger import Ledger
from towns import KEY, SEED, TREE, people, rules


@pytest.fixture
def old(tmp_path: Path) -> sq.Series:
    series = sq.Series.open(tmp_path / "old.ledger", rules(), key=KEY)
    series.publish(people(100), name="one", seed=SEED)
    series.publish(people(200), name="two", seed=SEED)
    return series


def go_on(old: sq.Series, **changes: Any) -> sq.Series:
    policy = rules(series="second", **changes)
    return sq.Series.open(old.place.file.with_name("new.ledger"), policy, key=KEY, after=old.place.file)


def test_what_a_forgetful_new_series_would_leak_is_not_published(old: sq.Series, tmp_path: Path) -> None:
    """One person leaves: a series without memory publishes the rest, and old minus new is she."""
    policy = rules(infeasible="refuse", series="forgetful")
    forgetful = sq.Series.open(tmp_path / "forgetful.ledger", policy, key=KEY)
    with pytest.raises(sq.DataError, match="series: first has releases of a table with the same columns"):
        forgetful.plan(people(200, leave=(7,)), name="three", seed=SEED)
    lie: dict[str, Any] = {"everybody_is_new": True}
    assert forgetful.publish(people(200, leave=(7,)), name="three", seed=SEED, **lie).table.num_rows == 199
    knowing = go_on(old, infeasible="refuse")
    with pytest.raises(sq.GuaranteeError, match="cannot be hidden"):
        knowing.plan(people(200, leave=(7,)), name="three", seed=SEED)


def test_the_first_release_of_the_new_series_is_judged_with_all_of_the_old(old: sq.Series) -> None:
    new = go_on(old, protect__confidence=0.7)
    plan = new.plan(people(260), name="three", seed=SEED)
    assert (plan.number, plan.series, plan.change.newcomers, plan.change.stayers) == (3, "second", 60, 200)
    release = new.publish(plan)
    assert release.folder is not None
    assert release.folder.name == "0003-three"
    assert new.audit().holds
    assert [entry.name for entry in new.releases()] == ["one", "two", "three"]
    with Ledger.open(new.place.file, key=KEY, read_only=True) as ledger:
        assert (ledger.series, ledger.carried) == ("second", 2)
        assert ledger.verify(new.folder).holds
        assert [event.action for event in ledger.log()][-4:] == ["handed over", "carried over", "begun", "published"]
    assert sq.Series.open(new.place.file, new.policy, key=KEY).releases()[-1].name == "three"


def test_nothing_more_is_published_with_the_old_ledger(old: sq.Series) -> None:
    made = old.plan(people(260), name="three", seed=SEED)
    new = go_on(old)
    for again in (made, people(260)):
        named: dict[str, Any] = {} if again is made else {"name": "three", "seed": SEED}
        with pytest.raises(sq.LedgerError, match="another series goes on from this one and would not know"):
            old.publish(again, **named)
    with Ledger.open(old.place.file, key=KEY) as ledger:
        assert ledger.successor == "second"
        assert ledger.verify(old.folder).holds
    assert old.audit().holds
    new.publish(people(260), name="three", seed=SEED)
    with Ledger.open(old.place.file, key=KEY, read_only=True) as ledger:
        assert ledger.verify(old.folder).holds


def test_only_one_series_goes_on_from_another(old: sq.Series) -> None:
    go_on(old)
    with pytest.raises(sq.LedgerError, match="another series goes on from this one already"):
        sq.Series.open(old.place.file.with_name("third.ledger"), rules(series="third"), key=KEY, after=old.place.file)


def test_a_hand_over_that_died_half_way_is_repeated(old: sq.Series, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt("killed")

    with monkeypatch.context() as patched:
        patched.setattr("sequester.ledger.transfer.carry_over", die)
        with pytest.raises(KeyboardInterrupt, match="killed"):
            go_on(old)
    assert len(go_on(old).releases()) == 2


def test_the_policy_names_the_old_ledger_relative_to_itself(old: sq.Series, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    lines = [
        "version: 1", "series: second", "person: id", "after: old.ledger", "attributes:",
        "  age: {role: quasi-identifier, kind: number, range: [0, 59], levels: [5, 20]}",
        "  town: {role: quasi-identifier, hierarchy: {Europe: [{France: [Paris, Lyon]}, {Italy: [Rome, Milan]}]}}",
        "  value: {role: sensitive}", "protect: {k: 4, confidence: 0.6}",
    ]  # fmt: skip
    file.write_text("\n".join(lines) + "\n")
    series = sq.Series.open(tmp_path / "new.ledger", sq.Policy.load(file), key=KEY)
    assert len(series.releases()) == 2


def test_the_key_goes_with_the_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQUESTER_KEY", raising=False)
    old = sq.Series.open(tmp_path / "old.ledger", rules())
    old.publish(people(100), name="one", seed=SEED)
    new = sq.Series.open(tmp_path / "new.ledger", rules(series="second"), after=old.place.file)
    assert (tmp_path / "new.ledger.key").read_bytes() == (tmp_path / "old.ledger.key").read_bytes()
    assert (tmp_path / "new.ledger.key").stat().st_mode & 0o777 == 0o600
    assert sq.Series.open(new.place.file, new.policy).plan(people(200), name="two", seed=SEED).change.stayers == 100


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"attributes__value": {"role": "sensitive", "values": "transient"}}, "attributes.value"),
        ({"attributes__age": {"role": "quasi-identifier", "kind": "number", "range": [0, 40]}}, "attributes.age"),
        ({"person": "number"}, "person"),
    ],
)
def test_what_cannot_be_carried_over_is_an_error(old: sq.Series, changes: dict[str, Any], key: str) -> None:
    if "transient" in str(changes):
        changes = {**changes, "protect__lifetime": {"l": 2, "releases": 5}, "protect__against": ["lifetime"]}
        changes["method"] = {"name": "group"}
    with pytest.raises(sq.PolicyError, match="is not what it was in the series before") as caught:
        go_on(old, **changes)
    assert [problem.key for problem in caught.value.problems] == [key]
    assert not old.place.file.with_name("new.ledger").exists()


def test_a_new_series_has_another_name_and_an_old_one_with_releases(old: sq.Series, tmp_path: Path) -> None:
    with pytest.raises(sq.PolicyError, match="series: is the name of the series before"):
        sq.Series.open(tmp_path / "new.ledger", rules(), key=KEY, after=old.place.file)
    empty = sq.Series.open(tmp_path / "empty" / "empty.ledger", rules(), key=KEY)
    with pytest.raises(sq.PolicyError, match="after: nothing was published with this ledger"):
        sq.Series.open(tmp_path / "new.ledger", rules(series="second"), key=KEY, after=empty.place.file)


@pytest.mark.parametrize("method", ["mondrian", "cluster", "full-domain", "specialize", "merge", "grow"])
@pytest.mark.parametrize("against", [["insider"], ["insider", "neighbor"]], ids="-".join)
def test_a_running_series_takes_a_wider_range_and_new_leaves(tmp_path: Path, method: str, against: list[str]) -> None:
    made = {"method": {"name": method}, "protect__against": against}
    series = sq.Series.open(tmp_path / "s.ledger", rules(**made), key=KEY)
    series.publish(people(150), name="one", seed=SEED)
    tree = {"Europe": [*TREE["Europe"], {"Spain": ["Madrid", "Vigo"]}]}
    age = {"role": "quasi-identifier", "kind": "number", "range": [-5, 90], "levels": [5, 20]}
    wider = rules(**made, attributes__age=age, attributes__town={"role": "quasi-identifier", "hierarchy": tree})
    series = sq.Series.open(series.place, wider, key=KEY)
    new = {n: ("Madrid", "Vigo")[n % 2] for n in range(200, 250)}
    table = people(300, age=dict.fromkeys(range(200, 225), 85), town=new)
    release = series.publish(table, name="two", seed=SEED)
    assert release.table.num_rows == 300
    assert series.audit().holds
    assert sq.Series.open(series.place, wider, key=KEY).plan(table, name="three", seed=SEED).holds
    with pytest.raises(sq.PolicyError, match="is not what it was when the series began"):
        sq.Series.open(series.place, rules(**made), key=KEY)


def test_new_leaves_inside_published_boxes_are_refused_where_boxes_are_all_that_is_known(tmp_path: Path) -> None:
    tree = {"Europe": [{"France": ["Paris", "Nice", "Lyon"]}, TREE["Europe"][1]]}
    for against, refused in ((["insider"], False), (["insider", "neighbor"], True)):
        series = sq.Series.open(tmp_path / f"{refused}" / "s.ledger", rules(protect__against=against), key=KEY)
        series.publish(people(60), name="one", seed=SEED)
        wider = rules(protect__against=against, attributes__town={"role": "quasi-identifier", "hierarchy": tree})
        series = sq.Series.open(series.place, wider, key=KEY)
        if refused:
            with pytest.raises(sq.PolicyError, match=r"new values lie inside \d+ boxes published before"):
                series.plan(people(120), name="two", seed=SEED)
        else:
            assert series.plan(people(120), name="two", seed=SEED).holds


def test_a_series_that_began_on_its_own_does_not_go_on_from_another(old: sq.Series) -> None:
    with pytest.raises(sq.PolicyError, match="after: was not there when the series began"):
        sq.Series.open(old.place.file, rules(after="other.ledger"), key=KEY)


def test_attributes_in_another_order_are_refused(old: sq.Series) -> None:
    given = old.policy.model_dump(exclude_unset=True)
    given["attributes"] = dict(reversed(given["attributes"].items()))
    with pytest.raises(sq.PolicyError, match="attributes: are not in the order in which they were"):
        sq.Series.open(old.place.file, sq.Policy.model_validate(given), key=KEY)
