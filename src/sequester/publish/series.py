"""A series of releases: plan the next one, publish it, audit all of them. The ledger is what makes them one."""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sequester.errors import Busy, DataError, GuaranteeError, LedgerError, PolicyError, Problem, StalePlan
from sequester.ingest.named import files_of, named, stem_of
from sequester.ledger import Key, Ledger, Place, evidence
from sequester.ledger.connection import Encrypted
from sequester.ledger.evidence import Digests, Trouble
from sequester.ledger.state import Entry
from sequester.log import Progress, part_of
from sequester.methods.registry import method_named, method_of
from sequester.policy.fingerprint import differences, fingerprint, policy_text
from sequester.policy.model import LONGEST_NAME, Policy
from sequester.publish.alike import of_beginning, refuse_alike
from sequester.publish.commit import commit, recover
from sequester.publish.plan import Plan, overtaken, stale
from sequester.publish.prepare import Request, prepare
from sequester.viewable import Viewable

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.publish.life import Books, LifeStep
    from sequester.publish.release import Release


# How much of the work it is to make a release that is then published.
_PLANNED = 0.65
# Seconds to wait while another command has the ledger.
_WAIT = 5.0
# Whoever can try all seeds learns the order of the rows, and with it who is who.
SEED_BITS = 64
# Short enough for every file system, with what is put before and after it.
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")


class Series(Viewable):
    """Releases of one table under one policy. Nothing is held open between calls."""

    def __init__(self, place: Place, policy: Policy, key: Key, folder: Path) -> None:
        self.place, self.policy, self.folder = place, policy, folder
        self._key = key
        self._digests = Digests()
        self.recovered: tuple[str, ...] = ()
        # Releases that were there when the series was opened, or that it published itself since.
        self._seen = 0

    @classmethod
    def open(
        cls,
        path: str | Path | Place,
        policy: Policy,
        *,
        folder: str | Path | None = None,
        key: Key | None = None,
        encrypted: bool = False,
        after: str | Path | Place | None = None,
        accept_loss: bool = False,
    ) -> Series:
        """Open the ledger of a series, or create it, and check that the policy is the one it began with.

        folder     where release folders go, in one of the name of the series; `releases` beside the ledger by default
        key        by default from SEQUESTER_KEY, else from the key file beside the ledger, which is made with it
        encrypted  a new ledger is encrypted with the key
        after      the ledger of an earlier series of the same people, in place of the policy's `after`: a new ledger
                   begins with everything published then, and nothing more is published with the old one
        accept_loss  what does not agree with the ledger, in the folders of releases or beside its key, is recorded as
                   lost for good, and is no reason any more not to publish
        Until the first release the policy may change: nothing was promised to anybody. A release that an earlier
        command began and did not finish is finished or undone first; `recovered` says which.
        """
        place = Place.of(path, home=policy.path("."), series=policy.series)
        before = Place.named(policy.after, policy.path(".")) if after is None and policy.after is not None else after
        releases = place.releases if folder is None else Path(folder)
        if series := cls.find(place, policy, folder=folder, key=key, after=before, accept_loss=accept_loss):
            return series
        lost: list[Trouble] = []
        if place.exists():
            key = key or Key.need(place)
            _renew_idle(place, policy, key, releases, encrypted=encrypted, after=before)
        if not place.exists():
            if before is not None:
                _refuse_incompatible(before, policy, key or Key.need(before), releases, accept_loss=accept_loss)
            lost = of_beginning(place, policy, releases)
            # Another command may have begun the series since.
            if not accept_loss and not place.exists():
                evidence.refuse(lost)
            key = key or (Key.find_or_make(place) if before is None else Key.share(before, place))
            try:
                _begin(place, policy, key, encrypted=encrypted, after=before)
            except (LedgerError, Busy):
                # Another command may have begun it since; then this is its ledger, too.
                if not place.exists():
                    raise
        series = cls(place, policy, key or Key.need(place), releases)
        with series._ledger(read_only=True) as ledger:
            interrupted = series._look(ledger)
        series._mend(lost, interrupted=interrupted, accept_loss=accept_loss)
        return series

    @classmethod
    def find(
        cls,
        path: str | Path | Place,
        policy: Policy,
        *,
        folder: str | Path | None = None,
        key: Key | None = None,
        after: str | Path | Place | None = None,
        accept_loss: bool = False,
    ) -> Series | None:
        """Open the ledger of a series as `open` does, but only where it is there; None is for one to be made.

        A ledger with which nothing was published is to be made anew where the policy was changed since, or where it is
        to go on `after` another.
        """
        refuse_unsupported(policy)
        place = Place.of(path, home=policy.path("."), series=policy.series)
        if not place.exists():
            return None
        known = key or Key.find(place)
        try:
            ledger = Ledger.open(place, key=known, read_only=True, series=policy.series, timeout=_WAIT)
        except Encrypted:
            if known is None:
                Key.need(place)
            raise
        with ledger:
            if is_idle(ledger, policy, goes_on=after is not None):
                return None
            series = cls(place, policy, known or Key.need(place), place.releases if folder is None else Path(folder))
            interrupted = series._look(ledger)
        series._mend((), interrupted=interrupted, accept_loss=accept_loss)
        return series

    def _look(self, ledger: Ledger) -> bool:
        """Check that ledger and policy belong together; returns whether a release was interrupted."""
        entries = ledger.releases()
        _refuse_changes(ledger, self.policy, entries)
        # A folder that cannot be moved from here is at a place where it may be.
        with contextlib.suppress(OSError):
            ledger.life.arrange(self.folder)
        self._seen = len(entries)
        self.recovered = tuple(
            f"a command that did not end left private rows in {folder}, which cannot be removed from here; do it there"
            for folder in ledger.left
        )
        return ledger.pending is not None

    def _mend(self, lost: Sequence[Trouble], *, interrupted: bool, accept_loss: bool) -> None:
        """Finish or undo what was interrupted, and record what is lost."""
        if not interrupted and not accept_loss:
            return
        with self._ledger() as ledger:
            if interrupted:
                self.recovered += recover(ledger, self.folder, accept_loss=accept_loss)
                self._seen = len(ledger.releases())
            if accept_loss:
                found = [*lost, *self._beginning(ledger), *ledger.troubles(self.folder)]
                if troubles := [*{trouble.mark: trouble for trouble in found}.values()]:
                    ledger.accept(troubles)

    def _beginning(self, ledger: Ledger) -> list[Trouble]:
        """What speaks against a first release, where it would be one, and is not accepted."""
        if ledger.releases():
            return []
        known = evidence.accepted(ledger.log())
        return [one for one in of_beginning(self.place, self.policy, self.folder) if one.mark not in known]

    def _agree(self, ledger: Ledger) -> None:
        """Stop where the folders of releases, or the head beside the key, do not agree with the ledger."""
        ledger.check_chain()
        evidence.refuse(ledger.troubles(self.folder, digest=self._digests))

    def _ledger(self, *, read_only: bool = False, timeout: float = _WAIT) -> Ledger:
        return Ledger.open(self.place, key=self._key, read_only=read_only, series=self.policy.series, timeout=timeout)

    def __repr__(self) -> str:
        return f"<Series {self.policy.series}>"

    def releases(self) -> list[Entry]:
        """What was published, in order."""
        with self._ledger(read_only=True) as ledger:
            return ledger.releases()

    def plan(  # noqa: PLR0913 - all but one by name
        self,
        source: Any,
        *,
        name: str | None = None,
        seed: int | None = None,
        recipient: str | None = None,
        purpose: str | None = None,
        show_values: bool = False,
        everybody_is_new: bool = False,
        why: bool = False,
        price: bool = True,
        progress: Progress | None = None,
    ) -> Plan:
        """Make the next release and have it judged. Changes nothing.

        source     path, pandas, polars, pyarrow or DuckDB relation: the private table now
        name       by default that of the file, or today's date
        seed       64 bits or more that make the release repeatable; private. By default drawn by `draw_seed`
        recipient, purpose   who it is for; releases to different recipients are judged as if they met
        everybody_is_new     nobody in the table was published before, in this series or in one of a table like it;
                             without it a table of which nearly nobody is recognised is refused
        why        also make the release anew for every key of the policy that might ask for less, and tell what that
                   would buy; a GuaranteeError then carries the same (`relaxations`)
        price      whether the plan also tells what the same table would lose without a memory, by merge, or if people
                   were collected first; nothing published depends on it. Of large tables these are estimates
        """
        seed = draw_seed() if seed is None else seed
        if seed.bit_length() < SEED_BITS:
            raise DataError(
                f"the seed has fewer than {SEED_BITS} bits, and whoever guesses it knows the order of the rows; leave "
                "it out, or draw one: python -c 'import secrets; print(1 << 63 | secrets.randbits(63))'"
            )
        request = Request(source, seed, recipient, purpose, everybody_is_new, show_values, beside_others=price, why=why)
        with self._ledger(read_only=True) as ledger:
            return self._sealed(self._prepare(ledger, request, name, progress=progress))

    def _prepare(self, ledger: Ledger, request: Request, name: str | None, *, progress: Progress | None) -> Plan:
        """The next release, where ledger, folders and this series agree."""
        ledger.check_open()
        self._agree(ledger)
        entries = ledger.releases()
        evidence.refuse(self._beginning(ledger))
        if not entries and not request.everybody_is_new:
            refuse_alike(self.place, self.policy, self.folder)
        meanwhile, self._seen = entries[self._seen :], len(entries)
        if taken := [entry for entry in meanwhile if entry.name == name]:
            raise overtaken(taken[0])
        request = replace(request, name=_name(request.source, name, {entry.name for entry in entries}))
        plan = prepare(ledger, self.policy, request, progress=progress)
        if again := [entry for entry in meanwhile if entry.number == plan.repeats]:
            raise overtaken(again[0])
        return plan

    def _sealed(self, plan: Plan) -> Plan:
        return replace(plan, seal=self._key.sign("plan", plan.signed()).hex())

    def publish(
        self,
        what: Any,
        *,
        source: Any = None,
        i_know_this_leaks: bool = False,
        again: bool = False,
        progress: Progress | None = None,
        **how: Any,
    ) -> Release:
        """Publish a plan, or plan a table and publish it (with the options of `plan`).

        A plan that was saved is made anew from its input; if ledger, policy or input changed since, it is refused.
        `source` is where that input is, if it is not any more where the plan says.
        again  publish a table once more that was published already, which is refused otherwise; a plan says so itself
               (`repeats`), and whoever publishes it has seen that
        """
        if source is not None and (not isinstance(what, Plan) or what.is_made):
            raise DataError("only a plan that was saved is told where its table is; leave `source` out")
        made, whole = isinstance(what, Plan) and what.is_made, progress
        if not made:
            progress, whole = part_of(progress, 0, _PLANNED), part_of(progress, _PLANNED, 1)
        plan = what if isinstance(what, Plan) else self.plan(what, progress=progress, **how)
        if plan.fingerprint != fingerprint(self.policy) or plan.series != self.policy.series:
            raise StalePlan("the plan was made for another policy; plan again")
        if not plan.is_made:
            plan = self._again(plan, source, progress=progress)
        if plan.repeats is not None and not again and not isinstance(what, Plan):
            raise DataError(
                f"this table was published already as release {plan.repeats}, and nothing was published; again=True "
                "publishes it once more"
            )
        if not plan.holds and not i_know_this_leaks:
            raise GuaranteeError(
                f"{plan.findings:,} attacks work on the series with this release; method static does not look at what "
                "was published before. Choose another method, or say that you know it leaks (i_know_this_leaks=True).",
                guarantee="series",
            )
        with self._ledger() as ledger:
            if ledger.head != plan.head:
                raise stale(ledger.releases(), plan)
            self._agree(ledger)
            release = commit(ledger, plan, self.policy, self.folder, progress=whole)
        self._seen = plan.number
        return release

    def _again(self, plan: Plan, source: Any, *, progress: Progress | None) -> Plan:
        """A saved plan with its records, if they are still what they were.

        What the release costs is not reckoned again: nothing that is published depends on it, and the seal says that
        nobody edited it.
        """
        if source is None:
            source = _still_there(plan)
        edited = StalePlan("the plan does not say what is planned; it was edited, or made elsewhere: plan it again")
        request = Request(source, plan.seed, plan.recipient, plan.purpose, plan.everybody_is_new, priced=False)
        with self._ledger(read_only=True) as ledger:
            if ledger.head != plan.head:
                raise stale(ledger.releases(), plan)
            if not hmac.compare_digest(self._sealed(plan).seal, plan.seal):
                raise edited
            made = self._prepare(ledger, request, plan.name, progress=progress)
        if made.input_digest != plan.input_digest:
            raise StalePlan("the table has changed since this release was planned; plan it again")
        if dict(made.method) != dict(plan.method) or made.content != plan.content:
            raise StalePlan("what would be published is not what was planned; plan it again")
        made = made.priced_as(plan)
        # What else a plan says is shown and recorded, and must be what was computed.
        if made != plan:
            raise edited
        return made

    def audit(
        self,
        *,
        against: Sequence[str] | None = None,
        k: int | None = None,
        confidence: float | None = None,
        belief: bool = False,
        informed: bool = False,
        progress: Progress | None = None,
    ) -> Audit:
        """Everything an adversary can learn from all releases so far; the publisher's view, people as numbers.

        By default what the policy promises is asked; any other adversary, k or confidence may be: it changes nothing.
        `belief` asks how sure somebody without prejudice could be, also when some people's values are known;
        `informed`, how sure a reader who has learnt from the releases how values go with quasi-identifiers.
        """
        from sequester.publish.inquiry import audit_ledger

        with self._ledger(read_only=True) as ledger:
            return audit_ledger(
                ledger,
                self.policy,
                against=against,
                k=k,
                confidence=confidence,
                belief=belief,
                informed=informed,
                progress=progress,
            )

    def withdraw(self, number: int, *, reason: str | None = None, undo: bool = False, plan: bool = False) -> LifeStep:
        """Withdraw a release that was published: its folder is set aside, and what it told stays known.

        reason  kept in the ledger's log, and in nothing that is published
        undo    put it back
        plan    only look, and say what would be done
        """
        return self._books.withdraw(number, reason=reason, undo=undo, plan=plan)

    def close(self, *, reason: str | None = None, undo: bool = False, plan: bool = False) -> LifeStep:
        """Close the series: nothing more is planned or published in it. Options as of `withdraw`."""
        return self._books.close(reason=reason, undo=undo, plan=plan)

    def rename_people(
        self,
        mapping: Any = None,
        *,
        old: str | None = None,
        new: str | None = None,
        undo: bool = False,
        plan: bool = False,
    ) -> LifeStep:
        """Give people other ids: whoever was published stays who she was.

        mapping  a table with the old and the new id of everybody, in the columns `old` and `new`
        undo     undo the last mapping instead, which need not be given
        plan     only look, and count
        The next policy may name another `person` column.
        """
        if undo:
            return self._books.undo_rename(plan=plan)
        if mapping is None or old is None or new is None:
            raise DataError("give a mapping, and the names of its columns with the old and the new ids")
        return self._books.rename(mapping, old=old, new=new, plan=plan)

    @property
    def _books(self) -> Books:
        from sequester.publish.life import Books

        return Books(self.place, self._key, self.folder)

    def report(
        self,
        number: int,
        *,
        audience: Literal["public", "internal"] = "public",
        tables: Sequence[Any] = (),
    ) -> str:
        """The report of a release as one HTML page.

        public    as it is in the release folder
        internal  made from the ledger, private like it: people between releases, who waits, budgets, findings. With
                  `tables`, the raw tables of releases 1 to `number` in order, also how values were spread before, and
                  whom each table anonymized on its own would have exposed
        """
        from sequester.publish.reporting import internal_text, public_text

        with self._ledger(read_only=True) as ledger:
            if audience == "public":
                return public_text(ledger, number, self.folder)
            return internal_text(ledger, self.policy, number, tables=tables, folder=self.folder)


def _still_there(plan: Plan) -> str:
    """The table of a saved plan, by its name."""
    if plan.source is None:
        raise DataError("the plan does not say which file it was made from; plan again")
    place = Path(named(plan.source).place)
    if place.is_absolute() and not place.exists() and not files_of(place):
        raise DataError(
            Problem("there is no such file any more; say where the table is now (`source=...`)", file=str(place))
        )
    return plan.source


def draw_seed() -> int:
    """A seed from the system's random source that nobody can guess."""
    return 1 << 127 | secrets.randbits(127)


def is_idle(ledger: Ledger, policy: Policy, *, goes_on: bool = False) -> bool:
    """Whether nothing was published with a ledger, and the policy was changed since it was made, or is to go on from
    another one."""
    other = goes_on or ledger.fingerprint != fingerprint(policy)
    return ledger.series == policy.series and other and not ledger.releases()


def _renew_idle(
    place: Place, policy: Policy, key: Key, folder: Path, *, encrypted: bool, after: str | Path | Place | None
) -> None:
    """Make an idle ledger anew, in its place: others who open it meanwhile find the one or the other."""
    with Ledger.open(place, key=key, read_only=True, timeout=_WAIT) as ledger:
        if not is_idle(ledger, policy, goes_on=after is not None):
            return
    # Nobody else has a ledger that one may write to, and so nobody begins a release meanwhile.
    with Ledger.open(place, key=key, timeout=_WAIT) as ledger:
        if not is_idle(ledger, policy, goes_on=after is not None):
            return
        if after is not None:
            _refuse_incompatible(after, policy, key, folder, accept_loss=False)
        if not place.is_file:
            # Made anew by whoever comes next, as if it had never been.
            place.head.unlink(missing_ok=True)
            ledger.remove()
            return
        spare = Place.of(place.file.with_name(f".{place.name}.{secrets.token_hex(4)}"))
        try:
            _begin(spare, policy, key, encrypted=encrypted or ledger.encrypted, after=after)
            # The head first: what was begun and withdrawn with the idle one is nobody's concern any more.
            place.head.unlink(missing_ok=True)
            if spare.head.exists():
                spare.head.replace(place.head)
            spare.file.replace(place.file)
        finally:
            spare.file.unlink(missing_ok=True)
            spare.head.unlink(missing_ok=True)


def _begin(place: Place, policy: Policy, key: Key, *, encrypted: bool, after: str | Path | Place | None) -> None:
    """A new ledger: empty, or with everything that an earlier series of the same people published."""
    named = {"series": policy.series, "policy_text": policy_text(policy), "fingerprint": fingerprint(policy)}
    if after is None:
        Ledger.create(place, key=key, encrypted=encrypted, **named).close()
        return
    with Ledger.open(after, key=key, timeout=_WAIT) as before:
        before.hand_over(place, encrypted=encrypted, **named).close()


def _refuse_incompatible(
    after: str | Path | Place, policy: Policy, key: Key, folder: Path, *, accept_loss: bool
) -> None:
    """Stop where a new series cannot go on from an earlier one: what was published then would mean something else, or
    is not known."""
    with Ledger.open(after, key=key, read_only=True, timeout=_WAIT) as before:
        entries = before.releases()
        if not entries:
            raise PolicyError(Problem("nothing was published with this ledger; leave it out", key="after"))
        if before.series == policy.series:
            raise PolicyError(Problem("is the name of the series before; give this one another", key="series"))
        problems = [
            Problem(
                "is not what it was in the series before, whose people are known by it; put it back: a series that "
                "goes on from another may promise something else, and its ranges and hierarchies may have more values",
                key=changed,
            )
            for changed in differences(policy, entries[-1].policy_text, keys=("person", "attributes", "released"))
            if changed != "person" or not before.life.renamed
        ]
        if problems:
            raise PolicyError(problems)
        if method_of(policy.method).seats != method_named(entries[-1].method).seats:
            message = (
                "a series by pods goes on from one by pods, and the other way round: nobody who was published without "
                "has a seat, and nobody else knows decoys"
            )
            raise PolicyError(Problem(message, key="method"))
        if not accept_loss:
            evidence.refuse(before.troubles(folder if (folder / before.series).is_dir() else before.place.releases))


def changes_of(ledger: Ledger, policy: Policy) -> list[str]:
    """In words, what a policy changes against the last release of its ledger; PolicyError where that cannot be."""
    from sequester.publish.census import growth_of

    entries = ledger.releases()
    if not entries:
        return []
    _refuse_changes(ledger, policy, entries)
    return growth_of(policy, entries[-1].policy_text, ledger.domains())


def _refuse_changes(ledger: Ledger, policy: Policy, entries: Sequence[Entry]) -> None:
    """Stop where a policy is not the one of a series."""
    last = entries[-1] if len(entries) > ledger.carried else ledger
    problems = [
        Problem(
            "is not what it was when the series began, and what was promised then cannot be changed; put it back. A "
            "new series with another promise goes on from this one with `after`, so that what was published counts",
            key=key,
        )
        for key in differences(policy, last.policy_text)
        if key != "person" or not ledger.life.renamed
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


def refuse_unsupported(policy: Policy) -> None:
    """Stop where a policy promises what no series keeps."""
    protect = policy.protect
    problems = []
    if policy.person is None:
        problems.append(Problem("a series needs the column that says who a record is about", key="person"))
    if protect.k_map is not None:
        problems.append(Problem("is a promise about single releases; leave it out of a series", key="protect.k_map"))
    if policy.corrections == "keep" and policy.registration_list is not None:
        message = "people who are published as they were may not be where the registration list has them; hold them out"
        problems.append(Problem(message, key="corrections"))
    transient = [name for name, attribute in policy.sensitive.items() if attribute.values == "transient"]
    if transient and len(policy.sensitive) > 1 and protect.sensitive != "each":
        problems.append(
            Problem("values that change cannot be protected jointly with others; use each", key="protect.sensitive")
        )
    if problems:
        raise PolicyError(problems)


def _name(source: Any, name: str | None, taken: set[str]) -> str:
    if name is None:
        stem = stem_of(source) if isinstance(source, str | os.PathLike) else ""
        name = stem if _NAME.fullmatch(stem) and stem not in taken else datetime.now(UTC).strftime("%Y-%m-%d")
        if name in taken:
            name = next(f"{name}.{number}" for number in range(2, len(taken) + 3) if f"{name}.{number}" not in taken)
    if not _NAME.fullmatch(name):
        raise DataError(
            "a release's name has letters, digits, '.', '_' and '-' only, begins with one of the first two, and has at "
            f"most {LONGEST_NAME} of them"
        )
    return name
