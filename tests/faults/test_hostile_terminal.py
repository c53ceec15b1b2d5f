"""Names may hold what a terminal acts on; it is spelled out wherever it is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import invoke, sequester, sequester_on_a_terminal
from hostile import ANONYMIZE, CHECK, POLICY, TABLE, spread
from sequester.visible import visible, visible_json

TITLE = "\x1b]0;evil\x07"
ACTING = [TITLE, "\x1b[2J", "\r", "\x9b2J", "\x7f", "\u202e", "\u2066", "\u2028", "\x08", "\x00"]


def acts(text: str) -> bool:
    return any(sign in text for sign in "\x00\x07\x08\r\x1b\x7f\x9b\u202e\u2066\u2028")


def yaml_key(name: str) -> str:
    return json.dumps(name)


def named(folder: Path, name: str) -> Path:
    """The column `note` under another name."""
    header = f'"{name}"'
    table = TABLE.replace("note,", f"{header},", 1)
    return spread(folder, policy=POLICY.replace("  note:", f"  {yaml_key(name)}:"), table=table)


@pytest.mark.parametrize("sign", [sign for sign in ACTING if sign != "\x00"], ids=ascii)
def test_a_header_is_spelled_out_by_every_command(tmp_path: Path, sign: str) -> None:
    named(tmp_path, f"no{sign}te")
    for command in (
        CHECK,
        (*CHECK, "--format", "json"),
        ANONYMIZE,
        (*ANONYMIZE, "--force", "--format", "json"),
        ("plan", "data.csv", "-p", "policy.yaml", "--recipient", sign, "--purpose", sign),
        ("plan", "data.csv", "-p", "policy.yaml", "--recipient", sign, "--format", "json"),
        ("publish", "data.csv", "-p", "policy.yaml", "--yes", "--recipient", f"x{sign}", "--name", "q1"),
        ("history", "-p", "policy.yaml"),
        ("show", "1", "-p", "policy.yaml"),
        ("init", "data.csv", "-o", "new.yaml"),
        ("init", "data.csv", "-o", "-"),
    ):
        done = invoke(*command, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
        assert not acts(done.stdout + done.stderr), command


def test_problems_quote_names_keys_and_files_spelled_out(tmp_path: Path) -> None:
    spread(tmp_path, policy=POLICY.replace("  note:", f"  {yaml_key(f'no{TITLE}te')}:"))
    done = sequester(*CHECK, cwd=tmp_path)
    assert done.returncode == 6
    assert r"column 'no\x1b]0;evil\x07te': the table has no such column" in done.stderr
    spread(tmp_path, policy=POLICY.replace("protect:", f"{yaml_key(f'x{TITLE}')}: 1\nprotect:"))
    done = sequester("check", "policy.yaml", cwd=tmp_path)
    assert r"\x1b]0;evil\x07" in done.stderr
    assert not acts(done.stderr)
    for command in (
        ("check", f"{TITLE}.yaml"),
        ("check", "policy.yaml", f"{TITLE}.csv"),
        (f"{TITLE}",),
        ("check", TITLE, TITLE, TITLE),
    ):
        done = invoke(*command, cwd=tmp_path)
        assert done.returncode in (2, 6)
        assert not acts(done.stdout + done.stderr), command


def test_a_line_end_in_a_name_begins_no_message_of_its_own(tmp_path: Path) -> None:
    spread(tmp_path, policy=POLICY.replace("  note:", f"  {yaml_key('no' + chr(10) + 'error: fake')}:"))
    done = invoke(*CHECK, cwd=tmp_path)
    assert done.returncode == 6
    assert len(done.stderr.splitlines()) == 1


def test_a_terminal_gets_no_title_from_a_header(tmp_path: Path) -> None:
    named(tmp_path, f"no{TITLE}te")
    code, written = sequester_on_a_terminal(*CHECK, cwd=tmp_path)
    assert code == 0
    assert "\x1b]0;" not in written
    assert "\x07" not in written
    code, written = sequester_on_a_terminal(*ANONYMIZE, "-o", f"out{TITLE}", cwd=tmp_path)
    assert code == 0
    assert "\x1b]0;" not in written
    assert r"out\x1b]0;evil" in written


@pytest.mark.parametrize("sign", ACTING, ids=ascii)
def test_what_acts_is_spelled_out_and_json_stays_what_it_was(sign: str) -> None:
    assert not acts(visible(sign))
    data: dict[str, Any] = {sign: [sign, "ä", "\u200d", "日本"]}
    text = visible_json(json.dumps(data, ensure_ascii=False, indent=2))
    assert not acts(text)
    assert json.loads(text) == data
    assert "日本" in text


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("age", "Größe", "نام\u200cخانوادگی", "日本 x", "a\u00a0b"):
        assert visible(text) == text
    assert visible("a\nb", lines=True) == "a\nb"
    assert visible("a\nb") == r"a\nb"
