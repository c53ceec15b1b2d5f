"""A ledger keeps seats and pods like everything else: they come back, and what does not fit or was changed is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from books import Books, tamper
from ledgers import KEY, draft, new, publish
from sequester.history.seats import Seats
from sequester.ledger import Ledger


def first() -> Seats:
    """Four people and a decoy in two pods of one type, and one of a pod of its own."""
    decoy = np.array([False, False, False, True, False])
    return Seats.none().extend(decoy, _of(0, 0, 0, 0, 1), _of(0, 1, 0, 1, 0), _of(0, 0, 1, 1, 2))


def second(before: Seats) -> Seats:
    return before.extend(np.array([True]), _of(0), _of(0), _of(-1, 0, -1, -1, 1, 0))


def _of(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def two_releases(place: object) -> Ledger:
    ledger = new(place)  # type: ignore[arg-type]
    publish(ledger, [0, 0, 1, 1, 1], seats=first(), method="pods")
    publish(ledger, [-1, 0, -1, -1, 0, 0], seats=second(first()), method="pods")
    return ledger


def check_same(found: Seats | None, wanted: Seats) -> None:
    assert found is not None
    for one, other in ((found.decoy, wanted.decoy), (found.type, wanted.type), (found.seat, wanted.seat)):
        assert np.array_equal(one, other)
    assert [pod.tolist() for pod in found.pods] == [pod.tolist() for pod in wanted.pods]


def test_seats_and_pods_come_back(books: Books, tmp_path: Path) -> None:
    with two_releases(books / "x.ledger") as ledger:
        check_same(ledger.load().seats, second(first()))
        assert ledger.load().decoy.tolist() == [False, False, False, True, False, True]
        assert ledger.verify().problems == ()
        exported = ledger.export(tmp_path / "export")
    with Ledger.import_(exported, books / "y.ledger", KEY, accept_loss=True) as ledger:
        check_same(ledger.load().seats, second(first()))
        assert ledger.verify().problems == ()


def test_seats_go_over_to_the_next_series(books: Books) -> None:
    with two_releases(books / "x.ledger") as ledger:
        named: dict[str, Any] = {"series": "t", "policy_text": "k: 3", "fingerprint": "g"}
        with ledger.hand_over(books / "y.ledger", **named) as after:
            check_same(after.load().seats, second(first()))


def test_a_withdrawn_release_leaves_no_seats(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0, 1, 1, 1], seats=first())
        ledger.withdraw(ledger.begin(draft(ledger, [-1, 0, -1, -1, 0, 0], seats=second(first()))).number)
        check_same(ledger.load().seats, first())
        assert ledger.verify().problems == ()


def test_a_ledger_with_releases_of_another_method_has_no_seats(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0, 1, 1, 1])
        assert ledger.load().seats is None
        publish(ledger, [-1, 0, -1, -1, 0, 0], seats=second(first()))
        assert ledger.load().seats is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda s: Seats(s.decoy[:-1], s.type, s.seat, s.pods), "seats are not those of its people"),
        (lambda s: Seats(s.decoy, s.type - 1, s.seat, s.pods), "pods are not those of the people in its classes"),
        (lambda s: Seats(s.decoy, s.type, s.seat, (_of(0, 0, 1, 1, -1),)), "pods are not those of the people"),
    ],
)
def test_seats_that_do_not_fit_are_not_recorded(books: Books, wrong: object, reason: str) -> None:
    with new(books / "x.ledger") as ledger, pytest.raises(ValueError, match=reason):
        ledger.begin(draft(ledger, [0, 0, 1, 1, 1], seats=wrong(first())))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE pods SET pod = 0 WHERE release = 1", "a pod is in several classes"),
        ("DELETE FROM pods WHERE release = 1 AND person = 0", "not everybody in the release is in a pod"),
        ("UPDATE pods SET pod = -1 WHERE person = 1 AND release = 2", "not everybody in the release is in a pod"),
        ("UPDATE seats SET type = -1 WHERE person = 0", "seats have numbers that no seat has"),
        ("UPDATE seats SET decoy = 2 WHERE person = 0", "seats have numbers that no seat has"),
        ("DELETE FROM seats WHERE person = 3", "not everybody who is new has a seat"),
        ("INSERT INTO seats VALUES (9, 3, 0, 0, 0)", "1 rows of seats belong to no release"),
    ],
)
def test_what_was_changed_is_told(books: Books, statement: str, problem: str) -> None:
    two_releases(books / "x.ledger").close()
    tamper(books / "x.ledger", statement)
    with Ledger.open(books / "x.ledger", key=KEY, read_only=True) as ledger:
        assert any(problem in said for said in ledger.verify().problems)
