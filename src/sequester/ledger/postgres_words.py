"""What a server of PostgreSQL says, in our own words: its messages may quote rows, and are not passed on."""

from __future__ import annotations

from collections.abc import Callable

from sequester.errors import LedgerError, Problem, SequesterError
from sequester.ledger.connection import busy

Words = Callable[[str], SequesterError]


def explain(error: BaseException, place: str, *, lost: bool) -> SequesterError:
    """Why a statement failed; `lost` when the connection is gone."""
    code: str = getattr(error, "sqlstate", None) or ""
    for start, words in _CODES:
        if code.startswith(start):
            return words(place)
    if lost or not code:
        return _problem("the connection to the ledger's server was lost. This step was not recorded; try again")(place)
    return _problem(f"the server refused to go on, with the code {code}. This step was not recorded")(place)


def explain_connecting(error: BaseException, place: str) -> SequesterError:
    """Why there is no connection; the server gives no code then, and its words may be in any language."""
    text = str(error).lower()
    said = [words for parts, words in _CONNECTING if any(part in text for part in parts)]
    return (said or [_NO_SERVER])[0](place)


def unknown_outcome(place: str) -> LedgerError:
    """The connection ended after the server was told to record, and before it said that it had."""
    message = (
        "the connection to the ledger's server was lost while it recorded this; whether it did is found out by the "
        "next command, which puts it in order. Nothing became visible by this step"
    )
    return LedgerError(Problem(message, file=place))


def is_unknown(error: BaseException, *, lost: bool) -> bool:
    """Whether a commit that failed in this way may nevertheless be one."""
    code: str = getattr(error, "sqlstate", None) or ""
    return lost or not code or code.startswith(("08", "57P", "40003"))


def no_rights(place: str) -> LedgerError:
    """The role may not do this."""
    message = (
        "the server does not let you do this: your role must own the schema of the series, or have the right to create "
        "one in the database. This step was not recorded"
    )
    return LedgerError(Problem(message, file=place))


def _problem(message: str) -> Words:
    return lambda place: LedgerError(Problem(message, file=place))


def _damaged(place: str) -> LedgerError:
    message = "the ledger is damaged; restore it from a backup or an export. Nothing was changed"
    return LedgerError(Problem(message, file=place))


_NO_SERVER = _problem(
    "the ledger's server cannot be reached, or does not let you in. See whether it runs, and whether the address, the "
    "user and the password are right"
)
_NO_PASSWORD = _problem(
    "the ledger's server does not let you in; see the user in the address, and give the password in a password file "
    "(~/.pgpass) or in PGPASSWORD"
)
_NO_DATABASE = _problem("there is no such database on the server; see the address, or have it made")
_STARTING = _problem("the ledger's server is starting or stopping; try again in a moment")
_FULL = _problem("there are too many connections to the ledger's server; try again")
_STOPPED = _problem("the server stopped this command, or a time limit of it did. This step was not recorded; try again")

_CODES: tuple[tuple[str, Words], ...] = (
    ("40003", _problem("the connection to the ledger's server was lost. This step was not recorded; try again")),
    ("40", busy),
    ("55P03", busy),
    ("55006", busy),
    (
        "53100",
        _problem("there is no room left on the server's disk; make some and try again. This step was not recorded"),
    ),
    ("53200", _problem("the server has not enough memory for this; this step was not recorded. Try again later")),
    ("53300", _FULL),
    ("57014", _STOPPED),
    ("57P", _problem("the ledger's server went down, or ended the connection. This step was not recorded; try again")),
    ("08", _problem("the connection to the ledger's server was lost. This step was not recorded; try again")),
    ("25006", _problem("the server only lets the ledger be read; give the address of the one that is written to")),
    ("25P02", _problem("the ledger cannot go on after the error before; open it again")),
    ("25P", _STOPPED),
    ("28", _NO_PASSWORD),
    ("3D000", _NO_DATABASE),
    ("42501", no_rights),
    ("42P01", _damaged),
    ("42701", _damaged),
    ("42703", _damaged),
    ("42804", _damaged),
    ("42809", _damaged),
    ("42P07", _damaged),
    ("3F000", _damaged),
    ("XX001", _damaged),
    ("XX002", _damaged),
    ("23505", _problem("something would be in the ledger twice that must be there once. This step was not recorded")),
    ("58", _problem("the server cannot read or write its disk. This step was not recorded; see the server's own log")),
    ("22", _problem("the server cannot keep a text or a number of this release. This step was not recorded")),
)

_CONNECTING: tuple[tuple[tuple[str, ...], Words], ...] = (
    (("starting up", "shutting down", "recovery", "not yet accepting"), _STARTING),
    (("password", "authentication", "pg_hba.conf", "role ", "permission denied"), _NO_PASSWORD),
    (("database ",), _NO_DATABASE),
    (("too many", "remaining connection slots"), _FULL),
    (
        ("certificate", "ssl"),
        _problem("there is no safe connection to the server; see sslmode in the address"),
    ),
    (
        ("could not translate host name", "name or service", "resolve"),
        _problem("the ledger's server is not found under this name; see the address"),
    ),
    (
        ("refused", "no such file", "timeout", "timed out", "unreachable"),
        _problem("the ledger's server does not answer; see whether it runs, and whether the address is right"),
    ),
)
