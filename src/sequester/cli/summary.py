"""Results on a terminal: what a release is, what it promises, what it cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from sequester.attacks.attack import Untried
    from sequester.guarantees.criterion import Outcome
    from sequester.metrics.measure import Measurement
    from sequester.publish.plan import Change, Check, Personal, PodFigures, Waiting

_WIDTH = 24
_VERSIONS = {"release": "this release", "static": "without a memory (unsafe)", "merge": "merge (Byun et al.)"}
_FRONTIER = {"loss": "AIL", "decoys": "decoys, of rows"}
_LOSSES = {"ail": "AIL", "ncp": "NCP", "dm": "DM", "precision": "precision", "entropy": "entropy"}


def show_measurement(screen: Console, measured: Measurement) -> None:
    """The figures, then every promise with what was required and what was reached."""
    figures = grid()
    left_out = f"{measured.suppressed:,} left out" if measured.suppressed else "none left out"
    decoys = (
        ""
        if measured.people is None
        else f" ({many(measured.records - measured.people, 'decoy', 'decoys')} among them)"
    )
    figures.add_row("rows", f"{measured.records:,} published{decoys}, {left_out}")
    each = measured.records / measured.classes
    people = "" if measured.fewest_people is None else f", {measured.fewest_people:,} or more of them people"
    figures.add_row("classes", f"{measured.classes:,} of {measured.k:,} or more rows{people}; {each:.3g} on average")
    for name, figure in (("k", measured.k), ("confidence", measured.confidence), ("l", measured.l), ("t", measured.t)):
        if figure is not None:
            figures.add_row(name, number(figure))
    figures.add_row("loss", losses(measured))
    if measured.query_error is not None:
        figures.add_row("query error", f"{number(measured.query_error)} (relative, on average)")
    screen.print(figures)
    screen.print()
    screen.print(_promises(measured.promises))


def show_files(screen: Console, files: Iterable[Path]) -> None:
    """Where the result is."""
    from rich.text import Text

    screen.print()
    for file in files:
        screen.print(Text(str(file), "bold"), soft_wrap=True)


def grid() -> Table:
    """Names on the left, what they are on the right."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def losses(measured: Measurement) -> str:
    """The losses of the literature on one line."""
    return ", ".join(
        f"{label} {number(measured.loss[name])}" for name, label in _LOSSES.items() if name in measured.loss
    )


def number(value: float | None) -> str:
    """A number with as many digits as anybody needs."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def many(count: int, one: str, more: str) -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else more}"


def columns(**right: bool) -> Table:
    """A table with these columns, and whether each is of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, numeric in right.items():
        table.add_column(title, justify="right" if numeric else "left", overflow="fold")
    return table


def changes(change: Change) -> str:
    """How a table differs from the last release."""
    parts = [
        f"{change.newcomers:,} new",
        f"{change.returned:,} returned" if change.returned else "",
        f"{change.stayers:,} stay" if change.stayers else "",
        f"{change.changed:,} of them changed" if change.changed else "",
        f"{change.leavers:,} left" if change.leavers else "",
    ]
    return ", ".join(part for part in parts if part)


def delays(waiting: Waiting) -> str:
    """Who cannot be hidden yet, and what is done about it."""
    longest = many(waiting.oldest, "release", "releases")
    parts = [
        f"{many(waiting.held, 'person is', 'people are')} held back, for {longest} at most" if waiting.held else "",
        f"{many(waiting.retained, 'who left is', 'who left are')} kept in the release" if waiting.retained else "",
        f"{many(waiting.left_out, 'record is', 'records are')} left out" if waiting.left_out else "",
    ]
    return "; ".join(part for part in parts if part) or "nobody"


def allowed(personal: Personal) -> str:
    """What people themselves allow; nothing where nobody said anything."""
    parts = [
        f"{many(personal.withheld, 'record', 'records')} without consent" if personal.withheld else "",
        f"{many(personal.withdrawn, 'person', 'people')} withdrew it" if personal.withdrawn else "",
        f"{personal.waiting:,} of them kept in the release until others hide their going" if personal.waiting else "",
        f"{many(personal.graded, 'value', 'values')} published as a node" if personal.graded else "",
        f"{personal.raised:,} by the person's own wish" if personal.raised else "",
        f"{personal.late:,} wishes came too late, after the value was published" if personal.late else "",
    ]
    return ", ".join(part for part in parts if part)


def add_personal(facts: Table, personal: Personal, gain: Mapping[str, float]) -> None:
    """Rows for what people allow, and for what that and generalizing gain and lose; none where there is nothing."""
    for label, text in (("allowed", allowed(personal)), ("privacy", gains(gain))):
        if text:
            facts.add_row(label, text)


def add_pods(facts: Table, pods: PodFigures | None, rows: int) -> None:
    """Rows for the decoys of a release, and for whose values hang together; none where there are no pods."""
    if pods is None:
        return
    must = f"; at least {pods.needed:,} must be" if pods.needed else ""
    share = f"{pods.decoys / rows:.1%} of the rows are about nobody{must}"
    facts.add_row("decoys", f"{pods.decoys:,}: {share}")
    fewest = many(pods.fewest, "person", "people")
    facts.add_row("people", f"every class has {fewest} or more beside its decoys; {pods.promised:,} must be")
    hang = (
        f"the values of {many(pods.largest, 'person', 'people')} at most hang together, {number(pods.mean)} on average"
    )
    facts.add_row("pods", f"{pods.pods:,}; {hang} ({many(pods.lineages, 'lineage', 'lineages')} so far)")


def believed(name: str, figures: Mapping[str, float]) -> str:
    """How sure somebody without prejudice could be of anybody's value, and about how many surer than its bound."""
    from sequester.attacks.words import share

    beyond = int(figures["beyond"])
    who = many(beyond, "person is", "people are") if beyond else "nobody is"
    return f"{name}: at most {share(figures['most'])}, by all releases; {who} above the bound"


def show_frontier(screen: Console, facts: Mapping[str, float]) -> None:
    """What other decoys or links would buy: facts called `frontier LABEL: FIGURE`, a row for each label."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in facts.items():
        if name.startswith("frontier "):
            label, _, figure = name.removeprefix("frontier ").rpartition(": ")
            rows.setdefault(label, {})[figure] = value
    if not rows:
        return
    titles = list(dict.fromkeys(figure for figures in rows.values() for figure in figures))
    table = columns(**{"if": False}, **dict.fromkeys((_FRONTIER.get(title, title) for title in titles), True))
    for label, figures in rows.items():
        shown = (
            f"{figures[one]:.1%}" if one == "decoys" and one in figures else number(figures.get(one)) for one in titles
        )
        table.add_row(label, *shown)
    screen.print()
    screen.print("What more or fewer decoys and links would buy")
    screen.print(table)


def gains(gain: Mapping[str, float]) -> str:
    """Privacy gain against information loss, of quasi-identifiers and of sensitive values."""
    return "; ".join(
        f"{label} gain {gain[f'{key}_gain']:.3f}, loss {gain[f'{key}_loss']:.3f}"
        for key, label in (("quasi", "quasi-identifiers"), ("sensitive", "sensitive values"))
        if f"{key}_gain" in gain
    )


def checks(tried: Iterable[Check]) -> Table:
    """Every attack that was tried: what is required, what it reached, and what is to spare."""
    from rich.text import Text

    table = columns(attack=False, about=False, adversary=False, required=True, reached=True, margin=True, **{"": False})
    for check in tried:
        verdict = Text("holds", "green") if check.holds else Text("broken", "bold red")
        figures = (check.required, check.reached, check.margin)
        table.add_row(check.attack, check.about, check.adversary, *(number(figure) for figure in figures), verdict)
    return table


def show_price(screen: Console, loss: Mapping[str, Mapping[str, float]], *, estimated: Collection[str] = ()) -> None:
    """The loss of a release beside that of the same records without a memory, and by merge."""
    losses_by_version = {
        f"{label}, estimated" if name in estimated else label: loss[name]["ail"]
        for name, label in _VERSIONS.items()
        if name in loss
    }
    screen.print("Loss (AIL)")
    screen.print(bars(screen, losses_by_version))


def bars(screen: Console, values: Mapping[str, float]) -> Table:
    """Figures, each with a bar to compare them by eye."""
    from rich.text import Text

    mark = "\u2501" if screen.encoding.startswith("utf") else "-"
    highest = max(values.values(), default=0)
    table = grid()
    for name, value in values.items():
        length = round(_WIDTH * value / highest) if highest > 0 else 0
        table.add_row(f"  {name}", Text.assemble(f"{number(value):>6}  ", (mark * length, "cyan")))
    return table


def show_untried(screen: Console, untried: Iterable[Untried]) -> None:
    """What was not tried: nothing is promised about it."""
    from rich.text import Text

    for place, one in enumerate(untried):
        if not place:
            screen.print()
        screen.print(Text(f"not promised: {one}", "dim"))


def show_notes(screen: Console, notes: Iterable[str]) -> None:
    """What else there is to know."""
    from rich.text import Text

    from sequester.cli.terminal import with_flags

    for place, note in enumerate(notes):
        if not place:
            screen.print()
        screen.print(Text(f"note: {with_flags(note)}", "dim"))


def _promises(promises: Iterable[Outcome]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("promise", overflow="fold")
    columns: dict[str, dict[str, Any]] = {"required": {"justify": "right"}, "reached": {"justify": "right"}, "": {}}
    for title, how in columns.items():
        table.add_column(title, no_wrap=True, **how)
    for promise in promises:
        verdict = Text("kept", "green") if promise.holds else Text("broken", "bold red")
        what = f"{promise.view}: {promise.promise}" if promise.view else promise.promise
        table.add_row(Text(what), number(promise.required), number(promise.observed), verdict)
    return table
