"""The people of one node of the tree, in classes that are still being cut, and cheap tests of a cut against the past.

Most tests are sufficient or necessary, not exact: what passes them is judged exactly afterwards
(`methods.series_guard.guard`), and what fails them is not worth judging.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper

Longs = NDArray[np.int64]


class NodePeople(NamedTuple):
    """Everybody a node may hold, the people of a node side by side: those in the table, and those who left.

    rows      (people, attributes) codes; of those who left they are not used
    static    (people, views) positions in the flat value counts of the static limits
    value     (people, permanent views) positions in the flat values of the series
    column    (people, releases) class before, equal classes of different releases numbered alike, -1 for absence
    history   per person, the trajectory before, -1 for newcomers
    unit      per person, the class she would be in if nothing was cut anew
    here      whether she is in the table
    """

    rows: NDArray[np.int32]
    static: NDArray[np.int32]
    value: NDArray[np.int32]
    column: NDArray[np.int64]
    history: NDArray[np.int64]
    unit: NDArray[np.int32]
    here: NDArray[np.bool_]


class EarlierClasses(NamedTuple):
    """The classes of earlier releases that people of the node were in; columns are releases that tell something.

    of             (columns, people) the class, numbered within the node, -1 for absence
    classes        per column, how many
    counts, gone   (columns, classes) their values, and how many of their people left
    begin, member  (columns, classes + 1) where its members begin, and (columns, people) members by class
    """

    of: Longs
    classes: Longs
    counts: Longs
    gone: Longs
    begin: Longs
    member: Longs


class Leaves(NamedTuple):
    """The new classes so far.

    of             per person her leaf, -1 for those who left
    size, counts   per leaf its people, and (leaves, values)
    fresh, slack   (columns, leaves) people who are new since that release, and (columns, leaves, values) their values
    """

    of: Longs
    size: Longs
    counts: Longs
    fresh: Longs
    slack: Longs


class Pieces(NamedTuple):
    """An earlier class by the leaves its people are in now (-1: they left), with people and values of each."""

    leaf: Longs
    size: Longs
    counts: Longs


class Flow(NamedTuple):
    """Room for flows between leaves and earlier classes, which are nodes behind the leaves.

    shared, flow  (classes, leaves) people in both, and what flows
    loose, used   per node people that nothing else accounts for, and how many of them are used
    barred        nodes that are outside
    seen, came, queue   of the search for a way
    """

    shared: Longs
    flow: Longs
    loose: Longs
    used: Longs
    barred: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    came: Longs
    queue: Longs


class Node(NamedTuple):
    """Room for one node, reused for all.

    shape           how many people there are, and columns in use
    value, history  per person, copied from the lineup: threads must not share what they touch all the time
    stamp           per earlier class, when it was looked at last; the last place is the clock
    meet, order     per value and per column, to work with
    """

    shape: Longs
    value: Longs
    history: Longs
    earlier: EarlierClasses
    leaves: Leaves
    pieces: Pieces
    flow: Flow
    stamp: Longs
    meet: Longs
    order: Longs


@helper
def make_node(people, leaves, releases, views, values):
    """Room for nodes of so many people, and so many leaves."""
    both = people + leaves
    return Node(
        shape=np.zeros(2, np.int64),
        value=np.zeros((people, views), np.int64),
        history=np.zeros(people, np.int64),
        earlier=EarlierClasses(
            of=np.zeros((releases, people), np.int64),
            classes=np.zeros(releases, np.int64),
            counts=np.zeros((releases, people, values), np.int64),
            gone=np.zeros((releases, people), np.int64),
            begin=np.zeros((releases, people + 1), np.int64),
            member=np.zeros((releases, people), np.int64),
        ),
        leaves=Leaves(
            of=np.zeros(people, np.int64),
            size=np.zeros(leaves, np.int64),
            counts=np.zeros((leaves, values), np.int64),
            fresh=np.zeros((releases, leaves), np.int64),
            slack=np.zeros((releases, leaves, values), np.int64),
        ),
        pieces=Pieces(
            np.zeros(people + 1, np.int64), np.zeros(people + 1, np.int64), np.zeros((people + 1, values), np.int64)
        ),
        flow=Flow(
            shared=np.zeros((people, leaves), np.int64),
            flow=np.zeros((people, leaves), np.int64),
            loose=np.zeros(both, np.int64),
            used=np.zeros(both, np.int64),
            barred=np.zeros(both, np.bool_),
            seen=np.zeros(both, np.bool_),
            came=np.zeros(both, np.int64),
            queue=np.zeros(both, np.int64),
        ),
        stamp=np.zeros(people + 1, np.int64),
        meet=np.zeros(values, np.int64),
        order=np.zeros(releases + 1, np.int64),
    )


@helper(inline="always")
def _tells_more(column, base, people, release):
    """Whether the following release does not merely repeat the classes of this one."""
    if release == column.shape[1] - 1:
        return True
    for p in range(base, base + people):
        if column[p, release] >= 0 and column[p, release] != column[p, release + 1]:
            return True
    return False


@helper
def find_name(names, count, name):
    """Where a name is among the first so many; those who have none are told by -1."""
    for i in range(count):
        if names[i] == name:
            return i
    return np.int64(-1)


@helper(inline="always")
def _load_column(earlier, c, lineup, base, people, release, names):
    """Number the classes of a release within the node as column c, and count their people; returns how many."""
    begin, counts, gone, earlier_of, column = earlier.begin, earlier.counts, earlier.gone, earlier.of, lineup.column
    here, lineup_value = lineup.here, lineup.value
    count = np.int64(0)
    for p in range(people):
        name, which = column[base + p, release], np.int64(-1)
        if name >= 0:
            which = find_name(names, count, name)
            if which < 0:
                which = count
                names[count] = name
                gone[c, count] = begin[c, count + 1] = 0
                for value in range(earlier.counts.shape[2]):
                    counts[c, count, value] = 0
                count += 1
            begin[c, which + 1] += 1
            gone[c, which] += not here[base + p]
            for view in range(lineup.value.shape[1]):
                counts[c, which, lineup_value[base + p, view]] += 1
        earlier_of[c, p] = which
    return count


@helper(inline="always")
def _list_members(earlier, c, classes, people, places):
    """Members of every class of a column, one class after the other."""
    begin, member, earlier_of = earlier.begin, earlier.member, earlier.of
    earlier.classes[c] = classes
    begin[c, 0] = 0
    for a in range(classes):
        places[a] = begin[c, a]
        begin[c, a + 1] += begin[c, a]
    for p in range(people):
        a = earlier_of[c, p]
        if a >= 0:
            member[c, places[a]] = p
            places[a] += 1


@helper
def load_node(node, lineup, base, people, names):
    """Fill the room with the people of one node; columns whose classes the following one repeats tell nothing more."""
    history, value, node_history, node_value = lineup.history, lineup.value, node.history, node.value
    columns = 0
    for release in range(lineup.column.shape[1]):
        if _tells_more(lineup.column, base, people, release):
            classes = _load_column(node.earlier, columns, lineup, base, people, release, names)
            if classes > 0:
                _list_members(node.earlier, columns, classes, people, names)
                columns += 1
    node.shape[0], node.shape[1] = people, columns
    for p in range(people):
        for view in range(lineup.value.shape[1]):
            node_value[p, view] = value[base + p, view]
        node_history[p] = history[base + p]


@helper(inline="always")
def clear_leaf(leaves, columns, leaf):
    """Nobody is in a leaf."""
    counts, fresh, slack = leaves.counts, leaves.fresh, leaves.slack
    leaves.size[leaf] = 0
    for value in range(leaves.counts.shape[1]):
        counts[leaf, value] = 0
    for c in range(columns):
        fresh[c, leaf] = 0
        for value in range(leaves.counts.shape[1]):
            slack[c, leaf, value] = 0


@helper
def move_people(value, of, columns, leaves, moving, number, ends):
    """Move so many people from one leaf to another; -1 for none."""
    counts, fresh, leaves_of, leaves_size, slack = leaves.counts, leaves.fresh, leaves.of, leaves.size, leaves.slack
    shape = value.shape
    for i in range(number):
        p = moving[i]
        leaves_of[p] = ends[1]
        for leaf, sign in ((ends[0], -1), (ends[1], 1)):
            if leaf < 0:
                continue
            leaves_size[leaf] += sign
            for view in range(shape[1]):
                counts[leaf, value[p, view]] += sign
            for c in range(columns):
                if of[c, p] < 0:
                    fresh[c, leaf] += sign
                    for view in range(shape[1]):
                        slack[c, leaf, value[p, view]] += sign


@helper(inline="always")
def _split(earlier, leaf_of, value, c, a, pieces):
    """The pieces of an earlier class; returns how many."""
    begin, member, counts, leaf, size = earlier.begin, earlier.member, pieces.counts, pieces.leaf, pieces.size
    shape = value.shape
    count = np.int64(0)
    for place in range(begin[c, a], begin[c, a + 1]):
        p = member[c, place]
        which = find_name(pieces.leaf, count, leaf_of[p])
        if which < 0:
            which = count
            leaf[count], size[count] = leaf_of[p], 0
            for v in range(pieces.counts.shape[1]):
                counts[count, v] = 0
            count += 1
        size[which] += 1
        for view in range(shape[1]):
            counts[which, value[p, view]] += 1
    return count


@helper
def _traceable(required, rows_of, pieces, count, leaf_counts, slack, hopeful):
    """Whether rows of an earlier class may be traced, or lack places, given its pieces; doubts count unless `hopeful`.

    `rows_of` are the rows of the class by value, `slack` is of its release.
    """
    counts, pieces_leaf, pieces_size, denominator = pieces.counts, pieces.leaf, pieces.size, required.denominator
    numerator = required.numerator
    for value in range(required.numerator.size):
        rows = rows_of[value]
        if rows == 0:
            continue
        top, bottom = numerator[value], denominator[value]
        covered, over, room, capacity = 0, 0, 0, 0
        for i in range(count):
            leaf, size, own = pieces_leaf[i], pieces_size[i], counts[i, value]
            excess = bottom * own - top * size
            over += max(excess, 0)
            if leaf < 0:
                # Those who left: another may have left instead, if others of the class can take her place.
                covered += size if own > 0 or hopeful else 0
                capacity += top * size
                room += max(-excess, 0) if hopeful else 0
                continue
            free = slack[leaf, value]
            capacity += min(bottom * leaf_counts[leaf, value], top * size)
            if hopeful:
                covered += size if leaf_counts[leaf, value] > 0 else 0
                room += max(-excess, 0) if leaf_counts[leaf, value] > 0 else 0
                continue
            covered += size if own > 0 or free > 0 else 0
            room += min(max(-excess, 0), bottom * free)
        if capacity < bottom * rows:
            return True
        if required.insider and (covered < required.k or room < over):
            return True
    return False


@helper(inline="always")
def _cracked(required, rows_of, pieces, count, leaf_counts, slack, hopeful):
    """Whether fewer than k rows of an earlier class may be left for somebody in one of its pieces."""
    counts, pieces_leaf, first = pieces.counts, pieces.leaf, required.first
    for j in range(count):
        leaf = pieces_leaf[j]
        if leaf < 0:
            continue
        for view in range(required.first.size - 1):
            left = 0
            for value in range(first[view], first[view + 1]):
                most = min(rows_of[value], leaf_counts[leaf, value])
                if not hopeful:
                    most = min(most, counts[j, value] + slack[leaf, value])
                left += most
            if left < required.k:
                return True
    return False


@helper(inline="always")
def _overfull(required, earlier, c, leaves, people, leaf, shared):
    """Whether a leaf has more rows with a value than its newcomers and its earlier classes could account for."""
    counts, earlier_of, leaves_counts, fresh = earlier.counts, earlier.of, leaves.counts, leaves.fresh
    leaves_of, denominator, numerator = leaves.of, required.denominator, required.numerator
    classes = earlier.classes[c]
    for a in range(classes):
        shared[a] = 0
    for p in range(people):
        if leaves_of[p] == leaf and earlier_of[c, p] >= 0:
            shared[earlier_of[c, p]] += 1
    for value in range(required.numerator.size):
        top, bottom = numerator[value], denominator[value]
        rest = bottom * leaves_counts[leaf, value] - top * fresh[c, leaf]
        for a in range(classes):
            if rest > 0 and shared[a] > 0:
                rest -= min(bottom * counts[c, a, value], top * shared[a])
        if rest > 0:
            return True
    return False


@helper(inline="always")
def _rank_columns(earlier, columns, p, value, order):
    """Columns in which somebody's class has a value, those with most of it first; returns how many."""
    counts, earlier_of = earlier.counts, earlier.of
    count = 0
    for c in range(columns):
        if earlier_of[c, p] < 0 or counts[c, earlier_of[c, p], value] == 0:
            continue
        at = count
        while (
            at > 0 and counts[order[at - 1], earlier_of[order[at - 1], p], value] < (counts[c, earlier_of[c, p], value])
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = c
        count += 1
    return count


@helper
def _shares_too_much(required, earlier, columns, counts, p, order, meet):
    """Whether somebody's leaf and some of her earlier classes have too much of a value in common."""
    earlier_counts, earlier_of, denominator, first = earlier.counts, earlier.of, required.denominator, required.first
    numerator = required.numerator
    for view in range(required.first.size - 1):
        start, stop = first[view], first[view + 1]
        for value in range(start, stop):
            here, top, bottom = counts[value], numerator[value], denominator[value]
            if here == 0 or top >= bottom:
                continue
            ranked = _rank_columns(earlier, columns, p, value, order)
            for v in range(start, stop):
                meet[v] = counts[v]
            for i in range(ranked):
                own = earlier_counts[order[i], earlier_of[order[i], p]]
                left = 0
                for v in range(start, stop):
                    meet[v] = min(meet[v], own[v])
                    left += meet[v]
                if i + 1 < ranked:
                    following = earlier_counts[order[i + 1], earlier_of[order[i + 1], p], value]
                    if following >= min(here, own[value]):
                        continue
                if meet[value] * bottom > left * top:
                    return True
    return False


@helper(inline="always")
def _way_out(room, source, other, by_leaf, leaves, classes):
    """Where a way from the source ends: at `other`, outside, or where somebody is loose; -1 where there is none."""
    barred, came, flow, loose, queue, seen = room.barred, room.came, room.flow, room.loose, room.queue, room.seen
    shared, used = room.shared, room.used
    nodes = leaves + classes
    for i in range(nodes):
        seen[i] = False
    queue[0] = source
    seen[source] = True
    head, tail = 0, 1
    while head < tail:
        here = queue[head]
        head += 1
        if here == other or barred[here] or loose[here] > used[here]:
            return here
        is_leaf = here < leaves
        for following in range(leaves if is_leaf else 0, nodes if is_leaf else leaves):
            a, b = (following - leaves, here) if is_leaf else (here - leaves, following)
            if seen[following] or shared[a, b] == 0:
                continue
            if is_leaf == by_leaf and flow[a, b] >= shared[a, b]:
                continue
            seen[following] = True
            came[following] = here
            queue[tail] = following
            tail += 1
    return -1


@helper
def _left_over(room, source, other, by_leaf, leaves, classes, limit):
    """The fewest people left by a set of outer minus inner classes with `source` and without `other`, up to `limit`.

    Nodes of the graph are leaves, then classes. Outer ones (leaves, if `by_leaf`) pay for people they share with inner
    ones that are not taken away, and for those who are loose; inner ones force outer ones; barred ones are outside.
    """
    barred, came, flow, loose, shared, used = room.barred, room.came, room.flow, room.loose, room.shared, room.used
    for a in range(classes):
        for b in range(leaves):
            flow[a, b] = 0
    for i in range(leaves + classes):
        used[i] = 0
    total = 0
    while total < limit:
        end = _way_out(room, source, other, by_leaf, leaves, classes)
        if end < 0:
            break
        final = end == other or barred[end]
        amount = limit - total if final else min(limit - total, loose[end] - used[end])
        here = end
        while here != source:
            before = came[here]
            a, b = (here - leaves, before) if before < leaves else (before - leaves, here)
            if (before < leaves) == by_leaf:
                amount = min(amount, shared[a, b] - flow[a, b])
            here = before
        if not final:
            used[end] += amount
        here = end
        while here != source:
            before = came[here]
            a, b = (here - leaves, before) if before < leaves else (before - leaves, here)
            flow[a, b] += amount if (before < leaves) == by_leaf else -amount
            here = before
        total += amount
    return total


@helper(inline="always")
def _share_people(shared, of, leaf_of, people, classes, leaves):
    """Count the people every earlier class and every leaf have in common."""
    for a in range(classes):
        for b in range(leaves):
            shared[a, b] = 0
    for p in range(people):
        if leaf_of[p] >= 0 and of[p] >= 0:
            shared[of[p], leaf_of[p]] += 1


@helper(inline="always")
def _is_first(history, leaf_of, inside, i):
    """Whether nobody before her has the same history and the same leaf; newcomers have none."""
    p = inside[i]
    first, j = history[p] >= 0, 0
    while first and j < i:
        first = history[inside[j]] != history[p] or leaf_of[inside[j]] != leaf_of[p]
        j += 1
    return first


@helper(inline="always")
def _tells_few(room, earlier, leaves, shape, ends, count, k):
    """Whether telling two leaves apart leaves fewer than k people, in either direction, with any column.

    Everything else that could be left was possible before they were told apart.
    """
    earlier_classes, earlier_gone, earlier_of, leaves_fresh = earlier.classes, earlier.gone, earlier.of, leaves.fresh
    barred, loose = room.barred, room.loose
    for c in range(shape[1]):
        classes, fresh, gone = earlier_classes[c], leaves_fresh[c], earlier_gone[c]
        _share_people(room.shared, earlier_of[c], leaves.of, shape[0], classes, count)
        for by_leaf in (True, False):
            # Later minus earlier: classes that somebody left cannot be taken away. Earlier minus later: leaves with
            # newcomers cannot.
            for b in range(count):
                loose[b], barred[b] = (fresh[b], False) if by_leaf else (0, fresh[b] > 0)
            for a in range(classes):
                loose[count + a], barred[count + a] = (0, gone[a] > 0) if by_leaf else (gone[a], False)
            for one, other in ((ends[0], ends[1]), (ends[1], ends[0])):
                if loose[one] >= k or barred[one]:
                    continue
                if _left_over(room, one, other, by_leaf, count, classes, k) < k:
                    return True
    return False


@helper
def acceptable(node, required, inside, size, ends, count, hopeful):
    """Whether the people `inside`, of one leaf so far, may be in two (`ends`), as far as cheap tests tell."""
    earlier, leaves, pieces, stamp = node.earlier, node.leaves, node.pieces, node.stamp
    people, columns = node.shape[0], node.shape[1]
    for c in range(columns - 1, -1, -1):
        slack = leaves.slack[c]
        stamp[-1] += 1
        for i in range(size):
            a = earlier.of[c, inside[i]]
            if a < 0 or stamp[a] == stamp[-1]:
                continue
            stamp[a] = stamp[-1]
            number = _split(earlier, leaves.of, node.value, c, a, pieces)
            if number < 2:
                continue
            rows_of = earlier.counts[c, a]
            if _traceable(required, rows_of, pieces, number, leaves.counts, slack, hopeful):
                return False
            if required.neighbor and _cracked(required, rows_of, pieces, number, leaves.counts, slack, hopeful):
                return False
        for leaf in ends:
            fresh = leaves.fresh[c, leaf]
            if required.neighbor and not hopeful and 0 < fresh < required.k:
                return False
            suspect = required.insider and fresh < leaves.size[leaf]
            if suspect and _overfull(required, earlier, c, leaves, people, leaf, pieces.size):
                return False
    if required.neighbor:
        for i in range(size):
            if _is_first(node.history, leaves.of, inside, i) and _shares_too_much(
                required, earlier, columns, leaves.counts[leaves.of[inside[i]]], inside[i], node.order, node.meet
            ):
                return False
    return not (required.insider and _tells_few(node.flow, earlier, leaves, node.shape, ends, count, required.k))
