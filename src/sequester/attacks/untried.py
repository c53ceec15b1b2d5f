"""What an audit was asked for and could not try: `holds` says nothing about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

PEOPLE = "the person column in the releases, or a population (`population=...`)"
"""What to give to an attack that asks who is in which class."""


class Reason(NamedTuple):
    """Why an attack had nothing to work on, and what to give so that it has; nothing where nothing would help."""

    why: str
    give: str = ""


@dataclass(frozen=True)
class Untried:
    """Attacks without anything to work on, and why, without cells; `on` are the attributes, where not on all.

    `give` is what they lack: with it they can be tried, and without it what was asked is undecided. It is empty where
    there is nothing to try.
    """

    attacks: tuple[str, ...]
    why: str
    on: tuple[str, ...] = ()
    give: str = ""

    def __str__(self) -> str:
        on = f" on {_listed(self.on)}" if self.on else ""
        give = f"; give {self.give}" if self.give else ""
        return f"{_listed(self.attacks)} {'was' if len(self.attacks) == 1 else 'were'} not tried{on}: {self.why}{give}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"attacks": list(self.attacks), "why": self.why, "on": list(self.on), "give": self.give}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Untried:
        """The reverse of `to_dict`."""
        return cls(tuple(raw["attacks"]), raw["why"], tuple(raw["on"]), raw.get("give", ""))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
