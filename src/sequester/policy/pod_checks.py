"""Checks of what belongs to pods: seats, lineages, decoys, what cannot be, and what pods cannot keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from sequester.policy.defaults import default_method
from sequester.policy.document import KeyPath
from sequester.policy.model import Policy
from sequester.policy.phrase import closest
from sequester.policy.protect import CLASS_PROMISES
from sequester.policy.raw import Issue, at

_ONLY = "only goes with method: {name: pods}"
ONLY_PODS: dict[KeyPath, str] = {
    ("protect", "lineage"): "it bounds how many people share seats",
    ("decoys",): "no other method publishes rows about nobody",
    ("distortion",): "no other method changes shares of values",
    ("impossible",): "no other method chooses whose values could be exchanged",
}
"""Keys that only pods use, and why."""


def pod_checks(raw: Mapping[str, Any]) -> list[Issue]:
    """Everything that is wrong with the keys of pods, and between them and others."""
    issues = [*_inferred(raw), *_people(raw), *_impossible(raw)]
    if method_of(raw) == "pods":
        return [*issues, *_numbers(raw), *_beside(raw), *_changing(raw)]
    for path, why in ONLY_PODS.items():
        # A policy that is written out in full has the defaults of what it does not use.
        default = Policy.model_fields[path[0]].default if path[0] in Policy.model_fields else None
        if at(raw, path) not in (None, [], (), default):
            issues.append((path, f"{_ONLY}: {why}"))
    return issues


def method_of(raw: Mapping[str, Any]) -> str | None:
    """The method that is named, or the default; None where it cannot be read."""
    given = raw.get("method")
    if given is None:
        return default_method(raw)
    name = at(given, ("name",))
    return name if isinstance(name, str) else None


def seats_of(raw: Mapping[str, Any]) -> int:
    """The fewest seats of a pod that may hold any bounded value: ceil(1/c) for the smallest confidence; 1 for none."""
    return max((-(-bound.denominator // max(bound.numerator, 1)) for bound in _bounds(raw)), default=1)


def fewest_seats_of(raw: Mapping[str, Any]) -> int:
    """The fewest seats that a pod with a bounded value may have: ceil(1/c) for the largest confidence, 2 at least."""
    return max(2, min((-(-bound.denominator // max(bound.numerator, 1)) for bound in _bounds(raw)), default=2))


def _bounds(raw: Mapping[str, Any]) -> list[Fraction]:
    """All confidences of values that are bounded."""
    from sequester.rational import exact

    bounds = []
    for attribute in _sensitive(raw).values():
        own = at(attribute, ("confidence",))
        given = at(raw, ("protect", "confidence")) if own is None else own
        for bound in given.values() if isinstance(given, Mapping) else [given]:
            if isinstance(bound, int | float) and not isinstance(bound, bool) and 0 < bound < 1:
                bounds.append(exact(float(bound)))
    return bounds


def _sensitive(raw: Mapping[str, Any]) -> dict[str, Any]:
    attributes = raw.get("attributes")
    items = attributes.items() if isinstance(attributes, Mapping) else ()
    return {name: one for name, one in items if at(one, ("role",)) == "sensitive"}


def _inferred(raw: Mapping[str, Any]) -> Iterator[Issue]:
    inferred, k = at(raw, ("protect", "inferred")), at(raw, ("protect", "k"))
    against = at(raw, ("protect", "against"))
    if (
        at(raw, ("protect", "belief")) is not None
        and isinstance(against, list | tuple)
        and against
        and "insider" not in against
    ):
        yield ("protect", "belief"), "is what an insider believes, and nobody in against is one: add insider"
    if not isinstance(inferred, int):
        return
    if isinstance(k, int) and inferred > k:
        yield (
            ("protect", "inferred"),
            f"is more than k: a class of {k:,} rows is known as it is. Write at most {k:,}, or a larger k",
        )
    if isinstance(against, list | tuple) and "insider" not in against and "neighbor" not in against:
        yield (
            ("protect", "inferred"),
            "is about several releases, and nobody in against holds these: add insider or neighbor, or leave it out",
        )


def _people(raw: Mapping[str, Any]) -> Iterator[Issue]:
    people, k = at(raw, ("protect", "people")), at(raw, ("protect", "k"))
    if not isinstance(people, int):
        return
    if isinstance(k, int) and people > k:
        yield ("protect", "people"), f"is more than k, the rows of a class: write at most {k:,}, or a larger k"
    if method_of(raw) == "pods" and people > 1 and at(raw, ("method", "classes")) == "one-type":
        yield (
            ("protect", "people"),
            "is not kept by classes of one type, where somebody may be alone with decoys: leave it out, or use mixed",
        )


def _numbers(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """What is too small for the pods that the confidence asks for."""
    seats = seats_of(raw)
    lineage, belief = at(raw, ("protect", "lineage")), at(raw, ("protect", "belief"))
    if isinstance(lineage, int) and lineage < seats:
        yield (
            ("protect", "lineage"),
            f"is less than the {seats} seats that every pod needs for this confidence; write at least {seats}",
        )
    if isinstance(belief, int | float) and 0 < belief * seats < 1 and not _is_inverse(belief, seats):
        yield (
            ("protect", "belief"),
            f"cannot be kept by pods of {seats} seats, who leave a chance of 1 in {seats}: write {1 / seats:.4g} or "
            f"more, or confidence: {belief:g}, which makes larger pods",
        )


def _is_inverse(share: float, seats: int) -> bool:
    """Whether 1 in so many was meant, rounded: 0.333 for three."""
    return round(1 / seats, 3) <= share


def _beside(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """Promises that pods do not keep, or that follow from them."""
    if at(raw, ("method", "blind")) is True and at(raw, ("method", "classes")) == "one-type":
        yield (
            ("method", "classes"),
            "classes of one type are chosen by values, which blind pods do not look at; use mixed",
        )
    seats, protect = seats_of(raw), at(raw, ("protect",))
    for promise in CLASS_PROMISES:
        if promise.not_by_pods is not None and at(protect, (promise.key,)) is not None:
            yield (
                ("protect", promise.key),
                f"is not kept by method: pods: {promise.not_by_pods}; leave it out, or use method: mondrian",
            )
    diversity = at(protect, ("diversity",))
    kind, l = at(diversity, ("kind",)), at(diversity, ("l",))  # noqa: E741 - the name of the parameter everywhere
    if not isinstance(diversity, Mapping):
        return
    if kind in ("entropy", "recursive"):
        yield (
            ("protect", "diversity"),
            f"of kind {kind} is not kept by method: pods; write {{kind: distinct, l: {seats}}}, which every pod has, "
            "or use method: mondrian",
        )
    elif kind == "distinct" and isinstance(l, int | float):
        least = _least_different(raw)
        if l > least:
            fix = f"write l: {least}" if least > 1 else "leave it out"
            yield (
                ("protect", "diversity", "l"),
                f"pods of this confidence have {least} different {'value' if least == 1 else 'values'} for certain: "
                f"{fix}, or confidence: {1 / l:.4g} for all values",
            )


def _least_different(raw: Mapping[str, Any]) -> int:
    """How many values of each attribute every pod has for certain; 1 where values without a bound stand alone."""
    least = []
    for attribute in _sensitive(raw).values():
        own = at(attribute, ("confidence",))
        given = at(raw, ("protect", "confidence")) if own is None else own
        free = at(attribute, ("ordinary",)) or (isinstance(given, Mapping) and "*" not in given)
        bounds = list(given.values()) if isinstance(given, Mapping) else [given]
        numbers = [bound for bound in bounds if isinstance(bound, int | float) and 0 < bound <= 1]
        if free or len(numbers) < len(bounds):
            return 1
        from sequester.rational import exact

        largest = exact(float(max(numbers)))
        least.append(-(-largest.denominator // max(largest.numerator, 1)))
    return min(least, default=1)


def _changing(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """Pods hide values that stay."""
    against = at(raw, ("protect", "against"))
    if at(raw, ("protect", "lifetime")) is not None or (isinstance(against, list | tuple) and "lifetime" in against):
        yield (
            ("protect", "against" if at(raw, ("protect", "lifetime")) is None else "lifetime"),
            "is about values that change, which method: pods does not cover; use method: group, or publish these "
            "values in a table of their own",
        )
    for name, attribute in _sensitive(raw).items():
        if at(attribute, ("values",)) == "transient" and not at(attribute, ("permanent",)):
            yield (
                ("attributes", name, "values"),
                "method: pods does not cover values that change; name those that stay under permanent, use method: "
                "group, or publish the column in a table of its own",
            )


def _impossible(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """What cannot be: some quasi-identifiers together with one value that stays."""
    rules, attributes = raw.get("impossible"), raw.get("attributes")
    if not isinstance(rules, list | tuple) or not isinstance(attributes, Mapping):
        return
    for place, rule in enumerate(rules):
        if not isinstance(rule, Mapping):
            continue
        here = ("impossible", place)
        roles = {name: at(attributes.get(name), ("role",)) for name in rule}
        for name, role in roles.items():
            if name not in attributes:
                yield (*here, name), f"no attribute has this name{closest(name, attributes)}"
            elif role not in ("quasi-identifier", "sensitive"):
                yield (*here, name), f"is {role or 'unknown'}; only quasi-identifiers and a sensitive attribute go here"
        if any(role not in ("quasi-identifier", "sensitive") for role in roles.values()):
            continue
        private = [name for name, role in roles.items() if role == "sensitive"]
        if len(private) != 1 or len(private) == len(roles):
            yield (
                here,
                "needs at least one quasi-identifier and exactly one sensitive attribute, such as {sex: F, diagnosis: "
                "prostate cancer}",
            )
        elif not _stays(attributes[private[0]], rule[private[0]]):
            yield (*here, private[0]), "only values that stay with a person are shared out in pods; this one may change"
        if rule in list(rules)[:place]:
            yield here, "is given twice; keep one"


def _stays(attribute: Mapping[str, Any], value: object) -> bool:
    kept = attribute.get("permanent")
    return attribute.get("values", "permanent") != "transient" or (isinstance(kept, list | tuple) and value in kept)
