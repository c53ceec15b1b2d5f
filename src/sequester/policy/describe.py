"""A policy in sentences: what happens to each column, what is promised, and what to think about."""

from __future__ import annotations

from collections.abc import Iterator

from sequester.domain.kinds import kind_of
from sequester.policy.adversaries import ADVERSARIES, Promise, adversary_named, changing, is_bounded, staying
from sequester.policy.attributes import Consent, Drift, Identifier, Insensitive, QuasiIdentifier, Sensitive
from sequester.policy.methods import Pods
from sequester.policy.model import Policy
from sequester.policy.protect import CLASS_PROMISES
from sequester.policy.words import amount, listed, percent

# Promises are told for the stronger of those who link values that stay first, then for the others.
_TOLD = (
    *(one for one in reversed(ADVERSARIES) if one.values == "permanent"),
    *(one for one in ADVERSARIES if one.values != "permanent"),
)


def treatment(attribute: Identifier | Insensitive | Consent | QuasiIdentifier | Sensitive) -> str:
    """What happens to one column, in a few words."""
    if isinstance(attribute, Identifier):
        return "dropped"
    if isinstance(attribute, Consent):
        waits = f"; a withdrawal may wait {amount(attribute.wait, 'release')}" if attribute.wait else ""
        return f"without it a record is not published{waits}"
    if isinstance(attribute, Insensitive):
        return (
            f"published as it is, {'may change for a person' if attribute.changes else 'stays, so it links her rows'}"
        )
    words = list(_sensitive(attribute) if isinstance(attribute, Sensitive) else _quasi(attribute))
    if attribute.missing != "refuse":
        words.append({"category": "missing is a value", "suppress": "rows without it are left out"}[attribute.missing])
    return ", ".join(words)


def knows(adversary: str) -> str:
    """What an adversary does and knows, as the end of a sentence."""
    return adversary_named(adversary).knows


def promises(policy: Policy) -> list[Promise]:
    """What is promised, first about each release on its own, then about all together; nothing that is not tried."""
    named = [one for one in _TOLD if one.name in policy.protect.against]
    return [*_of_each(policy), *(promise for one in named for promise in one.promises(policy))]


def unpromised(policy: Policy) -> list[str]:
    """What is not promised, so that nobody reads it into what is."""
    against, change, stay = policy.protect.against, changing(policy), staying(policy)
    said = []
    if stay and "insider" not in against:
        said.append(f"Nothing against an insider, who {knows('insider')}.")
    if stay and not {"neighbor", "insider"} & set(against):
        said.append(f"Nothing against a neighbor, who {knows('neighbor')}.")
    elif stay and "neighbor" not in against:
        said.append("Nothing about guesses of a neighbor that an insider would not make: intersection is not tried.")
    if change and "lifetime" not in against:
        said.append(f"Nothing over several releases about {listed(change)}, whose values change.")
    free = [n for n in stay if n in policy.sensitive and not is_bounded(policy, n)]
    if free:
        said.append(f"No bound on how surely anybody is tied to a value of {listed(free)}.")
    if policy.bounds_values:
        said.append(
            "Nothing about what is known of people like her: a bound is about what rows say of a person beyond that. "
            "Whoever learns from a table that a group mostly has a value believes it of everybody in the group."
        )
    if isinstance(policy.method, Pods):
        said += _beyond_pods(policy, policy.method)
    said.append(
        "Nothing against whoever knows more: values of other people, how people are alike, or how the method decides."
    )
    said.append("Nothing about other publications of the same people outside this series.")
    return said


def _of_each(policy: Policy) -> Iterator[Promise]:
    """What the outsider's attacks try on every release."""
    for promise in CLASS_PROMISES:
        for words in promise.say(policy):
            yield Promise(words, "each release", "outsider", () if promise.attack is None else (promise.attack,))
    if len(policy.sensitive) > 1 and policy.protect.sensitive != "each":
        also = "also for" if policy.protect.sensitive == "both" else "for"
        words = f"This holds {also} the combination of the sensitive attributes."
        yield Promise(words, "each release", "outsider", ("confidence",))


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


def notes(policy: Policy) -> list[str]:
    """What is allowed but may not be meant."""
    return [*_protection_notes(policy), *_pod_notes(policy), *_level_notes(policy)]


def _quasi(attribute: QuasiIdentifier) -> Iterator[str]:
    yield from kind_of(attribute).treatment(attribute)
    if isinstance(attribute.changes, Drift):
        low, high = attribute.changes.by
        yield f"moves by {low:g} to {high:g}{kind_of(attribute).unit} from release to release"
    elif attribute.changes:
        yield "may change for a person"


def _sensitive(attribute: Sensitive) -> Iterator[str]:
    yield from kind_of(attribute).treatment(attribute)
    yield "the first value of everybody" if attribute.values == "first" else f"{attribute.values} values"
    if attribute.permanent:
        yield f"but {len(attribute.permanent)} that stay"
    if attribute.grades is not None:
        yield f"{amount(len(attribute.grades), 'grade')}"
    if attribute.guarding is not None:
        yield f"guarded by {attribute.guarding}"
    if attribute.ordinary:
        yield f"{len(attribute.ordinary)} ordinary"


def _protection_notes(policy: Policy) -> Iterator[str]:
    protect, sensitive = policy.protect, policy.sensitive
    if policy.person is None:
        yield "No person column is named, so every row counts as one person."
    if protect.k == 1:
        yield "k is 1: a class may be a single person."
    if not sensitive:
        yield "No attribute is sensitive: who a row is about is hidden, but not what a class says about its people."
    unbounded = [n for n, a in sensitive.items() if a.confidence is None and protect.confidence is None]
    others = any(one.asked(policy) for one in CLASS_PROMISES if one.about_values and not one.links)
    if unbounded and not others and protect.lifetime is None:
        names = ", ".join(unbounded)
        yield f"Nothing bounds what a class tells about {names}: give protect a confidence."
    if protect.lifetime is not None and not any(a.values == "transient" for a in sensitive.values()):
        yield "lifetime is about transient values, and no sensitive attribute has values: transient."


def _pod_notes(policy: Policy) -> Iterator[str]:
    if not isinstance(policy.method, Pods):
        return
    share = f"at most {percent(policy.decoys)} of the rows, beyond those that the promises cannot do without"
    yield (
        "A decoy is a row about nobody. It stands in for somebody who left, or whose value nobody near could share, "
        f"and cannot be told from other rows: {share}. Count people by the published weight, not by rows."
    )
    k, fewest = policy.protect.k, policy.fewest
    if policy.protect.inferred is None and fewest < k:
        yield (
            f"Classes have {k:,} rows, but what is inferred from several releases may come down to {fewest:,}, the "
            f"seats of a pod: {fewest:,} people, or fewer and decoys, and nobody can tell who of them has which value. "
            f"`inferred: {k}` under protect asks for {k:,}, and loses two to three times as much."
        )
    if policy.impossible:
        yield (
            f"{amount(len(policy.impossible), 'combination')} of values cannot be, as the policy says: nobody shares "
            "a value with somebody who cannot have it. One that everybody knows of and that is missing there gives "
            "people away."
        )
    if policy.lasting:
        yield (
            f"{listed(policy.lasting)} stays with a person, so nobody takes another's place who differs there; say "
            "changes: true if it may change, or leave it out, and there are fewer decoys."
        )
    if not policy.bounds_values:
        yield "No value has a confidence below 1, so nobody needs to share values, and pods do nothing."


def _level_notes(policy: Policy) -> Iterator[str]:
    flat = []
    for name, attribute in policy.quasi_identifiers.items():
        kind = kind_of(attribute)
        wanted = kind.without_levels(attribute)
        if wanted is not None and policy.method.name in ("full-domain", "specialize"):
            yield f"{policy.method.name} can only keep or suppress {name}: give it {wanted}."
        elif wanted is not None and not kind.ordered:
            flat.append(name)
        yield from kind.notes(name, attribute)
    if flat:
        have = "has" if len(flat) == 1 else "have"
        yield f"{listed(flat)} {have} no hierarchy: values next to each other in the alphabet are grouped."
