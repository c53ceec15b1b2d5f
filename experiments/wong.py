"""Wong et al., section 8: twenty tables of reactions, each with a fifth of the one before, a fifth of it changed.

Average relative error of range queries, average and largest class, people left out and time, round by round (their
Figures 6 to 9), on a synthetic of the paper's size and on the successor of its data (reports that name a
cephalosporin). A person is in a table once: of several reactions in one round the first counts. First without their
registration list, so that no absent people dilute a class and the adversary may know who is in a table; then with it.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from benchmarks.adult import DATA
from benchmarks.figures import DataMissing
from benchmarks.timing import seconds
from numpy.typing import NDArray

from experiments.tables import table
from sequester.attacks import breach
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.lifetime.group import group
from sequester.methods.lifetime.regions import regions
from sequester.metrics.queries import query_error, random_queries
from sequester.policy import Policy
from sequester.policy.protect import Lifetime

ROUNDS, K, QUERIES = 20, 5, 5_000
Averages = dict[str, list[object]]
SHOWN = (1, 5, 10, 15, 20)
_SETTINGS = {
    "constant ratio, k' = 3": [Lifetime(l=float(l), releases=3) for l in (3, 5, 7)],  # noqa: E741
    "constant ratio, l = 2": [Lifetime(l=2.0, releases=releases) for releases in (3, 5, 10)],
    "geometric, alpha = 3": [Lifetime(l=float(l), strategy="geometric", alpha=3.0) for l in (3, 5, 7)],  # noqa: E741
    "geometric, l = 2": [Lifetime(l=2.0, strategy="geometric", alpha=alpha) for alpha in (2.0, 3.0, 5.0)],
}


@dataclass(frozen=True, eq=False)
class Data:
    """People by codes (attributes, people) and their reactions: who, and the code of the term."""

    names: tuple[str, ...]
    domains: tuple[Hierarchy, ...]
    codes: NDArray[np.int32]
    person: NDArray[np.int64]
    value: NDArray[np.int32]
    values: int

    def rounds(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """Who is in each table and with which term, as in the paper."""
        random = np.random.default_rng(8)
        parts = np.array_split(random.permutation(len(self.person)), ROUNDS)
        who, what = np.zeros(0, np.int64), np.zeros(0, np.int32)
        for part in parts:
            kept = random.permutation(len(who))[: len(who) // 5]
            who = np.concatenate([self.person[part], who[kept]])
            what = np.concatenate([self.value[part], what[kept]])
            changed = random.permutation(len(who))[: len(who) // 5]
            what[changed] = self.value[random.integers(0, len(self.value), len(changed))]
            _, first = np.unique(who, return_index=True)
            who, what = who[first], what[first]
            yield who, what

    def rare(self, share: float) -> NDArray[np.bool_]:
        """The rarest terms, so large a part of them."""
        counts = np.bincount(self.value, minlength=self.values)
        chosen = np.zeros(self.values, np.bool_)
        chosen[np.argsort(counts, kind="stable")[: round(share * self.values)]] = True
        return chosen


def run() -> str:
    """Both data sets, as Markdown."""
    title, synthetic = "Synthetic, 40,478 people and 105,420 reactions, the rarest tenth of 2,320 terms", _synthetic()
    constant, horizon, *_ = _SETTINGS
    over: Averages = {}
    parts = [
        _told(title, synthetic, 0.1, over=over),
        _told(f"{title}, with a registration list", synthetic, 0.1, chosen=(constant, horizon), listed=True, over=over),
    ]
    parts.append(f"## Synthetic\n\nAveraged over {ROUNDS} rounds, and the largest class of all:\n\n{_averages(over)}")
    try:
        data = _canada()
    except DataMissing as missing:
        parts.append(f"Canada Vigilance: skipped. {missing}\n")
    else:
        people, reactions = data.codes.shape[1], len(data.person)
        size = f"{people:,} people, {reactions:,} reactions and {data.values:,} terms"
        rare = f"Canada Vigilance, {size}, the rarest tenth of the terms"
        parts.append(_told(rare, data, 0.1, chosen=(constant,)))
        parts.append(_told(f"{rare}, with a registration list", data, 0.1, chosen=(constant,), listed=True))
        parts.append(_told(f"Canada Vigilance, {size}, every term", data, 1.0, chosen=(horizon,)))
    return "\n".join(parts)


def _told(
    title: str,
    data: Data,
    share: float,
    *,
    chosen: Sequence[str] = tuple(_SETTINGS),
    listed: bool = False,
    over: Averages | None = None,
) -> str:
    told = [f"## {title}\n", f"k = {K}; {QUERIES:,} queries a round.\n"]
    for name, lifetimes in _SETTINGS.items():
        if name not in chosen:
            continue
        rows = []
        for lifetime in lifetimes:
            told_of = _setting(data, data.rare(share), lifetime, listed=listed)
            rows += told_of
            if over is not None:
                over.setdefault(str(told_of[0][0]), []).extend(row[-1] for row in told_of[:3])
        heads = ["", "", *(f"round {number}" for number in SHOWN), "all rounds"]
        told += [f"### {name}\n", table(heads, rows)]
    return "\n".join(told)


def _averages(over: Averages) -> str:
    """Without the list, and with it where that was tried."""
    heads = [
        "",
        *(
            f"{what}{more}"
            for more in ("", ", with the list")
            for what in ("query error", "average class", "largest class")
        ),
    ]
    return table(heads, [[name, *found, *[""] * (6 - len(found))] for name, found in over.items()])


def _setting(data: Data, protected: NDArray[np.bool_], lifetime: Lifetime, *, listed: bool) -> list[list[object]]:
    registered = data.codes if listed else None
    errors, means, largest, out, times = [], [], [], [], []
    history = _begin(data, protected, lifetime)
    place = np.where(protected, np.cumsum(protected) - 1, int(protected.sum())).astype(np.int32)
    for number, (who, what) in enumerate(data.rounds(), start=1):
        codes = np.ascontiguousarray(data.codes[:, who])
        past = Past((history,), who, (place[what],), np.zeros(len(who), np.bool_))
        guard = _guard(data, len(who))
        if registered is None:
            make = partial(group, past, codes, data.domains, guard, lifetime=lifetime)
        else:
            make = partial(regions, past, codes, data.domains, guard, lifetime=lifetime, registered=registered)
        taken, classes = seconds(make)
        order = np.flatnonzero(classes.member >= 0)
        (history,) = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(number))
        if number in SHOWN:
            errors.append(_error(classes, data, codes, what))
        means.append(float(classes.size.mean()))
        largest.append(int(classes.size.max()))
        out.append(classes.suppressed)
        times.append(taken)
    shown = [number - 1 for number in SHOWN]
    if lifetime.alpha is None:
        assert lifetime.releases is not None
        # The smallest that can be kept for so many releases (Table 1, corrected).
        ratio = 1 / (1 - (1 - 1 / lifetime.l) ** (1 / lifetime.releases))
        name = f"l = {lifetime.l:g}, k' = {lifetime.releases} (ratio {ratio:.1f})"
    else:
        name = f"l = {lifetime.l:g}, alpha = {lifetime.alpha:g} (ratio {lifetime.l * lifetime.alpha:g} and up)"
    found = breach.find(_sample(history), l=lifetime.l, registered=registered)
    return [
        [name, "query error", *(round(error, 4) for error in errors), float(np.mean(errors))],
        ["", "average class", *(means[place] for place in shown), float(np.mean(means))],
        ["", "largest class", *(largest[place] for place in shown), max(largest)],
        ["", "left out", *(out[place] for place in shown), sum(out)],
        ["", "time", *(f"{times[place]:.2f} s" for place in shown), f"{sum(times):.2f} s"],
        ["", f"audit of 15 values: {len(found.findings)} findings, at most {found.measure:.4f} of {1 / lifetime.l:.4f}"]
        + [""] * (len(SHOWN) + 1),
    ]


def _sample(history: History) -> History:
    """The history with at most fifteen protected values, of which most was published: the audit looks at each."""
    published = np.sum([release.counts.sum(axis=0) for release in history.releases], axis=0)
    bounded = np.array([bound < 1 for bound in history.bounds])
    kept = set(np.argsort(np.where(bounded, -published, 1), kind="stable")[:15].tolist())
    bounds = tuple(bound if place in kept else Fraction(1) for place, bound in enumerate(history.bounds))
    return History(**{**history.__dict__, "bounds": bounds})


def _error(classes: Classes, data: Data, codes: NDArray[np.int32], what: NDArray[np.int32]) -> float:
    kept = classes.member >= 0
    sizes = [domain.size for domain in data.domains]
    asked = random_queries(sizes, queries=QUERIES, rng=np.random.default_rng(1), sensitive=data.values)
    return query_error(
        classes, asked, original=codes, original_sensitive=what, member=classes.member[kept], sensitive=what[kept]
    )


def _guard(data: Data, records: int) -> ClassGuard:
    """Nothing is asked of a class alone but k."""
    quasi = {name: {"role": "quasi-identifier"} for name in data.names}
    policy = Policy.model_validate({"version": 1, "series": "wong", "attributes": quasi, "protect": {"k": K}})
    return ClassGuard.of(Requirement.from_policy(policy, []), np.zeros((0, records), np.int32))


def _begin(data: Data, protected: NDArray[np.bool_], lifetime: Lifetime) -> History:
    """One value for every protected term, and one for all others together."""
    terms = int(protected.sum())
    return History(
        attribute="reaction",
        values=(*(f"term {number}" for number in range(terms)), "another"),
        k=K,
        bounds=(*(1 / Fraction(lifetime.l),) * terms, Fraction(1)),
        domains=data.domains,
        quasi_names=data.names,
        links=np.ones(len(data.names), np.bool_),
        permanent=False,
        people=tuple(range(data.codes.shape[1])),
    )


def _synthetic() -> Data:
    """As many people, reactions and terms as in the paper; the frequencies of terms fall as in Zipf's law."""
    random = np.random.default_rng(40_478)
    people, reactions, terms = 40_478, 105_420, 2_320
    age = np.clip(random.normal(52, 22, people), 0, 99)
    sex = random.integers(0, 2, people)
    height = np.clip(random.normal(np.where(sex == 0, 75, 62) - 40 * (age < 14), 8), 0, 119)
    weight = np.clip(random.normal(np.where(sex == 0, 80, 68) - 45 * (age < 14), 14), 0, 149)
    share = 1 / np.arange(5, terms + 5)
    # Everybody has one reaction at least.
    person = np.concatenate([np.arange(people), random.integers(0, people, reactions - people)])
    value = random.choice(terms, reactions, p=share / share.sum())
    return Data(
        names=("age", "sex", "height", "weight"),
        domains=tuple(from_numbers(np.arange(size, dtype=np.float64)) for size in (100, 2, 120, 150)),
        codes=np.array([age, sex, height, weight]).astype(np.int32),
        person=person.astype(np.int64),
        value=value.astype(np.int32),
        values=terms,
    )


def _canada() -> Data:
    """Reports with gender and age, by these and by weight in steps of 5 kg; a missing weight is a value of its own."""
    folder = DATA.parent / "canada_vigilance"
    reports, reactions = folder / "cv_reports_cephalosporins.csv.gz", folder / "cv_reactions_cephalosporins.csv.gz"
    if not reports.exists():
        raise DataMissing(f"{reports} is not there; see the README of the data folder")
    known: dict[str, int] = {}
    rows = []
    for row in _read(reports):
        if row["GENDER_ENG"] in ("Male", "Female") and row["AGE_Y"]:
            kilograms = float(row["WEIGHT"] or "nan") * (0.4536 if row["WEIGHT_UNIT_ENG"] == "Pound" else 1)
            weight = 40 if np.isnan(kilograms) else int(min(kilograms, 199) // 5)
            known[row["REPORT_ID"]] = len(rows)
            rows.append((int(row["GENDER_ENG"] == "Male"), int(min(float(row["AGE_Y"]), 104)), weight))
    pairs = [
        (known[row["REPORT_ID"]], row["PT_NAME_ENG"])
        for row in _read(reactions)
        if row["REPORT_ID"] in known and row["PT_NAME_ENG"]
    ]
    terms = {term: place for place, term in enumerate(sorted({term for _, term in pairs}))}
    return Data(
        names=("gender", "age", "weight"),
        domains=(
            from_values(["female", "male"]),
            from_numbers(np.arange(105, dtype=np.float64)),
            from_numbers(np.arange(40, dtype=np.float64), missing=True),
        ),
        codes=np.array(rows, np.int32).T.copy(),
        person=np.array([person for person, _ in pairs], np.int64),
        value=np.array([terms[term] for _, term in pairs], np.int32),
        values=len(terms),
    )


def _read(path: object) -> Iterator[dict[str, str]]:
    with gzip.open(str(path), "rt", encoding="utf-8") as stream:
        yield from csv.DictReader(stream)
