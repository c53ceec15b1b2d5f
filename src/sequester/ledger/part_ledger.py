"""One part of a large series as a ledger of its own: whoever makes and judges releases need not know of parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

import pyarrow as pa

from sequester.ledger import hashing
from sequester.ledger.aliases import Aliases
from sequester.ledger.key import Key
from sequester.ledger.ledger import Ledger
from sequester.ledger.parts import PartList, PartStore, Shelf
from sequester.ledger.place import Place
from sequester.ledger.rows import Rows, make_rows
from sequester.ledger.state import Draft, Entry
from sequester.ledger.store import Versions


class PartLedger(Ledger):
    """One part of a series, read as a ledger of its own. What is new of it is written by `write_rows`."""

    def __init__(self, store: PartStore, facts: Mapping[str, str], key: Key | None, renamed: Aliases) -> None:
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
        self._check(draft, entries, empty=True)
        _, before, joining = self._before(draft, entries)
        return make_rows(draft, before, joining)


@dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """The parts of a series, to be opened one by one; picklable. `secret` is the key of the ledger, if it is known."""

    place: Place
    secret: bytes | None = field(repr=False)
    entries: tuple[Entry, ...]
    lists: tuple[PartList, ...]
    versions: Versions
    aliases: Aliases
    facts: Mapping[str, str]

    @classmethod
    def of(cls, ledger: Ledger) -> Parts:
        """Of an open ledger."""
        entries = ledger.trusted()
        ledger.check_rows()
        return cls(
            # Whoever works on a part may be in another folder.
            place=replace(ledger.place, home=ledger.place.home.absolute()),
            secret=ledger.lend_key(),
            entries=tuple(entries),
            lists=tuple(Shelf(ledger.place).lists(entries)),
            versions=ledger.texts,
            aliases=ledger.life.aliases(),
            # What a part goes on from, before its first release.
            facts={"series": ledger.series, "after_genesis": ledger.head},
        )

    def open(self, part: int) -> PartLedger:
        """What is known of one part."""
        cards = [listed.cards[part] for listed in self.lists]
        store = PartStore(Shelf(self.place), part, self.entries, cards, self.versions)
        return PartLedger(store, self.facts, None if self.secret is None else Key(self.secret), self.aliases)
