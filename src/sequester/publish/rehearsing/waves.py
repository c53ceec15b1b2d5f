"""The waves of a rehearsal: read once, and found to be waves of one series before anything is tried."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.domain.people import names
from sequester.errors import DataError
from sequester.ingest.encode import encode, encode_next
from sequester.ingest.read import read
from sequester.ledger import Key, Ledger
from sequester.ledger.state import HASH, Draft, State
from sequester.policy.fingerprint import fingerprint, policy_text
from sequester.policy.model import Policy
from sequester.publish.census import Census, take_census
from sequester.visible import visible


@dataclass(frozen=True, eq=False, repr=False)
class Wave:
    """One past state of the table, with the columns that the policy names and no others.

    name   to show; `file`, where it is one, is where it was read from
    """

    name: str
    table: pa.Table
    file: str | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)


def read_waves(sources: Sequence[Any], policy: Policy) -> tuple[Wave, ...]:
    """Read every wave, in order: paths, frames, or relations."""
    if isinstance(sources, str | os.PathLike) or not len(sources):
        raise DataError("give the waves as a list, in the order in which they would have been published")
    form, waves = policy.input, []
    for name, source in zip(_names(sources), sources, strict=True):
        table = read(
            source,
            delimiter=form.delimiter,
            quote=form.quote,
            encoding=form.encoding,
            missing=form.missing,
            columns=_needed(policy),
        )
        waves.append(Wave(name, table, os.fspath(source) if isinstance(source, str | os.PathLike) else None))
    return tuple(waves)


def check_waves(waves: Sequence[Wave], policy: Policy, folder: Path, *, new: bool, show_values: bool) -> None:
    """Raise DataError, with the wave in question, unless the waves are of one series under this policy.

    They are put into a ledger of their own, everybody in a class by herself with her own cells: then whatever must not
    change, or moves by a known step, is compared exactly. `new`: nobody need be recognised.
    """
    with new_ledger(folder / "waves.ledger", policy, Key(secrets.token_bytes(32))) as ledger:
        for wave in waves:
            try:
                _add(ledger, wave, policy, new=new, show_values=show_values)
            except DataError as error:
                problems = [replace(one, file=one.file or wave.file or wave.name) for one in error.problems]
            else:
                continue
            raise DataError(problems)


def key_of(wave: Wave, policy: Policy) -> Key:
    """The same for the same waves, since rows are taken in the order of hashes; nobody without the waves has it."""
    ids = sorted(names(wave.table[policy.person]).to_pylist())
    return Key(hashlib.sha256("\0".join(ids).encode()).digest())


def new_ledger(file: Path, policy: Policy, key: Key) -> Ledger:
    """A ledger that nobody needs again."""
    return Ledger.create(
        file,
        series=policy.series,
        policy_text=policy_text(policy),
        fingerprint=fingerprint(policy),
        key=key,
    )


def _names(sources: Sequence[Any]) -> list[str]:
    """Names of files without their ends, or numbers where these are not all different."""
    stems = [visible(Path(one).name.split(".")[0]) if isinstance(one, str | os.PathLike) else "" for one in sources]
    if len(set(stems)) == len(stems) and all(stems):
        return stems
    return [f"wave {number}" for number in range(1, len(stems) + 1)]


def _needed(policy: Policy) -> list[str]:
    """The columns that are read: no identifiers, and nothing that the policy does not name."""
    guarding = [one.guarding for one in policy.sensitive.values() if one.guarding is not None]
    consent = [] if policy.consent is None else [policy.consent[0]]
    person = [] if policy.person is None else [policy.person]
    named = [*person, *policy.quasi_identifiers, *policy.sensitive, *policy.insensitive, *consent, *guarding]
    return list(dict.fromkeys(named))


def _add(ledger: Ledger, wave: Wave, policy: Policy, *, new: bool, show_values: bool) -> None:
    state = ledger.load()
    if state.releases:
        snapshot = encode_next(wave.table, policy, state.domains, show_values=show_values)
    else:
        snapshot = encode(wave.table, policy, show_values=show_values)
    census, _ = take_census(ledger, state, snapshot, policy, everybody_is_new=new)
    ledger.finish(ledger.begin(_alone(state, census, policy)).number)


def _alone(state: State, census: Census, policy: Policy) -> Draft:
    """Everybody of a wave in a class by herself."""
    snapshot, known, new = census.snapshot, len(census.last), census.newcomers
    number = census.number.copy()
    number[new] = known + np.arange(len(new))
    people = known + len(new)
    member = np.full(people, -1, np.int32)
    member[number] = np.arange(len(number))
    values, plain = (np.zeros((len(codes), people), np.int32) for codes in (snapshot.sensitive, snapshot.plain))
    values[:, :known], plain[:, :known] = census.values, census.plain
    values[:, number], plain[:, number] = snapshot.sensitive, snapshot.plain
    return Draft(
        name=f"wave-{len(state.releases) + 1}",
        head=state.head,
        quasi=snapshot.quasi_names,
        sensitive=snapshot.sensitive_names,
        domains=snapshot.domains,
        lo=snapshot.quasi,
        hi=snapshot.quasi,
        member=member,
        values=values,
        newcomers=census.people.hashes.take(pa.array(new)).cast(HASH),
        digests=census.people.digests[new][None],
        input_digest="",
        output_digest="",
        method=policy.method.name,
        insensitive=snapshot.plain_names,
        plain=plain,
    )
