"""How people move between releases: bands of those who stayed, between those who joined, returned and left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sequester.report.canvas import WIDE, Picture, at, in_words, legend, place, rect, short

_STEP, _BAR, _HIGH = 150, 16, 180


@dataclass(frozen=True)
class Stage:
    """The people of one release: of those some joined, some returned, and some stayed from the release before.

    `left` of the release before are not in this one.
    """

    name: str
    stayed: int
    joined: int = 0
    returned: int = 0
    left: int = 0

    @property
    def people(self) -> int:
        """Everybody in it."""
        return self.stayed + self.joined + self.returned


def flow(title: str, stages: Sequence[Stage], *, note: str = "") -> Picture:
    """A bar per release and bands between them; who joined or returned comes from above, who left goes down."""
    width = max(WIDE, 90 + _STEP * len(stages))
    most = max((stage.people for stage in stages), default=1) or 1
    items = [
        (rect(0, 0, 28, 12, "w1 k1 b"), "stayed"),
        (_dashed(rect(0, 0, 28, 12, "w3 k3 b"), "7 3"), "joined"),
        (_dashed(rect(0, 0, 28, 12, "w4 k4 b"), "2 2"), "returned"),
        (_dashed(rect(0, 0, 28, 12, "w2 k2 b"), "4 3"), "left"),
    ]
    samples, high = legend(items, width)
    top, step = high + 70, (width - 120) / max(len(stages) - 1, 1) if len(stages) > 1 else _STEP
    size = _HIGH / most
    drawn = [samples]
    for number, stage in enumerate(stages):
        x = 46 + number * step
        drawn.append(
            rect(x, top, _BAR, stage.people * size, "f1 k1 b", f"{stage.name}: {in_words(stage.people)} people")
        )
        drawn.append(at(x + _BAR / 2, top + _HIGH + 66, short(stage.name, int(step / 7.5)), "m"))
        drawn.append(at(x + _BAR / 2, top + _HIGH + 83, in_words(stage.people), "s m"))
        new = (stage.joined + stage.returned) * size
        if stage.joined:
            drawn.append(_enter(x, top + stage.returned * size, stage.joined * size, "w3 k3 b", "7 3"))
        if stage.returned:
            drawn.append(_enter(x, top, stage.returned * size, "w4 k4 b", "2 2", deep=26))
        if new:
            said = [f"+{in_words(count)}" for count in (stage.joined, stage.returned) if count]
            drawn.append(at(x - 4, top - 40, " ".join(said), "s e" if number else "s"))
        if number:
            before = stages[number - 1]
            drawn.append(_band(x - step + _BAR, top, x, top + new, stage.stayed * size))
            if stage.left:
                end = top + before.people * size
                drawn.append(_leave(x - step + _BAR, end, stage.left * size))
                drawn.append(at(x - step + _BAR + 40, top + before.people * size + 44, f"-{in_words(stage.left)}", "s"))
    rows = tuple((one.name, one.people, one.joined, one.stayed, one.returned, one.left) for one in stages)
    heads = ("release", "people", "joined", "stayed", "returned", "left since the one before")
    told = f"{title}: " + "; ".join(
        f"{one.name} has {in_words(one.people)} people, {in_words(one.joined)} new, {in_words(one.left)} left"
        for one in stages
    )
    return Picture(title, told + ".", int(width), int(top) + _HIGH + 94, "".join(drawn), heads, rows, note)


def _band(x: float, y: float, to_x: float, to_y: float, thick: float) -> str:
    """A band from the right side of a bar to the left side of the next."""
    half = (x + to_x) / 2
    upper = _curve((half, y), (half, to_y), (to_x, to_y))
    lower = _curve((half, to_y + thick), (half, y + thick), (x, y + thick))
    return f'<path d="M{_spot(x, y)}{upper}L{_spot(to_x, to_y + thick)}{lower}Z" class="w1 k1 b"/>'


def _enter(x: float, y: float, thick: float, kind: str, dash: str, *, deep: float = 38) -> str:
    """A band that comes into a bar from above left."""
    far, above, end = x - deep, y - 34, y + thick
    upper = _curve((far + 4, y), (x - 16, y), (x, y))
    lower = _curve((x - 20, end), (far - 6, y + thick * 0.6), (far - 8, above))
    return f'<path d="M{_spot(far, above)}{upper}L{_spot(x, end)}{lower}Z" class="{kind}" stroke-dasharray="{dash}"/>'


def _leave(x: float, end: float, thick: float) -> str:
    """A band that goes out of the foot of a bar, down to the right."""
    start, below = end - thick, end + 34
    outer = _curve((x + 20, start), (x + 34, end - thick * 0.4), (x + 36, below))
    inner = _curve((x + 24, end), (x + 14, end), (x, end))
    drawn = f"M{_spot(x, start)}{outer}L{_spot(x + 28, below)}{inner}Z"
    return f'<path d="{drawn}" class="w2 k2 b" stroke-dasharray="4 3"/>'


def _curve(*spots: tuple[float, float]) -> str:
    return "C" + " ".join(_spot(*spot) for spot in spots)


def _spot(x: float, y: float) -> str:
    return f"{place(x)} {place(y)}"


def _dashed(drawn: str, dash: str) -> str:
    return drawn.replace(" class=", f' stroke-dasharray="{dash}" class=', 1)
