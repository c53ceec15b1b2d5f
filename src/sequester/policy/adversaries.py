"""Who is promised against: each adversary by what she knows, and what a series promises against her.

Which attacks she can try is said by the attacks themselves (`Attack.adversary`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sequester.policy.words import amount, listed, people, percent

if TYPE_CHECKING:
    from sequester.policy.model import Policy

Named = Literal["outsider", "neighbor", "insider", "lifetime"]
AdversaryName = Named | Literal["any"]


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


def _nothing(policy: Policy) -> Iterator[Promise]:
    return iter(())


@dataclass(frozen=True)
class Adversary:
    """Somebody who holds releases and uses what she knows.

    knows     what she does and knows, as the end of a sentence
    in_short  the same in a table
    promises  what a policy promises against her about all releases together, where she is named
    values    whether she uses values that stay with a person, or ones that change, to combine releases
    named     whether a policy names her; otherwise she is always tried
    """

    name: AdversaryName
    knows: str
    in_short: str
    promises: Callable[[Policy], Iterator[Promise]] = _nothing
    values: Literal["permanent", "transient"] | None = None
    named: bool = True


def changing(policy: Policy) -> list[str]:
    """Attributes of which values may change from release to release."""
    return [name for name, attribute in policy.sensitive.items() if attribute.values == "transient"]


def staying(policy: Policy) -> list[str]:
    """What does not change about a person and is open to insider and neighbor; without sensitive values, who she is."""
    stay = [n for n, a in policy.sensitive.items() if a.stays or a.permanent]
    return stay if policy.sensitive else ["people"]


def is_bounded(policy: Policy, name: str) -> bool:
    """Whether a value of this attribute has a confidence below 1."""
    own = policy.sensitive[name].confidence
    bound = policy.protect.confidence if own is None else own
    if bound is None:
        return False
    return bound < 1 if isinstance(bound, float) else any(limit < 1 for limit in bound.values())


def _bounded(policy: Policy) -> list[str]:
    return [name for name in staying(policy) if name in policy.sensitive and is_bounded(policy, name)]


def _against_insider(policy: Policy) -> Iterator[Promise]:
    if not staying(policy):
        return
    bounded, fewest = _bounded(policy), policy.fewest
    rows = policy.method.name == "pods"
    few, fewer = (f"{amount(fewest, 'row')} (decoys count)", "rows") if rows else (people(fewest), "people")
    some = ", one of whom has a value with a bound," if policy.bounds_values else ""
    yield Promise(
        f"No set of fewer than {few}{some} falls out when classes of two releases are "
        f"added and subtracted, and no row of any release can be traced to fewer {fewer} by all releases together.",
        "the series", "insider", ("difference", "tracing"),
    )  # fmt: skip
    if bounded:
        yield Promise(
            "Everything published, taken together, forces nobody to be tied to any value of "
            f"{listed(bounded)} more surely than its bound.",
            "the series", "insider", ("difference", "tracing", "deniability"),
        )  # fmt: skip
    yield from _of_knowledge(policy, bounded)


def _of_knowledge(policy: Policy, bounded: Sequence[str]) -> Iterator[Promise]:
    """How sure somebody could be, and how far one value that is known from elsewhere reaches."""
    belief, lineage = policy.protect.belief, policy.linked
    if belief is not None and bounded:
        yield Promise(
            "Somebody without prejudice, who knows nothing but all releases and who is in which class, is never surer "
            f"than {percent(belief)} of anybody's value of {listed(bounded)} (maximum entropy).",
            "the series", "insider", ("belief",),
        )  # fmt: skip
    if lineage is not None:
        yield Promise(
            f"At most {people(lineage)} hang together because they shared their values, directly or through others: "
            "whoever knows the value of one of them from elsewhere may read the others', and no more.",
            "the series", "insider", (),
        )  # fmt: skip


def _against_neighbor(policy: Policy) -> Iterator[Promise]:
    if not staying(policy):
        return
    bounded, cracks = _bounded(policy), ("forward", "cross", "backward")
    yield Promise(
        f"Of the rows that may be a person's, at least {policy.fewest:,} are left when two releases are "
        "compared.",
        "the series", "neighbor", cracks,
    )  # fmt: skip
    if bounded:
        yield Promise(
            "Neither what the classes of a person have in common nor the rows that are left for her tie her to a "
            f"value of {listed(bounded)} more surely than its bound.",
            "the series", "neighbor", ("intersection", *cracks),
        )  # fmt: skip
    kept = [name for name in ("alpha", "diversity") if getattr(policy.protect, name) is not None]
    if kept:
        yield Promise(
            f"The rows that are left for a person keep {listed(kept)} as every class does.",
            "the series", "neighbor", cracks,
        )  # fmt: skip


def _against_lifetime(policy: Policy) -> Iterator[Promise]:
    lifetime, names = policy.protect.lifetime, changing(policy)
    if lifetime is None or not names:
        return
    aside = "Ordinary values aside, nobody" if any(policy.sensitive[name].ordinary for name in names) else "Nobody"

    def over_all(words: str) -> Promise:
        return Promise(words, "the series", "lifetime", ("breach",))

    yield over_all(f"{aside} was ever linked to a value of {listed(names)} with more than {100 / lifetime.l:.3g}%.")
    if lifetime.registered is not None:
        yield over_all(
            f"That holds as long as nobody knows which of the people in {lifetime.registered} are in a release."
        )
    for name in names:
        kept = len(policy.sensitive[name].permanent)
        if kept:
            stay = f"{amount(kept, 'value')} of {name} {'stays' if kept == 1 else 'stay'} with a person"
            yield over_all(f"{stay}; the bound on the others holds even for somebody who knows who has one of those.")


ADVERSARIES = (
    Adversary(
        "outsider",
        "sees one release and knows a person's quasi-identifiers",
        "one release, the target's quasi-identifier",
    ),
    Adversary(
        "neighbor",
        "sees all releases, and knows a person's quasi-identifiers and when the person joined",
        "all releases, the target's quasi-identifier, when she joined",
        _against_neighbor,
        "permanent",
    ),
    Adversary(
        "insider",
        "sees all releases, and knows everybody's quasi-identifiers and who is in which release",
        "all releases, everybody's quasi-identifier, who is in which release",
        _against_insider,
        "permanent",
    ),
    Adversary(
        "lifetime",
        "is an insider, while sensitive values change freely",
        "as the insider, while values change freely; with a registration list, not who is in which release",
        _against_lifetime,
        "transient",
    ),
    Adversary("any", "sees how releases are written", "row order; other releases of the same data", named=False),
)
"""From the weakest to the strongest, those who are always tried at the end."""


def adversary_named(name: str) -> Adversary:
    """The adversary with this name."""
    return next(adversary for adversary in ADVERSARIES if adversary.name == name)
