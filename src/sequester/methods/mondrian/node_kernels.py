"""The people of one node of the tree, in classes that are still being cut, and cheap tests of a cut against the past.

Most tests are sufficient or necessary, not exact: what passes them is judged exactly afterwards
(`methods.series_guard.guard`), and what fails them is not worth judging.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper


class Crowd(NamedTuple):
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


class Rule(NamedTuple):
    """What the series requires: k, and the bound of every flat value as numerator / denominator; whom to fear."""

    k: int
    first: NDArray[np.int64]
    numerator: NDArray[np.int64]
    denominator: NDArray[np.int64]
    insider: bool
    neighbor: bool


class Node(NamedTuple):
    """Room for one node, reused for all. Columns are releases before that tell something; leaves are new classes.

    shape                   how many people there are, and columns in use
    value, history, here    per person, copied from the crowd: threads must not share what they touch all the time
    of                      (columns, people) class before, numbered within the node, -1 for absence
    classes, class_count, class_gone, begin, member   per column: how many, their values, who left, and members by class
    leaf, leaf_size, leaf_count                       per person her leaf (-1: left); per leaf its people and values
    fresh, slack                                      (columns, leaves) people who are new since then, and their values
    """

    shape: NDArray[np.int64]
    value: NDArray[np.int64]
    history: NDArray[np.int64]
    here: NDArray[np.bool_]
    of: NDArray[np.int64]
    classes: NDArray[np.int64]
    class_count: NDArray[np.int64]
    class_gone: NDArray[np.int64]
    begin: NDArray[np.int64]
    member: NDArray[np.int64]
    leaf: NDArray[np.int64]
    leaf_size: NDArray[np.int64]
    leaf_count: NDArray[np.int64]
    fresh: NDArray[np.int64]
    slack: NDArray[np.int64]
    stamp: NDArray[np.int64]
    piece: NDArray[np.int64]
    piece_size: NDArray[np.int64]
    piece_count: NDArray[np.int64]
    meet: NDArray[np.int64]
    order: NDArray[np.int64]
    shared: NDArray[np.int64]
    flow: NDArray[np.int64]
    loose: NDArray[np.int64]
    used: NDArray[np.int64]
    barred: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    came: NDArray[np.int64]
    queue: NDArray[np.int64]


@helper
def make_node(people, releases, views, values, leaves):  # type: ignore[no-untyped-def]
    """Room for nodes of so many people."""
    both = people + leaves
    return Node(
        shape=np.zeros(2, np.int64),
        value=np.empty((people, views), np.int64),
        history=np.empty(people, np.int64),
        here=np.empty(people, np.bool_),
        of=np.empty((releases, people), np.int64),
        classes=np.zeros(releases, np.int64),
        class_count=np.zeros((releases, people, values), np.int64),
        class_gone=np.zeros((releases, people), np.int64),
        begin=np.zeros((releases, people + 1), np.int64),
        member=np.zeros((releases, people), np.int64),
        leaf=np.empty(people, np.int64),
        leaf_size=np.zeros(leaves, np.int64),
        leaf_count=np.zeros((leaves, values), np.int64),
        fresh=np.zeros((releases, leaves), np.int64),
        slack=np.zeros((releases, leaves, values), np.int64),
        stamp=np.zeros(people + 1, np.int64),
        piece=np.empty(people + 1, np.int64),
        piece_size=np.zeros(people + 1, np.int64),
        piece_count=np.zeros((people + 1, values), np.int64),
        meet=np.empty(values, np.int64),
        order=np.empty(releases + 1, np.int64),
        shared=np.zeros((people, leaves), np.int64),
        flow=np.zeros((people, leaves), np.int64),
        loose=np.zeros(both, np.int64),
        used=np.zeros(both, np.int64),
        barred=np.zeros(both, np.bool_),
        seen=np.zeros(both, np.bool_),
        came=np.zeros(both, np.int64),
        queue=np.zeros(both, np.int64),
    )


@helper
def load_node(node, crowd, base, people, names):  # type: ignore[no-untyped-def]
    """Fill the room with the people of one node; columns whose classes the following one repeats tell nothing more."""
    releases = crowd.column.shape[1]
    columns = 0
    for release in range(releases):
        differs = release == releases - 1
        for p in range(people):
            if differs:
                break
            name = crowd.column[base + p, release]
            differs = name >= 0 and name != crowd.column[base + p, release + 1]
        if not differs:
            continue
        c, count = columns, 0
        for p in range(people):
            name, found = crowd.column[base + p, release], -1
            if name >= 0:
                for i in range(count):
                    if names[i] == name:
                        found = i
                        break
                if found < 0:
                    found = count
                    names[count] = name
                    node.class_gone[c, count] = node.begin[c, count + 1] = 0
                    node.class_count[c, count, :] = 0
                    count += 1
                node.begin[c, found + 1] += 1
                node.class_gone[c, found] += not crowd.here[base + p]
                for view in range(crowd.value.shape[1]):
                    node.class_count[c, found, crowd.value[base + p, view]] += 1
            node.of[c, p] = found
        if count == 0:
            continue
        node.classes[c] = count
        node.begin[c, 0] = 0
        for a in range(count):
            names[a] = node.begin[c, a]
            node.begin[c, a + 1] += node.begin[c, a]
        for p in range(people):
            a = node.of[c, p]
            if a >= 0:
                node.member[c, names[a]] = p
                names[a] += 1
        columns += 1
    node.shape[0], node.shape[1] = people, columns
    for p in range(people):
        for view in range(crowd.value.shape[1]):
            node.value[p, view] = crowd.value[base + p, view]
        node.history[p], node.here[p] = crowd.history[base + p], crowd.here[base + p]


@helper
def _count(value, of, columns, leaf_size, leaf_count, fresh, slack, p, leaf, sign):  # type: ignore[no-untyped-def]
    """Count a person in a leaf (sign 1), or no longer (sign -1)."""
    leaf_size[leaf] += sign
    for view in range(value.shape[1]):
        leaf_count[leaf, value[p, view]] += sign
    for c in range(columns):
        if of[c, p] < 0:
            fresh[c, leaf] += sign
            for view in range(value.shape[1]):
                slack[c, leaf, value[p, view]] += sign


@helper
def all_in_one(node):  # type: ignore[no-untyped-def]
    """Everybody who is here in one leaf."""
    value, of, columns, leaf = node.value, node.of, node.shape[1], node.leaf
    leaf_size, leaf_count, fresh, slack = node.leaf_size, node.leaf_count, node.fresh, node.slack
    leaf_size[0] = 0
    leaf_count[0, :] = 0
    fresh[:columns, 0] = 0
    slack[:columns, 0, :] = 0
    for p in range(node.shape[0]):
        leaf[p] = -1
        if node.here[p]:
            leaf[p] = 0
            _count(value, of, columns, leaf_size, leaf_count, fresh, slack, p, np.int64(0), np.int64(1))


@helper
def part(node, inside, size, side, x, y):  # type: ignore[no-untyped-def]
    """Move people of leaf x who are on the other side to a new leaf y."""
    value, of, columns, leaf = node.value, node.of, node.shape[1], node.leaf
    leaf_size, leaf_count, fresh, slack = node.leaf_size, node.leaf_count, node.fresh, node.slack
    leaf_size[y] = 0
    leaf_count[y, :] = 0
    fresh[:columns, y] = 0
    slack[:columns, y, :] = 0
    for i in range(size):
        p = inside[i]
        if side[p]:
            leaf[p] = y
            _count(value, of, columns, leaf_size, leaf_count, fresh, slack, p, x, np.int64(-1))
            _count(value, of, columns, leaf_size, leaf_count, fresh, slack, p, y, np.int64(1))


@helper
def rejoin(node, inside, size, side, x):  # type: ignore[no-untyped-def]
    """Undo `part`."""
    value, of, columns, leaf = node.value, node.of, node.shape[1], node.leaf
    leaf_size, leaf_count, fresh, slack = node.leaf_size, node.leaf_count, node.fresh, node.slack
    for i in range(size):
        p = inside[i]
        if side[p]:
            leaf[p] = x
            _count(value, of, columns, leaf_size, leaf_count, fresh, slack, p, x, np.int64(1))


@helper
def _split(begin, member, leaf, value, c, a, piece, piece_size, piece_count):  # type: ignore[no-untyped-def]
    """The pieces of a class before: leaves its people are in now (-1: they left), with people and values of each."""
    found = 0
    for place in range(begin[c, a], begin[c, a + 1]):
        p = member[c, place]
        which = -1
        for j in range(found):
            if piece[j] == leaf[p]:
                which = j
                break
        if which < 0:
            which = found
            piece[found], piece_size[found] = leaf[p], 0
            piece_count[found, :] = 0
            found += 1
        piece_size[which] += 1
        for view in range(value.shape[1]):
            piece_count[which, value[p, view]] += 1
    return found


@helper
def _traceable(  # type: ignore[no-untyped-def]
    k, insider, numerator, denominator, rows_of, piece, piece_size, piece_count, found, leaf_count, slack, hopeful
):
    """Whether rows of a class before may be traced, or lack places, given its pieces; doubts count unless `hopeful`.

    `rows_of` are the rows of the class by value, `slack` is of its release.
    """
    for value in range(numerator.size):
        rows = rows_of[value]
        if rows == 0:
            continue
        p, q = numerator[value], denominator[value]
        covered, over, room, capacity = 0, 0, 0, 0
        for i in range(found):
            leaf, size, own = piece[i], piece_size[i], piece_count[i, value]
            excess = q * own - p * size
            over += max(excess, 0)
            if leaf < 0:
                # Those who left: another may have left instead, if others of the class can take her place.
                covered += size if own > 0 or hopeful else 0
                capacity += p * size
                room += max(-excess, 0) if hopeful else 0
                continue
            free = slack[leaf, value]
            capacity += min(q * leaf_count[leaf, value], p * size)
            if hopeful:
                covered += size if leaf_count[leaf, value] > 0 else 0
                room += max(-excess, 0) if leaf_count[leaf, value] > 0 else 0
                continue
            covered += size if own > 0 or free > 0 else 0
            room += min(max(-excess, 0), q * free)
        if capacity < q * rows:
            return True
        if insider and (covered < k or room < over):
            return True
    return False


@helper
def _cracked(k, first, rows_of, piece, piece_count, found, leaf_count, slack, hopeful):  # type: ignore[no-untyped-def]
    """Whether fewer than k rows of a class before may be left for somebody in one of its pieces."""
    for j in range(found):
        leaf = piece[j]
        if leaf < 0:
            continue
        for view in range(first.size - 1):
            left = 0
            for value in range(first[view], first[view + 1]):
                most = min(rows_of[value], leaf_count[leaf, value])
                if not hopeful:
                    most = min(most, piece_count[j, value] + slack[leaf, value])
                left += most
            if left < k:
                return True
    return False


@helper
def _overfull(  # type: ignore[no-untyped-def]
    numerator, denominator, of, class_count, classes, people, leaf, which, counts, fresh, shared
):
    """Whether a leaf has more rows with a value than its newcomers and its classes before could account for."""
    for a in range(classes):
        shared[a] = 0
    for p in range(people):
        if leaf[p] == which and of[p] >= 0:
            shared[of[p]] += 1
    for value in range(numerator.size):
        rest = denominator[value] * counts[value] - numerator[value] * fresh
        for a in range(classes):
            if rest > 0 and shared[a] > 0:
                rest -= min(denominator[value] * class_count[a, value], numerator[value] * shared[a])
        if rest > 0:
            return True
    return False


@helper
def _shares_too_much(columns, of, class_count, counts, first, numerator, denominator, order, meet, p):  # type: ignore[no-untyped-def]
    """Whether somebody's leaf and some of her classes before have too much of a value in common."""
    for view in range(first.size - 1):
        start, stop = first[view], first[view + 1]
        for value in range(start, stop):
            here = counts[value]
            if here == 0 or numerator[value] >= denominator[value]:
                continue
            found = 0
            for c in range(columns):
                if of[c, p] < 0 or class_count[c, of[c, p], value] == 0:
                    continue
                at = found
                while (
                    at > 0
                    and class_count[order[at - 1], of[order[at - 1], p], value] < (class_count[c, of[c, p], value])
                ):
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = c
                found += 1
            for v in range(start, stop):
                meet[v] = counts[v]
            for i in range(found):
                c = order[i]
                left = 0
                for v in range(start, stop):
                    meet[v] = min(meet[v], class_count[c, of[c, p], v])
                    left += meet[v]
                if i + 1 < found:
                    following = order[i + 1]
                    if class_count[following, of[following, p], value] >= min(here, class_count[c, of[c, p], value]):
                        continue
                if meet[value] * denominator[value] > left * numerator[value]:
                    return True
    return False


@helper
def _left_over(  # type: ignore[no-untyped-def]
    shared, flow, loose, used, barred, seen, came, queue, source, other, by_leaf, leaves, classes, limit
):
    """The fewest people left by a set of outer minus inner classes with `source` and without `other`, up to `limit`.

    Nodes of the graph are leaves, then classes. Outer ones (leaves, if `by_leaf`) pay for people they share with inner
    ones that are not taken away, and for those who are loose; inner ones force outer ones; barred ones are outside.
    """
    nodes = leaves + classes
    for a in range(classes):
        for b in range(leaves):
            flow[a, b] = 0
    for i in range(nodes):
        used[i] = 0
    total = 0
    while total < limit:
        for i in range(nodes):
            seen[i] = False
        queue[0] = source
        seen[source] = True
        head, tail, end = 0, 1, -1
        while head < tail:
            here = queue[head]
            head += 1
            if here == other or barred[here] or loose[here] > used[here]:
                end = here
                break
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


@helper
def _tells_few(node, x, y, leaves, k):  # type: ignore[no-untyped-def]
    """Whether telling two leaves apart leaves fewer than k people, in either direction, with any column.

    Everything else that could be left was possible before they were told apart.
    """
    people, columns, leaf = node.shape[0], node.shape[1], node.leaf
    shared, flow, loose, used, barred = node.shared, node.flow, node.loose, node.used, node.barred
    seen, came, queue = node.seen, node.came, node.queue
    for c in range(columns):
        classes, of, fresh, gone = node.classes[c], node.of[c], node.fresh[c], node.class_gone[c]
        for a in range(classes):
            for b in range(leaves):
                shared[a, b] = 0
        for p in range(people):
            if leaf[p] >= 0 and of[p] >= 0:
                shared[of[p], leaf[p]] += 1
        for by_leaf in (True, False):
            # Later minus earlier: classes that somebody left cannot be taken away. Earlier minus later: leaves with
            # newcomers cannot.
            for b in range(leaves):
                loose[b], barred[b] = (fresh[b], False) if by_leaf else (0, fresh[b] > 0)
            for a in range(classes):
                loose[leaves + a], barred[leaves + a] = (0, gone[a] > 0) if by_leaf else (gone[a], False)
            for b, other in ((x, y), (y, x)):
                if loose[b] < k and not barred[b]:
                    left = _left_over(
                        shared, flow, loose, used, barred, seen, came, queue, b, other, by_leaf, leaves, classes, k
                    )
                    if left < k:
                        return True
    return False


@helper
def acceptable(node, rule, inside, size, x, y, leaves, hopeful):  # type: ignore[no-untyped-def]
    """Whether the people `inside`, of one leaf so far, may be in the two leaves x and y, as far as cheap tests tell."""
    people, columns, leaf, value, history = node.shape[0], node.shape[1], node.leaf, node.value, node.history
    leaf_count, stamps, piece, piece_size = node.leaf_count, node.stamp, node.piece, node.piece_size
    begin, member, piece_count = node.begin, node.member, node.piece_count
    k, first, numerator, denominator = rule.k, rule.first, rule.numerator, rule.denominator
    for c in range(columns - 1, -1, -1):
        of, class_count, slack = node.of[c], node.class_count[c], node.slack[c]
        stamps[-1] += 1
        stamp = stamps[-1]
        for i in range(size):
            a = of[inside[i]]
            if a < 0 or stamps[a] == stamp:
                continue
            stamps[a] = stamp
            found = _split(begin, member, leaf, value, c, a, piece, piece_size, piece_count)
            if found < 2:
                continue
            if _traceable(
                k, rule.insider, numerator, denominator, class_count[a], piece, piece_size, piece_count, found,
                leaf_count, slack, hopeful,
            ):  # fmt: skip
                return False
            if rule.neighbor and _cracked(
                k, first, class_count[a], piece, piece_count, found, leaf_count, slack, hopeful
            ):
                return False
        for which in (x, y):
            fresh = node.fresh[c, which]
            if rule.neighbor and not hopeful and 0 < fresh < k:
                return False
            if rule.insider and fresh < node.leaf_size[which] and _overfull(
                numerator, denominator, of, class_count, node.classes[c], people, leaf, which,
                leaf_count[which], fresh, piece_size,
            ):  # fmt: skip
                return False
    if rule.neighbor:
        for i in range(size):
            p = inside[i]
            repeated = history[p] < 0
            for j in range(i):
                if repeated:
                    break
                repeated = history[inside[j]] == history[p] and leaf[inside[j]] == leaf[p]
            if not repeated and _shares_too_much(
                columns, node.of, node.class_count, leaf_count[leaf[p]], first, numerator, denominator, node.order,
                node.meet, p,
            ):  # fmt: skip
                return False
    return not rule.insider or not _tells_few(node, x, y, leaves, k)
