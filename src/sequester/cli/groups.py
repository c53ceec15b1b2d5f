"""How commands are put together: panels of the help, tidy lists of options, and options that every command takes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

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


def add(app: typer.Typer, register: Callable[[typer.Typer], None], panel: str) -> None:
    """Add what a module registers to an application, in one panel of its help."""
    one = typer.Typer()
    register(one)
    for command in one.registered_commands:
        command.rich_help_panel, command.cls = panel, Command
    for group in one.registered_groups:
        group.rich_help_panel, group.cls = panel, CommandGroup
        for command in group.typer_instance.registered_commands if group.typer_instance else ():
            command.cls = Command
    app.registered_commands += one.registered_commands
    app.registered_groups += one.registered_groups


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
