"""How objects show themselves in a notebook: as blocks of the report.

Rooms know nothing of the rooms above them, and `report` is above those that most of these objects are in. So it is
looked up by name, when somebody first looks: an object can be shown wherever its class is, and no room imports a page.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def in_report(module: str) -> ModuleType:
    """A module of the room `report`."""
    return import_module(f"sequester.report.{module}")


class Viewable:
    """Something with a view in `report.results`, under the name of its class."""

    def _repr_html_(self) -> str:
        view: str = in_report("results").view(self)
        return view
