"""Whether a series that begins is one that is there already, under another name or at another place.

Such a series would begin anew and know nothing of what was published: whoever holds both could subtract them. One that
was renamed has a table with the same columns, so the heads beside the key and the release folders of others tell; one
whose ledger was mistyped is where its policy says.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from sequester.errors import DataError, Problem
from sequester.ledger import Place, evidence, witness
from sequester.ledger.evidence import Trouble
from sequester.policy.attributes import Insensitive
from sequester.policy.model import Policy
from sequester.regular import bytes_of


def refuse_alike(place: Place, policy: Policy, folder: Path) -> None:
    """Stop a first release of a table that another series nearby seems to be of."""
    others = sorted(set(_alike(place, policy, folder)))
    if others:
        raise DataError(
            Problem(
                f"{others[0]} has releases of a table with the same columns. If this is that series under another "
                "name, put its name back, or go on from its ledger with `after`; whoever is in both would be published "
                "twice, and nobody would count that. If nobody is in both, say so with everybody_is_new=True",
                key="series",
            )
        )


def named_by(policy: Policy, base: Path | None = None) -> Place:
    """The ledger that a policy names: a file relative to its own folder, or else SERIES.ledger there."""
    named = f"{policy.series}.ledger" if policy.ledger is None else policy.ledger
    return Place.named(named, policy.path(".") if base is None else base, series=policy.series)


def of_beginning(place: Place, policy: Policy, folder: Path) -> list[Trouble]:
    """What speaks against a first release with the ledger at a place: the series is there, or where its policy says."""
    named, found = named_by(policy), [] if place.exists() else [*evidence.of_nothing(place, policy.series, folder)]
    if not _is_same(place, named):
        if named.exists():
            message = (
                "is the ledger that the policy names, and exists; with another one the series would begin again beside "
                "its releases. Leave the other out, or name it in the policy as `ledger`, if it is the right one"
            )
            found.append(Trouble(f"another ledger {named}", message, str(named)))
        else:
            found += evidence.of_nothing(named, policy.series, named.releases)
    return [*{trouble.mark: trouble for trouble in found}.values()]


def _is_same(place: Place, other: Place) -> bool:
    if place.is_file and other.is_file:
        return place.file.resolve() == other.file.resolve()
    return place.is_file == other.is_file and place.server == other.server


def _alike(place: Place, policy: Policy, folder: Path) -> Iterator[str]:
    """The names of series nearby whose tables have the same columns."""
    names = _published(policy)
    for head in witness.beside(place).values():
        if head.series != policy.series and head.columns == witness.columns_digest(names):
            yield head.series
    for other in sorted(folder.iterdir()) if folder.is_dir() else ():
        if other.is_dir() and other.name != policy.series:
            last = evidence.folders(folder, other.name)[-1:]
            if last and _columns(last[0]) == set(names):
                yield other.name


def _published(policy: Policy) -> list[str]:
    plain = [name for name, attribute in policy.attributes.items() if isinstance(attribute, Insensitive)]
    return [*policy.quasi_identifiers, *policy.sensitive, *plain]


def _columns(place: Path) -> set[str]:
    """The attributes that a release shows."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        columns = json.loads(bytes_of(place / "release.json"))["columns"]
        return {str(column["of"]) for column in columns if column["role"] != "weight"}
    return set()
