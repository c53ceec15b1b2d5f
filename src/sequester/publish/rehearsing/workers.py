"""Variants side by side, in processes of their own.

Waves are on no disk but in the ledgers of the trials, in a folder that whoever calls makes and removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sequester.processes import run_all, tell
from sequester.publish.rehearsing.trial import Trial, try_variant
from sequester.publish.rehearsing.variants import Variant
from sequester.publish.rehearsing.waves import Wave

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False, repr=False)
class Staging:
    """What all variants share: the waves, where their ledgers may be, and whether nobody need be recognised."""

    waves: tuple[Wave, ...]
    folder: Path
    new: bool

    def ledger(self, number: int) -> Path:
        """The place of the ledger of a variant."""
        return self.folder / f"{number}.ledger"

    def __call__(self, numbered: tuple[int, Variant]) -> tuple[int, Trial]:
        """Try one variant; every wave that is done is told by the name of the variant."""
        number, variant = numbered
        trial = try_variant(variant, self.waves, self.ledger(number), new=self.new, tell=lambda _: tell(variant.name))
        return number, trial


def try_all(staging: Staging, variants: Sequence[Variant], *, processes: int, told: Tell) -> tuple[Trial, ...]:
    """The trials of variants, in their order; `told` hears the name of a variant whenever one of its waves is done."""
    found = dict(run_all(staging, list(enumerate(variants)), processes=processes, hear=told))
    return tuple(found[number] for number in range(len(variants)))
