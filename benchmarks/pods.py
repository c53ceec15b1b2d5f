"""Pods on real panels and on Adult: loss of people, decoys, links, what background knowledge tells, and time.

`python -m benchmarks pods` runs all parts; `python -m benchmarks.pods thrifty growing` some of them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from experiments.naive import Told, in_series, naive, policy, women

import sequester as sq
from benchmarks import adult, synthetic
from benchmarks.figures import Figure, show
from benchmarks.pods_panels import Panel, Published, Wave, changing, desynpuf, growing, nlswork, publish
from benchmarks.timing import seconds
from sequester.attacks.belief import Resilience, resilience
from sequester.errors import GuaranteeError
from sequester.history import Past
from sequester.ledger import Key
from sequester.methods.cluster.recluster import recluster
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.metrics.loss import ail

HALF, THIRD, MOST = Fraction(1, 2), Fraction(1, 3), Fraction(7, 10)
K = 5
THRIFTY, RESILIENT, LINEAGE = 0.025, 0.25, 5
MARKS = (4, 8, 15)
MERGED = (4,)
"""Waves published by merge: all 15 take longer than everything else here."""
SIZES = tuple(range(5_000, 30_001, 5_000))
CHANGING, RELEASES, FEW = 9_000, 10, 4
MANY, MANY_K, CHURN = 1_000_000, 10, 0.2


def run() -> list[Figure]:
    """All parts."""
    return [figure for part in PARTS.values() for figure in part()]


def _promise(what: str, made: Published) -> Figure:
    return Figure(f"{what}: problems of the witness", made.problems(), at_most=0)


def thrifty_women() -> list[Figure]:
    """One attribute, few decoys."""
    made = publish(nlswork(), confidence=HALF, decoys=THRIFTY)
    what, losses = "nlswork, thrifty", made.losses
    return [
        Figure(f"{what}: largest AIL of 15 waves", max(losses), at_most=1.0, note=made.note()),
        Figure(f"{what}: AIL, wave 15 / wave 5", losses[14] / losses[4], at_most=1.15),
        Figure(f"{what}: most decoys", 100 * made.decoys, "%", at_most=100 * THRIFTY),
        _promise(what, made),
        *_carried(what, (made.histories(paths=True)[0], made.series.seats), goals={}),
    ]


def resilient_women() -> list[Figure]:
    """The same with few people linked."""
    made = publish(nlswork(), confidence=HALF, decoys=RESILIENT, lineage=LINEAGE)
    what = f"nlswork, lineage {LINEAGE}"
    told = (made.histories(paths=True)[0], made.series.seats)
    return [
        Figure(f"{what}: largest AIL of 15 waves", max(made.losses), at_most=1.0, note=made.note()),
        Figure(f"{what}: most decoys", 100 * made.decoys, "%", at_most=100 * RESILIENT),
        Figure(f"{what}: most people linked", made.steps[-1].largest, at_most=LINEAGE),
        _promise(what, made),
        *_carried(what, told, goals={8: 5.0, 15: 10.0}),
    ]


def other_women() -> list[Figure]:
    """What background knowledge tells of series without a memory, and of those by merge."""
    tables = women(max(MARKS))
    merged = in_series(policy("merge"), tables[: max(MERGED)])
    return [
        *_carried("nlswork, each wave on its own", naive(tables), goals={}),
        *_carried("nlswork, merge", merged, goals={}, waves=MERGED),
    ]


def _carried(what: str, told: Told, *, goals: dict[int, float], waves: tuple[int, ...] = MARKS) -> Iterator[Figure]:
    """Women believed above .9 after some waves, when the values of a share of the others are known."""
    history, seats = told
    for wave in waves:
        found = resilience(history.until(wave), None if seats is None else seats.until(wave), seed=1)
        known = found[0.05]
        yield Figure(
            f"{what}: believed above .9 after {wave} waves, 5 % known",
            100 * known.belief.above[-1],
            "%",
            at_most=goals.get(wave),
            note=_shares(found),
        )


def _shares(found: dict[float, Resilience]) -> str:
    by = ", ".join(f"{100 * one.belief.above[-1]:.2g} %" for one in found.values())
    told = [one.lineage for one in found.values() if one.lineage is not None]
    pods = ", ".join(f"{100 * one.above[-1]:.2g} %" for one in told)
    return f"{', '.join(f'{100 * share:g}' for share in found)} % known: {by}" + (
        f"; pods known too: {pods}" * bool(pods)
    )


def inferred_women(waves: int = 5) -> list[Figure]:
    """As many rows of everything inferred as of a class, by the product, beside two."""
    lost: dict[int, list[float]] = {}
    figures = []
    for inferred in (2, K):
        lost[inferred] = []
        given = policy("pods", protect={"inferred": inferred}, decoys=THRIFTY)
        taken = 0.0
        with tempfile.TemporaryDirectory() as folder:
            series = sq.Series.open(Path(folder) / "women.ledger", given, key=Key.of_text("the key of a benchmark"))
            for number, (name, snapshot) in enumerate(women(waves)):
                made, plan = seconds(lambda: series.plan(snapshot, name=name, seed=2**63 + number))  # noqa: B023
                series.publish(plan)
                taken += made
                lost[inferred].append(plan.loss["release"]["ail"])
            found = series.audit().findings
        note = f"AIL {' '.join(f'{loss:.2f}' for loss in lost[inferred])}; {taken:.0f} s for all plans"
        figures += [
            Figure(f"nlswork, inferred {inferred}: largest AIL of {waves} waves", max(lost[inferred]), note=note),
            Figure(f"nlswork, inferred {inferred}: findings of the audit", len(found), at_most=0),
        ]
    ratio = max(five / two for two, five in zip(lost[2], lost[K], strict=True))
    return [*figures, Figure(f"nlswork, inferred {K} / inferred 2: largest ratio of AIL", ratio, at_most=1.5)]


def harder_women() -> list[Figure]:
    """Two attributes, and pods of three."""
    figures = []
    for what, panel, confidence, most in (
        ("nlswork, two attributes", nlswork(two=True), HALF, 1.2),
        ("nlswork, m = 3", nlswork(), THIRD, 1.5),
    ):
        least = panel.least_decoys(confidence)
        made = publish(panel, confidence=confidence, decoys=0.15, first=least + 0.03)
        figures += [
            Figure(f"{what}: largest AIL of 15 waves", max(made.losses), at_most=most, note=made.note()),
            Figure(
                f"{what}: decoys, wave 1",
                100 * made.steps[0].decoys,
                "%",
                at_most=100 * least + 3,
                note=f"no pods have fewer than {100 * least:.1f} %; of later waves the budget is 15 %",
            ),
            Figure(f"{what}: decoys, wave 15", 100 * made.steps[-1].decoys, "%", at_most=15),
            _promise(what, made),
        ]
    return figures


def beneficiaries() -> list[Figure]:
    """Three years of 180,000 people, beside each year's table on its own."""
    panel = desynpuf()
    made = publish(panel, confidence=HALF, decoys=0.01)
    alone = [
        ail(mondrian(wave.codes, panel.domains, panel.guard(wave, k=K, confidence=0.5), regroup=True), panel.domains)
        for wave in panel.waves
    ]
    ratio = max(loss / other for loss, other in zip(made.losses, alone, strict=True))
    note = f"{made.note()}; alone {' '.join(f'{loss:.4f}' for loss in alone)}"
    return [
        Figure("desynpuf: AIL / AIL of each table alone, largest", ratio, at_most=1.5, note=note),
        Figure("desynpuf: most decoys", 100 * made.decoys, "%", at_most=1.0),
        _promise("desynpuf", made),
    ]


def growing_adult() -> list[Figure]:
    """Six tables, each 5,000 larger than the one before."""
    panel = growing(_adult(), SIZES)
    made = publish(panel, confidence=MOST, decoys=0.001)
    rises = max(after / before for before, after in pairwise(made.losses))
    return [
        Figure("Adult, growing: AIL of 30,000", made.losses[-1], at_most=0.23, note=made.note()),
        Figure("Adult, growing: AIL, largest ratio to the release before", rises, at_most=1.0),
        Figure("Adult, growing: most decoys", 100 * made.decoys, "%", at_most=0.1),
        _promise("Adult, growing", made),
    ]


def inferred_adult() -> list[Figure]:
    """The same six tables, and of everything inferred as many rows as of a class, whatever is published later."""
    what = "Adult, growing, inferred 5"
    made = publish(growing(_adult(), SIZES), confidence=MOST, decoys=0.001, inferred=K)
    return [
        Figure(f"{what}: AIL of 30,000", made.losses[-1], at_most=0.274, note=made.note()),
        Figure(f"{what}: most decoys", 100 * made.decoys, "%", at_most=0.1),
        Figure(f"{what}: rows without company", _alone(made), at_most=0),
        _promise(what, made),
    ]


def _alone(made: Published) -> int:
    """Labels of classes that fewer rows can own than are promised."""
    return int((made.witness().owners(made.histories()[0]) < K).sum())


def inferred_long() -> list[Figure]:
    """Fifteen waves by the maker alone, without a limit on lineages."""
    made = {inferred: publish(nlswork(), confidence=HALF, decoys=THRIFTY, inferred=inferred) for inferred in (2, K)}
    ratio = max(five / two for two, five in zip(made[2].losses, made[K].losses, strict=True))
    what = f"nlswork, 15 waves, inferred {K}"
    return [
        Figure(f"{what}: largest AIL", max(made[K].losses), note=made[K].note()),
        Figure(f"{what} / inferred 2: largest ratio of AIL", ratio, at_most=1.5, note=made[2].note()),
        Figure(f"{what}: most decoys", 100 * made[K].decoys, "%", at_most=100 * THRIFTY),
        Figure(f"{what}: rows without company", _alone(made[K]), at_most=0),
        _promise(what, made[K]),
    ]


def changing_adult() -> list[Figure]:
    """Ten tables of which a share leaves and comes each time, beside clusters and merge."""
    data, figures = _adult(), []
    for share in (0.02, 0.25):
        panel, what = changing(data, CHANGING, share, RELEASES), f"Adult, {share:.0%} leave and come"
        made = publish(panel, confidence=MOST, decoys=0.05)
        figures += [
            Figure(f"{what}: AIL, release 10 / release 3", made.losses[-1] / made.losses[2], at_most=1.1,
                   note=made.note()),
            Figure(f"{what}: most decoys", 100 * made.decoys, "%", at_most=5.0),
            _promise(what, made),
            *(_beside(data, panel, f"{what}: {name}", method) for name, method in OTHERS.items()),
        ]  # fmt: skip
    return figures


OTHERS: dict[str, Callable[..., object]] = {
    "clusters": lambda *table: recluster(*table, against=("insider",)),
    "merge": lambda *table: merge(*table, against=("insider",)),
}


def _beside(data: adult.Adult, panel: Panel, what: str, method: Callable[..., object]) -> Figure:
    """The first releases of another method, leavers gone at once as with pods."""
    waves = panel.waves[:FEW]
    history = data.history(int(max(wave.ids.max() for wave in waves)) + 1, k=K, confidence=float(MOST))
    losses, note = [], ""
    for wave in waves:
        part = data.take(wave.ids)
        past = Past((history,), wave.ids, (part.sensitive[0],), np.zeros(len(wave), np.bool_))
        try:
            classes = method(past, part.codes, part.domains, part.guard(k=K, confidence=float(MOST)))
        except GuaranteeError:
            note = f"; refused release {len(losses) + 1}"
            break
        history = adult.publish(past, classes)  # type: ignore[arg-type]
        losses.append(ail(classes, data.domains))  # type: ignore[arg-type]
    return Figure(f"{what}, AIL of release {len(losses)}", losses[-1],
                  note=f"AIL {' '.join(f'{loss:.2f}' for loss in losses)}{note}")  # fmt: skip


def speed() -> list[Figure]:
    """A second release of a million people, a fifth of them new, against Mondrian on the same rows."""
    new = round(CHURN * MANY)
    records, domains = synthetic.make(MANY + new), synthetic.domains()
    waves = [
        Wave(who, np.ascontiguousarray(records.codes[:, who]), records.sensitive[:, who])
        for who in (np.arange(MANY), np.arange(new, MANY + new))
    ]
    made = publish(Panel(tuple(waves), domains), confidence=HALF, k=MANY_K, decoys=0.01)
    part = synthetic.Records(waves[1].codes, waves[1].cells)
    guards = {"k": part.guard(k=MANY_K), "k and confidence": part.guard(k=MANY_K, confidence=0.5)}
    plain = {name: min(seconds(lambda: mondrian(part.codes, domains, guard))[0] for _ in range(3))  # noqa: B023
             for name, guard in guards.items()}  # fmt: skip
    taken = made.steps[1].seconds
    return [
        Figure("1,000,000 people, a fifth new: pods", taken, "s", note=made.note()),
        *(
            Figure(f"1,000,000 people: pods / Mondrian, {name}", taken / base, at_most=4.0, note=f"{base:.1f} s")
            for name, base in plain.items()
        ),
        _promise("1,000,000 people", made),
    ]


def _adult() -> adult.Adult:
    return adult.load().take(np.random.default_rng(1).permutation(30_162)[:30_000].astype(np.int64))


PARTS: dict[str, Callable[[], list[Figure]]] = {
    "thrifty": thrifty_women,
    "resilient": resilient_women,
    "others": other_women,
    "inferred": inferred_women,
    "inferred-long": inferred_long,
    "inferred-adult": inferred_adult,
    "harder": harder_women,
    "desynpuf": beneficiaries,
    "growing": growing_adult,
    "changing": changing_adult,
    "speed": speed,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pods", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    for name in parser.parse_args().parts:
        show(f"pods: {name}", PARTS[name]())
