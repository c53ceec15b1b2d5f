"""Series and single tables published by pods."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from rich.console import Console

import sequester as sq
from podded import KEY, SEED, Panel, check_people, publish, rules, state_of
from sequester.cli.terminal import show_result
from sequester.errors import DataError, GuaranteeError, PolicyError, StalePlan
from sequester.ingest.encode import encode
from sequester.publish.brief import Brief
from sequester.publish.plan import Plan
from sequester.publish.seated import Labelled, barred


def opened(place: Path, policy: sq.Policy) -> sq.Series:
    return sq.Series.open(place / "panel.ledger", policy, key=KEY)


KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "three seats": ({"protect__confidence": 0.34, "protect__k": 3}, {}),
    "two of three": ({"protect__confidence": 0.67}, {}),
    "two attributes": ({"attributes__other": {"role": "sensitive"}}, {"other": ["x", "y", "z"]}),
    "joint": (
        {"attributes__other": {"role": "sensitive"}, "protect__sensitive": "both"},
        {"other": ["x", "y", "z"]},
    ),
    "insensitive": ({"attributes__town": {"role": "insensitive"}}, {"town": ["u", "v"]}),
    "per value": ({"protect__confidence": {"a": 0.75, "b": 0.34, "*": 0.5}}, {}),
    "ordinary": ({"attributes__value__ordinary": ["a", "b"]}, {}),
    "sets": (
        {"attributes__many": {"role": "sensitive", "kind": "set"}},
        {"many": ["x", "y", "x;y", "z", "w;z", "w"]},
    ),
    "grades": (
        {
            "attributes__value__hierarchy": {"Any": {"X": ["a", "b"], "Y": ["c", "d"]}},
            "attributes__value__grades": {"a": "high"},
        },
        {},
    ),
    "neighbor too": ({"protect__against": ["insider", "neighbor"]}, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_is_published_at_once_over_several_waves(tmp_path: Path, kind: str) -> None:
    policy, cells = KINDS[kind]
    panel = Panel.random(40, 4, seed=5, **cells)
    series = opened(tmp_path, rules(**policy))
    releases = publish(series, panel.tables())
    state = state_of(series)
    assert state.seats is not None
    assert 0 < state.seats.decoy.sum() < state.people
    assert all(release.holds for release in releases)


def test_counts_are_of_people(tmp_path: Path) -> None:
    panel = Panel.random(60, 3, seed=8)
    series = opened(tmp_path, rules())
    publish(series, panel.tables()[:2])
    plan = series.plan(panel.table(2), name="r3", seed=SEED)
    before = [set(panel.waves[0]) | set(panel.waves[1]), set(panel.waves[1])]
    here = set(panel.waves[2])
    assert plan.change.newcomers == len(here - before[0])
    assert plan.change.returned == len((here & before[0]) - before[1])
    assert plan.change.stayers == len(here & before[1])
    assert plan.change.leavers == len(before[1] - here)
    assert plan.waiting.held == plan.waiting.retained == plan.waiting.left_out == 0
    assert plan.pods is not None
    assert plan.decoys == plan.pods.decoys == plan.records - len(here)
    assert plan.pods.fewest >= 1
    assert plan.levers == {}
    assert set(plan.loss) == {"release", "static"}


def test_a_loss_is_that_of_people(tmp_path: Path) -> None:
    panel = Panel.random(50, 2, seed=2)
    series = opened(tmp_path, rules())
    publish(series, [panel.table(0)])
    plan = series.plan(panel.table(1), name="r2", seed=SEED)
    assert plan.candidate is not None
    classes, domains = plan.candidate.classes, plan.candidate.records.quasi_domains
    width = sum(domain.width(lo, hi) for domain, lo, hi in zip(domains, classes.lo, classes.hi, strict=True))
    people = classes.member[: plan.people]
    assert plan.decoys > 0
    assert plan.loss["release"]["ail"] == pytest.approx(float(np.asarray(width)[people].mean()))
    assert plan.candidate.measurement.loss["ail"] == plan.loss["release"]["ail"]


def test_one_person_and_one_value_are_published_beside_decoys(tmp_path: Path) -> None:
    policy = rules(attributes__value__hierarchy={"Any": ["a", "b", "c", "d"]}, protect__k=3, protect__people=1)
    one = Panel({"id": ["p0"], "age": [40], "sex": ["f"], "value": ["a"]}, [[0], [0]])
    release, _ = publish(opened(tmp_path / "one", policy), one.tables())
    assert release.table.num_rows >= 3
    alike = Panel.random(9, 3, seed=3, value=["a"])
    releases = publish(opened(tmp_path / "alike", policy), alike.tables())
    assert releases[0].table.num_rows >= 2 * len(alike.waves[0])


def test_fewer_values_than_a_pod_needs_are_refused(tmp_path: Path) -> None:
    alike = Panel.random(9, 1, seed=3, value=["a"])
    with pytest.raises(GuaranteeError, match="fewer values that are different"):
        opened(tmp_path, rules()).plan(alike.table(0), name="r", seed=SEED)


def test_a_withdrawal_of_consent_takes_effect_at_once(tmp_path: Path) -> None:
    policy = rules(attributes__agrees={"role": "consent", "wait": 3})
    panel = Panel.random(30, 2, seed=4, away=0.0)
    series = opened(tmp_path, policy)
    everybody = len(panel.waves[0])
    first = panel.table(0, agrees=["yes"] * everybody)
    series.publish(first, name="r1", seed=SEED)
    second = panel.table(1, agrees=["no", "no", *["yes"] * (everybody - 2)])
    plan = series.plan(second, name="r2", seed=SEED)
    assert plan.personal.withdrawn == 2
    assert plan.personal.waiting == 0
    assert any("take effect at once" in note for note in plan.notes)
    check_people(series.publish(plan), second["id"].to_pylist()[2:])
    assert series.audit().holds


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    tables = Panel.random(40, 3, seed=6, town=["u", "v"]).tables()
    policy = rules(attributes__town={"role": "insensitive"})
    files = []
    for name in "ab":
        for release in publish(opened(tmp_path / name, policy), tables, check=False):
            assert release.folder is not None
            files.append((release.folder / "data.csv").read_bytes())
    assert files[:3] == files[3:]


def test_a_plan_is_saved_loaded_and_published(tmp_path: Path) -> None:
    tables = Panel.random(40, 2, seed=7).tables()
    series = opened(tmp_path, rules())
    series.publish(tables[0], name="r1", seed=SEED)
    csv.write_csv(tables[1], tmp_path / "r2.csv")
    plan = series.plan(tmp_path / "r2.csv", name="r2", seed=SEED)
    loaded = Plan.load(plan.save(tmp_path / "r2.plan"))
    assert loaded == plan
    edited = json.loads((tmp_path / "r2.plan").read_text())
    edited["pods"]["decoys"] += 1
    (tmp_path / "edited.plan").write_text(json.dumps(edited))
    with pytest.raises(StalePlan, match="edited"):
        series.publish(Plan.load(tmp_path / "edited.plan"))
    check_people(series.publish(loaded), tables[1]["id"].to_pylist())
    assert series.audit().holds


def test_every_row_has_one_weight_however_many_people_its_class_has(tmp_path: Path) -> None:
    panel = Panel.random(60, 2, seed=9)
    series = opened(tmp_path, rules(protect__k=4, protect__inferred=2))
    publish(series, [panel.table(0)])
    plan = series.plan(panel.table(1), name="r2", seed=SEED)
    release = series.publish(plan)
    assert plan.candidate is not None
    assert release.folder is not None
    facts = json.loads((release.folder / "release.json").read_text())
    assert facts["records"] == plan.records
    assert {"pods", "decoys"}.isdisjoint(facts)
    # Of a class only what it must have is told.
    assert (facts["people"], facts["fewest_people"]) == (plan.people, 2)
    assert facts["weight"] == pytest.approx(plan.people / plan.records, abs=1e-6)
    members = release.members()["class"].to_numpy()
    people = np.bincount(members[members >= 0], minlength=len(plan.candidate.classes))
    assert len(set(people / plan.candidate.classes.size)) > 1
    written = csv.read_csv(release.folder / "data.csv")
    assert written["weight"].unique().to_pylist() == [facts["weight"]]
    assert np.sum(written["weight"]) == pytest.approx(plan.people, abs=1e-3)
    assert "decoys" in (release.folder / "dictionary.csv").read_text()
    assert "decoys" in (release.folder / "report.html").read_text()


@pytest.mark.parametrize("weights", ["column", "none"])
def test_a_release_has_a_weight_unless_its_policy_leaves_it_out(tmp_path: Path, weights: str) -> None:
    table = Panel.random(41, 1, seed=5, value=["a", "a", "a", "b"]).table(0)
    release = sq.anonymize(table, rules(protect__k=4, output={"weights": weights}), seed=SEED)
    release.save(tmp_path / "r")
    header = (tmp_path / "r/data.csv").read_text().splitlines()[0].replace('"', "").split(",")
    assert ("weight" in header) is (weights == "column")
    facts = json.loads((tmp_path / "r/release.json").read_text())
    assert [column["name"] for column in facts["columns"]] == header == release.table.column_names
    assert facts["weight"] * facts["records"] == pytest.approx(len(table), abs=1e-3)
    assert "decoys" in (tmp_path / "r/dictionary.csv").read_text()
    assert sq.estimate(tmp_path / "r", "count()").value == (len(table),)


def test_public_files_do_not_depend_on_people_who_do_not_agree(tmp_path: Path) -> None:
    policy, panel = rules(attributes__agrees={"role": "consent"}), Panel.random(60, 2, seed=9)
    seen = []
    for name in "ab":
        files: list[Any] = []
        series = opened(tmp_path / name, policy)
        for wave, here in enumerate(panel.waves):
            agrees = ["no" if person % 5 == 0 else "yes" for person in here]
            table = panel.table(wave, agrees=agrees)
            if name == "b":
                table = table.filter(pa.array([word == "yes" for word in agrees]))
            folder = series.publish(table, name=f"r{wave}", seed=SEED, again=True).folder
            assert folder is not None
            files += [(folder / "data.csv").read_bytes(), (folder / "dictionary.csv").read_bytes()]
            facts = json.loads((folder / "release.json").read_text())
            files.append({**facts, "head": "", "digests": {**facts["digests"], "report.html": ""}})
        seen.append(files)
    assert seen[0] == seen[1]


def test_decoys_show_cells_that_change_of_their_class(tmp_path: Path) -> None:
    policy = rules(attributes__visit={"role": "insensitive", "changes": True})
    panel = Panel.random(60, 2, seed=9)
    series = opened(tmp_path, policy)
    series.publish(panel.table(0, visit=["1"] * len(panel.waves[0])), name="r1", seed=SEED)
    release = series.publish(panel.table(1, visit=["2"] * len(panel.waves[1])), name="r2", seed=SEED)
    assert release.table.num_rows > len(panel.waves[1])
    assert set(release.table["visit"].to_pylist()) == {2} or set(release.table["visit"].to_pylist()) == {"2"}


@pytest.mark.parametrize("changes", [False, True])
def test_a_column_that_tells_people_apart_is_refused(tmp_path: Path, changes: bool) -> None:
    policy = rules(attributes__note={"role": "insensitive", "changes": changes})
    panel = Panel.random(30, 1, seed=9)
    table = panel.table(0, note=[f"n{person}" for person in panel.waves[0]])
    with pytest.raises(DataError, match=r"column 'note': nearly everybody has a cell of her own"):
        opened(tmp_path, policy).plan(table, name="r", seed=SEED)
    with pytest.raises(DataError, match="nearly everybody"):
        sq.anonymize(table, policy)


def test_columns_that_tell_people_apart_together_are_refused(tmp_path: Path) -> None:
    panel = Panel.random(30, 1, seed=9, away=0.0)
    more = {"one": [str(n // 6) for n in range(30)], "other": [str(n % 6) for n in range(30)]}
    policy = rules(**{f"attributes__{name}": {"role": "insensitive"} for name in more})
    with pytest.raises(DataError, match=r"column 'one, other': nearly everybody has a cell of her own in these tog"):
        opened(tmp_path, policy).plan(panel.table(0, **more), name="r", seed=SEED)
    # What changes links nothing, and a decoy has it from one person.
    policy = rules(**{f"attributes__{name}": {"role": "insensitive", "changes": True} for name in more})
    opened(tmp_path / "b", policy).plan(panel.table(0, **more), name="r", seed=SEED)


@pytest.mark.parametrize("method", ["pods", "mondrian"])
def test_sensitive_cells_without_a_value_are_published_as_missing(tmp_path: Path, method: str) -> None:
    policy = rules(attributes__value__missing="category", method={"name": method}, protect__confidence=0.7)
    panel = Panel.random(30, 2, seed=1, away=0.0)
    series = opened(tmp_path, policy)
    for wave, table in enumerate(panel.tables()):
        cells = pa.array([None if value == "d" else value for value in table["value"].to_pylist()])
        release = series.publish(
            table.set_column(table.column_names.index("value"), "value", cells), name=f"r{wave}", seed=SEED
        )
        assert "missing" in release.table["value"].to_pylist()
    assert series.audit().holds


def test_values_that_stay_are_in_pods_beside_values_that_change(tmp_path: Path) -> None:
    policy = rules(attributes__value={"role": "sensitive", "values": "transient", "permanent": ["a", "b"]})
    panel = Panel.random(50, 4, seed=5)
    series = opened(tmp_path, policy)
    for wave in range(4):
        table = panel.table(wave)
        now = [v if v in "ab" else "cd"[(wave + at) % 2] for at, v in enumerate(table["value"].to_pylist())]
        table = table.set_column(table.column_names.index("value"), "value", pa.array(now))
        release = series.publish(table, name=f"r{wave}", seed=SEED, again=True)
        check_people(release, table["id"].to_pylist())
        assert series.audit().holds
    state = state_of(series)
    assert state.seats is not None
    stays = np.array([name in "ab" for name in state.domains["value"].names[0]])[state.values[0]]
    seats: dict[tuple[int, int], set[int]] = {}
    for person in range(state.people):
        label = int(state.values[0, person]) if stays[person] else -1
        seats.setdefault((int(state.seats.type[person]), int(state.seats.seat[person])), set()).add(label)
    assert all(len(labels) == 1 for labels in seats.values())


@pytest.mark.parametrize(("first", "then"), [("mondrian", "pods"), ("pods", "mondrian")])
def test_a_series_by_pods_goes_on_from_one_by_pods_only(tmp_path: Path, first: str, then: str) -> None:
    panel = Panel.random(30, 2, seed=9, away=0.0)
    old = opened(tmp_path, rules(method={"name": first}, protect__confidence=0.6))
    old.publish(panel.table(0), name="r1", seed=SEED)
    policy = rules(series="next", method={"name": then}, protect__confidence=0.6)
    with pytest.raises(PolicyError, match="a series by pods goes on from one by pods"):
        sq.Series.open(tmp_path / "next.ledger", policy, key=KEY, after=tmp_path / "panel.ledger")


def test_a_series_by_pods_goes_on_with_everybodys_seat(tmp_path: Path) -> None:
    panel = Panel.random(30, 3, seed=9)
    publish(opened(tmp_path, rules()), panel.tables()[:2])
    seats = state_of(opened(tmp_path, rules())).seats
    after = sq.Series.open(tmp_path / "next.ledger", rules(series="next"), key=KEY, after=tmp_path / "panel.ledger")
    publish(after, [panel.table(2)])
    found = state_of(after).seats
    assert seats is not None
    assert found is not None
    assert np.array_equal(found.type[: len(seats)], seats.type)
    assert np.array_equal(found.decoy[: len(seats)], seats.decoy)


def test_nobody_is_given_what_cannot_be() -> None:
    table = Panel.random(40, 1, seed=5, many=["x", "y", "x;y", "z"]).table(0)
    policy = rules(
        impossible=[{"sex": "m", "value": "a"}, {"sex": "f", "many": "y"}],
        attributes__many={"role": "sensitive", "kind": "set"},
    )
    snapshot = encode(table, policy)
    brief = Brief.of(policy, snapshot, [0])
    labelled = Labelled.of(snapshot, brief, before=None)
    found = barred(snapshot, brief, labelled)
    assert found is not None
    value, many = (domain.names[0] for domain in snapshot.sensitive_domains)
    for record, row in enumerate(table.to_pylist()):
        for label in range(labelled.sensitive.shape[1]):
            own, elements = value[labelled.sensitive[0, label]], many[labelled.sensitive[1, label]].split(";")
            cannot = (row["sex"] == "m" and own == "a") or (row["sex"] == "f" and "y" in elements)
            assert found[record, label] == (cannot and label != labelled.now[record])


def test_one_table_in_pods() -> None:
    panel = Panel.random(41, 1, seed=5, value=["a", "a", "a", "b"])
    table = panel.table(0)
    release = sq.anonymize(table, rules(protect__k=4), seed=SEED)
    check_people(release, table["id"].to_pylist())
    assert release.table.num_rows > len(table)
    assert release.measures["k"] >= 4
    assert release.measures["confidence"] <= 0.5
    screen = Console(file=io.StringIO(), width=200)
    show_result(release.measurement, screen)
    decoys = release.table.num_rows - len(table)
    assert f"({decoys} decoys among them)" in screen.file.getvalue()  # type: ignore[attr-defined]
    again = sq.anonymize(table, rules(protect__k=4), seed=SEED)
    assert again.table == release.table
    assert release.to_dict()["weight"] == pytest.approx(len(table) / release.table.num_rows, abs=1e-6)


def test_a_table_with_decoys_is_measured_beside_its_original() -> None:
    panel = Panel.random(80, 1, seed=5, value=["a", "a", "a", "b", "c"])
    table, policy = panel.table(0), rules()
    release = sq.anonymize(table, policy, seed=SEED)
    assert release.table.num_rows > len(table)
    found = sq.measure(release.table, policy, original=table, queries=200, seed=1)
    assert (found.records, found.suppressed) == (release.table.num_rows, 0)
    assert found.query_error is not None
    # Decoys that count as people make it worse: there are more of them than 0.1 % of the table.
    other = rules(method={"name": "mondrian"})
    doubled = pa.concat_tables([table, table.slice(0, release.table.num_rows - len(table))])
    counted = sq.measure(release.table, other, original=doubled, queries=200, seed=1)
    assert counted.query_error != found.query_error


def test_history_and_verification_count_people(tmp_path: Path) -> None:
    panel = Panel.random(40, 3, seed=6)
    series = opened(tmp_path, rules())
    publish(series, panel.tables())
    ever = len(set().union(*map(set, panel.waves)))
    entry = series.releases()[-1]
    assert entry.persons == ever < entry.people
    with series._ledger(read_only=True) as ledger:
        assert ledger.verify().people == ever


def test_a_plan_says_how_many_decoys_there_are_and_whose_values_hang_together(tmp_path: Path) -> None:
    panel = Panel.random(60, 2, seed=9)
    series = opened(tmp_path, rules())
    publish(series, [panel.table(0)])
    plan = series.plan(panel.table(1), name="r2", seed=SEED)
    assert plan.pods is not None
    facts = {"frontier as it is: AIL": 0.4, "frontier as it is: decoys": 0.07, "frontier 10 % decoys: AIL": 0.25}
    screen = Console(file=io.StringIO(), width=200)
    show_result(replace(plan, pods=replace(plan.pods, facts=facts)), screen)
    told = screen.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split() for line in told.splitlines() if "%" in line or "as it is" in line][-2:] == [
        ["as", "it", "is", "0.4", "7.0%"],
        ["10", "%", "decoys", "0.25", "-"],
    ]
    assert f"{plan.people} people and {plan.decoys} decoy" in told
    assert f"{plan.decoys / plan.records:.1%} of the rows are about nobody" in told
    assert f"the values of {plan.pods.largest} people at most hang together" in told


def test_decoys_that_must_be_are_counted() -> None:
    """Nine a and one b, couples: eight decoys must be, whatever the pods."""
    policy = rules(attributes__value__hierarchy={"Any": ["a", "b", "c"]})
    cells: dict[str, Any] = {
        "id": [f"p{n}" for n in range(10)],
        "age": [30] * 10,
        "sex": ["f"] * 10,
        "value": [*"aaaaaaaaab"],
    }
    table = Panel(cells, [list(range(10))]).table(0)
    snapshot = encode(table, policy)
    assert Labelled.of(snapshot, Brief.of(policy, snapshot, [0]), before=None).needed == 8
    found = sq.anonymize(table, policy, seed=SEED)
    assert found.table.num_rows == 18
