"""What a rehearsal came to: every variant beside the others, and which one to take."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sequester.policy.model import Policy
from sequester.policy.words import amount
from sequester.publish.rehearsing.recommend import Recommendation, choose, recommend
from sequester.publish.rehearsing.trial import Trial
from sequester.viewable import Viewable


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
