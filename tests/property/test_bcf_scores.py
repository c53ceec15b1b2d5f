"""Every score takes the step that its definition calls best, each time anew."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from chains import Chain, Cut, chains, finer_cuts
from sequester.methods.specialize.refine import specialize

Step = tuple[int, tuple[int, int], list[tuple[int, int]]]  # attribute, value, its children


def classes_by(cut: Cut, points: np.ndarray) -> dict[tuple[tuple[int, int], ...], list[int]]:
    """Records by the values they are published with."""
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for record, codes in enumerate(points.tolist()):
        key = tuple(
            next(value for value in values if value[0] <= code <= value[1])
            for values, code in zip(cut, codes, strict=True)
        )
        found.setdefault(key, []).append(record)
    return found


def discernibility(chain: Chain, step: Step, before: Cut, after: Cut) -> float:
    """Squares of the sizes of all classes with the value (section 5.2)."""
    attribute, value, _ = step
    return sum(len(part) ** 2 for key, part in classes_by(before, chain.points).items() if key[attribute] == value)


def information_gain(chain: Chain, step: Step, before: Cut, after: Cut) -> float:
    """Bits needed for the labels of the value's records, less what is needed within its children."""

    def bits(interval: tuple[int, int]) -> float:
        inside = (chain.points[:, step[0]] >= interval[0]) & (chain.points[:, step[0]] <= interval[1])
        counts = Counter(chain.value[inside].tolist()).values()
        return math.fsum(count * math.log2(sum(counts) / count) for count in counts)

    return bits(step[1]) - math.fsum(bits(part) for part in step[2])


def loss_per_anonymity(chain: Chain, step: Step, before: Cut, after: Cut) -> float:
    """Precision that is saved, for one record and each that the smallest class of the value loses."""
    attribute, value, parts = step
    domain = chain.domains[attribute]

    def cost(interval: tuple[int, int]) -> float:
        inside = (chain.points[:, attribute] >= interval[0]) & (chain.points[:, attribute] <= interval[1])
        level = int(domain.level_of(np.array([interval[0]]), np.array([interval[1]]))[0])
        return int(inside.sum()) * level / max(domain.height, 1)

    old = [len(part) for key, part in classes_by(before, chain.points).items() if key[attribute] == value]
    new = [len(part) for key, part in classes_by(after, chain.points).items() if key[attribute] in parts]
    return (cost(value) - sum(map(cost, parts))) / (1 + min(old) - min(new))


SCORES: dict[str, Callable[[Chain, Step, Cut, Cut], float]] = {
    "discernibility": discernibility,
    "information-gain": information_gain,
    "loss-per-anonymity": loss_per_anonymity,
}


def greedy(chain: Chain, score: Callable[[Chain, Step, Cut, Cut], float]) -> Cut:
    """The best safe step, then the first attribute, then the first value, until there is none."""
    _, codes, _ = chain.past()
    taxonomies = chain.taxonomies(codes)
    cut: Cut = [[(0, domain.size - 1)] for domain in chain.domains]
    while True:
        found = []
        for finer in finer_cuts(taxonomies, cut):
            attribute = next(place for place, values in enumerate(finer) if values != cut[place])
            (value,) = set(cut[attribute]) - set(finer[attribute])
            parts = sorted(set(finer[attribute]) - set(cut[attribute]))
            found.append((-score(chain, (attribute, value, parts), cut, finer), attribute, value, finer))
        found.sort(key=lambda entry: entry[:3])
        # Between scores that are equal up to rounding the order of additions would decide.
        marks = [entry[0] for entry in found]
        assume(not any(0 < other - one < 1e-9 for one, other in pairwise(marks)))
        k = int(str(chain.protect["k"]))
        safe = (entry[3] for entry in found if min(map(len, classes_by(entry[3], chain.points).values())) >= k)
        finer = next(safe, None)  # type: ignore[assignment]
        if finer is None:
            return cut
        cut = finer


@pytest.mark.parametrize("score", sorted(SCORES))
@settings(max_examples=60, deadline=None)
@given(chain=chains(releases=(1, 1), people=(4, 20), criteria=False, ks=(1, 2, 3)), data=st.data())
def test_the_step_that_scores_best_is_taken_every_time(score: str, chain: Chain, data) -> None:
    chain.present[:] = True
    assume(len(chain.value) >= int(str(chain.protect["k"])))
    past, codes, guard = chain.past()
    classes = specialize(
        codes, chain.domains, guard, loss="precision", score=score, label=chain.value[past.person]  # type: ignore[arg-type]
    )  # fmt: skip
    expected = classes_by(greedy(chain, SCORES[score]), chain.points)
    event("several classes" if len(classes) > 1 else "one class")
    found = {
        tuple(zip(lo, hi, strict=True)) for lo, hi in zip(classes.lo.T.tolist(), classes.hi.T.tolist(), strict=True)
    }
    assert found == set(expected)
