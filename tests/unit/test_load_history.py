"""From published tables to histories: the three views, and every way in which releases do not fit together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaded import load_histories
from sequester.errors import DataError
from sequester.history.load import find_members, histories_of
from sequester.history.population import inside, locate
from sequester.history.releases import read_releases
from sequester.policy.model import Policy

CANARY = "canary-5d1f"


def policy(protect: dict | None = None, output: dict | None = None, person: str | None = "id", **attributes) -> Policy:
    columns = {
        "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
        "sex": {"role": "quasi-identifier", "hierarchy": {"Person": ["F", "M"]}},
        "ill": {"role": "sensitive"},
    }
    columns |= attributes
    given_ = {"version": 1, "series": "s", "attributes": {n: a for n, a in columns.items() if a}}
    given_ |= {"protect": protect or {"k": 2, "confidence": 0.5}, "output": output or {}}
    return Policy.model_validate(given_ | ({"person": person} if person else {}))


def table(*rows: str, names: str = "id age sex ill") -> pa.Table:
    cells = [row.split() for row in rows]
    return pa.table({name: [row[place] for row in cells] for place, name in enumerate(names.split())})


FIRST = table("1 [20-29] * flu", "2 [20-29] * hiv", "3 [40-49] F flu", "4 [40-49] F flu")
SECOND = table("5 [20-59] M flu", "1 [20-45] F flu", "2 [20-59] M hiv", "3 [20-45] F flu")


def without_people(*tables: pa.Table) -> list[pa.Table]:
    return [one.drop_columns(["id"]) for one in tables]


def problems(call) -> str:
    with pytest.raises(DataError, match=r".") as caught:
        call()
    return str(caught.value)


def test_the_publishers_view_knows_who_is_where_with_which_value():
    (history,) = load_histories([FIRST, SECOND], policy())
    assert history.people == ("1", "2", "3", "4", "5")
    assert history.attribute == "ill"
    assert history.values == ("flu", "hiv")
    assert history.bounds == (Fraction(1, 2), Fraction(1, 2))
    first, second = history.releases
    assert [release.name for release in history.releases] == ["release 1", "release 2"]
    classes = [
        [{p for p, c in zip(history.people, r.member, strict=True) if c == at} for at in range(len(r))]
        for r in (first, second)
    ]
    assert sorted(map(sorted, classes[0])) == [["1", "2"], ["3", "4"]]
    assert sorted(map(sorted, classes[1])) == [["1", "3"], ["2", "5"]]
    assert second.member[3] == -1
    assert [history.values[v] for v in history.value] == ["flu", "hiv", "flu", "flu", "flu"]
    assert history.trajectories is not None
    assert len(history.trajectories) == 5


def test_rows_stay_in_their_published_order_and_boxes_share_their_domains():
    (history,) = load_histories(
        without_people(FIRST, SECOND), policy(age={"role": "quasi-identifier", "kind": "number"})
    )
    for release, published in zip(history.releases, (FIRST, SECOND), strict=True):
        assert [history.values[v] for v in release.row_value] == published["ill"].to_pylist()
        for cells, row in zip(published["age"].to_pylist(), release.row_class, strict=True):
            low, high = cells.strip("[]").split("-")
            leaves = history.domains[0].leaves
            assert (leaves[release.lo[0, row]], leaves[release.hi[0, row]]) == (float(low), float(high))
        assert np.array_equal(np.bincount(release.row_class), release.size)


def test_the_outsiders_view_knows_nobody():
    (history,) = load_histories(without_people(FIRST, SECOND), policy())
    assert history.people == ()
    assert history.trajectories is None
    assert [release.member for release in history.releases] == [None, None]


def test_ids_of_a_frame_and_of_a_file_are_the_same_people(tmp_path):
    csv.write_csv(SECOND, tmp_path / "second.csv")
    numbers = FIRST.set_column(0, "id", pa.array([1, 2, 3, 4]))
    (history,) = load_histories([numbers, tmp_path / "second.csv"], policy())
    assert history.people == (1, 2, 3, 4, "5")
    assert history.releases[1].name == "second.csv"


def test_files_with_one_name_are_told_apart_by_their_folder(tmp_path):
    for folder, release in (("a", FIRST), ("b", SECOND)):
        (tmp_path / folder).mkdir()
        csv.write_csv(release, tmp_path / folder / "data.csv")
    paths = [str(tmp_path / folder / "data.csv") for folder in "ab"]
    (history,) = load_histories(paths, policy())
    assert [release.name for release in history.releases] == paths


@pytest.mark.parametrize(
    ("combine", "views"),
    [("each", ["ill", "job"]), ("joint", ["ill and job"]), ("both", ["ill", "job", "ill and job"])],
)
def test_there_is_one_history_per_sensitive_view(combine, views):
    jobs = {"role": "sensitive", "values": "transient", "ordinary": ["none"]}
    ills = {"role": "sensitive", "confidence": {"hiv": 0.2, "*": 0.5}}
    asked = policy({"k": 2, "confidence": 0.5, "sensitive": combine, "against": ["outsider"]}, job=jobs, ill=ills)
    releases = [
        r.append_column("job", pa.array(["none", "cook", "none", "none"])) for r in without_people(FIRST, SECOND)
    ]
    found = {history.attribute: history for history in load_histories(releases, asked)}
    assert list(found) == views
    if "ill and job" in found:
        joint = found["ill and job"]
        bounds = dict(zip(joint.values, joint.bounds, strict=True))
        assert bounds == {
            "flu and none": Fraction(1, 2),
            "flu and cook": Fraction(1, 2),
            "hiv and cook": Fraction(1, 5),
            "hiv and none": Fraction(1, 5),
        }
        assert not joint.permanent
    if "job" in found:
        assert dict(zip(found["job"].values, found["job"].bounds, strict=True)) == {"cook": Fraction(1, 2), "none": 1}
        assert [found["ill"].permanent, found["job"].permanent] == [True, False]


def test_without_confidence_every_value_is_free():
    (history,) = load_histories([FIRST], policy({"k": 2}))
    assert history.bounds == (1, 1)


def test_without_a_sensitive_attribute_there_is_one_free_value_without_a_name():
    (history,) = load_histories([FIRST, SECOND], policy({"k": 2}, ill=None))
    assert (history.attribute, history.values, history.bounds) == ("", ("",), (1,))
    assert history.releases[0].counts.tolist() == [[2], [2]]


def test_attributes_that_change_do_not_link():
    ages = {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True}
    (history,) = load_histories([FIRST, SECOND], policy(age=ages))
    assert history.links.tolist() == [False, True]


def test_midpoints_do_not_link_and_the_notes_say_so():
    middles = [
        r.set_column(1, "age", pa.array(ages)) for r, ages in ((FIRST, [24, 24, 44, 44]), (SECOND, [40, 30, 40, 30]))
    ]
    (history,) = load_histories(middles, policy(output={"numbers": "midpoint"}))
    assert history.links.tolist() == [False, True]
    assert any("midpoints" in note for note in history.notes)


def test_bounds_in_two_columns_are_read_as_one_interval():
    ends = {"age_min": [20, 20, 40, 40], "age_max": [29, 29, 49, 49]}
    apart = pa.table({**ends, "sex": FIRST["sex"], "ill": FIRST["ill"]})
    (history,) = load_histories([*without_people(FIRST), apart], policy())
    first, second = history.releases
    assert np.array_equal(first.lo, second.lo)
    assert np.array_equal(first.hi, second.hi)


def test_one_release_is_allowed():
    (history,) = load_histories([FIRST], policy())
    assert history.notes == ()


def test_rows_left_out_and_sets_that_are_no_interval_are_noted():
    states = {"role": "quasi-identifier", "missing": "suppress"}
    rows = [None, "{a, c}", "b", "{a, c}"]
    first = FIRST.append_column("state", pa.array(rows)).drop_columns(["id"])
    (history,) = load_histories([first], policy(state=states))
    assert any("1 row without a value left out" in note for note in history.notes)
    assert any("2 rows with a set of values that are no neighbours" in note for note in history.notes)
    assert len(history.releases[0].row_class) == 3


def test_a_value_of_the_policy_that_no_release_has_is_noted():
    (history,) = load_histories([FIRST], policy({"k": 2, "confidence": {"hvi": 0.2}}))
    assert any("hvi" in note for note in history.notes)


def test_every_problem_of_every_release_is_in_one_error():
    broken = without_people(FIRST)[0].drop_columns(["sex"])
    text = problems(lambda: load_histories([broken, FIRST.slice(0, 0), SECOND.drop_columns(["ill"])], policy()))
    assert "release 1: column 'sex': is not in the table" in text
    assert "release 2: the table has no rows" in text
    assert "release 3: column 'ill': is not in the table" in text


def test_cells_that_generalize_nothing_are_counted_not_quoted():
    strange = SECOND.set_column(2, "sex", pa.array([CANARY, "M", CANARY, "F"]))
    text = problems(lambda: load_histories([FIRST, strange], policy()))
    assert "release 2: column 'sex': 2 rows have a value that is not understood" in text
    assert CANARY not in text


def test_cells_that_generalize_nothing_are_shown_on_request():
    strange = SECOND.set_column(2, "sex", pa.array([CANARY, "M", CANARY, "F"]))
    with pytest.raises(DataError, match="not understood") as caught:
        load_histories([FIRST, strange], policy(), show_values=True)
    assert caught.value.problems[0].values == (CANARY,)


def test_a_sensitive_value_outside_its_hierarchy_is_an_error():
    ills = {"role": "sensitive", "hierarchy": {"any": ["flu", "cold"]}}
    with pytest.raises(DataError, match="release 1: column 'ill': 1 row has a value that is not understood"):
        load_histories([FIRST], policy(ill=ills))


def test_a_person_column_in_only_some_releases_is_an_error_that_says_where_it_lacks():
    with pytest.raises(DataError, match="release 2: column 'id': is not in this release, but other releases have it"):
        load_histories([FIRST, *without_people(SECOND)], policy())


def test_a_person_twice_or_missing_in_one_release_is_an_error():
    twice = FIRST.set_column(0, "id", pa.array([CANARY, CANARY, None, "4"]))
    text = problems(lambda: load_histories([twice, SECOND], policy()))
    assert "release 1: column 'id': 1 row does not say who they are about (row 3)" in text
    assert "release 1: column 'id': 1 row is about a person who has an earlier row (row 2)" in text
    assert CANARY not in text


def test_ids_that_differ_only_in_blanks_are_one_person_and_so_an_error():
    blanks = FIRST.set_column(0, "id", pa.array(["1", " 1", "3", "4"]))
    with pytest.raises(
        DataError, match="release 1: column 'id': 1 row is about a person who has an earlier row"
    ) as error:
        load_histories([blanks], policy())
    assert "blanks around an id" in str(error.value)


def test_a_permanent_value_that_changes_is_an_error_and_a_transient_one_is_not():
    later = SECOND.set_column(3, "ill", pa.array(["flu", CANARY, "flu", "flu"]))
    text = problems(lambda: load_histories([FIRST, later], policy()))
    assert "column 'ill': 2 people have different values in different releases" in text
    assert CANARY not in text
    single = {"k": 2, "confidence": 0.5, "against": ["outsider"]}
    (history,) = load_histories([FIRST, later], policy(single, ill={"role": "sensitive", "values": "transient"}))
    assert not history.permanent
    assert history.value is None
    assert history.releases[1].value is not None


def test_boxes_of_one_person_that_exclude_each_other_are_an_error_unless_the_attribute_changes():
    moved = SECOND.set_column(1, "age", pa.array(["[20-59]", "[60-70]", "[20-59]", "[60-70]"]))
    with pytest.raises(DataError, match="column 'age': 2 people have values in different releases that exclude"):
        load_histories([FIRST, moved], policy())
    ages = {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True}
    assert len(load_histories([FIRST, moved], policy(age=ages))[0]) == 2


@pytest.mark.parametrize(
    ("releases", "more", "message"),
    [
        ([], {}, "there is no release"),
        ("first.csv", {}, "must be a list"),
        (FIRST, {}, "must be a list"),
        ([FIRST, SECOND], {"population": [FIRST]}, "1 population tables for 2 releases"),
        ([FIRST], {"population": FIRST}, "population tables must be a list"),
    ],
)
def test_what_is_no_list_of_releases_is_refused(releases, more, message):
    with pytest.raises(DataError, match=message):
        load_histories(releases, policy(), **more)


PEOPLE = table("1 22 F", "2 27 M", "3 45 F", "4 41 F", names="id age sex")
LATER = table("1 22 F", "2 27 M", "3 45 F", "5 50 M", names="id age sex")


def test_a_population_finds_everybody_by_her_box():
    (history,) = load_histories(without_people(FIRST, SECOND), policy(), population=[PEOPLE, LATER])
    (known,) = load_histories([FIRST, SECOND], policy())
    assert history.people == known.people
    for found, true in zip(history.releases, known.releases, strict=True):
        assert np.array_equal(found.member, true.member)
        assert found.value is None
    assert history.value is None


def test_people_who_fit_no_box_are_absent_and_noted():
    more = pa.concat_tables([PEOPLE, table("9 70 F", names="id age sex")])
    (history,) = load_histories(without_people(FIRST), policy(), population=[more])
    assert history.releases[0].member[4] == -1
    assert "population of release 1: 1 person fits no published box and counts as absent" in history.notes


def test_someone_who_fits_two_boxes_of_which_one_is_full_is_in_the_other():
    release = table("[20-40] * flu", "[20-40] * hiv", "[30-49] F flu", "[30-49] F flu", names="age sex ill")
    people = table("1 22 F", "2 35 M", "3 35 F", "4 41 F", names="id age sex")
    (history,) = load_histories([release], policy(), population=[people])
    member = history.releases[0].member
    assert member[2] == member[3] != member[0]
    assert not any("several" in note for note in history.notes)


def test_classes_that_share_ambiguous_people_are_taken_together():
    rows = ["[20-40] * flu", "[20-40] * hiv", "[30-49] F flu", "[30-49] F flu", "[60-69] M flu"]
    release = table(*rows, names="age sex ill")
    people = table("1 22 F", "2 35 F", "3 35 F", "4 41 F", "5 61 M", names="id age sex")
    read = read_releases([release], policy(), population=[people])
    known = find_members(read)
    (history,), (outsider,) = histories_of(read, known), histories_of(read, known.as_published(read))
    (published,) = history.releases
    assert len(published) == 2
    assert sorted(published.size.tolist()) == [1, 4]
    both = int(np.argmax(published.size))
    assert published.member.tolist() == [both] * 4 + [1 - both]
    leaves = history.domains[0].leaves
    assert (leaves[published.lo[0, both]], leaves[published.hi[0, both]]) == (20, 49)
    tie = "2 classes are taken together as 1 where everybody's class must be known"
    assert f"population of release 1: 2 people fit several published boxes; {tie}" in history.notes
    assert len(outsider.releases[0]) == 3
    assert outsider.trajectories is None
    certain = outsider.releases[0].certain.tolist()
    assert [place >= 0 for place in certain] == [True, False, False, True, True]
    assert len({certain[0], certain[3], certain[4]}) == 3


def test_a_population_with_more_people_than_rows_is_an_error():
    people = pa.concat_tables([PEOPLE, table("9 28 F", names="id age sex")])
    with pytest.raises(DataError, match=r"population of release 1: 5 people of the population fit a published box"):
        load_histories(without_people(FIRST), policy(), population=[people])


def test_a_population_that_fills_the_wrong_classes_is_an_error():
    wrong = table("1 22 F", "2 27 M", "3 25 F", "4 41 F", names="id age sex")
    with pytest.raises(DataError, match="in 2 classes there are not as many people"):
        load_histories(without_people(FIRST), policy(), population=[wrong])


def test_a_population_needs_to_say_who_is_who():
    with pytest.raises(DataError, match="population of release 1: column 'id': is not in the table"):
        load_histories(without_people(FIRST), policy(), population=without_people(PEOPLE))
    with pytest.raises(DataError, match="name it with `person`"):
        load_histories(without_people(FIRST), policy(person=None), population=[PEOPLE])


def test_raw_values_that_change_between_populations_are_an_error():
    moved = LATER.set_column(1, "age", pa.array(["22", "28", "45", "50"]))
    with pytest.raises(DataError, match="column 'age': 1 person has values in different releases that exclude"):
        load_histories(without_people(FIRST, SECOND), policy(), population=[PEOPLE, moved])


def test_a_population_is_not_used_when_the_releases_say_who_is_who():
    (history,) = load_histories([FIRST], policy(), population=[PEOPLE])
    assert any("population is not used" in note for note in history.notes)
    assert history.value is not None


@given(
    st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 40), st.integers(1, 20), st.sampled_from([1, 30, 1 << 20])
)
@settings(max_examples=80, deadline=None)
def test_points_are_found_in_exactly_the_boxes_around_them(seed, width, people, boxes, pairs):
    random = np.random.default_rng(seed)
    points = random.integers(0, 6, (width, people)).astype(np.int32)
    ends = np.sort(random.integers(0, 6, (2, width, boxes)).astype(np.int32), axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sequester.history.boxes._MANY", pairs)
        found = list(zip(*(side.tolist() for side in inside(points, *ends)), strict=True))
    around = [
        (p, b)
        for p in range(people)
        for b in range(boxes)
        if ((ends[0][:, b] <= points[:, p]) & (points[:, p] <= ends[1][:, b])).all()
    ]
    assert sorted(found) == around


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_what_is_said_about_anybodys_class_is_true_in_every_way_to_seat_the_people(seed, people, boxes):
    random = np.random.default_rng(seed)
    points = random.integers(0, 5, (1, people)).astype(np.int32)
    truth = random.integers(0, boxes, people)
    _, truth = np.unique(truth, return_inverse=True)
    boxes = int(truth.max()) + 1
    lo = np.array([[points[0, truth == b].min() for b in range(boxes)]], np.int32)
    hi = np.array([[points[0, truth == b].max() for b in range(boxes)]], np.int32)
    size = np.bincount(truth)
    found = locate(points, lo, hi, size=size)
    ways = [[]]
    for person in range(people):
        fits = [b for b in range(boxes) if lo[0, b] <= points[0, person] <= hi[0, b]]
        ways = [[*way, b] for way in ways for b in fits if way.count(b) < size[b]]
    assert ways
    for way in ways:
        assert found.merged[way].tolist() == found.member.tolist()
