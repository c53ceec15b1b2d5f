"""Why a plan is less than the table: attack, attribute, how many, and the keys that would relax it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import podded
import sequester as sq
from ledgers import KEY
from policies import changed
from sequester.attacks.audit import audit_histories
from sequester.causes import Cause, because
from sequester.publish.relax import MOST_PRICED
from sequester.publish.remedy import Merging
from sequester.publish.roster import may_be_hidden, obstacles
from sequester.publish.saved import restored

DRAW = np.random.default_rng(5)
AGES, ZIPS = DRAW.integers(0, 60, 400), DRAW.integers(10_000, 10_040, 400)
VALUES = DRAW.choice(["flu", "cold", "asthma", "gout"], 400, p=[0.45, 0.25, 0.2, 0.1])
SEED = 2**63 + 1
FEW = ("protect.inferred", "protect.k")
BOUND = ("protect.confidence", "attributes.value.ordinary")


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
            "zip": {"role": "quasi-identifier", "kind": "code", "length": 5},
            "value": {"role": "sensitive"},
        },
        "protect": {"k": 4, "confidence": 0.6},
        "method": {"name": "merge"},
    }
    return changed(raw, **changes)


def people(*numbers: int | range, **cells: Any) -> pa.Table:
    chosen = [n for part in numbers for n in ([part] if isinstance(part, int) else part)]
    columns = {"id": [f"p{n}" for n in chosen], "age": AGES[chosen], "zip": ZIPS[chosen].astype(str)}
    return pa.table({**columns, "value": VALUES[chosen], **cells})


def begun(folder: Path, **changes: Any) -> sq.Series:
    """A series with a release of a hundred people."""
    series = sq.Series.open(folder / "clinic.ledger", rules(**changes), key=KEY)
    series.publish(people(range(100)), name="first", seed=SEED)
    return series


def told(causes: tuple[Cause, ...], *what: str) -> list[Cause]:
    return [cause for cause in causes if cause.what in what]


def test_newcomers_who_are_too_few_wait_for_the_sake_of_difference(tmp_path: Path) -> None:
    plan = begun(tmp_path).plan(people(range(102)), name="second", seed=SEED)
    expected = Cause("waiting", "difference", who="newcomers", people=2, required=4, observed=2, keys=FEW)
    assert told(plan.why, "waiting") == [expected]
    assert str(expected) == "newcomers (2): they are seen as a set (difference), and at least 4 must be"


def test_where_less_is_inferred_k_would_relax_nothing(tmp_path: Path) -> None:
    series = begun(tmp_path, protect__inferred=3)
    (cause,) = told(series.plan(people(range(102)), name="second", seed=SEED).why, "waiting")
    assert (cause.required, cause.keys) == (3, ("protect.inferred",))


def test_newcomers_who_share_a_value_wait_and_it_is_not_told_how_many_do(tmp_path: Path) -> None:
    values = [*VALUES[:100], *["gout"] * 20, *["flu"] * 10]
    plan = begun(tmp_path).plan(people(range(130), value=values), name="second", seed=SEED)
    expected = Cause("waiting", "difference", "value", who="newcomers", people=30, required=0.6, keys=BOUND)
    assert told(plan.why, "waiting") == [expected]
    assert "a value of value is more frequent among them than 0.6" in str(expected)


def test_people_who_left_and_are_kept_wait_too(tmp_path: Path) -> None:
    plan = begun(tmp_path).plan(people(range(2, 100)), name="second", seed=SEED)
    (cause,) = told(plan.why, "waiting")
    assert (cause.attack, cause.who, cause.people, cause.keys) == ("difference", "people who left", 2, FEW)


def test_where_people_would_be_hidden_as_a_set_the_attack_that_works_even_on_one_class_is_named(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(method={"name": "mondrian"}), key=KEY)
    series.publish(people(range(80)), name="first", seed=SEED)
    series.publish(people(range(20, 140)), name="second", seed=SEED)
    plan = series.plan(people(range(140)), name="third", seed=SEED)
    expected = Cause("waiting", "deniability", "value", who="people who returned", people=20, keys=BOUND)
    assert told(plan.why, "waiting") == [expected]
    assert str(expected).endswith("(20): no classes were found that are safe from deniability of value")


def test_a_bound_of_the_attribute_itself_is_the_key(tmp_path: Path) -> None:
    series = begun(tmp_path, attributes__value={"role": "sensitive", "confidence": 0.5}, protect={"k": 4})
    values = [*VALUES[:100], *["gout"] * 20, *["flu"] * 10]
    (cause,) = told(series.plan(people(range(130), value=values), name="second", seed=SEED).why, "waiting")
    assert cause.keys == ("attributes.value.confidence", "attributes.value.ordinary")


def test_where_people_are_left_out_that_is_what_comes_of_it(tmp_path: Path) -> None:
    plan = begun(tmp_path, infeasible="suppress").plan(people(range(102)), name="second", seed=SEED)
    expected = Cause("left out", "difference", who="newcomers", people=2, required=4, observed=2, keys=FEW)
    assert told(plan.why, "waiting", "left out") == [expected]


def test_a_refusal_names_the_attack_and_the_keys(tmp_path: Path) -> None:
    series = begun(tmp_path, infeasible="refuse")
    keys = (*FEW, "infeasible")
    with pytest.raises(
        sq.GuaranteeError, match=r"at least 4 must be \(protect.inferred, protect.k, infeasible\)"
    ) as one:
        series.plan(people(range(102)), name="second", seed=SEED)
    expected = Cause("refused", "difference", who="newcomers", people=2, required=4, observed=2, keys=keys)
    assert one.value.causes == (expected,)
    assert one.value.relaxations == ()


def test_a_refusal_that_is_asked_why_tells_what_would_be_published_otherwise(tmp_path: Path) -> None:
    series = begun(tmp_path, infeasible="refuse")
    with pytest.raises(sq.GuaranteeError, match="2 who came cannot be hidden") as refused:
        series.plan(people(range(102)), name="second", seed=SEED, why=True)
    found = {(one.key, one.then): (one.running, one.made, one.waiting) for one in refused.value.relaxations}
    assert found == {
        ("protect.inferred", "2"): (False, True, 0),
        ("protect.k", "3"): (False, False, 0),
        ("infeasible", "hold-back"): (True, True, 2),
    }


def test_a_table_that_keeps_no_promise_even_as_one_class_is_refused_for_that(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    with pytest.raises(sq.GuaranteeError, match="the table as one class: confidence of value would come to 1") as one:
        series.plan(people(range(50), value=["gout"] * 50), name="first", seed=SEED)
    cause = Cause("refused", "confidence", "value", who="the table as one class", required=0.6, observed=1, keys=BOUND)
    assert one.value.causes == (cause,)


def test_a_release_without_a_memory_is_told_what_works_on_it(tmp_path: Path) -> None:
    series = begun(tmp_path, method={"name": "static"})
    plan = series.plan(people(range(10, 140)), name="second", seed=SEED)
    causes = told(plan.why, "refused")
    assert plan.candidate is not None
    findings = plan.candidate.audit.findings
    assert {cause.attack for cause in causes} == {finding.attack for finding in findings} != set()
    for cause in causes:
        assert cause.people == len({p for f in findings if f.attack == cause.attack for p in f.people})
        assert "method" in cause.keys


def test_coarse_classes_are_told_what_each_promise_costs(tmp_path: Path) -> None:
    plan = begun(tmp_path, method={"name": "mondrian"}).plan(people(range(10, 140)), name="second", seed=SEED)
    steps = [cause for cause in told(plan.why, "coarse") if cause.lost is not None]
    assert [(cause.attack, cause.attribute) for cause in steps] == [("k", ""), ("confidence", "value"), ("series", "")]
    assert [cause.keys for cause in steps] == [("protect.k",), BOUND, (*FEW, *BOUND, "method")]
    # Step by step from k alone to this release: together they are all of its loss.
    costs = [cause.lost or 0 for cause in steps]
    assert sum(costs) == pytest.approx(plan.loss["release"]["ail"])
    assert sum(costs[:2]) == pytest.approx(plan.loss["static"]["ail"])
    assert all(0 < cause.classes <= plan.classes for cause in steps)
    assert all(0 < cause.people <= plan.records for cause in steps)


def test_attacks_that_a_memory_keeps_off_are_those_the_audit_finds_without_one(tmp_path: Path) -> None:
    series = begun(tmp_path, method={"name": "mondrian"})
    table = people(range(10, 140))
    causes = [cause for cause in told(series.plan(table, name="b", seed=SEED).why, "coarse") if cause.lost is None]
    forgetful = sq.Series.open(series.place, rules(method={"name": "static"}), key=KEY)
    naive = forgetful.plan(table, name="b", seed=SEED)
    assert naive.candidate is not None
    found = {finding.attack for finding in naive.candidate.audit.findings}
    assert {cause.attack for cause in causes} == found != set()
    assert all(set(cause.keys) <= {*FEW, *BOUND, "method"} and cause.classes > 0 for cause in causes)


def test_several_promises_are_priced_one_by_one(tmp_path: Path) -> None:
    other = {"role": "sensitive"}
    protect = {"k": 4, "confidence": 0.5, "diversity": {"kind": "distinct", "l": 3}}
    policy = rules(attributes__other=other, protect=protect, method={"name": "mondrian"})
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    mixed = np.random.default_rng(8).permutation(VALUES)[:200]
    plan = series.plan(people(range(200), other=mixed), name="first", seed=SEED)
    found = {(cause.attack, cause.attribute): cause.keys for cause in told(plan.why, "coarse")}
    assert found[("diversity", "other")] == ("protect.diversity",)
    assert found[("confidence", "other")] == ("protect.confidence", "attributes.other.ordinary")
    assert {attribute for _, attribute in found} == {"", "value", "other"}


def test_the_first_release_has_no_past_to_blame(tmp_path: Path) -> None:
    series = sq.Series.open(
        tmp_path / "clinic.ledger", rules(method={"name": "mondrian"}, protect__confidence=0.5), key=KEY
    )
    plan = series.plan(people(range(80)), name="first", seed=SEED)
    assert {cause.attack for cause in plan.why} == {"k", "confidence"}
    assert plan.since_last is None


def test_decoys_that_must_be_are_blamed_on_the_value_that_is_too_frequent(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "panel.ledger", podded.rules(), key=KEY)
    ids, ages = [f"p{n}" for n in range(40)], AGES[:40]
    sick = pa.table({"id": ids, "age": ages, "sex": ["f", "m"] * 20, "value": ["a"] * 26 + ["b", "c"] * 7})
    plan = series.plan(sick, name="first", seed=SEED)
    assert plan.pods is not None
    assert plan.pods.needed == 12
    first, *others = told(plan.why, "decoys")
    keys = ("protect.confidence", "attributes.value.ordinary")
    assert first == Cause("decoys", "confidence", "value", observed=12, keys=keys)
    assert [(one.attack, one.observed) for one in others] == [("deniability", plan.decoys - 12)] * (plan.decoys > 12)
    assert "12 rows about nobody: a value of value is too frequent" in str(first)


def test_decoys_beside_a_few_people_are_there_for_k(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "panel.ledger", podded.rules(protect__k=6, protect__people=2), key=KEY)
    few = pa.table({"id": ["p1", "p2"], "age": [30, 40], "sex": ["f", "m"], "value": ["a", "b"]})
    first = told(series.plan(few, name="first", seed=SEED).why, "decoys")[0]
    assert (first.attack, first.observed, first.keys) == ("k", 4, ("protect.k",))


def test_pods_are_eased_by_their_own_keys(tmp_path: Path) -> None:
    panel = podded.Panel.random(60, 2, seed=4)
    series = sq.Series.open(tmp_path / "panel.ledger", podded.rules(protect__k=4), key=KEY)
    podded.publish(series, panel.tables()[:1], check=False)
    plan = series.plan(panel.table(1), name="second", seed=SEED, why=True)
    attacks = [cause for cause in told(plan.why, "coarse") if cause.lost is None]
    assert attacks
    assert all({"decoys", "protect.lineage"} <= set(cause.keys) for cause in attacks)
    assert not any("method" in cause.keys for cause in plan.why)
    priced = {one.key: one for one in plan.relaxations}
    assert priced["decoys"].running
    assert not priced["protect.lineage"].running
    assert all(one.tried and one.made and one.loss.keys() == {"ail", "ncp"} for one in plan.relaxations)


def test_classes_of_pods_that_are_joined_for_values_that_change_name_their_promise(tmp_path: Path) -> None:
    mood = {"role": "sensitive", "values": "transient", "permanent": ["z"], "confidence": 0.6}
    series = sq.Series.open(tmp_path / "panel.ledger", podded.rules(attributes__mood=mood), key=KEY)
    panel = podded.Panel.random(60, 1, seed=4, away=0.0)
    moods = np.random.default_rng(3).choice(["x", "y", "z"], 60, p=[0.4, 0.35, 0.25])
    plan = series.plan(panel.table(0, mood=moods.tolist()), name="first", seed=SEED)
    (cause,) = told(plan.why, "merged")
    keys = ("attributes.mood.confidence", "attributes.mood.ordinary")
    assert (cause.attack, cause.attribute, cause.keys) == ("confidence", "mood", keys)
    assert 0 < cause.classes <= cause.people <= plan.people


def test_the_merge_in_place_of_a_method_is_a_cause(tmp_path: Path) -> None:
    draw = np.random.default_rng(64)
    codes = draw.integers(0, 32, (2, 49))
    value = draw.choice([*"012345"], 49, p=[0.35, 0.2, 0.15, 0.1, 0.1, 0.1])
    protect = {"k": 5, "confidence": 0.5, "against": ["insider", "neighbor"]}
    axis = {"role": "quasi-identifier", "kind": "number", "range": [0, 31]}
    attributes = {"x": axis, "y": axis, "value": {"role": "sensitive"}}
    policy = rules(attributes=attributes, protect=protect, method={"name": "cluster"})
    whole = pa.table({"id": [f"p{n}" for n in range(49)], "x": codes[0], "y": codes[1], "value": value})
    series = sq.Series.open(tmp_path / "clinic.ledger", policy, key=KEY)
    series.publish(whole.slice(0, 25), name="first", seed=SEED)
    rest = np.setdiff1d(np.arange(43), [0, 1, 5, 9, 20])
    plan = series.plan(whole.take(pa.array(rest)), name="second", seed=SEED)
    (cause,) = told(plan.why, "merged")
    assert (cause.attack, cause.keys) == ("series", ("method",))
    assert str(cause) == "the classes of the last release are kept: the classes of cluster would lose more"
    assert any(one.what == "coarse" and "protect.against" in one.keys for one in plan.why)


def test_classes_that_the_audit_sends_back_name_its_attack(tmp_path: Path) -> None:
    """A method that looks back never gets there with such classes; here those of one without a memory are handed in."""
    series = begun(tmp_path, method={"name": "mondrian"})
    plan = series.plan(people(range(10, 140)), name="second", seed=SEED)
    made = plan.candidate
    assert made is not None
    from sequester.publish.brief import Brief

    brief = Brief.of(series.policy, made.census.snapshot, [SEED, 2])
    naive = brief.method.first(made.task)
    remedy = Merging(made, brief, naive)
    order = np.arange(len(naive.member))
    histories = made.past.extend(naive.member, naive.lo, naive.hi, order=order, name="second")
    audit = audit_histories(histories, series.policy, against=series.policy.protect.against)
    assert not audit.holds
    remedy.improve(audit)
    assert {cause.attack for cause in remedy.causes} == {finding.attack for finding in audit.findings}
    assert {cause.what for cause in remedy.causes} == {"merged"}
    assert all(str(cause).startswith("classes were joined, or kept as they were: ") for cause in remedy.causes)
    before = remedy.causes
    remedy.improve(audit)
    remedy.improve(audit)
    assert remedy.causes == before, "what is found again was told already"
    with pytest.raises(sq.GuaranteeError, match="no classes were found that are safe") as refused:
        remedy.improve(audit)
    assert {cause.what for cause in refused.value.causes} == {"refused"}
    assert {cause.attack for cause in refused.value.causes} == {finding.attack for finding in audit.findings}


def test_where_somebody_waits_no_value_is_called_ordinary(tmp_path: Path) -> None:
    """If the most frequent value were, and a newcomer on her own waited no longer, that value would be hers."""
    series = begun(tmp_path, method={"name": "mondrian"})
    plan = series.plan(people(range(10, 101)), name="second", seed=SEED, why=True)
    assert plan.waiting.held == 1
    assert any("attributes.value.ordinary" in cause.keys for cause in plan.why)
    assert {one.key for one in plan.relaxations} == {"protect.k", "protect.confidence", "protect.inferred"}
    other = series.plan(people(range(130)), name="second", seed=SEED, why=True)
    assert "attributes.value.ordinary" in {one.key for one in other.relaxations}


def test_a_large_table_is_not_made_again_for_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_PRICED >= 10_000
    monkeypatch.setattr("sequester.publish.relax.MOST_PRICED", 50)
    plan = begun(tmp_path).plan(people(range(130)), name="second", seed=SEED, why=True)
    assert {one.key for one in plan.relaxations} >= {"protect.k", "protect.confidence"}
    assert not any(one.tried or one.made or one.loss for one in plan.relaxations)


def test_of_a_large_table_what_is_coarse_is_asked_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sequester.publish.why.MOST_ASKED", 50)
    series = begun(tmp_path)
    assert series.plan(people(range(102)), name="second", seed=SEED).why[0].what == "waiting"
    assert told(series.plan(people(range(130)), name="second", seed=SEED).why, "coarse") == []
    assert told(series.plan(people(range(130)), name="second", seed=SEED, why=True).why, "coarse") != []


def test_a_saved_plan_keeps_why_and_is_published_with_it(tmp_path: Path) -> None:
    series = begun(tmp_path, method={"name": "mondrian"})
    data = tmp_path / "next.csv"
    csv.write_csv(people(range(5, 130)), data)
    plan = series.plan(data, name="second", seed=SEED, why=True)
    assert plan.why
    assert plan.relaxations
    assert plan.since_last is not None
    loaded = sq.Plan.load(plan.save(tmp_path / "next.plan"))
    assert loaded == replace(plan, candidate=None)
    assert loaded.to_json() == plan.to_json()
    series.publish(loaded)
    assert len(series.releases()) == 2


@pytest.mark.parametrize("field", ["why", "relaxations", "since_last"])
def test_a_saved_plan_that_was_made_to_say_other_reasons_is_refused(tmp_path: Path, field: str) -> None:
    series = begun(tmp_path, method={"name": "mondrian"})
    data = tmp_path / "next.csv"
    csv.write_csv(people(range(5, 130)), data)
    path = series.plan(data, name="second", seed=SEED, why=True).save(tmp_path / "next.plan")
    raw = json.loads(path.read_text())
    (raw[field] if field == "since_last" else raw[field][0])[{"since_last": "came"}.get(field, "classes")] = 999
    path.write_text(json.dumps(raw))
    with pytest.raises(sq.StalePlan, match="it was edited, or made elsewhere"):
        series.publish(sq.Plan.load(path))


def test_a_plan_of_an_earlier_version_is_to_be_planned_anew(tmp_path: Path) -> None:
    data = tmp_path / "next.csv"
    csv.write_csv(people(range(100)), data)
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    path = series.plan(data, name="first", seed=SEED).save(tmp_path / "next.plan")
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({**raw, "sequester-plan": 2}))
    with pytest.raises(sq.DataError, match="plan again"):
        sq.Plan.load(path)


def test_causes_are_told_in_one_sentence_with_their_keys() -> None:
    assert because([]) == ""
    cause = Cause("waiting", "difference", who="newcomers", people=1_200, required=5_000, observed=1_200, keys=FEW)
    said = "newcomers (1,200): they are seen as a set (difference), and at least 5,000 must be"
    assert because([cause]).endswith(f"relax it: {said} (protect.inferred, protect.k).")
    assert restored(Cause, cause.to_dict()) == cause


def test_what_keeps_people_from_being_hidden_is_what_keeps_them() -> None:
    from sequester.guarantees.requirement import Requirement

    policy = rules()
    domain = _domain("abc")
    requirement = Requirement.from_policy(policy, [domain])
    for codes in ([0], [0, 1], [0, 1, 2, 0], [0, 0, 0, 1], [], [0, 1, 2, 0, 1, 2]):
        sensitive = np.array([codes], np.int32)
        found = obstacles(requirement, sensitive, guarded=True, fewest=4)
        assert bool(found) != may_be_hidden(requirement, sensitive, guarded=True, fewest=4)
        few, often = 0 < len(codes) < 4, len(codes) >= 4 and max(map(codes.count, codes)) > 0.6 * len(codes)
        assert [one.attribute for one in found] == ([""] if few else ["value"] if often else [])


def _domain(values: str) -> Any:
    from sequester.domain.hierarchy import nested

    return nested("category", np.array([*values], object), [(np.arange(len(values), dtype=np.int32), tuple(values))])


def test_relaxing_is_not_asked_of_a_plan_that_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = begun(tmp_path)
    data = tmp_path / "next.csv"
    csv.write_csv(people(range(130)), data)
    path = series.plan(data, name="second", seed=SEED, why=True).save(tmp_path / "next.plan")

    def never(*asked: Any, **how: Any) -> Any:
        raise AssertionError("made again")

    monkeypatch.setattr("sequester.publish.prepare.relax", never)
    monkeypatch.setattr("sequester.publish.price.causes_of", never)
    series.publish(sq.Plan.load(path))
    assert len(series.releases()) == 2
