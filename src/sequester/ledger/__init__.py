"""What the world already knows, on disk: an append-only, hash-chained file per series."""

from sequester.ledger.key import Key
from sequester.ledger.ledger import Ledger
from sequester.ledger.life import Ending
from sequester.ledger.place import Place
from sequester.ledger.state import HASH, Draft, Entry, Event, Memory, State, Verification, WaitingList

__all__ = [
    "HASH",
    "Draft",
    "Entry",
    "Event",
    "Key",
    "Ledger",
    "Memory",
    "Place",
    "Ending",
    "State",
    "Verification",
    "WaitingList",
]
