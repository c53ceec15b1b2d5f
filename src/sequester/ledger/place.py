"""Where a ledger is, and what lies beside it: its key, and the folders of its releases.

A ledger is a file, or several are in one database of PostgreSQL, whose address never shows its password.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from sequester.errors import LedgerError, Problem

_ADDRESS = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_SERIES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Place:
    """The place of one ledger.

    home    the folder of what is kept beside the ledger
    name    what these files are called after
    url     the address of the database that it is in, as libpq takes it; None for a file. May hold a password
    series  in a database, the series whose ledger it is
    """

    home: Path
    name: str
    url: str | None = field(default=None, repr=False)
    series: str | None = None

    @classmethod
    def of(cls, where: str | Path | Place, *, home: Path | None = None, series: str | None = None) -> Place:
        """From a path, or from an address (`postgresql://...`) and the series, or with `#series` at its end.

        home  for an address, the folder of what is kept beside the ledger: by default the working directory
        An address without a series is asked for the only one that is there.
        """
        if isinstance(where, Place):
            return where
        if not is_address(where):
            path = Path(where)
            return cls(path.parent, path.name)
        parts = _split(str(where))
        url = str(where).partition("#")[0]
        if parts.fragment and series not in (None, parts.fragment):
            message = "the address names another series than the policy; leave out what is behind '#'"
            raise LedgerError(Problem(message, file=_shown(parts)))
        known = series or parts.fragment
        if not known:
            from sequester.ledger.postgres import only_series

            known = only_series(url, _shown(parts))
        return cls(Path() if home is None else home, f"{known}.ledger", url, known)

    @classmethod
    def named(cls, where: str, base: Path, *, series: str | None = None) -> Place:
        """As a policy in the folder `base` names it: a file relative to that, or an address."""
        return cls.of(where if is_address(where) else base / where, home=base, series=series)

    def __str__(self) -> str:
        return str(self.file) if self.url is None else f"{_shown(_split(self.url))}#{self.series}"

    @property
    def is_file(self) -> bool:
        """Whether the ledger is a file."""
        return self.url is None

    @property
    def file(self) -> Path:
        """The file that it is kept in."""
        if self.url is not None:
            raise ValueError("this ledger is in a database, not in a file")
        return self.home / self.name

    @property
    def database(self) -> tuple[str, str]:
        """The address of the database that it is in, and the series whose ledger it is."""
        if self.url is None or self.series is None:
            raise ValueError("this ledger is in a file, not in a database")
        return self.url, self.series

    @property
    def server(self) -> tuple[str | None, int, str, str]:
        """Which ledger that is, whoever connects with whatever password: host, port, database, series."""
        url, series = self.database
        parts = urlsplit(url)
        return parts.hostname, parts.port or 5432, parts.path, series

    @property
    def key(self) -> Path:
        """The file of its key."""
        return self.home / f"{self.name}.key"

    @property
    def head(self) -> Path:
        """The file that remembers how far its log was: see `witness`."""
        return self.home / f"{self.name}.head"

    @property
    def parts(self) -> Path:
        """The folder of what is recorded of large releases: see `parts`."""
        return self.home.resolve() / f"{self.name}.parts"

    @property
    def spill(self) -> Path:
        """What private folders are called after in which large tables are made: see `drafts`."""
        return self.home.resolve() / f"{self.name}.spill"

    @property
    def releases(self) -> Path:
        """The folder of release folders, when nobody says otherwise."""
        return self.home / "releases"

    def exists(self) -> bool:
        """Whether there is a ledger, or anything else, at this place."""
        if self.url is None:
            return self.file.exists()
        from sequester.ledger.postgres import exists

        return exists(self)


def is_address(where: str | Path) -> bool:
    """Whether this is the address of a database, not a path."""
    return isinstance(where, str) and _ADDRESS.match(where) is not None


def is_series(name: str) -> bool:
    """Whether a series may be called this, in a policy."""
    return _SERIES.fullmatch(name) is not None


def without_password(where: str) -> str:
    """A path or an address as it may be shown."""
    if not is_address(where):
        return where
    parts = _split(where)
    return _shown(parts) + (f"#{parts.fragment}" if parts.fragment else "")


def _split(url: str) -> SplitResult:
    """The parts of an address; one that could hide a piece of a password where none belongs is refused, unquoted."""
    parts = None
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
    if parts is not None:
        behind = parts.path + parts.query + parts.fragment
        plain = "@" not in behind and parts.netloc.count("@") <= 1 and parts.path.count("/") <= 1
        if plain and (not parts.fragment or is_series(parts.fragment)):
            return parts
    message = (
        "the address of the ledger is not of the form postgresql://user@host:port/database#series; write other "
        "characters in it as %40 and the like"
    )
    raise LedgerError(message)


def _shown(parts: SplitResult) -> str:
    """An address without its password, and without options, among which there may be one."""
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return f"postgresql://{name}{':***' if colon else ''}{at}{host}{parts.path}"
