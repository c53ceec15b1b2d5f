"""How much code there is: lines per room against what the room may have, modules, and functions that are too wide.

    python tools/size.py [ROOT]    the table, for another source tree too

A line of code has a token on it that is neither a comment nor a docstring. `aim` is what a room is to shrink to, `most`
what it may not exceed until then: whoever makes a room larger than that changes `ROOMS`, where it is seen.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SOURCES = Path(__file__).parents[1] / "src" / "sequester"
BLANK = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
LONGEST, PARAMETERS, FIELDS = 80, 8, 12
"""Lines of a function, its parameters, and fields of a class."""


@dataclass(frozen=True)
class Room:
    """Folders that are one room of the plan, and how many lines of code it is to have, and may have."""

    folders: tuple[str, ...]
    aim: int
    most: int


ROOMS = {
    "policy": Room(("policy",), 1500, 2140),
    "table": Room(("domain", "ingest"), 3700, 5275),
    "promises": Room(("guarantees",), 800, 860),
    "history": Room(("history",), 1300, 1440),
    "attacks": Room(("attacks",), 4600, 5950),
    "methods": Room(("methods",), 7200, 9560),
    "series": Room(("publish", "engine"), 3800, 7460),
    "ledger": Room(("ledger",), 1800, 4230),
    "report": Room(("report", "analyst", "metrics"), 2800, 4120),
    "cli": Room(("cli",), 1800, 2626),
    "beside": Room((".",), 700, 1085),
}
COUNTED = {"modules": (260, 368), "wide functions": (12, 16), "broad classes": (0, 18)}
"""What else is to shrink: aim and most. Wide is over `LONGEST` or `PARAMETERS`, broad over `FIELDS`."""


@dataclass(frozen=True)
class Module:
    """What is counted in one file."""

    place: Path
    lines: int
    code: int
    comments: int
    wide: tuple[str, ...]
    broad: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The folder of the package it is in."""
        return self.place.parts[0] if len(self.place.parts) > 1 else "."


def modules(root: Path = SOURCES) -> list[Module]:
    """Every module of a package, counted."""
    return [_count(file, file.relative_to(root)) for file in sorted(root.rglob("*.py"))]


def counts(found: list[Module]) -> dict[str, int]:
    """What else is counted, by the names of `COUNTED`."""
    wide, broad = sum(len(one.wide) for one in found), sum(len(one.broad) for one in found)
    return {"modules": len(found), "wide functions": wide, "broad classes": broad}


def by_room(found: list[Module]) -> dict[str, list[Module]]:
    """The modules of every room; folders that no room names are rooms of their own."""
    room_of = {folder: name for name, room in ROOMS.items() for folder in room.folders}
    rooms: dict[str, list[Module]] = {name: [] for name in ROOMS}
    for module in found:
        rooms.setdefault(room_of.get(module.folder, module.folder), []).append(module)
    return rooms


def _count(file: Path, place: Path) -> Module:
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.update(_rows(node))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    code = {row for one in tokens if one.type not in BLANK for row in range(one.start[0], one.end[0] + 1)}
    return Module(
        place,
        lines=text.count("\n"),
        code=len(code - said),
        comments=sum(one.type == tokenize.COMMENT for one in tokens),
        wide=tuple(_wide(tree)),
        broad=tuple(_broad(tree)),
    )


def _rows(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _wide(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            parameters = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            if parameters > PARAMETERS or len(_rows(node)) > LONGEST:
                yield node.name


def _broad(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and sum(isinstance(one, ast.AnnAssign) for one in node.body) > FIELDS:
            yield node.name


def main() -> None:
    """Print the table."""
    found = modules(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES)
    if not found:
        raise SystemExit("no Python files there")
    print(f"{'room':<16}{'code':>8}{'aim':>8}{'most':>8}{'lines':>8}{'modules':>9}")
    for name, here in by_room(found).items():
        code, lines = sum(one.code for one in here), sum(one.lines for one in here)
        room = ROOMS.get(name, Room((name,), 0, 0))
        print(f"{name:<16}{code:>8,}{room.aim:>8,}{room.most:>8,}{lines:>8,}{len(here):>9}")
    code, lines = sum(one.code for one in found), sum(one.lines for one in found)
    aim, most = sum(room.aim for room in ROOMS.values()), sum(room.most for room in ROOMS.values())
    print(f"{'together':<16}{code:>8,}{aim:>8,}{most:>8,}{lines:>8,}{len(found):>9}")
    for name, count in counts(found).items():
        aim, most = COUNTED[name]
        print(f"{name:<16}{count:>8,}{aim:>8,}{most:>8,}")
    sizes = [one.lines for one in found]
    comments = sum(one.comments for one in found) / lines
    print(f"modules have {median(sizes):.0f} lines, the longest {max(sizes)}; comments are {comments:.1%} of the lines")


if __name__ == "__main__":
    main()
