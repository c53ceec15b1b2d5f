"""A server that dies, fills up or is fought over in the middle of a publication: nothing lost, and true words.

The server here is durable, as a real one is, and is killed with all its processes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from clinic import CANARY, edit, set_up
from command import invoke
from postgres import OWNER, STEWARD, Server
from sequester.ledger import Key, Ledger, Place
from sequester.policy import Policy

SERVER = Server(durable=True)
pytestmark = [
    pytest.mark.skipif(SERVER.why_not is not None, reason=SERVER.why_not or ""),
]
_NUMBERS = count(1)
RULES = ("-p", "policy.yaml")
# Publishes the second quarter, and at one moment says so and waits until it is told to go on.
PUBLISH = """
import sys
from sequester.cli import main
from sequester.ledger.postgres import Postgres
from sequester.publish import commit

stop = sys.argv.pop(1)

def wait(name):
    if name == stop:
        print("at", name, flush=True)
        sys.stdin.readline()

commit.step = wait
insert, finish = Postgres.insert, Postgres._commit

def inserting(self, name, rows):
    insert(self, name, rows)
    wait(f"in {name}")

def committing(self):
    wait("committing")
    finish(self)

Postgres.insert, Postgres._commit = inserting, committing
main()
"""


@pytest.fixture(scope="module", autouse=True)
def _stopped() -> Iterator[None]:
    yield
    SERVER.remove()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A series whose first quarter is published, on a server that runs."""
    SERVER.start()
    set_up(tmp_path)
    name = f"clinic{next(_NUMBERS)}"
    edit(tmp_path / "policy.yaml", "series: clinic\n", f"series: clinic\nledger: {SERVER.url(name)}\n")
    done = invoke("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def place_of(folder: Path) -> Place:
    policy = Policy.load(folder / "policy.yaml")
    assert policy.ledger is not None
    return Place.named(policy.ledger, folder, series=policy.series)


def check_agreement(folder: Path) -> list[str]:
    """Ledger, folders and head agree, and nothing is half done; returns the releases."""
    place = place_of(folder)
    with Ledger.open(place, key=Key.need(place), read_only=True) as ledger:
        assert ledger.verify(place.releases).problems == ()
        entries = ledger.releases()
    assert all(entry.status == "published" for entry in entries)
    assert visible(folder) == {entry.folder for entry in entries}
    return [entry.name for entry in entries]


def visible(folder: Path) -> set[str]:
    return {entry.name for entry in (folder / "releases" / "clinic").iterdir() if not entry.name.startswith(".")}


def recorded(folder: Path) -> list[str]:
    place = place_of(folder)
    with Ledger.open(place, key=None, read_only=True) as ledger:
        return [f"{entry.name} {entry.status}" for entry in ledger.releases()]


def start(folder: Path, stop: str, *words: str) -> subprocess.Popen[str]:
    """A publication that waits at one moment."""
    return subprocess.Popen(
        [sys.executable, "-c", PUBLISH, stop, *(words or ("publish", "q2.csv", *RULES, "--yes"))],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], stop: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == f"at {stop}\n":
            return
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate("\n" * 9, timeout=120)
    assert "Traceback" not in said
    assert CANARY not in said
    return process.returncode, " ".join(said.split())


# When the server dies, what is said, and whether the release is recorded nevertheless.
MOMENTS = {
    "before writing": ("connection to the ledger's server was lost", False),
    "written": ("connection to the ledger's server was lost", False),
    "in people": ("connection to the ledger's server was lost. This step was not recorded", False),
    "begun": ("release 2 is recorded and visible; only the ledger does not say so yet", True),
    "shown": ("release 2 is recorded and visible; only the ledger does not say so yet", True),
}


@pytest.mark.parametrize(("stop", "how"), [*((stop, "kill") for stop in MOMENTS), ("in people", "stop")])
def test_a_server_that_dies_while_a_release_is_published_loses_nothing(folder: Path, stop: str, how: str) -> None:
    process = start(folder, stop)
    wait_for(process, stop)
    SERVER.kill() if how == "kill" else SERVER.stop("immediate")
    code, said = end(process)
    words, stays = MOMENTS[stop]
    assert code == 6
    # A process of the server that outlives the first of them by a moment says so before it ends.
    assert words in said or (not stays and "server went down, or ended the connection. This step was not" in said)
    # Without the server nothing is planned or published.
    refused = invoke("publish", "q2.csv", *RULES, "--yes", cwd=folder)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "the ledger's server does not answer" in refused.stderr
    assert visible(folder) == ({"0001-q1", "0002-q2"} if stays else {"0001-q1"})
    SERVER.start()
    assert recorded(folder) == ["q1 published", *(["q2 begun"] if stays else [])]
    if not stays:
        assert check_agreement(folder) == ["q1"]
    done = invoke("publish", f"{'q3' if stays else 'q2'}.csv", *RULES, "--yes", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ("was begun by a command that did not end; it is finished" in done.stderr) == stays
    assert check_agreement(folder) == (["q1", "q2", "q3"] if stays else ["q1", "q2"])


@pytest.mark.parametrize("stop", ["", "written"])
def test_a_trigger_that_drops_people_publishes_nothing(folder: Path, stop: str) -> None:
    """Whether it was there before, or came while the release was about to be recorded."""
    database = str(place_of(folder).url).rpartition("/")[2]
    function = "CREATE FUNCTION public.drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    trigger = "CREATE TRIGGER t BEFORE INSERT ON sequester_clinic.people FOR EACH ROW EXECUTE FUNCTION public.drop_it()"
    SERVER.sql(function, database)
    process = start(folder, stop) if stop else None
    if process is not None:
        wait_for(process, stop)
    SERVER.sql(trigger, database)
    code, said = end(process or start(folder, ""))
    assert code == 6
    assert ("did not keep what was written" if stop else "the table people of the ledger has a trigger") in said
    assert visible(folder) == {"0001-q1"}
    SERVER.sql("DROP TRIGGER t ON sequester_clinic.people", database)
    assert recorded(folder) == ["q1 published"]
    assert invoke("publish", "q2.csv", *RULES, "--yes", cwd=folder).returncode == 0
    assert check_agreement(folder) == ["q1", "q2"]


@pytest.mark.parametrize("stays", [True, False])
def test_a_server_that_dies_while_it_commits_leaves_a_release_that_the_next_command_finds(
    folder: Path, stays: bool
) -> None:
    """The commit is on the server's disk, or is not, and nobody was told: the folder is not shown either way."""
    if stays:
        # The server makes every commit durable, and then waits for a copy of itself that does not exist.
        SERVER.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        SERVER.stop("fast")
        SERVER.start()
        process = start(folder, "")
        wait_until("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    else:
        process = start(folder, "committing")
        wait_for(process, "committing")
    SERVER.kill()
    code, said = end(process)
    assert code == 6
    assert "whether it did is found out by the next command" in said
    assert visible(folder) == {"0001-q1"}
    (SERVER.folder / "data" / "postgresql.auto.conf").write_text("")
    SERVER.start()
    assert recorded(folder) == ["q1 published", *(["q2 begun"] if stays else [])]
    done = invoke("publish", "q2.csv", *RULES, "--yes", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ("nobody saw it; it is withdrawn" in done.stderr) == stays
    assert check_agreement(folder) == ["q1", "q2"]


def wait_until(sql: str) -> None:
    for _ in range(600):
        if SERVER.sql(sql) != [(0,)]:
            return
        time.sleep(0.05)
    raise AssertionError(sql)


@pytest.mark.parametrize("stop", ["written", "begun"])
def test_a_publisher_that_is_killed_lets_go_of_the_ledger_on_the_server(folder: Path, stop: str) -> None:
    process = start(folder, stop)
    wait_for(process, stop)
    busy = invoke("publish", "q2.csv", *RULES, "--yes", cwd=folder)
    assert busy.returncode == 5
    assert "another command has the ledger" in busy.stderr
    process.kill()
    process.communicate()
    done = invoke("publish", f"{'q2' if stop == 'written' else 'q3'}.csv", *RULES, "--yes", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert check_agreement(folder) == (["q1", "q2"] if stop == "written" else ["q1", "q2", "q3"])


def test_of_two_clients_that_publish_at_once_one_wins_and_the_other_gets_exit_code_5(folder: Path) -> None:
    assert invoke("plan", "q2.csv", *RULES, "--out", "next.plan", cwd=folder).returncode == 0
    both = [start(folder, "before writing", "publish", "next.plan", *RULES) for _ in range(2)]
    ended = sorted(end(process) for process in both)
    assert [code for code, _ in ended] == [0, 5]
    assert any(words in ended[1][1] for words in ("moved on", "published already", "another command has the ledger"))
    assert check_agreement(folder) == ["q1", "q2"]


def test_of_two_clients_that_begin_a_series_at_once_one_ledger_is_left(tmp_path: Path) -> None:
    set_up(tmp_path)
    url = SERVER.url(f"clinic{next(_NUMBERS)}")
    edit(tmp_path / "policy.yaml", "series: clinic\n", f"series: clinic\nledger: {url}\n")
    both = [start(tmp_path, "", "publish", "q1.csv", *RULES, "--yes", "--name", name) for name in ("a", "b")]
    codes = sorted(end(process)[0] for process in both)
    assert codes[0] == 0
    assert codes[1] in (5, 130)
    assert len(check_agreement(tmp_path)) == 1


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Where there are 3 MB for tables, and no more."""
    folder = Path(tempfile.mkdtemp(prefix="sequester-disk-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("a small disk needs the right to mount one")
    (folder / "tables").mkdir()
    if os.geteuid() == 0:
        subprocess.run(["chown", OWNER, folder / "tables"], check=True)
    yield folder
    SERVER.stop("fast")
    subprocess.run(["umount", folder], check=False)
    folder.rmdir()


def test_a_full_disk_of_the_server_publishes_nothing_and_is_said(small_disk: Path, tmp_path: Path) -> None:
    SERVER.start()
    SERVER.sql(f"CREATE TABLESPACE small LOCATION '{small_disk / 'tables'}'")
    SERVER.sql(f"GRANT CREATE ON TABLESPACE small TO {STEWARD}")
    SERVER.sql(f"ALTER ROLE {STEWARD} SET default_tablespace = 'small'")
    name = f"clinic{next(_NUMBERS)}"
    try:
        set_up(tmp_path)
        edit(tmp_path / "policy.yaml", "series: clinic\n", f"series: clinic\nledger: {SERVER.url(name)}\n")
        filler = small_disk / "filler"
        fill(filler)
        # Nothing can be begun, and nothing is left of it.
        done = invoke("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (6, "")
        assert "there is no room left on the server's disk" in done.stderr
        assert not place_of(tmp_path).exists()
        filler.unlink()
        assert invoke("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path).returncode == 0
        fill(filler)
        code, said = end(start(tmp_path, "", "publish", "q2.csv", *RULES, "--yes"))
        assert code == 6
        assert "there is no room left on the server's disk; make some and try again. This step was not recorded" in said
        assert check_agreement(tmp_path) == ["q1"]
        filler.unlink()
        assert invoke("publish", "q2.csv", *RULES, "--yes", cwd=tmp_path).returncode == 0
        assert check_agreement(tmp_path) == ["q1", "q2"]
    finally:
        SERVER.sql(f"ALTER ROLE {STEWARD} RESET default_tablespace")
        SERVER.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        SERVER.sql("DROP TABLESPACE small")


def fill(path: Path) -> None:
    """Take all the room that there is."""
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))
