"""What every choice of the maker of pods is worth on a real panel: each left out in turn.

nlswork, 15 waves, as in the benchmark `pods`: thrifty (few decoys, no limit on lineages) and resilient (few people
linked, many decoys).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.pods import LINEAGE, RESILIENT, THRIFTY
from benchmarks.pods_panels import nlswork, publish
from numpy.typing import NDArray

from experiments.tables import table
from sequester.methods.pods import make
from sequester.methods.pods.classes import grouping
from sequester.methods.pods.classes.share_kernels import PodRuns
from sequester.methods.pods.pairing import couples

SETTINGS: dict[str, dict[str, Any]] = {
    "thrifty": {"decoys": THRIFTY},
    "resilient": {"decoys": RESILIENT, "lineage": LINEAGE},
}
MARKS = (1, 2, 5, 10, 15)


def _choices() -> dict[str, AbstractContextManager[Any]]:
    """What is left out, by name."""
    return {
        "everything": nullcontext(),
        "nobody changes places": patch.object(grouping, "exchange", _nothing),
        "pods stay in the class they were cut into": patch.object(grouping, "share_pods", _stay),
        "neither": patch.multiple(grouping, exchange=_nothing, share_pods=_stay),
        "rare types cost nothing": patch.object(couples, "FEW", 0.0),
        "links cost nothing": patch.object(couples, "LINK", 0.0),
        "couples stay while both are there": patch.object(make, "_ANEW", 0),
        "whoever is left alone is not paired once more": patch.object(couples, "_loosened", _nothing),
    }


def _nothing(*_: Any) -> int:
    return 0


def _stay(pods: PodRuns, *_: Any) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(pods.start) - 1), np.diff(pods.start))


def run() -> str:
    """Both settings without each choice, as Markdown."""
    panel, parts = nlswork(), []
    for title, options in SETTINGS.items():
        rows = []
        for name, without in _choices().items():
            with without:
                made = publish(panel, confidence=Fraction(1, 2), **options)
            last, problems = made.steps[-1], made.problems()
            if problems:
                raise AssertionError(f"pods without a choice ({name}) are no witness")
            mean = sum(made.losses) / len(made.losses)
            losses = [f"{made.losses[wave - 1]:.2f}" for wave in MARKS]
            shares = [f"{100 * share:.1f} %" for share in (made.decoys, last.decoys)]
            rows.append([name, *losses, f"{mean:.3f}", *shares, last.largest, f"{last.mean:.0f}"])
            print(title, *rows[-1], sep=" | ", flush=True)
        heads = ["", *(f"AIL, wave {wave}" for wave in MARKS), "mean AIL", "most decoys", "decoys, last wave",
                 "most linked", "mean linked"]  # fmt: skip
        parts.append(f"## {title}\n\n{table(heads, rows)}")
    return "\n".join(parts)


if __name__ == "__main__":
    print(run())
