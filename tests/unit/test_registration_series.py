"""A registration list in a series: absent people dilute classes, as long as nobody knows who is in a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import sequester as sq
from churn import Ward, rules
from sequester.ledger import Key

KEY = Key.of_text("a key for tests only")


def listed(folder: Path, ward: Ward, people: int) -> sq.Policy:
    """The policy with a list of the first people of the ward."""
    csv.write_csv(ward.table(np.arange(people)).drop_columns(["value"]), folder / "everybody.csv")
    lifetime = {"l": 2.0, "releases": 6, "registered": str(folder / "everybody.csv")}
    return rules(protect__lifetime=lifetime)


def test_every_release_holds_although_few_of_the_list_are_in_it(tmp_path: Path) -> None:
    ward = Ward(21, people=1200)
    series = sq.Series.open(tmp_path / "ward.ledger", listed(tmp_path, ward, 1200), key=KEY)
    sizes = []
    for number in range(3):
        present = np.flatnonzero(ward.random.random(1200) < 0.25)
        ward.value = ward.random.permutation(ward.value)
        plan = series.plan(ward.table(present), name=f"r{number}", seed=2**63 + number)
        assert plan.holds
        assert any("knows who may be in a release, not who is" in note for note in plan.candidate.audit.notes)  # type: ignore[union-attr]
        sizes.append(plan.records / plan.classes)
        series.publish(plan)
    found = series.audit()
    assert found.holds
    assert 0 < found.measures["breach"] <= 0.5
    # The same people, if the adversary may know who is there, need larger classes.
    known = sq.Series.open(tmp_path / "known" / "known.ledger", rules(), key=KEY)
    alone = known.plan(ward.table(present), name="first", seed=2**63 + 1)
    assert sizes[0] < alone.records / alone.classes


def test_whoever_is_in_the_table_must_be_in_the_list(tmp_path: Path) -> None:
    ward = Ward(22)
    series = sq.Series.open(tmp_path / "ward.ledger", listed(tmp_path, ward, 200), key=KEY)
    with pytest.raises(sq.DataError, match="not in it; the list must have everybody") as caught:
        series.plan(ward.table(np.arange(300)), name="first", seed=2**63 + 1)
    assert not any(str(number) in str(caught.value) for number in ("p250", "p299"))


def test_the_list_stays_the_one_that_earlier_releases_rest_on(tmp_path: Path) -> None:
    ward = Ward(24, people=400)
    policy = listed(tmp_path, ward, 380)
    series = sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY)
    series.publish(ward.table(np.arange(150)), name="first", seed=2**63 + 1)
    csv.write_csv(ward.table(np.arange(400)).drop_columns(["value"]), tmp_path / "everybody.csv")
    with pytest.raises(sq.DataError, match="is not the list of the earlier releases"):
        series.plan(ward.table(np.arange(150)), name="second", seed=2**63 + 1)
    # In another order it is the same list.
    shuffled = ward.random.permutation(380)
    csv.write_csv(ward.table(shuffled).drop_columns(["value"]), tmp_path / "everybody.csv")
    assert series.plan(ward.table(np.arange(150)), name="second", seed=2**63 + 1).holds
    from sequester.publish.ahead import look_ahead

    with pytest.raises(sq.PolicyError, match="who of a registration list will come"):
        look_ahead(series.plan(ward.table(np.arange(150)), name="second", seed=2**63 + 1), policy, releases=2)


def test_a_list_without_a_column_is_refused(tmp_path: Path) -> None:
    ward = Ward(23)
    policy = listed(tmp_path, ward, 300)
    csv.write_csv(pa.table({"id": ["p1"], "age": [3]}), tmp_path / "everybody.csv")
    with pytest.raises(sq.DataError, match="zip"):
        sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY).plan(ward.next(), name="first", seed=2**63 + 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": {"name": "mondrian"}}, "only goes with method: group"),
        (
            {
                "protect__against": ["insider", "lifetime"],
                "attributes__value": {"role": "sensitive", "values": "transient", "permanent": ["gout"]},
            },
            "do not know who is in a release",
        ),
    ],
)
def test_a_list_that_helps_nobody_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(sq.PolicyError, match=message):
        rules(protect__lifetime={"l": 2.0, "releases": 6, "registered": "everybody.csv"}, **changes)


def test_the_policy_says_what_the_promise_rests_on() -> None:
    from sequester.policy.describe import promises

    policy = rules(protect__lifetime={"l": 2.0, "releases": 6, "registered": "everybody.csv"})
    assert any("as long as nobody knows which of the people in everybody.csv" in str(said) for said in promises(policy))


def test_nobody_is_in_the_list_twice(tmp_path: Path) -> None:
    ward = Ward(24)
    policy = listed(tmp_path, ward, 200)
    everybody = ward.table(np.arange(200)).drop_columns(["value"])
    person = policy.person
    assert person is not None
    ids = [f" {one}" for one in everybody[person].to_pylist()]
    twice = everybody.set_column(everybody.column_names.index(person), person, pa.array(ids)).slice(0, 40)
    text = pa.chunked_array([pa.array([str(one) for one in everybody[person].to_pylist()])])
    both = [everybody.set_column(everybody.column_names.index(person), person, text), twice]
    csv.write_csv(pa.concat_tables(both), tmp_path / "everybody.csv")
    series = sq.Series.open(tmp_path / "ward.ledger", policy, key=KEY)
    with pytest.raises(
        sq.DataError, match=r"registration list: column .*: 40 rows are about a person who has an earlier"
    ):
        series.plan(ward.table(np.arange(100)), name="first", seed=2**63 + 1)
    csv.write_csv(pa.concat_tables(both).drop_columns([person]), tmp_path / "everybody.csv")
    assert series.plan(ward.table(np.arange(100)), name="first", seed=2**63 + 1).records
