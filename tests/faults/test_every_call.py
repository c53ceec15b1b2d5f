"""A fault at every single system call that changes the disk, of a first and of a next publish.

Kills, writes that are cut short by a kill, full disks, broken disks, Ctrl-C: whatever happens and whenever, the ledger
knows what the world can see, what is said is true, and the next command puts everything in order.
"""

from __future__ import annotations

import errno
import random
import shutil
from pathlib import Path

import pytest

from agreement import publish
from sequester.errors import SequesterError
from shim import Driver, Mode, needs_compiler, survive

pytestmark = [needs_compiler]

# What happens at the n-th call, with which error, and at which of the calls that is worth a try: a full disk refuses
# only what needs room, and only writes can be torn.
FAULTS = {
    "kill": (Mode.KILL, 0, "wr-"),
    "torn write": (Mode.TORN, 0, "w"),
    "full disk": (Mode.ONWARD, errno.ENOSPC, "wr"),
    "broken disk": (Mode.ONWARD, errno.EIO, "wr-"),
    "one refusal": (Mode.ONCE, errno.EPERM, "wr-"),
    "ctrl-c": (Mode.INTERRUPT, 0, "wr-"),
}
SPARSE = {"one refusal", "ctrl-c"}
# A publish that makes fewer calls than these is not seen by the shim.
FEWEST = {"first": 70, "second": 45}


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["first", "second"])
def test_a_fault_at_any_call_loses_nothing_and_is_told_truly(
    driver: Driver, starts: dict[str, Path], tmp_path: Path, name: str, fault: str, part: int
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(starts[name], folder)
    kinds = driver.run(folder, *publish(name)).kinds
    assert len(kinds) > FEWEST[name]
    # A few more, should the calls not be the same every time.
    mode, code, worth = FAULTS[fault]
    places = [n for n, kind in enumerate(kinds + "wwww", 1) if kind in worth][part::2]
    if fault in SPARSE:
        places = random.Random(5).sample(places, len(places) // 2)
    wrong = []
    for n in places:
        try:
            survive(driver, starts[name], name, folder, n=n, mode=mode, errno=code)
        except (AssertionError, SequesterError) as error:
            wrong.append(f"call {n}: {error}")
    assert not wrong, "\n".join(wrong)
