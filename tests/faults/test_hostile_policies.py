"""Policies and hierarchies that are too large, too deep or contradict themselves: refused in words, in bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import invoke, sequester
from hostile import ANONYMIZE, CHECK, POLICY, TREE, checked, refused, spread
from sequester.domain.tree import from_tree
from sequester.errors import PolicyError

DIGITS = "9" * 5000
LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
)
LARGE = {
    "a comment of 10 MB": (f"#{'x' * 10_000_000}\n{POLICY}", "the file is larger than 1 MB, the most that is read"),
    "a list of 10 MB": (f"{POLICY}x: [{'a, ' * 3_300_000}b]\n", "the file is larger than 1 MB"),
    "many values": (f"{POLICY}x: [{'a, ' * 100_000}b]\n", "more than 50,000 values"),
    "a billion laughs": (f"{POLICY}{LAUGHS}\n", "more than 50,000 values, aliases counted each time"),
    "laughs as a tree": (
        POLICY.replace("attributes:", f"{LAUGHS}\nattributes:").replace(TREE, "*a11"),
        "more than 50,000 values",
    ),
    "open brackets": ("[" * 100_000, "nested too deeply"),
    "nested groups": (f"x: {'{a: ' * 100_000}1{'}' * 100_000}", "nested too deeply"),
    "dashes": ("- " * 100_000, "nested too deeply"),
    "an alias in itself": (f"{POLICY}x: &x [*x]\n", "an alias may not contain itself"),
}
WRONG = [
    ("k: 2", f"k: {DIGITS}", "protect.k: must be a whole number"),
    ("k: 2", f"k: {DIGITS[:900]}", "protect.k: must be at most 1,000,000,000"),
    ("k: 2", "k: 1000000001", "protect.k: must be at most 1,000,000,000"),
    ("k: 2", "k: 1e400", "protect.k: must be"),
    ("k: 2", "k: .nan", "protect.k: must be a whole number"),
    ("k: 2", "k: .inf", "protect.k: must be a whole number"),
    ("k: 2", "k: 2, k: 3", "protect.k: given twice"),
    ("[0, 120]", f"[0, {DIGITS}]", "range: must be two numbers"),
    ("[0, 120]", f"[0, {DIGITS[:900]}]", "range: must be two numbers"),
    ("[0, 120]", "[0, .nan]", "range: must be two numbers"),
    ("[0, 120]", "[0, .inf]", "range: must be two numbers"),
    ("range: [0, 120]", "levels: [1.0e-300]", "the width is too small"),
    ("version: 1", f"version: {DIGITS[:900]}", "version: must be"),
    ("number, range: [0, 120]", f"code, length: {DIGITS[:30]}", "length: must be at most 255"),
    ("number, range: [0, 120]", f'date, format: "{"%d" * 200}"', "format: is no way to write a date"),
    ("number, range: [0, 120]", 'date, format: "%Q"', "format: is no way to write a date"),
    ("number, range: [0, 120]", 'date, format: "\\0%d"', "format: is no way to write a date"),
    ("k: 2}", f"k: 2}}\nmethod: {{name: cluster, clusters: {DIGITS[:400]}}}", "clusters: must be at most"),
    ("clinic", "!!python/object:os.system", "tags (!name) are not understood"),
    ("age:", "? [a, b]\n  :", "a key must be a single word"),
    ("protect:", "\tprotect:", "a tab is used for indentation"),
]
RAW = {
    "a null byte": (POLICY.encode() + b"\0", "control characters"),
    "only null bytes": (b"\0" * 100_000, "control characters"),
    "latin-1": (POLICY.encode() + b"# \xff", "not UTF-8"),
    "utf-16": (POLICY.encode("utf-16"), "not UTF-8"),
    "nothing": (b"", "the file is empty"),
    "a list": (b"- a", "a policy is a group of keys"),
    "null": (b"null", "a policy is a group of keys"),
    "two documents": (b"---\n---\n", "one document is expected"),
}
FILES = {
    "a loop": ("f;g\ng;f\nm;g\n", "names 2 different groups"),
    "groups above each other": ("f;a;b;*\nm;b;a;*\n", "names 2 different groups"),
    "ragged rows": ("f;a;*\nm;*\n", "2 columns instead of 3"),
    "two parents": ("f;a;*\nf;b;*\nm;a;*\n", "lies in several groups"),
    "an open quote": ('"f;*\nm;*\n', "a quoted label is not closed"),
    "a label of 200,000 letters": (f"f;{'x' * 200_000}\nm;*\n", "more than 131,072 letters"),
    "300 levels": (
        "\n".join(";".join([leaf, *(f"g{n}" for n in range(300))]) for leaf in "fm"),
        "more than 100 levels",
    ),
    "a million values": ("\n".join(f"v{n};*" for n in range(1_000_001)), "more than 1,000,000 labels"),
    "20 MB": ("f;*\n" * 5_000_000, "larger than 16 MB"),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_policy_that_nobody_wrote_by_hand_is_refused(tmp_path: Path, case: str) -> None:
    text, words = LARGE[case]
    spread(tmp_path, policy=text)
    assert words in refused("check", "policy.yaml", cwd=tmp_path)


def test_a_policy_of_ten_megabytes_is_refused_by_a_process_of_its_own(tmp_path: Path) -> None:
    spread(tmp_path, policy=LARGE["a list of 10 MB"][0])
    before = set(tmp_path.rglob("*"))
    assert "larger than 1 MB" in checked(sequester(*CHECK, cwd=tmp_path), (6,), before, tmp_path)


@pytest.mark.parametrize(("right", "wrong", "words"), WRONG, ids=[wrong[:24] for _, wrong, _ in WRONG])
def test_a_setting_of_any_size_is_refused_by_its_key(tmp_path: Path, right: str, wrong: str, words: str) -> None:
    assert right in POLICY
    spread(tmp_path, policy=POLICY.replace(right, wrong, 1))
    for command in (CHECK, ANONYMIZE):
        assert words in refused(*command, cwd=tmp_path)


@pytest.mark.parametrize("case", RAW)
def test_bytes_that_are_no_policy_are_refused(tmp_path: Path, case: str) -> None:
    data, words = RAW[case]
    spread(tmp_path)
    (tmp_path / "policy.yaml").write_bytes(data)
    assert words in refused(*CHECK, cwd=tmp_path)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    spread(tmp_path, policy=f"\ufeff{POLICY.replace(TREE, 'tree.csv')}")
    (tmp_path / "tree.csv").write_text("\ufefff;*\nm;*\n", encoding="utf-8")
    assert invoke(*CHECK, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("case", FILES)
def test_a_hierarchy_file_that_is_no_tree_is_refused(tmp_path: Path, case: str) -> None:
    text, words = FILES[case]
    spread(tmp_path, policy=POLICY.replace(TREE, "tree.csv"))
    (tmp_path / "tree.csv").write_text(text, encoding="utf-8")
    said = refused(*CHECK, cwd=tmp_path)
    assert "attributes.sex.hierarchy" in said
    assert words in said


@pytest.mark.parametrize("deep", [101, 300, 5000])
def test_trees_of_more_than_a_hundred_levels_are_refused(tmp_path: Path, deep: int) -> None:
    spread(tmp_path, policy=POLICY.replace(TREE, tree(deep)))
    said = refused(*CHECK, cwd=tmp_path)
    assert "more than 100 levels" in said or "nested too deeply" in said
    spread(tmp_path, policy=POLICY.replace(TREE, "[" * (300 + deep) + "f, m" + "]" * (300 + deep)))
    assert "nested too deeply" in refused(*CHECK, cwd=tmp_path)


def tree(deep: int) -> str:
    """A tree in which one value more goes off at every level."""
    return "".join(f"{{g{n}: [v{n}, " for n in range(deep)) + "f, m" + "]}" * deep


def test_trees_from_a_program_are_as_deep_at_most() -> None:
    groups: dict[str, object] = {"g": ["f", "m"]}
    lists: list[object] = ["f", "m"]
    for number in range(20_000):
        groups, lists = {f"g{number}": groups}, [lists]
    for given in (groups, lists):
        with pytest.raises(PolicyError, match=r"more than 100 levels|nested too deeply"):
            from_tree(given)


@pytest.mark.parametrize("method", ["mondrian", "full-domain", "specialize", "cluster"])
def test_a_tree_of_ninety_levels_is_published(tmp_path: Path, method: str) -> None:
    spread(tmp_path, policy=f"{POLICY.replace(TREE, tree(90))}method: {{name: {method}}}\n")
    done = invoke(*ANONYMIZE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seed", ["-1", "1e5", DIGITS])
def test_a_seed_that_is_no_number_is_a_mistake_in_the_command(tmp_path: Path, seed: str) -> None:
    spread(tmp_path)
    refused(*ANONYMIZE, "--seed", seed, cwd=tmp_path, codes=(2,))
