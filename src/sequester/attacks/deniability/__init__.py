"""Can everyone still deny every value? The linear program over trajectories, for any number of releases at once.

Whatever an insider believes, the expected number of people of a trajectory with each label adds up to the size of the
trajectory and, over a class, to what was published. If no such numbers keep every value at or below its bound in every
trajectory, then under every belief somebody is tied to a value with more than the allowed confidence. That covers every
subset of the releases, the differences of Byun et al. (section 4.1), their generalization to sets that are not nested,
more than two releases combined (which pairs miss), and values that were never published before. Coarsening a release
only removes findings. Not covered: worlds must have whole people, so a program that has a solution is no proof that
each person can deny, and a uniform belief may still exceed the bound.

It is asked attribute by attribute, where labels are values, and of whole rows. Whoever matches whole rows knows more:
with values a a b b b b a a beside z1 z2 z3 z4 z7 z8 z5 z6, published as {1234}{5678} and then {1256}{3478}, either
column alone leaves everybody one half, and both together leave one world.

The solver only proposes multipliers of published counts; where they prove the breach in whole numbers the witness says
so, and a part without such a proof is told as the solver found it, if it is clear of its noise. Proofs from one value
alone are tried first, since they read as a difference: add these classes, subtract those.

With bounds that differ by value the program asks for the smallest multiple of all bounds that admits a solution; a
finding's `observed` is that multiple of its value's bound, and the measure that multiple of the largest bound (at
most 1), so that either exceeds its bound exactly when there is a breach.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sequester.attacks.attack import (
    NOBODY_IN_COMMON,
    ONE_RELEASE,
    TOO_MANY_ROWS,
    Attack,
    Setting,
    largest_share,
    unbounded,
)
from sequester.attacks.deniability.inquiry import Inquiry, LabelProgram
from sequester.attacks.deniability.story import tell_sum
from sequester.attacks.deniability.telling import Teller
from sequester.attacks.exposure import Noted
from sequester.attacks.finding import Result, Semantics
from sequester.attacks.solvers.pairs import LARGEST, Known
from sequester.attacks.solvers.program import Mask, Program, least_excess, stretch
from sequester.attacks.solvers.refutation import Refutation, refute
from sequester.history import History
from sequester.history.label import WHOLE_ROW, Labels

if TYPE_CHECKING:
    from sequester.attacks.pods.proof import PodProof

Proof = tuple[Refutation, Refutation]
"""A proof, and the part of it that ties people most tightly."""

# How far above 1 the solver may put a strain that is exactly 1.
_NOISE = 1e-6

_LARGEST = 200_000
"""Unknowns of certified components up to which what is unavoidable there is computed, not only bounded."""


def find(
    history: History, *, semantics: Semantics = "exact", labels: Labels | None = None, decoy: Mask | None = None
) -> Result:
    """One finding per independent proof that somebody cannot deny a value. Both semantics are the same.

    The measure is the smallest confidence that is unavoidable, the largest over all components. Where certified
    components are too many to solve, it is what the true values come to there, which is at least as much.

    labels  what rows show, by default the values of the history. Where nobody's label is known, the values of the
            history must be the labels
    decoy   per person of the history, whether there is nobody, who may be tied to anything
    """
    asked = _ask(history, labels, decoy)
    if asked is None:
        return Result()
    touched = _parts_of(asked, asked.exceeds)
    large = np.zeros_like(touched)
    if labels is not None:
        large = touched & (np.bincount(asked.part, weights=asked.breadth(), minlength=len(touched)) > LARGEST)
    stated = asked.state((touched & ~large)[asked.part])
    program = stated.program
    proofs = list(_prove(program.take(asked.suspected(stated))))
    proofs += _prove(_uncap(program, proofs))
    findings = {(one.value, one.classes, one.people): one for one in Teller(history, asked, stated).findings(proofs)}
    strain = _unavoidable(asked, stated, touched, [best for _, best in proofs])
    if not findings and strain < 1 + _NOISE:
        strain = min(strain, 1.0)
    largest = max(question.bound for question in asked.labels.questions)
    left = int(np.count_nonzero(large[asked.part]))
    note = f"deniability: {left:,} groups of people with one history are in parts too large to compare whole rows in"
    measure = min(1.0, round(strain * float(largest), 9))
    return Noted(list(findings.values()), measure, (note,) if left else (), unsolved=left)


def _ask(history: History, labels: Labels | None, decoy: Mask | None) -> Inquiry | None:
    """What is asked, and what is known of it; None where there is nothing."""
    trajectories = history.trajectories
    if trajectories is None or not len(trajectories) or not history.permanent:
        return None
    shown = Labels.of_history(history) if labels is None else labels
    if not shown.questions:
        return None
    if labels is not None and (labels.of[trajectories.of >= 0] >= 0).all():
        known = Known.of(history, labels)
    elif len(history.values) == len(shown):
        known = Known.of_counts(history)
    else:
        return None
    somebody = np.ones(len(trajectories), np.bool_)
    if decoy is not None:
        somebody[:] = False
        somebody[trajectories.of[(trajectories.of >= 0) & ~decoy]] = True
    return Inquiry(known, shown, somebody)


def _parts_of(asked: Inquiry, shares: Mask) -> Mask:
    """Per component, whether one of these shares is in it."""
    parts = np.zeros(int(asked.part.max()) + 1, np.bool_)
    parts[asked.part[asked.share.trajectory[shares]]] = True
    return parts


def _uncap(program: Program, proofs: list[Proof]) -> Program:
    """What is proven once needs no second explanation."""
    return program.without_caps(np.concatenate([proof.caps for proof, _ in proofs])) if proofs else program


def _prove(program: Program) -> Iterator[Proof]:
    """Independent proofs, each with the part of it that ties people most tightly."""
    if not program.exceeded.any():
        return
    proofs = list(refute(program, least_excess(program)))
    if not proofs:
        return
    owner = np.zeros(int(program.row.max()) + 1, np.int64)
    for number, proof in enumerate(proofs):
        owner[proof.rows] = number
    inner = program.take(np.isin(program.row, np.concatenate([proof.rows for proof in proofs])))
    tightest = stretch(inner)
    best = list(proofs)
    for proof in () if tightest is None else refute(inner, tightest[1]):
        number = int(owner[proof.rows[0]])
        best[number] = max(best[number], proof, key=_tightness)
    yield from zip(proofs, best, strict=True)


def _tightness(proof: Refutation) -> tuple[Fraction | float, int]:
    return proof.strain, -len(proof.rows)


def _unavoidable(asked: Inquiry, stated: LabelProgram, touched: Mask, proofs: list[Refutation]) -> float:
    """The smallest multiple of the bounds that is unavoidable anywhere; at most that where there is too much to solve.

    What people truly have is one solution: no component needs more than that.
    """
    program, (top, scale) = stated.program, asked.bounds
    certain = scale / float(top.max(initial=1))
    strain = max([0.0, *(min(certain, float(proof.strain)) for proof in proofs)])
    if asked.somebody.all():
        # What a class shows most of may be the decoys', where there are some apart from people.
        strain = max(strain, asked.in_one_class())
    own = asked.strain
    more = _parts_of(asked, own > strain * (1 + 1e-9))
    first = program.matrix.indices[program.matrix.indptr[:-1]]
    again = stretch(program.take(more[asked.part[stated.pairs.trajectory[first]]]))
    strain = max(strain, 0.0 if again is None else float(again[0].max(initial=0.0)))
    certified = more & ~touched
    if not certified.any():
        return strain
    settled = asked.state(certified[asked.part]).program
    if settled.matrix.shape[1] > _LARGEST:
        return max(strain, float(own[certified[asked.part[asked.share.trajectory]]].max()))
    least = stretch(settled)
    return strain if least is None else max(strain, float(least[0].max(initial=0.0)))


def _find(history: History, asked: Setting) -> Result:
    return find(history, labels=asked.labels_of(history))


def _by_pods(history: History, pods: PodProof, since: int) -> Result:
    bounds = [question.bound for question in pods.labels.questions]
    free = history.attribute != WHOLE_ROW and all(bound >= 1 for bound in history.bounds)
    return Result([], min(1.0, round(pods.strain * float(max(bounds)), 9))) if bounds and not free else Result()


def _with_totals(history: History, asked: Setting) -> Result | None:
    """The same for somebody who knows the true totals, of all that rows show."""
    if asked.decoy is None or (asked.labels is not None and history.attribute != WHOLE_ROW):
        return None
    from sequester.attacks.deniability.totals import find_totals

    return find_totals(history, Labels.of_history(history) if asked.labels is None else asked.labels, asked.decoy)


def _settled(history: History) -> str | None:
    if len(history) == 1 and history.trajectories is None:
        # Believing of everybody what her class says is within the bounds if the class is.
        return f"{ONE_RELEASE}, of which confidence says as much"
    return unbounded(history)


def _nothing(history: History) -> str:
    # Whole rows of which nobody's label is known are looked at by their counts.
    uncounted = history.attribute == WHOLE_ROW and history.value is None
    return TOO_MANY_ROWS if uncounted else NOBODY_IN_COMMON


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
    by_pods=_by_pods,
    besides=_with_totals,
    story=tell_sum,
    settled=_settled,
    nothing=_nothing,
)
