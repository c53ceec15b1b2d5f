"""All attacks, in the order in which they are tried and told."""

from __future__ import annotations

from sequester.attacks import (
    belief,
    breach,
    complementary,
    deniability,
    difference,
    intersection,
    row_order,
    single,
    tracing,
)
from sequester.attacks.attack import Attack
from sequester.attacks.cracks import backward, cross, forward

ATTACKS: tuple[Attack, ...] = (
    *single.ATTACKS,
    forward.ATTACK,
    cross.ATTACK,
    backward.ATTACK,
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
