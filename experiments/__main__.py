"""Run experiments by name, or all of them; what they give is recorded, and shown on the pages of the documentation."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks.figures import DataMissing

from experiments.record import keep

SUBJECTS = {
    "byun": "experiments.byun",
    "fung": "experiments.fung",
    "wong": "experiments.wong",
    "churn": "experiments.churn",
    "reddy": "experiments.reddy",
    "minimality": "experiments.minimality",
    "panels": "experiments.panels",
    "naive": "experiments.naive",
    "rehearsed": "experiments.rehearsed",
    "pods-ablation": "experiments.pods_ablation",
    "decoys": "experiments.decoys",
}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run what was asked for, in the given order."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(SUBJECTS)} (default: all)")
    names = parser.parse_args().names or list(SUBJECTS)
    if unknown := [name for name in names if name not in SUBJECTS]:
        parser.error(f"no such experiment: {', '.join(unknown)}; choose from {', '.join(SUBJECTS)}")
    for name in names:
        begun = time.perf_counter()
        try:
            text = import_module(SUBJECTS[name]).run()
        except DataMissing as missing:
            print(f"{name}: skipped. {missing}\n", file=sys.stderr)
            continue
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{name}.md"
        path.write_text(text, encoding="utf-8")
        keep(name, text)
        print(text)
        print(f"{time.perf_counter() - begun:.0f} s, written to {path}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
