"""What `import sequester` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import sequester

PUBLIC = {
    "Audit",
    "Busy",
    "DataError",
    "Estimate",
    "Finding",
    "GuaranteeError",
    "Knowledge",
    "LedgerError",
    "Measurement",
    "MissingLibrary",
    "Plan",
    "Policy",
    "PolicyError",
    "Problem",
    "Rehearsal",
    "Release",
    "SequesterError",
    "Series",
    "StalePlan",
    "__version__",
    "anonymize",
    "audit",
    "estimate",
    "measure",
    "propose",
    "read_release",
    "read_series",
    "rehearse",
}
HEAVY = {"duckdb", "numba", "numpy", "pandas", "polars", "pyarrow", "pydantic", "rich", "scipy", "typer", "yaml"}


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after running some code."""
    probe = f"{code}\nimport sys\nprint('modules:', *(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_public_names_are_these() -> None:
    assert set(sequester.__all__) == PUBLIC
    assert set(dir(sequester)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_can_be_used(name: str) -> None:
    assert getattr(sequester, name) is not None
    assert name in vars(sequester)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'anonymise'"):
        sequester.anonymise  # noqa: B018


def test_the_version_is_the_one_of_the_package() -> None:
    assert sequester.__version__ == metadata.version("sequester")


def test_importing_sequester_imports_no_heavy_library() -> None:
    assert loaded_by("import sequester") & HEAVY == set()


def test_errors_are_cheap_to_import() -> None:
    assert loaded_by("from sequester import PolicyError, DataError, GuaranteeError") & HEAVY == set()


def test_the_help_loads_no_library_for_data() -> None:
    start = "import sys\nfrom sequester.cli import main\nsys.argv = ['sequester', '--help']"
    code = f"{start}\ntry:\n    main()\nexcept SystemExit:\n    pass"
    assert loaded_by(code) & (HEAVY - {"typer", "rich"}) == set()


def test_loading_a_policy_loads_no_frame_library_and_compiles_nothing() -> None:
    assert loaded_by("from sequester import Policy") & {"duckdb", "numba", "pandas", "polars", "typer"} == set()
