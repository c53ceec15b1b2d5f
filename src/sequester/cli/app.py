"""The application: its commands, and the one place where errors become messages and exit codes (see `exits`)."""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import interrupt_main
from pathlib import Path
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

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
    rehearse,
    report,
    show,
    warm_up,
)
from sequester.cli.help import INVALID, STOPPED, UNREAD, Application, CommandGroup, add, all_codes
from sequester.cli.terminal import report_error, report_internal, report_system
from sequester.errors import OutOfMemory, SequesterError
from sequester.log import tell, tell_failure
from sequester.memory import is_lack_of_memory
from sequester.visible import visible

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_MEMORY = (
    "there is not enough memory for this table and what was published before; close other programs, or use a larger "
    "machine. Releases appear whole or not at all: what was begun is put in order by the next command"
)
_pressed: list[int] = []
# Seconds: long enough for the code in C to return.
_SOON = 0.01


class Commands(Application):
    """Runs a command and turns what it raises into a message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        begun, code = time.perf_counter(), 1
        try:
            result = self._invoke(ctx)
            code = 0
        except (typer.Exit, typer.TyperException) as end:
            code = end.exit_code
            raise
        finally:
            seconds = time.perf_counter() - begun
            tell("cli", "ends", command=ctx.invoked_subcommand, exit_code=code, seconds=seconds)
        return result

    def _invoke(self, ctx: Any) -> Any:
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
            _tell_failed(error)
            report_system(error)
            raise typer.Exit(INVALID) from None
        except Exception as error:  # noqa: BLE001 - the last place where private text can be kept from a traceback
            if _pressed:
                _stop()
            if is_lack_of_memory(error):
                _report(OutOfMemory(_MEMORY))
            _tell_failed(error)
            report_internal(error)
            raise typer.Exit(1) from None
        return result


def _report(error: SequesterError) -> NoReturn:
    if _pressed:
        _stop()
    _tell_failed(error)
    report_error(error)
    raise typer.Exit(error.exit_code) from None


def _tell_failed(error: Exception) -> None:
    """Which kind of error; its words are for whoever runs the command, and may name what is in a policy."""
    problems = getattr(error, "problems", ())
    tell_failure("cli", "failed", error=type(error).__name__, problems=len(problems) or None)


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
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"{all_codes()}\n\nWithout a command: where the series of this folder stands, and what to do next.",
)

# In the order of the help.
_COMMANDS = {
    "Begin": (init, check, rehearse, demo, datasets),
    "Publish": (plan, publish, anonymize),
    "Look": (history, show, report),
    "Judge": (audit, measure),
    "Keep": (warm_up,),
}
for panel, modules in _COMMANDS.items():
    for module in modules:
        add(app, getattr(module, module.__name__.rpartition(".")[2]), module.EXAMPLES, panel)
app.add_typer(ledger.commands, name="ledger", cls=CommandGroup, rich_help_panel="Keep")


def _show_version(wanted: bool) -> None:
    if wanted:
        from sequester import __version__

        typer.echo(f"sequester {__version__}")
        raise typer.Exit


def _listen(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from sequester.cli.log import listen_on_stderr

        listen_on_stderr(ctx)


def _write_down(ctx: typer.Context, file: Path | None) -> None:
    if file is not None and not ctx.resilient_parsing:
        from sequester.cli.log import listen_in_file

        listen_in_file(ctx, file)


@app.callback()
def start(
    ctx: typer.Context,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", callback=_listen, envvar="SEQUESTER_VERBOSE", help="Tell on stderr what is being done."
        ),
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=_write_down,
            envvar="SEQUESTER_LOG",
            help="Append to a file what is being done: stages, counts and times, no cell.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish a table about people again and again, and let no one learn from the series what no release tells."""
    if ctx.invoked_subcommand is not None:
        tell("cli", "begins", command=ctx.invoked_subcommand)
        return

    from sequester.cli.status import show_status

    names = [one.name for one in app.registered_commands] + [one.name for one in app.registered_groups]
    show_status({str(name) for name in names})


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
