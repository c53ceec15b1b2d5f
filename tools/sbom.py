"""The bill of materials of a wheel: every locked package with its hashes and licence, as CycloneDX.

The build puts it into the wheel (`.dist-info/sboms/`, PEP 770). It is made from `requirements/run.txt` and
`docs/licences.md` alone, so that the same sources give the same bytes on every machine.
"""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "sequester.cdx.json"
LOCKED, LICENCES = Path("requirements/run.txt"), Path("docs/licences.md")
PROJECT = "sequester"

_PACKAGE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)\s*(?:;\s*(?P<marker>[^\\]+?))?\s*\\?")
_HASH = re.compile(r"\s+--hash=sha256:(?P<digest>[0-9a-f]{64})\s*\\?")
_VIA = re.compile(r"\s+#\s*(?:via\b)?\s*(?P<parent>[A-Za-z0-9._-]*).*")
_ROW = re.compile(r"\| `(?P<name>[^`]+)` \| (?P<licence>[^|]+?) \|.*")


class Package(NamedTuple):
    """One locked package; `needed_by` names what it was locked for."""

    name: str
    version: str
    marker: str | None
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its name among all packages."""
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(text: str) -> list[Package]:
    """The packages of a file of locked requirements; a line that is not understood is an error."""
    found: list[Package] = []
    for number, line in enumerate(text.splitlines(), 1):
        if package := _PACKAGE.fullmatch(line):
            found.append(Package(package["name"], package["version"], package["marker"], (), ()))
        elif found and (digest := _HASH.fullmatch(line)):
            found[-1] = found[-1]._replace(hashes=(*found[-1].hashes, digest["digest"]))
        elif found and (via := _VIA.fullmatch(line)):
            parents = (via["parent"],) if via["parent"] else ()
            found[-1] = found[-1]._replace(needed_by=(*found[-1].needed_by, *parents))
        else:
            raise ValueError(f"line {number} of the locked requirements is not understood")
    return found


def licences(text: str) -> dict[str, str]:
    """The licence of every package in the table of licences."""
    return {row["name"]: row["licence"] for row in map(_ROW.fullmatch, text.splitlines()) if row}


def bill(packages: Sequence[Package], licence_of: Mapping[str, str], *, version: str, licence: str) -> dict[str, Any]:
    """The whole document; a package without hashes or licence is an error."""
    lacking = [package.name for package in packages if not package.hashes or package.name not in licence_of]
    if lacking:
        raise ValueError(f"no hash, or no row in {LICENCES}: {', '.join(sorted(set(lacking)))}")
    root = Package(PROJECT, version, None, (), ())
    running = _needed(packages)
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": root.purl,
                "name": root.name,
                "version": version,
                "purl": root.purl,
                "licenses": [{"expression": licence}],
            },
        },
        "components": [
            _component(package, licence_of[package.name], running=package.name in running) for package in packages
        ],
        "dependencies": [
            {"ref": one.purl, "dependsOn": [package.purl for package in packages if one.name in package.needed_by]}
            for one in (root, *packages)
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "serialNumber": f"urn:uuid:{serial}", **body}


def write(root: Path, folder: Path, *, version: str, licence: str) -> Path:
    """The bill of the sources below a root, as a file in a folder."""
    packages = locked((root / LOCKED).read_text(encoding="utf-8"))
    known = licences((root / LICENCES).read_text(encoding="utf-8"))
    made = bill(packages, known, version=version, licence=licence)
    file = folder / FILE
    file.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return file


class BillOfMaterials(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the bill into every wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file and tell the builder of it."""
        self.drafts = tempfile.TemporaryDirectory()
        core = self.metadata.core
        file = write(
            Path(self.root), Path(self.drafts.name), version=self.metadata.version, licence=core.license_expression
        )
        build_data["sbom_files"].append(str(file))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """It is in the wheel by now."""
        self.drafts.cleanup()


def _component(package: Package, licence: str, *, running: bool) -> dict[str, Any]:
    marker = [{"name": "sequester:marker", "value": package.marker}] if package.marker else []
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        # What only builds the package is locked with it, and is not there when it runs.
        "scope": "required" if running else "excluded",
        # One for each file that may be installed, by platform and Python.
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
        "licenses": [{"expression": licence}],
        "purl": package.purl,
        **({"properties": marker} if marker else {}),
    }


def _needed(packages: Iterable[Package]) -> set[str]:
    """The names of all packages that the project needs, directly or through others."""
    parents = {package.name: set(package.needed_by) for package in packages}

    def grow(found: set[str]) -> Iterator[str]:
        return (name for name, by in parents.items() if by & found)

    found = {PROJECT}
    while more := set(grow(found)) - found:
        found |= more
    return found - {PROJECT}
