"""Rows in the guard of a series: can enough people own every row, and can everybody deny every value?

People of a block exchange labels in ways that change no class; whatever such exchanges reach is possible. The true
labels are one assignment. A row has as owners all people of its class whose trajectory has its label, or can be brought
to have it. Both questions are linear programs over the trajectories of the blocks that cannot vouch for themselves, all
blocks in one; the audit has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sequester.deferred import connected_components, coo_array, csr_array, hstack, linprog
from sequester.history.label import Labels
from sequester.methods.series_guard.proposed import Longs, Mask, ProposedRelease

_NOISE = 1e-6
_LARGEST = 60_000
"""Options of a component that are solved at most: that takes a few seconds."""
_SOLVED = 4000
"""Options of the components that are solved together: enough that calling the solver is cheap beside solving."""


@dataclass(frozen=True, eq=False, repr=False)
class Options:
    """What trajectories of some components of a proposed release may have, by what all their classes show.

    columns     (trajectories, releases and the proposed one) classes, each at most once; -1 for none
    trajectory, label, own   every option, and how many people of the trajectory truly have it
    classes, at  every class of every option: the class, and the option
    width       number of labels; a row is class * width + label
    """

    columns: Longs
    trajectory: Longs
    label: Longs
    own: Longs
    classes: Longs
    at: Longs
    width: int

    @classmethod
    def of(cls, proposed: ProposedRelease, labels: Labels, wanted: Mask) -> Options:
        """Of the trajectories that are wanted; they are whole components."""
        columns, width, label = _once(proposed), len(labels), labels.of[proposed.person].astype(np.int64)
        key, own = np.unique(proposed.row * width + label, return_counts=True)
        holder, held = key // width, key % width
        place, release = np.nonzero(columns[holder] >= 0)
        shown = np.unique(columns[holder[place], release] * width + held[place])
        of_class = shown // width
        chosen = np.flatnonzero(wanted)
        lists = np.where(columns[chosen] >= 0, columns[chosen], -1)
        first, last = np.searchsorted(of_class, lists), np.searchsorted(of_class, lists, side="right")
        count = np.where(lists >= 0, last - first, np.iinfo(np.int64).max)
        least = count.argmin(axis=1)
        rows = np.arange(len(chosen))
        start, length = first[rows, least], count[rows, least]
        trajectory = np.repeat(chosen, length)
        offset = np.arange(len(trajectory)) - np.repeat(np.cumsum(length) - length, length)
        option = shown[np.repeat(start, length) + offset] % width
        fits = np.ones(len(trajectory), np.bool_)
        for column in columns.T:
            inside = np.flatnonzero(fits & (column[trajectory] >= 0))
            row = column[trajectory[inside]] * width + option[inside]
            fits[inside] = shown[np.minimum(np.searchsorted(shown, row), len(shown) - 1)] == row
        trajectory, option = trajectory[fits], option[fits]
        wish = trajectory * width + option
        spot = np.minimum(np.searchsorted(key, wish), len(key) - 1)
        at, release = np.nonzero(columns[trajectory] >= 0)
        return cls(
            columns,
            trajectory,
            option,
            np.where(key[spot] == wish, own[spot], 0),
            columns[trajectory[at], release],
            at,
            width,
        )

    def __len__(self) -> int:
        return len(self.trajectory)

    def take(self, kept: Mask) -> Options:
        """Some of them."""
        number = np.cumsum(kept) - 1
        inside = kept[self.at]
        return Options(
            self.columns,
            self.trajectory[kept],
            self.label[kept],
            self.own[kept],
            self.classes[inside],
            number[self.at[inside]],
            self.width,
        )

    def sums(self, trajectories: int) -> tuple[csr_array, Longs]:
        """The matrix that adds options up over trajectories and over rows, and what each of its lines is."""
        line = np.concatenate([self.trajectory, trajectories + self.classes * self.width + self.label[self.at]])
        column = np.concatenate([np.arange(len(self)), self.at])
        names, line = np.unique(line, return_inverse=True)
        return coo_array((np.ones(len(line)), (line, column)), shape=(len(names), len(self))).tocsc(), names


def _once(proposed: ProposedRelease) -> Longs:
    """The classes of every trajectory, those that earlier ones repeat left out."""
    columns = proposed.columns.copy()
    for number in range(1, columns.shape[1]):
        again = (columns[:, :number] == columns[:, [number]]).any(axis=1)
        columns[again, number] = -1
    return columns


def few_owners(proposed: ProposedRelease, labels: Labels, k: int, live: Mask) -> Mask:
    """Per block, whether some row of any release can be owned by fewer than k people; of live blocks."""
    bad = np.zeros(proposed.blocks, np.bool_)
    small = (proposed.size < k) & live[proposed.block]
    if not small.any():
        return bad
    touched = np.zeros(int(proposed.component.max()) + 1, np.bool_)
    touched[proposed.component[small]] = True
    options = Options.of(proposed, labels, touched[proposed.component])
    if not len(_short(proposed, options.take(options.own > 0), k)):
        return bad
    for column in range(options.columns.shape[1] - 1):
        options = options.take(_exchanged(proposed, options, column))
    bad[_short(proposed, options, k)] = True
    bad[_too_large(proposed, options)] = True
    # Where two releases alone leave too few, nothing has to be solved.
    options = options.take(~bad[proposed.block[options.trajectory]])
    for part in _batches(proposed, options):
        bad[_short(proposed, part.take(_reached(proposed, part)), k)] = True
    return bad & live


def _too_large(proposed: ProposedRelease, options: Options) -> Longs:
    """Blocks with a component that would take too long to solve: what is not known to be safe is not."""
    part = proposed.component[options.trajectory]
    return np.asarray(proposed.block[options.trajectory[(np.bincount(part, minlength=1) > _LARGEST)[part]]])


def _short(proposed: ProposedRelease, options: Options, k: int) -> Longs:
    """Blocks with a row that fewer than k people may own by these options."""
    row, owners = _owners(proposed, options)
    block = np.zeros(int(options.classes.max(initial=-1)) + 1, np.int64)
    block[options.classes] = proposed.block[options.trajectory[options.at]]
    return np.asarray(block[row[owners < k] // options.width])


def _batches(proposed: ProposedRelease, options: Options) -> Iterator[Options]:
    """Whole components of about so many options at a time: one program of everything takes far longer than many."""
    part = proposed.component[options.trajectory]
    size = np.bincount(part, minlength=1)
    batch = (np.cumsum(size) - size) // _SOLVED
    for number in np.unique(batch[size > 0]).tolist():
        yield options.take(batch[part] == number)


def _owners(proposed: ProposedRelease, options: Options) -> tuple[Longs, Longs]:
    """Every row that somebody may own by these options, and how many people may."""
    row, inverse = np.unique(options.classes * options.width + options.label[options.at], return_inverse=True)
    people = np.bincount(inverse, weights=proposed.size[options.trajectory[options.at]], minlength=len(row))
    return row, people.astype(np.int64)


def _exchanged(proposed: ProposedRelease, options: Options, column: int) -> Mask:
    """Which options an earlier release and the proposed one admit, for each label against all others."""
    outside = len(proposed.past_classes.lo) + len(proposed.lo)
    ends = options.columns[options.trajectory][:, [column, -1]]
    node = np.where(ends >= 0, ends, outside) * options.width + options.label[:, None]
    names, number = np.unique(node, return_inverse=True)
    number = number.reshape(node.shape)
    more, fewer = options.own < proposed.size[options.trajectory], options.own > 0
    tail = np.concatenate([number[more, 0], number[fewer, 1]])
    head = np.concatenate([number[more, 1], number[fewer, 0]])
    graph = coo_array((np.ones(len(tail), np.int8), (tail, head)), shape=(len(names), len(names)))
    part = connected_components(graph, directed=True, connection="strong")[1]
    # A trajectory that has one class in both places is not exchanged there.
    return np.asarray(fewer | (part[number[:, 0]] == part[number[:, 1]]) | (ends[:, 0] < 0) | (ends[:, 1] < 0))


def _reached(proposed: ProposedRelease, options: Options) -> Mask:
    """Which options exchanges reach: one program, in which everything that can be reached is."""
    others = np.flatnonzero(options.own == 0)
    if not len(others):
        return np.ones(len(options), np.bool_)
    matrix, names = options.sums(len(proposed.size))
    free = np.where(options.own > 0, -np.inf, 0.0)
    found = linprog(
        np.append(np.zeros(len(options)), -np.ones(len(others))),
        A_eq=hstack([matrix, matrix[:, others]], format="csc"),
        b_eq=np.zeros(len(names)),
        bounds=np.column_stack(
            [np.append(free, np.zeros(len(others))), np.append(np.full(len(options), np.inf), np.ones(len(others)))]
        ),
        method="highs",
    )
    reached: Mask = options.own > 0
    if found.status == 0:
        # When the solver gives up only what is true is known.
        reached[others] = found.x[len(options) :] > 0.5
    return reached


def undeniable(proposed: ProposedRelease, labels: Labels, live: Mask) -> Mask:
    """Per block, whether somebody is tied to a value too surely under every belief."""
    bad = np.zeros(proposed.blocks, np.bool_)
    top = np.array([question.bound.numerator for question in labels.questions], np.int64)
    bottom = np.array([question.bound.denominator for question in labels.questions], np.int64)
    if not len(top):
        return bad
    person, asked = labels.questions_of(labels.of[proposed.person])
    own, count = np.unique(proposed.row[person] * len(top) + asked, return_counts=True)
    holder, question = own // len(top), own % len(top)
    over = count * bottom[question] > top[question] * proposed.size[holder]
    touched = np.zeros(int(proposed.component.max(initial=-1)) + 1, np.bool_)
    touched[proposed.component[holder[over & live[proposed.block[holder]]]]] = True
    if not touched.any():
        return bad
    options = Options.of(proposed, labels, touched[proposed.component])
    if labels.answers:
        # Whole rows; of the values of one view there are few enough.
        bad[_too_large(proposed, options)] = True
    options = options.take(~bad[proposed.block[options.trajectory]])
    for part in _batches(proposed, options):
        bad[_beyond(proposed, labels, part, own[over])] = True
    return bad


def _beyond(proposed: ProposedRelease, labels: Labels, options: Options, over: Longs) -> Longs:
    """Blocks of these options in which some value exceeds its bound under every belief.

    over  trajectory * questions + question where the truth exceeds a bound: only there may anything, at a price
    """
    top = np.array([question.bound.numerator for question in labels.questions], np.int64)
    bottom = np.array([question.bound.denominator for question in labels.questions], np.int64)
    matrix, names = options.sums(len(proposed.size))
    total = np.asarray(matrix @ options.own)
    at, asked = labels.questions_of(options.label)
    cap, line = np.unique(options.trajectory[at] * len(top) + asked, return_inverse=True)
    caps = coo_array((np.ones(len(at)), (line, at)), shape=(len(cap), len(options)))
    beyond = np.flatnonzero(np.isin(cap, over))
    excess = coo_array((-np.ones(len(beyond)), (beyond, np.arange(len(beyond)))), shape=(len(cap), len(beyond)))
    found = linprog(
        np.append(np.zeros(len(options)), np.ones(len(beyond))),
        A_ub=hstack([caps, excess], format="csc"),
        b_ub=top[cap % len(top)] * proposed.size[cap // len(top)] / bottom[cap % len(top)],
        A_eq=hstack([matrix, csr_array((len(names), len(beyond)))], format="csc"),
        b_eq=total,
        method="highs",
    )
    block = proposed.block[cap[beyond] // len(top)]
    # When the solver gives up, what is not known to be safe is not.
    return block if found.status != 0 else np.asarray(block[found.x[len(options) :] > _NOISE])
