"""The application: its commands, and the one place where errors become messages and exit codes.

0 done · 1 internal error · 2 usage · 4 a guarantee does not hold · 5 stale plan or locked ledger · 6 invalid policy or
data; and, as everywhere, 130 stopped by Ctrl-C and 141 nobody reads the output.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import interrupt_main
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

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
    warm_up,
)
from sequester.cli.terminal import report_error, report_internal, report_system
from sequester.errors import OutOfMemory, SequesterError
from sequester.memory import is_lack_of_memory
from sequester.visible import visible

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

UNUSABLE, STOPPED, UNREAD = 6, 130, 141
_MEMORY = (
    "there is not enough memory for this table and what was published before; close other programs, or use a larger "
    "machine. Releases appear whole or not at all: what was begun is put in order by the next command"
)
_pressed: list[int] = []
# Seconds: long enough for the code in C to return.
_SOON = 0.01


class Commands(TyperGroup):
    """Runs a command and turns what it raises into a message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            # What is still buffered fails here rather than at interpreter shutdown.
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except typer.TyperException as error:
            error.message = visible(error.message, lines=True)
            raise
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(UNREAD) from None
        except KeyboardInterrupt:
            _stop()
        except SequesterError as error:
            _report(error)
        except OSError as error:
            if is_lack_of_memory(error):
                _report(OutOfMemory(_MEMORY))
            report_system(error)
            raise typer.Exit(UNUSABLE) from None
        except Exception as error:  # noqa: BLE001 - the last place where private text can be kept from a traceback
            if _pressed:
                _stop()
            if is_lack_of_memory(error):
                _report(OutOfMemory(_MEMORY))
            report_internal(error)
            raise typer.Exit(1) from None
        return result


def _report(error: SequesterError) -> NoReturn:
    if _pressed:
        _stop()
    report_error(error)
    raise typer.Exit(error.exit_code) from None


def _stop() -> NoReturn:
    sys.stderr.write("Stopped.\n")
    raise typer.Exit(STOPPED) from None


def _note_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Libraries in C make something else of the interrupt; whatever they raise then, it was Ctrl-C."""
    _pressed.append(number)
    signal.default_int_handler(number, frame)


def _press_again(ignored: UnraisableHookArgs) -> None:
    """Where code in C cannot pass the interrupt on, Python prints and forgets it: it is pressed once more instead."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    again = Timer(_SOON, interrupt_main)
    again.daemon = True
    again.start()


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
_COMMANDS = (
    init, check, anonymize, plan, publish, history, show, report, ledger, audit, measure, demo, datasets, warm_up,
)  # fmt: skip
for command in _COMMANDS:
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
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note_ctrl_c)
        sys.unraisablehook = _press_again
    app(prog_name="sequester")


def _discard_output() -> None:
    """Point stdout at nothing, or Python complains about the closed pipe once more when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
