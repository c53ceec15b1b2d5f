"""A rehearsal of nlswork: five yearly waves by every method that suits, and what other promises would cost.

The policy is that of `naive`. The pictures are docs/pictures/rehearsal.svg and docs/pictures/frontier.svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import sequester as sq
from experiments.naive import policy, women
from experiments.tables import table
from sequester.report.blocks import Grid
from sequester.report.rehearsed import rehearsal_blocks

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
VARY = {"k": (3, 5, 10), "confidence": (0.3, 0.5, 0.7)}


def run(waves: int = 5) -> str:
    """Both, as Markdown, and the pictures."""
    tables = [wave for _, wave in women(waves)]
    told = []
    for name, vary in (("rehearsal", None), ("frontier", VARY)):
        done = sq.rehearse(tables, policy("pods"), vary=vary)
        (PICTURES / f"{name}.svg").write_text(done.picture(), encoding="utf-8")
        told += [
            f"## {name}",
            *(table(*_shown(one)) for one in rehearsal_blocks(done.to_dict()) if isinstance(one, Grid)),
        ]
        advice = done.recommendation
        told += [] if advice is None else [f"Recommended: {advice.name}. {' '.join(advice.reasons)}"]
    return "\n\n".join(told) + "\n"


def _shown(grid: Grid) -> tuple[list[str], list[list[object]]]:
    return list(grid.heads), [["" if cell is None else cell for cell in row] for row in grid.rows]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waves", type=int, default=5)
    print(run(parser.parse_args().waves))
