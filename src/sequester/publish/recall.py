"""From what the ledger keeps to the histories that the next release is made and judged with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.extend import places
from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.requirement import Requirement
from sequester.history.drift import steps_of
from sequester.history.history import History
from sequester.history.label import Labels, Plain, Rows
from sequester.history.publication import Publication
from sequester.history.sight import sights_of
from sequester.history.trajectory import Trajectories
from sequester.ledger.state import Memory, State
from sequester.policy.model import Policy

Boxes = tuple[NDArray[np.int32], NDArray[np.int32]]

_NO_ROWS = np.zeros(0, np.int32)


def recall(
    state: State, policy: Policy, domains: Mapping[str, Hierarchy], *, values: NDArray[np.int32] | None = None
) -> tuple[tuple[History, ...], tuple[NDArray[np.int32], ...]]:
    """One history per protected sensitive view of everybody published so far, and per history everybody's code.

    domains  of all attributes now; those of earlier releases have fewer leaves
    values   (sensitive attributes, people) codes of everybody published so far, then of newcomers; by default what the
             ledger has
    """
    sensitive = tuple(policy.sensitive)
    if values is None:
        values = carry(state.values, [(state.domains[name], domains[name]) for name in sensitive])
    requirement = Requirement.from_policy(policy, [domains[name] for name in sensitive])
    people = values.shape[1]
    of = np.full(people, -1, np.int32)
    of[: state.people] = state.trajectory
    size = np.bincount(state.trajectory[state.trajectory >= 0], minlength=len(state.path)).astype(np.int64)
    trajectories = Trajectories(state.path, size, of)
    quasi = tuple(policy.quasi_identifiers)
    boxes = [_boxes(memory, quasi, domains) for memory in state.releases]
    members = [np.append(state.path[:, number], np.int32(-1))[of] for number in range(len(state.releases))]
    histories, everybody = [], []
    for sight in sights_of(requirement, policy, values, compact=False):
        view, permanent, codes, names = sight.view, sight.permanent, sight.codes, sight.names
        history = History(
            attribute=view.name,
            element=sight.element,
            values=names,
            k=policy.protect.k,
            inferred=policy.protect.inferred,
            bounds=sight.bounds,
            domains=tuple(domains[name] for name in quasi),
            quasi_names=quasi,
            links=np.array([not attribute.changes for attribute in policy.quasi_identifiers.values()], np.bool_),
            steps=steps_of(policy),
            permanent=permanent,
            kept=sight.kept,
            people=tuple(range(people)),
            trajectories=trajectories if state.releases else None,
            value=np.where(of >= 0, codes, -1).astype(np.int32) if permanent and state.releases else None,
            diversity=view.diversity,
            closeness=view.closeness,
            guarded=policy.bounds_values,
        )
        own = trajectories.count(codes, len(names)) if permanent else None
        publications = []
        for number, (memory, (lo, hi), member) in enumerate(zip(state.releases, boxes, members, strict=True)):
            counts = np.zeros((lo.shape[1], len(names)), np.int64)
            if own is not None:
                inside = np.flatnonzero(state.path[:, number] >= 0)
                np.add.at(counts, state.path[inside, number], own[inside])
            else:
                # Of combinations of values that change there is no history in a series.
                assert view.place is not None
                assert sight.of is not None
                own_place = sight.of[places(memory.domains[view.name], domains[view.name])]
                order = np.argsort(own_place, kind="stable")
                present, first = np.unique(own_place[order], return_index=True)
                counts[:, present] = np.add.reduceat(memory.counts[view.place][:, order], first, axis=1)
            known = np.where(member >= 0, codes, -1).astype(np.int32) if permanent else None
            publications.append(Publication(memory.name, lo, hi, counts, _NO_ROWS, _NO_ROWS, member, known))
        histories.append(replace(history, releases=tuple(publications)))
        everybody.append(codes)
    return tuple(histories), tuple(everybody)


def recall_labels(
    state: State,
    policy: Policy,
    domains: Mapping[str, Hierarchy],
    *,
    values: NDArray[np.int32] | None = None,
    plain: NDArray[np.int32] | None = None,
) -> Labels | None:
    """Everybody's label, given as in `recall`; `plain` are insensitive cells likewise. None where one view is all."""
    sensitive = tuple(policy.sensitive)
    if values is None:
        values = carry(state.values, [(state.domains[name], domains[name]) for name in sensitive])
    if plain is None:
        plain = carry(state.plain, [(state.domains[name], domains[name]) for name in state.insensitive])
    cells = Plain(policy.insensitive, plain, tuple(domains[name].names[0] for name in policy.insensitive))
    known = [domains[name] for name in sensitive]
    sights = sights_of(Requirement.from_policy(policy, known), policy, values, compact=False)
    return Labels.of_policy(policy, known, sights, values, cells)


def rows_of(histories: Sequence[History], labels: Labels | None, against: Sequence[str]) -> Rows | None:
    """Whole rows of the releases of these histories, where they show more than one view; for these adversaries."""
    counted = bool({"neighbor", "all"} & set(against))
    return None if labels is None else Rows.of_people(histories[0], labels, counted=counted)


def carry(codes: NDArray[np.int32], domains: Sequence[tuple[Hierarchy, Hierarchy]]) -> NDArray[np.int32]:
    """Codes (attributes, people) of domains before, in the domains now."""
    if not domains:
        return codes
    return np.array([places(old, new)[row] for row, (old, new) in zip(codes, domains, strict=True)], np.int32)


def _boxes(memory: Memory, names: Sequence[str], domains: Mapping[str, Hierarchy]) -> Boxes:
    pairs = [(memory.domains[name], domains[name]) for name in names]
    return carry(memory.lo, pairs), carry(memory.hi, pairs)
