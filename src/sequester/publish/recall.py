"""From what the ledger keeps to the histories that the next release is made and judged with, and to rows of people who
left and are kept in a release, or of decoys.

Nothing about such a row may show that. What stays with a person is published as it was. What changes cannot be: the
last cells of somebody who left grow old, and a year or a count that nobody else has any more would mark her row. So she
shows what somebody who is there shows, drawn from her class without looking at anything else; whoever compares releases
expects it to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.codec import to_text
from sequester.domain.extend import gains, places
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.plain import plain_cells
from sequester.errors import PolicyError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.history.drift import steps_of
from sequester.history.history import History, Publication
from sequester.history.label import Labels, Plain, Rows
from sequester.history.sight import Sight, permanent_part, sights_of
from sequester.history.trajectory import Trajectories
from sequester.ingest.snapshot import Snapshot
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


def with_current_cells(
    records: Snapshot, policy: Policy, kept: NDArray[np.bool_], member: NDArray[np.int32], *, seed: list[int]
) -> Snapshot:
    """The records, the changing insensitive cells of those who are kept drawn from others of their class.

    kept    per record, whether it is about somebody who left
    member  per record, its class, -1 for none; of a class of nobody else the cells are drawn from the whole table
    """
    changing = [place for place, name in enumerate(records.plain_names) if name not in policy.lasting]
    if not changing or not kept.any() or kept.all():
        return records
    donor = np.arange(len(records))
    donor[kept] = _donors(np.flatnonzero(~kept & (member >= 0)), member, member[kept], [*seed, 5])
    plain, table = records.plain.copy(), records.insensitive
    for place in changing:
        name = records.plain_names[place]
        plain[place] = plain[place, donor]
        table = table.set_column(table.column_names.index(name), name, table[name].take(pa.array(donor)))
    return replace(records, plain=plain, insensitive=table)


def with_current_values(
    records: Snapshot, policy: Policy, decoy: NDArray[np.bool_], member: NDArray[np.int32], *, seed: list[int]
) -> Snapshot:
    """The records, sensitive values of decoys that change drawn from others of their class who have such a one."""
    sensitive = records.sensitive.copy()
    stays = permanent_part(policy, records.sensitive_domains, sensitive)
    for place, domain in enumerate(records.sensitive_domains):
        changing = stays[place] == domain.size
        donors, wanted = np.flatnonzero(changing & ~decoy & (member >= 0)), np.flatnonzero(changing & decoy)
        if len(donors) and len(wanted):
            drawn = _donors(donors, member, member[wanted], [*seed, 6, place])
            sensitive[place, wanted] = sensitive[place, drawn]
    return replace(records, sensitive=sensitive)


def _donors(
    here: NDArray[np.int64], member: NDArray[np.int32], wanted: NDArray[np.int32], seed: list[int]
) -> NDArray[np.int64]:
    """One of `here` for every wanted class: of that class, or of any where it has none."""
    here = here[np.argsort(member[here], kind="stable")]
    first, last = (np.searchsorted(member[here], wanted, side) for side in ("left", "right"))
    alone = first == last
    first, last = np.where(alone, 0, first), np.where(alone, len(here), last)
    donors: NDArray[np.int64] = here[np.random.default_rng(seed).integers(first, last)]
    return donors


def followed_by(snapshot: Snapshot, quasi: Codes, sensitive: Codes, plain: Codes) -> Snapshot:
    """The records and, after them, rows of these codes, about people who left or about nobody."""
    cells, person, count = snapshot.insensitive, snapshot.person, quasi.shape[1]
    if count and cells.column_names:
        columns = zip(cells.columns, snapshot.plain_domains, plain, strict=True)
        cells = pa.table([continued(*column) for column in columns], names=cells.column_names)
    if person is not None:
        person = pa.concat_arrays([person, pa.nulls(count, person.type)])
    return replace(
        snapshot,
        quasi=np.ascontiguousarray(np.hstack([snapshot.quasi, quasi])),
        sensitive=np.ascontiguousarray(np.hstack([snapshot.sensitive, sensitive])),
        insensitive=cells,
        plain=np.ascontiguousarray(np.hstack([snapshot.plain, plain])),
        person=person,
        exact=None,
        row=None,
    )


def continued(column: pa.ChunkedArray, domain: Hierarchy, codes: NDArray[np.int32]) -> pa.ChunkedArray:
    """A column and, after it, the cells last published of people who are kept in the release.

    Where these are no cells of the column's type, which was another one then, all of it becomes text.
    """
    try:
        return pa.chunked_array([*column.chunks, plain_cells(domain, codes, column.type)], column.type)
    except pa.ArrowInvalid:
        pass
    texts = [to_text(chunk).cast(pa.string()) for chunk in column.chunks]
    return pa.chunked_array([*texts, plain_cells(domain, codes, pa.string())], pa.string())


def check_boxes(state: State, policy: Policy, domains: Mapping[str, Hierarchy]) -> None:
    """Refuse new values that come into boxes published before, where somebody reasons from boxes.

    Nobody in those boxes had the new values. Whoever knows who is in which class (insider, lifetime) uses no boxes;
    what a neighbor can tell, and a registration list, would be reckoned with people who cannot have been there.
    """
    if "neighbor" not in policy.protect.against and policy.registration_list is None:
        return
    problems = []
    for row, (name, attribute) in enumerate(policy.quasi_identifiers.items()):
        if attribute.hierarchy is None or attribute.changes:
            continue
        wider = sum(
            int(gains(memory.lo[row], memory.hi[row], places(memory.domains[name], domains[name])).sum())
            for memory in state.releases
        )
        if wider:
            message = (
                f"new values lie inside {wider:,} boxes published before, where nobody had them; put them before or "
                "after all known values, or in a group that no published box reaches across"
            )
            problems.append(Problem(message, key=f"attributes.{name}.hierarchy"))
    if problems:
        raise PolicyError(problems)
