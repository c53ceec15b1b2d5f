"""What the command line writes: results on stdout, everything else on stderr, and nothing private on either."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequester.errors import Problem, SequesterError
from sequester.visible import visible, visible_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

_PACKAGE = Path(__file__).parent.parent
# Arguments that errors of the library name; commands have options of the same names.
_ARGUMENT = re.compile(r"\b(accept_loss|everybody_is_new|force|i_know_this_leaks|show_values|undo)=True\b")


class Format(str, Enum):  # noqa: UP042 - typer reads the values of a str enumeration
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"


def console(*, stderr: bool = False) -> Console:
    """A rich console that lets the application deal with a closed pipe, and shows no text that a terminal acts on.

    Whatever is printed passes `render`: names of columns, files and releases may hold escape sequences.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text, lines=True), style, control)

    return Pipe(stderr=stderr, highlight=False, markup=False, soft_wrap=False)


def print_json(data: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(visible_json(json.dumps(data, indent=2, ensure_ascii=False)) + "\n")


def values_may_show(wanted: bool) -> bool:
    """Whether offending values may be printed: asked for, and only a person at a terminal reads them."""
    allowed = sys.stdout.isatty() and sys.stderr.isatty()
    if wanted and not allowed:
        sys.stderr.write("--show-values is ignored: values are shown only on a terminal.\n")
    return wanted and allowed


def may_ask() -> bool:
    """Whether somebody is there to read a question and to answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def yes_or_no(question: str) -> bool:
    """Ask on stderr, where results are not; no answer is a no."""
    sys.stderr.write(f"{visible(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Called with what is done, how much of it was and how much there is, it moves a bar on stderr, on a terminal.

    Meanwhile the compilation of kernels is announced there too, whatever stderr is.
    """
    from rich.text import Text

    from sequester import kernels

    screen = console(stderr=True)
    before, kernels.announce = kernels.announce, lambda text: screen.print(Text(text, "dim"))
    try:
        if not sys.stderr.isatty():
            yield lambda stage, number, stages: None
            return

        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        name = TextColumn("{task.description:15}")
        columns = (SpinnerColumn(), name, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=screen, transient=True) as bar:
            task = bar.add_task("", total=None)

            def show(stage: str, number: int, stages: int) -> None:
                bar.update(task, description=stage, completed=number, total=stages, refresh=True)

            yield show
    finally:
        kernels.announce = before


def refuse_existing(out: Path, *, force: bool, option: str = "--out") -> None:
    """Say before the work, not after it, that its result has no place."""
    if out.exists() and not force:
        import typer

        raise typer.BadParameter(f"{out} exists; --force replaces it, {option} names another place", param_hint=option)


def with_flags(text: str) -> str:
    """What the library says, with options of a command in place of arguments: force=True is --force."""
    text = _ARGUMENT.sub(lambda argument: f"--{argument[1].replace('_', '-')}", text)
    text = text.replace("`folder=...`", "`--releases`").replace("`source=...`", "`--data`")
    text = text.replace("`population=...`", "`--population`").replace("`registered=...`", "`--registered`")
    text = text.replace("`target=...`", "`--target`")
    return text.replace("look ahead to see", "plan with --ahead to see")


def report_error(error: SequesterError) -> None:
    """What is wrong, one line per problem, as `file:line: key: message`."""
    from rich.text import Text

    problems: Sequence[Problem] = getattr(error, "problems", ())
    screen = console(stderr=True)
    if not problems:
        screen.print(Text.assemble(("error: ", "bold red"), with_flags(str(error))), soft_wrap=True)
    for problem in problems:
        # A line end in a name would begin what looks like another message.
        subject = visible(problem.key or (f"column '{problem.column}'" if problem.column else ""))
        place = visible(":".join(str(part) for part in (problem.file, problem.line) if part is not None))
        line = Text.assemble(("error: ", "bold red"))
        if place:
            line.append(f"{place}: ")
        if subject:
            line.append(subject, "bold").append(": ")
        screen.print(line.append(visible(with_flags(problem.message))), soft_wrap=True)
        # Filled only when values were asked for on a terminal.
        if problem.values:
            shown = ", ".join(visible(value) for value in problem.values)
            screen.print(Text(f"       values: {shown}", "dim"), soft_wrap=True)
    if len(problems) > 1:
        screen.print(Text(f"{len(problems)} problems", "bold"))


def report_system(error: OSError) -> None:
    """What the system says about a file; it knows the name of the file, and nothing of what is in it."""
    name = "" if error.filename is None else f"{visible(os.fsdecode(error.filename))}: "
    sys.stderr.write(f"error: {name}{(error.strerror or type(error).__name__).lower()}\n")


def report_internal(error: Exception) -> None:
    """The kind of a mistake of ours and its place. Its text may quote cells, so it is shown only on request."""
    if os.environ.get("SEQUESTER_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
        return
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    where = ""
    if ours:
        file = Path(ours[-1].filename).relative_to(_PACKAGE.parent).as_posix()
        where = f" in {file}, line {ours[-1].lineno}"
    sys.stderr.write(
        f"internal error: {type(error).__name__}{where}\n"
        "This is a mistake in Sequester. Releases appear whole or not at all. SEQUESTER_DEBUG=1 shows the whole\n"
        "error, which may quote cells of your data: look before you share it.\n"
    )
