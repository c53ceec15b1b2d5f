"""What an audit was asked for and could not try: `holds` says nothing about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Untried:
    """Attacks without anything to work on, and why, without cells; `on` are the attributes, where not on all."""

    attacks: tuple[str, ...]
    why: str
    on: tuple[str, ...] = ()

    def __str__(self) -> str:
        on = f" on {_listed(self.on)}" if self.on else ""
        return f"{_listed(self.attacks)} {'was' if len(self.attacks) == 1 else 'were'} not tried{on}: {self.why}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"attacks": list(self.attacks), "why": self.why, "on": list(self.on)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Untried:
        """The reverse of `to_dict`."""
        return cls(tuple(raw["attacks"]), raw["why"], tuple(raw["on"]))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
