"""Run benchmarks by name, or all of them; the exit code is 1 when a target is missed."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from benchmarks.figures import DataMissing, save, show
from benchmarks.timing import seconds

SUBJECTS = {
    "start-up": "benchmarks.start_up",
    "compile": "benchmarks.compile",
    "full-domain-adult": "benchmarks.full_domain_adult",
    "mondrian-adult": "benchmarks.mondrian_adult",
    "mondrian-scale": "benchmarks.mondrian_scale",
    "audit-adult": "benchmarks.audit_adult",
    "audit-pods": "benchmarks.audit_pods",
    "pods-matching": "benchmarks.pods_matching",
    "pods": "benchmarks.pods",
    "series-adult": "benchmarks.series_adult",
    "bcf-adult": "benchmarks.bcf_adult",
    "lifetime": "benchmarks.lifetime",
    "cluster-adult": "benchmarks.cluster_adult",
    "series-scale": "benchmarks.series_scale",
    "scale": "benchmarks.scale",
    "memory": "benchmarks.memory",
    "report": "benchmarks.report",
    "rehearse": "benchmarks.rehearse",
}


def main() -> int:
    """Run what was asked for, in the given order."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(SUBJECTS)} (default: all)")
    names = parser.parse_args().names or list(SUBJECTS)
    if unknown := [name for name in names if name not in SUBJECTS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; choose from {', '.join(SUBJECTS)}")
    missed, skipped = 0, 0
    for name in names:
        try:
            taken, figures = seconds(import_module(SUBJECTS[name]).run)
        except DataMissing as missing:
            print(f"{name}: skipped. {missing}\n", file=sys.stderr)
            skipped += 1
            continue
        show(name, figures)
        print(f"{taken:.0f} s, written to {save(name, figures, seconds=taken)}\n", flush=True)
        missed += sum(figure.passed is False for figure in figures)
    print(f"targets missed: {missed}, benchmarks skipped: {skipped} of {len(names)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
