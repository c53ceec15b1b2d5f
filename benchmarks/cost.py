"""What a release would cost on more machines: a model fitted to the runs that `benchmarks.scale` measured.

Every stage takes processor seconds in proportion to rows, and is shared out over processors; pieces (a part in a file
of the release) cost something each, and they grow with the square of the rows. Bytes that machines send each other go
over a network of a stated speed. `python -m benchmarks.cost` prints what follows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.scale import RUNS

PARALLEL = ("reading", "dealing out", "making parts", "comparing people", "writing")
# Bytes of one row, reckoned: as it is dealt, as it is published (to be sorted), and its hash.
DEALT, PUBLISHED, HASHED = 34.0, 26.0, 16.0
PART, FILE = 1_000_000, 1_500_000
# Seconds to open, read and append one piece (a part's rows in one file of the release), reckoned.
PIECE = 0.0004
# A task of a cluster is started, and its result comes back.
TASK = 0.05


@dataclass(frozen=True)
class Cluster:
    """Machines, their processors, and bytes per second between them."""

    machines: int
    processors: int
    network: float

    @property
    def cores(self) -> int:
        """All processors."""
        return self.machines * self.processors


@dataclass(frozen=True)
class Model:
    """Processor seconds per row, stage by stage, of a first and of a following release; `loss` of the fit."""

    per_row: dict[str, float]
    loss: float

    @classmethod
    def fit(cls, runs: Sequence[dict[str, Any]], which: str, *, cores: int) -> Model:
        """Least squares through the origin, weighted so that all sizes count alike."""
        per_row, errors = {}, []
        for stage in PARALLEL:
            pairs = [(run["rows"], run[f"{which}_stages"].get(stage, 0.0) * cores) for run in runs]
            rows, spent = (np.array(one, np.float64) for one in zip(*pairs, strict=True))
            per_row[stage] = float((spent / rows).mean())
            errors += [abs(per_row[stage] * count - time) / max(time, 1e-9) for count, time in pairs if time > 1]
        return cls(per_row, float(np.median(errors)) if errors else 0.0)

    def predict(self, rows: int, cluster: Cluster) -> dict[str, float]:
        """Seconds of every stage, and what it takes in between."""
        seconds = {stage: cost * rows / cluster.cores for stage, cost in self.per_row.items()}
        parts, files = -(-rows // PART), -(-rows // FILE)
        seconds["making parts"] += TASK * parts / cluster.cores
        seconds["writing"] += (PIECE * parts * files + TASK * files) / cluster.cores
        sent = (DEALT + PUBLISHED + HASHED) * rows
        if cluster.machines > 1:
            seconds["network"] = sent / (cluster.network * cluster.machines)
        return {
            **seconds,
            "together": sum(seconds.values()),
            "bytes between machines": sent,
            "parts": float(parts),
            "files": float(files),
            "pieces": float(parts) * files,
        }


def main() -> None:
    """Print the model and what it predicts."""
    runs = [
        run for run in json.loads(RUNS.read_text()) if run["method"] == "pods" and "making parts" in run["first_stages"]
    ]
    cluster = Cluster(machines=20, processors=16, network=1.25e9)
    for which in ("first", "second"):
        model = Model.fit(runs, which, cores=2)
        print(f"{which} release, {len(runs)} runs, median error of a stage {model.loss:.0%}")
        for stage, cost in model.per_row.items():
            print(f"  {stage:<20} {cost * 1e6:6.2f} processor seconds per million rows")
        for rows in (1_000_000_000, 10_000_000_000):
            told = model.predict(rows, cluster)
            print(f"  {rows:,} rows on {cluster.machines} machines of {cluster.processors} processors:")
            for name, value in told.items():
                print(f"    {name:<24} {value:,.0f}")


if __name__ == "__main__":
    main()
