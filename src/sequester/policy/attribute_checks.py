"""Checks across the keys of one attribute, as they are given. What only concerns its kind, the kind checks itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from sequester.domain.kinds import KINDS
from sequester.domain.kinds.kind import Issue, Kind, finite_in
from sequester.policy.phrase import ROLES

Given = Mapping[str, Any]


def attribute_checks(attribute: Given) -> Iterator[Issue]:
    """Everything that is wrong between the keys of an attribute, by the keys below it."""
    role, kind = attribute.get("role"), _kind(attribute)
    if role not in ("quasi-identifier", "sensitive"):
        return
    if kind is not None:
        yield from _options(attribute, kind)
        # A kind that the role does not have is a problem of its own.
        if kind.name in get_args(ROLES[attribute["role"]].model_fields["kind"].annotation):
            yield from kind.check(attribute)
    yield from _quasi(attribute) if role == "quasi-identifier" else _sensitive(attribute)


def is_numeric(attribute: Given) -> bool:
    """Whether an attribute may be published as bounds."""
    kind = _kind(attribute)
    return kind is not None and kind.numeric


def has_several(attribute: Given) -> bool:
    """Whether cells of an attribute have several values."""
    kind = _kind(attribute)
    return kind is not None and kind.several


def _kind(attribute: Given) -> Kind | None:
    name = attribute.get("kind", "category")
    return KINDS.get(name) if isinstance(name, str) else None


def _options(attribute: Given, kind: Kind) -> Iterator[Issue]:
    """Options that go with other kinds only."""
    for key in dict.fromkeys(option for other in KINDS.values() for option in other.options):
        fits = key in ROLES[attribute["role"]].model_fields
        if fits and attribute.get(key) is not None and key not in kind.options:
            which = " or ".join(f"kind: {other.name}" for other in KINDS.values() if key in other.options)
            yield (key,), f"only goes with {which}; this attribute has kind: {kind.name}"


def _quasi(attribute: Given) -> Iterator[Issue]:
    if attribute.get("bands") is not None and attribute.get("levels") is not None:
        yield ("bands",), "give either bands or levels, not both"
    bounds = finite_in(attribute.get("range"))
    if bounds and len(bounds) == 2 and bounds[0] >= bounds[1]:
        yield ("range",), "the lowest value must be below the highest"
    changes, kind = attribute.get("changes"), _kind(attribute)
    if isinstance(changes, Mapping):
        if kind is None or not kind.measured:
            which = " and ".join(f"{other.name}s" for other in KINDS.values() if other.measured)
            yield ("changes",), f"only {which} move by a step; say changes: true"
        step = finite_in(changes.get("by"))
        if step and len(step) == 2 and step[0] > step[1]:
            yield ("changes", "by"), "the least change comes first, then the most"


def _sensitive(attribute: Given) -> Iterator[Issue]:
    stays = attribute.get("permanent")
    if isinstance(stays, list | tuple) and stays and attribute.get("values") != "transient":
        yield ("permanent",), "only goes with values: transient; otherwise all values are permanent"
    for key in ("grades", "guarding"):
        if attribute.get(key) is not None and attribute.get("hierarchy") is None:
            yield (key,), "needs a hierarchy, whose nodes values are published as"
        if attribute.get(key) is not None and attribute.get("values") == "first":
            yield (key,), "does not go with values: first; how a later value would be graded is never asked"
    bounds, ordinary = attribute.get("confidence"), attribute.get("ordinary")
    if isinstance(bounds, Mapping) and isinstance(ordinary, Sequence) and not isinstance(ordinary, str):
        for value in ordinary:
            if isinstance(value, str) and value in bounds:
                yield ("confidence", value), "this value is ordinary, so it has no bound; remove it in one place"
