"""The kernels of the default path with their signatures, so that they can be compiled before anybody waits for them.

A test holds the list to what `anonymize` and the first two plans by pods really call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sequester.methods.class_guard.limits import Limits

LIMITS = " ".join(
    "i8" if isinstance(field, int) else f"{field.dtype.kind}{field.dtype.itemsize}[{','.join(':' * field.ndim)}]"
    for field in Limits.only(1, [1])
)
TUPLES = {
    "Limits": ("class_guard.limits.Limits", LIMITS),
    "Deck": ("mondrian.cut_kernels.Deck", "i4[:,:] i4[:,:] i4[:]"),
    "Scale": ("mondrian.cut_kernels.Scale", "f8[:] i8[:]"),
    "KnownPeople": ("mondrian.cut_kernels.KnownPeople", "i4[:,:] i8"),
    "Arcs": ("pods.pairing.matching_kernels.Arcs", "i8[:] i8[:] f8[:]"),
    "Search": ("pods.pairing.matching_kernels.Search", "i8[:] i8[:] f8[:] f8[:] f8[:] i8[:] i8[:] i8[:]"),
    "Heap": ("pods.pairing.matching_kernels.Heap", "f8[:] i8[:]"),
    "PodBoxes": ("pods.classes.company_kernels.PodBoxes", "f8[:,:] f8[:,:] i8[:] i8[:]"),
    "ClassLists": ("pods.classes.company_kernels.ClassLists", "i8[:] i8[:] i8[:] i8[:] i8[:]"),
    "Company": ("pods.classes.company_kernels.Company", "i8[:] ClassLists PodBoxes i8[:,:] f8[:]"),
    "Asked": ("pods.classes.company_kernels.Asked", "i8 i8 f8"),
    "Times": ("pods.classes.company_kernels.Times", "i8[:] i8[:] i8[:]"),
    "Ranking": ("pods.classes.company_kernels.Ranking", "i8[:] i8[:] f8[:]"),
    "ClassRows": (
        "pods.classes.exchange_kernels.ClassRows", "i8[:] i8[:] i8[:] i8[:] i8[:] f8[:,:] b1[:] i8[:] f8[:]"
    ),
    "Seatmates": ("pods.classes.exchange_kernels.Seatmates", "i8[:] i8[:] i8"),
}  # fmt: skip
"""What is given as named tuples: where they are, and the types of their fields."""

# Those that take longest come first, so that two processes end together; helpers that a process has compiled for one
# kernel are there for the next.
KERNELS = {
    "mondrian.cut_kernels.cut_rows": "Deck i8 i8 i8 i8 Scale KnownPeople Limits",
    "pods.classes.company_kernels.join_classes": "Company Asked i8[:,:] i8[:]",
    "pods.classes.company_kernels.move_pods": "Company Asked i8[:,:] Times",
    "pods.classes.company_kernels.split_classes": "Company Asked Ranking",
    "pods.pairing.matching_kernels.assign": "Arcs Search Heap",
    "pods.classes.exchange_kernels.exchange": "ClassRows Seatmates i8",
    "pods.pairing.matching_kernels.split_cycles": "i8[:] Arcs f8[:] i8[:] i8[:] f8[:]",
    "pods.pairing.matching_kernels.exchange_partners": "i8[:] Arcs f8[:] f8[:]",
    "mondrian.cut_kernels.bound_runs": "i4[:,:] i4[:] i8[:]",
}


def compile_ahead(name: str) -> None:
    """Compile a kernel of the list, or find it on disk."""
    named(name).compiled.compile(types_of(KERNELS[name]))


def types_of(text: str) -> tuple[Any, ...]:
    """The Numba types of a signature as it is written here; arrays are C-contiguous."""
    from numba import types

    scalars = {"i2": types.int16, "i4": types.int32, "i8": types.int64, "f4": types.float32, "f8": types.float64}
    scalars["b1"] = types.boolean
    kinds: list[Any] = []
    for word in text.split():
        scalar, _, axes = word.partition("[")
        if word in TUPLES:
            place, fields = TUPLES[word]
            # Of fields of one type it is a type of its own.
            kinds.append(types.BaseTuple.from_types(types_of(fields), named(place)))  # type: ignore[no-untyped-call]
        else:
            kinds.append(types.Array(scalars[scalar], axes.count(":"), "C") if axes else scalars[scalar])
    return tuple(kinds)


def named(name: str) -> Any:
    """A kernel or a named tuple by its place in this room."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"sequester.methods.{module}"), attribute)
