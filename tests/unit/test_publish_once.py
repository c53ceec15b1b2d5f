"""Nothing is done twice on the way to a release: ledgers are opened, promises are read and prices reckoned once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import sequester as sq
from sequester.cli.series import trial_series
from sequester.errors import StalePlan
from sequester.guarantees.requirement import Requirement
from sequester.ledger import Key, Ledger, Place
from sequester.publish import price, series

KEY = Key.of_text("a key for tests only")
SEED = 1 << 63
PEOPLE = 90
DRAW = np.random.default_rng(8)
COLUMNS: dict[str, Any] = {
    "id": np.array([f"p{number}" for number in range(PEOPLE)]),
    "age": DRAW.integers(0, 80, PEOPLE),
    "illness": DRAW.choice(["flu", "cold", "gout", "asthma"], PEOPLE),
}


def rules(method: str) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "clinic",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
                "illness": {"role": "sensitive"},
            },
            "protect": {"k": 3, "confidence": 0.7},
            "method": {"name": method},
        }
    )


def table(folder: Path, count: int) -> Path:
    path = folder / f"{count}.csv"
    csv.write_csv(pa.table({name: column[:count] for name, column in COLUMNS.items()}), path)
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something was called, by name."""
    counted: Counter[str] = Counter()

    def count(place: Any, name: str, called: str) -> None:
        kept = getattr(place, name)

        def counting(*given: Any, **how: Any) -> Any:
            counted[called] += 1
            return kept(*given, **how)

        monkeypatch.setattr(place, name, staticmethod(counting) if hasattr(kept, "__self__") else counting)

    count(Ledger, "open", "open")
    count(Ledger, "load", "load")
    count(Requirement, "from_policy", "requirement")
    count(price.Price, "of", "price")
    count(price, "levers", "levers")
    return counted


def begun(folder: Path, method: str) -> sq.Series:
    """A series with one release."""
    opened = sq.Series.open(folder / "clinic.ledger", rules(method), key=KEY)
    opened.publish(table(folder, 60), seed=SEED)
    return opened


@pytest.mark.parametrize("method", ["mondrian", "full-domain", "pods"])
def test_a_plan_reads_the_ledger_and_the_promises_once(tmp_path: Path, method: str, calls: Counter[str]) -> None:
    opened = begun(tmp_path, method)
    calls.clear()
    opened.plan(table(tmp_path, PEOPLE), seed=SEED)
    assert calls == {"open": 1, "load": 1, "requirement": 1, "price": 1, "levers": 1}


def test_a_series_that_is_there_is_opened_once_before_it_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Counter[str]
) -> None:
    begun(tmp_path, "mondrian")
    monkeypatch.setenv("SEQUESTER_KEY", "a key for tests only")
    calls.clear()
    place = Place.of(tmp_path / "clinic.ledger")
    with trial_series(place, rules("mondrian"), tmp_path / "releases") as opened:
        assert calls["open"] == 1
        opened.plan(table(tmp_path, PEOPLE), seed=SEED)
    assert calls["open"] == 2


@pytest.mark.parametrize("method", ["mondrian", "pods"])
def test_publishing_a_saved_plan_makes_the_release_and_does_not_price_it_again(
    tmp_path: Path, method: str, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = begun(tmp_path, method)
    planned = opened.plan(table(tmp_path, PEOPLE), seed=SEED)
    loaded = sq.Plan.load(planned.save(tmp_path / "next.plan"))
    calls.clear()
    forbid(monkeypatch, method)
    release = opened.publish(loaded)
    assert (calls["price"], calls["levers"], calls["load"], calls["requirement"]) == (0, 0, 1, 2)
    # Once to make it, and once to record it; the second reading of the promises is that of the public measures.
    assert calls["open"] == 2
    assert release.folder is not None
    recorded = opened.releases()[-1].summary
    assert recorded["loss"] == planned.loss
    assert recorded["notes"] == list(planned.notes)
    assert recorded["pods"] == (None if planned.pods is None else planned.to_dict()["pods"])


def forbid(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Figures of other releases nearby are a price, too."""
    if method == "pods":
        monkeypatch.setattr("sequester.methods.pods.frontier.frontier", never)


def never(*given: Any) -> Any:
    raise AssertionError("a saved plan has its price")


@pytest.mark.parametrize("edit", [lambda plan: {"loss": {}}, lambda plan: {"notes": ("all is well",)}])
def test_a_price_that_was_edited_breaks_the_seal(tmp_path: Path, edit: Callable[[sq.Plan], dict[str, Any]]) -> None:
    from dataclasses import replace

    opened = begun(tmp_path, "mondrian")
    planned = opened.plan(table(tmp_path, PEOPLE), seed=SEED)
    edited = replace(planned, **edit(planned))
    loaded = sq.Plan.load(edited.save(tmp_path / "next.plan"))
    with pytest.raises(StalePlan, match="it was edited, or made elsewhere"):
        opened.publish(loaded)


def test_a_plan_of_another_ledger_with_another_key_is_not_published(tmp_path: Path) -> None:
    opened = sq.Series.open(tmp_path / "a.ledger", rules("mondrian"), key=KEY)
    planned = opened.plan(table(tmp_path, PEOPLE), seed=SEED)
    other = Key.of_text("another key for tests")
    assert series.Series(opened.place, opened.policy, other, opened.folder)._sealed(planned).seal != planned.seal
