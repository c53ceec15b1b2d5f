"""From what the ledger keeps to the histories that the next release is made and judged with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sequester.domain.extend import places
from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.lifetime import lifetime_bounds
from sequester.guarantees.requirement import Requirement, View
from sequester.history.history import History
from sequester.history.publication import Publication
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
    for view in _views(requirement, values):
        permanent = _is_permanent(view, policy)
        codes, names, bounds = _named(view, requirement, values, compact=permanent)
        if not permanent:
            bounds = lifetime_bounds(policy, view.name, names, bounds)
        history = History(
            attribute=view.name,
            values=names,
            k=policy.protect.k,
            bounds=bounds,
            domains=tuple(domains[name] for name in quasi),
            quasi_names=quasi,
            links=np.array([not attribute.changes for attribute in policy.quasi_identifiers.values()], np.bool_),
            permanent=permanent,
            people=tuple(range(people)),
            trajectories=trajectories if state.releases else None,
            value=np.where(of >= 0, codes, -1).astype(np.int32) if permanent and state.releases else None,
            diversity=view.diversity,
            closeness=view.closeness,
        )
        own = trajectories.count(codes, len(names)) if permanent else None
        publications = []
        for number, (memory, (lo, hi), member) in enumerate(zip(state.releases, boxes, members, strict=True)):
            counts = np.zeros((lo.shape[1], len(names)), np.int64)
            if own is not None:
                inside = np.flatnonzero(state.path[:, number] >= 0)
                np.add.at(counts, state.path[inside, number], own[inside])
            else:
                place = sensitive.index(view.name)
                counts[:, places(memory.domains[view.name], domains[view.name])] = memory.counts[place]
            known = np.where(member >= 0, codes, -1).astype(np.int32) if permanent else None
            publications.append(Publication(memory.name, lo, hi, counts, _NO_ROWS, _NO_ROWS, member, known))
        histories.append(replace(history, releases=tuple(publications)))
        everybody.append(codes)
    return tuple(histories), tuple(everybody)


def carry(codes: NDArray[np.int32], domains: Sequence[tuple[Hierarchy, Hierarchy]]) -> NDArray[np.int32]:
    """Codes (attributes, people) of domains before, in the domains now."""
    if not domains:
        return codes
    return np.array([places(old, new)[row] for row, (old, new) in zip(codes, domains, strict=True)], np.int32)


def _boxes(memory: Memory, names: Sequence[str], domains: Mapping[str, Hierarchy]) -> Boxes:
    pairs = [(memory.domains[name], domains[name]) for name in names]
    return carry(memory.lo, pairs), carry(memory.hi, pairs)


def _views(requirement: Requirement, values: NDArray[np.int32]) -> list[View]:
    if not requirement.names:
        return [View("", np.zeros(values.shape[1], np.int32), 1)]
    return requirement.views(values)


def _is_permanent(view: View, policy: Policy) -> bool:
    of = [policy.sensitive[view.name]] if view.name in policy.sensitive else list(policy.sensitive.values())
    return all(attribute.values == "permanent" for attribute in of)


def _named(
    view: View, requirement: Requirement, values: NDArray[np.int32], *, compact: bool
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[Fraction, ...]]:
    """The codes of a view, the names of its values and their bounds; `compact` leaves out values nobody has."""
    bounds = (Fraction(1),) * view.size if view.confidence is None else view.confidence.bounds
    if not requirement.names:
        return view.codes, ("",), bounds
    present, first, inverse = np.unique(view.codes, return_index=True, return_inverse=True)
    codes = inverse.astype(np.int32)
    if view.name in requirement.names:
        place = requirement.names.index(view.name)
        if view.closeness is not None or not compact:
            # Distances between distributions depend on the values that nobody has, too.
            present, codes = np.arange(view.size, dtype=np.int32), view.codes
        names = [requirement.domains[place].names[0][code] for code in present.tolist()]
    else:
        rows = values[:, first].T.tolist()
        names = [" and ".join(d.names[0][c] for d, c in zip(requirement.domains, row, strict=True)) for row in rows]
    return codes, tuple(names), tuple(bounds[code] for code in present.tolist())
