"""Try a whole series of past waves, by every method that suits the policy, before it begins."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sequester.log import Progress
from sequester.methods.registry import method_of
from sequester.policy.model import Policy
from sequester.policy.variation import knob, own_number
from sequester.policy.words import amount, percent
from sequester.processes import run_all, tell
from sequester.publish.rehearsing.trial import Trial, Wave, check_waves, plan_variants, read_waves, try_one
from sequester.publish.saved import plain
from sequester.publish.series import refuse_unsupported
from sequester.viewable import Viewable


def rehearse(
    waves: Sequence[Any],
    policy: Policy,
    *,
    methods: Sequence[str] | None = None,
    vary: Mapping[str, Sequence[float]] | None = None,
    processes: int | None = None,
    everybody_is_new: bool = False,
    show_values: bool = False,
    progress: Progress | None = None,
) -> Rehearsal:
    """A series of past waves by every method that suits the policy, side by side. No ledger is touched.

    waves             paths, frames or relations, in the order in which they would have been published
    methods           only these; by default all that suit the policy or, with `vary`, the policy's own
    vary              numbers to try, by name: {"k": [3, 5, 10], "confidence": [0.3, 0.5]}; all combinations
    processes         how many variants are tried at a time; by default one per processor
    everybody_is_new  waves may have hardly anybody in common
    show_values       let a DataError carry offending values in `Problem.values`
    progress          called with the variant, how many of its and others' waves are done, and how many there are
    All waves are read and compared before anything is tried: DataError says what is wrong with which. A variant that
    cannot keep the promise is a row of the result that says why.
    """
    began = time.monotonic()
    refuse_unsupported(policy)
    read = read_waves(waves, policy)
    variants = plan_variants(policy, sum(map(len, read)), methods=methods, vary=vary or {})
    total, done = sum(one.policy is not None for one in variants) * len(read), 0

    def told(name: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(name, done, total)

    with tempfile.TemporaryDirectory(prefix="sequester-") as folder:
        if progress is not None:
            progress("reading", 0, total)
        check_waves(read, policy, Path(folder), new=everybody_is_new, show_values=show_values)
        staging = _Staging(read, Path(folder), everybody_is_new)
        processes = processes or os.cpu_count() or 1
        tried = dict(run_all(staging, list(enumerate(variants)), processes=processes, hear=told))
    return Rehearsal(
        series=policy.series,
        waves=tuple(wave.name for wave in read),
        people=tuple(map(len, read)),
        columns=tuple(policy.quasi_identifiers),
        trials=tuple(tried[number] for number in range(len(variants))),
        varied=tuple(vary or ()),
        policy=policy,
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Staging:
    """What all variants share: the waves, a folder for their ledgers, and whether nobody need be recognised.

    Waves are on no disk but in these ledgers; whoever calls makes the folder and removes it.
    """

    waves: tuple[Wave, ...]
    folder: Path
    new: bool

    def __call__(self, numbered: tuple[int, Trial]) -> tuple[int, Trial]:
        """Try one variant; every wave that is done is told by the name of the variant."""
        number, trial = numbered
        ledger = self.folder / f"{number}.ledger"
        return number, try_one(trial, self.waves, ledger, new=self.new, tell=lambda _: tell(trial.name))


@dataclass(frozen=True, repr=False)
class Rehearsal(Viewable):
    """A series of past waves by several methods and settings; nothing of it was published.

    waves    their names, and `people` how many records each has
    columns  the quasi-identifiers
    trials   every variant as it went: naive releases first, then the policy's own method
    varied   names of the numbers that differ between trials, where the policy was varied
    policy   the one that was rehearsed
    seconds  from beginning to end
    """

    series: str
    waves: tuple[str, ...]
    people: tuple[int, ...]
    columns: tuple[str, ...]
    trials: tuple[Trial, ...]
    varied: tuple[str, ...] = ()
    policy: Policy | None = field(default=None, compare=False)
    seconds: float = field(default=0.0, compare=False)

    @property
    def naive(self) -> Trial | None:
        """Every wave on its own, as the policy is."""
        return next((trial for trial in self.trials if trial.naive and trial.waves), None)

    @property
    def best(self) -> Trial | None:
        """The trial of the variant that is recommended."""
        return None if self.policy is None else choose(self.trials, self.policy)

    @property
    def recommendation(self) -> Recommendation | None:
        """Which variant to take, by which rule, and what it costs; None where none holds."""
        return None if self.policy is None else recommend(self.trials, self.policy)

    @property
    def recommended(self) -> Policy | None:
        """The policy of the variant that is recommended."""
        return None if self.best is None else self.best.policy

    def policy_text(self, text: str | None = None) -> str | None:
        """The recommended policy as a file, with reasons as comments; None where none is.

        text  the file of the policy that was rehearsed: it is kept, comments included, where only keys differ
        """
        from sequester.policy.written import written

        chosen, advice = self.recommended, self.recommendation
        if chosen is None or advice is None:
            return None
        sizes = ", ".join(f"{count:,}" for count in self.people)
        comments = [
            f"Recommended by a rehearsal of {amount(len(self.waves), 'wave')} ({sizes} records): {advice.name}.",
            *advice.reasons,
            f"The rule: {advice.rule}.",
            "Figures are of these waves; read it, and check it, before a series begins with it.",
        ]
        return written(chosen, comments=comments, text=text)

    def picture(self) -> str:
        """Loss over waves by variant and people exposed by naive releases, or what was varied, as SVG."""
        from sequester.report.rehearsed import picture

        return picture(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain values: counts, shares and names of columns; no cell and no person."""
        advice = self.recommendation
        return {
            "series": self.series,
            "waves": [{"name": name, "records": count} for name, count in zip(self.waves, self.people, strict=True)],
            "columns": list(self.columns),
            "varied": list(self.varied),
            "trials": [trial.to_dict() for trial in self.trials],
            "recommendation": None if advice is None else advice.to_dict(),
            "seconds": round(self.seconds, 2),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        held = sum(trial.holds for trial in self.trials)
        tried = sum(trial.policy is not None and not trial.naive for trial in self.trials)
        advice = self.recommendation
        said = "none recommended" if advice is None else f"recommended: {advice.name}"
        return f"<Rehearsal of {amount(len(self.waves), 'wave')}: {held} of {tried} variants hold, {said}>"


@dataclass(frozen=True)
class Recommendation:
    """The variant to take.

    name     of it
    rule     by which it was chosen, in words
    reasons  why it and what it costs, a sentence each
    """

    name: str
    rule: str
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values: dict[str, Any] = plain(self)
        return values


def choose(trials: Sequence[Trial], policy: Policy) -> Trial | None:
    """The best of the variants that hold and promise at least what the policy does; None where none does."""
    fit = [trial for trial in trials if trial.holds and trial.equal]
    if not fit:
        return None
    within = [trial for trial in fit if not _missing(trial) and trial.decoys <= policy.decoys]
    everybody = [trial for trial in fit if not _missing(trial)]

    def own(trial: Trial) -> bool:
        """Whether a variant has the policy's own numbers in all that is varied."""
        return all(own_number(policy, name) == number for name, number in trial.point.items())

    # Differences beyond the third digit are those of draws.
    return min(
        within or everybody or fit,
        key=lambda trial: (
            round(trial.ncp, 3),
            trial.distorted,
            -_strength(trial, policy),
            round(trial.decoys, 3),
            not own(trial),
        ),
    )


def _strength(trial: Trial, policy: Policy) -> float:
    """How much more a variant promises than the policy, over all numbers of both, each beside the policy's own."""
    more = 0.0
    for name, number in {**trial.settings, **trial.point}.items():
        own = own_number(policy, name)
        if isinstance(own, int | float) and own:
            more += knob(name).more * (number - own) / own
    return round(more, 9)


def _called(trial: Trial) -> str:
    """A variant with what is varied."""
    point = ", ".join(f"{name} {number:g}" for name, number in trial.point.items())
    return f"{trial.name} ({point})" if point else trial.name


def recommend(trials: Sequence[Trial], policy: Policy) -> Recommendation | None:
    """The choice, with its rule and reasons."""
    best = choose(trials, policy)
    if best is None:
        return None
    rule = (
        "of the variants that hold in every wave and promise at least what the policy does, those in which nobody "
        f"waits, is left out, or is published on after leaving, with at most {percent(policy.decoys)} decoys; of these "
        "the least mean NCP (to three digits); of equals the fewest values whose shares are changed too much, then "
        "what promises most, then the fewest decoys, and then the policy's own numbers"
    )
    return Recommendation(
        _called(best), rule, (*_exceptions(best, policy), *_reasons(best, trials), *_counted(best, policy))
    )


def _missing(trial: Trial) -> int:
    return trial.waiting + trial.kept + trial.left_out


def _exceptions(best: Trial, policy: Policy) -> list[str]:
    """What of the rule no variant keeps."""
    told = []
    if _missing(best):
        told.append(f"With no variant is everybody published at once: with this one {_say_missing(best)}.")
    if best.decoys > policy.decoys:
        told.append(f"No variant does with {percent(policy.decoys)} decoys: this one has {_share(best.decoys)}.")
    if best.distorted:
        values = f"up to {best.distorted:,} values of a wave" if best.distorted > 1 else "one value of a wave"
        told.append(
            f"Its decoys change the shares of {values} by more than `distortion` ({percent(policy.distortion)} of it)."
        )
    return told


def _say_missing(trial: Trial) -> str:
    said = (
        (trial.waiting, "wait"),
        (trial.kept, "are published on after leaving"),
        (trial.left_out, "are left out"),
    )
    return " and ".join(f"up to {count:,} people {what}" for count, what in said if count)


def _reasons(best: Trial, trials: Sequence[Trial]) -> list[str]:
    decoys = f", with {_share(best.decoys)} decoys" if best.decoys else ", without decoys"
    told = [f"It loses {best.ncp:.3f} (mean NCP, 0 to 1) over the waves{decoys}, and exposes nobody."]
    same = [one for one in trials if one.naive and one.waves and dict(one.point) == dict(best.point)]
    for naive in same[:1]:
        last, ratio = naive.waves[-1], best.ncp / naive.ncp if naive.ncp > 0 else 0.0
        times = f", so that safety costs {ratio:.2g} times its loss" if ratio > 1 else ""
        more = "at least " if last.at_least else ""
        told.append(
            f"Each wave on its own would lose {naive.ncp:.3f}{times}, and would expose {more}{last.exposed:,} of "
            f"{last.everybody:,} people, {last.certain:,} of them for certain."
        )
    others = [one for one in trials if one.holds and one.equal and one is not best]
    if others:
        next_ = min(others, key=lambda one: one.ncp)
        missing = f", but {_say_missing(next_)}" if _missing(next_) else ""
        said = f"{next_.ncp:.3f} with {_share(next_.decoys)} decoys{missing}"
        told.append(f"The least of the others: {_called(next_)}, {said}.")
    return told


def _counted(best: Trial, policy: Policy) -> list[str]:
    """What k counts, where that is not what it counted."""
    if best.policy is None or not method_of(best.policy.method).seats or method_of(policy.method).seats:
        return []
    return ["k then counts rows, and some rows of a class may be decoys."]


def _share(share: float) -> str:
    return f"{100 * share:.2g}%"
