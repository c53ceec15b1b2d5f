"""Values that never occur together although, by chance, they should have many times: likely they cannot.

Somebody who knows that a value cannot be hers sees through a pod in which she is meant to share it. Only the steward
knows what everybody knows, so this proposes and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING, MISSING, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.policy.attributes import Sensitive
from sequester.policy.impossible import codes_of
from sequester.policy.methods import Pods
from sequester.policy.model import Policy

if TYPE_CHECKING:
    from sequester.ingest.snapshot import Snapshot

EXPECTED = 20
"""Rows that two values would share if they had nothing to do with each other, from which on none is no chance."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Unseen:
    """The values of a quasi-identifier and of a sensitive attribute that never occur together, by name."""

    quasi: str
    sensitive: str
    pairs: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """Counts and columns only."""
        several = len(self.pairs) > 1
        what = f"{len(self.pairs):,} combinations" if several else "1 combination"
        return (
            f"{what} of {self.quasi} and {self.sensitive} never {'occur' if several else 'occurs'}, where chance would "
            f"give at least {EXPECTED} rows{' each' if several else ''}: likely impossible. What everybody knows "
            "belongs under `impossible`; --show-values proposes the lines."
        )

    def lines(self) -> list[str]:
        """The rules, as they are written in a policy."""
        from sequester.ingest.propose import quoted

        names = quoted(self.quasi), quoted(self.sensitive)
        return [f"- {{{names[0]}: {quoted(one)}, {names[1]}: {quoted(other)}}}" for one, other in self.pairs]


def unseen(snapshot: Snapshot, policy: Policy) -> list[Unseen]:
    """What never occurs together in a table, one quasi-identifier and one value that stays at a time.

    Nothing where no partners are chosen: it matters only to who shares a pod.
    """
    if not isinstance(policy.method, Pods):
        return []
    never = []
    for name, attribute in policy.sensitive.items():
        if kind_of(attribute).several or attribute.is_graded:
            continue
        values = snapshot.codes(name).astype(np.int64)
        domain = snapshot.domains[name]
        counts = np.where(_counted(domain, attribute), np.bincount(values, minlength=domain.size), 0)
        for quasi in snapshot.quasi_names:
            pairs = list(_pairs(snapshot, policy, quasi, name, values, counts))
            if pairs:
                never.append(Unseen(quasi, name, tuple(pairs)))
    return never


def _pairs(
    snapshot: Snapshot, policy: Policy, quasi: str, name: str, values: Integers, counts: Integers
) -> Iterator[tuple[str, str]]:
    leaves, domain, other = snapshot.codes(quasi).astype(np.int64), snapshot.domains[quasi], snapshot.domains[name]
    here = np.where(_counted(domain, None), np.bincount(leaves, minlength=domain.size), 0)
    leaf, value = _expected(here, counts, len(leaves))
    seen = np.unique(leaves * other.size + values)
    key = leaf * other.size + value
    at = np.searchsorted(seen, key)
    never = np.append(seen, -1)[at] != key
    said = [(codes_of(domain, rule[quasi]), codes_of(other, rule[name])) for rule in _rules(policy, quasi, name)]
    for one, two in zip(leaf[never].tolist(), value[never].tolist(), strict=True):
        if not any(a is not None and b is not None and a[one] and b[two] for a, b in said):
            yield domain.names[0][one], other.names[0][two]


def _expected(here: Integers, there: Integers, rows: int) -> tuple[Integers, Integers]:
    """Pairs of codes of which so many rows are expected; there are at most rows / EXPECTED of them."""
    order = np.argsort(-there, kind="stable")
    least = np.where(here > 0, -(-EXPECTED * rows // np.maximum(here, 1)), rows + 1)
    # The values with at least so many rows come first.
    many = np.searchsorted(-there[order], -least, side="right")
    leaf = np.repeat(np.arange(len(here)), many)
    rank = np.arange(len(leaf)) - np.repeat(np.cumsum(many) - many, many)
    return leaf, order[rank]


def _rules(policy: Policy, quasi: str, name: str) -> Iterator[dict[str, str]]:
    for rule in policy.impossible:
        if rule.keys() == {quasi, name}:
            yield rule


def _counted(domain: Hierarchy, attribute: Sensitive | None) -> NDArray[np.bool_]:
    """Per code, whether it is a value that somebody has, and keeps."""
    stay = attribute.permanent if attribute is not None and attribute.values == "transient" else None
    names = domain.names[0]
    counted = [name not in (MISSING, EVERYTHING) and (stay is None or name in stay) for name in names]
    return np.array(counted, np.bool_)
