"""Which of the variants to take: by a rule that is told, with what it costs beside naive releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sequester.methods.registry import method_of
from sequester.policy.model import Policy
from sequester.policy.variation import knob, own_number
from sequester.policy.words import percent
from sequester.publish.rehearsing.trial import Trial


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
        return {"name": self.name, "rule": self.rule, "reasons": list(self.reasons)}


def choose(trials: Sequence[Trial], policy: Policy) -> Trial | None:
    """The best of the variants that hold and promise at least what the policy does; None where none does."""
    fit = [trial for trial in trials if trial.holds and trial.equal]
    if not fit:
        return None
    within = [trial for trial in fit if not _missing(trial) and trial.decoys <= policy.decoys]
    everybody = [trial for trial in fit if not _missing(trial)]
    # Differences beyond the third digit are those of draws.
    return min(
        within or everybody or fit,
        key=lambda trial: (
            round(trial.ncp, 3),
            trial.distorted,
            -_strength(trial, policy),
            round(trial.decoys, 3),
            not _is_own(trial, policy),
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


def _is_own(trial: Trial, policy: Policy) -> bool:
    """Whether a variant has the policy's own numbers in all that is varied."""
    return all(own_number(policy, name) == number for name, number in trial.point.items())


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
