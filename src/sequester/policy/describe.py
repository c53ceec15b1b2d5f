"""A policy in sentences: what happens to each column, what is promised, and what to think about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sequester.domain.kinds import kind_of
from sequester.policy.attributes import Consent, Drift, Identifier, Insensitive, QuasiIdentifier, Sensitive
from sequester.policy.methods import Pods
from sequester.policy.model import Policy
from sequester.policy.protect import Diversity

_KNOWS = {
    "outsider": "sees one release and knows a person's quasi-identifiers",
    "neighbor": "sees all releases, and knows a person's quasi-identifiers and when the person joined",
    "insider": "sees all releases, and knows everybody's quasi-identifiers and who is in which release",
    "lifetime": "is an insider, while sensitive values change freely",
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
        return (
            f"published as it is, {'may change for a person' if attribute.changes else 'stays, so it links her rows'}"
        )
    words = list(_sensitive(attribute) if isinstance(attribute, Sensitive) else _quasi(attribute))
    if attribute.missing != "refuse":
        words.append({"category": "missing is a value", "suppress": "rows without it are left out"}[attribute.missing])
    return ", ".join(words)


@dataclass(frozen=True)
class Promise:
    """One sentence, what it is about, and against whom it is tried.

    about    each release on its own, or all releases of the series together
    attacks  those of the audit that try it; where they did not run, nothing was shown
    """

    words: str
    about: Literal["each release", "the series"]
    against: str
    attacks: tuple[str, ...]

    def __str__(self) -> str:
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"promise": self.words, "about": self.about, "against": self.against, "attacks": list(self.attacks)}


def knows(adversary: str) -> str:
    """What an adversary does and knows, as the end of a sentence."""
    return _KNOWS[adversary]


def promises(policy: Policy) -> list[Promise]:
    """What is promised, first about each release on its own, then about all together; nothing that is not tried."""
    return [*_of_each(policy), *_of_series(policy)]


def unpromised(policy: Policy) -> list[str]:
    """What is not promised, so that nobody reads it into what is."""
    against, changing, stay = policy.protect.against, _changing(policy), _staying(policy)
    said = []
    if stay and "insider" not in against:
        said.append(f"Nothing against an insider, who {_KNOWS['insider']}.")
    if stay and not {"neighbor", "insider"} & set(against):
        said.append(f"Nothing against a neighbor, who {_KNOWS['neighbor']}.")
    elif stay and "neighbor" not in against:
        said.append("Nothing about guesses of a neighbor that an insider would not make: intersection is not tried.")
    if changing and "lifetime" not in against:
        said.append(f"Nothing over several releases about {_listed(changing)}, whose values change.")
    free = [n for n in _staying(policy) if n in policy.sensitive and not _is_bounded(policy, n)]
    if free:
        said.append(f"No bound on how surely anybody is tied to a value of {_listed(free)}.")
    if isinstance(policy.method, Pods):
        said += _beyond_pods(policy, policy.method)
    said.append(
        "Nothing against whoever knows more: values of other people, how people are alike, or how the method decides."
    )
    said.append("Nothing about other publications of the same people outside this series.")
    return said


def _of_each(policy: Policy) -> Iterator[Promise]:
    """What the outsider's attacks try on every release."""
    protect = policy.protect

    def each(words: str, *attacks: str) -> Promise:
        return Promise(words, "each release", "outsider", attacks)

    if isinstance(policy.method, Pods):
        decoys = "; some may be decoys, rows about nobody that look like any other"
        yield each(f"Every class has at least {_amount(protect.k, 'row')}{decoys}.", "k")
    else:
        yield each(f"Every class has at least {_people(protect.k)}.", "k")
    for name, attribute in policy.sensitive.items():
        for sentence in _bounds(policy, name, attribute):
            yield each(sentence, "confidence")
    if isinstance(protect.alpha, float):
        yield each(f"No sensitive value is that of more than {_percent(protect.alpha)} of a class.", "confidence")
    elif protect.alpha is not None:
        for value, share in protect.alpha.items():
            yield each(f'"{value}" is at most {_percent(share)} of a class.', "confidence")
    if protect.diversity is not None:
        yield each(_diversity(protect.diversity), "diversity")
    if protect.closeness is not None:
        how = _DISTANCES.get(protect.closeness.distance, " (hierarchical distance)")
        words = f"The sensitive values of every class are within {protect.closeness.t:g} of the whole table's{how}."
        yield each(words, "closeness")
    if protect.k_map is not None:
        yield each(f"Every published row fits at least {_people(protect.k_map.k)} of {protect.k_map.population}.")
    if len(policy.sensitive) > 1 and protect.sensitive != "each":
        also = "also for" if protect.sensitive == "both" else "for"
        yield each(f"This holds {also} the combination of the sensitive attributes.", "confidence")


def _of_series(policy: Policy) -> Iterator[Promise]:
    """What the attacks of those who hold all releases try."""
    protect = policy.protect
    bounded = [name for name in _staying(policy) if name in policy.sensitive and _is_bounded(policy, name)]
    what = f"any value of {_listed(bounded)} more surely than its bound" if bounded else ""
    if "insider" in protect.against and _staying(policy):
        also = " (decoys count)" if isinstance(policy.method, Pods) else ""
        some = ", one of whom has a value with a bound," if policy.bounds_values else ""
        yield Promise(
            f"No set of fewer than {_people(protect.fewest)}{also}{some} falls out when classes of two releases are "
            "added and subtracted, and no row of any release can be traced to fewer people by all releases together.",
            "the series", "insider", ("difference", "tracing"),
        )  # fmt: skip
        if bounded:
            yield Promise(
                f"Everything published, taken together, forces nobody to be tied to {what}.",
                "the series", "insider", ("difference", "tracing", "deniability"),
            )  # fmt: skip
        yield from _of_knowledge(policy, bounded)
    if "neighbor" in protect.against and _staying(policy):
        yield Promise(
            f"Of the rows that may be a person's, at least {protect.fewest:,} are left when two releases are compared.",
            "the series", "neighbor", ("forward", "cross", "backward"),
        )  # fmt: skip
        if bounded:
            yield Promise(
                f"What the classes of a person have in common ties her to {what.replace('any', 'no')}.",
                "the series", "neighbor", ("intersection",),
            )  # fmt: skip
    if protect.lifetime is not None and "lifetime" in protect.against and _changing(policy):
        yield from _of_lifetime(policy)


def _of_knowledge(policy: Policy, bounded: Sequence[str]) -> Iterator[Promise]:
    """How sure somebody could be, and how far one value that is known from elsewhere reaches."""
    belief, lineage = policy.protect.belief, policy.linked
    if belief is not None and bounded:
        yield Promise(
            "Somebody without prejudice, who knows nothing but all releases and who is in which class, is never surer "
            f"than {_percent(belief)} of anybody's value of {_listed(bounded)} (maximum entropy).",
            "the series", "insider", ("belief",),
        )  # fmt: skip
    if lineage is not None:
        yield Promise(
            f"At most {_people(lineage)} hang together because they shared their values, directly or through others: "
            "whoever knows the value of one of them from elsewhere may read the others', and no more.",
            "the series", "insider", (),
        )  # fmt: skip


def _beyond_pods(policy: Policy, method: Pods) -> Iterator[str]:
    """What pods leave open, as they are set."""
    if not method.blind:
        yield (
            "Nothing against whoever knows how pods are made and works it backwards: partners are chosen by their "
            "values; `method: {name: pods, blind: true}` chooses without them, and takes more decoys."
        )
    yield (
        "Nothing against whoever knows from elsewhere how many people of a release have each value: what is published "
        "beyond that are decoys."
    )


def _of_lifetime(policy: Policy) -> Iterator[Promise]:
    lifetime, sensitive = policy.protect.lifetime, policy.sensitive
    assert lifetime is not None
    changing = _changing(policy)
    aside = "Ordinary values aside, nobody" if any(sensitive[name].ordinary for name in changing) else "Nobody"

    def over_all(words: str) -> Promise:
        return Promise(words, "the series", "lifetime", ("breach",))

    yield over_all(f"{aside} was ever linked to a value of {_listed(changing)} with more than {100 / lifetime.l:.3g}%.")
    if lifetime.registered is not None:
        yield over_all(
            f"That holds as long as nobody knows which of the people in {lifetime.registered} are in a release."
        )
    for name in changing:
        kept = len(sensitive[name].permanent)
        if kept:
            stay = f"{_amount(kept, 'value')} of {name} {'stays' if kept == 1 else 'stay'} with a person"
            yield over_all(f"{stay}; the bound on the others holds even for somebody who knows who has one of those.")


def _changing(policy: Policy) -> list[str]:
    return [name for name, attribute in policy.sensitive.items() if attribute.values == "transient"]


def _staying(policy: Policy) -> list[str]:
    """What does not change about a person and is open to insider and neighbor; without sensitive values, who she is."""
    found = [n for n, a in policy.sensitive.items() if a.values == "permanent" or a.permanent]
    return found if policy.sensitive else ["people"]


def _is_bounded(policy: Policy, name: str) -> bool:
    own = policy.sensitive[name].confidence
    bound = policy.protect.confidence if own is None else own
    if bound is None:
        return False
    return bound < 1 if isinstance(bound, float) else any(limit < 1 for limit in bound.values())


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def notes(policy: Policy) -> list[str]:
    """What is allowed but may not be meant."""
    return [*_protection_notes(policy), *_pod_notes(policy), *_level_notes(policy)]


def _diversity(wanted: Diversity) -> str:
    if wanted.kind == "distinct":
        return f"Every class has at least {wanted.l:g} different values of each sensitive attribute."
    if wanted.kind == "entropy":
        return f"Every class is as mixed as {wanted.l:g} equally frequent sensitive values (entropy)."
    pair = f"({wanted.c or 0:g},{wanted.l:g})"
    return f"Every class is recursively {pair}-diverse: its most frequent sensitive value is not too frequent."


def _quasi(attribute: QuasiIdentifier) -> Iterator[str]:
    yield from kind_of(attribute).treatment(attribute)
    if isinstance(attribute.changes, Drift):
        low, high = attribute.changes.by
        yield f"moves by {low:g} to {high:g}{kind_of(attribute).unit} from release to release"
    elif attribute.changes:
        yield "may change for a person"


def _sensitive(attribute: Sensitive) -> Iterator[str]:
    yield from kind_of(attribute).treatment(attribute)
    yield f"{attribute.values} values"
    if attribute.permanent:
        yield f"but {len(attribute.permanent)} that stay"
    if attribute.grades is not None:
        yield f"{_amount(len(attribute.grades), 'grade')}"
    if attribute.guarding is not None:
        yield f"guarded by {attribute.guarding}"
    if attribute.ordinary:
        yield f"{len(attribute.ordinary)} ordinary"


def _bounds(policy: Policy, name: str, attribute: Sensitive) -> Iterator[str]:
    bound = attribute.confidence if attribute.confidence is not None else policy.protect.confidence
    if bound is None or bound == 1:
        return
    if isinstance(bound, float):
        who = "Ordinary values aside, nobody" if attribute.ordinary else "Nobody"
        yield f"{who} is tied to one value of {name} with more than {_percent(bound)} confidence by her class."
        return
    for value, limit in bound.items():
        of = f"any other value of {name}" if value == "*" else f'"{value}" of {name}'
        yield f"Nobody is tied to {of} with more than {_percent(limit)} confidence by her class."


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


def _pod_notes(policy: Policy) -> Iterator[str]:
    if not isinstance(policy.method, Pods):
        return
    share = f"at most {_percent(policy.decoys)} of the rows, beyond those that the promises cannot do without"
    yield (
        "A decoy is a row about nobody. It stands in for somebody who left, or whose value nobody near could share, "
        f"and cannot be told from other rows: {share}. Count people by the published weights, not by rows."
    )
    if policy.impossible:
        yield (
            f"{_amount(len(policy.impossible), 'combination')} of values cannot be, as the policy says: nobody shares "
            "a value with somebody who cannot have it. One that everybody knows of and that is missing there gives "
            "people away."
        )
    if policy.lasting:
        yield (
            f"{_listed(policy.lasting)} stays with a person, so nobody takes another's place who differs there; say "
            "changes: true if it may change, or leave it out, and there are fewer decoys."
        )
    if not policy.bounds_values:
        yield "No value has a confidence below 1, so nobody needs to share values, and pods do nothing."


def _level_notes(policy: Policy) -> Iterator[str]:
    for name, attribute in policy.quasi_identifiers.items():
        kind = kind_of(attribute)
        wanted = kind.without_levels(attribute)
        if wanted is not None and policy.method.name in ("full-domain", "specialize"):
            yield f"{policy.method.name} can only keep or suppress {name}: give it {wanted}."
        elif wanted is not None and not kind.ordered:
            yield f"{name} has no hierarchy: values next to each other in the alphabet are grouped."
        yield from kind.notes(name, attribute)


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _amount(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
