"""The bill of materials and the table of licences list exactly what is locked, and a wheel has the bill inside."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import uuid
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tools.sbom import FILE, LICENCES, LOCKED, bill, licences, locked

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / LOCKED).read_text(encoding="utf-8")
TABLE = licences((ROOT / LICENCES).read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Read in another way than the build does.
PINNED = re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", TEXT, re.MULTILINE)

# What the classifiers of older metadata leave open.
CLASSIFIED = {
    "MIT License": {"MIT"},
    "BSD License": {"BSD-2-Clause", "BSD-3-Clause"},
    "Apache Software License": {"Apache-2.0"},
    "ISC License (ISCL)": {"ISC"},
    "Mozilla Public License 2.0 (MPL 2.0)": {"MPL-2.0"},
    "Python Software Foundation License": {"PSF-2.0"},
    "GNU Lesser General Public License v3 (LGPLv3)": {"LGPL-3.0-only"},
}


def made() -> dict[str, Any]:
    return bill(locked(TEXT), TABLE, version=PROJECT["version"], licence=PROJECT["license"])


def rows_of_extras() -> set[str]:
    lines = (ROOT / LICENCES).read_text(encoding="utf-8").splitlines()
    return {name for line in lines if "| extra `" in line for name in re.findall(r"^\| `([^`]+)`", line)}


def plain(requirement: str) -> str:
    """The name of a requirement, as locks spell it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement)[0]).lower()


def test_the_bill_lists_exactly_the_locked_packages() -> None:
    assert len(PINNED) > 20
    assert [(one["name"], one["version"]) for one in made()["components"]] == PINNED


def test_every_package_has_all_the_hashes_of_the_lock() -> None:
    blocks = re.split(r"^(?=[a-z0-9-]+==)", TEXT, flags=re.MULTILINE)[1:]
    components = made()["components"]
    assert len(components) == len(blocks)
    for component, block in zip(components, blocks, strict=True):
        assert [one["content"] for one in component["hashes"]] == re.findall(r"sha256:([0-9a-f]{64})\b", block)
        assert {one["alg"] for one in component["hashes"]} == {"SHA-256"}


def test_the_bill_has_what_the_format_needs() -> None:
    found = made()
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)
    assert uuid.UUID(found["serialNumber"].removeprefix("urn:uuid:")).version == 5
    about = found["metadata"]["component"]
    assert (about["type"], about["name"], about["version"]) == ("application", "sequester", PROJECT["version"])
    assert about["licenses"] == [{"expression": "Apache-2.0"}]
    for one in found["components"]:
        assert one["type"] == "library"
        assert one["purl"] == one["bom-ref"] == f"pkg:pypi/{one['name']}@{one['version']}"
        assert one["scope"] in ("required", "excluded")
        assert [[*licence] for licence in one["licenses"]] == [["expression"]]
    references = [about["bom-ref"], *(one["bom-ref"] for one in found["components"])]
    assert len(set(references)) == len(references)
    assert [one["ref"] for one in found["dependencies"]] == references
    assert {ref for one in found["dependencies"] for ref in one["dependsOn"]} <= set(references)


def test_what_the_project_needs_is_told_from_what_only_builds_it() -> None:
    found = made()
    scope = {one["name"]: one["scope"] for one in found["components"]}
    direct = {plain(requirement) for requirement in PROJECT["dependencies"]}
    assert {scope[name] for name in direct} == {"required"}
    assert scope["llvmlite"] == scope["mdurl"] == "required"
    assert {scope[name] for name in ("hatchling", "editables", "pathspec")} == {"excluded"}
    (root,) = [one for one in found["dependencies"] if one["ref"] == found["metadata"]["component"]["bom-ref"]]
    assert {re.split("[/@]", ref)[1] for ref in root["dependsOn"]} == direct


def test_versions_for_other_pythons_and_systems_say_so() -> None:
    markers = {one["purl"]: one["properties"][0]["value"] for one in made()["components"] if "properties" in one}
    assert set(markers.values()) == set(re.findall(r"^[a-z0-9-]+==\S+ ; (.+?) \\$", TEXT, re.MULTILINE))
    assert len(markers) == len(re.findall(r"^[a-z0-9-]+==\S+ ; ", TEXT, re.MULTILINE))


def test_the_same_sources_give_the_same_bill_and_others_another() -> None:
    assert made() == made()
    other = bill(locked(TEXT)[1:], TABLE, version=PROJECT["version"], licence=PROJECT["license"])
    assert other["serialNumber"] != made()["serialNumber"]


def test_a_package_without_a_licence_or_a_hash_stops_the_build() -> None:
    without = {name: licence for name, licence in TABLE.items() if name != "duckdb"}
    with pytest.raises(ValueError, match=r"no row in docs/licences\.md: duckdb"):
        bill(locked(TEXT), without, version="1", licence="MIT")
    with pytest.raises(ValueError, match="new"):
        bill(locked("new==1.0\n"), {"new": "MIT"}, version="1", licence="MIT")


@pytest.mark.parametrize("line", ["name>=1", "-e .", "name @ file:///x", "name==1 --hash=md5:00"])
def test_a_line_that_is_not_a_locked_package_stops_the_build(line: str) -> None:
    with pytest.raises(ValueError, match="line 1 of the locked requirements"):
        locked(line + "\n")


def build(target: str, root: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = out.iterdir()
    return made


def test_a_wheel_built_from_the_packed_sources_has_the_bill_inside(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", ROOT, tmp_path / "sources")) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    (root,) = (tmp_path / "unpacked").iterdir()
    assert all((root / name).is_file() for name in ("README.md", "SECURITY.md", "LICENSE", "docs/architecture.md"))
    wheel = build("wheel", root, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if "/sboms/" in name]
        assert name == f"sequester-{PROJECT['version']}.dist-info/sboms/{FILE}"
        assert json.loads(opened.read(name)) == made()


def test_every_locked_package_has_a_licence_and_every_other_row_is_of_an_extra() -> None:
    names = {name for name, _ in PINNED}
    assert names - set(TABLE) == set()
    assert set(TABLE) - names == rows_of_extras()
    extras = {plain(one) for found in PROJECT.get("optional-dependencies", {}).values() for one in found}
    assert extras - set(TABLE) == set()


def test_the_table_of_licences_is_sorted_and_says_why_each_fits() -> None:
    assert list(TABLE) == sorted(TABLE)
    rows = [line for line in (ROOT / LICENCES).read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == len(TABLE)
    assert all(len(cells := row.strip("| ").split(" | ")) == 4 and all(cells) for row in rows)


@pytest.mark.parametrize("name", TABLE)
def test_a_licence_is_what_the_installed_package_says(name: str) -> None:
    try:
        facts: Any = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    expression = facts.get("License-Expression")
    if expression is not None:
        assert TABLE[name] == expression
        return
    prefix = "License :: OSI Approved :: "
    said = [line.removeprefix(prefix) for line in facts.get_all("Classifier") or [] if line.startswith(prefix)]
    if said:
        assert TABLE[name] in set.union(*(CLASSIFIED[one] for one in said))
    else:
        assert TABLE[name] == facts.get("License")
