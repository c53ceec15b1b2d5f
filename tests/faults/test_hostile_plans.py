"""Saved plans that somebody edited: whatever is in the file, nothing is shown or recorded that was not computed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from command import invoke, sequester
from hostile import PLAN, checked, files, refused, spread
from sequester.errors import DataError
from sequester.publish.plan import Plan

PUBLISH = ("publish", "next.plan", "-p", "policy.yaml")
NO_PLAN = "is not a plan that this version of Sequester saved; plan again"
OTHER: list[Any] = [None, True, -1, 7, 1.5, 10**400, "", "x\0\x1b[2J", [], [None], {}, {"a": None}, [[[]]]]
SHAPES = {
    "nothing": "",
    "null": "null",
    "a number": "7",
    "text": '"plan"',
    "a list": "[]",
    "a group": "{}",
    "only the mark": '{"sequester-plan": 1}',
    "the mark of another version": '{"sequester-plan": 2}',
    "no number": '{"sequester-plan": NaN}',
    "a number of 5,000 digits": '{"sequester-plan": ' + "9" * 5000 + "}",
    "deep lists": "[" * 100_000,
    "deep groups": '{"a":' * 100_000,
    "closed deep lists": "[" * 100_000 + "]" * 100_000,
    "no UTF-8": "\udcff",
    "a surrogate": '{"sequester-plan": "\\ud800"}',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first plan, saved; every test puts its own in its place, and none may be published."""
    folder = spread(tmp_path_factory.mktemp("plans"))
    assert invoke(*PLAN, "--out", "kept.plan", cwd=folder).returncode == 0
    return folder


def test_every_field_of_a_plan_is_in_its_file(folder: Path) -> None:
    known = {field.name for field in fields(Plan) if field.compare}
    assert known | {"sequester-plan", "holds"} == real(folder).keys()


def real(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "kept.plan").read_text())
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every field, however deep."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from places(below, (*path, key))


def edited(plan: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = copy.deepcopy(plan)
    here: Any = found
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return found


@pytest.mark.parametrize("case", SHAPES)
def test_json_of_another_shape_is_no_plan(folder: Path, case: str) -> None:
    (folder / "next.plan").write_bytes(SHAPES[case].encode("utf-8", "surrogateescape"))
    assert NO_PLAN in refused(*PUBLISH, cwd=folder)


def test_a_plan_of_fifty_megabytes_is_not_read(folder: Path) -> None:
    (folder / "next.plan").write_text(json.dumps({**real(folder), "notes": ["x" * 50_000_000]}))
    before = files(folder)
    said = checked(sequester(*PUBLISH, cwd=folder), (6,), before, folder)
    assert "the file is larger than 4 MB, the most that is read" in said


def test_every_field_of_another_type_is_no_plan_and_never_a_mistake_of_ours(folder: Path) -> None:
    plan, path = real(folder), folder / "next.plan"
    original = Plan.load(folder / "kept.plan")
    tried = loaded = 0
    for place in places(plan):
        for value in OTHER:
            path.write_text(json.dumps(edited(plan, place, value)))
            tried += 1
            found = load(path)
            if isinstance(found, str):
                assert found.endswith(NO_PLAN)
                continue
            loaded += 1
            # What loads can be shown, compared and written again; what is computed from the rest is not read.
            assert json.loads(found.to_json())
            assert repr(found)
            assert found != original or place[-1] in ("holds", "margin", "about", "text") or value == at(plan, place)
    assert tried > 500
    assert loaded < tried / 2


def load(path: Path) -> Plan | str:
    try:
        return Plan.load(path)
    except DataError as error:
        return str(error)


def at(plan: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        plan = plan[key]
    return plan


def test_fields_more_or_fewer_are_no_plan(folder: Path) -> None:
    plan, path = real(folder), folder / "next.plan"
    for name in plan:
        path.write_text(json.dumps({key: value for key, value in plan.items() if key != name}))
        with pytest.raises(DataError, match="is not a plan"):
            Plan.load(path)
    path.write_text(json.dumps({**plan, "candidate": None}))
    with pytest.raises(DataError, match="is not a plan"):
        Plan.load(path)


EDITS: list[tuple[tuple[Any, ...], Any]] = [
    (("records",), 999),
    (("number",), 7),
    (("checks", 0, "reached"), 50),
    (("loss", "release", "ail"), 0.001),
    (("change", "newcomers"), 3),
    (("notes",), ["everything is fine"]),
    (("untried",), []),
    (("personal", "withheld"), 4),
]


@pytest.mark.parametrize(("place", "value"), EDITS, ids=[str(place[0]) for place, _ in EDITS])
def test_a_plan_with_other_figures_is_stale_and_nothing_of_it_is_shown(
    folder: Path, place: tuple[Any, ...], value: Any
) -> None:
    plan = real(folder)
    assert at(plan, place) != value
    (folder / "next.plan").write_text(json.dumps(edited(plan, place, value)))
    said = refused(*PUBLISH, cwd=folder, codes=(5,))
    assert "the plan does not say what is planned; it was edited, or made elsewhere: plan it again" in said
    assert "999" not in said


@pytest.mark.parametrize("name", ["head", "fingerprint", "input_digest", "content", "series"])
def test_a_plan_for_something_else_is_stale(folder: Path, name: str) -> None:
    (folder / "next.plan").write_text(json.dumps({**real(folder), name: "x"}))
    assert "plan" in refused(*PUBLISH, cwd=folder, codes=(5,))


def test_findings_that_somebody_wrote_into_a_plan_are_not_told(folder: Path) -> None:
    (folder / "next.plan").write_text(json.dumps({**real(folder), "findings": 123_456, "holds": False}))
    said = refused(*PUBLISH, cwd=folder, codes=(5,))
    assert "123" not in said


def test_the_plan_as_it_was_saved_is_published(tmp_path: Path) -> None:
    spread(tmp_path)
    assert invoke(*PLAN, "--out", "next.plan", "--recipient", "university", cwd=tmp_path).returncode == 0
    assert invoke(*PUBLISH, cwd=tmp_path).returncode == 0
