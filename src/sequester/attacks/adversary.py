"""Who knows what, and hence which attacks to try.

| adversary | knows | attacks |
|---|---|---|
| outsider | one release, the target's quasi-identifier | k, confidence, diversity, closeness |
| neighbor | all releases, the target's quasi-identifier, when she joined | forward, cross, backward, intersection |
| insider  | all releases, everybody's quasi-identifier, who is in which | difference, tracing, deniability, belief |
| lifetime | as the insider, while values change freely | breach |
| anybody  | row order, and other releases of the same data | row-order, complementary |

With a registration list the lifetime adversary knows who may be in a release, not who is.

More knowledge means fewer possible worlds: what a weaker adversary can be sure of, a stronger one can. That does not
hold for guesses under a uniform prior, and permanent and transient values are not comparable, so each is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sequester.errors import PolicyError

if TYPE_CHECKING:
    from sequester.history import History

ATTACKS: dict[str, tuple[str, ...]] = {
    "outsider": ("k", "confidence", "diversity", "closeness"),
    "neighbor": ("forward", "cross", "backward", "intersection"),
    "insider": ("difference", "tracing", "deniability", "belief"),
    "lifetime": ("breach",),
    "any": ("row-order", "complementary"),
}


@dataclass(frozen=True)
class Knowledge:
    """An adversary by what she knows, for experts; the named ones are points in this space.

    people    the target only, or everybody's quasi-identifier (hence class)
    presence  unknown, when the target joined, or who is in which release
    values    whether a person keeps her value
    releases  which releases she holds, counted from 1; None for all
    rows      whether the published row order may link releases
    totals    whether she knows from elsewhere how many people of every release have each label; where there are decoys
              that is more than what is published says, and no promise covers it
    """

    people: Literal["target", "all"] = "all"
    presence: Literal["unknown", "timestamp", "exact"] = "exact"
    values: Literal["permanent", "transient"] = "permanent"
    releases: tuple[int, ...] | None = None
    rows: Literal["shuffled", "ordered"] = "shuffled"
    totals: bool = False

    def attacks(self) -> tuple[str, ...]:
        """What she can try; a single release is open to everybody."""
        found = list(ATTACKS["outsider"])
        if self.values == "transient":
            found += ATTACKS["lifetime"] if self.people == "all" else ()
        elif self.presence != "unknown":
            found += ATTACKS["neighbor"]
            if self.people == "all" and self.presence == "exact":
                found += ATTACKS["insider"]
        return (*found, *(("row-order",) if self.rows == "ordered" else ()))


def chosen_attacks(against: Sequence[str]) -> tuple[str, ...]:
    """The attacks of the named adversaries, those on single releases always among them; `all` names everybody."""
    unknown = [name for name in against if name not in (*ATTACKS, "all")]
    if unknown:
        raise PolicyError(f"there is no adversary {unknown[0]!r}; there are {', '.join((*ATTACKS, 'all'))}")
    names = tuple(ATTACKS) if "all" in against else ("outsider", *against)
    found = [attack for name in ATTACKS if name in names for attack in ATTACKS[name]]
    return tuple(found if "row-order" in found else [*found, "row-order"])


def adversary_of(attack: str) -> str:
    """Who can try an attack."""
    return next(name for name, attacks in ATTACKS.items() if attack in attacks)


def why_untried(attack: str, history: History, *, lifetime: bool, belief: bool) -> str:
    """Why an attack had nothing to work on, in a few words without cells; `lifetime` and `belief` say whether
    that is promised."""
    people = attack in (*ATTACKS["insider"], *ATTACKS["lifetime"])
    if attack in ATTACKS["outsider"] or (attack == "belief" and not belief):
        return "the policy promises nothing of the kind"
    if attack == "breach" and not lifetime:
        return "the policy has no `protect.lifetime`"
    if attack == "breach" and history.permanent:
        return "values stay, so that releases do not add up"
    if len(history) < 2 and attack not in ("breach", "deniability", "belief"):
        return "there is only one release"
    if not history.permanent and attack in (*ATTACKS["neighbor"], *ATTACKS["insider"]):
        return "values may change from release to release"
    if people and history.trajectories is None:
        also = ", or a registration list" if attack == "breach" else ""
        return f"who is in which class is not known; give the person column, or a population{also}"
    if attack == "tracing" and history.value is None:
        return "who has which value is not known; give the person column"
    if attack in ("deniability", "belief") and all(bound >= 1 for bound in history.bounds):
        return "no value has a bound"
    if attack == "row-order" and not any(len(release.row_class) for release in history.releases[:-1]):
        return "the ledger does not keep the order of rows, which is drawn anew for every release"
    if attack in ATTACKS["neighbor"] and history.trajectories is None:
        return "who is in which class is not known, and nobody is certain to be where it would tell something"
    return _NOTHING.get(attack, "no two releases have anybody in common")


_NOTHING = {
    "backward": "between every two releases nobody joined, or somebody left",
    "complementary": "no row is certain to have its own row in another release",
    "row-order": "rows are written class by class or value by value, or the same are published again",
}
