"""How many people are exposed comes first in every audit, and is never too small without saying so."""

from __future__ import annotations

import pytest

import sequester as sq
from audited import nameless, table
from sequester.attacks.audit import _distinct
from sequester.attacks.explain import headline
from sequester.attacks.exposed import Exposed, Tally
from sequester.attacks.finding import Finding


def policy(**protect: object) -> sq.Policy:
    columns = {"age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]}, "ill": {"role": "sensitive"}}
    given = {"version": 1, "series": "s", "person": "id", "attributes": columns}
    return sq.Policy.model_validate({**given, "protect": {"k": 2, "confidence": 0.5, **protect}})


# Person 5 is the only newcomer of her class: she has lupus for certain, and her row is hers alone.
FIRST = table("1 [20-29] flu", "2 [20-29] cold", "3 [30-39] flu", "4 [30-39] gout")
LEAKY = table("5 [20-29] lupus", "2 [20-29] cold", "4 [30-39] gout", "1 [20-29] flu", "3 [30-39] flu")
# Two of three have the flu.
COMMON = table("1 [20-29] flu", "2 [20-29] flu", "3 [20-29] cold")


def finding(people: tuple[str, ...] = (), **changes: object) -> Finding:
    told: dict[str, object] = {"attack": "difference", "adversary": "insider", "releases": (1, 2), "required": 0.5}
    told |= {"observed": 1.0, "value": "flu", "attribute": "ill", "classes": ((1, 1), (2, 3)), "people": people}
    return Finding(**{**told, **changes})  # type: ignore[arg-type]


def test_people_are_counted_once_however_many_findings_name_them() -> None:
    found = sq.audit([FIRST, LEAKY], policy())
    assert len(found.findings) > 1
    assert found.exposed.total == Tally(people=1, certain=1)
    assert str(found.exposed) == "1 person is exposed, 1 for certain."
    assert set(found.exposed.by_attack) == {finding.attack for finding in found.findings}


def test_above_the_bound_is_not_for_certain() -> None:
    found = sq.audit([COMMON], policy())
    assert found.exposed.total == Tally(people=3, certain=0)
    assert found.exposed.by_value == {("ill", "flu"): Tally(people=3)}
    assert str(found.exposed) == "3 people are exposed, 0 for certain."


def test_a_person_is_in_every_group_that_a_finding_of_hers_is_in() -> None:
    found = Exposed.of(
        [
            finding(("a", "b")),
            finding(("b", "c"), observed=0.8, value="gout"),
            finding(("b",), attack="tracing", value=None, required=2.0, observed=1.0, releases=(2,)),
        ]
    )
    assert found.total == Tally(people=3, certain=2)
    assert found.by_attack == {"difference": Tally(people=3, certain=2), "tracing": Tally(people=1, certain=1)}
    assert found.by_value == {
        ("ill", "flu"): Tally(people=2, certain=2),
        ("ill", "gout"): Tally(people=2),
        (None, None): Tally(people=1, certain=1),
    }
    assert found.by_release == {1: Tally(people=3, certain=2), 2: Tally(people=3, certain=2)}


def test_where_nobody_is_known_classes_may_expose_somebody() -> None:
    found = sq.audit(nameless(COMMON), policy())
    assert found.exposed.total == Tally(classes=1)
    assert str(found.exposed) == "People of 1 class may be exposed, of 0 for certain."
    assert "somebody may be tied to flu" in headline(found.findings[0])
    assert "may be" not in headline(sq.audit([COMMON], policy()).findings[0])


def test_findings_about_no_class_may_expose_everybody_of_their_releases() -> None:
    order = finding(attack="row-order", adversary="any", classes=(), value=None, required=0.0, observed=1.0)
    assert Exposed.of([order]).total == Tally(releases=2)


def test_a_closeness_above_its_bound_is_never_certain() -> None:
    far = finding(("a",), attack="closeness", value=None, required=0.2, observed=1.0)
    assert Exposed.of([far]).total == Tally(people=1)


def test_where_findings_are_left_out_the_count_says_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{n} {n} ill{n}" for n in range(20, 60)]
    monkeypatch.setattr("sequester.attacks.finding.MOST", 3)
    found = sq.audit([table(*rows)], policy())
    assert found.exposed.at_least
    assert str(found.exposed).startswith("At least ")
    assert found.to_dict()["exposed"]["at_least"] is True


def test_a_series_that_holds_exposes_nobody() -> None:
    found = sq.audit([FIRST], policy())
    assert str(found.exposed) == "Nobody is exposed."
    shown = found._repr_html_().split("</style>")[1]
    assert shown.count("<td>safe</td>") == len(found.tried)
    assert "exposed, " not in shown


def test_every_form_of_an_audit_begins_with_the_people_exposed() -> None:
    found = sq.audit([FIRST, LEAKY], policy())
    assert found.verdict == "1 person is exposed, 1 for certain."
    assert found.to_dict()["undecided"] == []
    shown = found._repr_html_().split("</style>")[1]
    assert shown.startswith("<h3>1 person is exposed, 1 for certain.</h3>")
    assert "<td>1 person is exposed, 1 for certain</td>" in shown
    assert repr(found).startswith("<Audit of 2 releases: 1 person is exposed, 1 for certain; ")


def test_a_row_order_is_a_number_only_where_it_is_more_than_chance() -> None:
    rows = [f"{n} [{n // 10 * 10}-{n // 10 * 10 + 9}] ill{n % 7}" for n in ((13 * i) % 60 + 20 for i in range(60))]
    more = [*rows, "99 [90-99] ill1", "98 [90-99] ill2"]
    kept = sq.audit([table(*rows), table(*more)], policy(), against=["outsider"])
    assert "row-order" in {finding.attack for finding in kept.findings}
    assert float(kept.reached("row-order")) > 0.5
    mixed = table(*rows).take([(7 * n + 3) % 60 for n in range(60)])
    shuffled = sq.audit([table(*rows), mixed], policy())
    assert "row-order" in shuffled.tried
    assert "row-order" not in {finding.attack for finding in shuffled.findings}
    assert shuffled.reached("row-order") == "as by chance"


def test_findings_that_differ_only_in_what_is_required_are_both_kept() -> None:
    strict, loose = finding(("a",), required=0.3), finding(("a",), required=0.5)
    assert _distinct([strict, loose, strict]) == (strict, loose)
