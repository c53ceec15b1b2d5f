"""Policies: what is accepted, and that everything wrong is reported at once with file, line and key."""

from __future__ import annotations

import copy
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sequester.errors import PolicyError, Problem
from sequester.policy import Policy
from sequester.policy.describe import notes, promises, treatment

CONTRACT = """\
version: 1
series: st-vincent-admissions
person: patient_id
attributes:
  age:       {role: quasi-identifier, kind: number, range: [0, 120]}
  gender:    {role: quasi-identifier, kind: category, hierarchy: {Person: [Male, Female]}}
  education: {role: quasi-identifier, kind: category, hierarchy: hierarchies/education.csv}
  zip:       {role: quasi-identifier, kind: code, length: 5}
  admitted:  {role: quasi-identifier, kind: date, levels: [day, month, quarter, year]}
  diagnosis: {role: sensitive, values: permanent, ordinary: [none, flu]}
  city:      {role: quasi-identifier, kind: category, hierarchy: hierarchies/city.csv, changes: true}
  name:      {role: identifier}
  ward:      {role: insensitive}
protect:
  k: 5
  confidence: 0.5
  against: [insider, neighbor]
  diversity: {kind: entropy, l: 3}
  lifetime: {l: 2, strategy: constant-ratio, releases: 20}
method: {name: mondrian}
infeasible: hold-back
output: {format: csv, numbers: interval}
"""

SMALL: dict[str, Any] = {
    "version": 1,
    "series": "s",
    "attributes": {"age": {"role": "quasi-identifier", "kind": "number"}, "illness": {"role": "sensitive"}},
    "protect": {"k": 5, "confidence": 0.5},
}


def changed(*path: str, to: Any) -> dict[str, Any]:
    """SMALL with one key replaced (or, with None, removed)."""
    raw = copy.deepcopy(SMALL)
    place: Any = raw
    for part in path[:-1]:
        place = place.setdefault(part, {})
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return raw


def problems_of(raw: Any) -> dict[str | None, str]:
    with pytest.raises(PolicyError) as caught:
        Policy.model_validate(raw)
    return {problem.key: problem.message for problem in caught.value.problems}


def problems_in(folder: Path, text: str) -> tuple[Problem, ...]:
    file = folder / "policy.yaml"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        Policy.load(file)
    return caught.value.problems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / "hierarchies/education.csv").write_text("School;Low;*\nCollege;High;*\nMaster;High;*\n")
    (tmp_path / "hierarchies/city.csv").write_text("Paris;France;*\nLyon;France;*\nRome;Italy;*\n")
    return tmp_path


def test_the_policy_of_the_contract_loads(folder: Path) -> None:
    (folder / "policy.yaml").write_text(CONTRACT)
    policy = Policy.load(folder / "policy.yaml")
    assert list(policy.quasi_identifiers) == ["age", "gender", "education", "zip", "admitted", "city"]
    assert policy.sensitive["diagnosis"].ordinary == ("none", "flu")
    assert policy.quasi_identifiers["city"].changes
    assert policy.insensitive == ("ward",)
    assert policy.protect.against == ("insider", "neighbor")
    assert policy.path("hierarchies/city.csv") == folder / "hierarchies/city.csv"


def test_a_file_and_the_same_mapping_give_the_same_policy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "policy.yaml").write_text(json.dumps(SMALL))
    assert Policy.load("policy.yaml") == Policy.model_validate(SMALL)


def test_every_problem_has_file_line_and_key(folder: Path) -> None:
    found = problems_in(
        folder,
        """\
        version: 1
        series: two words
        attributes:
          age:
            role: quasi-identifier
            kind: number
            rnage: [0, 120]
          zip: {role: quasi-identifier, kind: code}
          zip: {role: identifier}
          job: {role: quasi-identifier, hierarchy: absent.csv}
          illness: {role: sensitiv}
        protect:
          k: many
          against: []
        """,
    )
    assert {problem.file for problem in found} == {str(folder / "policy.yaml")}
    assert [(problem.line, problem.key) for problem in found] == [
        (2, "series"),
        (7, "attributes.age.rnage"),
        (8, "attributes.zip.length"),
        (9, "attributes.zip"),
        (10, "attributes.job.hierarchy"),
        (11, "attributes.illness.role"),
        (13, "protect.k"),
        (14, "protect.against"),
    ]


def test_a_problem_reads_as_file_line_key_and_message(folder: Path) -> None:
    (problem,) = problems_in(folder, json.dumps(changed("protect", "k", to=0)))
    assert str(problem) == f"{folder / 'policy.yaml'}:1: protect.k: must be at least 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("- a\n- b\n", "a policy is a group of keys"),
        ("just text", "a policy is a group of keys"),
        ("a: [1, 2", "not valid YAML"),
        ("a:\n\tb: 1", "use spaces"),
        ("a: b: c", "a colon is not expected here"),
        ("a: 'b", "not closed"),
        ("a: *b", "has no anchor"),
        ("a: 1\n---\nb: 1\n", "one document is expected"),
        ("a: \x07", "control characters"),
        ("[" * 1500, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(PolicyError, match=message) as caught:
        Policy.load(file)
    assert caught.value.problems[0].file == str(file)


def test_a_missing_file_a_folder_and_other_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="there is no such file"):
        Policy.load(tmp_path / "absent.yaml")
    with pytest.raises(PolicyError, match="this is a folder"):
        Policy.load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("series: caf\u00e9".encode("latin-1"))
    with pytest.raises(PolicyError, match="not UTF-8"):
        Policy.load(tmp_path / "latin.yaml")


def test_aliases_that_expand_without_end_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = problems_in(tmp_path, "\n".join(lines))
    assert "aliases" in problem.message
    found = problems_in(tmp_path, "series: &s [*s]\n")
    assert any("an alias may not contain itself" in problem.message for problem in found)


def test_tags_are_refused_and_nothing_is_constructed(tmp_path: Path) -> None:
    found = problems_in(tmp_path, "series: !!python/object/apply:os.getcwd []\n")
    assert any(problem.key == "series" and "tags" in problem.message for problem in found)


def test_scalars_are_read_as_in_yaml_1_2(tmp_path: Path) -> None:
    raw = """\
    version: 1
    series: on
    person: 007
    attributes:
      a: {role: quasi-identifier, hierarchy: {All: [no, yes, 01, 1.50, true, 2020-01-31]}}
      1: {role: sensitive, ordinary: [none, off, 3]}
    protect: {k: 2, confidence: {off: 0.5, 3: 0.25}}
    """
    (tmp_path / "policy.yaml").write_text(textwrap.dedent(raw))
    policy = Policy.load(tmp_path / "policy.yaml")
    assert (policy.series, policy.person) == ("on", "007")
    assert policy.quasi_identifiers["a"].hierarchy == {"All": ["no", "yes", "01", "1.50", "true", "2020-01-31"]}
    assert policy.sensitive["1"].ordinary == ("none", "off", "3")
    assert policy.protect.confidence == {"off": 0.5, "3": 0.25}


def test_a_yes_is_not_a_boolean(tmp_path: Path) -> None:
    raw = changed("attributes", "age", "changes", to="yes")
    assert problems_of(raw) == {
        "attributes.age.changes": "must be true or false, or for a number or date of the quasi-identifiers "
        "{by: [least, most]}"
    }


@pytest.mark.parametrize(
    ("path", "value", "key", "message"),
    [
        (("persn",), "id", "persn", 'did you mean "person"'),
        (("version",), 2, "version", "must be one of: 1"),
        (("version",), True, "version", "must be one of: 1"),
        (("series",), None, "series", "is missing"),
        (("attributes",), {}, "attributes", "must not be empty"),
        (("attributes",), [], "attributes", "must be a group of keys"),
        (("protect",), None, "protect", "is missing; write for example `protect: {k: 5}`"),
        (("protect",), "k", "protect", "must be a group of keys"),
        (("protect", "k"), 2.5, "protect.k", "a whole number"),
        (("protect", "k"), "5", "protect.k", "a whole number"),
        (("protect", "confidence"), 1.5, "protect.confidence", "above 0 and at most 1"),
        (("protect", "confidence"), float("nan"), "protect.confidence", "above 0 and at most 1"),
        (("protect", "confidence"), {"flu": 0}, "protect.confidence.flu", "above 0"),
        (("protect", "against"), ["insidr"], "protect.against", "outsider, neighbor, insider, lifetime"),
        (("protect", "closeness"), 0.2, "protect.closeness", "closeness: {t: 0.2}"),
        (("method",), "mondrian", "method", "method: {name: mondrian}"),
        (("method",), {}, "method.name", "is missing; it is one of: mondrian"),
        (("method",), {"name": "mondrain"}, "method.name", 'did you mean "mondrian"'),
        (("method",), {"name": "mondrian", "cut": "gain"}, "method.cut", 'did you mean "cuts"'),
        (("output",), {"format": "xls"}, "output.format", "must be one of: csv, parquet"),
        (("input",), {"delimiter": "::"}, "input.delimiter", "must be one character"),
        (("input",), {"missing": "NA"}, "input.missing", "must be a list"),
        (("attributes", "age"), 3, "attributes.age", "must be a group of keys"),
        (("attributes", "age"), {}, "attributes.age.role", "is missing; it is one of: identifier"),
        (("attributes", "age", "role"), "quasi", "attributes.age.role", "must be one of"),
        (("attributes", "age", "kind"), "numbr", "attributes.age.kind", 'did you mean "number"'),
        (("attributes", "age", "ordinary"), [], "attributes.age.ordinary", "only sensitive attributes have this key"),
        (("attributes", "age", "range"), [1], "attributes.age.range", "two numbers"),
        (("attributes", "age", "range"), [0, float("inf")], "attributes.age.range", "two numbers"),
        (("attributes", "age", "levels"), ["day", 5], "attributes.age.levels", "must be a list of widths"),
        (("attributes", "zip.code"), {"role": "x"}, 'attributes."zip.code".role', "must be one of"),
    ],
)
def test_a_wrong_key_is_named_with_what_is_expected(path: tuple[str, ...], value: Any, key: str, message: str) -> None:
    found = problems_of(changed(*path, to=value))
    assert message in found[key]


def test_an_unknown_key_lists_what_is_available() -> None:
    found = problems_of(changed("protect", "l", to=3))
    available = found["protect.l"].split("Available: ")[1].split(", ")
    assert available == list(Policy.model_fields["protect"].annotation.model_fields)  # type: ignore[union-attr]


def attribute(**settings: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", **settings}


def sensitive(**settings: Any) -> dict[str, Any]:
    return {"role": "sensitive", **settings}


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        (attribute(kind="code"), "length", "kind: code needs the number of characters"),
        (attribute(length=5), "length", "only goes with kind: code"),
        (attribute(range=[0, 1]), "range", "only goes with kind: number"),
        (attribute(kind="code", length=5, levels=[5]), "levels", "only goes with kind: number or kind: date"),
        (attribute(kind="number", hierarchy={"a": ["b"]}), "hierarchy", "only goes with kind: category"),
        (attribute(kind="number", format="%Y"), "format", "only goes with kind: date"),
        (attribute(kind="number", range=[5, 5]), "range", "must be below the highest"),
        (attribute(kind="number", bands=[0, 5, 5]), "bands", "must increase"),
        (attribute(kind="number", bands=[0]), "bands", "at least two edges"),
        (attribute(kind="number", bands=[0, 5], levels=[5]), "bands", "either bands or levels"),
        (attribute(kind="number", levels=[5, 12]), "levels", "a multiple of the one before"),
        (attribute(kind="number", levels=[5, 5]), "levels", "a multiple of the one before"),
        (attribute(kind="number", levels=[0.1, 0.30000000000000004]), "levels", "a multiple of the one before"),
        (attribute(kind="number", levels=[0, 5]), "levels", "above 0"),
        (attribute(kind="number", levels=[]), "levels", "must not be empty"),
        (attribute(kind="number", levels=["day", "year"]), "levels", "are widths"),
        (attribute(kind="date", levels=[5, 10]), "levels", "steps of the calendar"),
        (attribute(kind="date", levels=["year", "month"]), "levels", "from fine to coarse"),
        (attribute(kind="date", levels=["month", "month"]), "levels", "from fine to coarse"),
        (attribute(hierarchy={"All": {"A": ["x"], "B": ["x"]}}), "hierarchy", "several groups"),
        (sensitive(kind="number"), "bands", "protected in bands"),
        (sensitive(bands=[0, 1]), "bands", "only goes with kind: number"),
        (sensitive(kind="number", bands=[2, 1]), "bands", "must increase"),
        (sensitive(ordinary=["a"], confidence={"a": 0.5}), "confidence.a", "this value is ordinary"),
        (sensitive(hierarchy={"All": ["Flu", "Cold"]}, ordinary=["flu"]), "ordinary[0]", 'did you mean "Flu"'),
        (sensitive(hierarchy={"All": ["a"]}, confidence={"*": 0.5, "b": 0.5}), "confidence.b", "not a value"),
        (sensitive(kind="number", bands=[0, 10, 20], ordinary=["x"]), "ordinary[0]", "not a value"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(given: dict[str, Any], key: str, message: str) -> None:
    raw = changed("attributes", "x", to=given)
    assert message in problems_of(raw)[f"attributes.x.{key}"]


@pytest.mark.parametrize(
    ("protect", "key", "message"),
    [
        ({"against": []}, "against", "must not be empty"),
        ({"diversity": {"kind": "recursive", "l": 2}}, "diversity.c", "is missing"),
        ({"diversity": {"kind": "distinct", "l": 2, "c": 3}}, "diversity.c", "only goes with kind: recursive"),
        ({"diversity": {"kind": "distinct", "l": 2.5}}, "diversity.l", "whole number"),
        ({"diversity": {"kind": "recursive", "c": 1, "l": 2.5}}, "diversity.l", "whole number"),
        ({"closeness": {"t": 0.2, "distance": "hierarchical"}}, "closeness.distance", "needs a hierarchy"),
        ({"lifetime": {"l": 2}}, "lifetime.releases", "is missing"),
        ({"lifetime": {"l": 2, "strategy": "geometric"}}, "lifetime.alpha", "is missing"),
        ({"lifetime": {"l": 2, "releases": 3, "alpha": 2}}, "lifetime.alpha", "only goes with strategy: geometric"),
    ],
)
def test_promises_that_make_no_sense_are_refused(protect: dict[str, Any], key: str, message: str) -> None:
    assert message in problems_of(changed("protect", to={"k": 5, **protect}))[f"protect.{key}"]


def test_a_policy_needs_a_quasi_identifier() -> None:
    found = problems_of(changed("attributes", "age", "role", to="insensitive") | {"protect": {"k": 2}})
    assert "nothing to generalize" in found["attributes"]


def test_promises_about_values_need_a_sensitive_attribute() -> None:
    raw = changed("attributes", "illness", to=None)
    promised = {
        "confidence": 0.5,
        "alpha": 0.5,
        "diversity": {"kind": "distinct", "l": 2},
        "closeness": {"t": 0.5},
        "lifetime": {"l": 2, "releases": 3},
    }
    found = problems_of(raw | {"protect": {"k": 2, **promised}})
    assert set(found) == {f"protect.{key}" for key in promised}
    assert all("no attribute has the role sensitive" in message for message in found.values())


def test_the_person_column_is_an_attribute_only_as_an_identifier() -> None:
    raw = changed("person", to="age")
    assert "never published" in problems_of(raw)["attributes.age"]
    raw["attributes"]["id"] = {"role": "identifier"}
    raw["person"] = "id"
    assert Policy.model_validate(raw).person == "id"


def test_bounds_per_value_need_a_single_sensitive_attribute() -> None:
    raw = changed("attributes", "job", to={"role": "sensitive"})
    raw["protect"] = {"k": 2, "confidence": {"flu": 0.5}, "alpha": {"flu": 0.5}}
    found = problems_of(raw)
    assert set(found) == {"protect.confidence", "protect.alpha"}


def test_bounds_per_value_must_name_values_of_the_hierarchy() -> None:
    raw = changed("attributes", "illness", "hierarchy", to={"All": ["flu", "hiv"]})
    raw["protect"]["confidence"] = {"flue": 0.5, "*": 0.9}
    assert problems_of(raw) == {"protect.confidence.flue": 'not a value of the attribute; did you mean "flu"?'}


def test_a_wrong_hierarchy_file_is_a_problem_at_its_own_line(folder: Path) -> None:
    (folder / "hierarchies/city.csv").write_text("Paris;France;*\nLyon;*\nRome;Italy;*\n")
    found = problems_in(folder, CONTRACT)
    assert [(p.file, p.line, p.key) for p in found] == [
        (str(folder / "hierarchies/city.csv"), 2, "attributes.city.hierarchy")
    ]


def test_hierarchies_are_checked_even_if_other_keys_are_wrong() -> None:
    raw = changed("attributes", "job", to=attribute(hierarchy={"A": [], "B": ["b"]}))
    raw["protect"]["k"] = "many"
    assert set(problems_of(raw)) == {"protect.k", "attributes.job.hierarchy"}


def test_open_ended_bands_are_understood(tmp_path: Path) -> None:
    raw = """\
    version: 1
    series: s
    attributes:
      a: {role: quasi-identifier}
      pay: {role: sensitive, kind: number, bands: [-.inf, 0, 1000, .inf]}
    protect: {k: 2}
    """
    (tmp_path / "policy.yaml").write_text(textwrap.dedent(raw))
    bands = Policy.load(tmp_path / "policy.yaml").sensitive["pay"].bands
    assert bands == (float("-inf"), 0, 1000, float("inf"))


def test_the_constructor_checks_across_keys_too() -> None:
    with pytest.raises(ValidationError, match="nothing to generalize"):
        Policy(version=1, series="s", attributes={"a": {"role": "identifier"}}, protect={"k": 2})  # type: ignore


def test_a_policy_is_its_own_validation() -> None:
    policy = Policy.model_validate(SMALL)
    assert Policy.model_validate(policy) is policy


nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["number", "sensitive", "day", "*", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "k", "l", "role"]), inner),
    max_leaves=4,
)
places = st.sampled_from(
    [(key,) for key in Policy.model_fields]
    + [("attributes", "age", key) for key in ("role", "kind", "hierarchy", "range", "bands", "levels", "length")]
    + [("attributes", "illness", key) for key in ("kind", "bands", "ordinary", "confidence", "hierarchy")]
    + [("protect", key) for key in ("confidence", "against", "diversity", "closeness", "alpha", "lifetime", "k_map")]
)


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(places, nonsense), min_size=1, max_size=3))
def test_nonsense_is_a_policy_error_and_nothing_else(changes: list[tuple[tuple[str, ...], Any]]) -> None:
    raw = copy.deepcopy(SMALL)
    for path, value in changes:
        place: Any = raw
        for part in path[:-1]:
            place = place[part] if isinstance(place, dict) and isinstance(place.get(part), dict) else {}
        place[path[-1]] = value
    problems: tuple[Problem, ...] = ()
    try:
        Policy.model_validate(raw)
    except PolicyError as error:
        problems = error.problems
    # Whatever was wrong is said in our words, not in those of the validation library.
    assert not any("Input should" in problem.message for problem in problems)


def test_the_json_schema_describes_every_key() -> None:
    schema = Policy.model_json_schema()
    models = [schema, *schema["$defs"].values()]
    assert all(model["additionalProperties"] is False and model["description"] for model in models)
    silent = [
        (model["title"], key)
        for model in models
        for key, field in model["properties"].items()
        if not {"description", "$ref"} & set(field)
    ]
    assert silent == []


def test_a_policy_is_described_in_sentences(folder: Path) -> None:
    (folder / "policy.yaml").write_text(CONTRACT)
    policy = Policy.load(folder / "policy.yaml")
    said = promises(policy)
    assert [str(promise) for promise in said[:2]] == [
        "Every class has at least 5 people.",
        "Ordinary values aside, nobody is tied to one value of diagnosis with more than 50% confidence by her class.",
    ]
    assert [(promise.about, promise.against) for promise in said] == [
        *[("each release", "outsider")] * 3,
        *[("the series", "insider")] * 2,
        *[("the series", "neighbor")] * 3,
    ]
    assert treatment(policy.attributes["age"]) == "0 to 120, any interval"
    assert notes(policy) == ["lifetime is about transient values, and no sensitive attribute has values: transient."]


def test_every_kind_of_promise_has_a_sentence() -> None:
    raw = changed("attributes", "job", to=sensitive(confidence={"clerk": 0.25, "*": 0.75}))
    raw["protect"] |= {
        "alpha": 0.3,
        "closeness": {"t": 0.2, "distance": "ordered"},
        "diversity": {"kind": "recursive", "c": 3, "l": 2},
        "k_map": {"k": 7, "population": "people.csv"},
        "sensitive": "both",
    }
    said = "\n".join(map(str, promises(Policy.model_validate(raw))))
    for words in ("25%", "75%", "30%", "within 0.2", "(3,2)-diverse", "at least 7 people of people.csv", "combination"):
        assert words in said


def test_notes_say_what_a_method_cannot_do() -> None:
    raw = changed("method", to={"name": "full-domain"})
    raw["attributes"]["city"] = attribute()
    said = notes(Policy.model_validate(raw))
    assert "full-domain can only keep or suppress age: give it levels." in said
    assert "full-domain can only keep or suppress city: give it a hierarchy." in said
    raw["attributes"]["age"]["levels"] = [5, 10]
    assert not any("suppress age" in note for note in notes(Policy.model_validate(raw)))


def test_a_width_too_small_to_divide_by_is_a_problem_and_no_crash() -> None:
    raw = changed("attributes", "age", "levels", to=[2.2250738585e-313, 1.0])
    assert "multiple" in problems_of(raw)["attributes.age.levels"]


CHANGING = {"role": "sensitive", "values": "transient"}


@pytest.mark.parametrize(
    ("beside", "key", "message"),
    [
        ({"role": "insensitive"}, "attributes.beside", "would link a person's rows.*changes: true"),
        ({"role": "sensitive"}, "attributes.beside", "stays with a person and would link.*table of its own"),
        (CHANGING | {"permanent": ["HIV"]}, "attributes.beside.permanent", "publish ill in a table of its own"),
    ],
    ids=["insensitive", "permanent", "some stay"],
)
def test_nothing_that_links_rows_stands_beside_values_that_change(beside: Any, key: str, message: str) -> None:
    raw = {
        "version": 1,
        "series": "s",
        "attributes": {"age": {"role": "quasi-identifier"}, "ill": CHANGING, "beside": beside},
        "protect": {
            "k": 2, "confidence": 0.5, "lifetime": {"l": 2, "releases": 3}, "against": ["insider", "lifetime"],
        },
    }  # fmt: skip
    assert re.search(message, problems_of(raw)[key])


def test_what_may_change_too_or_stands_alone_links_nothing() -> None:
    protect = {"k": 2, "lifetime": {"l": 2, "releases": 3}, "against": ["lifetime"]}
    for beside in ({"role": "insensitive", "changes": True}, CHANGING, {"role": "quasi-identifier"}):
        attributes = {"age": {"role": "quasi-identifier"}, "ill": CHANGING, "beside": beside}
        assert Policy.model_validate({"version": 1, "series": "s", "attributes": attributes, "protect": protect})
