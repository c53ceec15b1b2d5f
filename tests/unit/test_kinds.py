"""A kind of attribute is one object: nothing outside its folder asks which one it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

import sequester
from sequester.domain.kinds import KINDS
from sequester.ingest.published import open_table
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.model import Policy
from sequester.policy.phrase import ROLES

ROOT = Path(sequester.__file__).parent


def compared_by_name(tree: ast.AST) -> Iterator[int]:
    """The lines that compare something called a kind with the name of one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides, tested = [node.left, *node.comparators], [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides, tested = [node.subject], [node.subject, *node.cases]
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
            sides, tested = [node.slice], [node.value]
        else:
            continue
        words = {
            inner.value for side in tested for inner in ast.walk(side) if isinstance(inner, ast.Constant)
        } & KINDS.keys()
        if words and any("kind" in ast.unparse(side) for side in sides):
            yield node.lineno if not isinstance(node, ast.Match) else node.subject.lineno


def test_nothing_outside_the_kinds_compares_kinds_by_name() -> None:
    strange = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in ROOT.rglob("*.py")
        if file.parent != ROOT / "domain" / "kinds"
        for line in compared_by_name(ast.parse(file.read_text()))
    ]
    assert strange == []


@pytest.mark.parametrize(
    "code",
    [
        "domain.kind == 'number'",
        "'set' != attribute.kind",
        "attribute.get('kind', 'category') not in ('number', 'date')",
        "match domain.kind:\n    case 'code': pass",
        "{'number': 1, 'date': 2}[attribute.kind]",
    ],
)
def test_a_comparison_by_name_would_be_seen(code: str) -> None:
    assert len(list(compared_by_name(ast.parse(code)))) == 1


def test_the_policy_offers_the_kinds_that_there_are() -> None:
    offered = [get_args(role.model_fields["kind"].annotation) for role in (QuasiIdentifier, Sensitive)]
    assert {name for names in offered for name in names} == KINDS.keys()
    assert all(list(names) == [name for name in KINDS if name in names] for names in offered)


def test_every_option_of_a_kind_is_a_key_of_a_role_that_has_it() -> None:
    for kind in KINDS.values():
        roles = [role for role in (QuasiIdentifier, Sensitive) if kind.name in _kinds(role)]
        assert all(any(option in role.model_fields for role in roles) for option in kind.options), kind.name


def test_only_the_two_roles_with_kinds_have_the_key() -> None:
    assert [name for name, role in ROLES.items() if "kind" in role.model_fields] == ["quasi-identifier", "sensitive"]


def test_words_for_no_value_are_known_as_they_are_written() -> None:
    policy = Policy.model_validate(
        {
            "version": 1,
            "series": "words",
            "attributes": {
                "born": {"role": "quasi-identifier", "kind": "date", "format": "%d/%m/%Y", "missing": "category"},
                "ill": {"role": "sensitive", "kind": "set", "separator": "/", "missing": "category"},
            },
            "protect": {"k": 2},
            "input": {"missing": ["", "01/01/1900", "N/A"]},
        }
    )
    table = open_table(pa.table({"born": ["01/01/1900", "03/02/2001"], "ill": ["N/A", "flu/cold"]}), policy)
    assert [(column.texts, column.index.tolist()) for column in (*table.quasi, *table.sensitive)] == [
        (("2001-02-03",), [-1, 0]),
        (("cold/flu",), [-1, 0]),
    ]


def _kinds(role: type[QuasiIdentifier] | type[Sensitive]) -> tuple[str, ...]:
    return get_args(role.model_fields["kind"].annotation)
