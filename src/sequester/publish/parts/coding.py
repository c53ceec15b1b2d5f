"""Rows as they are read to rows as they are dealt: codes, keyed hashes, and the part that each belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.engine.dealt import read_dealt
from sequester.engine.engine import PART
from sequester.errors import DataError, Problem
from sequester.ingest.encode import encode
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.rows import join_hashes, split_hashes
from sequester.policy.model import Policy
from sequester.publish.census import Identified
from sequester.publish.parts.division import codes_of
from sequester.publish.parts.errand import Errand, narrow

_HIGH, _LOW, _DIGEST = "high", "low", "digest"


@dataclass(frozen=True, eq=False, repr=False)
class Coder:
    """Codes some rows of a table; every cell is checked once more on the way."""

    errand: Errand

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The same rows, dealt."""
        errand = self.errand
        snapshot = encode(rows, errand.policy, hierarchies=errand.domains)
        people = Identified.of(errand.parts.open(0), snapshot, errand.policy)
        high, low = split_hashes(people.hashes)
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            PART: pa.array(errand.division.part_of(codes_of(snapshot.quasi_names, snapshot.quasi))),
            _HIGH: pa.array(high),
            _LOW: pa.array(low),
            _DIGEST: pa.array(people.digests),
        }
        for mark, codes, domains in (
            ("q", snapshot.quasi, snapshot.quasi_domains),
            ("s", snapshot.sensitive, snapshot.sensitive_domains),
        ):
            for place, (row, domain) in enumerate(zip(codes, domains, strict=True)):
                columns[f"{mark}{place}"] = narrow(row, domain.size)
        for place, name in enumerate(snapshot.plain_names):
            columns[f"p{place}"] = _plain(snapshot.insensitive[name])
        return pa.table(columns)


def twins(errand: Errand, count: int) -> DataError:
    """The error for people who are in the table twice, or in two parts."""
    names = ", ".join(errand.division.grid.names)
    who = "1 person is" if count == 1 else f"{count:,} people are"
    message = (
        f"{who} in the table twice, or with other values of {names} than when first published; correct the rows, or "
        "put back what does not change"
    )
    return DataError(Problem(message, column=errand.policy.person, rows=count))


def identified(errand: Errand, part: int) -> Identified:
    """The people of a part, by their hashes: whatever order their rows came in, it is the same."""
    rows = read_dealt(errand.dealt, part)
    rows = _no_rows(errand.policy) if rows is None else rows.combine_chunks()
    high, low = rows[_HIGH].to_numpy(), rows[_LOW].to_numpy()
    order = np.lexsort((low, high))
    rows = rows.take(pa.array(order))
    high, low = high[order], low[order]
    if again := int(np.count_nonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))):
        raise twins(errand, again)
    hashes = join_hashes(high, low)
    return Identified(_snapshot(errand, rows, hashes), hashes, hashes, rows[_DIGEST].to_numpy())


def _no_rows(policy: Policy) -> pa.Table:
    """Nobody, dealt: of a part whose people have all left."""
    kinds = {_HIGH: pa.uint64(), _LOW: pa.uint64(), _DIGEST: pa.int64()}
    for mark, names in (("q", policy.quasi_identifiers), ("s", policy.sensitive)):
        kinds |= {f"{mark}{place}": pa.int32() for place in range(len(names))}
    kinds |= {f"p{place}": pa.string() for place in range(len(policy.insensitive))}
    return pa.schema(kinds.items()).empty_table()


def _snapshot(errand: Errand, rows: pa.Table, hashes: pa.Array) -> Snapshot:
    from sequester.domain.plain import plain_codes

    policy, domains = errand.policy, errand.domains
    quasi, sensitive, plain = tuple(policy.quasi_identifiers), tuple(policy.sensitive), policy.insensitive
    cells = pa.table({name: rows[f"p{place}"] for place, name in enumerate(plain)})
    coded = [plain_codes(cells[name], domains[name])[1] for name in plain]
    codes = _codes(rows, "s", len(sensitive))
    return Snapshot(
        quasi_names=quasi,
        quasi=_codes(rows, "q", len(quasi)),
        quasi_domains=tuple(domains[name] for name in quasi),
        sensitive_names=sensitive,
        sensitive=codes,
        sensitive_domains=tuple(domains[name] for name in sensitive),
        person=hashes,
        insensitive=cells,
        plain=np.array(coded, np.int32).reshape(len(plain), rows.num_rows),
        plain_domains=tuple(domains[name] for name in plain),
        exact=codes,
    )


def _codes(rows: pa.Table, mark: str, count: int) -> NDArray[np.int32]:
    codes = np.empty((count, rows.num_rows), np.int32)
    for place in range(count):
        codes[place] = rows[f"{mark}{place}"].to_numpy()
    return codes


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
