"""What the command line writes: results on stdout, everything else on stderr, and nothing private on either."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from sequester.errors import Problem, SequesterError
from sequester.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sequester.report.blocks import Block, Grid

_PACKAGE = Path(__file__).parent.parent
# Arguments that errors of the library name; commands have options of the same names.
_ARGUMENT = re.compile(r"\b(accept_loss|everybody_is_new|force|i_know_this_leaks|show_values|undo)=True\b")
_FLAGS = {
    "`folder=...`": "`--releases`",
    "`source=...`": "`--data`",
    "`population=...`": "`--population`",
    "`registered=...`": "`--registered`",
    "`target=...`": "`--target`",
    "look ahead to see": "plan with --ahead to see",
    "`audit.explain(1)`": "--explain 1",
    "`audit.findings_table()` has": "--findings all.parquet writes",
    "`audit.to_dict()`": "--format json",
}
_COLORS = {
    "good": "bold green", "bad": "red", "faint": "dim", "kept": "green", "holds": "green", "safe": "green",
    "finer": "green", "broken": "bold red", "coarser": "red", "undecided": "bold yellow",
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?[\d,.]+ ?[%*+s]?|-")
# Cells that are never broken, the length of a bar, and more than any terminal is wide.
_SHORT, _BAR, _ENDLESS = 12, 24, 10_000


Line = str | tuple[str, str]
"""A part of a line: a text, or a text and how it looks."""


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


def line(*parts: Line, style: str = "", end: str = "\n", stderr: bool = False, wrap: bool = False) -> None:
    """One line, which a terminal may break and nobody else does; with `wrap` words are broken as in a paragraph."""
    from rich.text import Text

    console(stderr=stderr).print(Text.assemble(*parts, style=style), soft_wrap=not wrap, end=end)


def say(text: str) -> None:
    """Something that is not the result."""
    sys.stderr.write(f"{visible(text)}\n")


def show_files(files: Iterable[Path]) -> None:
    """Where the result is."""
    line()
    for file in files:
        line(str(file), style="bold")


def show_result(thing: object, screen: Console | None = None) -> None:
    """Print what a notebook shows of the same thing."""
    from sequester.report.results import blocks_of

    show(blocks_of(thing), screen)


def show(blocks: Iterable[Block], screen: Console | None = None) -> None:
    """Print a result, block by block; what belongs to the one before stands right below it."""
    from sequester.report.blocks import Bullets, Heading, Paragraph, Remark

    screen = console() if screen is None else screen
    before: Block | None = None
    for block in blocks:
        drawn = _drawn(block, screen)
        if not drawn:
            continue
        titled = isinstance(before, Heading) and before.level > 1
        alike = isinstance(block, Paragraph | Remark) and type(before) is type(block)
        goes_on = alike or (isinstance(block, Paragraph) and block.lead)
        goes_on |= isinstance(block, Bullets) and isinstance(before, Remark)
        goes_on |= isinstance(block, Heading) and bool(block.tone)
        if before is not None and not titled and not goes_on:
            screen.print()
        for one in drawn:
            screen.print(one, soft_wrap=isinstance(block, Heading | Remark))
        before = block


def _drawn(block: Block, screen: Console) -> list[Any]:
    """What rich prints of a block; nothing of pictures, and of what only a page has to say."""
    from rich.text import Text

    from sequester.report import blocks

    match block:
        case blocks.Heading(text, _, tone):
            return [Text(with_flags(text), f"bold {_COLORS.get(tone, '')}".strip())]
        case blocks.Paragraph(text, lead):
            return [Text(with_flags(text), "dim" if lead else "")]
        case blocks.Remark(text, tone) if tone != "private":
            return [Text(with_flags(text), f"bold {_COLORS.get(tone, '')}".strip())]
        case blocks.Bullets(items):
            return [grid([("-", with_flags(item)) for item in items], padding=1)]
        case blocks.Grid(heads, rows) if rows:
            return [table(block, gap=2 if fits(block) else 1) if any(heads) else grid(rows)]
        case blocks.Bars(title, figures) if figures:
            return [Text(title, "bold"), _bars(figures, screen)]
    return []


def grid(rows: Iterable[Sequence[Any]], *, padding: int = 3) -> Table:
    """Names on the left, what they are on the right."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, show_header=False, pad_edge=False, padding=(0, padding, 0, 0))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, said in rows:
        drawn.add_row(Text(_cell(name)), said if isinstance(said, Text) else Text(_cell(said)))
    return drawn


def table(block: Grid, *, gap: int = 2) -> Table:
    """Columns with their heads; numbers stand right and are never broken."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for place, head in enumerate(block.heads):
        cells = [_cell(row[place]) for row in block.rows]
        right = any(map(_NUMBER.fullmatch, cells)) and all(_NUMBER.fullmatch(cell) or " " not in cell for cell in cells)
        short = all(len(cell) <= _SHORT for cell in cells)
        # A number that has no room is seen to be cut off.
        overflow: Literal["ellipsis", "fold"] = "ellipsis" if right else "fold"
        drawn.add_column(head, justify="right" if right else "left", overflow=overflow, no_wrap=right or short)
    for row, tone in zip_longest(block.rows, block.tones, fillvalue=""):
        drawn.add_row(
            *(Text(cell, _COLORS.get(cell, "")) for cell in map(_cell, row)), style=_COLORS.get(str(tone), "")
        )
    return drawn


def fits(block: Grid) -> bool:
    """Whether a table has room without breaking a cell."""
    screen = console()
    wanted = screen.measure(table(block), options=screen.options.update(max_width=_ENDLESS)).maximum
    return wanted <= screen.width


def _bars(figures: Mapping[str, float], screen: Console) -> Table:
    from rich.text import Text

    mark = "\u2501" if screen.encoding.startswith("utf") else "-"
    highest = max(figures.values(), default=0) or 1.0
    rows = []
    for name, value in figures.items():
        bar = mark * round(_BAR * value / highest)
        rows.append((f"  {name}", Text.assemble(f"{_cell(value):>6}  ", (bar, "cyan"))))
    return grid(rows)


def _cell(value: Any) -> str:
    from sequester.report.canvas import in_words

    return "-" if value is None else in_words(value)


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

        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

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
        raise typer.BadParameter(f"{out} exists; --force replaces it, {option} names another place", param_hint=option)


def with_flags(text: str) -> str:
    """What the library says, with options of a command in place of arguments: force=True is --force."""
    text = _ARGUMENT.sub(lambda argument: f"--{argument[1].replace('_', '-')}", text)
    for argument, option in _FLAGS.items():
        text = text.replace(argument, option)
    return text


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
