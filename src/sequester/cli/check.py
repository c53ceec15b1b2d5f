"""`sequester check`: is a policy right, and does a table fit it?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.options import POLICIES, Format, Shape, ShowValues, need_policy
from sequester.cli.series import ledger_of, read_ledger
from sequester.cli.terminal import line, print_json, show, values_may_show

if TYPE_CHECKING:
    from sequester.errors import Problem
    from sequester.ingest.snapshot import Snapshot
    from sequester.ingest.unseen import Unseen
    from sequester.policy import Policy

_MOST_LINES = 30
SUFFIXES = {Path(name).suffix for name in POLICIES}

EXAMPLES = """
check
check data.csv --show-values
check hospital.yaml data.csv
check --schema > policy.schema.json
"""


def check(
    first: Annotated[
        Path | None,
        typer.Argument(
            metavar="POLICY", help="The policy file, .yaml or .yml.", show_default="policy.yaml of this folder"
        ),
    ] = None,
    second: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A table to check against it.", show_default=False)
    ] = None,
    option: Annotated[
        Path | None, typer.Option("--policy", "-p", help="The policy file, as for other commands.", show_default=False)
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of policy files.")] = False,
    show_values: ShowValues = False,
    format: Shape = Format.TEXT,
) -> None:
    """Check a policy, and a table against it, and say in words what is promised."""
    if schema:
        from sequester.policy import Policy

        print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **Policy.model_json_schema()})
        return
    policy, data = _places(first, second, option)

    from sequester.errors import DataError, PolicyError

    try:
        shown = values_may_show(show_values)
        loaded, snapshot = _examine(policy, data, show_values=shown)
    except (PolicyError, DataError) as error:
        if format is Format.TEXT:
            raise
        print_json({"valid": False, "problems": [_problem(problem) for problem in error.problems]})
        raise typer.Exit(error.exit_code) from None
    if format is Format.JSON:
        print_json(_summary(loaded, snapshot) | {"changes": _since_last(policy, loaded)})
    else:
        _show(policy, loaded, data, snapshot, show_values=shown)


def _places(first: Path | None, second: Path | None, option: Path | None) -> tuple[Path, Path | None]:
    """The policy and the table: what is named alone is a policy if it is called like one."""
    if second is None and first is not None and (option or first.suffix.lower() not in SUFFIXES):
        first, second = None, first
    if first is not None and option is not None:
        raise typer.BadParameter("the policy is named twice", param_hint="--policy")
    return need_policy(first or option), second


def _examine(policy: Path, data: Path | None, *, show_values: bool) -> tuple[Policy, Snapshot | None]:
    from sequester.policy import Policy

    loaded = Policy.load(policy)
    # What cannot be changed any more is told before anything is read.
    _since_last(policy, loaded)
    graded = any(attribute.is_graded for attribute in loaded.sensitive.values())
    if data is None and not graded:
        return loaded, None

    from sequester.ingest.encode import check_grades, encode

    check_grades(loaded)
    if data is None:
        return loaded, None
    return loaded, encode(data, loaded, show_values=show_values)


def _problem(problem: Problem) -> dict[str, Any]:
    """A problem without its values: what is piped somewhere is not on a terminal."""
    return {name: getattr(problem, name) for name in ("file", "line", "key", "column", "rows", "message")}


def _summary(policy: Policy, snapshot: Snapshot | None) -> dict[str, Any]:
    from sequester.policy.describe import notes, promises, unpromised
    from sequester.publish.emit import runs_in

    attributes = {
        name: {"role": attribute.role, "kind": getattr(attribute, "kind", None)}
        for name, attribute in policy.attributes.items()
    }
    summary: dict[str, Any] = {"valid": True, "problems": [], "series": policy.series, "person": policy.person}
    promised = [promise.to_dict() for promise in promises(policy)]
    summary |= {"attributes": attributes, "promises": promised, "not_promised": unpromised(policy)}
    summary["notes"] = [*notes(policy), *_spelling(snapshot)]
    summary["never_together"] = [
        {"quasi-identifier": one.quasi, "sensitive": one.sensitive, "combinations": len(one.pairs)}
        for one in _never_together(policy, snapshot)
    ]
    summary["formulas"] = [runs.to_dict() for runs in runs_in(policy, snapshot)]
    if snapshot is not None:
        summary["data"] = {"records": len(snapshot), "left_out": snapshot.left_out}
        if policy.consent is not None:
            summary["data"]["withheld"] = snapshot.withheld
    return summary


def _show(file: Path, policy: Policy, data: Path | None, snapshot: Snapshot | None, *, show_values: bool) -> None:
    from sequester.policy.describe import notes
    from sequester.report.results import policy_blocks, titled

    person = f", person {policy.person} (never published)" if policy.person else ""
    line((str(file), "bold"), f" is valid: series {policy.series}{person}.")
    line()
    never = _never_together(policy, snapshot)
    lines = [text for one in never for text in one.lines()] if show_values else []
    more = [f"and {len(lines) - _MOST_LINES:,} more"] if len(lines) > _MOST_LINES else []
    show(
        [
            *policy_blocks(policy),
            *titled("Changed since the last release", _since_last(file, policy)),
            *titled("Think about", [*notes(policy), *_spelling(snapshot)]),
            *titled("Never together", [*never, *lines[:_MOST_LINES], *more]),
            *titled("Begins like a formula, which a spreadsheet runs", _formulas(policy, snapshot)),
        ]
    )
    if snapshot is not None:
        left = [
            f"; {count:,} {f'row without {what} is' if count == 1 else f'rows without {what} are'} left out"
            for count, what in ((snapshot.left_out, "a value"), (snapshot.withheld, "consent"))
            if count
        ]
        line()
        line((str(data), "bold"), f" fits: {len(snapshot):,} records{''.join(left)}.")


def _since_last(file: Path, policy: Policy) -> list[str]:
    """What a policy changes against the last release, where its ledger is there and can be read without its key."""
    from sequester.errors import PolicyError, SequesterError
    from sequester.publish.series import changes_of

    try:
        place = ledger_of(file, policy)
        if not place.exists():
            return []
        with read_ledger(place) as ledger:
            return changes_of(ledger, policy) if ledger.series == policy.series else []
    except PolicyError:
        raise
    except SequesterError:
        return []


def _never_together(policy: Policy, snapshot: Snapshot | None) -> list[Unseen]:
    """Values that are likely impossible together, where partners are chosen by what is possible."""
    from sequester.ingest.unseen import unseen

    return [] if snapshot is None else unseen(snapshot, policy)


def _spelling(snapshot: Snapshot | None) -> tuple[str, ...]:
    """Ids that are numbers written in several ways."""
    from sequester.publish.census import note_spelling

    return () if snapshot is None or snapshot.person is None else note_spelling(snapshot.person)


def _formulas(policy: Policy, snapshot: Snapshot | None) -> list[str]:
    """The columns that a spreadsheet would run something of, and what is done about it."""
    from sequester.outputs import OUTPUTS
    from sequester.publish.emit import runs_in

    lines = [str(runs) for runs in runs_in(policy, snapshot)]
    if lines and OUTPUTS[policy.output.format].is_text:
        escaped = policy.output.formulas == "escape"
        lines.append(
            "Each is written with an apostrophe before it." if escaped
            else "Write `output: {formulas: escape}` to have an apostrophe before each."
        )  # fmt: skip
    return lines
