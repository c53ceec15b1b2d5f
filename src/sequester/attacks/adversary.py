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
from typing import Literal

from sequester.attacks.finding import Adversary
from sequester.attacks.registry import attacks_of
from sequester.errors import PolicyError

ADVERSARIES: tuple[Adversary, ...] = ("outsider", "neighbor", "insider", "lifetime", "any")


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
        found = list(attacks_of("outsider"))
        if self.values == "transient":
            found += attacks_of("lifetime") if self.people == "all" else ()
        elif self.presence != "unknown":
            found += attacks_of("neighbor")
            if self.people == "all" and self.presence == "exact":
                found += attacks_of("insider")
        return (*found, *(("row-order",) if self.rows == "ordered" else ()))


def chosen_attacks(against: Sequence[str]) -> tuple[str, ...]:
    """The attacks of the named adversaries, those on single releases always among them; `all` names everybody."""
    unknown = [name for name in against if name not in (*ADVERSARIES, "all")]
    if unknown:
        raise PolicyError(f"there is no adversary {unknown[0]!r}; there are {', '.join((*ADVERSARIES, 'all'))}")
    found = attacks_of(*(ADVERSARIES if "all" in against else ("outsider", *against)))
    return found if "row-order" in found else (*found, "row-order")
