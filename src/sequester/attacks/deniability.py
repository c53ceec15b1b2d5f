"""Can everyone still deny every value? The linear program over trajectories, for any number of releases at once.

Whatever an insider believes, the expected number of people of a trajectory with each value adds up to the size of the
trajectory and, over a class, to the published counts. If no such numbers keep every value at or below its bound in
every trajectory, then under every belief somebody is tied to a value with more than the allowed confidence. That
covers every subset of the releases, the differences of Byun et al. (section 4.1), their generalization to sets that
are not nested, more than two releases combined (which pairs miss), and values that were never published before.
Coarsening a release only removes findings. Not covered: worlds must have whole people, so a program that has a
solution is no proof that each person can deny, and a uniform belief may still exceed the bound.

Findings are certain. The solver only proposes multipliers of published counts; a finding is made where they prove the
breach in whole numbers, and a proposal that fails this check is not reported (a measure above the bound without a
finding would be the sign of it). Proofs from one value alone are tried
first, since they read as a difference: add these classes, subtract those.

With bounds that differ by value the program asks for the smallest multiple of all bounds that admits a solution; a
finding's `observed` is that multiple of its value's bound, and the measure that multiple of the largest bound (at
most 1), so that either exceeds its bound exactly when there is a breach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import NOBODY_IN_COMMON, Attack, Question, largest_share
from sequester.attacks.deniability_story import tell_sum
from sequester.attacks.finding import Result, Semantics
from sequester.attacks.solvers.components import Components, components
from sequester.attacks.solvers.program import Floats, Mask, Program, program_of, relax, stretch
from sequester.attacks.solvers.reckoning import report
from sequester.attacks.solvers.refutation import Refutation, refute
from sequester.attacks.trajectory import bounds_of, excess
from sequester.history import History
from sequester.history.label import WHOLE_ROW

# How far above 1 the solver may put a strain that is exactly 1.
_NOISE = 1e-6

# Unknowns of certified components up to which what is unavoidable there is computed.
_LARGEST = 100_000


def find(history: History, *, semantics: Semantics = "exact") -> Result:
    """One finding per independent proof that somebody cannot deny a value. Both semantics are the same.

    The measure is the smallest confidence that is unavoidable, the largest over all components. Where certified
    components are too many to solve, it is what the true values come to there, which is at least as much.
    """
    bounded = bounds_of(history)[-1]
    if history.trajectories is None or not history.permanent or not bounded.any() or not len(history.trajectories):
        return Result()
    too_much = excess(history)
    parts = components(history)
    program = program_of(history, parts.touched(np.asarray(too_much.any(axis=1)))[parts.trajectory])
    proofs = list(_prove(program.take(_suspected(program, parts, too_much))))
    proofs += _prove(_uncap(program, [proof for proof, _ in proofs]))
    findings = {(one.value, one.classes, one.people): one for one in report(history, program, proofs)}
    strain = _strain(history, program, [best for _, best in proofs])
    strain = max(strain, _certified(history, parts, too_much, strain))
    if not findings and strain < 1 + _NOISE:
        strain = min(strain, 1.0)
    largest = max(bound for bound in history.bounds if bound < 1)
    return Result(list(findings.values()), min(1.0, round(strain * float(largest), 9)))


def _suspected(program: Program, parts: Components, too_much: Mask) -> Mask:
    """Rows of published counts of the values that exceed their bound somewhere in the component."""
    suspected = np.zeros((parts.count, too_much.shape[1]), np.bool_)
    t, s = np.nonzero(too_much)
    suspected[parts.trajectory[t], s] = True
    first = program.matrix.indices[program.matrix.indptr[:-1]]
    value = program.labels[:, 3]
    return np.asarray((value >= 0) & suspected[parts.trajectory[program.trajectory[first]], value])


def _uncap(program: Program, proofs: list[Refutation]) -> Program:
    """What is proven once needs no second explanation."""
    if not proofs:
        return program
    trajectory = np.concatenate([proof.trajectory for proof in proofs])
    return program.without_caps(trajectory, np.concatenate([proof.value for proof in proofs]))


def _prove(program: Program) -> Iterator[tuple[Refutation, Refutation]]:
    """Independent proofs, each with the part of it that ties people most tightly."""
    proofs = list(refute(program, _solve(program, relax)))
    if not proofs:
        return
    rows = np.concatenate([proof.rows for proof in proofs])
    block = np.repeat(np.arange(len(proofs), dtype=np.int32), [len(proof.rows) for proof in proofs])
    inner = program.take(rows)
    best = list(proofs)
    for proof in refute(inner, _solve(inner, lambda part: _tightest(part, block))):
        number = int(block[proof.rows[0]])
        best[number] = max(best[number], proof, key=_tightness)
    yield from zip(proofs, best, strict=True)


def _tightest(program: Program, block: NDArray[np.int32]) -> Floats | None:
    found = stretch(program, block)
    return None if found is None else found[1]


def _tightness(proof: Refutation) -> tuple[Fraction | float, int]:
    return math.inf if proof.strain is None else proof.strain, -len(proof.rows)


def _solve(program: Program, solve: Callable[[Program], Floats | None]) -> Floats:
    """Multipliers of all rows; 0 where published classes contradict each other, so that no world exists."""
    if not len(program.total):
        return np.zeros(0)
    found = solve(program)
    if found is not None:
        return found
    found = np.zeros(len(program.total))
    count, block = program.blocks()
    for number in range(count):
        rows = np.flatnonzero(block == number)
        part = relax(program.take(rows))
        if part is not None:
            found[rows] = part
    return found


def _certified(history: History, parts: Components, too_much: Mask, known: float) -> float:
    """What is unavoidable where no trajectory is above a bound, if that is more than what is known already."""
    own = history.trajectory_counts()
    trajectories = history.trajectories
    if own is None or trajectories is None:
        return 0.0
    numerator, denominator, bounded = bounds_of(history)
    held = bounded & (numerator > 0)
    share = own[:, held] * denominator / (trajectories.size[:, None] * numerator[held])
    most = np.zeros(parts.count)
    np.maximum.at(most, parts.trajectory, share.max(axis=1, initial=0.0))
    more = (most > known * (1 + 1e-9)) & ~parts.touched(np.asarray(too_much.any(axis=1)))
    if not more.any():
        return 0.0
    inside = more[parts.trajectory]
    if int(np.count_nonzero(inside)) * len(history.values) > _LARGEST:
        return float(most[more].max())
    program = program_of(history, inside)
    found = stretch(program, program.blocks()[1])
    return 0.0 if found is None else float(found[0].max())


def _strain(history: History, program: Program, proofs: list[Refutation]) -> float:
    """The smallest multiple of the bounds that is unavoidable anywhere."""
    numerator, denominator, bounded = bounds_of(history)
    held = bounded & (numerator > 0)
    bound = numerator[held] / denominator
    known = [1 / float(bound.max(initial=1)) if proof.strain is None else float(proof.strain) for proof in proofs]
    for release in history.releases:
        share = release.counts[:, held] / np.maximum(release.size, 1)[:, None]
        known.append(float((share / bound).max(initial=0)))
    least = max(known)
    own = history.trajectory_counts()
    if own is not None and len(program.total):
        # The true values are one solution: no component needs more than they do.
        unknown = own[program.trajectory, program.value] / np.maximum(program.cap / program.scale, 1e-300)
        count, block = program.blocks()
        most = np.zeros(count)
        np.maximum.at(most, program.spread(block), np.where(program.capped, unknown, 0))
        program = program.take(most[block] > least * (1 + 1e-9))
    if not len(program.total):
        return least
    found = stretch(program, program.blocks()[1])
    return least if found is None else max(least, float(found[0].max()))


def _find(history: History, asked: Question) -> Result:
    if history.attribute != WHOLE_ROW:
        return find(history, semantics=asked.semantics)
    from sequester.attacks.deniability_labels import find_labels

    assert asked.labels is not None
    return find_labels(history, asked.labels)


def unbounded(history: History) -> str:
    """Why there was nobody to look at."""
    return "no value has a bound" if all(bound >= 1 for bound in history.bounds) else NOBODY_IN_COMMON


ATTACK = Attack(
    name="deniability",
    adversary="insider",
    title="Confidence no belief can avoid",
    find=_find,
    smallest=False,
    required=largest_share,
    values="permanent",
    releases=1,
    knows_people=True,
    looks_at=lambda histories, rows: (*histories, rows.people),
    story=tell_sum,
    nothing=unbounded,
)
