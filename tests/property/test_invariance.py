"""One type per class, after m-invariance: whoever is published shows the same values of her class in every release."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sequester as sq
from podded import KEY, SEED, Panel, publish, rules, state_of


def signatures(series: sq.Series) -> list[dict[int, Counter[int]]]:
    """Per release, per person or decoy, how often her class has each value."""
    state = state_of(series)
    found = []
    for release in range(state.path.shape[1]):
        member = np.append(state.path[:, release], -1)[state.trajectory]
        shown: dict[int, Counter[int]] = {}
        for person in np.flatnonzero(member >= 0).tolist():
            shown.setdefault(int(member[person]), Counter())[int(state.values[0, person])] += 1
        found.append({person: shown[int(member[person])] for person in np.flatnonzero(member >= 0).tolist()})
    return found


def _invariant(series: sq.Series, m: int) -> bool:
    first: dict[int, set[int]] = {}
    for release in signatures(series):
        for person, shown in release.items():
            if len(shown) < m or len(set(shown.values())) > 1 or first.setdefault(person, set(shown)) != set(shown):
                return False
    return True


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.sampled_from([(2, 0.5), (5, 0.5), (3, 0.34), (4, 0.34)]))
def test_everybody_keeps_her_signature(seed: int, asked: tuple[int, float]) -> None:
    k, confidence = asked
    panel = Panel.random(24, 3, seed=seed)
    policy = rules(protect__k=k, protect__confidence=confidence, protect__inferred=2, method__classes="one-type")
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "panel.ledger", policy, key=KEY)
        publish(series, panel.tables())
        assert _invariant(series, 2 if confidence == 0.5 else 3)
        assert all(sum(shown.values()) >= k for release in signatures(series) for shown in release.values())
        assert series.audit().holds


def test_mixed_classes_are_not_invariant_and_lose_less(tmp_path: Path) -> None:
    panel = Panel.random(120, 2, seed=3)
    lost = {}
    for classes in ("mixed", "one-type"):
        (tmp_path / classes).mkdir()
        policy = rules(protect__k=4, protect__inferred=2, method__classes=classes)
        series = sq.Series.open(tmp_path / classes / "panel.ledger", policy, key=KEY)
        lost[classes] = publish(series, panel.tables())[-1].loss["ail"]
        assert _invariant(series, 2) == (classes == "one-type")
    assert lost["mixed"] < lost["one-type"]


@pytest.mark.parametrize("people", [1, 2, 5])
def test_a_table_of_few_people(people: int) -> None:
    panel = Panel.random(people, 1, seed=2, away=0.0)
    tree = {"Any": ["a", "b", "c", "d"]}
    policy = rules(protect__k=4, method__classes="one-type", attributes__value__hierarchy=tree)
    release = sq.anonymize(panel.table(0), policy, seed=SEED)
    assert release.table.num_rows >= 4
