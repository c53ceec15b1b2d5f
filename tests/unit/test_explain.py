"""Findings told as stories: every number in them can be checked by hand with the rows below."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings

from sequester.attacks import deniability
from sequester.attacks.explain import explain
from sequester.attacks.finding import Finding
from sequester.history import History
from series import Series, of_partitions, series

ROWS = re.compile(r"^  ([+-]) (?:(\d+) x )?(\d+) rows? with (\w) in class (\d+) of release (\d+)$", re.MULTILINE)
WHOLE = re.compile(r"^  ([+-]) (?:(\d+) x )?(\d+) (?:person|people) in (.+), whatever they have$", re.MULTILINE)
LEFT = re.compile(r"^  (?:(\d+) x )?those with (\w) of the .*? in (.+): allowed", re.MULTILINE)
LACKING = re.compile(r"^Nobody in class (\d+) of release (\d+) has (\w)\.$", re.MULTILINE)


def inside(truth: Series, release: str, number: str) -> list[int]:
    found: list[int] = np.flatnonzero(truth.member[int(release) - 1] == int(number) - 1).tolist()
    return found


def of_history(truth: Series, where: str) -> list[int]:
    """The people whose classes the story names, and who are in no other release where it says so."""
    path = {int(release) - 1: int(number) - 1 for number, release in re.findall(r"class (\d+) of release (\d+)", where)}
    assert (len(path) < len(truth.member)) == where.endswith("in no other release")
    wanted = np.array([path.get(release, -1) for release in range(len(truth.member))])
    found: list[int] = np.flatnonzero((truth.member == wanted[:, None]).all(axis=0)).tolist()
    return found


def published(story: str, release: str) -> list[str]:
    """The rows that the story shows of one release."""
    return story.split(f"\nRelease {release} (")[1].split("\nRelease ")[0].splitlines()[1:]


def check(truth: Series, history: History, finding: Finding) -> None:
    """Do the sum of a story, and see who remains in it."""
    story = explain(finding, [history])
    total = 0
    counted: Counter[tuple[int, str]] = Counter()
    for sign, times, count, value, number, release in ROWS.findall(story):
        factor = int(sign + (times or "1"))
        total += factor * int(count)
        (row,) = [r for r in published(story, release) if r.startswith(f"  class {number}: ") and r[-1] == value]
        assert f": {count} x " in row
        counted.update({(person, value): factor for person in inside(truth, release, number)})
    for sign, times, count, where in WHOLE.findall(story):
        factor, people = int(sign + (times or "1")), of_history(truth, where)
        assert len(people) == int(count)
        total += factor * len(people)
        counted.update({(person, value): factor for person in people for value in history.values})
    assert f"\n  = {total}\n" in story
    for number, release, value in LACKING.findall(story):
        rows = [row.split() for row in published(story, release) if row.startswith(f"  class {number}: ")]
        assert sum(int(row[2]) for row in rows) == len(inside(truth, release, number))
        assert value not in [row[-1] for row in rows]
        for person in inside(truth, release, number):
            counted.pop((person, value), None)
    left = {
        (person, value): int(times or "1")
        for times, value, where in LEFT.findall(story)
        for person in of_history(truth, where)
    }
    assert {key: factor for key, factor in counted.items() if factor > 0} == left
    assert {person for person, _ in left} == set(finding.people)
    allowed = sum(factor * history.bounds[history.values.index(value)] for (_, value), factor in left.items())
    assert allowed < total
    assert f"the sum would be {float(allowed):g} at most. It is {total}: " in story


@settings(max_examples=150, deadline=None)
@given(truth=series(people=(3, 7), releases=(2, 3)))
def test_the_sum_of_a_deniability_story_adds_up_and_leaves_those_it_names(truth: Series) -> None:
    history = truth.history()
    findings = deniability.find(history).findings
    assume(findings)
    for finding in findings:
        check(truth, history, finding)


def test_a_deniability_story_of_three_releases_takes_away_what_it_added_too_much() -> None:
    groups = [list(range(start, start + 4)) for start in (0, 4, 8, 12)]
    pairings = [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)]]
    truth = of_partitions([[groups[a] + groups[b] for a, b in pairing] for pairing in pairings], "aaab" + "abcd" * 3)
    history = truth.history()
    (finding,) = deniability.find(history).findings
    story = explain(finding, [history])
    assert {sign for sign, *_ in ROWS.findall(story)} == {"+", "-"}
    check(truth, history, finding)


def test_a_deniability_story_says_who_is_tied_to_what() -> None:
    history = of_partitions([[[0, 1, 2]], [[0, 1, 4], [2, 3]]], "cdbda").history()
    about = next(finding for finding in deniability.find(history).findings if finding.people == (4,))
    story = explain(about, [history])
    assert "whatever one believes, 4 is tied to a with 100% or more." in story
    assert "\n  class 1: 1 x [0-2] | b\n" in story


def test_a_class_that_lacks_a_value_is_shown_whole_even_if_another_value_of_it_is_counted() -> None:
    history = of_partitions([[[0, 1, 2]], [[0, 1, 4], [2, 3]]], "cdbda").history()
    about = next(finding for finding in deniability.find(history).findings if finding.people == (4,))
    assert [row[-1] for row in published(explain(about, [history]), "2")] == ["a"]
    lacking = [*about.witness["absent"], {"release": 2, "class": 1, "value": "b"}]
    story = explain(replace(about, witness={**about.witness, "absent": lacking}), [history])
    assert [row[-1] for row in published(story, "2")] == ["a", "c", "d"]


def test_a_deniability_story_of_several_values_names_them_and_the_longer_sum() -> None:
    partitions = [[[0, 1, 3, 4, 7], [2, 5, 6]], [[1, 2, 4, 5, 7], [0, 3, 6]]]
    history = of_partitions(partitions, "aabbcacb").history(c=0.4)
    (finding,) = deniability.find(history).findings
    story = explain(finding, [history])
    assert "somebody of 1, 4, 6, 7 is tied too surely to one of a, b, c" in story
    assert "A longer sum, in the witness, exposes more people less: 0, 1, 2, 3, 4, 5, 6, 7." in story


def test_a_sum_too_long_to_show_says_how_much_is_in_the_witness(monkeypatch) -> None:
    monkeypatch.setattr("sequester.attacks.deniability.TERMS_SHOWN", 1)
    partitions = [[[0, 1, 3, 4, 7], [2, 5, 6]], [[1, 2, 4, 5, 7], [0, 3, 6]]]
    history = of_partitions(partitions, "aabbcacb").history(c=0.4)
    (finding,) = deniability.find(history).findings
    story = explain(finding, [history])
    terms = sum(len(finding.witness[part]) for part in ("added", "subtracted", "sizes"))
    assert terms > 2
    assert f"  ... and {terms - 1} more, in the witness" in story
    assert f"  ... and {len(finding.witness['remaining']) - 1} more, in the witness" in story
