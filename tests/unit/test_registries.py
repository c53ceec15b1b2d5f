"""What is declared once is what the policy offers and the documentation tells."""

from __future__ import annotations

import re
from pathlib import Path

from sequester.attacks.adversary import ADVERSARIES
from sequester.attacks.registry import ATTACKS, attack_of, attacks_of
from sequester.methods.registry import METHODS
from sequester.policy.phrase import METHODS as OFFERED

AUDIT = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()


def test_every_method_that_a_policy_offers_is_declared_and_no_other() -> None:
    assert METHODS.keys() == OFFERED.keys()
    assert all(name == method.name for name, method in METHODS.items())


def test_only_static_does_not_look_back() -> None:
    assert [method.name for method in METHODS.values() if not method.looks_back] == ["static"]


def test_attacks_have_different_names_and_titles_and_are_found_by_name() -> None:
    assert len({attack.name for attack in ATTACKS}) == len({attack.title for attack in ATTACKS}) == len(ATTACKS)
    assert all(attack_of(attack.name) is attack for attack in ATTACKS)


def test_every_attack_is_somebodys_and_every_adversary_has_one() -> None:
    assert {attack.adversary for attack in ATTACKS} == set(ADVERSARIES)
    assert sum(len(attacks_of(name)) for name in ADVERSARIES) == len(ATTACKS)


def test_the_documentation_tells_every_attack_beside_its_adversary_and_no_other() -> None:
    for name in ADVERSARIES:
        row = next(line for line in AUDIT.splitlines() if line.startswith(f"| `{name}` |"))
        assert sorted(re.findall(r"`([a-z-]+)`", row.split("|")[3])) == sorted(attacks_of(name)), name


def test_the_documentation_says_of_every_attack_once_what_it_does() -> None:
    table = AUDIT.split("| attack | what it does | reached (`measures`) |")[1].split("\n\n")[0]
    told = [name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])]
    assert sorted(told) == sorted(attack.name for attack in ATTACKS)
