"""Series by blind pods: decoys have any value there can be, and policies that do not say which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from podded import KEY, SEED, Panel, publish, rules, state_of
from sequester.errors import PolicyError

BLIND = {"name": "pods", "blind": True}
LISTED = {"Any": ["a", "b", "c", "d", "e", "f", "g", "h"]}


def blind_rules(**more: Any) -> sq.Policy:
    return rules(method=BLIND, attributes__value__hierarchy=LISTED, **more)


@pytest.mark.parametrize("more", [{}, {"protect__confidence": 0.34, "protect__k": 3}, {"decoys": 0.4}])
def test_everybody_is_published_at_once(tmp_path: Path, more: dict[str, Any]) -> None:
    panel = Panel.random(40, 4, seed=5)
    series = sq.Series.open(tmp_path / "panel.ledger", blind_rules(**more), key=KEY)
    releases = publish(series, panel.tables())
    assert all(release.holds for release in releases)
    assert state_of(series).seats is not None


def test_decoys_have_values_that_nobody_has(tmp_path: Path) -> None:
    """Drawn from all there can be: else a decoy tells that somebody else has its value."""
    panel = Panel.random(60, 1, seed=5)
    series = sq.Series.open(tmp_path / "panel.ledger", blind_rules(decoys=0.5), key=KEY)
    (release,) = publish(series, panel.tables())
    people = set(panel.tables()[0]["value"].to_pylist())
    assert set(release.table["value"].to_pylist()) - people


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"attributes__value__hierarchy": None}, "attributes.value.hierarchy"),
        ({"attributes__many": {"role": "sensitive", "kind": "set"}}, "attributes.many.kind"),
        ({"attributes__town": {"role": "insensitive"}}, "attributes.town"),
    ],
)
def test_what_has_no_list_of_values_is_refused(tmp_path: Path, more: dict[str, Any], key: str) -> None:
    panel = Panel.random(20, 1, seed=5, many=["x", "y", "x;y", "z"], town=["u", "v"])
    policy = rules(method=BLIND, **{"attributes__value__hierarchy": LISTED, **more})
    series = sq.Series.open(tmp_path / "panel.ledger", policy, key=KEY)
    with pytest.raises(PolicyError, match="from outside the") as caught:
        series.plan(panel.table(0), name="first", seed=SEED)
    assert key in {problem.key for problem in caught.value.problems}
