"""The kernels of the default path with their signatures, so that they can be compiled before anybody waits for them.

A test holds the list to what `anonymize` and a series by Mondrian really call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

LIMITS = "i8 i8[:] i8[:] i8[:] i8[:] f8[:] i8[:] i8[:] i8[:] f8[:] i8[:] f8[:] i4[:,:] i8[:]"
TUPLES = {
    "Limits": ("class_guard.limits.Limits", LIMITS),
    "Crowd": ("mondrian.node_kernels.Crowd", "i4[:,:] i4[:,:] i4[:,:] i8[:,:] i8[:] i4[:] b1[:]"),
    "Records": ("cluster.box_kernels.Records", "i4[:,:] i4[:,:] f4[:] i8[:]"),
    "Windows": ("cluster.box_kernels.Windows", "i8[:] i8[:] i8[:]"),
    "Joining": ("cluster.merge_kernels.Joining", "f8 i8 b1"),
    "Seekers": ("cluster.near_kernels.Seekers", "i8[:] i8[:] i8[:] i8[:]"),
    "Hosts": ("cluster.near_kernels.Hosts", "i8[:] f8[:,:] f8[:,:]"),
    "Rule": ("mondrian.node_kernels.Rule", "i8 i8[:] i8[:] i8[:] b1 b1"),
}
"""What is given as named tuples: where they are, and the types of their fields."""

# Those that take longest come first, so that two processes end together.
KERNELS = {
    "mondrian.search_kernels.search_nodes": (
        "i8[:] i8[:] i8[:] i8[:] f8[:] Crowd Rule Limits f8[:] i8[:] i8 i8 i8 f8[:,:] i2[:,:]"
    ),
    "cluster.merge_kernels.merge_windows": "Records i4[:] i4[:] Windows Limits Joining i4[:]",
    "mondrian.cut_kernels.cut_rows": "i4[:,:] i4[:,:] i4[:] i8 i8 i8 i8 f8[:] i8[:] i4[:,:] i8 Limits",
    "mondrian.regroup_kernels.regroup": (
        "f8[:,:] i4[:,:] i8[:] i8[:] i8[:] i8[:] i8[:] i8[:] i8[:] i8[:] i8[:] Limits i8 i8 i8"
    ),
    "cluster.move_kernels.move_windows": "Records Windows Limits i8 i4[:]",
    "series_guard.pair_kernels.small_differences": "i4[:] i4[:] i8[:] i8 i8 i8",
    "loops.tree.unit_tree": "f8[:,:] f8[:]",
    "series_guard.pair_kernels.surpluses": "i4[:] i4[:] i8[:] i8[:,:] i8[:,:] i8[:] i8 b1[:]",
    "loops.tree.safe_classes": "i8[:] i4[:,:] i8 Limits",
    "cluster.near_kernels.take_nearest": "Seekers f8[:,:] f8[:,:] Hosts i8 b1",
    "loops.tree.hull_costs": "i8[:] i8[:] i8[:] i8[:] f8[:,:] f8[:,:] i8[:]",
    "series_guard.path_kernels.determined_people": "i8[:] i8[:] i8[:,:] b1[:] i8[:]",
    "mondrian.cut_kernels.bound_runs": "i4[:,:] i4[:] i8[:]",
    "cluster.near_kernels.bound_members": "i4[:] i4[:,:] i8",
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
