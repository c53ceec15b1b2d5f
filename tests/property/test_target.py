"""The rows that may be a target's, against every world that two or three releases leave possible."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.attacks.target import Target
from worlds import Boxed, Label, Sides

Row = tuple[int, int, Label]

POLICY = sq.Policy.model_validate(
    {
        "version": 1,
        "series": "s",
        "attributes": {
            "x": {"role": "quasi-identifier", "kind": "number", "range": [0, 3]},
            "y": {"role": "quasi-identifier", "kind": "number", "range": [0, 2]},
            "s": {"role": "sensitive"},
        },
        "protect": {"k": 2},
    }
)
SETTINGS = settings(max_examples=150, deadline=None)
LAST = (3, 2)


@st.composite
def growing(draw: st.DrawFn, *, releases: tuple[int, int], leave: bool = False) -> Boxed:
    """People who come, in classes with boxes around them that may be wider."""
    count = draw(st.integers(*releases))
    most = 7 if count == 2 else 5
    size = draw(st.integers(2, most))
    points = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=size, max_size=size))
    labels = draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))
    joined = [0, *draw(st.lists(st.integers(0, count - 1), min_size=size - 1, max_size=size - 1))]
    gone = draw(st.lists(st.booleans(), min_size=size, max_size=size)) if leave else [False] * size
    tables = []
    for number in range(count):
        here = [p for p in range(size) if joined[p] <= number and not (gone[p] and joined[p] < number)]
        if not here:
            here = [0]
        classes: dict[int, list[int]] = {}
        for person in here:
            classes.setdefault(draw(st.integers(0, 2)), []).append(person)
        table: dict[Sides, tuple[tuple[str, ...], ...]] = {}
        for people in classes.values():
            sides = []
            for axis in (0, 1):
                values = [points[person][axis] for person in people]
                wider = draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 1)]))
                sides.append((max(0, min(values) - wider[0]), min(LAST[axis], max(values) + wider[1])))
            # Classes with the same box are one class to whoever reads them.
            table[tuple(sides)] = (*table.get(tuple(sides), ()), *((labels[person],) for person in people))
        tables.append(tuple(table.items()))
    return Boxed(tuple(tables))


def published(boxed: Boxed) -> list[pa.Table]:
    return [
        pa.table(
            {
                "x": [f"[{box[0][0]}-{box[0][1]}]" for box, rows in release for _ in rows],
                "y": [f"[{box[1][0]}-{box[1][1]}]" for box, rows in release for _ in rows],
                "s": [label for _, rows in release for (label,) in rows],
            }
        )
        for release in boxed.releases
    ]


def asked(boxed: Boxed, target: Sides, since: int) -> Target:
    cells = {name: f"[{lo}-{hi}]" for name, (lo, hi) in zip("xy", target, strict=True)}
    found = sq.audit(published(boxed), POLICY, target=cells, since=since + 1).target
    assert found is not None
    return found


def told(boxed: Boxed, found: Target) -> dict[Row, int]:
    """Rows left per release, class and label; where nothing is left it is left out."""
    left: dict[Row, int] = {}
    for seen in found.releases:
        starts = [0]
        for _, rows in boxed.releases[seen.number - 1]:
            starts.append(starts[-1] + len(rows))
        for one in seen.matching:
            place = next(at for at in range(len(starts)) if one.rows[0] - 1 < starts[at]) - 1
            labels = boxed.releases[seen.number - 1][place][1]
            assert [labels[row - 1 - starts[place]] for row in one.rows] == [(one.label,)] * len(one.rows)
            assert labels.count((one.label,)) == len(one.rows)
            if one.left:
                left[seen.number - 1, place, (one.label,)] = one.left
    return left


@st.composite
def boxes(draw: st.DrawFn) -> Sides:
    sides = []
    for most in LAST:
        ends = sorted(draw(st.tuples(st.integers(0, most), st.integers(0, most))))
        sides.append((ends[0], ends[1]))
    return tuple(sides)


points = st.tuples(st.integers(0, 3), st.integers(0, 2)).map(lambda point: tuple((value, value) for value in point))


@SETTINGS
@given(boxed=growing(releases=(2, 2)), target=points | boxes(), since=st.integers(0, 1))
def test_two_releases_leave_exactly_the_rows_that_may_be_hers_in_some_world(
    boxed: Boxed, target: Sides, since: int
) -> None:
    assert told(boxed, asked(boxed, target, since)) == boxed.rows_left(target, since)


@SETTINGS
@given(boxed=growing(releases=(2, 2), leave=True), target=points, since=st.integers(0, 1))
def test_where_somebody_left_two_releases_leave_what_both_can_hold(boxed: Boxed, target: Sides, since: int) -> None:
    assert told(boxed, asked(boxed, target, since)) == boxed.rows_left(target, since)


@SETTINGS
@given(boxed=growing(releases=(1, 2)), target=points, data=st.data())
def test_the_sum_is_of_rows_that_may_be_of_people_like_her_at_once(boxed: Boxed, target: Sides, data) -> None:
    since = data.draw(st.integers(0, len(boxed.releases) - 1))
    sums: dict[int, int] = {}
    for (number, _, _), rows in boxed.rows_left(target, since, together=True).items():
        sums[number + 1] = sums.get(number + 1, 0) + rows
    found = asked(boxed, target, since)
    assert {seen.number: seen.left for seen in found.releases if seen.left} == sums
    assert found.left == min(sums.values(), default=0)


@SETTINGS
@given(boxed=growing(releases=(3, 3)), target=points | boxes(), since=st.integers(0, 2))
def test_three_releases_never_exclude_a_row_that_may_be_hers(boxed: Boxed, target: Sides, since: int) -> None:
    found, true = told(boxed, asked(boxed, target, since)), boxed.rows_left(target, since)
    assert {row: left for row, left in true.items() if found.get(row, 0) < left} == {}


def test_a_row_is_possible_for_one_target_and_impossible_for_another() -> None:
    """What the properties compare is not always empty."""
    old = ((((0, 3), (0, 2)), (("a",), ("a",), ("b",))),)
    new = ((((0, 1), (0, 2)), (("a",), ("b",), ("b",))), (((2, 3), (0, 2)), (("a",),)))
    boxed, her = Boxed((old, new)), ((0, 0), (0, 0))
    assert boxed.rows_left(her, 0) == {
        (0, 0, ("a",)): 1, (0, 0, ("b",)): 1, (1, 0, ("a",)): 1, (1, 0, ("b",)): 1
    }  # fmt: skip
    assert told(boxed, asked(boxed, her, 1)) == boxed.rows_left(her, 1) == {(1, 0, ("b",)): 1}
