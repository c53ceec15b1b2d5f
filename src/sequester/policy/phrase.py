"""What pydantic found, in a steward's words: the key as it stands in the policy, what is expected, the closest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from sequester.policy import attributes, methods, model, protect
from sequester.policy.adversaries import ADVERSARIES
from sequester.policy.document import KeyPath
from sequester.policy.protect import CLASS_PROMISES, options_of
from sequester.policy.raw import Issue, at, holds


def _by_tag(union: Any, tag: str) -> dict[str, type[BaseModel]]:
    """The models of a union by the word that tells them apart."""
    models = get_args(get_args(union)[0])
    return {get_args(one.model_fields[tag].annotation)[0]: one for one in models}


ROLES = _by_tag(attributes.Attribute, "role")
METHODS = _by_tag(methods.MethodOptions, "name")
SECTIONS: dict[KeyPath, type[BaseModel]] = {
    (): model.Policy,
    ("protect",): protect.Protect,
    **{("protect", key): options for key, options in options_of(protect.Protect).items()},
    ("output",): model.Output,
    ("input",): model.Input,
}

# Fields that may hold several shapes: one sentence instead of one complaint per shape and item.
_SHAPES = {
    "range": "must be two numbers: [lowest, highest]",
    "bands": "must be a list of numbers, the edges of the bands, such as [0, 20, 50, 100]",
    "levels": "must be a list of widths such as [5, 10, 20], or for a date of steps such as [day, month, year]",
    "hierarchy": "must be a file name, or a tree of values such as {Europe: [France, Spain]}",
    "ordinary": "must be a list of values as text, such as [none, flu]",
    "impossible": "must be a list of values that cannot be together, such as [{sex: F, diagnosis: prostate cancer}]",
    "against": f"must be a list of: {', '.join(one.name for one in ADVERSARIES if one.named)}",
    "changes": "must be true or false, or for a number or date of the quasi-identifiers {by: [least, most]}",
}
_EXAMPLES: dict[KeyPath, str] = {
    ("attributes",): "attributes: {age: {role: quasi-identifier, kind: number}}",
    ("protect",): "protect: {k: 5}",
    **{("protect", one.key): one.example for one in CLASS_PROMISES if one.example is not None},
    ("protect", "lifetime"): "lifetime: {l: 2, releases: 20}",
    ("impossible",): "impossible: [{sex: F, diagnosis: prostate cancer}]",
    ("method",): "method: {name: mondrian}",
    ("output",): "output: {format: csv}",
    ("input",): 'input: {delimiter: ";"}',
}


def phrase(error: ValidationError, raw: Mapping[str, Any]) -> list[Issue]:
    """Every problem once, at the key of the policy that has it."""
    said: dict[Issue, None] = {}
    for detail in error.errors(include_url=False, include_context=True, include_input=False):
        path = _locate(detail["loc"], raw, missing=detail["type"] == "missing")
        place = 2 if path[:1] == ("attributes",) else 1
        shape = _shape(path[: place + 1]) if len(path) > place else None
        whole = len(path) == place + 1 and detail["type"] in ("missing", "extra_forbidden")
        if shape and not whole:
            said[path[: place + 1], shape] = None
        elif detail["type"].startswith("union_tag"):
            said[_tag(path, raw)] = None
        else:
            said[path, _say(detail["type"], detail.get("ctx", {}), path, raw)] = None
    # Of the alternatives of a union, the one that got furthest is the one that was meant.
    paths = {path for path, _ in said}
    issues = [
        (path, words) for path, words in said if not any(len(p) > len(path) and p[: len(path)] == path for p in paths)
    ]
    return list({path: (path, words) for path, words in reversed(issues)}.values())[::-1]


def known_keys(path: KeyPath, raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys that may stand at a place; none when it holds no settings."""
    if path in SECTIONS:
        return tuple(SECTIONS[path].model_fields)
    here = at(raw, path)
    if len(path) == 2 and path[0] == "attributes":
        role = here.get("role") if isinstance(here, Mapping) else None
        if role in list(ROLES):
            return tuple(ROLES[role].model_fields)
        return tuple(dict.fromkeys(key for role in ROLES.values() for key in role.model_fields))
    if path == ("method",):
        name = here.get("name") if isinstance(here, Mapping) else None
        return tuple(METHODS[name].model_fields) if name in list(METHODS) else ("name",)
    return ()


def unknown_key(path: KeyPath, raw: Mapping[str, Any]) -> str:
    """What to say about a key nobody knows."""
    key, known = str(path[-1]), known_keys(path[:-1], raw)
    others = [role for role, fields in ROLES.items() if key in fields.model_fields]
    if len(path) == 3 and path[0] == "attributes" and others:
        return f"only {' and '.join(others)} attributes have this key. Available here: {', '.join(known)}"
    having = [name for name, fields in METHODS.items() if key in fields.model_fields]
    if len(path) == 2 and path[0] == "method" and having:
        return f"only goes with method: {' or '.join(having)}. Available here: {', '.join(known)}"
    return f"unknown key{closest(key, known) or '.'} Available: {', '.join(known)}"


def closest(given: object, known: Iterable[str]) -> str:
    """`; did you mean "range"?` when something similar exists, else nothing."""
    by_lower = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(str(given).lower(), list(by_lower), n=1, cutoff=0.6)
    return f'; did you mean "{by_lower[matches[0]]}"?' if matches else ""


def _locate(location: tuple[str | int, ...], raw: Any, *, missing: bool) -> KeyPath:
    """Drop what pydantic adds to a location (tags, names of types): keep what stands in the policy."""
    path: list[str | int] = []
    for index, part in enumerate(location):
        if holds(raw, part):
            path.append(part)
            raw = raw[part]
        elif missing and index == len(location) - 1:
            path.append(part)
    return tuple(path)


def _shape(path: KeyPath) -> str | None:
    if path == ("input", "missing"):
        return 'must be a list of cells as text, such as ["", "NA"]'
    return _SHAPES.get(str(path[-1]))


def _is_fraction(path: KeyPath) -> bool:
    attribute = len(path) == 3 and path[0] == "attributes" and path[2] == "confidence"
    return attribute or path in (("protect", "confidence"), ("protect", "alpha"))


def _tag(path: KeyPath, raw: Mapping[str, Any]) -> Issue:
    key, known = ("name", tuple(METHODS)) if path == ("method",) else ("role", tuple(ROLES))
    given = at(raw, (*path, key))
    if given is None:
        return (*path, key), f"is missing; it is one of: {', '.join(known)}"
    return (*path, key), f"must be one of: {', '.join(known)}{closest(given, known)}"


def _say(kind: str, context: Mapping[str, Any], path: KeyPath, raw: Mapping[str, Any]) -> str:
    if kind != "extra_forbidden" and _is_fraction(path):
        return "must be a number above 0 and at most 1, or one such number per value, such as {flu: 0.5}"
    match kind:
        case "missing":
            return "is missing" + (f"; write for example `{_EXAMPLES[path]}`" if path in _EXAMPLES else "")
        case "extra_forbidden":
            return unknown_key(path, raw)
        case "invalid_key":
            return "keys must be text; put the key in quotes"
        case "too_short":
            return "must not be empty"
        case "literal_error":
            expected = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            return f"must be one of: {expected}{closest(at(raw, path), expected.split(', '))}"
        case "string_pattern_mismatch":
            return "must start with a letter or digit, and hold only letters, digits, dots, dashes and underscores"
        case "string_too_short" | "string_too_long" if path[:1] == ("input",):
            return "must be one character"
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters"
        case "finite_number":
            return "must be a finite number"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        limit = context[name]
        return f"must be {words} {f'{limit:,}' if isinstance(limit, int) else f'{limit:g}'}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        example = _EXAMPLES.get(path, "{role: quasi-identifier}" if len(path) == 2 else "")
        return "must be a group of keys" + (f", such as `{example}`" if example else "")
    return f"must be {_TYPES.get(kind, 'something else; see `sequester check --schema`')}"


_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_TYPES = {
    "string_type": "text; put it in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
}
