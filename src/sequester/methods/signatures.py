"""The kernels of the default path with their signatures, so that they can be compiled before anybody waits for them.

A test holds the list to what `anonymize` and a series by Mondrian really call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

LIMITS = "i8 i8[:] i8[:] i8[:] i8[:] f8[:] i8[:] i8[:] i8[:] f8[:] i8[:] f8[:] i4[:,:] i8[:]"
TUPLES = {
    "Limits": ("class_guard.limits.Limits", LIMITS),
    "Deck": ("mondrian.cut_kernels.Deck", "i4[:,:] i4[:,:] i4[:]"),
    "Scale": ("mondrian.cut_kernels.Scale", "f8[:] i8[:]"),
    "KnownPeople": ("mondrian.cut_kernels.KnownPeople", "i4[:,:] i8"),
    "Lineup": ("mondrian.node_kernels.Lineup", "i4[:,:] i4[:,:] i4[:,:] i8[:,:] i8[:] i4[:] b1[:]"),
    "SeriesLimits": ("series_guard.limits.SeriesLimits", "i8 i8[:] i8[:] i8[:] b1 b1"),
    "Window": ("mondrian.regroup_kernels.Window", "i8[:,:] i8[:] f8[:,:] f8[:] i8[:] i8[:]"),
    "Pace": ("mondrian.regroup_kernels.Pace", "i8 i8 i8 i8"),
    "Crossing": ("series_guard.pair_kernels.Crossing", "i4[:] i4[:] i8[:]"),
    "Shares": ("series_guard.pair_kernels.Shares", "i8[:] i8 b1[:]"),
    "Spans": ("mondrian.search_kernels.Spans", "i8[:] i8[:] i8[:] i8[:] f8[:]"),
    "Ways": ("mondrian.search_kernels.Ways", "b1[:] b1[:] b1[:] f8[:] i8 i8"),
    "Results": ("mondrian.search_kernels.Results", "f8[:,:] i2[:,:]"),
}
"""What is given as named tuples: where they are, and the types of their fields."""

# Those that take longest come first, so that two processes end together.
KERNELS = {
    "mondrian.search_kernels.search_nodes": "Spans Lineup SeriesLimits Limits Scale Ways Results",
    "cluster.join_kernels.merge_windows": (
        "i4[:,:] i4[:] i4[:] i4[:,:] i8[:] i8[:] i8[:] f4[:] i8[:] Limits f8 i8 b1 i4[:]"
    ),
    "mondrian.cut_kernels.cut_rows": "Deck i8 i8 i8 i8 Scale KnownPeople Limits",
    "mondrian.regroup_kernels.regroup": "Window i8 f8[:,:] i4[:,:] Limits Pace",
    "cluster.join_kernels.move_windows": "i4[:,:] i4[:,:] i8[:] i8[:] i8[:] f4[:] i8[:] Limits i8 i4[:]",
    "series_guard.pair_kernels.small_differences": "Crossing i8 i8 i8",
    "loops.tree.unit_tree": "f8[:,:] f8[:]",
    "series_guard.pair_kernels.surpluses": "Crossing i8[:,:] i8[:,:] Shares",
    "loops.tree.safe_classes": "i8[:] i4[:,:] i8 Limits",
    "cluster.join_kernels.take_nearest": "i8[:] f8[:,:] f8[:,:] i8[:] i8[:] i8[:] i8[:] f8[:,:] f8[:,:] i8 b1",
    "series_guard.path_kernels.determined_people": "i8[:] i8[:] i8[:,:] b1[:] i8[:]",
    "mondrian.cut_kernels.bound_runs": "i4[:,:] i4[:] i8[:]",
    "cluster.join_kernels.bound_members": "i4[:] i4[:,:] i8",
    "loops.tree.choose": "i8[:] i8[:] f8[:,:]",
}


def compile_ahead(name: str) -> None:
    """Compile a kernel of the list, or find it on disk."""
    _found(name).compiled.compile(types_of(KERNELS[name]))


def types_of(text: str) -> tuple[Any, ...]:
    """The Numba types of a signature as it is written here; arrays are C-contiguous."""
    from numba import types

    scalars = {"i2": types.int16, "i4": types.int32, "i8": types.int64, "f4": types.float32, "f8": types.float64}
    scalars["b1"] = types.boolean
    found: list[Any] = []
    for word in text.split():
        scalar, _, axes = word.partition("[")
        if word in TUPLES:
            place, fields = TUPLES[word]
            found.append(types.BaseTuple.from_types(types_of(fields), _found(place)))  # type: ignore[no-untyped-call]
        else:
            found.append(types.Array(scalars[scalar], axes.count(":"), "C") if axes else scalars[scalar])
    return tuple(found)


def _found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"sequester.methods.{module}"), attribute)
