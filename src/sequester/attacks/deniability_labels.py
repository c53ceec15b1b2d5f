"""Can everyone still deny every value, when whole rows are compared? The program over trajectories and labels.

`deniability` asks attribute by attribute. An adversary who matches whole rows knows more: with values a a b b b b a a
beside z1 z2 z3 z4 z7 z8 z5 z6, published as {1234}{5678} and then {1256}{3478}, either column alone leaves everybody
one half, and both together leave one world. Here the unknowns are how many people of a trajectory have each label;
labels add up over classes to what was published, and every value with a bound is a cap on all labels that have it, or
may have it. If nothing keeps all caps, somebody is tied to a value too surely under every belief.

The solver proposes multipliers of published counts and of caps; where they prove the breach in whole numbers the
witness says so, and a part without such a proof is told as the solver found it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack
from scipy.sparse.csgraph import connected_components

from sequester.attacks.exposure import Noted
from sequester.attacks.finding import Finding, Result, Told
from sequester.attacks.index import Index
from sequester.attacks.solvers.pairs import LARGEST, Known, Pairs, shown_pairs
from sequester.history.history import History
from sequester.history.label import Labels
from sequester.history.trajectory import linked

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_NOISE = 1e-7
# Multipliers of these programs are ratios of small integers.
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 60)
_LARGEST = 200_000
"""Pairs of certified components up to which what is unavoidable there is computed, not only bounded."""


def find_labels(history: History, labels: Labels, *, decoy: Mask | None = None) -> Result:
    """One finding per independent proof; the measure is the smallest confidence that is unavoidable for somebody.

    `decoy` says of every person of the history whether there is nobody, who may be tied to anything.
    """
    trajectories = history.trajectories
    if trajectories is None or not len(trajectories) or not labels.questions:
        return Result()
    if (labels.of[trajectories.of >= 0] < 0).any():
        return Result()
    known = Known.of(history, labels)
    asked = _Asked.of(known, labels, _somebody(history, decoy))
    part = linked(known.path, known.classes)
    touched = np.zeros(int(part.max()) + 1, np.bool_)
    touched[part[asked.trajectory[asked.exceeds]]] = True
    large = touched & (np.bincount(part, weights=_breadth(known), minlength=len(touched)) > LARGEST)
    touched &= ~large
    program = _Program.of(known, labels, asked, touched[part])
    found = list(program.breaches())
    told = _Teller(history, labels, known, program)
    strain = _unavoidable(known, labels, asked, part, touched, program)
    if asked.somebody.all():
        # What a class shows most of may be the decoys', where there are some apart from people.
        strain = max(strain, asked.single(known, labels))
    largest = max(float(question.bound) for question in labels.questions)
    left = int(np.count_nonzero(large[part]))
    note = f"deniability: {left:,} groups of people with one history are in parts too large to compare whole rows in"
    findings = [told.finding(breach) for breach in found]
    return Noted(findings, min(1.0, round(strain * largest, 9)), (note,) if left else (), unsolved=left)


def _somebody(history: History, decoy: Mask | None) -> Mask:
    """Per trajectory, whether there is a person in it."""
    assert history.trajectories is not None
    found = np.ones(len(history.trajectories), np.bool_)
    if decoy is not None:
        found[:] = False
        of = history.trajectories.of
        found[of[(of >= 0) & ~decoy]] = True
    return found


def _breadth(known: Known) -> Integers:
    """Per trajectory, the fewest labels that one of its classes shows: it has no more unknowns than that."""
    shown = np.bincount(known.key // known.labels, minlength=known.classes)
    return np.asarray(np.where(known.path >= 0, shown[known.path], np.iinfo(np.int64).max).min(axis=1))


def _unavoidable(
    known: Known, labels: Labels, asked: _Asked, part: NDArray[np.int32], touched: Mask, open_: _Program
) -> float:
    """The smallest multiple of the caps that is unavoidable anywhere; at most that where there is too much to solve."""
    strain = open_.strain()
    own = asked.own_strain(known, labels)
    later = np.zeros(len(touched), np.bool_)
    later[part[asked.trajectory[own > strain * (1 + 1e-9)]]] = True
    later &= ~touched
    if not later.any():
        return strain
    certified = _Program.of(known, labels, asked, later[part])
    if len(certified.pairs) <= _LARGEST:
        return max(strain, certified.strain())
    return max(strain, float(own[later[part[asked.trajectory]]].max()))


@dataclass(frozen=True, eq=False, repr=False)
class _Asked:
    """Who truly has what is asked about: trajectories and questions, how many people, and whether that is too many.

    somebody  per trajectory, whether it is asked about at all
    """

    trajectory: Integers
    question: Integers
    count: Integers
    exceeds: Mask
    somebody: Mask

    @classmethod
    def of(cls, known: Known, labels: Labels, somebody: Mask) -> _Asked:
        pair, question = labels.questions_of(known.label)
        people = somebody[known.trajectory[pair]]
        pair, question = pair[people], question[people]
        key = known.trajectory[pair] * len(labels.questions) + question
        found, inverse = np.unique(key, return_inverse=True)
        count = np.bincount(inverse, weights=known.count[pair], minlength=len(found)).astype(np.int64)
        trajectory, question = found // len(labels.questions), found % len(labels.questions)
        top, bottom = _bounds(labels)
        exceeds = count * bottom[question] > top[question] * known.size[trajectory]
        return cls(trajectory, question, count, exceeds, somebody)

    def own_strain(self, known: Known, labels: Labels) -> Floats:
        """Per pair, the multiple of its cap that the truth is."""
        top, bottom = _bounds(labels)
        return np.asarray(self.count * bottom[self.question] / (top[self.question] * known.size[self.trajectory]))

    def single(self, known: Known, labels: Labels) -> float:
        """The largest multiple of a bound in any single class: nobody can avoid that."""
        pair, question = labels.questions_of(known.key % known.labels)
        key = known.key[pair] // known.labels * len(labels.questions) + question
        found, inverse = np.unique(key, return_inverse=True)
        having = np.bincount(inverse, weights=known.rows[pair], minlength=len(found))
        size = np.bincount(known.key // known.labels, weights=known.rows, minlength=known.classes)
        top, bottom = _bounds(labels)
        asked = found % len(labels.questions)
        share = having / size[found // len(labels.questions)] * bottom[asked] / top[asked]
        return float(share.max(initial=0.0))


def _bounds(labels: Labels) -> tuple[Integers, Integers]:
    bounds = [question.bound for question in labels.questions]
    return np.array([b.numerator for b in bounds], np.int64), np.array([b.denominator for b in bounds], np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _Breach:
    """Multipliers of one independent part: of rows of the program, and of caps; whole numbers where `exact`."""

    rows: Integers
    times: NDArray[Any]
    caps: Integers
    weight: NDArray[Any]
    exact: bool


@dataclass(frozen=True, eq=False, repr=False)
class _Program:
    """Unknowns x >= 0, one per pair, with matrix @ x = total and caps @ x <= cap / scale.

    row                  (rows) trajectory, or trajectories + key of a shown row
    trajectory, question of every cap; `exceeded` where the truth is above it
    """

    known: Known
    pairs: Pairs
    matrix: csr_array
    total: Integers
    row: Integers
    caps: csr_array
    trajectory: Integers
    question: Integers
    cap: Integers
    scale: int
    exceeded: Mask

    @classmethod
    def of(cls, known: Known, labels: Labels, asked: _Asked, trajectories: Mask) -> _Program:
        """The program of these trajectories, which must be whole components."""
        pairs = shown_pairs(known, trajectories)
        pair, release = np.nonzero(known.path[pairs.trajectory] >= 0)
        key = known.path[pairs.trajectory[pair], release] * known.labels + pairs.label[pair]
        place = np.concatenate([pairs.trajectory, len(known.size) + np.searchsorted(known.key, key)])
        row, number = np.unique(place, return_inverse=True)
        column = np.concatenate([np.arange(len(pairs)), pair])
        matrix = coo_array((np.ones(len(column), np.int64), (number, column)), shape=(len(row), len(pairs))).tocsr()
        total = np.concatenate([known.size, known.rows])[row]
        unknown, question = labels.questions_of(pairs.label)
        people = asked.somebody[pairs.trajectory[unknown]]
        unknown, question = unknown[people], question[people]
        width = len(labels.questions)
        found, number = np.unique(pairs.trajectory[unknown] * width + question, return_inverse=True)
        caps = coo_array((np.ones(len(unknown), np.int64), (number, unknown)), shape=(len(found), len(pairs))).tocsr()
        trajectory, question = found // width, found % width
        top, bottom = _bounds(labels)
        scale = lcm(*bottom.tolist())
        over = np.sort((asked.trajectory * width + asked.question)[asked.exceeds])
        return cls(
            known=known,
            pairs=pairs,
            matrix=matrix,
            total=total,
            row=row,
            caps=caps,
            trajectory=trajectory,
            question=question,
            cap=top[question] * (scale // bottom[question]) * known.size[trajectory],
            scale=scale,
            exceeded=np.isin(found, over),
        )

    @cached_property
    def part(self) -> tuple[int, Integers]:
        """How many independent parts there are, and the part of every unknown."""
        rows, unknowns = self.matrix.shape
        joined = self.matrix.tocoo()
        ends = (unknowns + joined.row, joined.col)
        graph = coo_array((np.ones(joined.nnz, np.int8), ends), shape=(unknowns + rows,) * 2)
        seen, label = np.unique(connected_components(graph, directed=False)[1][:unknowns], return_inverse=True)
        return len(seen), label.astype(np.int64)

    def breaches(self) -> Iterator[_Breach]:
        """Independent proofs that nothing keeps all caps; where one has no whole numbers, what the solver says."""
        if not self.exceeded.any():
            return
        beyond = np.flatnonzero(self.exceeded)
        unknowns = len(self.pairs)
        excess = coo_array(
            (-np.ones(len(beyond)), (beyond, np.arange(len(beyond)))), shape=(len(self.cap), len(beyond))
        )
        found = linprog(
            np.concatenate([np.zeros(unknowns), np.ones(len(beyond))]),
            A_ub=hstack([self.caps, excess], format="csc"),
            b_ub=self.cap / self.scale,
            A_eq=hstack([self.matrix, csr_array((len(self.total), len(beyond)))], format="csc"),
            b_eq=self.total,
            method="highs",
        )
        _check(found)
        if found.fun > _NOISE:
            yield from self._proofs(np.asarray(found.eqlin.marginals), -np.asarray(found.ineqlin.marginals))

    def _proofs(self, times: Floats, weight: Floats) -> Iterator[_Breach]:
        rows, caps = np.flatnonzero(np.abs(times) > _NOISE), np.flatnonzero(weight > _NOISE)
        used = vstack([self.matrix[rows], self.caps[caps]]).tocoo()
        size = len(rows) + len(caps)
        ends = (used.row, size + used.col)
        graph = coo_array((np.ones(used.nnz, np.int8), ends), shape=(size + used.shape[1],) * 2)
        label = connected_components(graph, directed=False)[1][:size]
        for number in np.unique(label[len(rows) :]).tolist():
            own = rows[label[: len(rows)] == number]
            held = caps[label[len(rows) :] == number]
            yield self._whole(own, times[own], held, weight[held]) or _Breach(
                own, times[own], held, weight[held], exact=False
            )

    def _whole(self, rows: Integers, times: Floats, caps: Integers, weight: Floats) -> _Breach | None:
        """The same in whole numbers, if they prove it."""
        both = np.concatenate([times, weight])
        ratio = both / np.abs(both).min()
        for denominator in _DENOMINATORS:
            whole = np.rint(ratio * denominator).astype(np.int64)
            if np.abs(ratio * denominator - whole).max() > 1e-4:
                continue
            often, heavy = whole[: len(rows)], whole[len(rows) :]
            left = self.matrix[rows].T @ often - self.caps[caps].T @ heavy
            if (left <= 0).all() and int(often @ self.total[rows]) * self.scale > int(heavy @ self.cap[caps]):
                return _Breach(rows, often, caps, heavy, exact=True)
        return None

    def strain(self) -> float:
        """The smallest multiple of the caps that admits a world, in the worst part."""
        count, part = self.part
        if not count or not len(self.cap):
            return 0.0
        unknowns = len(self.pairs)
        of_cap = part[self.caps.indices[self.caps.indptr[:-1]]]
        stretch = coo_array((-self.cap / self.scale, (np.arange(len(self.cap)), of_cap)), shape=(len(self.cap), count))
        found = linprog(
            np.concatenate([np.zeros(unknowns), np.ones(count)]),
            A_ub=hstack([self.caps, stretch], format="csc"),
            b_ub=np.zeros(len(self.cap)),
            A_eq=hstack([self.matrix, csr_array((len(self.total), count))], format="csc"),
            b_eq=self.total,
            method="highs",
        )
        _check(found)
        return float(found.x[unknowns:].max())


def _check(found: OptimizeResult) -> None:
    if found.status != 0:
        raise ArithmeticError(f"the solver of the program over labels gave up ({found.message})")


class _Teller:
    """Puts proofs into findings."""

    def __init__(self, history: History, labels: Labels, known: Known, program: _Program) -> None:
        assert history.trajectories is not None
        self.history, self.labels, self.known, self.program = history, labels, known, program
        self.members = Index.of(history.trajectories.of, len(history.trajectories))
        self.start = np.cumsum([0, *(len(one) for one in history.releases)])

    def finding(self, breach: _Breach) -> Finding:
        """Who remains in the sum, and the value that weighs most there."""
        program, questions = self.program, self.labels.questions
        size = self.known.size[program.trajectory[breach.caps]]
        mass = np.bincount(program.question[breach.caps], weights=breach.weight * size, minlength=len(questions))
        asked = int(mass.argmax())
        least = float(breach.times @ program.total[breach.rows])
        allowed = float(breach.weight @ program.cap[breach.caps]) / program.scale
        single = np.count_nonzero(mass) == 1
        strain = least / allowed if allowed > 0 else np.inf
        observed = least / float(mass[asked]) if single else min(1.0, strain * float(questions[asked].bound))
        people = sorted(self.members.members(set(program.trajectory[breach.caps].tolist())))
        counted = (self._place(row)[:2] for row in program.row[breach.rows].tolist() if row >= len(self.known.size))
        around = (place for t in program.trajectory[breach.caps].tolist() for place in self._classes(t))
        classes = sorted({*counted, *around})
        return Finding(
            attack="deniability",
            adversary="insider",
            releases=tuple(sorted({release for release, _ in classes})),
            required=float(questions[asked].bound),
            observed=round(observed, 9),
            value=questions[asked].value,
            classes=tuple(classes),
            people=tuple([self.history.people[person] for person in people]),
            witness=Told(partial(self._witness, breach, least, allowed)),
            attribute=questions[asked].attribute,
        )

    def _place(self, row: int) -> tuple[int, int, int]:
        """Release and class, from 1, and label of a row of the program that is a published count."""
        key = int(self.known.key[row - len(self.known.size)])
        number, label = divmod(key, self.known.labels)
        release = int(np.searchsorted(self.start, number, side="right")) - 1
        return release + 1, number - int(self.start[release]) + 1, label

    def _witness(self, breach: _Breach, least: float, allowed: float) -> dict[str, Any]:
        """The sum, in plain values, as `reckoning` tells it; `cells` are the columns that were compared together."""
        program, labels = self.program, self.labels
        divisor = gcd(*breach.times.tolist(), *breach.weight.tolist()) if breach.exact else 1
        added: list[dict[str, Any]] = []
        subtracted: list[dict[str, Any]] = []
        sizes: list[dict[str, Any]] = []
        rows = zip(
            program.row[breach.rows].tolist(), breach.times.tolist(), program.total[breach.rows].tolist(), strict=True
        )
        for row, times, total in rows:
            if row < len(self.known.size):
                sizes.append({"classes": self._classes(row), "people": total, "times": times / divisor})
            else:
                release, number, label = self._place(row)
                count = {"release": release, "class": number, "value": labels.name(label), "count": total}
                (added if times > 0 else subtracted).append(count | {"times": abs(times) / divisor})
        caps = zip(
            program.trajectory[breach.caps].tolist(),
            program.question[breach.caps].tolist(),
            breach.weight.tolist(),
            strict=True,
        )
        return {
            "cells": list(labels.columns),
            "added": added,
            "subtracted": subtracted,
            "absent": self._absent(breach),
            "sizes": sizes,
            "remaining": [
                {
                    "classes": self._classes(t),
                    "value": labels.questions[q].value,
                    "bound": float(labels.questions[q].bound),
                    "people": int(self.known.size[t]),
                    "times": weight / divisor,
                }
                for t, q, weight in caps
            ],
            "at_least": least / divisor,
            "allowed": allowed / divisor,
            "whole numbers": breach.exact,
        }

    def _absent(self, breach: _Breach) -> list[dict[str, Any]]:
        """Labels that a class lacks, so that whoever is in it does not count in the sum."""
        path, pairs = self.known.path, self.program.pairs
        shown = set(zip(pairs.trajectory.tolist(), pairs.label.tolist(), strict=True))
        lacking: set[tuple[int, int, int]] = set()
        for row in self.program.row[breach.rows[breach.times > 0]].tolist():
            if row < len(self.known.size):
                continue
            release, number, label = self._place(row)
            inside = np.flatnonzero(path[:, release - 1] == number - 1 + self.start[release - 1])
            for t in inside[[(one, label) not in shown for one in inside.tolist()]].tolist():
                places = np.flatnonzero(path[t] >= 0)
                other = int(places[~self.known.shows(path[t, places], np.full(len(places), label))][0])
                lacking.add((other + 1, int(path[t, other] - self.start[other]) + 1, label))
        return [
            {"release": release, "class": number, "value": self.labels.name(label)}
            for release, number, label in sorted(lacking)
        ]

    def _classes(self, trajectory: int) -> list[tuple[int, int]]:
        path = enumerate(self.known.path[trajectory].tolist())
        return [(r + 1, place - int(self.start[r]) + 1) for r, place in path if place >= 0]
