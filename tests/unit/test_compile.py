"""What is compiled, counted: seconds differ from machine to machine, kernels and signatures do not."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import sequester as package
from command import invoke, sequester
from sequester.kernels import kernel
from sequester.publish.warm_up import TASKS, Warmth, names

PACKAGE = Path(package.__file__).parent
MOST = {"anonymize": 11, "first plan": 48, "second plan": 48}
"""Kernels and helpers that a path may compile. Whoever needs more says here why."""
SEVERAL: dict[str, int] = {}
"""Kernels and helpers that need more than one signature, and how many; none does."""
RUN = """
import json, sys
from sequester import kernels
from sequester.publish.warm_up import TASKS
done = {}
for name in sys.argv[1:]:
    TASKS[name]()
    done[name] = kernels.compiled()
print(json.dumps(done))
"""


def compiled(cache: Path, *names: str) -> dict[str, Any]:
    """What a fresh process has compiled after each of these tasks."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", RUN, *names]
    done: dict[str, Any] = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return done


slow = pytest.mark.faults
"""Compiled from nothing in processes of their own, which takes minutes: with the slower suite."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def from_nothing(cache: Path) -> dict[str, Any]:
    """The default path with nothing on disk."""
    return compiled(cache, *MOST)


@slow
def test_everything_is_compiled_with_one_signature(from_nothing: dict[str, Any]) -> None:
    many = {name: len(signatures) for name, signatures in from_nothing["second plan"].items() if len(signatures) > 1}
    assert many == SEVERAL


@slow
@pytest.mark.parametrize("path", MOST)
def test_no_more_is_compiled_than_a_path_needs(path: str, from_nothing: dict[str, Any]) -> None:
    assert 0 < len(from_nothing[path]) <= MOST[path]


@slow
def test_what_is_on_disk_is_not_compiled_again(cache: Path, from_nothing: dict[str, Any], tmp_path: Path) -> None:
    done = sequester("warm-up", "--format", "json", cwd=tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["prepared"], told["kept"]) == (list(names()), True)
    kept = sorted(cache.rglob("*.nbc"))
    again = sequester("warm-up", cwd=tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert re.fullmatch(r"The inner loops are ready \(\d+ s\)\.\n", again.stdout)
    assert sorted(cache.rglob("*.nbc")) == kept


def test_who_warms_up_without_a_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sequester.publish.warm_up.warm_up", lambda **_: Warmth(("a", "b"), 1.0, kept=False))
    done = invoke("warm-up", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "NUMBA_CACHE_DIR" in done.stderr


@pytest.mark.parametrize("task", TASKS)
def test_every_task_can_be_done(task: str) -> None:
    TASKS[task]()


@slow
def test_without_a_folder_to_keep_them_kernels_are_compiled_for_the_run_and_people_are_told(tmp_path: Path) -> None:
    # A file where the folders would have to be: nothing can be written there, whoever asks.
    place, nowhere = tmp_path / "installed", tmp_path / "file"
    shutil.copytree(PACKAGE, place / "sequester", ignore=shutil.ignore_patterns("__pycache__"))
    nowhere.touch()
    for folder in [place / "sequester", *(place / "sequester").rglob("*/")]:
        (folder / "__pycache__").touch()
    (tmp_path / "data.csv").write_text("age,illness\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(20)))
    (tmp_path / "policy.yaml").write_text(
        "version: 1\nseries: s\nattributes:\n  age: {role: quasi-identifier, kind: number}\n"
        "  illness: {role: sensitive}\nprotect: {k: 2}\n"
    )
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("NUMBA", "PYTHON"))}
    environment |= {
        "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(nowhere / "home"),
        "XDG_CACHE_HOME": str(nowhere / "cache"),
    }  # fmt: skip
    command = [sys.executable, "-m", "sequester", "anonymize", "data.csv", "--policy", "policy.yaml", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "for this run only" in " ".join(done.stderr.split())
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"csequester\nTupleOfAnEarlierVersion\n.", b"not pickled at all", b""])
def test_an_index_that_cannot_be_read_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    (tmp_path / "twice_of.py").write_text("def twice(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(tmp_path)
    twice = importlib.import_module("twice_of").twice
    assert kernel(twice)(21) == 42
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(pickle.dumps(numba.__version__) + content)
    again = kernel(twice)
    assert again(21) == 42
    assert again.compiled.stats.cache_misses
    assert not kernel(twice)(0)
    del sys.modules["twice_of"]
