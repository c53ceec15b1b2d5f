"""A rehearsal of five waves of a panel of 4,000 people by every method that suits: seconds from beginning to end."""

from __future__ import annotations

import os

import yaml

import sequester as sq
from benchmarks.figures import Figure
from sequester.datasets import hospital_panel, hospital_panel_policy

PEOPLE, WAVES = 4_000, 5


def run() -> list[Figure]:
    """Every variant of the policy, as many at a time as there are processors; loops are compiled before."""
    policy = sq.Policy.model_validate(yaml.safe_load(hospital_panel_policy()))
    sq.rehearse(hospital_panel(200, releases=2, seed=1), policy, processes=1)
    done = sq.rehearse(hospital_panel(PEOPLE, releases=WAVES, seed=1), policy)
    spent = sum(trial.seconds for trial in done.trials)
    least = min(done.people)
    return [
        Figure("time for the rehearsal", done.seconds, "s", at_most=60, note=f"on {os.cpu_count()} processors"),
        Figure("variants in it", sum(bool(trial.waves) for trial in done.trials), at_least=5),
        Figure("processor time of variants", spent, "s"),
        Figure("fewest people in a wave", least),
    ]
