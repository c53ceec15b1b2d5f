"""A private PostgreSQL server for tests: Debian's, in a temporary folder, on a port of its own.

    SERVER.url("books")     starts it when it is first asked for, makes the database, and gives its address
    SERVER.why_not          why there is none here, or None

One per process of the tests; it is stopped when that process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cached_property
from pathlib import Path

OWNER = "postgres"
STEWARD = "steward"
_FAST = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "128MB", "shared_buffers": "32MB"}


class Server:
    """A server that tests may stop, kill and fill up."""

    def __init__(self, *, durable: bool = False, base: Path | None = None) -> None:
        self._durable, self._base = durable, base
        self._made: set[str] = set()
        self.port = 0
        self.running = False

    @cached_property
    def why_not(self) -> str | None:
        """Why there can be no server here."""
        if _programs() is None:
            return "PostgreSQL is not installed"
        try:
            import psycopg  # noqa: F401
        except ImportError:
            return "psycopg is not installed"
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                return "a server does not run as root, and setpriv is not there to become somebody else"
            with contextlib.suppress(KeyError):
                pwd.getpwnam(OWNER)
                return None
            return f"a server does not run as root, and there is no user {OWNER}"
        return None

    @cached_property
    def folder(self) -> Path:
        """Where its files are, made and owned by whoever runs it."""
        folder = Path(tempfile.mkdtemp(prefix="sequester-pg-", dir=self._base))
        folder.chmod(0o755)
        if os.geteuid() == 0:
            owner = pwd.getpwnam(OWNER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        atexit.register(self.remove)
        return folder

    def start(self) -> None:
        """Start it; the first time, make it."""
        if self.running:
            return
        data = self.folder / "data"
        if not self.port:
            self.port = _free_port()
            self._run("initdb", "-D", data, "-U", OWNER, "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
            settings = {
                "port": self.port,
                "listen_addresses": "'127.0.0.1'",
                "unix_socket_directories": f"'{self.folder}'",
                "autovacuum": "off",
                "max_connections": 40,
                **({"shared_buffers": "16MB"} if self._durable else _FAST),
            }
            with (data / "postgresql.conf").open("a") as stream:
                stream.writelines(f"{name} = {value}\n" for name, value in settings.items())
            with (data / "pg_hba.conf").open("w") as stream:
                stream.write("host all guarded 127.0.0.1/32 scram-sha-256\n")
                stream.write("host all all 127.0.0.1/32 trust\nlocal all all trust\n")
        self._run("pg_ctl", "-D", data, "-w", "-t", "60", "-l", self.folder / "log", "start")
        self.running = True
        if not self._made:
            self.sql(f"CREATE ROLE {STEWARD} LOGIN")
            self._made.add("postgres")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `immediate` is as if the machine lost its power, but for what the system has in memory."""
        if self.running:
            self.running = False
            self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """SIGKILL for the postmaster and all its children, and wait until they are gone."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for process in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.running = False
        for process in (postmaster, *map(int, children)):
            _wait_for_end(process)
        # Nobody may have buried the process whose number is in there.
        for file in (self.folder / "data" / "postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            file.unlink()

    def remove(self) -> None:
        """Stop it and remove its files."""
        with contextlib.suppress(subprocess.SubprocessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the server's administrator."""
        import psycopg

        # Whatever the server waits for, its administrator does not.
        options = "-c synchronous_commit=local -c statement_timeout=60000"
        with psycopg.connect(self.address(database, OWNER), autocommit=True, options=options) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def address(self, database: str, user: str = STEWARD) -> str:
        """How a user reaches a database of this server."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def url(self, database: str = "books") -> str:
        """The address of a database in which the steward may make ledgers; both are made when they are not there."""
        self.start()
        if database not in self._made:
            self.sql(f'CREATE DATABASE "{database}"')
            self.sql(f'GRANT CREATE ON DATABASE "{database}" TO {STEWARD}')
            self._made.add(database)
        return self.address(database)

    def _run(self, program: str, *arguments: object) -> None:
        folder = _programs()
        assert folder is not None
        become = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"] if os.geteuid() == 0 else []
        # Not to a pipe: the server would keep it open.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                [*become, str(folder / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                timeout=120,
                check=False,
            )
            if done.returncode:
                said.seek(0)
                log = self.folder / "log"
                why = log.read_text(errors="replace")[-2000:] if log.exists() else ""
                raise RuntimeError(f"{program} failed: {said.read().decode(errors='replace')}\n{why}")


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl, of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    named = shutil.which("initdb")
    return None if named is None else Path(named).resolve().parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_end(process: int) -> None:
    for _ in range(400):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.025)
    raise RuntimeError("a process of the server does not end")


SERVER = Server()
