"""A clinic that publishes again and again: small tables, a policy with a hierarchy file, and a series to start from."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from command import invoke

CANARY = "CANARY-7f3a"
ILLNESSES = ("flu", "cold", "gout", "lupus", "asthma")
CITIES = "Bonn;West;*\nKoeln;West;*\nJena;East;*\nHalle;East;*\n"
POLICY = """\
version: 1
series: clinic
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 99]}
  city: {role: quasi-identifier, kind: category, hierarchy: cities.csv}
  illness: {role: sensitive}
protect: {k: 2, confidence: 0.6}
method: {name: mondrian}
"""
LEDGER = "clinic.ledger"
Row = tuple[str, int, str, str]


def people(count: int) -> list[Row]:
    """The first so many of all the clinic's people; every id and every illness is a canary."""
    draw = random.Random(4)
    rows: list[Row] = []
    for number in range(count):
        age, city = draw.randrange(100), draw.choice(("Bonn", "Koeln", "Jena", "Halle"))
        # In turns: two people who come one after the other never have the same.
        rows.append((f"{CANARY}-{number}", age, city, f"{CANARY} {ILLNESSES[number % len(ILLNESSES)]}"))
    return rows


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("id,age,city,illness\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    return path


def change(path: Path, number: int, how: Callable[[Row], Row]) -> None:
    """Rewrite one person of the table of the first quarter."""
    rows = people(60)
    rows[number] = how(rows[number])
    write(path, [*rows, *people(90)[60:]])


def set_up(folder: Path) -> Path:
    """Policy, hierarchy, and the tables of three quarters: the third has one newcomer, who cannot be hidden."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "cities.csv").write_text(CITIES)
    for name, count in (("q1", 60), ("q2", 90), ("q3", 91)):
        write(folder / f"{name}.csv", people(count))
    return folder


def publish_two(folder: Path) -> Path:
    """The same with the first two quarters published."""
    set_up(folder)
    for name in ("q1", "q2"):
        done = invoke("publish", f"{name}.csv", "-p", "policy.yaml", "--yes", "--seed", str(1 << 63 | 7), cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """Replace text that is there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
