"""A small picture of a few curves over releases, readable on light and dark pages; no library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 220, 64, 44
COLORS = ("bad", "good", "other")
STYLE = """
  svg { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .page { fill: #ffffff; } .ink { fill: #24292f; } .soft { fill: #57606a; } .grid { stroke: #d0d7de; }
  .bad { stroke: #cf222e; } .good { stroke: #0969da; } .other { stroke: #8250df; }
  text.bad { fill: #cf222e; stroke: none; } text.good { fill: #0969da; stroke: none; }
  text.other { fill: #8250df; stroke: none; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .ink { fill: #e6edf3; } .soft { fill: #9198a1; } .grid { stroke: #30363d; }
    .bad { stroke: #ff7b72; } .good { stroke: #79c0ff; } .other { stroke: #d2a8ff; }
    text.bad { fill: #ff7b72; } text.good { fill: #79c0ff; } text.other { fill: #d2a8ff; }
  }
"""


@dataclass(frozen=True)
class Curve:
    """A name and percentages, one per release."""

    name: str
    percent: Sequence[float]


def draw(curves: Sequence[Curve], *, title: str, below: str) -> str:
    """The curves as SVG; names stand at their ends, moved apart where they would meet."""
    releases = max(len(curve.percent) for curve in curves)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(release: int) -> float:
        return LEFT + (right - LEFT) * (release - 1) / max(releases - 1, 1)

    def y(percent: float) -> float:
        return bottom - (bottom - TOP) * percent / 100

    says = "; ".join(f"{curve.name}: {curve.percent[-1]:.0f} % after {len(curve.percent)} releases" for curve in curves)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}. {escape(says)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="10"/>',
        f'<text class="ink" x="20" y="26" font-size="16" font-weight="600">{escape(title)}</text>',
        f'<text class="soft" x="20" y="44" font-size="12.5">{escape(below)}</text>',
    ]
    for percent in range(0, 101, 25):
        at = y(percent)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        lines.append(
            f'<text class="soft" x="{LEFT - 8}" y="{at + 4:.1f}" font-size="12" text-anchor="end">{percent} %</text>'
        )
    for release in {1, releases, *range(5, releases, 5)}:
        lines.append(
            f'<text class="soft" x="{x(release):.1f}" y="{bottom + 18}" font-size="12" text-anchor="middle">'
            f"{release}</text>"
        )
    middle = (LEFT + right) / 2
    lines.append(
        f'<text class="soft" x="{middle:.1f}" y="{bottom + 36}" font-size="12" text-anchor="middle">releases</text>'
    )
    low = bottom + 18.0
    for curve, color in sorted(zip(curves, COLORS, strict=False), key=lambda one: one[0].percent[-1]):
        points = " ".join(f"{x(place):.1f},{y(percent):.1f}" for place, percent in enumerate(curve.percent, 1))
        lines.append(f'<polyline class="{color}" fill="none" stroke-width="2.5" points="{points}"/>')
        low = min(y(curve.percent[-1]) + 4, low - 17)
        name = f"{curve.name}: {curve.percent[-1]:.0f} %"
        at = f'x="{right + 8}" y="{low:.1f}" font-size="13" font-weight="600"'
        lines.append(f'<text class="{color}" {at}>{escape(name)}</text>')
    return "\n".join([*lines, "</svg>", ""])
