"""A rehearsal: what is tried, what it comes to, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import sequester as sq
from rehearsed import QUASI, TOWNS, rules, waves
from sequester.datasets import hospital_panel, hospital_panel_policy
from sequester.errors import DataError, PolicyError
from sequester.publish.rehearsing import rehearse as rehearsing
from sequester.publish.rehearsing.rehearse import choose, recommend
from sequester.publish.rehearsing.trial import Trial, TrialWave, key_of, plan_variants, read_waves

LEVELS = {**QUASI, "town": {"role": "quasi-identifier", "hierarchy": TOWNS}}
CHANGING = {
    "attributes": {**QUASI, "illness": {"role": "sensitive", "values": "transient", "ordinary": ["flu", "cold"]}},
    "protect": {"k": 3, "lifetime": {"l": 1.5, "releases": 4}, "against": ["lifetime"]},
    "method": {"name": "group"},
}


@pytest.fixture(scope="module")
def rehearsal() -> sq.Rehearsal:
    return sq.rehearse(waves(), rules(), methods=["pods", "merge", "full-domain"], processes=1)


def named(policy: sq.Policy, **how: object) -> list[str]:
    """The variants that are tried, and those that are not in brackets."""
    variants = plan_variants(policy, 480, **{"vary": {}, **how})  # type: ignore[arg-type]
    return [one.name if one.policy is not None else f"({one.name})" for one in variants]


def test_every_method_that_suits_is_tried_and_naive_releases_come_first() -> None:
    assert named(rules()) == [
        "each wave on its own", "pods", "pods, decoys 0.25", "pods, lineage 4", "mondrian", "(full-domain)",
        "(specialize)", "cluster", "(group)", "merge", "grow",
    ]  # fmt: skip


def test_methods_that_climb_levels_are_tried_where_an_attribute_has_some() -> None:
    policy = rules(attributes={**LEVELS, "illness": {"role": "sensitive"}})
    assert {"full-domain", "specialize"} <= set(named(policy))


def test_values_that_change_are_left_to_the_method_that_keeps_them() -> None:
    tried = [name for name in named(rules(**CHANGING)) if not name.startswith("(")]
    assert tried == ["each wave on its own", "group"]


def test_a_setting_that_promises_less_is_not_tried() -> None:
    policy = rules(protect={"k": 4, "confidence": 0.6, "inferred": 2, "lineage": 3})
    assert "pods, lineage 4" not in named(policy)
    assert "pods, decoys 0.25" in named(policy)


def test_methods_that_cannot_keep_a_key_of_the_policy_promise_less() -> None:
    policy = rules(impossible=[{"town": "Kiel", "illness": "gout"}])
    equal = {one.method: one.equal for one in plan_variants(policy, 480, vary={}) if one.policy is not None}
    assert equal["pods"]
    assert not equal["cluster"]


def test_the_policys_own_setting_is_tried_once() -> None:
    assert named(rules(decoys=0.25))[1:4] == ["pods", "pods, decoys 0.05", "pods, lineage 4"]


def test_a_method_for_small_tables_is_given_up_for_large_ones_unless_it_is_named() -> None:
    policy = rules(attributes={**LEVELS, "illness": {"role": "sensitive"}})
    large = plan_variants(policy, 10**9, vary={})
    assert [one.why for one in large if one.method == "specialize"] == [
        "would take too long for 1,000,000,000 records; name it to have it tried"
    ]
    assert plan_variants(policy, 10**9, methods=["specialize"], vary={})[1].policy is not None


def test_a_method_that_does_not_exist_is_an_error_with_a_hint() -> None:
    with pytest.raises(PolicyError, match=r'pod: is no method; there are mondrian, .*; did you mean "pods"'):
        plan_variants(rules(), 480, methods=["pod"], vary={})


def test_what_is_varied_is_combined_with_the_policys_own_point() -> None:
    variants = plan_variants(rules(), 480, vary={"k": [3, 5], "confidence": [0.5]})
    assert [(one.name, dict(one.point)) for one in variants if not one.naive] == [
        ("pods", {"k": 4, "confidence": 0.6}),
        ("pods", {"k": 3, "confidence": 0.5}),
        ("pods", {"k": 5, "confidence": 0.5}),
    ]
    assert [one.equal for one in variants if not one.naive] == [True, False, True]
    assert [one.naive for one in variants] == [True, False] * 3


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"cake": [1]}, "cake: cannot be varied"),
        ({"k": []}, "k: give the numbers to try"),
        ({"k": [2.5]}, "k: must be whole numbers"),
    ],
)
def test_what_cannot_be_varied_is_an_error(vary: dict[str, list[float]], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        plan_variants(rules(), 480, vary=vary)


def test_a_point_that_is_no_policy_is_a_row_that_says_so() -> None:
    variants = plan_variants(rules(), 480, vary={"l": [2]})
    assert [one.why for one in variants] == ["l: cannot be varied: there is no lifetime in the policy"] * 2
    worse = plan_variants(rules(), 480, vary={"inferred": [9]})
    assert "is more than k" in str(worse[-1].why)


def test_pods_lose_least_and_naive_releases_expose_people(rehearsal: sq.Rehearsal) -> None:
    by_name = {trial.name: trial for trial in rehearsal.trials}
    naive, pods = by_name["each wave on its own"], by_name["pods"]
    assert naive.waves[0].exposed == 0
    assert naive.waves[-1].exposed >= naive.waves[-1].certain > 0
    assert naive.waves[-1].everybody == 240
    assert not naive.holds
    assert pods.holds
    assert pods.ncp < by_name["merge"].ncp
    assert rehearsal.naive == naive


def test_losses_are_those_of_the_series_itself(rehearsal: sq.Rehearsal, tmp_path: Path) -> None:
    # Rows are taken in the order of keyed hashes, and ties fall as they come.
    key = key_of(read_waves(waves(), rules())[0], rules())
    series = sq.Series.open(tmp_path / "panel.ledger", rules(), key=key)
    trial = next(trial for trial in rehearsal.trials if trial.name == "pods")
    for number, (table, wave) in enumerate(zip(waves(), trial.waves, strict=True), 1):
        plan = series.plan(table, name=f"wave-{number}", seed=1 << 63)
        assert plan.loss["release"]["ncp"] == pytest.approx(wave.ncp)
        assert plan.loss["release"]["ail"] == pytest.approx(wave.ail)
        assert (plan.records, plan.people, plan.classes) == (wave.rows, wave.people, wave.classes)
        series.publish(plan)


def test_the_loss_of_columns_adds_up(rehearsal: sq.Rehearsal) -> None:
    told = [wave for trial in rehearsal.trials for wave in trial.waves]
    assert len(told) >= 9
    for wave in told:
        assert list(wave.columns) == ["age", "town"]
        assert sum(wave.columns.values()) / 2 == pytest.approx(wave.ncp)


def test_naive_releases_are_those_of_anonymize_audited_together(rehearsal: sq.Rehearsal) -> None:
    naive = rehearsal.trials[0]
    static = rules(method={"name": "static"})
    losses = [sq.anonymize(table, static, seed=1).loss["ncp"] for table in waves()]
    assert [wave.ncp for wave in naive.waves] == pytest.approx(losses)


def test_the_recommended_policy_loads_and_holds_the_promise(rehearsal: sq.Rehearsal, tmp_path: Path) -> None:
    text = rehearsal.policy_text()
    assert text is not None
    assert text.startswith("# Recommended by a rehearsal of 3 waves (160, 160, 190 records): pods")
    (tmp_path / "p.yaml").write_text(text)
    loaded = sq.Policy.load(tmp_path / "p.yaml")
    assert rehearsal.recommended is not None
    assert loaded.model_dump() == rehearsal.recommended.model_dump()
    own, chosen = rules().protect.model_dump(), loaded.protect.model_dump()
    # Of equal losses the stronger promise is recommended, and never a weaker one.
    assert {name for name in own if own[name] != chosen[name]} <= {"lineage"}
    assert loaded.linked <= rules().linked


def test_a_rehearsal_comes_out_the_same_in_one_process_or_two(rehearsal: sq.Rehearsal) -> None:
    again = sq.rehearse(waves(), rules(), methods=["pods", "merge", "full-domain"], processes=2)
    assert again == rehearsal
    first, second = (
        {**one.to_dict(), "seconds": 0, "trials": [{**trial, "seconds": 0} for trial in one.to_dict()["trials"]]}
        for one in (rehearsal, again)
    )
    assert first == second


def test_progress_counts_waves_of_variants() -> None:
    told: list[tuple[str, int, int]] = []
    sq.rehearse(waves(), rules(), methods=["merge"], processes=1, progress=lambda *one: told.append(one))
    assert told[0] == ("reading", 0, 6)
    assert [number for _, number, _ in told[1:]] == [1, 2, 3, 4, 5, 6]
    assert {name for name, _, _ in told[1:]} == {"each wave on its own", "merge"}


def test_results_are_shown_without_cells(rehearsal: sq.Rehearsal) -> None:
    assert re.fullmatch(r"<Rehearsal of 3 waves: 5 of 5 variants hold, recommended: pods.*>", repr(rehearsal))
    assert json.loads(rehearsal.to_json())["recommendation"]["name"].startswith("pods")
    view = rehearsal._repr_html_()
    assert "<svg" in view
    assert "each wave on its own" in view


def test_the_picture_has_a_title_and_words_and_a_line_per_variant(rehearsal: sq.Rehearsal) -> None:
    drawn = rehearsal.picture()
    assert drawn.count("<title id=") == 1
    assert "<desc" in drawn
    assert "prefers-color-scheme:dark" in drawn
    for trial in rehearsal.trials:
        assert (trial.name in drawn) == bool(trial.waves)


def test_a_frontier_is_a_table_and_a_picture() -> None:
    varied = sq.rehearse(waves(), rules(), vary={"k": [3, 8], "confidence": [0.6]}, processes=1)
    own = {trial.point["k"]: trial for trial in varied.trials if trial.holds}
    assert list(own) == [4, 3, 8]
    assert own[3].ncp < own[8].ncp
    assert not own[3].equal
    # k 3 would lose less, and promises less than the policy.
    assert varied.best is own[4]
    assert "What more protection costs" in varied.picture()


def test_a_variant_that_cannot_keep_the_promise_is_a_row_that_says_why() -> None:
    tables = waves(illness=["flu"] * 240)
    done = sq.rehearse(tables, rules(), methods=["merge", "group"], processes=1)
    why = {trial.name: trial.why for trial in done.trials}
    assert re.match(r"wave 1: .*Nothing was published", str(why["merge"]))
    assert "values that change" in str(why["group"])
    assert done.best is None
    assert done.recommendation is None
    assert done.policy_text() is None
    assert done.trials[1].to_dict()["ncp"] is None
    assert "none recommended" in repr(done)
    assert done._repr_html_()


def test_values_that_change_are_rehearsed_too() -> None:
    done = sq.rehearse(waves(), rules(**CHANGING), processes=1)
    group = next(trial for trial in done.trials if trial.method == "group")
    assert group.holds
    assert len(group.waves) == 3


def test_bad_cells_are_one_error_that_names_the_wave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsing, "run_all", lambda *_, **__: pytest.fail("something was tried"))
    tables = waves()
    tables[1] = tables[1].set_column(1, "age", [[*tables[1]["age"].to_pylist()[:-1], 500]])
    with pytest.raises(DataError, match=r"wave 2: column 'age': .*outside the range"):
        sq.rehearse(tables, rules())


def test_a_cell_that_must_not_change_is_found_before_anything_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsing, "run_all", lambda *_, **__: pytest.fail("something was tried"))
    tables = waves()
    ages = [(age + 1) % 100 for age in tables[2]["age"].to_pylist()]
    with pytest.raises(DataError, match=r"wave 3: column 'age': .*other values than in an earlier release"):
        sq.rehearse([*tables[:2], tables[2].set_column(1, "age", [ages])], rules())


def test_a_value_that_moves_too_far_is_found_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsing, "run_all", lambda *_, **__: pytest.fail("something was tried"))
    drifting = {**QUASI, "age": {**QUASI["age"], "changes": {"by": [0, 1]}}, "illness": {"role": "sensitive"}}
    tables = waves()
    ages = [min(age + 4, 99) for age in tables[2]["age"].to_pylist()]
    with pytest.raises(DataError, match=r"wave 3: column 'age': .*moved further"):
        sq.rehearse([*tables[:2], tables[2].set_column(1, "age", [ages])], rules(attributes=drifting))


def test_waves_of_other_people_are_refused_unless_that_was_said() -> None:
    first = waves()[0]
    other = first.set_column(0, "id", [[f"q{number}" for number in range(160)]])
    with pytest.raises(DataError, match="recognised"):
        sq.rehearse([first, other], rules(), methods=["merge"], processes=1)
    done = sq.rehearse([first, other], rules(), methods=["merge"], processes=1, everybody_is_new=True)
    assert done.trials[1].waves[-1].everybody == 320


def test_no_waves_are_an_error() -> None:
    with pytest.raises(DataError, match="as a list"):
        sq.rehearse([], rules())
    with pytest.raises(DataError, match="as a list"):
        sq.rehearse("q1.csv", rules())


def test_a_policy_without_people_cannot_be_rehearsed() -> None:
    policy = rules(person=None, method={"name": "mondrian"})
    with pytest.raises(PolicyError, match="who a record is about"):
        sq.rehearse(waves(), policy)


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[str] = []

    def stop(stage: str, number: int, stages: int) -> None:
        seen.extend(place.name for place in tmp_path.iterdir())
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sq.rehearse(waves(), rules(), methods=["merge"], processes=1, progress=stop)
    assert seen
    assert list(tmp_path.iterdir()) == []


def test_a_script_needs_no_guard_to_rehearse(tmp_path: Path) -> None:
    """Processes are started as a module, not as copies of the script that calls."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import sequester as sq
            from rehearsed import rules, waves
            print(sq.rehearse(waves(), rules(), methods=["merge"], processes=2))
        """)
    )
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=120,
    )
    assert done.stdout.startswith("<Rehearsal of 3 waves: 1 of 1 variants hold")
    assert done.stderr == ""


def wave(ncp: float, *, decoys: int = 0, waiting: int = 0, exposed: int = 0) -> TrialWave:
    return TrialWave(100, 100 + decoys, 10, waiting, 0, 0, ncp, ncp, {"age": ncp}, 100, exposed, 0)


def trial(name: str, made: TrialWave, **more: object) -> Trial:
    given = {"settings": {}, "point": {}, "naive": False, "equal": True, **more}
    return Trial(name, rules(), waves=(made,), **given)  # type: ignore[arg-type]


def test_the_least_loss_wins_among_those_that_keep_everybody_within_the_decoys() -> None:
    trials = [
        trial("naive", wave(0.01, exposed=9), naive=True),
        trial("waits", wave(0.02, waiting=5)),
        trial("many decoys", wave(0.03, decoys=30)),
        trial("weaker", wave(0.04), equal=False),
        trial("good", wave(0.051)),
        trial("as good", wave(0.0514, decoys=2)),
        trial("stopped", wave(0.001), why="refused"),
    ]
    best = choose(trials, rules())
    assert best is not None
    assert best.name == "good"
    told = recommend(trials, rules())
    assert told is not None
    assert "would expose 9 of 100 people" in " ".join(told.reasons)


def test_of_equals_what_promises_most_is_taken() -> None:
    stricter, own = (trial("pods", wave(0.05), point={"k": 4, "confidence": share}) for share in (0.5, 0.6))
    assert choose([own, stricter], rules()) is stricter
    told = recommend([own, stricter], rules())
    assert told is not None
    assert told.name == "pods (k 4, confidence 0.5)"
    assert "The least of the others: pods (k 4, confidence 0.6), 0.050" in " ".join(told.reasons)
    linked = trial("pods", wave(0.05, decoys=2), settings={"lineage": 4}, point={"k": 4, "confidence": 0.5})
    assert choose([own, linked, stricter], rules()) is linked


def test_of_equals_shares_that_are_right_come_before_more_promises() -> None:
    off = trial("pods", replace(wave(0.05), distorted=2), point={"k": 4, "confidence": 0.5})
    right = trial("pods", wave(0.0502), point={"k": 4, "confidence": 0.6})
    assert choose([off, right], rules()) is right
    told = recommend([off], rules())
    assert told is not None
    assert "change the shares of up to 2 values of a wave by more than `distortion`" in told.reasons[0]


def test_where_nobody_keeps_the_rule_it_is_said_what_gives_way() -> None:
    waits, decoys = trial("waits", wave(0.02, waiting=5)), trial("many decoys", wave(0.03, decoys=30))
    assert choose([waits, decoys], rules()) is decoys
    told = recommend([waits, decoys], rules())
    assert told is not None
    assert told.reasons[0] == "No variant does with 5% decoys: this one has 23%."
    assert choose([waits], rules()) is waits
    told = recommend([waits], rules())
    assert told is not None
    assert told.reasons[0] == "With no variant is everybody published at once: with this one up to 5 people wait."
    assert choose([replace(waits, equal=False)], rules()) is None


def test_a_variant_that_kept_people_where_they_were_is_a_row_and_stops_no_other() -> None:
    """`grow` publishes people on who left; some return older than one step from there, and their cells are right."""
    raw = yaml.safe_load(hospital_panel_policy())
    tables = hospital_panel(200, releases=3, seed=2)
    done = sq.rehearse(tables, sq.Policy.model_validate(raw), methods=["grow", "merge"], processes=1)
    trials = {trial.name: trial for trial in done.trials}
    assert len(trials["grow"].waves) == 2
    assert "`corrections: keep`" in str(trials["grow"].why)
    assert trials["merge"].finished
    kept = sq.Policy.model_validate(raw | {"corrections": "keep"})
    again = sq.rehearse(tables, kept, methods=["grow"], processes=1)
    assert again.trials[-1].finished
