"""What pods do not promise, and what breaks them: every refutation of their first form is refused, and found."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from seated import Seated
from sequester.attacks.audit import Audit
from sequester.attacks.pods import REFUSED, check_pods
from sequester.attacks.registry import Knowledge

HALF = Fraction(1, 2)


def made(
    cells: dict[str, str],
    releases: list[list[list[str]]],
    types: dict[str, tuple[int, int]],
    *,
    columns: tuple[str, ...] = ("s",),
    decoys: frozenset[str] = frozenset(),
) -> Seated:
    """Releases of classes of pods, each written as its members in one string; types are (type, seat)."""
    return Seated(
        columns=columns,
        bound=HALF,
        k=2,
        inferred=2,
        label={person: tuple(text.split()) for person, text in cells.items()},
        releases=[[[person for pod in one for person in pod.split()] for one in release] for release in releases],
        type={person: kind for person, (kind, _) in types.items()},
        seat={person: seat for person, (_, seat) in types.items()},
        pods=[
            {p: n for n, pod in enumerate(pod for one in release for pod in one) for p in pod.split()}
            for release in releases
        ],
        decoys=decoys,
    )


def problems(case: Seated) -> dict[str, int]:
    histories, rows = case.read()
    found = check_pods(histories, rows, case.seats(histories[0].people))
    assert found is not None
    assert found.holds == case.proves()
    return found.problems


def exposed(found: Audit, attack: str) -> dict[tuple[object, ...], tuple[str | None, float]]:
    return {f.people: (f.value, f.observed) for f in found.findings if f.attack == attack}


MEETS: Any = {
    "cells": {"p": "a", "q": "b", "r": "a", "s": "c", "t": "a", "u": "d"},
    "releases": [[["p q", "r s"]], [["p q", "t u"]]],
    "types": {"p": (0, 0), "q": (0, 1), "r": (1, 0), "s": (1, 1), "t": (2, 0), "u": (2, 1)},
}


def test_what_classes_have_in_common_is_not_implied() -> None:
    """Rows a b a c, then a b a d: everybody can deny, and the meet gives a 2/3."""
    case = made(**MEETS)
    assert not problems(case)
    assert case.audit(seats=True).holds
    found = case.audit(seats=True, against=["insider", "neighbor"])
    assert exposed(found, "intersection") == {("p", "q"): ("a", pytest.approx(2 / 3))}
    assert found.findings == case.audit(seats=False, against=["insider", "neighbor"]).findings


def test_findings_leave_decoys_out() -> None:
    case = made(**MEETS, decoys=frozenset({"q", "u"}))
    found = case.audit(seats=True, against=["insider", "neighbor"])
    assert exposed(found, "intersection") == {("p",): ("a", pytest.approx(2 / 3))}
    assert found.exposed.total.people == 1


def test_whoever_is_nobody_is_not_exposed() -> None:
    case = made(**MEETS, decoys=frozenset({"p", "q"}))
    found = case.audit(seats=True, against=["insider", "neighbor"])
    assert exposed(found, "intersection") == {}
    assert found.measures["intersection"] == 0.5
    assert not case.audit(seats=False, against=["insider", "neighbor"]).holds


def test_decoys_that_nothing_proves_are_taken_for_people() -> None:
    """Who is nobody is believed of pods that hold; otherwise a wrong flag would hide somebody."""
    spoiled = made(MEETS["cells"], MEETS["releases"], {**MEETS["types"], "u": (1, 1)}, decoys=frozenset({"p", "q"}))
    found = spoiled.audit(seats=True, against=["insider", "neighbor"])
    assert REFUSED in found.notes
    assert found.findings == spoiled.audit(seats=False, against=["insider", "neighbor"]).findings


ORDINARY = {"O": "o", "P": "a", "Q": "b", "N": "H"}


@pytest.mark.parametrize(
    "types",
    [
        {"O": (0, 0), "N": (0, 1), "P": (1, 0), "Q": (1, 1)},
        {"O": (0, 0), "N": (2, 0), "P": (1, 0), "Q": (1, 1)},
        {"O": (0, 0), "N": (0, 0), "P": (1, 0), "Q": (1, 1)},
    ],
)
def test_whoever_was_published_without_a_pod_is_nobodys_partner(types: dict[str, tuple[int, int]]) -> None:
    """{O o, P a, Q b}, then {O o, N H}{P a, Q b}: N has H, whatever the pods on record say."""
    case = made(ORDINARY, [[["O", "P Q"]], [["O N"], ["P Q"]]], types)
    assert problems(case)
    found = case.audit(seats=True)
    assert REFUSED in found.notes
    assert exposed(found, "deniability") == {("N",): ("H", 1.0)}


def test_alone_for_good_is_a_witness() -> None:
    """The same with O on her own in both, and N with a partner of his own."""
    types = {"O": (0, 0), "N": (2, 0), "D": (2, 1), "P": (1, 0), "Q": (1, 1)}
    case = made({**ORDINARY, "D": "c"}, [[["O", "P Q"]], [["O", "N D"], ["P Q"]]], types, decoys=frozenset("D"))
    assert not problems(case)
    found = case.audit(seats=True)
    assert exposed(found, "deniability") == exposed(found, "difference") == {}
    assert found.measures["deniability"] == 0.5


@pytest.mark.parametrize("lasting", [True, False])
def test_types_of_sensitive_cells_alone_are_no_types_beside_cells_that_stay(lasting: bool) -> None:
    """{A a x, B b y}, then {A a x, C b w}: x stays with a, so there is one world."""
    cells = {"A": "a x", "B": "b y", "C": "b w"} if lasting else {"A": "a", "B": "b", "C": "b"}
    types = {"A": (0, 0), "B": (0, 1), "C": (0, 1)}
    case = made(cells, [[["A B"]], [["A C"]]], types, columns=("s", "z") if lasting else ("s",))
    found = case.audit(seats=True)
    assert bool(problems(case)) is lasting
    assert (REFUSED in found.notes) is lasting
    tied = {person for people in exposed(found, "deniability") for person in people}
    assert tied == (set("ABC") if lasting else set())


def test_one_person_under_two_ids_is_two_for_the_audit_and_certain_for_who_knows_better() -> None:
    """alice is with b once and with c once, under another id: two types. Under one id she has a for certain."""
    two = made(
        {"alice": "a", "B": "b", "again": "a", "C": "c"},
        [[["alice B"]], [["again C"]]],
        {"alice": (0, 0), "B": (0, 1), "again": (1, 0), "C": (1, 1)},
    )
    assert not problems(two)
    assert two.audit(seats=True).holds
    one = made(
        {"alice": "a", "B": "b", "C": "c"},
        [[["alice B"]], [["alice C"]]],
        {"alice": (0, 0), "B": (0, 1), "C": (1, 1)},
    )
    assert problems(one)
    tied = exposed(one.audit(seats=True), "deniability")
    assert tied == {("alice",): ("a", 1.0), ("B",): ("b", 1.0), ("C",): ("c", 1.0)}


def test_a_value_that_was_corrected_is_no_witness() -> None:
    """The rows of the first release are not those that its people have by now."""
    case = made(
        {"A": "a", "B": "b", "C": "b", "D": "a"},
        [[["A B"]], [["A B", "D C"]]],
        {"A": (0, 0), "B": (0, 1), "D": (0, 0), "C": (0, 1)},
    )
    assert not problems(case)
    histories, rows = case.read()
    (history,) = histories
    first = history.releases[0]
    first.counts[0, 0] += 1
    first.counts[0, 1] -= 1
    found = check_pods(histories, rows, case.seats(history.people))
    assert found is not None
    assert found.problems == {"classes that show other values than their people have": 1}


def test_totals_are_not_promised() -> None:
    case = made({"A": "a", "B": "b"}, [[["A B"]]], {"A": (0, 0), "B": (0, 1)}, decoys=frozenset("B"))
    assert case.audit(seats=True).holds
    assert not case.audit(seats=True, against=(), knowledge=Knowledge(totals=True)).holds
