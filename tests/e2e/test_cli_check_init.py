"""`sequester init` and `sequester check` as they are used: exit codes, what goes where, and nothing private."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sequester.cli.app import app

CANARY = "Xq7canary"
POLICY = """\
version: 1
series: clinic
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 120]}
  sex: {role: quasi-identifier, hierarchy: {Person: [f, m]}}
  illness: {role: sensitive, missing: suppress}
protect: {k: 2, confidence: 0.8}
"""
DATA = "id,age,sex,illness\n1,30,f,flu\n2,40,m,flu\n3,50,m,hiv\n4,50,m,\n"


def sequester(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sequester", *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "data.csv").write_text(DATA)
    return tmp_path


def test_a_valid_policy_is_summed_up_on_stdout(folder: Path) -> None:
    done = sequester("check", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "policy.yaml is valid: series clinic, person id (never published)." in done.stdout
    assert "Every class has at least 2 people." in done.stdout
    assert "Nobody is tied to one value of illness with more than 80% confidence" in done.stdout


def test_data_that_fits_is_counted(folder: Path) -> None:
    done = sequester("check", "policy.yaml", "data.csv", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "data.csv fits: 3 records; 1 row without a value is left out." in done.stdout


def test_a_wrong_policy_ends_with_6_and_all_problems_on_stderr(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("k: 2", "k: 0").replace("kind: number", "kind: numbr"))
    done = sequester("check", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert "policy.yaml:5: attributes.age.kind: must be one of" in done.stderr
    assert "policy.yaml:8: protect.k: must be at least 1" in done.stderr
    assert "2 problems" in done.stderr


@pytest.mark.parametrize("arguments", [("check", "absent.yaml"), ("check", "policy.yaml", "absent.csv")])
def test_a_missing_file_ends_with_6(folder: Path, arguments: tuple[str, ...]) -> None:
    done = sequester(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert "there is no such file" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "data.csv", "more.csv", "-p", "policy.yaml"),
        ("nonsense",),
        ("check", "policy.yaml", "--nonsense"),
        ("check", "policy.yaml", "--format", "xml"),
        ("plan",),
    ],
)
def test_wrong_usage_ends_with_2(folder: Path, arguments: tuple[str, ...]) -> None:
    assert sequester(*arguments, cwd=folder).returncode == 2


def test_wrong_cells_are_counted_but_not_shown(folder: Path) -> None:
    (folder / "data.csv").write_text(
        DATA + f"5,{CANARY},f,flu\n6,30,{CANARY},flu\n{CANARY},30,f,flu\n{CANARY},30,f,flu\n"
    )
    for extra in ((), ("--show-values",), ("--format", "json")):
        done = sequester("check", "policy.yaml", "data.csv", *extra, cwd=folder)
        assert done.returncode == 6
        said = done.stdout + done.stderr
        assert CANARY not in said
        assert "age" in said
        assert "sex" in said
    assert "only on a terminal" in sequester("check", "policy.yaml", "--show-values", cwd=folder).stderr


def test_wrong_cells_are_shown_on_a_terminal_on_request(folder: Path) -> None:
    (folder / "data.csv").write_text(DATA + f"5,30,{CANARY}\x1b[2J,flu\n")
    asked = on_a_terminal("check", "policy.yaml", "data.csv", "--show-values", cwd=folder)
    assert f"values: {CANARY}\\x1b[2J" in asked
    assert CANARY not in on_a_terminal("check", "policy.yaml", "data.csv", cwd=folder)


def test_values_that_never_occur_together_are_counted_and_proposed_on_request(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY + "method: {name: pods}\n")
    rows = [f"{n},{20 + n % 2},{'fm'[n % 2]},{CANARY if n % 2 else 'flu'}" for n in range(200)]
    (folder / "data.csv").write_text("\n".join(["id,age,sex,illness", *rows, ""]))
    said = sequester("check", "policy.yaml", "data.csv", cwd=folder).stdout
    assert "2 combinations of sex and illness never occur" in " ".join(said.split())
    assert CANARY not in said
    result = json.loads(sequester("check", "policy.yaml", "data.csv", "--format", "json", cwd=folder).stdout)
    assert {"quasi-identifier": "sex", "sensitive": "illness", "combinations": 2} in result["never_together"]
    assert CANARY not in json.dumps(result)
    shown = on_a_terminal("check", "policy.yaml", "data.csv", "--show-values", cwd=folder, code=0)
    assert f"- {{sex: f, illness: {CANARY}}}" in shown
    (folder / "policy.yaml").write_text(POLICY)
    assert "never occur" not in sequester("check", "policy.yaml", "data.csv", cwd=folder).stdout


def on_a_terminal(*arguments: str, cwd: Path, code: int = 6) -> str:
    """What a command writes when stdout and stderr are a terminal."""
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "sequester", *arguments], cwd=cwd, env=environment, stdout=child, stderr=child
    )
    os.close(child)
    written = b""
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:
            break
        if not part:
            break
        written += part
    os.close(parent)
    assert process.wait(timeout=60) == code
    return written.decode()


def test_json_is_one_document_with_the_same_facts(folder: Path) -> None:
    done = sequester("check", "policy.yaml", "data.csv", "--format", "json", cwd=folder)
    result = json.loads(done.stdout)
    assert result["valid"] is True
    assert result["data"] == {"records": 3, "left_out": 1}
    assert result["attributes"]["age"] == {"role": "quasi-identifier", "kind": "number"}
    (folder / "policy.yaml").write_text(POLICY.replace("k: 2", "k: 0"))
    done = sequester("check", "policy.yaml", "--format", "json", cwd=folder)
    assert (done.returncode, done.stderr) == (6, "")
    (problem,) = json.loads(done.stdout)["problems"]
    assert (problem["line"], problem["key"]) == (8, "protect.k")


def test_the_schema_is_json_and_needs_no_policy(tmp_path: Path) -> None:
    done = sequester("check", "--schema", cwd=tmp_path)
    assert done.returncode == 0
    assert set(json.loads(done.stdout)["required"]) == {"version", "series", "attributes", "protect"}


def test_init_writes_a_policy_that_its_data_fits(folder: Path) -> None:
    rows = "".join(f"P{n},{20 + n % 50},{'fm'[n % 2]},0{2139 + n % 7},{'abc'[n % 3]}{CANARY}\n" for n in range(60))
    (folder / "people.csv").write_text("patient_id,age,sex,zip,diagnosis\n" + rows)
    done = sequester("init", "people.csv", "--out", "new.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sequester check people.csv -p new.yaml\n" in done.stdout
    assert CANARY not in (folder / "new.yaml").read_text()
    assert "60 records" in sequester("check", "new.yaml", "people.csv", cwd=folder).stdout


def waves(folder: Path, count: int = 3) -> list[str]:
    """Waves of people of whom some leave, some come, and everybody grows older."""
    for wave in range(count):
        rows = "".join(
            f"P{n},{20 + n % 50 + wave},{'fm'[n % 2]},{'abc'[(n + (n % 9 == wave)) % 3]}{CANARY}\n"
            for n in range(400)
            if n % 7 != wave
        )
        (folder / f"people-{wave + 1}.csv").write_text("patient_id,age,sex,diagnosis\n" + rows)
    return [f"people-{wave + 1}.csv" for wave in range(count)]


def test_init_reads_waves_and_says_what_comes_next(folder: Path) -> None:
    files = waves(folder)
    done = sequester("init", *files, "--out", "new.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "sensitive diagnosis" in said
    assert "promised k 5, confidence 0.5; by pods" in said
    assert "sequester check people-3.csv -p new.yaml" in said
    assert "sequester rehearse people-1.csv people-2.csv people-3.csv -p new.yaml" in said
    assert "sequester publish people-1.csv -p new.yaml" in said
    text = (folder / "new.yaml").read_text()
    assert "changes: {by: [0, 2]}" in text
    assert "series: people\n" in text
    assert CANARY not in text + done.stdout
    for file in files:
        assert sequester("check", "new.yaml", file, cwd=folder).returncode == 0


def test_init_refuses_what_are_no_waves_of_one_table(folder: Path) -> None:
    first, second, _ = waves(folder)
    for arguments, said in (
        ((first, first), "waves 1 and 2 are the same file"),
        ((first, second, "--person", "sex"), "a wave has one per person"),
        ((first, second, "--person", "nobody"), "is in no wave"),
        ((first, "data.csv"), "no column tells people apart in every wave"),
        ((first, "absent.csv"), "there is no such file"),
    ):
        done = sequester("init", *arguments, "--out", "new.yaml", cwd=folder)
        assert (done.returncode, done.stdout) == (6, "")
        assert said in done.stderr
        assert CANARY not in done.stderr
        assert not (folder / "new.yaml").exists()


def test_init_does_not_replace_a_policy_unless_forced(folder: Path) -> None:
    done = sequester("init", "data.csv", cwd=folder)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (folder / "policy.yaml").read_text() == POLICY
    assert sequester("init", "data.csv", "--force", cwd=folder).returncode == 0
    assert (folder / "policy.yaml").read_text() != POLICY


def test_init_can_write_to_stdout(folder: Path) -> None:
    done = sequester("init", "data.csv", "--out", "-", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("# A first policy")
    assert not (folder / "-").exists()


def test_an_internal_error_does_not_quote_what_it_was_about(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr("sequester.ingest.propose.propose", fail)
    monkeypatch.delenv("SEQUESTER_DEBUG", raising=False)
    command = ["init", str(folder / "data.csv"), "--out", str(folder / "new.yaml")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "internal error: RuntimeError in sequester/cli/init.py, line" in result.stderr
    assert CANARY not in result.output
    monkeypatch.setenv("SEQUESTER_DEBUG", "1")
    assert CANARY in CliRunner().invoke(app, command).stderr


def test_a_closed_pipe_ends_quietly(folder: Path) -> None:
    # The reader is gone before the first byte.
    read, write = os.pipe()
    os.close(read)
    for arguments in (["check", "policy.yaml"], ["check", "--schema"], ["init", "data.csv", "--out", "-"]):
        done = subprocess.run(
            [sys.executable, "-m", "sequester", *arguments],
            cwd=folder,
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (141, b"")
    os.close(write)


SWALLOWED = """
import ctypes, os, signal, sys, time
from sequester.cli import app, check
def pressed_in_c():
    os.kill(os.getpid(), signal.SIGINT)
    return 0
def slow(*_, **__):
    ctypes.CFUNCTYPE(ctypes.c_int)(pressed_in_c)()
    time.sleep(20)
app.Commands.invoke.__globals__["super"] = lambda: type("Slow", (), {"invoke": slow})()
sys.argv = ["sequester", "check"]
app.run()
"""


def test_ctrl_c_that_code_in_c_swallows_is_not_lost(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SWALLOWED], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_ctrl_c_ends_with_130_and_no_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sequester.ingest.propose.propose", stop)
    result = CliRunner().invoke(app, ["init", str(folder / "data.csv"), "--out", str(folder / "new.yaml")])
    assert (result.exit_code, result.stderr) == (130, "Stopped.\n")


def test_every_command_has_help_with_examples(tmp_path: Path) -> None:
    names = [command.name for command in app.registered_commands]
    assert {"init", "check"} <= set(names)
    for name in names:
        done = CliRunner().invoke(app, [str(name), "--help"])
        assert done.exit_code == 0
        assert f"$ sequester {name}" in done.stdout


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = sequester("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[0]) == (0, "sequester")
