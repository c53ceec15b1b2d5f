"""Registration lists: the lifetime adversary knows who may be in a release, and not who is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest

import sequester as sq
from audited import nameless, noted, table

LIFETIME = {"k": 1, "confidence": 0.9, "lifetime": {"l": 2, "releases": 2}, "against": ["lifetime"]}
ILL = {"role": "sensitive", "values": "transient", "ordinary": ["none"]}
AGE = {"role": "quasi-identifier", "kind": "number", "range": [0, 99]}
ROWS = ["1 [20-29] flu", "2 [20-29] none", "3 [30-39] none", "4 [30-39] none"]


def policy(protect: dict[str, Any] = LIFETIME, *, person: str | None = "id", age: dict[str, Any] = AGE) -> sq.Policy:
    given = {"version": 1, "series": "s", "attributes": {"age": AGE | age, "ill": ILL}, "protect": protect}
    return sq.Policy.model_validate(given | ({"person": person} if person else {}))


EVERYBODY = table("1 21", "2 22", "3 31", "4 32", "7 23", "8 24", names="id age")


def test_without_a_list_two_releases_of_one_half_each_are_three_quarters() -> None:
    found = sq.audit([table(*ROWS), table(*ROWS)], policy())
    (finding,) = found.findings
    assert (finding.attack, finding.people, finding.observed) == ("breach", ("1", "2"), 0.75)


@pytest.mark.parametrize("names", [True, False], ids=["publisher's view", "outsider's view"])
def test_registered_people_who_may_be_in_a_class_share_its_rows(names: bool) -> None:
    releases = [table(*ROWS), table(*ROWS)] if names else nameless(table(*ROWS), table(*ROWS))
    found = sq.audit(releases, policy(), registered=EVERYBODY)
    assert found.holds
    assert found.measures["breach"] == 7 / 16
    assert noted(found, "knows who may be in a release, not who is")
    assert not noted(found, "lacks")


def test_the_list_may_be_a_file_and_its_values_belong_to_the_domain(tmp_path: Path) -> None:
    csv.write_csv(EVERYBODY, tmp_path / "all.csv")
    rules = policy(age={"range": None})
    found = sq.audit(nameless(table(*ROWS), table(*ROWS)), rules, registered=tmp_path / "all.csv")
    assert found.measures["breach"] == 7 / 16


def test_findings_that_rest_on_boxes_that_overlap_say_so() -> None:
    rows = table("[20-29] flu", "[20-29] none", "[25-39] none", "[25-39] none", names="age ill")
    people = table("1 21", "2 26", "3 31", "4 32", names="id age")
    found = sq.audit([rows, rows], policy(), registered=people)
    (finding,) = found.findings
    assert (finding.observed, finding.witness["overlapping"]) == (0.75, True)
    assert noted(found, "1 finding has an upper bound of the chance, because boxes of one release overlap")
    assert "is at most 75%" in found.explain(1)
    apart = sq.audit(nameless(table(*ROWS), table(*ROWS)), policy(), registered=EVERYBODY.slice(0, 4))
    assert "overlapping" not in apart.findings[0].witness
    assert not noted(apart, "upper bound")


def test_a_list_that_lacks_people_of_a_release_leaves_a_note() -> None:
    found = sq.audit([table(*ROWS)], policy(), registered=EVERYBODY.slice(1, 2))
    assert noted(found, "lacks at least 2 people of a release, about whom breach says nothing")


def test_a_list_goes_by_the_published_classes_where_a_population_merges_them() -> None:
    rows = table("[20-29] flu", "[20-29] none", "[25-39] flu", "[25-39] none", "[50-59] flu", names="age ill")
    people = table("1 26", "2 27", "3 28", "4 29", "5 51", names="id age")
    found = sq.audit([rows], policy(), population=[people], registered=people)
    assert noted(found, "2 classes are taken together as 1")
    assert [(finding.attack, finding.classes) for finding in found.findings] == [
        ("confidence", ((1, 3),)),
        ("breach", ((1, 3),)),
    ]
    # Merged, the class would be the second.
    assert all("class 3: 1 x [50-59] | flu" in found.explain(number) for number in (1, 2))


def test_a_list_nobody_asked_for_is_not_used_and_that_is_noted() -> None:
    found = sq.audit([table(*ROWS)], policy({"k": 2, "against": ["outsider"]}), registered=EVERYBODY)
    assert noted(found, "the registration list is not used")


@pytest.mark.parametrize(
    ("people", "person", "message"),
    [
        (EVERYBODY.drop_columns(["id"]), "id", "registration list: column 'id': is not in the table"),
        (EVERYBODY.drop_columns(["age"]), "id", "registration list: column 'age': is not in the table"),
        (table("1 21", "1 22", names="id age"), "id", "registration list: column 'id'"),
        (table("1 [20-29]", names="id age"), "id", "registration list: column 'age': 1 row has a value that is not"),
        (EVERYBODY, None, "a registration list needs a column that says who a row is about"),
    ],
    ids=["no person", "no quasi-identifier", "somebody twice", "not raw", "no person in the policy"],
)
def test_what_is_no_registration_list_is_refused(people: pa.Table, person: str | None, message: str) -> None:
    with pytest.raises(sq.DataError, match=re.escape(message)):
        sq.audit(nameless(table(*ROWS)), policy({"k": 2, "against": ["outsider"]}, person=person), registered=people)
