"""What is kept of compiled code is run by whoever reads it: nothing of it is read where others can write."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command import sequester

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here"),
]
NOBODY = 65534
CALL = """
import sys
from sequester import kernels
from twice_of import twice
kernels.announce = print
print(kernels.kernel(twice)(21))
"""


class Evil:
    """Whoever reads this has a file more."""

    def __init__(self, victim: Path) -> None:
        self._victim = victim

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch '{self._victim}'",)


class Steward:
    """A folder with a module that is compiled, and processes that call it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache, self.victim = folder, folder / "shared" / "cache", folder / "victim"
        (folder / "work").mkdir()
        (folder / "code").mkdir()
        (folder / "code" / "twice_of.py").write_text("def twice(number):\n    return 2 * number\n")
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA")}
        self.environment |= {
            "NUMBA_CACHE_DIR": str(self.cache),
            "PYTHONPATH": str(folder / "code"),
            "XDG_CACHE_HOME": str(folder / "home"),
        }

    def call(self) -> str:
        """What a process says that calls the kernel."""
        command = [sys.executable, "-P", "-c", CALL]
        done = subprocess.run(
            command, cwd=self.folder / "work", env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def poison(self, place: Path) -> list[Path]:
        """Replace every index below a folder."""
        indexes = list(place.rglob("*.nbi"))
        assert indexes
        for index in indexes:
            index.write_bytes(pickle.dumps(Evil(self.victim)))
        return indexes


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    """With a cache in which everything is as it should be."""
    begun = Steward(tmp_path)
    assert begun.call().endswith("42\n")
    return begun


def test_an_index_of_the_stewards_own_would_be_run(steward: Steward) -> None:
    """So what the others show is no accident."""
    assert steward.call() == "42\n"
    steward.poison(steward.cache)
    subprocess.run([sys.executable, "-P", "-c", CALL], env=steward.environment, capture_output=True)
    assert steward.victim.exists()


def give_away(path: Path) -> None:
    """To another user."""
    if os.getuid():
        pytest.skip("only root can give a file to somebody else")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def open_to_all(steward: Steward) -> None:
    steward.cache.chmod(0o777)


def open_to_a_group(steward: Steward) -> None:
    steward.cache.chmod(0o770)


def sticky(steward: Steward) -> None:
    steward.cache.chmod(0o1777)


def below_an_open_folder(steward: Steward) -> None:
    steward.cache.parent.chmod(0o777)


def of_somebody_else(steward: Steward) -> None:
    give_away(steward.cache)


def below_a_folder_of_somebody_else(steward: Steward) -> None:
    give_away(steward.cache.parent)


def a_link_that_others_can_turn(steward: Steward) -> None:
    """What it leads to is private, and holds what the steward was sent."""
    steward.cache.rename(steward.folder / "unpacked")
    steward.cache.symlink_to(steward.folder / "unpacked")
    steward.cache.parent.chmod(0o777)


def a_link_through_an_open_folder(steward: Steward) -> None:
    steward.cache.rename(steward.folder / "unpacked")
    (steward.folder / "open").mkdir()
    (steward.folder / "open").chmod(0o777)
    (steward.folder / "open" / "on").symlink_to(steward.folder / "unpacked")
    steward.cache.symlink_to(Path("..") / "open" / "on")


FOLDERS = [
    open_to_all,
    open_to_a_group,
    sticky,
    below_an_open_folder,
    of_somebody_else,
    below_a_folder_of_somebody_else,
    a_link_that_others_can_turn,
    a_link_through_an_open_folder,
]


@pytest.mark.parametrize("opened", FOLDERS)
def test_a_folder_that_others_can_write_to_is_not_read_and_people_are_told(
    steward: Steward, opened: Callable[[Steward], None]
) -> None:
    opened(steward)
    steward.poison(steward.cache)
    said = steward.call()
    assert said.count("NUMBA_CACHE_DIR names is not used") == 1
    assert said.endswith("42\n")
    assert not steward.victim.exists()
    # Beside the source nobody else can write, so the next process finds it there.
    assert "Compiling" in said
    assert "Compiling" not in steward.call()


def an_index_of_somebody_else(index: Path) -> None:
    give_away(index)


def an_open_index(index: Path) -> None:
    index.chmod(0o666)


def a_link_to_an_index(index: Path) -> None:
    index.rename(index.with_name("other"))
    index.symlink_to(index.with_name("other"))


@pytest.mark.parametrize("planted", [an_index_of_somebody_else, an_open_index, a_link_to_an_index])
def test_what_was_planted_before_a_folder_was_closed_is_not_read(
    steward: Steward, planted: Callable[[Path], None]
) -> None:
    for index in steward.poison(steward.cache):
        planted(index)
    assert steward.call().endswith("42\n")
    assert not steward.victim.exists()
    assert steward.call() == "42\n"


def test_code_that_somebody_else_planted_behind_a_good_index_is_not_read(steward: Steward) -> None:
    for code in steward.cache.rglob("*.nbc"):
        code.write_bytes(pickle.dumps(Evil(steward.victim)))
        give_away(code)
    assert steward.call().endswith("42\n")
    assert not steward.victim.exists()


def test_beside_a_source_that_others_can_write_to_nothing_is_read_and_the_users_own_folder_is_used(
    steward: Steward,
) -> None:
    del steward.environment["NUMBA_CACHE_DIR"]
    assert steward.call().endswith("42\n")
    beside = steward.folder / "code" / "__pycache__"
    beside.chmod(0o777)
    steward.poison(beside)
    assert steward.call().endswith("42\n")
    assert steward.call() == "42\n"
    assert not steward.victim.exists()
    assert (steward.folder / "home" / "sequester").stat().st_mode & 0o777 == 0o700


def test_what_is_kept_with_a_lax_umask_is_closed(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        steward = Steward(tmp_path)
        steward.folder.joinpath("work").chmod(0o755)
        steward.folder.joinpath("code").chmod(0o755)
        assert steward.call().endswith("42\n")
    finally:
        os.umask(before)
    assert steward.call() == "42\n"
    assert {path.stat().st_mode & 0o022 for path in [steward.cache, *steward.cache.rglob("*")]} == {0}


def test_settings_of_numba_in_the_working_folder_name_no_cache(steward: Steward) -> None:
    """A folder of data that came from elsewhere; what is in it belongs to whoever unpacked it."""
    steward.cache.rename(steward.folder / "work" / "cache")
    steward.poison(steward.folder / "work" / "cache")
    (steward.folder / "work" / ".numba_config.yaml").write_text("cache_dir: cache\n")
    del steward.environment["NUMBA_CACHE_DIR"]
    assert steward.call().endswith("42\n")
    assert not steward.victim.exists()


@pytest.mark.parametrize("name", ["pickle", "numba", "sequester"])
def test_modules_in_the_working_folder_are_not_run_by_processes_that_are_started(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'victim')!r}, 'w')\n")
    done = sequester("warm-up", cwd=tmp_path, PYTHONSAFEPATH="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "victim").exists()


def test_the_command_line_says_once_that_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "data.csv").write_text("age,illness\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(20)))
    (tmp_path / "policy.yaml").write_text(
        "version: 1\nseries: s\nattributes:\n  age: {role: quasi-identifier, kind: number}\n"
        "  illness: {role: sensitive}\nprotect: {k: 2}\n"
    )
    done = sequester("anonymize", "data.csv", "--out", "out", cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "open"))
    assert done.returncode == 0
    assert " ".join(done.stderr.split()).count("NUMBA_CACHE_DIR names is not used") == 1
    assert not list((tmp_path / "open").iterdir())
