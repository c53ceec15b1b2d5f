"""The application: its commands, and the one place where errors become messages and exit codes.

0 done · 1 internal error · 2 usage · 4 a guarantee does not hold · 5 stale plan or locked ledger · 6 invalid policy or
data; and, as everywhere, 130 stopped by Ctrl-C and 141 nobody reads the output.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sequester.cli import (
    anonymize,
    audit,
    check,
    datasets,
    demo,
    history,
    init,
    ledger,
    measure,
    plan,
    publish,
    report,
    show,
)
from sequester.cli.terminal import report_error, report_internal
from sequester.errors import SequesterError

STOPPED, UNREAD = 130, 141


class Commands(TyperGroup):
    """Runs a command and turns what it raises into a message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            # What is still buffered fails here rather than at interpreter shutdown.
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(UNREAD) from None
        except KeyboardInterrupt:
            sys.stderr.write("Stopped.\n")
            raise typer.Exit(STOPPED) from None
        except SequesterError as error:
            report_error(error)
            raise typer.Exit(error.exit_code) from None
        except Exception as error:  # noqa: BLE001 - the last place where private text can be kept from a traceback
            report_internal(error)
            raise typer.Exit(1) from None
        return result


app = typer.Typer(
    cls=Commands,
    name="sequester",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: sequester init data.csv",
)

# In the order of the help.
for command in (init, check, anonymize, plan, publish, history, show, report, ledger, audit, measure, demo, datasets):
    command.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from sequester import __version__

        typer.echo(f"sequester {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish a table about people again and again, and let no one learn from the series what no release tells."""


def run() -> None:
    """Run the application with the arguments of the process."""
    app(prog_name="sequester")


def _discard_output() -> None:
    """Point stdout at nothing, or Python complains about the closed pipe once more when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
