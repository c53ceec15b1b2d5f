"""The built wheel in empty environments: one per Python that is there, with the locked packages and nothing else.

    python tools/try_wheel.py            # 3.11, 3.12 and 3.13; those that are absent are skipped, and said

In each, outside the sources, a tiny series is proposed, checked, published twice and audited by the installed command.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
LOCKED = ROOT / "requirements" / "run.txt"
POLICY = """\
version: 1
series: smoke
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 99]}
  zip: {role: quasi-identifier, kind: code, length: 3}
  diagnosis: {role: sensitive}
protect: {k: 2, confidence: 0.5}
method: {name: merge}
"""


class Failed(Exception):
    """A step that did not end as it should."""


def interpreter(version: str) -> str | None:
    """The path of a Python of this version: on the PATH, or the newest that pyenv has."""
    if (found := shutil.which(f"python{version}")) and _is(found, version):
        return found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{version}.*/bin/python"), key=lambda path: _numbers(path.parts[-3]))
    return str(installed[-1]) if installed else None


def build(folder: Path) -> Path:
    """The wheel, made by the interpreter that runs this."""
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def try_one(version: str, python: str, wheel: Path, folder: Path) -> float:
    """Install the wheel into an empty environment, use it, and say how many seconds that took."""
    begun = time.monotonic()
    _run([python, "-m", "venv", str(folder / "env")], cwd=folder)
    own = folder / "env" / "bin" / "python"
    pip = [str(own), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    _run([*pip, "--only-binary", ":all:", "--require-hashes", "-r", str(LOCKED)], cwd=folder)
    _run([*pip, "--no-deps", "--no-index", str(wheel)], cwd=folder)
    _run([str(own), "-m", "pip", "--disable-pip-version-check", "check"], cwd=folder)
    _use(folder / "env" / "bin" / "sequester", own, folder / "work", version)
    return time.monotonic() - begun


def _use(command: Path, python: Path, work: Path, version: str) -> None:
    work.mkdir()
    where = _run([str(python), "-c", "import sequester, sys; print(sequester.__file__); print(sys.version)"], cwd=work)
    if str(ROOT / "src") in where or f"\n{version}." not in where:
        raise Failed(f"not the installed package, or not Python {version}")
    (work / "policy.yaml").write_text(POLICY)
    people = [(number, 20 + number % 8, f"02{number % 3}", "abcd"[number % 4]) for number in range(48)]
    for name, count in (("first", 32), ("second", 48)):
        rows = "".join(f"p{number},{age},{place},{value}\n" for number, age, place, value in people[:count])
        (work / f"{name}.csv").write_text("id,age,zip,diagnosis\n" + rows)
    sequester = str(command)
    _run([sequester, "--version"], cwd=work)
    _run([sequester, "init", "first.csv", "--out", "proposed.yaml"], cwd=work)
    _run([sequester, "check", "policy.yaml", "first.csv"], cwd=work)
    for name in ("first", "second"):
        _run([sequester, "publish", f"{name}.csv", "-p", "policy.yaml", "--yes"], cwd=work)
    folders = sorted((work / "releases" / "smoke").iterdir())
    _run([sequester, "audit", "--ledger", "smoke.ledger", "-p", "policy.yaml"], cwd=work)
    _run([sequester, "ledger", "verify", "-p", "policy.yaml"], cwd=work)
    if [folder.name for folder in folders] != ["0001-first", "0002-second"]:
        raise Failed(f"release folders are {[folder.name for folder in folders]}")


def _run(words: list[str], *, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment["NUMBA_CACHE_DIR"] = str(cwd / "compiled")
    done = subprocess.run(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _is(python: str, version: str) -> bool:
    """Whether it starts and is what its name says; pyenv has names for versions that are not chosen."""
    probe = [python, "-c", "import sys, ensurepip; print(sys.version)"]
    done = subprocess.run(probe, capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.startswith(f"{version}.")


def main() -> int:
    """Try every version, two at a time; 1 if one of them failed or none was there."""
    parser = argparse.ArgumentParser(description="Install the built wheel into empty environments, and use it.")
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="Python versions, such as 3.12")
    asked = {version: interpreter(version) for version in parser.parse_args().versions}
    failed = not any(asked.values())
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        folder = Path(scratch)
        wheel = build(folder)
        tries = {}
        for version, python in asked.items():
            if python is None:
                print(f"Python {version}: not here, skipped", flush=True)
                continue
            (folder / version).mkdir()
            tries[version] = pool.submit(try_one, version, python, wheel, folder / version)
        for version, running in tries.items():
            try:
                print(f"Python {version}: the wheel works ({running.result():.0f} s)", flush=True)
            except Failed as error:
                failed = True
                print(f"Python {version}: {error}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
