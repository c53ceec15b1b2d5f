"""What decoys do to shares of values is told where it is private, kept out of public files, and no reason to stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sequester as sq
from command import invoke
from sequester.ledger import Key


def _table() -> pd.DataFrame:
    """400 people, of whom three in five have the same value: couples need decoys with others."""
    random = np.random.default_rng(5)
    value = random.choice(["a", "b", "c", "d"], 400, p=[0.6, 0.2, 0.15, 0.05])
    return pd.DataFrame({"id": [f"p{n}" for n in range(400)], "age": random.integers(0, 80, 400), "ill": value})


def _policy(**more: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "shares",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 80]},
                "ill": {"role": "sensitive"},
            },
            "protect": {"k": 4, "confidence": 0.5, "against": ["insider"]},
            "method": {"name": "pods"},
            **more,
        }
    )


def _series(folder: Path, **more: Any) -> sq.Series:
    return sq.Series.open(folder / "shares.ledger", _policy(**more), key=Key.of_text("the key of a test of shares"))


def test_a_plan_tells_how_far_decoys_change_the_share_of_a_value(tmp_path: Path) -> None:
    table = _table()
    series = _series(tmp_path)
    plan = series.plan(table, seed=2**63 + 1)
    told = plan.pods.shares["ill"]
    release = series.publish(plan)
    frame = sq.read_release(release.folder)
    shown, true = (rows["ill"].value_counts(normalize=True) for rows in (frame, table))
    change = (shown - true).abs()
    assert told["values"] == 4
    assert told["most"] == pytest.approx(change.max(), abs=1e-6)
    assert told["beyond"] == int((change > np.maximum(0.1 * true, 0.005)).sum()) > 0
    assert plan.pods.distorted >= told["beyond"]
    assert any(one.startswith("ill: ") for one in plan.pods.distortion())


def test_what_is_too_much_is_what_the_policy_says(tmp_path: Path) -> None:
    plan = _series(tmp_path, distortion=1.0).plan(_table(), seed=2**63 + 1)
    assert plan.pods.distorted == 0
    assert len(list(plan.pods.distortion())) == 1


def test_what_decoys_do_to_shares_is_in_no_public_file_and_in_no_plan_by_value(tmp_path: Path) -> None:
    series = _series(tmp_path)
    plan = series.plan(_table(), seed=2**63 + 1)
    saved = json.dumps(plan.to_dict()["pods"])
    assert not {"a", "b", "c", "d"} & set(json.loads(saved)["shares"])
    folder = series.publish(plan).folder
    most = str(plan.pods.shares["ill"]["most"])
    for name in ("release.json", "report.html", "dictionary.csv"):
        text = (Path(folder) / name).read_text()
        assert most not in text
        assert "distort" not in text


def test_the_command_says_which_columns_are_off(tmp_path: Path) -> None:
    _table().to_csv(tmp_path / "t.csv", index=False)
    rules = json.loads(_policy().model_dump_json(exclude_unset=True))
    (tmp_path / "policy.yaml").write_text(json.dumps(rules))
    done = invoke("plan", "t.csv", "--no-price", cwd=tmp_path, COLUMNS="160")
    assert done.returncode == 0, done.stderr
    assert "more than the policy wants for" in done.stdout


def test_only_pods_change_shares() -> None:
    with pytest.raises(sq.PolicyError, match="distortion"):
        _policy(method={"name": "mondrian"}, distortion=0.2)
