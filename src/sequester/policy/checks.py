"""Checks across keys. They read the raw mapping and skip what has the wrong type, so that a policy with a typo in one
place still gets all its other problems reported in the same go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sequester.outputs import WEIGHT
from sequester.policy.adversaries import ADVERSARIES
from sequester.policy.attribute_checks import attribute_checks, is_numeric
from sequester.policy.encodings import UNKNOWN, known_encoding
from sequester.policy.phrase import ROLES, known_keys, unknown_key
from sequester.policy.pod_checks import method_of, pod_checks
from sequester.policy.protect import CLASS_PROMISES, Protect
from sequester.policy.raw import Issue, at

_NEED_SENSITIVE = (*(one.key for one in CLASS_PROMISES if one.about_values), "lifetime", "belief", "lineage")
_SINGLE = tuple(one.key for one in CLASS_PROMISES if one.about_values and not one.links)


def cross_check(raw: Mapping[str, Any]) -> list[Issue]:
    """Everything that is wrong between keys."""
    return [
        *_version(raw),
        *_roles(raw),
        *_attributes(raw),
        *_outputs(raw),
        *_input(raw),
        *_protect(raw),
        *_beside_changes(raw),
        *_group_method(raw),
        *_registered(raw),
        *_cluster_method(raw),
        *pod_checks(raw),
    ]


def _version(raw: Mapping[str, Any]) -> Iterator[Issue]:
    if isinstance(raw.get("version"), bool):
        yield ("version",), "must be one of: 1"


def _roles(raw: Mapping[str, Any]) -> Iterator[Issue]:
    attributes, person = _group(raw, "attributes"), raw.get("person")
    roles = {name: at(attribute, ("role",)) for name, attribute in attributes.items()}
    # With an unreadable role among them nobody can say that no attribute was meant to be one.
    if roles and all(role in list(ROLES) for role in roles.values()) and "quasi-identifier" not in roles.values():
        yield ("attributes",), "no attribute has the role quasi-identifier, so there is nothing to generalize"
    for name in [name for name, role in roles.items() if role == "consent"][1:]:
        yield ("attributes", name), "another attribute has the role consent already; put both in one column"
    for name, attribute in attributes.items():
        guarding = at(attribute, ("guarding",))
        if isinstance(guarding, str) and roles.get(guarding) not in ("identifier", None):
            yield ("attributes", name, "guarding"), "is a column that is published; name one that is not in attributes"
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
        yield from (((*path, *rest), message) for rest, message in attribute_checks(attribute))


def _outputs(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """Bounds are published in two columns, weights in one, whose names nothing else that is published may have."""
    attributes, output = _group(raw, "attributes"), _group(raw, "output")
    published = ("quasi-identifier", "sensitive", "insensitive")
    bounds = output.get("numbers", "bounds") == "bounds"
    own = attributes.get(WEIGHT)
    weighed = method_of(raw) == "pods" and output.get("weights", "column") == "column"
    if weighed and isinstance(own, Mapping) and own.get("role") in published and not _is_split(own, bounds=bounds):
        message = "is also the column that says how many people a row stands for, since some rows are decoys; "
        yield ("attributes", WEIGHT), f"{message}rename it, or say `output: {{weights: none}}`"
    if not bounds:
        return
    for name, attribute in attributes.items():
        if not (isinstance(attribute, Mapping) and attribute.get("role") == "quasi-identifier"):
            continue
        for end in ("_min", "_max") if is_numeric(attribute) else ():
            other = attributes.get(f"{name}{end}")
            if isinstance(other, Mapping) and other.get("role") in published:
                message = f"is also the column that the bounds of '{name}' are published in; rename it, or say "
                yield ("attributes", f"{name}{end}"), f"{message}`output: {{numbers: interval}}`"


def _is_split(attribute: Mapping[str, Any], *, bounds: bool) -> bool:
    """Whether it is published in two columns, of other names."""
    return bounds and attribute.get("role") == "quasi-identifier" and is_numeric(attribute)


def _input(raw: Mapping[str, Any]) -> Iterator[Issue]:
    encoding = _group(raw, "input").get("encoding")
    if isinstance(encoding, str) and known_encoding(encoding) is None:
        yield ("input", "encoding"), UNKNOWN


def _protect(raw: Mapping[str, Any]) -> Iterator[Issue]:
    protect = _group(raw, "protect")
    issues = [*_promises(raw, protect), *_lifetime(protect), *_across(raw, protect)]
    for path, message in issues:
        yield ("protect", *path), message


def _promises(raw: Mapping[str, Any], protect: Mapping[str, Any]) -> Iterator[Issue]:
    attributes = [a for a in _group(raw, "attributes").values() if isinstance(a, Mapping)]
    sensitive = [a for a in attributes if a.get("role") == "sensitive"]
    if not sensitive and all(a.get("role") in list(ROLES) for a in attributes):
        for key in _NEED_SENSITIVE:
            if protect.get(key) is not None:
                yield (key,), "no attribute has the role sensitive, so there is nothing to promise this for"
    if protect.get("against") in ([], ()):
        named = ", ".join(one.name for one in ADVERSARIES if one.named)
        yield ("against",), f"must not be empty; name at least one of: {named}"
    for promise in CLASS_PROMISES:
        if protect.get(promise.key) is not None:
            yield from promise.check(protect, sensitive)


def _across(raw: Mapping[str, Any], protect: Mapping[str, Any]) -> Iterator[Issue]:
    """Whoever holds all releases is promised against only where something is bounded over all of them."""
    against = protect.get("against", ("insider",))
    sensitive = {n: a for n, a in _group(raw, "attributes").items() if at(a, ("role",)) == "sensitive"}
    if not isinstance(against, list | tuple) or not sensitive:
        return
    changing = [name for name, attribute in sensitive.items() if attribute.get("values") == "transient"]
    stay = [n for n, a in sensitive.items() if n not in changing or a.get("permanent")]
    linking = [one.name for one in reversed(ADVERSARIES) if one.values == "permanent" and one.name in against]
    if method_of(raw) == "pods":
        if not stay:
            return
        changing = []  # of which pods say in their own words that they are not covered
    wanted = ", ".join([*(linking if stay else []), "lifetime"])
    if changing and (linking or "lifetime" in against) and protect.get("lifetime") is None:
        if at(raw, ("method", "name")) == "group":
            return  # which asks for it in its own words
        yield (
            ("lifetime",),
            f"is missing; values of {changing[0]} change, and nothing else bounds what all releases together tell "
            f"about them. Write lifetime: {{l: 2, releases: 20}} with against: [{wanted}], or only against: "
            "[outsider], which promises nothing beyond single releases",
        )
    elif changing and protect.get("lifetime") is not None and "lifetime" not in against:
        yield ("against",), f"lifetime is not among them, so nothing would check that promise; write [{wanted}]"
    elif not stay and linking:
        yield ("against",), f"no value stays with a person, so {linking[0]} checks nothing; write [{wanted}]"
    if not changing and "lifetime" in against and not linking:
        yield ("against",), "no value changes, so lifetime checks nothing; write [insider]"
    yield from _unbounded(protect, {name: sensitive[name] for name in stay}, linking)


def _beside_changes(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """What stays with a person links her rows, so that what changes adds up over releases by more than chance.

    Of the rows (a, s), (a, s), (b, t), (b, t) and then (a, t), (a, t), (b, s), (b, s) everybody had s once, where three
    in four would be right if nothing linked the releases.
    """
    if at(raw, ("protect", "lifetime")) is None:
        return
    attributes = {n: a for n, a in _group(raw, "attributes").items() if isinstance(a, Mapping)}
    changing = [n for n, a in attributes.items() if a.get("role") == "sensitive" and a.get("values") == "transient"]
    if not changing:
        return
    for name, attribute in attributes.items():
        beside = next((other for other in changing if other != name), None)
        links = f"would link a person's rows over releases, and with them the values of {beside or changing[0]}"
        if attribute.get("role") == "insensitive" and not attribute.get("changes"):
            yield ("attributes", name), f"{links}; say changes: true if it may change, or leave it out"
        elif attribute.get("role") == "sensitive" and beside is not None:
            if attribute.get("values") != "transient":
                yield ("attributes", name), f"stays with a person and {links}; publish it in a table of its own"
            elif attribute.get("permanent"):
                yield (
                    ("attributes", name, "permanent"),
                    f"stay with a person and {links}; publish {beside} in a table of its own",
                )


def _unbounded(
    protect: Mapping[str, Any], stay: Mapping[str, Mapping[str, Any]], linking: Sequence[str]
) -> Iterator[Issue]:
    """Values that stay are bounded across releases by a confidence, and by nothing else."""
    single = [key for key in Protect.model_fields if key in _SINGLE and protect.get(key) is not None]
    for name, attribute in stay.items() if linking else ():
        own = attribute.get("confidence")
        if _bounds(protect.get("confidence") if own is None else own):
            continue
        if single:
            why = f"{single[0]} is a promise about single releases"
        elif attribute.get("permanent"):
            why = "lifetime is about the values that change"
        else:
            continue
        yield (
            ("confidence",),
            f"does not bound what all releases together tell about {name}, and {why}. Write confidence: 0.5, or only "
            "against: [outsider], which promises nothing beyond single releases",
        )


def _bounds(confidence: object) -> bool:
    """Whether a confidence bounds anything: 1 does not."""
    given = list(confidence.values()) if isinstance(confidence, Mapping) else [confidence]
    return any(isinstance(bound, int | float) and bound < 1 for bound in given)


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
    sensitive = [a for a in _group(raw, "attributes").values() if at(a, ("role",)) == "sensitive"]
    if all(at(a, ("values",)) != "transient" for a in sensitive):
        yield ("method", "name"), "group is for values that change: a sensitive attribute needs values: transient"
        return
    stay = any(at(a, ("values",)) != "transient" or at(a, ("permanent",)) for a in sensitive)
    if isinstance(against, list | tuple):
        if stay and "neighbor" in against:
            yield ("protect", "against"), "method: group cannot keep what neighbor asks for; use insider and lifetime"
        if stay and "insider" not in against:
            yield ("protect", "against"), "some values stay with a person: against needs insider for those"


def _cluster_method(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """Only one rule can choose the attributes of a cluster."""
    if at(raw, ("method", "gain")) is not None and at(raw, ("method", "weight")) is not None:
        yield ("method", "weight"), "give either gain or weight, not both"


def _registered(raw: Mapping[str, Any]) -> Iterator[Issue]:
    """A registration list helps only where nobody knows who is in a release, and only `group` uses it."""
    if at(raw, ("protect", "lifetime", "registered")) is None:
        return
    path = ("protect", "lifetime", "registered")
    if at(raw, ("method", "name")) != "group":
        yield path, "only goes with method: group"
    against = at(raw, ("protect", "against"))
    if isinstance(against, list | tuple) and "insider" in against:
        yield path, "is for adversaries who do not know who is in a release, and insider does; leave one of them out"


def _group(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    group = raw.get(key)
    return group if isinstance(group, Mapping) else {}
