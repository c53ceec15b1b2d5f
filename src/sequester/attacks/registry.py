"""All attacks, in the order in which they are tried and told.

An adversary is described by what she knows, and hence which attacks she can try; the named ones are declared in
`policy.adversaries`. With a registration list the lifetime adversary knows who may be in a release, not who is.

More knowledge means fewer possible worlds: what a weaker adversary can be sure of, a stronger one can. That does not
hold for guesses under a uniform prior, and permanent and transient values are not comparable, so each is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sequester.attacks import (
    belief,
    breach,
    complementary,
    cracks,
    deniability,
    difference,
    intersection,
    row_order,
    single,
    tracing,
)
from sequester.attacks.attack import Attack
from sequester.errors import PolicyError
from sequester.policy.adversaries import ADVERSARIES

ATTACKS: tuple[Attack, ...] = (
    *single.ATTACKS,
    *cracks.ATTACKS,
    intersection.ATTACK,
    difference.ATTACK,
    tracing.ATTACK,
    deniability.ATTACK,
    belief.ATTACK,
    breach.ATTACK,
    row_order.ATTACK,
    complementary.ATTACK,
)

_BY_NAME = {attack.name: attack for attack in ATTACKS}


def attack_of(name: str) -> Attack:
    """The attack with this name."""
    return _BY_NAME[name]


def attacks_of(*adversaries: str) -> tuple[str, ...]:
    """The names of what these adversaries can try."""
    return tuple(attack.name for attack in ATTACKS if attack.adversary in adversaries)


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
        tried = list(attacks_of("outsider"))
        if self.values == "transient":
            tried += attacks_of("lifetime") if self.people == "all" else ()
        elif self.presence != "unknown":
            tried += attacks_of("neighbor")
            if self.people == "all" and self.presence == "exact":
                tried += attacks_of("insider")
        return (*tried, *(("row-order",) if self.rows == "ordered" else ()))


def chosen_attacks(against: Sequence[str]) -> tuple[str, ...]:
    """The attacks of the named adversaries, those on single releases always among them; `all` names everybody."""
    known = tuple(adversary.name for adversary in ADVERSARIES)
    unknown = [name for name in against if name not in (*known, "all")]
    if unknown:
        raise PolicyError(f"there is no adversary {unknown[0]!r}; there are {', '.join((*known, 'all'))}")
    tried = attacks_of(*(known if "all" in against else ("outsider", *against)))
    return tried if "row-order" in tried else (*tried, "row-order")
