"""From what the ledger keeps to the histories that the next release is made and judged with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.domain.extend import places
from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.requirement import Requirement
from sequester.history.drift import steps_of
from sequester.history.history import History, Publication
from sequester.history.label import Labels, Plain, Rows
from sequester.history.sight import Sight, sights_of
from sequester.history.trajectory import Trajectories
from sequester.ledger.state import Memory, State
from sequester.policy.model import Policy

Codes = NDArray[np.int32]
Boxes = tuple[Codes, Codes]

_NO_ROWS = np.zeros(0, np.int32)


class Recalled(NamedTuple):
    """What was published, as methods and the audit look at it.

    histories  one per protected sensitive view, of everybody published so far and then of newcomers
    codes      per history, everybody's code
    labels     everybody's label; None where one view is all that a row shows
    """

    histories: tuple[History, ...]
    codes: tuple[Codes, ...]
    labels: Labels | None


def recall(
    state: State,
    policy: Policy,
    domains: Mapping[str, Hierarchy],
    *,
    requirement: Requirement | None = None,
    values: Codes | None = None,
    plain: Codes | None = None,
) -> Recalled:
    """Everything published so far.

    domains      of all attributes now; those of earlier releases have fewer leaves
    requirement  what the policy promises of these domains, where that is known
    values       (sensitive attributes, people) codes of everybody published so far, then of newcomers; by default what
                 the ledger has. `plain` are insensitive cells likewise
    """
    sensitive = tuple(policy.sensitive)
    if values is None:
        values = carry(state.values, [(state.domains[name], domains[name]) for name in sensitive])
    if plain is None:
        plain = carry(state.plain, [(state.domains[name], domains[name]) for name in state.insensitive])
    known = [domains[name] for name in sensitive]
    sights = sights_of(requirement or Requirement.from_policy(policy, known), policy, values, compact=False)
    releases = _Releases.of(state, policy, domains, people=values.shape[1])
    cells = Plain(policy.insensitive, plain, tuple(domains[name].names[0] for name in policy.insensitive))
    return Recalled(
        tuple(releases.history(sight) for sight in sights),
        tuple(sight.codes for sight in sights),
        Labels.of_policy(policy, known, sights, values, cells),
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Releases:
    """What all histories share: the releases' boxes, and who was in which class of them."""

    state: State
    policy: Policy
    domains: Mapping[str, Hierarchy]
    trajectories: Trajectories
    boxes: tuple[Boxes, ...]
    members: tuple[Codes, ...]

    @classmethod
    def of(cls, state: State, policy: Policy, domains: Mapping[str, Hierarchy], *, people: int) -> _Releases:
        of = np.full(people, -1, np.int32)
        of[: state.people] = state.trajectory
        size = np.bincount(state.trajectory[state.trajectory >= 0], minlength=len(state.path)).astype(np.int64)
        return cls(
            state,
            policy,
            domains,
            Trajectories(state.path, size, of),
            tuple(boxes_of(memory, tuple(policy.quasi_identifiers), domains) for memory in state.releases),
            tuple(np.append(state.path[:, number], np.int32(-1))[of] for number in range(len(state.releases))),
        )

    def history(self, sight: Sight) -> History:
        """What was published, as one view shows it."""
        state, policy, codes, names = self.state, self.policy, sight.codes, sight.names
        quasi, permanent = tuple(policy.quasi_identifiers), sight.permanent
        of = self.trajectories.of
        history = History(
            attribute=sight.view.name,
            element=sight.element,
            values=names,
            k=policy.protect.k,
            inferred=policy.fewest,
            bounds=sight.bounds,
            domains=tuple(self.domains[name] for name in quasi),
            quasi_names=quasi,
            links=np.array([not attribute.changes for attribute in policy.quasi_identifiers.values()], np.bool_),
            steps=steps_of(policy),
            permanent=permanent,
            kept=sight.kept,
            people=tuple(range(len(of))),
            trajectories=self.trajectories if state.releases else None,
            value=np.where(of >= 0, codes, -1).astype(np.int32) if permanent and state.releases else None,
            criteria=sight.criteria,
            guarded=policy.bounds_values,
        )
        counted = self._permanent_counts(sight) if permanent else self._changing_counts(sight)
        publications = []
        for memory, (lo, hi), member, counts in zip(state.releases, self.boxes, self.members, counted, strict=True):
            value = np.where(member >= 0, codes, -1).astype(np.int32) if permanent else None
            publications.append(Publication(memory.name, lo, hi, counts, _NO_ROWS, _NO_ROWS, member, value))
        return replace(history, releases=tuple(publications))

    def _permanent_counts(self, sight: Sight) -> Iterator[NDArray[np.int64]]:
        """Per release, (classes, values) people: what is permanent is counted by trajectory."""
        own, path = self.trajectories.count(sight.codes, len(sight.names)), self.state.path
        for number, memory in enumerate(self.state.releases):
            counts = np.zeros((len(memory), len(sight.names)), np.int64)
            inside = np.flatnonzero(path[:, number] >= 0)
            np.add.at(counts, path[inside, number], own[inside])
            yield counts

    def _changing_counts(self, sight: Sight) -> Iterator[NDArray[np.int64]]:
        """The same of values that change: as they were published."""
        name, place, of = sight.view.name, sight.view.place, sight.of
        if place is None or of is None:
            raise AssertionError("of combinations of values that change there is no history in a series")
        for memory in self.state.releases:
            counts = np.zeros((len(memory), len(sight.names)), np.int64)
            own_place = of[places(memory.domains[name], self.domains[name])]
            order = np.argsort(own_place, kind="stable")
            present, first = np.unique(own_place[order], return_index=True)
            counts[:, present] = np.add.reduceat(memory.counts[place][:, order], first, axis=1)
            yield counts


def rows_of(histories: Sequence[History], labels: Labels | None, against: Sequence[str]) -> Rows | None:
    """Whole rows of the releases of these histories, where they show more than one view; for these adversaries."""
    counted = bool({"neighbor", "all"} & set(against))
    return None if labels is None else Rows.of_people(histories[0], labels, counted=counted)


def carry(codes: Codes, domains: Sequence[tuple[Hierarchy, Hierarchy]]) -> Codes:
    """Codes (attributes, people) of domains before, in the domains now."""
    if not domains:
        return codes
    return np.array([places(old, new)[row] for row, (old, new) in zip(codes, domains, strict=True)], np.int32)


def boxes_of(memory: Memory, names: Sequence[str], domains: Mapping[str, Hierarchy]) -> Boxes:
    """The boxes of a release, in the domains now."""
    pairs = [(memory.domains[name], domains[name]) for name in names]
    return carry(memory.lo, pairs), carry(memory.hi, pairs)
