"""What a shell offers for a release: quickly, quietly, and nothing that a shell would run."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from sequester.regular import open_regular

# Shells evaluate what completion prints. What `publish` itself would refuse as a name is not offered.
_FOLDER = re.compile(r"(\d{4,9})-([A-Za-z0-9][A-Za-z0-9._-]*)")
_SERIES = re.compile(r"^series:\s*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)[\"']?\s*(#.*)?$", re.MULTILINE)
# Bytes of a policy that are looked at, and releases that are offered.
_MOST, _OFFERED = 1 << 16, 500


def releases_here(
    policy: Path | None, ledger: str | None, releases: Path | None, incomplete: str
) -> list[tuple[str, str]]:
    """Releases whose number or name begins as typed, newest first, each with the other one as its explanation."""
    from sequester.cli.series import POLICIES

    offered: list[tuple[str, str]] = []
    with contextlib.suppress(OSError, ValueError):
        file = policy or next((Path(name) for name in POLICIES if Path(name).is_file()), None)
        home = Path(ledger).parent if ledger and "://" not in ledger else (file or Path()).parent
        folder = releases or home / "releases"
        series = None if file is None or ledger else _series_of(file)
        for number, name in sorted(_found(folder, series), reverse=True)[:_OFFERED]:
            offered += [(str(number), name), (name, f"release {number}")]
    return [(value, about) for value, about in offered if value.startswith(incomplete)]


def _series_of(policy: Path) -> str | None:
    """The name of the series, without reading the policy as one."""
    with open_regular(policy) as stream:
        found = _SERIES.search(stream.read(_MOST).decode("utf-8", "replace"))
    return None if found is None else found[1]


def _found(folder: Path, series: str | None) -> set[tuple[int, str]]:
    places = [folder / series] if series else [Path(one.path) for one in os.scandir(folder) if one.is_dir()]
    names = [one.name for place in places if place.is_dir() for one in os.scandir(place) if one.is_dir()]
    matches = (_FOLDER.fullmatch(name) for name in names)
    return {(int(match[1]), match[2]) for match in matches if match}
