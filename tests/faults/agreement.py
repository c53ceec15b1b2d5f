"""What must hold after any fault: ledger, folders and words agree, and the next command works as if nothing was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.csv as csv

from sequester.datasets import hospital, hospital_policy
from sequester.ledger import Entry, Key, Ledger

LEDGER = "hospital-admissions.ledger"
_FALSE = ("damaged", "restore", "backup", "internal error", "traceback", "exception ignored")


def tables(folder: Path) -> None:
    """A policy, and the tables of three releases."""
    people = hospital(150, seed=3)
    rules = hospital_policy().replace("name: mondrian", "name: merge")
    (folder / "policy.yaml").write_text(rules, encoding="utf-8")
    for name, count in (("first", 80), ("second", 110), ("third", 150)):
        csv.write_csv(people.slice(0, count), folder / f"{name}.csv")


def publish(name: str) -> tuple[object, ...]:
    """The words of a command that publishes one of them."""
    return "publish", f"{name}.csv", "-p", "policy.yaml", "--yes", "--seed", 2**63 + len(name)


def shown(folder: Path) -> dict[str, Path]:
    """The release folders that anybody can see, by their names."""
    found = {place.parent.name: place.parent for place in folder.rglob("release.json")}
    return {name: place for name, place in found.items() if not name.startswith(".")}


def recorded(folder: Path, *, agree: bool = False) -> list[Entry]:
    """The releases that the ledger knows, after all of it was verified; none where there is no ledger.

    agree  whether the folders of releases and the head of the ledger must agree with it
    """
    path = folder / LEDGER
    if not path.exists():
        return []
    with Ledger.open(path, key=Key.find(path), read_only=True) as ledger:
        assert ledger.log()[0].action == "created", "a ledger without a beginning"
        problems = ledger.verify(folder / "releases" if agree else None).problems
        assert problems == (), problems
        return ledger.releases()


def check_known(folder: Path, *, agree: bool = False) -> list[Entry]:
    """Right after a fault: whatever the world can see, the ledger has recorded, and it is whole."""
    entries = recorded(folder, agree=agree)
    seen = shown(folder)
    assert seen.keys() <= {entry.folder for entry in entries}, "a release is visible that the ledger does not know"
    for place in seen.values():
        assert json.loads((place / "release.json").read_text(encoding="utf-8"))["holds"]
        assert sum(1 for file in place.iterdir() if file.name.startswith("data.")) == 1
    published = {entry.folder for entry in entries if entry.status == "published"}
    assert published <= seen.keys(), "a release is called published that nobody can see"
    return entries


def check_words(folder: Path, name: str, entries: Sequence[Entry], *, code: int, said: str) -> None:
    """What a command said about the release of this name is true; `entries` are those of the ledger now."""
    text = said.lower()
    for word in _FALSE:
        assert word not in text, said
    known = any(entry.name == name for entry in entries)
    seen = any(place.split("-", 1)[1] == name for place in shown(folder))
    if code < 0:
        return
    if code == 0:
        assert known, f"exit 0, but the release is not recorded: {said}"
        assert seen, f"exit 0, but the release is not visible: {said}"
        return
    assert code in (5, 6, 130), f"exit {code}: {said}"
    assert "published 000" not in text, said
    assert ("stopped." in text) if code == 130 else ("error: " in text), said
    if known:
        for words in ("nothing was recorded", "nothing was changed", "no ledger was made", "nothing was made"):
            assert words not in text, f"the ledger has the release: {said}"
    if seen:
        assert "nothing was published" not in text, f"the release is visible: {said}"
        told = ("recorded and visible", "could not be shown", "stopped.")
        assert any(words in text for words in told), f"the release is visible, and nobody is told: {said}"


def check_order(folder: Path) -> list[Entry]:
    """After the next command: everything that was recorded is visible and the other way round, and nothing is left."""
    entries = check_known(folder, agree=True)
    assert {entry.folder for entry in entries} == shown(folder).keys()
    assert {entry.status for entry in entries} <= {"published"}
    assert strays(folder) == []
    return entries


def strays(folder: Path) -> list[str]:
    """Files that nobody will ever need."""
    found = (str(file.relative_to(folder)) for file in folder.rglob("*"))
    return sorted(name for name in found if name.endswith(".wal") or any(part[0] == "." for part in Path(name).parts))
