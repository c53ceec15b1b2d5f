"""What exit codes mean, in the help of the application and of every command."""

from __future__ import annotations

import typer

UNDECIDED, BROKEN = 3, 4
MEANING = {
    0: "done",
    1: "internal error: a mistake in Sequester",
    2: "wrong usage",
    UNDECIDED: "undecided: an attack that was asked for lacks knowledge, or was too large to be solved",
    BROKEN: "a guarantee does not hold",
    5: "stale plan, or another command has the ledger",
    6: "invalid policy, data or ledger",
    130: "stopped by Ctrl-C, or by a no to a question, or a table that was published already",
    141: "nobody reads the output",
}
_SERIES = (0, 2, 5, 6)
_CODES = {
    "init": (0, 2, 6),
    "check": (0, 2, 6),
    "anonymize": (0, 2, 4, 6),
    "publish": (0, 2, 4, 5, 6, 130),
    "history": _SERIES,
    "show": _SERIES,
    "report": _SERIES,
    "export": _SERIES,
    "import": _SERIES,
    "measure": (0, 2, 4, 6),
    "audit": (0, 2, 3, 4, 5, 6),
    "verify": (0, 2, 3, 4, 5, 6),
    "demo": (0, 2, 6),
    "datasets": (0, 2, 6),
    "warm-up": (0, 2),
}
_ALL = (0, 2, 4, 5, 6)


def all_codes() -> str:
    """Every code in a line of its own, as help shows it."""
    lines = (f"{code:>5}  {meaning}" for code, meaning in MEANING.items())
    return "\n".join(("[bold]Exit codes[/bold]", *lines))


def add_codes(app: typer.Typer) -> None:
    """Let the help of every command end with the codes it may exit with."""
    for command in app.registered_commands:
        codes = _CODES.get(command.name or "", _ALL)
        said = " · ".join(f"{code} {MEANING[code]}" for code in codes)
        examples = (command.epilog or "").strip().replace("\n\n$", "\n$")
        command.epilog = f"{examples}\n\n[bold]Exit codes[/bold]\n{said}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_codes(group.typer_instance)
