"""One variant, wave by wave: every release is planned, audited and noted in a ledger that is thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sequester.errors import DataError, GuaranteeError
from sequester.metrics.loss import ail, column_losses, ncp
from sequester.policy.model import Policy
from sequester.policy.variation import Numbers
from sequester.publish.candidate import Candidate
from sequester.publish.commit import record
from sequester.publish.plan import Plan
from sequester.publish.prepare import Request, prepare
from sequester.publish.rehearsing.variants import Variant
from sequester.publish.rehearsing.waves import Wave, key_of, new_ledger

# Draws the order of rows that nobody sees, so that a rehearsal can be repeated.
_SEED = 1 << 63


@dataclass(frozen=True)
class TrialWave:
    """What one release would be, in numbers.

    people    published; `rows` with decoys
    waiting   people of the table who wait; `kept` are those who left and are published on; `left_out` are not published
    ail, ncp  loss of the people of the table
    columns   NCP by quasi-identifier
    everybody people published so far; `exposed` of them above what is promised, `certain` beyond doubt
    at_least  there may be more of them: an attack found more than it tells
    distorted values whose shares are further off than the policy's `distortion`
    """

    people: int
    rows: int
    classes: int
    waiting: int
    kept: int
    left_out: int
    ail: float
    ncp: float
    columns: Mapping[str, float]
    everybody: int
    exposed: int
    certain: int
    at_least: bool = False
    distorted: int = 0

    @property
    def decoys(self) -> int:
        """Rows about nobody."""
        return self.rows - self.people

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "columns": dict(self.columns), "decoys": self.decoys}


@dataclass(frozen=True)
class Trial:
    """One variant as it went.

    waves    those that could be published
    why      what stopped it, or why it was not tried; None where it went through
    seconds  of a processor
    """

    name: str
    method: str
    settings: Numbers
    point: Numbers
    naive: bool
    equal: bool
    waves: tuple[TrialWave, ...] = ()
    why: str | None = None
    seconds: float = field(default=0.0, compare=False)
    policy: Policy | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, variant: Variant, **more: Any) -> Trial:
        """The trial of a variant."""
        given = {"why": variant.why, **more}
        return cls(
            variant.name,
            variant.method,
            variant.settings,
            variant.point,
            variant.naive,
            variant.equal,
            policy=variant.policy,
            **given,
        )

    @property
    def finished(self) -> bool:
        """Whether every wave was published."""
        return self.why is None and bool(self.waves)

    @property
    def holds(self) -> bool:
        """Whether every wave was published and nobody is exposed."""
        return self.finished and not self.naive and not any(wave.exposed for wave in self.waves)

    @property
    def ncp(self) -> float:
        """Mean over waves."""
        return self._mean([wave.ncp for wave in self.waves])

    @property
    def ail(self) -> float:
        """Mean over waves."""
        return self._mean([wave.ail for wave in self.waves])

    @property
    def columns(self) -> dict[str, float]:
        """NCP by quasi-identifier, mean over waves."""
        names = self.waves[0].columns if self.waves else ()
        return {name: self._mean([wave.columns[name] for wave in self.waves]) for name in names}

    @property
    def decoys(self) -> float:
        """Their share of all rows."""
        return sum(wave.decoys for wave in self.waves) / max(sum(wave.rows for wave in self.waves), 1)

    @property
    def distorted(self) -> int:
        """The most values of a wave whose shares are further off than the policy wants."""
        return max((wave.distorted for wave in self.waves), default=0)

    @property
    def waiting(self) -> int:
        """The most people who wait after any wave; `kept` and `left_out` likewise."""
        return max((wave.waiting for wave in self.waves), default=0)

    @property
    def kept(self) -> int:
        """The most people who left and are published on."""
        return max((wave.kept for wave in self.waves), default=0)

    @property
    def left_out(self) -> int:
        """The most people of a wave who are not published."""
        return max((wave.left_out for wave in self.waves), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: counts and shares, no cell and no person."""
        return {
            "name": self.name,
            "method": self.method,
            "settings": dict(self.settings),
            "point": dict(self.point),
            "naive": self.naive,
            "holds": self.holds,
            "promises_as_much": self.equal,
            "why": self.why,
            "ncp": self.ncp if self.waves else None,
            "ail": self.ail if self.waves else None,
            "columns": self.columns,
            "decoys": self.decoys,
            "distorted": self.distorted,
            "waiting": self.waiting,
            "kept": self.kept,
            "left_out": self.left_out,
            "seconds": round(self.seconds, 2),
            "waves": [wave.to_dict() for wave in self.waves],
        }

    @staticmethod
    def _mean(numbers: Sequence[float]) -> float:
        return float(np.mean(numbers)) if numbers else 0.0


def try_variant(
    variant: Variant, waves: Sequence[Wave], ledger: Path, *, new: bool, tell: Callable[[int], None]
) -> Trial:
    """The whole series by one variant; `tell` hears of every wave that is done. A refusal is part of the result."""
    began, done, why = time.process_time(), [], None
    if variant.policy is None:
        return Trial.of(variant)
    try:
        for number, plan in enumerate(planned(variant.policy, waves, ledger, new=new), 1):
            done.append(_figures(plan))
            tell(number)
    except (GuaranteeError, DataError) as error:
        # The waves are right, all were compared before: data are wrong only beside what this variant itself published.
        number = len(done) + 1
        why = f"{_called(number, waves[number - 1].name)}: {error}"
    return Trial.of(variant, waves=tuple(done), why=why, seconds=time.process_time() - began)


def planned(policy: Policy, waves: Sequence[Wave], ledger: Path, *, new: bool) -> Iterator[Plan]:
    """The releases of a series, one after the other, each noted in a ledger at this place; GuaranteeError where one
    cannot be."""
    with new_ledger(ledger, policy, key_of(waves[0], policy)) as opened:
        for number, wave in enumerate(waves, 1):
            request = Request(wave.table, _SEED, name=f"wave-{number}", everybody_is_new=new, priced=False, whole=True)
            plan = prepare(opened, policy, request)
            record(opened, plan, policy)
            yield plan


def _called(number: int, name: str) -> str:
    """A wave by its number and, where it has one, its name."""
    return name if name == f"wave {number}" else f"wave {number} ({name})"


def _figures(plan: Plan) -> TrialWave:
    made = plan.candidate
    if made is None:
        raise AssertionError("a plan that was just made has its records")
    domains, out = made.records.quasi_domains, made.records.left_out
    columns = column_losses(made.of_people, domains, suppressed=out).tolist()
    exposed = made.audit.exposed
    return TrialWave(
        people=plan.people,
        rows=plan.records,
        classes=plan.classes,
        waiting=plan.waiting.held,
        kept=plan.waiting.retained,
        left_out=plan.waiting.left_out - made.census.snapshot.left_out,
        ail=ail(made.of_people, domains, suppressed=out),
        ncp=ncp(made.of_people, domains, suppressed=out),
        columns=dict(zip(made.records.quasi_names, columns, strict=True)),
        everybody=_everybody(made),
        exposed=exposed.total.people,
        certain=exposed.total.certain,
        at_least=exposed.at_least,
        distorted=0 if plan.pods is None else plan.pods.distorted,
    )


def _everybody(made: Candidate) -> int:
    """People published so far, without decoys."""
    decoys = 0 if made.seats is None else int(made.seats.decoy.sum())
    return len(made.past.first.people) - decoys
