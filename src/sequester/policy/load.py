"""From a file or a mapping to a checked policy; whatever is wrong is reported all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sequester.errors import PolicyError, Problem
from sequester.policy.attributes import Attribute, QuasiIdentifier, Sensitive
from sequester.policy.checks import cross_check
from sequester.policy.document import Document, KeyPath, dotted, read_document
from sequester.policy.model import CHECKED, Policy
from sequester.policy.phrase import closest, phrase
from sequester.policy.protect import CLASS_PROMISES, Protect, options_of
from sequester.policy.raw import Issue

_ATTRIBUTE: TypeAdapter[Any] = TypeAdapter(Attribute)


def load_policy(path: str | Path) -> Policy:
    """Read, check and build a policy from a YAML file."""
    file = Path(path)
    return build_policy(read_document(file), base=file.parent)


def build_policy(document: Document, *, base: Path) -> Policy:
    """Check a document in every way and build its policy; files it names are relative to `base`."""
    raw = document.data
    if not isinstance(raw, Mapping):
        problem = Problem("a policy is a group of keys (version, series, attributes, protect)", document.file or None)
        raise PolicyError([*document.problems, problem])
    issues = cross_check(raw)
    try:
        policy: Policy = Policy.__pydantic_validator__.validate_python(raw, context=CHECKED)
        policy._base = base
    except ValidationError as error:
        issues = _joined(phrase(error, raw), issues)
    problems = [*document.problems, *(_problem(document, issue) for issue in issues)]
    wrong = {path for path, _ in issues}
    problems += _hierarchy_problems(document, lambda name: base / name, wrong)
    if problems:
        raise PolicyError(sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0)))
    return policy


def _joined(first: list[Issue], second: list[Issue]) -> list[Issue]:
    """What is wrong with a key itself makes what is wrong between it and others moot."""
    said = {path for path, _ in first}
    return [*first, *(issue for issue in second if issue[0] not in said)]


def _problem(document: Document, issue: Issue) -> Problem:
    path, message = issue
    return Problem(message, document.file or None, document.line(path), dotted(path))


def _hierarchy_problems(document: Document, path: Callable[[str], Path], wrong: set[KeyPath]) -> Iterator[Problem]:
    """Build every hierarchy that the policy alone fixes, of the attributes that are right so far."""
    from sequester.domain.build import declared

    attributes, domains = document.data.get("attributes"), {}
    for name, raw in attributes.items() if isinstance(attributes, Mapping) else ():
        here: KeyPath = ("attributes", name)
        try:
            attribute = _ATTRIBUTE.validate_python(raw)
        except ValidationError:
            continue
        if not isinstance(attribute, QuasiIdentifier | Sensitive) or any(key[:2] == here for key in wrong):
            continue
        key = next((key for key in ("hierarchy", "bands", "range") if getattr(attribute, key, None) is not None), None)
        place = (*here, key) if key else here
        try:
            hierarchy = declared(attribute, path)
        except PolicyError as error:
            yield from (_placed(document, problem, place) for problem in error.problems)
            continue
        if hierarchy is not None and attribute.hierarchy is not None:
            domains[name] = hierarchy
        if hierarchy is not None and isinstance(attribute, Sensitive):
            leaves = set(hierarchy.names[0])
            for issue in [*_unknown_values(attribute, leaves, here), *_unknown_bounds(document, leaves)]:
                yield _problem(document, issue)
    if domains and not any(key[:1] == ("impossible",) for key in wrong):
        from sequester.policy.impossible import check_impossible

        yield from (_problem(document, issue) for issue in check_impossible(document.data, domains))


def _placed(document: Document, problem: Problem, place: KeyPath) -> Problem:
    """A problem of a hierarchy at the key that declares it; one at a line of its own file stays there."""
    if problem.file is not None and problem.line is not None:
        return replace(problem, key=dotted(place))
    message = f"{problem.file}: {problem.message}" if problem.file else problem.message
    return _problem(document, ((*place[:2], problem.key) if problem.key else place, message))


def _unknown_values(attribute: Sensitive, leaves: set[str], here: KeyPath) -> Iterator[Issue]:
    for index, value in enumerate(attribute.ordinary):
        if value not in leaves:
            yield (*here, "ordinary", index), _no_such_value(value, leaves)
    if isinstance(attribute.confidence, dict):
        for value in attribute.confidence:
            if value not in leaves and value != "*":
                yield (*here, "confidence", value), _no_such_value(value, leaves)


def _unknown_bounds(document: Document, leaves: set[str]) -> Iterator[Issue]:
    """Bounds per value in `protect` go with a single sensitive attribute, whose leaves these are."""
    attributes, protect = document.data["attributes"], document.data.get("protect")
    sensitive = [a for a in attributes.values() if isinstance(a, Mapping) and a.get("role") == "sensitive"]
    if len(sensitive) != 1 or not isinstance(protect, Mapping):
        return
    groups = options_of(Protect)
    for promise in CLASS_PROMISES:
        bounds = None if promise.key in groups else protect.get(promise.key)
        for value in bounds if isinstance(bounds, Mapping) else ():
            if value not in leaves and value != "*":
                yield ("protect", promise.key, value), _no_such_value(value, leaves)


def _no_such_value(value: object, leaves: set[str]) -> str:
    return f"not a value of the attribute{closest(value, sorted(leaves))}"
