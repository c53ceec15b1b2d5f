"""The people of the next table by what is known of them: atoms, groups of newcomers, and who is left on her own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.cells import classify
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.specialize.bcf_kernels import Atoms, Before, Joiners

Longs = NDArray[np.int64]


def atoms_of(
    past: Past,
    codes: NDArray[np.int32],
    domains: Sequence[Hierarchy],
    guard: ClassGuard,
    before: Before,
    views: Sequence[int],
) -> tuple[Atoms, NDArray[np.int32], NDArray[np.int32]]:
    """Records with the same codes and the same past; the codes of each atom, and the atom of each record."""
    from sequester.methods.specialize.bcf_kernels import list_values

    records, pasts = len(past), len(before.path)
    everyone = np.hstack([codes, guard.population.T]) if guard.known else codes
    # People of the population are counted with the newcomers, so that each is counted once.
    known = np.full(everyone.shape[1], pasts - 1, np.int32)
    trajectories = past.first.trajectories
    if before.path.shape[1] and trajectories is not None:
        of = trajectories.of[past.person]
        known[:records] = np.where(of >= 0, of, pasts - 1)
    atom, count = classify(np.vstack([everyone, known]), [*(domain.size for domain in domains), pasts])
    first = np.zeros(count, np.int64)
    first[atom] = np.arange(len(atom))
    of_record = atom[:records]
    seen = np.empty((records, len(views)), np.int32)
    for place, view in enumerate(views):
        seen[:, place] = past.value[view] + before.first[place]
    atoms = Atoms(
        np.bincount(of_record, minlength=count).astype(np.int64),
        np.bincount(atom[records:], minlength=count).astype(np.int64),
        known[first].astype(np.int64),
        *list_values(of_record, guard.values, count, guard.limits.numerator.size),
        *list_values(of_record, seen, count, int(before.first[-1])),
    )
    return atoms, np.ascontiguousarray(everyone[:, first]), of_record


def joiners_of(atoms: Atoms, before: Before, *, everybody: bool) -> tuple[Joiners, Longs]:
    """All newcomers since each release in one group, or everybody, where groups without newcomers count."""
    count, releases = len(atoms.size), before.path.shape[1]
    group = np.full((releases, count), -1, np.int32)
    order = np.zeros((releases, count), np.int32)
    begin, end = np.zeros((releases, count + 1), np.int64), np.zeros((releases, count + 1), np.int64)
    for release in np.flatnonzero(before.joins).tolist():
        new = (atoms.size > 0) & ((before.path[atoms.past, release] < 0) | everybody)
        members = np.flatnonzero(new)
        group[release, members] = 0
        order[release, : len(members)] = members
        end[release, 0] = len(members)
    return Joiners(group, begin, end, order), np.ones(releases, np.int64)


def left_alone(past: Past, views: Sequence[int]) -> bool:
    """Whether people with one past who are not in the table are too few, or too many of them have one value."""
    trajectories = past.first.trajectories
    assert trajectories is not None
    of = trajectories.of.copy()
    of[past.person] = -1
    absent = np.flatnonzero(of >= 0)
    size = np.bincount(of[absent], minlength=len(trajectories))
    if ((size > 0) & (size < past.first.fewest)).any():
        return True
    for view in views:
        history = past.histories[view]
        assert history.value is not None
        counts = np.zeros((len(size), len(history.values)), np.int64)
        np.add.at(counts, (of[absent], history.value[absent]), 1)
        for value, bound in enumerate(history.bounds):
            if (counts[:, value] * bound.denominator > size * bound.numerator).any():
                return True
    return False
