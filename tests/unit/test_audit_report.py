"""The page of an audit, its table of findings, and what it says to do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sequester as sq
from audited import nameless, table
from sequester.attacks.advice import HELPS, advice, first_steps, without
from sequester.attacks.exposed import SCHEMA, findings_table, is_certain, worst_findings
from sequester.attacks.finding import Finding
from sequester.attacks.registry import ATTACKS
from sequester.policy.load import load_policy
from sequester.report.audit_page import audit_blocks
from sequester.report.blocks import Grid

CANARY = "CANARY-7f3a"
ATTRIBUTES = {"age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]}, "ill": {"role": "sensitive"}}
# Person 5 is the only newcomer of her class: she has lupus for certain, and her row is hers alone.
FIRST = ("1 [20-29] flu", "2 [20-29] cold", "3 [30-39] flu", "4 [30-39] gout")
LEAKY = ("5 [20-29] lupus", "2 [20-29] cold", "4 [30-39] gout", "1 [20-29] flu", "3 [30-39] flu")


def policy(**protect: object) -> sq.Policy:
    given = {"version": 1, "series": "clinic", "person": "id", "attributes": ATTRIBUTES}
    return sq.Policy.model_validate({**given, "protect": {"k": 2, "confidence": 0.5, **protect}})


def leaky(**options: Any) -> sq.Audit:
    """Every id and every illness is a canary."""

    def planted(row: str) -> str:
        person, age, illness = row.split()
        return f"{CANARY}-{person} {age} {CANARY}-{illness}"

    return sq.audit([table(*map(planted, rows)) for rows in (FIRST, LEAKY)], policy(), **options)


class Text(HTMLParser):
    """The words of a page without its style."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self.inside:
            self.words.append(data)


def read(page: str) -> str:
    text = Text()
    text.feed(page)
    return " ".join(" ".join(text.words).split())


def finding(**changes: Any) -> Finding:
    told: dict[str, Any] = {"attack": "difference", "adversary": "insider", "releases": (1, 2), "required": 0.5}
    told |= {"observed": 1.0, "value": "flu", "attribute": "ill", "classes": ((1, 1), (2, 3)), "people": ("a",)}
    return Finding(**{**told, **changes})


def test_the_page_says_who_is_exposed_how_and_what_to_do() -> None:
    said = read(leaky().report())
    assert "clinic: audit of 2 releases" in said
    assert "Keep private" in said
    assert "1 person is exposed, 1 for certain." in said
    assert f"{CANARY}-5 tied to {CANARY}-lupus with 100%, allowed 50%" in said
    assert "What to do" in said
    assert "forces nobody to be tied to any value of ill more surely than its bound" in said
    assert "`method: pods`" in said or "method: pods" in said
    assert "by the findings that do without it, nobody is exposed" in said


def test_a_page_of_releases_that_hold_tells_no_story_and_nothing_to_do() -> None:
    said = read(sq.audit([table(*FIRST)], policy()).report())
    assert "Nothing that was tried works on these releases together." in said
    assert "The worst stories" not in said
    assert "What to do" not in said
    assert "Not tried, and so not promised" in said


def test_a_page_tells_the_belief_after_each_release_where_it_was_asked() -> None:
    assert "How sure after each release: ill" in read(leaky(belief=True).report())
    assert "How sure" not in read(leaky().report())
    (told,) = leaky(belief=True).belief
    assert [round(one.most, 2) for one in told.over] == [0.5, 1.0]
    assert told.over[-1] == told.spread


def test_the_public_page_has_no_value_nobody_and_no_small_number() -> None:
    audit = leaky()
    page = audit.report(audience="public")
    assert CANARY in audit.report()
    assert CANARY not in page
    said = read(page)
    assert "fewer than 2 people exposed fewer than 2 of them for certain" in said
    assert "Attacks work on these releases" in said
    assert "Keep private" not in said
    assert not re.search(r"\b1 p", said)


def test_the_public_page_has_nothing_of_classes_that_may_be_exposed() -> None:
    rows = nameless(table(*(f"{n} [20-29] {CANARY}" for n in range(3))))
    audit = sq.audit(rows, policy())
    assert audit.exposed.total.classes == 1
    said = read(audit.report(audience="public"))
    assert "1 classes whose people may be exposed" in said
    assert "0 people" not in said
    assert CANARY in audit.report()
    assert CANARY not in audit.report(audience="public")


def test_where_nobody_is_known_classes_are_counted() -> None:
    said = read(sq.audit(nameless(table("1 [20-29] flu", "2 [20-29] flu", "3 [20-29] cold")), policy()).report())
    assert "1 classes whose people may be exposed" in said
    assert "Who is in which class is not known" in said


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"])
def test_values_and_ids_are_escaped(name: str) -> None:
    cells = {"id": [name, "2", "3"], "age": ["[20-29]"] * 3, "ill": [name, name, "cold"]}
    audit = sq.audit([pa.table(cells)], policy())
    for text in (audit.report(), audit._repr_html_(), audit.findings[0]._repr_html_()):
        assert name in read(text)
        assert name not in text
        assert "<script" not in text
        assert "<img" not in text


def test_every_attack_has_something_that_helps() -> None:
    assert set(HELPS) == {attack.name for attack in ATTACKS}
    for text in HELPS.values():
        assert text.endswith(".")
        assert "{{" not in text


@pytest.mark.parametrize(
    ("method", "protect"),
    [
        ("pods", "{k: 5, confidence: 0.5, belief: 0.7, against: [insider]}"),
        ("mondrian", "{k: 5, confidence: 0.5, against: [neighbor, insider]}"),
        ("cluster", "{k: 5, confidence: 0.5, against: [insider]}"),
        ("specialize", "{k: 5, against: [neighbor]}"),
        ("grow", "{k: 5, confidence: 0.5}"),
        ("{name: full-domain, suppression: 0.01}", "{k: 5}"),
    ],
)
def test_what_is_said_to_help_is_a_policy_without_mistakes(tmp_path: Path, method: str, protect: str) -> None:
    assert any(f"`{method}`" in text or f"method: {method}`" in text for text in HELPS.values())
    columns = "{a: {role: quasi-identifier, kind: number, range: [0, 9]}, b: {role: sensitive, ordinary: [x]}}"
    named = method if method.startswith("{") else f"{{name: {method}}}"
    text = f"version: 1\nseries: s\nperson: p\nattributes: {columns}\nprotect: {protect}\nmethod: {named}\n"
    (tmp_path / "policy.yaml").write_text(text)
    assert load_policy(tmp_path / "policy.yaml").series == "s"


def test_advice_names_the_promises_that_an_attack_breaks_and_no_cell() -> None:
    audit = leaky()
    told = advice(audit.findings, policy())
    assert {one.attack for one in told} == {one.attack for one in audit.findings}
    assert all(one.broken for one in told)
    assert CANARY not in str(told) + str([*first_steps(audit.findings, 2)])


def test_the_adversaries_that_were_asked_about_are_those_whose_promises_are_told() -> None:
    audit = sq.audit([table(*FIRST), table(*LEAKY)], policy(against=["neighbor"]), against=["insider"])
    assert audit.policy is not None
    assert list(audit.policy.protect.against) == ["insider"]
    assert all(one.broken for one in advice(audit.findings, audit.policy))


def test_the_release_that_matters_most_is_the_one_that_most_findings_need() -> None:
    found = [
        finding(people=("a", "b"), releases=(1, 2)),
        finding(people=("c",), releases=(2, 3)),
        finding(people=("d",), releases=(1, 3)),
    ]
    assert [len(without(found, number)) for number in (1, 2, 3)] == [1, 1, 1]
    steps = [*first_steps(found, 3)]
    assert any(
        "release 2 matters most: by the findings that do without it, 1 person is exposed" in step for step in steps
    )
    assert any(step.startswith("Releases 1 and 3 break") for step in first_steps(
        [finding(releases=(1,)), finding(releases=(3,))], 3
    ))  # fmt: skip
    assert [*first_steps([], 3)] == []


def test_the_worst_are_certain_and_of_every_attack() -> None:
    likely = finding(observed=0.9)
    certain = finding(people=("b",), classes=((1, 2),))
    found = [likely, *(finding(people=(str(n),), classes=((1, n),), observed=0.6) for n in range(4, 20)), certain]
    found.append(finding(attack="tracing", value=None, required=5.0, observed=2.0, people=("z",), classes=((2, 9),)))
    numbers = worst_findings(found)
    assert len(numbers) == 5
    assert numbers[0] == len(found) - 1
    assert {found[number - 1].attack for number in numbers} == {"difference", "tracing"}
    assert worst_findings(found, most=1) == (len(found) - 1,)
    assert worst_findings([]) == ()


def test_nobody_is_told_of_twice_while_there_are_others() -> None:
    same = [finding(attack=name) for name in ("difference", "deniability", "tracing")]
    others = [finding(people=(str(n),), observed=0.8) for n in range(2)]
    assert worst_findings([*same, *others], most=3) == (1, 4, 5)
    assert worst_findings(same, most=3) == (1, 2, 3)


def test_all_findings_are_in_the_table_as_they_are() -> None:
    audit = leaky()
    made = audit.findings_table()
    assert made.schema == SCHEMA
    assert made["number"].to_pylist() == list(range(1, len(audit.findings) + 1))
    for row, one in zip(made.to_pylist(), audit.findings, strict=True):
        told = one.to_dict()
        assert json.loads(row.pop("witness")) == json.loads(json.dumps(told.pop("witness"), default=str))
        assert row.pop("certain") == is_certain(one)
        assert [(place["release"], place["class"]) for place in row.pop("classes")] == [*one.classes]
        assert {name: row[name] for name in ("attack", "value", "required", "observed", "people")} == {
            name: told[name] for name in ("attack", "value", "required", "observed", "people")
        }


def test_a_table_of_no_findings_has_the_same_columns_and_can_be_written(tmp_path: Path) -> None:
    parquet.write_table(findings_table([]), tmp_path / "none.parquet")
    assert parquet.read_table(tmp_path / "none.parquet").num_rows == 0
    assert findings_table([]).schema == SCHEMA


def test_people_of_any_kind_are_text_in_the_table() -> None:
    made = findings_table([finding(people=(7, "x", None)), finding(people=())])
    assert made["people"].to_pylist() == [["7", "x", "None"], []]


def test_plain_values_may_be_few_and_count_them_all() -> None:
    audit = leaky()
    assert audit.to_dict()["found"] == len(audit.to_dict()["findings"]) == len(audit.findings) > 1
    few = audit.to_dict(most=1)
    assert (few["found"], len(few["findings"])) == (len(audit.findings), 1)


def test_a_story_in_parts_says_what_it_says_in_one() -> None:
    audit = leaky()
    for number in range(1, len(audit.findings) + 1):
        story = audit.story(number)
        assert audit.explain(number) == str(story)
        assert story.rows
        assert all(len(box) == len(story.names) for _, _, _, box, _ in story.rows)
        assert {release for release, *_ in story.rows} == set(story.releases)


def test_what_is_required_and_reached_is_not_kept_where_an_attack_works() -> None:
    """Subtraction may leave people enough and still tie them to a value: then that is what the row says."""
    audit = leaky()
    tied = finding(classes=((1, 0), (2, 0)))
    enough = replace(audit, findings=(tied,), measures={**audit.measures, "difference": 5.0})
    for one in (audit, enough):
        (tried,) = (block for block in audit_blocks(one) if isinstance(block, Grid) and block.heads[1] == "result")
        broken = [row for row in tried.rows if row[1] == "broken"]
        assert broken
        for _, _, _, required, reached, *_ in broken:
            assert reached < required if required >= 1 else reached > required
    assert (0.5, 1.0) in [row[3:5] for row in broken]
