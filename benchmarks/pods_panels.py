"""Panels as arrays for the maker of pods: who is in which wave, and what became of every release.

Without files or ledgers, so that many settings can be tried: what a series by pods loses, how many of its rows are
about nobody, how many people are linked, and whether its pods are the witness that an audit asks for.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from experiments.podded import Series
from numpy.typing import NDArray

from benchmarks.adult import DATA, Adult
from benchmarks.figures import DataMissing
from benchmarks.timing import seconds
from sequester.attacks.pods import PodProof, check
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.number import from_numbers
from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement
from sequester.history import History, Publication
from sequester.history.label import Answers, Labels
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.pods.make import make
from sequester.methods.pods.task import LabelBounds, MadePods, PodTask
from sequester.policy import Policy

WOMEN = ("birth_yr", "grade", "race", "msp", "south", "c_city")


@dataclass(frozen=True, eq=False, repr=False)
class Wave:
    """One table: everybody's id, quasi-identifiers (attributes, people), and what stays of her (views, people)."""

    ids: NDArray[np.int64]
    codes: NDArray[np.int32]
    cells: NDArray[np.int32]

    def __len__(self) -> int:
        """Number of people."""
        return len(self.ids)


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Waves over the same domains; every value of every view is bounded."""

    waves: tuple[Wave, ...]
    domains: tuple[Hierarchy, ...]

    def least_decoys(self, confidence: Fraction) -> float:
        """The share of the first wave's rows that are about nobody in any pods: a value may be too frequent."""
        wave, seats = self.waves[0], ceil(1 / confidence)
        commonest = max(int(np.bincount(view).max()) for view in wave.cells)
        missing = max(0, seats * commonest - len(wave))
        return missing / (len(wave) + missing)

    def guard(self, wave: Wave, **protect: Any) -> ClassGuard:
        """What is promised of this wave's table on its own."""
        policy = Policy.model_validate(
            {
                "version": 1,
                "series": "panel",
                "attributes": {"q": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
                "protect": protect,
            }
        )
        values = from_values([f"{code:04d}" for code in range(int(wave.cells[0].max()) + 1)])
        return ClassGuard.of(Requirement.from_policy(policy, [values]), wave.cells[:1])


@dataclass(frozen=True)
class Step:
    """One release: AIL of people, share of rows about nobody, people per lineage (largest, and a person's mean)."""

    people: int
    loss: float
    decoys: float
    largest: int
    mean: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """A whole series by pods."""

    steps: tuple[Step, ...]
    series: Series
    cells: NDArray[np.int32]
    bound: Fraction

    @property
    def losses(self) -> list[float]:
        """By release."""
        return [step.loss for step in self.steps]

    @property
    def decoys(self) -> float:
        """The largest share of a release's rows that are about nobody."""
        return max(step.decoys for step in self.steps)

    def note(self) -> str:
        """Losses by release, and the other knobs."""
        last = self.steps[-1]
        return (
            f"AIL {' '.join(f'{loss:.2f}' for loss in self.losses)}; decoys {100 * self.steps[0].decoys:.2g} to "
            f"{100 * self.decoys:.2g} %; linked {last.largest} (mean {last.mean:.0f}); "
            f"{sum(step.seconds for step in self.steps):.0f} s"
        )

    def histories(self, *, paths: bool = False) -> list[History]:
        """What was published, per view; with everybody's path where beliefs are asked for."""
        return [self._history(view, paths=paths) for view in range(len(self.cells))]

    def witness(self) -> PodProof:
        """The check of all pods."""
        everybody = self.cells[:, self.series.label]
        names = [tuple(str(code) for code in range(int(view.max()) + 1)) for view in self.cells]
        labels = Labels.of_cells(
            tuple(f"s{view}" for view in range(len(self.cells))),
            everybody,
            names,
            [Answers(f"s{n}", everybody[n], names[n], (self.bound,) * len(names[n])) for n in range(len(names))],
        )
        return check(self.series.seats, self.histories(), labels)

    def problems(self) -> int:
        """What is wrong with the witness, and classes of fewer than k rows."""
        small = sum(int((np.bincount(made.member) < self.series.k).sum()) for made in self.series.made)
        return sum(self.witness().problems.values()) + small

    def _history(self, view: int, *, paths: bool) -> History:
        values = int(self.cells[view].max()) + 1
        value = self.cells[view][self.series.label]
        history = History(
            attribute=f"s{view}",
            values=tuple(str(code) for code in range(values)),
            k=self.series.k,
            bounds=(self.bound,) * values,
            domains=(),
            quasi_names=(),
            links=np.zeros(0, np.bool_),
            people=range(len(value)),  # type: ignore[arg-type]
            value=None if paths else value,
            inferred=self.series.options.get("inferred", 2),
        )
        releases = [
            _publication(f"r{number}", who, made, value, values)
            for number, (who, made) in enumerate(zip(self.series.who, self.series.made, strict=True), 1)
        ]
        if not paths:
            return replace(history, releases=tuple(releases))
        for release in releases:
            history = history.extend(release)
        return history


def _publication(
    name: str, who: NDArray[np.int64], made: MadePods, value: NDArray[np.int32], values: int
) -> Publication:
    member, shown = np.full(len(value), -1, np.int32), np.full(len(value), -1, np.int32)
    member[who], shown[who] = made.member, value[who]
    classes = int(made.member.max()) + 1
    counts = np.bincount(made.member.astype(np.int64) * values + value[who], minlength=classes * values)
    none, boxes = np.zeros(0, np.int32), np.zeros((0, classes), np.int32)
    return Publication(name, boxes, boxes, counts.reshape(classes, values), none, none, member, shown)


def publish(panel: Panel, *, confidence: Fraction, decoys: float, first: float | None = None, k: int = 5,
            **options: Any) -> Published:  # fmt: skip
    """The waves of a panel by pods within a budget of decoys, `first` of the first wave.

    `options` are more of those of a task.
    """
    cells = np.unique(np.hstack([wave.cells for wave in panel.waves]), axis=1)
    place = {tuple(one): number for number, one in enumerate(cells.T.tolist())}
    shares = tuple((confidence,) * (int(view.max()) + 1) for view in cells)
    taken: list[float] = []

    def timed(task: PodTask) -> MadePods:
        """The maker alone: what else a series does here, dictionaries among it, is no part of the product."""
        took, made = seconds(lambda: make(task))
        taken.append(took)
        return made

    series = Series(panel.domains, LabelBounds(np.ascontiguousarray(cells), shares), k, make=timed, options=options)
    steps = []
    for number, wave in enumerate(panel.waves):
        series.options["decoys"] = first if first is not None and not number else decoys
        label = np.array([place[tuple(one)] for one in wave.cells.T.tolist()], np.int32)
        made = series.publish(wave.ids.tolist(), wave.codes, label, seed=number)
        steps.append(_step(series, made, len(wave), taken[-1]))
    return Published(tuple(steps), series, cells, confidence)


def _step(series: Series, made: MadePods, people: int, taken: float) -> Step:
    loss = sum(domain.width(lo, hi) for domain, lo, hi in zip(series.domains, made.lo, made.hi, strict=True))
    lineage = series.seats.lineages()[~series.seats.decoy]
    size = np.bincount(lineage)
    rows = len(made.member)
    return Step(
        people=people,
        loss=float(np.asarray(loss)[made.member[:people]].mean()),
        decoys=(rows - people) / rows,
        largest=int(size.max()),
        mean=float(size[lineage].mean()),
        seconds=taken,
    )


@cache
def nlswork(*, two: bool = False) -> Panel:
    """Women by year: six quasi-identifiers as they are now; the first occupation and, of two, the first industry."""
    whole = read("nlswork/nlswork.csv.gz").select(["idcode", "year", *WOMEN, "occ_code", "ind_code"]).drop_null()
    whole = whole.sort_by([("idcode", "ascending"), ("year", "ascending")])
    ids = whole["idcode"].to_numpy().astype(np.int64)
    stays = [_first(ids, whole[name].to_numpy()) for name in ("occ_code", "ind_code")[: 1 + two]]
    texts = {"race"}
    return _panel(whole, ids, whole["year"].to_numpy(), WOMEN, texts, np.array(stays))


@cache
def desynpuf() -> Panel:
    """Medicare beneficiaries over three years: born in, sex, race and state; the first condition of the first year."""
    years = [read(f"desynpuf/beneficiary_{year}.csv.gz") for year in (2008, 2009, 2010)]
    conditions = [name for name in years[0].column_names if name.startswith("SP_") and name != "SP_STATE_CODE"]
    names = ["DESYNPUF_ID", "BENE_BIRTH_DT", "BENE_SEX_IDENT_CD", "BENE_RACE_CD", "SP_STATE_CODE", *conditions]
    whole = pa.concat_tables([year.select(names) for year in years], promote_options="permissive")
    when = np.repeat(np.arange(len(years)), [len(year) for year in years])
    born = pa.array(whole["BENE_BIRTH_DT"].to_numpy() // 10_000)
    whole = whole.set_column(1, "born", born)
    ids = whole["DESYNPUF_ID"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    ill = np.array([whole[name].to_numpy() == 1 for name in conditions])
    main = np.where(ill.any(axis=0), ill.argmax(axis=0), len(conditions))
    order = np.lexsort((when, ids))
    stays = np.empty_like(main)
    stays[order] = _first(ids[order], main[order])
    quasi = ("born", "BENE_SEX_IDENT_CD", "BENE_RACE_CD", "SP_STATE_CODE")
    return _panel(whole, ids, when, quasi, set(quasi[1:]), stays[None, :])


def growing(data: Adult, sizes: Sequence[int]) -> Panel:
    """The first so many records of Adult."""
    return Panel(tuple(_of_adult(data, np.arange(size)) for size in sizes), data.domains)


def changing(data: Adult, people: int, share: float, releases: int) -> Panel:
    """So many records of Adult, of whom a share leaves for good each time, and as many come."""
    return Panel(tuple(_of_adult(data, who) for who in coming_and_going(people, share, releases)), data.domains)


def coming_and_going(people: int, share: float, releases: int) -> Iterator[NDArray[np.int64]]:
    """Who is there in each release."""
    random, who, ever = np.random.default_rng(3), np.arange(people), people
    for _ in range(releases):
        yield who
        stay = np.sort(random.permutation(who)[round(share * people) :])
        came = ever + np.arange(people - len(stay))
        who, ever = np.append(stay, came), ever + len(came)


def read(name: str) -> pa.Table:
    """A table of the data folder."""
    file: Path = DATA.parent / name
    if not file.exists():
        raise DataMissing(f"{file} is not there; see the README of the data folder")
    with gzip.open(file) as stream:
        return csv.read_csv(stream)


def _of_adult(data: Adult, who: NDArray[np.int64]) -> Wave:
    return Wave(who.astype(np.int64), np.ascontiguousarray(data.codes[:, who]), data.sensitive[:, who])


def _first(ids: NDArray[Any], column: NDArray[Any]) -> NDArray[Any]:
    """Per row, the first cell of its person; the rows of a person stand together."""
    new = np.diff(ids, prepend=-1) != 0
    return np.asarray(column[np.flatnonzero(new)][np.cumsum(new) - 1])


def _panel(
    whole: pa.Table,
    ids: NDArray[np.int64],
    when: NDArray[Any],
    quasi: Sequence[str],
    texts: set[str],
    stays: NDArray[Any],
) -> Panel:
    """Waves by time; columns that are not `texts` are numbers, their range is that of the data."""
    codes, domains = [], []
    for name in quasi:
        values, code = np.unique(whole[name].to_numpy(), return_inverse=True)
        codes.append(code.ravel())
        domains.append(
            from_values([f"{value:03d}" for value in values.astype(int).tolist()])
            if name in texts
            else from_numbers(values.astype(np.float64))
        )
    cells = np.array([np.unique(view, return_inverse=True)[1].ravel() for view in stays], np.int32)
    found = []
    for time in np.unique(when):
        at = np.flatnonzero(when == time)
        found.append(Wave(ids[at], np.ascontiguousarray(np.array(codes, np.int32)[:, at]), cells[:, at]))
    return Panel(tuple(found), tuple(domains))
