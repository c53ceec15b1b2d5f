"""What is declared once is what the policy offers and the documentation tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from sequester.attacks.registry import ATTACKS, attack_of, attacks_of
from sequester.guarantees.requirement import CRITERIA
from sequester.methods.registry import PLACES, method_named
from sequester.policy.adversaries import ADVERSARIES, Named
from sequester.policy.phrase import METHODS as OFFERED
from sequester.policy.protect import CLASS_PROMISES

DOCS = Path(__file__).parents[2] / "docs"
AUDIT, POLICY = (DOCS / "audit.md").read_text(), (DOCS / "policy.md").read_text()


def test_every_method_that_a_policy_offers_is_declared_and_no_other() -> None:
    assert PLACES.keys() == OFFERED.keys()
    assert all(name == method_named(name).name for name in PLACES)


def test_the_documentation_tells_every_method() -> None:
    rows = POLICY.splitlines()
    assert [name for name in PLACES if not any(row.startswith(f"| `{name}` |") for row in rows)] == []


def test_only_static_does_not_look_back() -> None:
    assert [name for name in PLACES if not method_named(name).looks_back] == ["static"]


def test_attacks_have_different_names_and_titles_and_are_found_by_name() -> None:
    assert len({attack.name for attack in ATTACKS}) == len({attack.title for attack in ATTACKS}) == len(ATTACKS)
    assert all(attack_of(attack.name) is attack for attack in ATTACKS)


def test_every_attack_is_somebodys_and_every_adversary_has_one() -> None:
    names = [adversary.name for adversary in ADVERSARIES]
    assert {attack.adversary for attack in ATTACKS} == set(names)
    assert sum(len(attacks_of(name)) for name in names) == len(ATTACKS)


def test_a_policy_can_name_every_adversary_but_those_who_are_always_tried() -> None:
    assert [adversary.name for adversary in ADVERSARIES if adversary.named] == list(get_args(Named))


def test_the_documentation_tells_what_every_adversary_knows_and_her_attacks() -> None:
    for adversary in ADVERSARIES:
        attacks = ", ".join(f"`{attack}`" for attack in attacks_of(adversary.name))
        assert f"| `{adversary.name}` | {adversary.in_short} | {attacks} |" in AUDIT.splitlines()


def test_every_promise_about_classes_is_judged_by_one_criterion() -> None:
    assert {declared.promise.key for declared in CRITERIA} == {promise.key for promise in CLASS_PROMISES}
    assert len({declared.name for declared in CRITERIA}) == len(CRITERIA)
    assert all(form.name == declared.name for declared in CRITERIA for form in declared.forms)
    assert {promise.attack for promise in CLASS_PROMISES} - {None} == {d.name for d in CRITERIA if d.title is not None}


def test_the_documentation_tells_what_every_criterion_protects_and_what_not() -> None:
    for declared in CRITERIA:
        for form in declared.forms:
            name = f"`{declared.promise.key}`" + (f", {form.kind}" if form.kind else "")
            properties = ", ".join(word for word in ("monotone", "hereditary") if getattr(form, word))
            row = f"| {name} | {form.protects} | {form.does_not_protect} | {properties} |"
            assert row in POLICY.splitlines(), row


def test_the_documentation_says_of_every_attack_once_what_it_does() -> None:
    table = AUDIT.split("| attack | what it does | reached (`measures`) |")[1].split("\n\n")[0]
    told = [name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])]
    assert sorted(told) == sorted(attack.name for attack in ATTACKS)
