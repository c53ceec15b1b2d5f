"""The enumerator of worlds itself: against the plainest possible one, and on examples worked out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.optimize import linprog

from tiny import Case, cases
from worlds import Class, Column, Knowledge, Lives, Published, Relaxed, TooMany

HALF = Fraction(1, 2)
often = settings(max_examples=100, deadline=None)


def plain_worlds(published: Published) -> list[dict[object, Lives]]:
    """Every way to hand the rows of every class to its people, kept where everybody's rows agree."""
    handed = []
    for release in published.releases:
        ways = [
            [dict(zip(one.occupants, rows, strict=True)) for rows in set(permutations(one.labels))] for one in release
        ]
        handed.append([{who: row for part in choice for who, row in part.items()} for choice in product(*ways)])
    found = []
    for world in product(*handed):
        lives = {who: tuple(release.get(who) for release in world) for who in published.path}
        if all(_agree(published, [row for row in one if row is not None]) for one in lives.values()):
            found.append(lives)
    return found


def _agree(published: Published, rows: list[tuple[str, ...]]) -> bool:
    if published.written:
        return len(set(rows)) == 1
    return all(column.truths([row[at] for row in rows]) for at, column in enumerate(published.columns))


def small(case: Case) -> Published:
    """What permutations can still be written out for."""
    published = case.published()
    sizes = [len(one.labels) for release in published.releases for one in release]
    assume(np.prod([np.prod(np.arange(1, size + 1)) for size in sizes]) < 20_000)
    return published


def check_against_the_plainest(published: Published) -> None:
    plain, known = plain_worlds(published), Knowledge(published)
    shares = {
        tuple(frozenset(Counter(world[who] for who in occupants).items()) for occupants in published.groups.values())
        for world in plain
    }
    assert shares == {tuple(frozenset(world[group].items()) for group in published.groups) for world in known.worlds}
    assert len(shares) == len(known.worlds)
    owners: dict[object, set[object]] = {row: set() for row in published.shown}
    for world in plain:
        for who, lives in world.items():
            for number, label in enumerate(lives):
                if label is not None:
                    owners[number, published.path[who][number], label].add(who)
    assert owners == known.owners()
    for who in published.path:
        assert known.certain(who) == frozenset.intersection(*(published.has(world[who]) for world in plain))
    assert known.strain() == pytest.approx(plain_strain(published, plain), abs=1e-6)


def plain_strain(published: Published, worlds: list[dict[object, Lives]]) -> float:
    """One unknown per world, one condition per person and value; nobody is averaged with anybody."""
    asked = sorted({(who, value) for world in worlds for who in world for value in published.has(world[who])})
    if not asked:
        return 0.0
    above = [
        [float(value in published.has(world[who])) for world in worlds]
        + [-float(published.columns[value[0]].bounds[value[1]])]
        for who, value in asked
    ]
    count = len(worlds)
    found = linprog([0.0] * count + [1.0], above, [0.0] * len(above), [[1.0] * count + [0.0]], [1.0], method="highs")
    return float(found.fun)


@often
@given(cases(people=(3, 5)))
def test_worlds_are_those_of_the_plainest_enumeration(case: Case) -> None:
    check_against_the_plainest(small(case))


@often
@given(cases(kinds=("graded", "stays"), people=(3, 5), differently="X"))
def test_worlds_with_cells_that_only_agree_are_those_of_the_plainest_enumeration(case: Case) -> None:
    # A node where the truth is below it: other cells would contradict each other.
    fitting = [one for one in case.different if case.cells[one[1]]["s"] in ("a", "b", "X")]
    check_against_the_plainest(small(Case(**{**vars(case), "different": fitting})))


@often
@given(cases())
def test_the_program_knows_no_more_than_the_worlds(case: Case) -> None:
    published = case.published()
    try:
        known = Knowledge(published, most=3_000)
    except TooMany:
        assume(False)
    program = Relaxed(published)
    assert program.strain() <= known.strain() + 1e-6
    assert program.confidence() <= known.confidence() + 1e-6
    owners = program.owners()
    assert all(people <= owners[row] for row, people in known.owners().items())


def of(columns: tuple[Column, ...], cells: Mapping[Any, str], *releases: list[list[object]], **more) -> Published:
    """Everybody's cells with blanks between them, and the classes of every release."""
    return Published(
        columns,
        tuple(
            tuple(Class(tuple(one), tuple(tuple(cells[who].split()) for who in one)) for one in release)
            for release in releases
        ),
        **more,
    )


def bounded(values: str, bound: Fraction = HALF) -> Column:
    return Column(dict.fromkeys(values, bound))


def test_two_classes_that_share_one_person_make_her_value_certain() -> None:
    published = of((bounded("abc"),), dict(enumerate("abc")), [[0, 1]], [[0, 2]])
    known = Knowledge(published)
    assert len(known.worlds) == 1
    assert known.certain(0) == {(0, "a")}
    assert known.confidence() == pytest.approx(1)


def test_a_swap_of_two_couples_leaves_everybody_both_values() -> None:
    published = of((bounded("ab"),), dict(enumerate("abab")), [[0, 1], [2, 3]], [[0, 3], [1, 2]])
    known = Knowledge(published)
    assert len(known.worlds) == 2
    assert known.deniable()
    assert known.fewest_owners() == 2


def test_one_value_against_the_rest_sees_less_than_all_labels_together() -> None:
    """docs/theory.md, section 8: person 0 cannot have c, although c against the rest allows it."""
    published = of((bounded("abc"),), dict(enumerate("abcc")), [[1, 2], [0, 3]], [[0, 2], [1, 3]])
    assert {rows[0] for rows in Knowledge(published).lives(0)} == {("a",)}
    against = published.against_rest(("c",))
    assert {rows[0] for rows in Knowledge(against).lives(0)} == {("it",), ("rest",)}


def test_a_decoy_is_an_owner_whose_values_nobody_asks_about() -> None:
    cells = {0: "a", "nobody": "b", 1: "b", 2: "a"}
    published = of((bounded("ab"),), cells, [[0, "nobody"]], [[0, "nobody"], [1, 2]], decoys=frozenset({"nobody"}))
    known = Knowledge(published)
    assert known.deniable()
    assert known.owners()[0, 0, ("a",)] == {0, "nobody"}
    gone = of((bounded("ab"),), cells, [[0, "nobody"]], [[0, 2]], decoys=frozenset({"nobody"}))
    assert not Knowledge(gone).deniable()


def test_a_set_has_each_of_its_values_and_a_node_may_have_each_below_it() -> None:
    sets = Column(dict.fromkeys("abc", HALF), separator=";")
    assert sets.bounded(["a;b"]) == {"a", "b"}
    nodes = Column(dict.fromkeys("abc", HALF), below={"X": frozenset("ab"), "*": frozenset("abc")})
    assert nodes.bounded(["X"]) == {"a", "b"}
    assert nodes.bounded(["X", "*"]) == {"a", "b"}
    assert nodes.bounded(["X", "a"]) == {"a"}
    assert nodes.truths(["X", "c"]) == frozenset()


def test_three_releases_can_be_certain_where_the_program_is_not() -> None:
    """The smallest gap between worlds and programs is why findings beyond it are counted, not demanded."""
    gaps = 0
    rng = np.random.default_rng(7)
    for _ in range(300):
        cells = {person: "ab"[rng.integers(2)] for person in range(7)}
        releases = []
        for _ in range(3):
            where = rng.permutation(7)
            releases.append([where[:3].tolist(), where[3:].tolist()])
        published = of((bounded("ab"),), cells, *releases)
        gaps += Relaxed(published).strain() < Knowledge(published).strain() - 1e-6
    assert gaps > 0
