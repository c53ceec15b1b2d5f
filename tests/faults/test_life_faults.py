"""A fault at every system call that changes the disk, while a release is withdrawn, a series closed, people renamed.

Whatever happens and whenever, it was done or it was not, and what is said about it is true; the next command puts the
folder of a withdrawn release where it belongs, and the series goes on.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pytest

from agreement import LEDGER, publish, recorded
from sequester.ledger import Key, Ledger, aliases, life
from sequester.policy import Policy
from shim import Done, Driver, Mode, needs_compiler

pytestmark = [needs_compiler]

RULES = ("-p", "policy.yaml")
COMMANDS = {
    life.WITHDRAWN: ("ledger", "withdraw", "1", *RULES, "--reason", "wrong table"),
    life.CLOSED: ("ledger", "close", *RULES),
    aliases.RENAMED: ("ledger", "people", "mapping.csv", "--old", "was", "--new", "is", *RULES),
}
UNDO = {
    life.WITHDRAWN: ("ledger", "withdraw", "1", *RULES, "--undo"),
    life.CLOSED: ("ledger", "close", *RULES, "--undo"),
    aliases.RENAMED: ("ledger", "people", *RULES, "--undo"),
}
FAULTS = {
    "kill": (Mode.KILL, 0, "wr-"),
    "torn write": (Mode.TORN, 0, "w"),
    "full disk": (Mode.ONWARD, errno.ENOSPC, "wr"),
    "broken disk": (Mode.ONWARD, errno.EIO, "wr-"),
}
FALSE = ("damaged", "internal error", "traceback")


@pytest.fixture(scope="module")
def start(starts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release is published, and everybody of it has another id."""
    folder = Path(shutil.copytree(starts["second"], tmp_path_factory.mktemp("life") / "start"))
    person = Policy.load(folder / "policy.yaml").person
    assert person is not None
    ids = csv.read_csv(folder / "first.csv")[person]
    others = pa.array([f"n{name}" for name in ids.to_pylist()])
    csv.write_csv(pa.table({"was": ids, "is": others}), folder / "mapping.csv")
    return folder


def happened(folder: Path, action: str) -> int:
    recorded(folder)
    with Ledger.open(folder / LEDGER, key=Key.find(folder / LEDGER), read_only=True) as ledger:
        return [event.action for event in ledger.log()].count(action)


def check_after(driver: Driver, folder: Path, action: str, done: Done) -> None:
    times = happened(folder, action)
    assert times in (0, 1)
    if done.code == 0:
        assert times == 1, f"exit 0, but it is not recorded: {done.said}"
    assert not any(word in done.said.lower() for word in FALSE), done.said
    again = driver.run(folder, *COMMANDS[action])
    assert again.code == (0 if times == 0 else 6), again.said
    assert happened(folder, action) == 1
    assert recorded(folder, agree=True)
    hidden = folder / "releases" / "hospital-admissions" / "withdrawn" / "0001-first"
    assert hidden.is_dir() == (action == life.WITHDRAWN)


def check_going_on(driver: Driver, folder: Path, action: str) -> None:
    for words in (UNDO[action], publish("second")):
        ended = driver.run(folder, *words)
        assert ended.code == 0, ended.said
    assert [entry.name for entry in recorded(folder, agree=True)] == ["first", "second"]
    assert not list(folder.rglob("withdrawn/*"))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("action", COMMANDS, ids=["withdraw", "close", "people"])
def test_a_fault_at_any_call_leaves_before_or_after(
    driver: Driver, start: Path, tmp_path: Path, action: str, fault: str
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(start, folder)
    kinds = driver.run(folder, *COMMANDS[action]).kinds
    assert len(kinds) > 10
    mode, code, worth = FAULTS[fault]
    wrong = []
    places = [n for n, kind in enumerate(kinds, 1) if kind in worth]
    # Some calls, and the last ones, where the head is written and the folder moved.
    for n in sorted({*places[::5], *places[-5:]}):
        shutil.rmtree(folder)
        shutil.copytree(start, folder)
        try:
            check_after(driver, folder, action, driver.run(folder, *COMMANDS[action], n=n, mode=mode, errno=code))
        except AssertionError as error:
            wrong.append(f"call {n}: {error}")
    assert not wrong, "\n".join(wrong)
    check_going_on(driver, folder, action)
