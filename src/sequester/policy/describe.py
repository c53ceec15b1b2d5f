"""A policy in sentences: what happens to each column, what is promised, and what to think about."""

from __future__ import annotations

from collections.abc import Iterator

from sequester.policy.model import (
    Consent,
    Diversity,
    Drift,
    Identifier,
    Insensitive,
    Policy,
    QuasiIdentifier,
    Sensitive,
)

_AGAINST = {
    "outsider": "somebody who sees one release and knows a person's quasi-identifiers",
    "neighbor": "somebody who sees all releases, and knows a person's quasi-identifiers and when the person joined",
    "insider": "somebody who sees all releases, and knows everybody's quasi-identifiers and who is in which release",
    "lifetime": "an insider, while sensitive values change freely",
}
_DISTANCES = {None: "", "equal": " (equal distance)", "ordered": " (ordered distance)"}


def treatment(attribute: Identifier | Insensitive | Consent | QuasiIdentifier | Sensitive) -> str:
    """What happens to one column, in a few words."""
    if isinstance(attribute, Identifier):
        return "dropped"
    if isinstance(attribute, Consent):
        waits = f"; a withdrawal may wait {_amount(attribute.wait, 'release')}" if attribute.wait else ""
        return f"without it a record is not published{waits}"
    if isinstance(attribute, Insensitive):
        return "published as it is" + (", may change for a person" if attribute.changes else "")
    words = list(_sensitive(attribute) if isinstance(attribute, Sensitive) else _quasi(attribute))
    if attribute.missing != "refuse":
        words.append({"category": "missing is a value", "suppress": "rows without it are left out"}[attribute.missing])
    return ", ".join(words)


def promises(policy: Policy) -> list[str]:
    """What is promised about every release, one sentence each."""
    protect, sensitive = policy.protect, list(policy.sensitive.items())
    said = [f"Every class has at least {_people(protect.k)}."]
    said += [sentence for name, attribute in sensitive for sentence in _bounds(policy, name, attribute)]
    if isinstance(protect.alpha, float):
        said.append(f"No sensitive value is the value of more than {_percent(protect.alpha)} of a class.")
    elif protect.alpha is not None:
        said += [f'"{value}" is at most {_percent(share)} of a class.' for value, share in protect.alpha.items()]
    if protect.diversity is not None:
        said.append(_diversity(protect.diversity))
    if protect.closeness is not None:
        how = _DISTANCES.get(protect.closeness.distance, " (hierarchical distance)")
        said.append(
            f"The sensitive values of every class are within {protect.closeness.t:g} of the whole table's{how}."
        )
    if protect.k_map is not None:
        said.append(f"Every published row fits at least {_people(protect.k_map.k)} of {protect.k_map.population}.")
    if protect.lifetime is not None:
        chance = f"{100 / protect.lifetime.l:.3g}%"
        said.append(f"Over all releases together, nobody was ever linked to a value with more than {chance}.")
        if protect.lifetime.registered is not None:
            listed = protect.lifetime.registered
            said.append(f"That holds as long as nobody knows which of the people in {listed} are in a release.")
    for name, attribute in sensitive:
        if attribute.permanent:
            stay = f"{_amount(len(attribute.permanent), 'value')} of {name} stay{'s' * (len(attribute.permanent) == 1)}"
            said.append(
                f"{stay} with a person and is protected so; the bound on the others holds even for somebody who knows "
                "who has a value that stays."
            )
    if len(sensitive) > 1 and protect.sensitive != "each":
        also = "also for" if protect.sensitive == "both" else "for"
        said.append(f"This holds {also} the combination of the sensitive attributes.")
    said += [f"In a series this holds against {_AGAINST[adversary]}." for adversary in protect.against]
    return said


def notes(policy: Policy) -> list[str]:
    """What is allowed but may not be meant."""
    return [*_protection_notes(policy), *_level_notes(policy)]


def _diversity(wanted: Diversity) -> str:
    if wanted.kind == "distinct":
        return f"Every class has at least {wanted.l:g} different values of each sensitive attribute."
    if wanted.kind == "entropy":
        return f"Every class is as mixed as {wanted.l:g} equally frequent sensitive values (entropy)."
    pair = f"({wanted.c or 0:g},{wanted.l:g})"
    return f"Every class is recursively {pair}-diverse: its most frequent sensitive value is not too frequent."


def _quasi(attribute: QuasiIdentifier) -> Iterator[str]:
    if attribute.kind == "number":
        if attribute.range is not None:
            yield f"{attribute.range[0]:g} to {attribute.range[1]:g}"
        if attribute.levels is not None:
            yield f"widths {', '.join(f'{width:g}' for width in attribute.levels)}"
        elif attribute.bands is not None:
            yield _amount(len(attribute.bands) - 1, "band")
        else:
            yield "any interval"
    elif attribute.kind == "date":
        yield "by " + ", ".join(str(step) for step in attribute.levels or ("day", "month", "quarter", "year"))
        if attribute.format is not None:
            yield f"written as {attribute.format}"
    elif attribute.kind == "code":
        yield f"prefixes of {attribute.length} characters"
    else:
        yield _hierarchy(attribute)
    if isinstance(attribute.changes, Drift):
        low, high = attribute.changes.by
        yield f"moves by {low:g} to {high:g} each release"
    elif attribute.changes:
        yield "may change for a person"


def _sensitive(attribute: Sensitive) -> Iterator[str]:
    if attribute.bands is not None:
        yield _amount(len(attribute.bands) - 1, "band")
    elif attribute.hierarchy is not None:
        yield _hierarchy(attribute)
    if attribute.kind == "set":
        yield f"sets, separated by {attribute.between!r}"
    yield f"{attribute.values} values"
    if attribute.permanent:
        yield f"but {len(attribute.permanent)} that stay"
    if attribute.grades is not None:
        yield f"{_amount(len(attribute.grades), 'grade')}"
    if attribute.guarding is not None:
        yield f"guarded by {attribute.guarding}"
    if attribute.ordinary:
        yield f"{len(attribute.ordinary)} ordinary"


def _hierarchy(attribute: QuasiIdentifier | Sensitive) -> str:
    if attribute.hierarchy is None:
        return "no hierarchy"
    return f"hierarchy {attribute.hierarchy}" if isinstance(attribute.hierarchy, str) else "hierarchy in the policy"


def _bounds(policy: Policy, name: str, attribute: Sensitive) -> Iterator[str]:
    bound = attribute.confidence if attribute.confidence is not None else policy.protect.confidence
    if bound is None:
        return
    if isinstance(bound, float):
        who = "Ordinary values aside, nobody" if attribute.ordinary else "Nobody"
        yield f"{who} is tied to one value of {name} with more than {_percent(bound)} confidence."
        return
    for value, limit in bound.items():
        of = f"any other value of {name}" if value == "*" else f'"{value}" of {name}'
        yield f"Nobody is tied to {of} with more than {_percent(limit)} confidence."


def _protection_notes(policy: Policy) -> Iterator[str]:
    protect, sensitive = policy.protect, policy.sensitive
    if policy.person is None:
        yield "No person column is named, so every row counts as one person."
    if protect.k == 1:
        yield "k is 1: a class may be a single person."
    if not sensitive:
        yield "No attribute is sensitive: who a row is about is hidden, but not what a class says about its people."
    unbounded = [n for n, a in sensitive.items() if a.confidence is None and protect.confidence is None]
    promised = (protect.alpha, protect.diversity, protect.closeness, protect.lifetime)
    if unbounded and all(promise is None for promise in promised):
        names = ", ".join(unbounded)
        yield f"Nothing bounds what a class tells about {names}: give protect a confidence."
    if protect.lifetime is not None and not any(a.values == "transient" for a in sensitive.values()):
        yield "lifetime is about transient values, and no sensitive attribute has values: transient."


def _level_notes(policy: Policy) -> Iterator[str]:
    for name, attribute in policy.quasi_identifiers.items():
        flat = attribute.kind == "category" and attribute.hierarchy is None
        flat |= attribute.kind == "number" and attribute.levels is None and attribute.bands is None
        wanted = "a hierarchy" if attribute.kind == "category" else "levels"
        if flat and policy.method.name in ("full-domain", "specialize"):
            yield f"{policy.method.name} can only keep or suppress {name}: give it {wanted}."
        elif flat and attribute.kind == "category":
            yield f"{name} has no hierarchy: values next to each other in the alphabet are grouped."
        if attribute.kind == "number" and attribute.range is None:
            yield f"{name} has no range, so published intervals may show its lowest and highest value: give it one."


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _amount(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
