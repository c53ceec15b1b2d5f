"""One part of a large series as a ledger of its own: whoever makes and judges releases need not know of parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import pyarrow as pa

from sequester.ledger import hashing
from sequester.ledger.aliases import Aliases
from sequester.ledger.key import Key
from sequester.ledger.ledger import Ledger
from sequester.ledger.parts import PartStore
from sequester.ledger.rows import Rows, make_rows
from sequester.ledger.state import Draft


class PartLedger(Ledger):
    """One part of a series, read as a ledger of its own. What is new of it is written by `write_rows`."""

    _is_part = True

    def __init__(self, store: PartStore, facts: Mapping[str, str], key: Key, renamed: Aliases) -> None:
        super().__init__(store, facts, key, encrypted=False)
        self._renamed = renamed
        # List, log and meta were compared by whoever opened the ledger, and rows are when they are read.
        self._trusted = True

    def identify(self, people: pa.Array | pa.ChunkedArray) -> pa.Array:
        """As the ledger does."""
        return self._renamed.resolve(hashing.identify(people, self.key), self.key)

    def begin(self, draft: Draft) -> NoReturn:
        """A part records nothing by itself."""
        raise AssertionError("what a part records is written with its release")

    def rows_of(self, draft: Draft) -> Rows:
        """What is to be recorded of a release of this part."""
        entries = self.trusted()
        self._check(draft, entries)
        _, before, joining = self._before(draft, entries)
        return make_rows(draft, before, joining)
