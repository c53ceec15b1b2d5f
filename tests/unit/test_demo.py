"""What the demo says about invented people can be checked by hand, and holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sequester.cli import demo
from sequester.datasets import hospital_panel, hospital_panel_policy
from sequester.policy import Policy
from sequester.publish.files import write_file, write_text


def test_whoever_is_told_of_is_left_by_a_subtraction_and_the_value_with_her(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / demo.RULES, hospital_panel_policy())
    for number, table in enumerate(hospital_panel(300, releases=demo.TIMES, seed=2), start=1):
        write_file(table, tmp_path / demo.TABLES / f"{number}.csv")
    told = demo._publish_naively(tmp_path, Policy.load(tmp_path / demo.RULES), seed=2)
    audit = told.audits[-1]
    history = audit.histories[0]
    monkeypatch.setattr(demo, "EXPOSED", 1000)
    examples = demo._examples(audit)
    assert len(examples) > 10
    for finding in examples:
        people, rows = [], []
        for side in ("from", "minus"):
            release = history.releases[finding.witness[f"{side}_release"] - 1]
            classes = np.array(finding.witness[side]) - 1
            assert release.member is not None
            people.append(set(np.flatnonzero(np.isin(release.member, classes)).tolist()))
            rows.append(int(release.counts[classes, history.values.index(finding.value)].sum()))
        assert [history.people[person] for person in people[0] - people[1]] == list(finding.people)
        assert rows[0] == rows[1] + 1
