"""Checks across keys. They read the raw mapping and skip what has the wrong type, so that a policy with a typo in one
place still gets all its other problems reported in the same go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sequester.policy.phrase import ROLES, Issue, at, known_keys, unknown_key

STEPS = ("day", "month", "quarter", "year", "decade")
_KINDS_OF = {
    "hierarchy": ("category",),
    "range": ("number",),
    "bands": ("number",),
    "levels": ("number", "date"),
    "length": ("code",),
    "format": ("date",),
}
_NEED_SENSITIVE = ("confidence", "diversity", "closeness", "alpha", "lifetime")


def cross_check(raw: Mapping[str, Any]) -> list[Issue]:
    """Everything that is wrong between keys."""
    return [*_version(raw), *_roles(raw), *_attributes(raw), *_protect(raw), *_group_method(raw)]


def _version(raw: Mapping[str, Any]) -> Iterator[Issue]:
    if isinstance(raw.get("version"), bool):
        yield ("version",), "must be one of: 1"


def _roles(raw: Mapping[str, Any]) -> Iterator[Issue]:
    attributes, person = _group(raw, "attributes"), raw.get("person")
    roles = {name: at(attribute, ("role",)) for name, attribute in attributes.items()}
    # With an unreadable role among them nobody can say that no attribute was meant to be one.
    if roles and all(role in list(ROLES) for role in roles.values()) and "quasi-identifier" not in roles.values():
        yield ("attributes",), "no attribute has the role quasi-identifier, so there is nothing to generalize"
    if isinstance(person, str) and person in roles and roles[person] not in ("identifier", None):
        message = "this is the person column, which is never published; remove it here or give it the role identifier"
        yield ("attributes", person), message


def _attributes(raw: Mapping[str, Any]) -> Iterator[Issue]:
    for name, attribute in _group(raw, "attributes").items():
        if not isinstance(attribute, Mapping):
            continue
        path = ("attributes", name)
        role = attribute.get("role")
        if role not in list(ROLES):
            known = known_keys(path, raw)
            yield from (((*path, key), unknown_key((*path, key), raw)) for key in attribute if key not in known)
        if role == "quasi-identifier":
            checks = [_kind(attribute), _quasi(attribute), _range(attribute), _bands(attribute), _levels(attribute)]
        elif role == "sensitive":
            checks = [_kind(attribute), _sensitive(attribute), _bands(attribute)]
        else:
            checks = []
        for check in checks:
            yield from (((*path, *rest), message) for rest, message in check)


def _kind(attribute: Mapping[str, Any]) -> Iterator[Issue]:
    kind = attribute.get("kind", "category")
    if kind not in ("category", "number", "code", "date"):
        return
    for key, kinds in _KINDS_OF.items():
        fits = key in ROLES[attribute["role"]].model_fields
        if fits and attribute.get(key) is not None and kind not in kinds:
            which = " or ".join(f"kind: {kind}" for kind in kinds)
            yield (key,), f"only goes with {which}; this attribute has kind: {kind}"


def _quasi(attribute: Mapping[str, Any]) -> Iterator[Issue]:
    if attribute.get("kind") == "code" and attribute.get("length") is None:
        yield ("length",), "is missing; kind: code needs the number of characters, such as length: 5"
    if attribute.get("bands") is not None and attribute.get("levels") is not None:
        yield ("bands",), "give either bands or levels, not both"


def _sensitive(attribute: Mapping[str, Any]) -> Iterator[Issue]:
    if attribute.get("kind") == "number" and attribute.get("bands") is None:
        yield ("bands",), "is missing; a sensitive number is protected in bands, such as bands: [0, 1000, 5000]"
    bounds, ordinary = attribute.get("confidence"), attribute.get("ordinary")
    if isinstance(bounds, Mapping) and isinstance(ordinary, Sequence) and not isinstance(ordinary, str):
        for value in ordinary:
            if isinstance(value, str) and value in bounds:
                yield ("confidence", value), "this value is ordinary, so it has no bound; remove it in one place"


def _range(attribute: Mapping[str, Any]) -> Iterator[Issue]:
    bounds = _finite(attribute.get("range"))
    if bounds and len(bounds) == 2 and bounds[0] >= bounds[1]:
        yield ("range",), "the lowest value must be below the highest"


def _bands(attribute: Mapping[str, Any]) -> Iterator[Issue]:
    edges = _numbers(attribute.get("bands"))
    if edges is None or attribute.get("kind") != "number":
        return
    if len(edges) < 2 or not any(map(math.isfinite, edges)):
        yield ("bands",), "at least two edges are needed, one of them finite, such as [0, 100] or [0, .inf]"
    elif any(not low < high for low, high in pairwise(edges)):
        yield ("bands",), "the edges must increase"


def _levels(attribute: Mapping[str, Any]) -> Iterator[Issue]:
    kind, levels = attribute.get("kind"), attribute.get("levels")
    if not isinstance(levels, list | tuple) or kind not in ("number", "date"):
        return
    widths, steps = _finite(levels), all(step in STEPS for step in levels)
    if not levels:
        yield ("levels",), "must not be empty"
    elif kind == "number" and widths is not None:
        if widths[0] <= 0:
            yield ("levels",), "the widths must be above 0"
        elif any(not _is_multiple(high, low) for low, high in pairwise(widths)):
            yield ("levels",), "every width must be a multiple of the one before, such as [5, 10, 20]"
    elif kind == "number" and steps:
        yield ("levels",), "the levels of a number are widths, such as [5, 10, 20]"
    elif kind == "date" and widths is not None:
        yield ("levels",), f"the levels of a date are steps of the calendar: {', '.join(STEPS)}"
    elif kind == "date" and steps and any(STEPS.index(a) >= STEPS.index(b) for a, b in pairwise(levels)):
        yield ("levels",), f"must go from fine to coarse: {', '.join(STEPS)}"


def _protect(raw: Mapping[str, Any]) -> Iterator[Issue]:
    protect = _group(raw, "protect")
    for path, message in [*_promises(raw, protect), *_diversity(protect), *_lifetime(protect)]:
        yield ("protect", *path), message


def _promises(raw: Mapping[str, Any], protect: Mapping[str, Any]) -> Iterator[Issue]:
    attributes = [a for a in _group(raw, "attributes").values() if isinstance(a, Mapping)]
    sensitive = [a for a in attributes if a.get("role") == "sensitive"]
    if not sensitive and all(a.get("role") in list(ROLES) for a in attributes):
        for key in _NEED_SENSITIVE:
            if protect.get(key) is not None:
                yield (key,), "no attribute has the role sensitive, so there is nothing to promise this for"
    if len(sensitive) > 1:
        for key in ("confidence", "alpha"):
            if isinstance(protect.get(key), Mapping):
                where = "; put the bounds in the attribute's own confidence" if key == "confidence" else ""
                yield (key,), f"bounds per value need exactly one sensitive attribute{where}"
    if protect.get("against") in ([], ()):
        yield ("against",), "must not be empty; name at least one of: outsider, neighbor, insider, lifetime"
    if at(protect, ("closeness", "distance")) == "hierarchical" and any(a.get("hierarchy") is None for a in sensitive):
        yield ("closeness", "distance"), "hierarchical needs a hierarchy for every sensitive attribute"


def _diversity(protect: Mapping[str, Any]) -> Iterator[Issue]:
    kind, l, c = (at(protect, ("diversity", key)) for key in ("kind", "l", "c"))  # noqa: E741
    if kind == "recursive" and c is None:
        yield (
            ("diversity", "c"),
            "is missing; recursive diversity has two numbers, such as {c: 3, l: 2}",
        )
    if kind in ("distinct", "entropy") and c is not None:
        yield ("diversity", "c"), "only goes with kind: recursive"
    if kind in ("distinct", "recursive") and isinstance(l, float) and not l.is_integer():
        yield ("diversity", "l"), f"must be a whole number with kind: {kind}"


def _lifetime(protect: Mapping[str, Any]) -> Iterator[Issue]:
    lifetime = protect.get("lifetime")
    if not isinstance(lifetime, Mapping):
        return
    strategy = lifetime.get("strategy", "constant-ratio")
    needs = {"constant-ratio": "releases", "geometric": "alpha"}
    for name, key in needs.items():
        if strategy == name and lifetime.get(key) is None:
            yield ("lifetime", key), f"is missing; strategy: {name} needs it"
        elif strategy in list(needs) and strategy != name and lifetime.get(key) is not None:
            yield ("lifetime", key), f"only goes with strategy: {name}"


def _group_method(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """`group` makes one promise, about values that change; it hides nobody's coming and going."""
    if at(raw, ("method", "name")) != "group":
        return
    protect = _group(raw, "protect")
    if protect.get("lifetime") is None:
        yield ("protect", "lifetime"), "is missing; method: group keeps it, such as lifetime: {l: 2, releases: 20}"
    against = protect.get("against", ("insider",))
    if isinstance(against, list | tuple) and set(against) - {"outsider", "lifetime"}:
        yield ("protect", "against"), "method: group is for against: [lifetime]; values that stay need another method"
    elif isinstance(against, list | tuple) and "lifetime" not in against:
        yield ("protect", "against"), "lifetime is not among them, so nothing would check what method: group promises"
    sensitive = [a for a in _group(raw, "attributes").values() if at(a, ("role",)) == "sensitive"]
    if any(at(a, ("values",)) != "transient" for a in sensitive):
        yield ("method", "name"), "group is for values that change: every sensitive attribute needs values: transient"


def _group(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key)
    return found if isinstance(found, Mapping) else {}


def _numbers(given: object) -> list[float] | None:
    """The list as numbers; None when it is no list of at least one, or not all of them are numbers."""
    if not isinstance(given, list | tuple) or not given:
        return None
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in given):
        return None
    try:
        return [float(item) for item in given]
    except OverflowError:
        return None


def _finite(given: object) -> list[float] | None:
    numbers = _numbers(given)
    return numbers if numbers and all(map(math.isfinite, numbers)) else None


def _is_multiple(high: float, low: float) -> bool:
    times = high / low
    return math.isfinite(times) and times >= 1.5 and math.isclose(times, round(times), rel_tol=1e-9)
