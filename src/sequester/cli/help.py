"""How help looks: commands in panels, tidy options, and what exit codes mean."""

from __future__ import annotations

import copy
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

UNDECIDED, BROKEN, INVALID, STOPPED, UNREAD = 3, 4, 6, 130, 141
MEANING = {
    0: "done",
    1: "internal error: a mistake in Sequester",
    2: "wrong usage",
    UNDECIDED: "undecided: an attack that was asked for lacks knowledge, or was too large to be solved",
    BROKEN: "a guarantee does not hold",
    5: "stale plan, or another command has the ledger",
    INVALID: "invalid policy, data or ledger",
    STOPPED: "stopped by Ctrl-C, or by a no to a question, or a table that was published already",
    UNREAD: "nobody reads the output",
}
_CODES = {
    **dict.fromkeys(("init", "check", "demo", "datasets"), (0, 2, 6)),
    **dict.fromkeys(("history", "show", "report", "export", "import", "withdraw", "close", "people"), (0, 2, 5, 6)),
    **dict.fromkeys(("anonymize", "measure"), (0, 2, 4, 6)),
    **dict.fromkeys(("audit", "verify"), (0, 2, 3, 4, 5, 6)),
    "publish": (0, 2, 4, 5, 6, 130),
    "warm-up": (0, 2),
}
_ALL = (0, 2, 4, 5, 6)
# Options of the application that also stand after a command.
_EVERYWHERE = ("verbose", "log")


class TidyHelp:
    """Help in which a flag is not called a bool, and a number with bounds not a range."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif isinstance(param, TyperOption) and param.metavar is None and param.type_descriptor.is_ranged:
                param.metavar = f"<{param.bare_type()}>"
        return params


class Command(TidyHelp, TyperCommand):
    """One command."""


class CommandGroup(TidyHelp, TyperGroup):
    """Several commands under one name."""


class Application(CommandGroup):
    """All commands, which take some options of the application, too."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        _accept_after(self, [one for one in self.params if isinstance(one, TyperOption) and one.name in _EVERYWHERE])


def _accept_after(group: Any, options: list[TyperOption]) -> None:
    """Let options of the application also stand after a command that has none of that name, unseen in its help."""
    for command in group.commands.values():
        taken = {name for param in command.params for name in param.opts}
        for option in options:
            if not taken & {*option.opts}:
                again = copy.copy(option)
                again.hidden, again.expose_value, again.envvar = True, False, None
                command.params.append(again)
        if hasattr(command, "commands"):
            _accept_after(command, options)


def add(app: typer.Typer, function: Any, examples: str, panel: str | None = None) -> None:
    """Add a command, called as its function is, whose help ends with its examples and the codes it may exit with."""
    name = function.__name__.strip("_").replace("_", "-")
    codes = " · ".join(f"{code} {MEANING[code]}" for code in _CODES.get(name, _ALL))
    lines = examples.strip().splitlines()
    shown = "\n".join(one if one.startswith("$ ") else f"$ sequester {one}" for one in lines)
    epilog = f"[bold]Examples[/bold]\n{shown}\n\n[bold]Exit codes[/bold]\n{codes}"
    app.command(name, epilog=epilog, rich_help_panel=panel, cls=Command)(function)


def all_codes() -> str:
    """Every code in a line of its own, as help shows it."""
    lines = (f"{code:>5}  {meaning}" for code, meaning in MEANING.items())
    return "\n".join(("[bold]Exit codes[/bold]", *lines))
