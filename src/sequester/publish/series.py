"""A series of releases: plan the next one, publish it, audit all of them. The ledger is what makes them one."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequester.errors import DataError, GuaranteeError, PolicyError, Problem, StalePlan
from sequester.ledger import Key, Ledger
from sequester.ledger.state import Entry
from sequester.policy.fingerprint import differences, fingerprint, policy_text
from sequester.policy.model import Policy
from sequester.publish.commit import commit, recover
from sequester.publish.plan import Plan
from sequester.publish.prepare import prepare

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.publish.release import Release

Progress = Callable[[str, int, int], None]

# Seconds to wait while another command has the ledger.
_WAIT = 5.0
# Whoever can try all seeds learns the order of the rows, and with it who is who.
SEED_BITS = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Series:
    """Releases of one table under one policy. Nothing is held open between calls."""

    def __init__(self, path: Path, policy: Policy, key: Key, folder: Path) -> None:
        self.path, self.policy, self.folder = path, policy, folder
        self._key = key
        self.recovered: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        path: str | Path,
        policy: Policy,
        *,
        folder: str | Path | None = None,
        key: Key | None = None,
        encrypted: bool = False,
        after: str | Path | None = None,
    ) -> Series:
        """Open the ledger of a series, or create it, and check that the policy is the one it began with.

        folder     where release folders go; `releases` beside the ledger by default
        key        by default from SEQUESTER_KEY, else from the key file beside the ledger, which is made with it
        encrypted  a new ledger is encrypted with the key
        after      the ledger of an earlier series of the same people, in place of the policy's `after`: a new ledger
                   begins with everything published then, and nothing more is published with the old one
        Until the first release the policy may change: nothing was promised to anybody. A release that an earlier
        command began and did not finish is finished or undone first; `recovered` says which.
        """
        path = Path(path)
        if policy.person is None:
            raise PolicyError(Problem("a series needs the column that says who a record is about", key="person"))
        _refuse_unsupported(policy)
        before = policy.path(policy.after) if after is None and policy.after is not None else after
        if path.exists():
            found = key or Key.need(path)
            encrypted |= _clear_idle(path, policy, found, goes_on=before is not None)
        elif before is not None:
            found = key or Key.share(before, path)
        else:
            found = key or Key.find_or_make(path)
        if not path.exists():
            _begin(path, policy, found, encrypted=encrypted, after=before)
        place = path.parent / "releases" if folder is None else Path(folder)
        series = cls(path, policy, found, place)
        series._start()
        return series

    def _start(self) -> None:
        """Check that ledger and policy belong together, and put what was interrupted in order."""
        with self._ledger(read_only=True) as ledger:
            _refuse_changes(ledger, self.policy)
            interrupted = ledger.pending is not None
        if interrupted:
            with self._ledger() as ledger:
                self.recovered = recover(ledger, self.folder)

    def _ledger(self, *, read_only: bool = False, timeout: float = _WAIT) -> Ledger:
        return Ledger.open(self.path, key=self._key, read_only=read_only, series=self.policy.series, timeout=timeout)

    def __repr__(self) -> str:
        return f"<Series {self.policy.series}>"

    def releases(self) -> list[Entry]:
        """What was published, in order."""
        with self._ledger(read_only=True) as ledger:
            return ledger.releases()

    def plan(
        self,
        source: Any,
        *,
        name: str | None = None,
        seed: int | None = None,
        recipient: str | None = None,
        purpose: str | None = None,
        show_values: bool = False,
        progress: Progress | None = None,
    ) -> Plan:
        """Make the next release and have it judged. Changes nothing.

        source     path, pandas, polars, pyarrow or DuckDB relation: the private table now
        name       by default that of the file, or today's date
        seed       64 bits or more that make the release repeatable; private. By default drawn by `draw_seed`
        recipient, purpose   who it is for; releases to different recipients are judged as if they met
        """
        seed = draw_seed() if seed is None else seed
        if seed.bit_length() < SEED_BITS:
            raise DataError(
                f"the seed has fewer than {SEED_BITS} bits, and whoever guesses it knows the order of the rows; leave "
                "it out, or draw one: python -c 'import secrets; print(1 << 63 | secrets.randbits(63))'"
            )
        with self._ledger(read_only=True) as ledger:
            ledger.check_open()
            called = _name(source, name, {entry.name for entry in ledger.releases()})
            return prepare(
                ledger,
                self.policy,
                source,
                name=called,
                seed=seed,
                recipient=recipient,
                purpose=purpose,
                show_values=show_values,
                progress=progress,
            )

    def publish(
        self,
        what: Any,
        *,
        i_know_this_leaks: bool = False,
        progress: Progress | None = None,
        **how: Any,
    ) -> Release:
        """Publish a plan, or plan a table and publish it (with the options of `plan`).

        A plan that was saved is made anew from its input; if ledger, policy or input moved since, it is refused.
        """
        plan = what if isinstance(what, Plan) else self.plan(what, progress=progress, **how)
        if plan.fingerprint != fingerprint(self.policy) or plan.series != self.policy.series:
            raise StalePlan("the plan was made for another policy; plan again")
        if plan.candidate is None:
            plan = self._again(plan, progress=progress)
        if not plan.holds and not i_know_this_leaks:
            raise GuaranteeError(
                f"{plan.findings:,} attacks work on the series with this release; method static does not look at what "
                "was published before. Choose another method, or say that you know it leaks.",
                guarantee="series",
            )
        with self._ledger() as ledger:
            return commit(ledger, plan, self.policy, self.folder)

    def _again(self, plan: Plan, *, progress: Progress | None) -> Plan:
        """A saved plan with its records, if they are still what they were."""
        if plan.source is None:
            raise DataError("the plan does not say which file it was made from; plan again")
        with self._ledger(read_only=True) as ledger:
            if ledger.head != plan.head:
                raise StalePlan("the ledger has moved on since this release was planned; plan it again")
        made = self.plan(
            plan.source,
            name=plan.name,
            seed=plan.seed,
            recipient=plan.recipient,
            purpose=plan.purpose,
            progress=progress,
        )
        if made.input_digest != plan.input_digest:
            raise StalePlan("the table has changed since this release was planned; plan it again")
        if dict(made.method) != dict(plan.method) or made.content != plan.content:
            raise StalePlan("what would be published is not what was planned; plan it again")
        return made

    def audit(
        self,
        *,
        against: Sequence[str] | None = None,
        k: int | None = None,
        confidence: float | None = None,
        progress: Progress | None = None,
    ) -> Audit:
        """Everything an adversary can learn from all releases so far; the publisher's view, people as numbers.

        By default what the policy promises is asked; any other adversary, k or confidence may be: it changes nothing.
        """
        from sequester.publish.question import audit_ledger

        with self._ledger(read_only=True) as ledger:
            return audit_ledger(ledger, self.policy, against=against, k=k, confidence=confidence, progress=progress)


def draw_seed() -> int:
    """A seed from the system's random source that nobody can guess."""
    return 1 << 127 | secrets.randbits(127)


def is_idle(ledger: Ledger, policy: Policy, *, goes_on: bool = False) -> bool:
    """Whether nothing was published with a ledger, and the policy was changed since it was made, or is to go on from
    another one."""
    other = goes_on or ledger.fingerprint != fingerprint(policy)
    return ledger.series == policy.series and other and not ledger.releases()


def _clear_idle(path: Path, policy: Policy, key: Key, *, goes_on: bool) -> bool:
    """Remove an idle ledger, to be made anew; returns whether there was one, and it was encrypted."""
    with Ledger.open(path, key=key, read_only=True, timeout=_WAIT) as ledger:
        if not is_idle(ledger, policy, goes_on=goes_on):
            return False
    # Nobody else has a ledger that one may write to, and so nobody begins a release meanwhile.
    with Ledger.open(path, key=key, timeout=_WAIT) as ledger:
        found = is_idle(ledger, policy, goes_on=goes_on)
        if found:
            path.unlink()
        return found and ledger.encrypted


def _begin(path: Path, policy: Policy, key: Key, *, encrypted: bool, after: str | Path | None) -> None:
    """A new ledger: empty, or with everything that an earlier series of the same people published."""
    named = {"series": policy.series, "policy_text": policy_text(policy), "fingerprint": fingerprint(policy)}
    if after is None:
        Ledger.create(path, key=key, encrypted=encrypted, **named).close()
        return
    with Ledger.open(after, key=key, timeout=_WAIT) as before:
        _refuse_incompatible(before, policy)
        before.hand_over(path, encrypted=encrypted, **named).close()


def _refuse_incompatible(before: Ledger, policy: Policy) -> None:
    """Stop where a new series cannot go on from an earlier one: what was published then would mean something else."""
    entries = before.releases()
    if not entries:
        raise PolicyError(Problem("nothing was published with this ledger; leave it out", key="after"))
    if before.series == policy.series:
        raise PolicyError(Problem("is the name of the series before; give this one another", key="series"))
    problems = [
        Problem(
            "is not what it was in the series before, whose people are known by it; put it back: a series that goes "
            "on from another may promise something else, and its ranges and hierarchies may have more values",
            key=key,
        )
        for key in differences(policy, entries[-1].policy_text, keys=("person", "attributes", "released"))
    ]
    if problems:
        raise PolicyError(problems)


def _refuse_changes(ledger: Ledger, policy: Policy) -> None:
    """Stop where a policy is not the one of a series."""
    entries = ledger.releases()
    last = entries[-1] if len(entries) > ledger.carried else ledger
    problems = [
        Problem(
            "is not what it was when the series began, and what was promised then cannot be changed; put it back. A "
            "new series with another promise goes on from this one with `after`, so that what was published counts",
            key=key,
        )
        for key in differences(policy, last.policy_text)
    ]
    if policy.after is not None and entries and not ledger.carried:
        message = (
            "was not there when the series began, and what was published with that ledger is not known here; leave "
        )
        problems.append(Problem(f"{message}it out", key="after"))
    names = (tuple(policy.quasi_identifiers), tuple(policy.sensitive))
    if not problems and entries and names != (entries[-1].quasi, entries[-1].sensitive):
        message = "are not in the order in which they were when the series began; put them back in order"
        problems.append(Problem(message, key="attributes"))
    if problems:
        raise PolicyError(problems)


def _refuse_unsupported(policy: Policy) -> None:
    protect = policy.protect
    problems = []
    if protect.k_map is not None:
        problems.append(Problem("is a promise about single releases; leave it out of a series", key="protect.k_map"))
    transient = [name for name, attribute in policy.sensitive.items() if attribute.values == "transient"]
    if transient and len(policy.sensitive) > 1 and protect.sensitive != "each":
        problems.append(
            Problem("values that change cannot be protected jointly with others; use each", key="protect.sensitive")
        )
    if problems:
        raise PolicyError(problems)


def _name(source: Any, name: str | None, taken: set[str]) -> str:
    if name is None:
        stem = Path(source).name.split(".")[0] if isinstance(source, str | os.PathLike) else ""
        name = stem if _NAME.fullmatch(stem) and stem not in taken else datetime.now(UTC).strftime("%Y-%m-%d")
        if name in taken:
            name = next(f"{name}.{number}" for number in range(2, len(taken) + 3) if f"{name}.{number}" not in taken)
    if not _NAME.fullmatch(name):
        raise DataError(
            "a release's name has letters, digits, '.', '_' and '-' only, and begins with one of the first two"
        )
    if name in taken:
        raise DataError("a release of this name is in the ledger already; give this one another name")
    return name
