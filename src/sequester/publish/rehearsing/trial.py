"""One variant, wave by wave: every release is planned, audited and noted in a ledger that is thrown away."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from sequester.domain.kinds import kind_of
from sequester.domain.people import names
from sequester.errors import DataError, GuaranteeError, PolicyError, Problem
from sequester.ingest.encode import encode, encode_next
from sequester.ingest.read import read
from sequester.ledger import Key, Ledger
from sequester.methods.classes import Classes
from sequester.methods.method import Method
from sequester.methods.registry import all_methods, method_of
from sequester.metrics.loss import ail, column_losses, ncp
from sequester.policy.fingerprint import fingerprint, policy_text
from sequester.policy.model import Policy
from sequester.policy.phrase import closest
from sequester.policy.variation import Numbers, knob, own_number, promises_as_much, varied
from sequester.publish.census import take_census
from sequester.publish.commit import drafted, record
from sequester.publish.plan import Plan
from sequester.publish.prepare import Request, prepare
from sequester.publish.saved import plain
from sequester.visible import visible

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

    TOLD: ClassVar = ("decoys",)

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
        values: dict[str, Any] = plain(self)
        return values


@dataclass(frozen=True)
class Trial:
    """One way to publish the series and, once it is tried, how it went.

    policy    the policy of it; None where there is none, and `why` says so
    settings  what it has beside the policy's own, by name
    point     what is varied, by name
    naive     every wave on its own, as tools without a memory do it
    equal     whether it promises at least what the policy promises
    waves     those that could be published
    why       what stopped it, or why it was not tried; None where it went through
    seconds   of a processor
    """

    method: str
    policy: Policy | None = field(repr=False, compare=False)
    settings: Numbers = field(default_factory=dict)
    point: Numbers = field(default_factory=dict)
    naive: bool = False
    equal: bool = True
    why: str | None = None
    waves: tuple[TrialWave, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def name(self) -> str:
        """How it is called in tables."""
        if self.naive:
            return "each wave on its own"
        return ", ".join([self.method, *(f"{name} {number:g}" for name, number in self.settings.items())])

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


def try_one(trial: Trial, waves: Sequence[Wave], ledger: Path, *, new: bool, tell: Callable[[int], None]) -> Trial:
    """The whole series by one variant; `tell` hears of every wave that is done. A refusal is part of the result."""
    began, done, why = time.process_time(), [], None
    if trial.policy is None:
        return trial
    try:
        for number, plan in enumerate(planned(trial.policy, waves, ledger, new=new), 1):
            done.append(_figures(plan))
            tell(number)
    except (GuaranteeError, DataError) as error:
        # The waves are right, all were compared before: data are wrong only beside what this variant itself published.
        number = len(done) + 1
        name = waves[number - 1].name
        why = f"{name if name == f'wave {number}' else f'wave {number} ({name})'}: {error}"
    return replace(trial, waves=tuple(done), why=why, seconds=time.process_time() - began)


def planned(policy: Policy, waves: Sequence[Wave], ledger: Path, *, new: bool) -> Iterator[Plan]:
    """The releases of a series, one after the other, each noted in a ledger at this place; GuaranteeError where one
    cannot be."""
    with new_ledger(ledger, policy, key_of(waves[0], policy)) as opened:
        for number, wave in enumerate(waves, 1):
            request = Request(wave.table, _SEED, name=f"wave-{number}", everybody_is_new=new, priced=False, whole=True)
            plan = prepare(opened, policy, request)
            record(opened, plan, policy)
            yield plan


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
        everybody=len(made.past.first.people) - (0 if made.seats is None else int(made.seats.decoy.sum())),
        exposed=exposed.total.people,
        certain=exposed.total.certain,
        at_least=exposed.at_least,
        distorted=0 if plan.pods is None else plan.pods.distorted,
    )


def plan_variants(
    policy: Policy, records: int, *, methods: Sequence[str] | None = None, vary: Mapping[str, Sequence[float]]
) -> tuple[Trial, ...]:
    """What to try, in the order of the tables: naive releases first, then the policy's own method.

    records  of all waves together: methods say themselves from where on they take too long
    methods  only these; by default all that suit the policy or, where something is varied, the policy's own
    """
    named = _named(policy, methods, varies=bool(vary))
    found: list[Trial] = []
    for point in _points(policy, vary):
        for method in named:
            found += _of_method(policy, method, point, records, only=methods is not None)
    return tuple(found)


def _named(policy: Policy, methods: Sequence[str] | None, *, varies: bool) -> list[Method]:
    """The naive method, the policy's own, those that seat people, and then the others."""
    known = {method.name: method for method in all_methods()}
    own = method_of(policy.method)
    if methods is not None:
        for name in methods:
            if name not in known:
                message = f"is no method; there are {', '.join(known)}{closest(name, known)}"
                raise PolicyError(Problem(message, key=name))
        chosen = [known[name] for name in dict.fromkeys(methods)]
    else:
        chosen = [own] if varies and own.looks_back else list(known.values())
        chosen.sort(key=lambda method: (method.name != own.name, not method.seats))
    naive = [method for method in known.values() if not method.looks_back]
    return [*naive, *(method for method in chosen if method.looks_back)]


def _points(policy: Policy, vary: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """All combinations, and the policy's own numbers, first, where they are not among them."""
    for name, numbers in vary.items():
        if not len(numbers):
            raise PolicyError(Problem("give the numbers to try", key=name))
        if knob(name).whole and not all(float(number).is_integer() for number in numbers):
            raise PolicyError(Problem("must be whole numbers", key=name))
    points = [dict(zip(vary, numbers, strict=True)) for numbers in product(*vary.values())]
    own = {name: own_number(policy, name) for name in vary}
    if vary and own not in points and all(isinstance(number, int | float) for number in own.values()):
        points.insert(0, own)
    return points


def _of_method(policy: Policy, method: Method, point: Numbers, records: int, *, only: bool) -> Iterator[Trial]:
    why = None if not method.looks_back else _unsuited(policy, method, records, only=only)
    if why is not None:
        yield Trial(method.name, None, point=point, why=why)
        return
    seen: set[str] = set()
    tried_names: set[tuple[str, ...]] = set()
    for settings in ({}, *(method.settings if not point else ())):
        # One other number of each kind: every variant is a whole series.
        if tuple(settings) in tried_names:
            continue
        numbers = {**point, **settings}
        told = {name: number for name, number in settings.items() if number != own_number(policy, name)}
        equal = promises_as_much(policy, numbers, method=method.name)
        try:
            tried, why = varied(policy, numbers, method=method.name), None
        except PolicyError as error:
            if settings:
                continue
            tried, why = None, "; ".join(str(problem) for problem in error.problems)
        text = why if tried is None else policy_text(tried)
        # A setting that promises less is nobody's choice unless it is asked for.
        if text is None or text in seen or (settings and not equal):
            continue
        seen.add(text)
        tried_names.add(tuple(settings))
        yield Trial(method.name, tried, told, point, naive=not method.looks_back, equal=equal, why=why)


def _unsuited(policy: Policy, method: Method, records: int, *, only: bool) -> str | None:
    """Why a method is not tried; None where it is. Who names a method has it tried however long it takes."""
    if (policy.protect.lifetime is not None) != method.lifelong:
        return (
            "does not keep what is promised of values that change" if not method.lifelong
            else "is for values that change, of which this policy promises nothing"
        )  # fmt: skip
    quasi = policy.quasi_identifiers.values()
    if method.by_levels and not only and all(kind_of(one).without_levels(one) is not None for one in quasi):
        return "needs hierarchies or levels, and no quasi-identifier has any"
    if method.most is not None and records > method.most and not only:
        return f"would take too long for {records:,} records; name it to have it tried"
    return None


@dataclass(frozen=True, eq=False, repr=False)
class Wave:
    """One past state of the table, with the columns that the policy names and no others.

    name   to show; `file`, where it is one, is where it was read from
    """

    name: str
    table: pa.Table
    file: str | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)


def read_waves(sources: Sequence[Any], policy: Policy) -> tuple[Wave, ...]:
    """Read every wave, in order: paths, frames, or relations."""
    if isinstance(sources, str | os.PathLike) or not len(sources):
        raise DataError("give the waves as a list, in the order in which they would have been published")
    form, waves = policy.input, []
    for name, source in zip(_names(sources), sources, strict=True):
        table = read(
            source,
            delimiter=form.delimiter,
            quote=form.quote,
            encoding=form.encoding,
            missing=form.missing,
            columns=_needed(policy),
        )
        waves.append(Wave(name, table, os.fspath(source) if isinstance(source, str | os.PathLike) else None))
    return tuple(waves)


def check_waves(waves: Sequence[Wave], policy: Policy, folder: Path, *, new: bool, show_values: bool) -> None:
    """Raise DataError, with the wave in question, unless the waves are of one series under this policy.

    They are put into a ledger of their own, everybody in a class by herself with her own cells: then whatever must not
    change, or moves by a known step, is compared exactly. `new`: nobody need be recognised.
    """
    with new_ledger(folder / "waves.ledger", policy, Key(secrets.token_bytes(32))) as ledger:
        for wave in waves:
            try:
                _add(ledger, wave, policy, new=new, show_values=show_values)
            except DataError as error:
                problems = [replace(one, file=one.file or wave.file or wave.name) for one in error.problems]
            else:
                continue
            raise DataError(problems)


def key_of(wave: Wave, policy: Policy) -> Key:
    """The same for the same waves, since rows are taken in the order of hashes; nobody without the waves has it."""
    ids = sorted(names(wave.table[policy.person]).to_pylist())
    return Key(hashlib.sha256("\0".join(ids).encode()).digest())


def new_ledger(file: Path, policy: Policy, key: Key) -> Ledger:
    """A ledger that nobody needs again."""
    return Ledger.create(
        file,
        series=policy.series,
        policy_text=policy_text(policy),
        fingerprint=fingerprint(policy),
        key=key,
    )


def _names(sources: Sequence[Any]) -> list[str]:
    """Names of files without their ends, or numbers where these are not all different."""
    stems = [visible(Path(one).name.split(".")[0]) if isinstance(one, str | os.PathLike) else "" for one in sources]
    if len(set(stems)) == len(stems) and all(stems):
        return stems
    return [f"wave {number}" for number in range(1, len(stems) + 1)]


def _needed(policy: Policy) -> list[str]:
    """The columns that are read: no identifiers, and nothing that the policy does not name."""
    guarding = [one.guarding for one in policy.sensitive.values() if one.guarding is not None]
    consent = [] if policy.consent is None else [policy.consent[0]]
    person = [] if policy.person is None else [policy.person]
    named = [*person, *policy.quasi_identifiers, *policy.sensitive, *policy.insensitive, *consent, *guarding]
    return list(dict.fromkeys(named))


def _add(ledger: Ledger, wave: Wave, policy: Policy, *, new: bool, show_values: bool) -> None:
    state = ledger.load()
    if state.releases:
        snapshot = encode_next(wave.table, policy, state.domains, show_values=show_values)
    else:
        snapshot = encode(wave.table, policy, show_values=show_values)
    census, _ = take_census(ledger, state, snapshot, policy, everybody_is_new=new)
    number, count = census.number.copy(), len(census.newcomers)
    number[census.newcomers] = len(census.last) + np.arange(count)
    # Everybody is in a class by herself.
    alone = Classes(np.arange(len(number), dtype=np.int32), census.snapshot.quasi, census.snapshot.quasi)
    facts = {"name": f"wave-{len(state.releases) + 1}", "head": state.head, "method": policy.method.name}
    draft = drafted(census, census.snapshot, number, alone, census.newcomers, **facts)
    ledger.finish(ledger.begin(draft).number)
