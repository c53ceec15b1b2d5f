"""The audit as a whole: alpha, what was not tried and why, columns that are not looked at, long answers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from audited import nameless, noted, table
from sequester.attacks import intersection, single
from sequester.guarantees.confidence import judged_shares
from sequester.publish.price import checks_of
from series import Series, series

SHARES = st.sampled_from([0.25, 0.4, 0.5, 0.6, 0.75, 1.0])


def policy(protect: dict[str, Any], *, person: str | None = "id", **attributes: Any) -> sq.Policy:
    columns: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
        "ill": {"role": "sensitive"},
    }
    given_: dict[str, Any] = {"version": 1, "series": "s", "attributes": columns | attributes, "protect": protect}
    return sq.Policy.model_validate(given_ | ({"person": person} if person else {}))


TRANSIENT = {"role": "sensitive", "values": "transient"}
FLU = table("1 [20-29] flu", "2 [20-29] flu", "3 [20-29] hiv", "4 [30-39] flu", "5 [30-39] hiv", "6 [30-39] gout")


def test_recursive_diversity_is_measured_by_the_largest_ratio_and_compared_with_c() -> None:
    even = table("1 [20-29] flu", "2 [20-29] hiv")
    uneven = table("1 [20-29] flu", "2 [20-29] hiv", "3 [20-29] flu")
    asked = policy({"k": 2, "diversity": {"kind": "recursive", "c": 3, "l": 2}, "against": ["outsider"]})
    for releases in ([even, uneven], [uneven, even]):
        audited = sq.audit(releases, asked)
        assert audited.holds
        assert audited.measures["diversity"] == 2
        (check,) = [one for one in checks_of(audited, asked) if one.attack == "diversity"]
        assert (check.required, check.reached, check.holds) == (3, 2, True)


# Alpha: a promise about every class.


def test_a_share_above_alpha_is_a_finding_of_confidence_that_names_alpha() -> None:
    found = sq.audit([FLU], policy({"k": 2, "confidence": 0.7, "alpha": 0.6}))
    (finding,) = found.findings
    assert (finding.attack, finding.adversary, finding.value, finding.required) == (
        "confidence",
        "outsider",
        "flu",
        0.6,
    )
    assert (finding.people, finding.classes) == (("1", "2", "3"), ((1, 1),))
    assert finding.observed == found.measures["confidence"] == pytest.approx(2 / 3)
    assert finding.witness == {"rows": 3, "values": {"flu": 2, "hiv": 1}, "bound": "alpha"}
    assert "66.7% have flu, and alpha allows 60%." in found.explain(1)


def test_a_share_above_a_confidence_that_is_stricter_than_alpha_names_confidence() -> None:
    found = sq.audit([FLU], policy({"k": 2, "confidence": 0.5, "alpha": 0.6}), against=["outsider"])
    assert [(f.required, f.witness["bound"]) for f in found.findings] == [(0.5, "confidence")]


def test_an_alpha_of_some_values_leaves_the_others_free() -> None:
    assert not sq.audit([FLU], policy({"k": 2, "alpha": {"flu": 0.6}, "against": ["outsider"]})).holds
    assert sq.audit([FLU], policy({"k": 2, "alpha": {"hiv": 0.6}, "against": ["outsider"]})).holds


def test_alpha_bounds_every_attribute_and_combinations() -> None:
    job = {"role": "sensitive"}
    alike = table("1 [20-29] flu cook", "2 [20-29] flu cook", "3 [20-29] hiv cook", names="id age ill job")
    promised = {"k": 2, "alpha": 0.6, "against": ["outsider"]}
    each = sq.audit([alike], policy(promised, job=job))
    assert [(finding.attribute, finding.value) for finding in each.findings] == [("ill", "flu"), ("job", "cook")]
    joint = sq.audit([alike], policy(promised | {"sensitive": "joint"}, job=job))
    assert [(finding.value, finding.required) for finding in joint.findings] == [("flu and cook", 0.6)]


def test_alpha_is_no_bound_for_releases_together() -> None:
    again = table("3 [20-29] hiv", "1 [20-29] flu", "2 [20-29] flu", "6 [30-39] gout", "5 [30-39] hiv", "4 [30-39] flu")
    found = sq.audit(
        [FLU, again], policy({"k": 2, "alpha": 0.6, "against": ["outsider"]}), against=["insider", "neighbor"]
    )
    assert {finding.attack for finding in found.findings} == {"confidence"}
    assert noted(found, "deniability was not tried: no value has a bound")


@settings(max_examples=150, deadline=None)
@given(truth=series(people=(1, 7)), data=st.data())
def test_classes_break_confidence_or_alpha_exactly_when_a_share_exceeds_a_bound(
    truth: Series, data: st.DataObject
) -> None:
    history = truth.history(c=data.draw(SHARES))
    alpha = data.draw(st.one_of(SHARES, st.dictionaries(st.sampled_from([*history.values, "*"]), SHARES)))
    named = alpha if isinstance(alpha, dict) else {"*": alpha}
    limits = [Fraction(named.get(v, named.get("*", 1.0))).limit_denominator(100) for v in history.values]
    result = single.find(history, "confidence", judged_shares(history.bounds, history.values, alpha))
    bounds = [min(pair) for pair in zip(history.bounds, limits, strict=True)]
    broken: dict[tuple[int, int], set[str]] = {}
    shares = [Fraction(0)]
    for number, release in enumerate(history.releases, start=1):
        for place, counts in enumerate(release.counts.tolist(), start=1):
            of = {name: Fraction(count, sum(counts)) for name, count in zip(history.values, counts, strict=True)}
            shares += [of[name] for name, bound in zip(history.values, bounds, strict=True) if bound < 1]
            over = {name for name, bound in zip(history.values, bounds, strict=True) if of[name] > bound}
            broken |= {(number, place): over} if over else {}
    assert [finding.classes[0] for finding in result.findings] == sorted(broken)
    for finding in result.findings:
        assert finding.value in broken[finding.classes[0]]
        value = history.values.index(finding.value)
        assert finding.required == float(bounds[value])
        assert finding.witness["bound"] == ("alpha" if limits[value] < history.bounds[value] else "confidence")
    if len(set(bounds)) == 1 and bounds[0] < 1:
        assert result.measure == float(max(shares))
    assert (result.measure is None) == all(bound == 1 for bound in bounds)


# What was not tried.

TWO = [
    FLU,
    table("1 [20-29] flu", "3 [20-29] hiv", "2 [20-29] flu", "5 [30-39] hiv", "4 [30-39] flu", "6 [30-39] gout"),
]


def test_everything_that_was_asked_for_and_not_tried_has_a_note() -> None:
    people = table(*(f"{n} 2{n}" if n < 4 else f"{n} 3{n}" for n in range(1, 7)), names="id age")
    rules = [
        policy({"k": 2}),
        policy({"k": 2, "confidence": 0.7}),
        policy({"k": 2, "against": ["outsider"]}, ill=TRANSIENT),
    ]
    for releases in (TWO, TWO[:1], nameless(*TWO), nameless(TWO[0])):
        for given_ in rules:
            for population in (None, [people] * len(releases)):
                found = sq.audit(releases, given_, population=population, against=["all"])
                missing = noted(found, "not tried")
                for attack in sq_attacks():
                    about = [note for note in missing if attack in re.split(r"[, ]+", note.split(" not tried")[0])]
                    assert len(about) == (attack not in found.tried), attack


def sq_attacks() -> tuple[str, ...]:
    from sequester.attacks.registry import chosen_attacks

    return chosen_attacks(["all"])


@pytest.mark.parametrize(
    ("releases", "protect", "note"),
    [
        (TWO, {}, "diversity, closeness and belief were not tried: the policy promises nothing of the kind"),
        (TWO, {}, "breach was not tried: the policy has no `protect.lifetime`"),
        (TWO[:1], {}, "tracing, row-order and complementary were not tried: there is only one release"),
        (nameless(*TWO), {}, "difference, tracing and deniability were not tried: who is in which class is not known"),
        (nameless(TWO[0]), {}, "deniability was not tried: there is only one release, of which confidence says"),
        (nameless(*TWO), {"lifetime": {"l": 2, "releases": 2}}, "breach was not tried: values stay"),
        (TWO, {}, "backward was not tried: between every two releases nobody joined, or somebody left"),
    ],
)
def test_a_note_says_why(releases: list[pa.Table], protect: dict[str, Any], note: str) -> None:
    found = sq.audit(releases, policy({"k": 2, "confidence": 0.7} | protect), against=["all"])
    assert len(noted(found, note)) == 1


def test_of_values_that_change_a_list_of_everybody_would_do() -> None:
    promised = policy({"k": 2, "lifetime": {"l": 2, "releases": 2}, "against": ["lifetime"]}, ill=TRANSIENT)
    found = sq.audit(nameless(*TWO), promised, against=["all"])
    assert noted(found, "or a population (`population=...`), or a registration list (`registered=...`)")


def test_a_population_does_not_tell_values_and_tracing_needs_none() -> None:
    people = table(*(f"{n} 2{n}" if n < 4 else f"{n} 3{n}" for n in range(1, 7)), names="id age")
    found = sq.audit(nameless(*TWO), policy({"k": 2, "confidence": 0.7}), population=[people, people])
    assert {"difference", "tracing", "deniability"} <= set(found.tried)


# Three waves, each safe alone. Together they tell that 7, who is new among the twenties, has lupus, and 8 has gout.
WAVES = [
    FLU,
    table("7 [20-29] lupus", "2 [20-29] flu", "3 [20-29] hiv", "6 [30-39] gout", "5 [30-39] hiv", "4 [30-39] flu"),
    table("3 [20-29] hiv", "8 [20-29] gout", "7 [20-29] lupus", "5 [30-39] hiv", "4 [30-39] flu", "6 [30-39] gout"),
]
NAMES = {"insider": ("difference", "tracing", "deniability"), "neighbor": ("forward", "cross", "intersection")}


@pytest.mark.parametrize("against", ["insider", "neighbor"])
def test_no_audit_says_nobody_where_an_attack_that_was_asked_for_lacks_knowledge(against: str) -> None:
    rules = policy({"k": 2, "confidence": 0.7})
    found = sq.audit(nameless(*WAVES), rules, against=[against])
    assert not found.findings
    assert not found.holds
    (lacking,) = found.undecided
    assert set(NAMES[against]) <= set(lacking.attacks)
    assert "the person column" in lacking.give
    for told in (found.verdict, found._repr_html_().split("</style>")[1], found.report(), found.to_json()):
        assert 0 <= told.lower().find("undecided") < told.lower().find("exposed")
    assert "Nobody is exposed." not in found.verdict
    assert found.to_dict()["undecided"] == [lacking.to_dict()]
    known = sq.audit(WAVES, rules, against=[against])
    assert known.undecided == ()
    assert known.exposed.total.people > 0


def test_an_outsider_alone_is_decided_without_people_and_so_is_a_single_release() -> None:
    rules = policy({"k": 2, "confidence": 0.7})
    assert sq.audit(nameless(*WAVES), rules, against=["outsider"]).holds
    assert sq.audit(nameless(FLU), rules, against=["all"]).holds
    free = sq.audit(nameless(*WAVES), policy({"k": 2, "alpha": 0.7, "against": ["outsider"]}), against=["insider"])
    assert all("deniability" not in one.attacks for one in free.undecided), "nothing has a bound"


def test_a_belief_that_was_asked_by_name_is_told_or_undecided_and_never_both() -> None:
    rules = policy({"k": 2, "confidence": 0.7})
    told = sq.audit(TWO, rules, belief=True)
    assert told.belief
    assert not noted(told, "belief")
    alone = sq.audit(nameless(FLU), rules, against=["outsider"], belief=True)
    assert not alone.holds
    assert [one.attacks for one in alone.undecided] == [("belief",)]


def test_what_was_too_large_to_be_solved_is_no_all_clear() -> None:
    found = replace(sq.audit(TWO, policy({"k": 2, "confidence": 0.7}), against=["outsider"]), unsolved=2)
    assert not found.holds
    assert found.verdict.startswith("Undecided: 2 questions too large to be solved.")


def test_an_attack_that_one_attribute_is_not_open_to_is_noted_with_its_name() -> None:
    rows = ["1 [20-29] flu cook", "2 [20-29] hiv mime"]
    pair = [table(*rows, names="id age ill job"), table(*rows[::-1], names="id age ill job")]
    promised = {"k": 2, "confidence": 0.5, "against": ["outsider"]}
    found = sq.audit(pair, policy(promised, ill=TRANSIENT, job={"role": "sensitive"}), against=["insider"])
    assert "difference" in found.tried
    assert noted(found, "deniability were not tried on ill: values may change from release to release")


@pytest.mark.parametrize("number", [0, 2])
def test_a_finding_that_is_not_there_has_no_story(number: int) -> None:
    found = sq.audit([FLU], policy({"k": 2, "alpha": 0.6, "against": ["outsider"]}))
    with pytest.raises(IndexError, match="there are 1 findings, counted from 1"):
        found.explain(number)


def test_a_single_path_is_no_list_of_releases() -> None:
    with pytest.raises(sq.DataError, match="must be a list"):
        sq.audit("r1.csv", policy({"k": 2}))  # type: ignore[arg-type]


# Columns that are published as they are.


STAYS, CHANGES = {"role": "insensitive"}, {"role": "insensitive", "changes": True}
MOVES = {"role": "quasi-identifier", "kind": "number", "changes": True}


@pytest.mark.parametrize("files", [False, True], ids=["frames", "files"])
def test_an_insensitive_column_that_stays_links_rows_and_one_that_changes_does_not(tmp_path: Path, files: bool) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "age": 20, "ill": "ab"[n % 2], "ward": f"w{n}"} for n in range(6)]
    held: list[Any] = [pa.Table.from_pylist(rows), pa.Table.from_pylist([r | {"age": r["id"] // 3} for r in rows])]
    if files:
        for number, one in enumerate(held):
            csv.write_csv(one, tmp_path / f"{number}.csv")
        held = [tmp_path / "0.csv", tmp_path / "1.csv"]
    stays, changes = (
        sq.audit(held, policy({"k": 3}, ward=ward, age=MOVES), against=["insider"]) for ward in (STAYS, CHANGES)
    )
    assert stays.measures["tracing"] == changes.measures["tracing"] == 3
    stays, changes = (
        sq.audit(held, policy({"k": 4}, ward=ward, age=MOVES), against=["insider"]) for ward in (STAYS, CHANGES)
    )
    assert {f.value for f in stays.findings if f.attack == "tracing"} == {f"{r['ill']}, {r['ward']}" for r in rows}
    assert {f.classes[0][0] for f in changes.findings if f.attack == "tracing"} == {2}


def test_a_lasting_column_that_some_release_lacks_is_as_the_others_have_it() -> None:
    first = pa.table({"id": [1, 2], "age": [20, 20], "ill": ["a", "b"], "ward": ["w1", "w2"]})
    second = pa.table({"id": [1, 2], "age": [20, 20], "ill": ["a", "b"]})
    found = sq.audit([first, second], policy({"k": 3}, ward=STAYS), against=["insider"])
    assert {f.value for f in found.findings if f.attack == "tracing"} == {"a, w1", "b, w2"}


def test_a_lasting_column_that_changes_is_an_error() -> None:
    held = [one.append_column("ward", pa.array([f"w{place}"] * 6)) for place, one in enumerate(TWO)]
    with pytest.raises(sq.DataError, match=r"ward.*people have different values.*changes: true"):
        sq.audit(held, policy({"k": 2}, ward=STAYS))
    assert sq.audit(held, policy({"k": 2}, ward=CHANGES))


def test_a_stream_that_is_read_only_once_gives_its_insensitive_columns() -> None:
    class Once:
        def __init__(self, held: pa.Table) -> None:
            self.streams = [held.to_reader()]

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.streams.pop().__arrow_c_stream__(requested_schema)

    rules = policy({"k": 2}, ward={"role": "insensitive"})
    held = [one.append_column("ward", pa.array(["w1"] * 6)) for one in TWO]
    once, often = (sq.audit(read, rules).to_dict() for read in ([Once(one) for one in held], held))
    assert once == often


# Long answers.


@settings(max_examples=100, deadline=None)
@given(
    truth=series(people=(3, 7)),
    most=st.integers(1, 4),
    known=st.booleans(),
    reading=st.sampled_from(["multiset", "set", "posterior"]),
)
def test_of_too_many_findings_the_worst_are_told_and_the_rest_counted(
    truth: Series, most: int, known: bool, reading: intersection.Reading
) -> None:
    history = truth.history(known=known)
    whole = intersection.find(history, reading=reading)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sequester.attacks.finding.MOST", most)
        some = intersection.find(history, reading=reading)
    assert some.measure == whole.measure
    told = [finding for finding in whole.findings if finding in some.findings]
    assert some.findings == told
    shares = sorted((finding.observed for finding in whole.findings), reverse=True)
    assert sorted((finding.observed for finding in told), reverse=True) == shares[:most]
    more = len(shares) - len(told)
    assert getattr(some, "notes", ()) == (
        (f"intersection (s): the {most} worst findings are told; there are {more} more",) if more else ()
    )


def test_every_attack_is_bounded_and_the_verdict_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{n} {n} ill{n}" for n in range(20, 60)]
    pair = [table(*rows), table(*rows[::-1])]
    rules = policy({"k": 2, "confidence": 0.5, "lifetime": {"l": 2, "releases": 2}})
    whole = sq.audit(pair, rules, against=["all"])
    monkeypatch.setattr("sequester.attacks.finding.MOST", 3)
    some = sq.audit(pair, rules, against=["all"])
    assert not some.holds
    assert some.measures == whole.measures
    assert some.tried == whole.tried
    counted = Counter(finding.attack for finding in whole.findings)
    for attack, told in Counter(finding.attack for finding in some.findings).items():
        assert told == min(3, counted[attack])
        left_out = [note for note in noted(some, "worst findings") if re.match(rf"{attack}\b", note)]
        assert len(left_out) == (counted[attack] > 3)
    assert counted["k"] == 80
    assert noted(some, "k: the 3 worst findings are told; there are 77 more")


def test_the_worst_classes_are_the_smallest_and_the_most_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sequester.attacks.finding.MOST", 1)
    rows = ["1 20 flu", "2 20 flu", "3 20 hiv", "4 30 flu", "5 30 hiv", "6 40 flu", "7 40 flu", "8 40 flu", "9 40 flu"]
    found = sq.audit([table(*rows)], policy({"k": 5, "confidence": 0.6}), against=["outsider"])
    assert [(finding.attack, finding.observed) for finding in found.findings] == [("confidence", 1.0), ("k", 2.0)]
    assert noted(found, "k: the 1 worst findings are told; there are 2 more")
    assert noted(found, "confidence (ill): the 1 worst findings are told; there are 1 more")


@pytest.mark.parametrize("against", [["insider"], ["neighbor"], ["all"]])
def test_a_population_does_not_tell_whose_rows_are_whose(against: list[str]) -> None:
    rows = [{"age": 10 * (n // 3), "ill": "abc"[n % 3], "ward": f"w{n % 2}"} for n in range(6)]
    people = pa.Table.from_pylist([{"id": n, "age": row["age"]} for n, row in enumerate(rows)])
    held = [pa.Table.from_pylist(rows), pa.Table.from_pylist(rows[::-1])]
    found = sq.audit(
        held, policy({"k": 3, "confidence": 0.5}, ward=STAYS), population=[people, people], against=against
    )
    assert ("tracing" in found.tried) == (against != ["neighbor"])
    assert not found.findings
    assert found.holds


def test_values_that_change_although_they_should_stay_are_an_error_where_only_the_population_is_known() -> None:
    """Nobody's own value is known then: rows with a value are left, and nobody who could have it."""
    # By age first, then by number: nobody of the first two classes had it, and now one of their people has.
    first = [(age, "[0-9]", ill) for age, some in enumerate(("b c d", "b c d", "CANARY b c")) for ill in some.split()]
    second = [("[0-2]", "0", ill) for ill in ("CANARY", "b")] + [("[0-2]", "1", ill) for ill in ("CANARY", "c", "c")]
    rest = [("[0-2]", "2", ill) for ill in ("b", "c", "d", "d")]
    numbers = ((0, 1, 2), (0, 1, 2), (1, 2, 2))
    who = [(age, number) for age, some in enumerate(numbers) for number in some]
    quasi = {"role": "quasi-identifier", "kind": "number", "range": [0, 9]}
    rules = policy({"k": 2, "confidence": 0.7}, age={**quasi, "range": [0, 2]}, number=quasi)
    releases = [
        pa.table({name: [str(row[place]) for row in rows] for place, name in enumerate(("age", "number", "ill"))})
        for rows in (first, second + rest)
    ]
    everybody = pa.table({"id": range(9), "age": [age for age, _ in who], "number": [number for _, number in who]})
    with pytest.raises(sq.DataError, match="releases 1 and 2 contradict each other") as raised:
        sq.audit(releases, rules, population=[everybody, everybody])
    assert "CANARY" not in str(raised.value)
