"""The audit: everything an adversary can learn by combining releases made by anyone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sequester import log
from sequester.attacks.attack import TOO_MANY_ROWS, Attack, Audited, Reason, Setting, Untried
from sequester.attacks.belief import Beliefs, Believed, believable
from sequester.attacks.explain import Story, story_of
from sequester.attacks.exposed import Exposed, findings_table, worst_findings
from sequester.attacks.finding import Finding, Result, Semantics, keep_worst, say_more
from sequester.attacks.pods import REFUSED, check_pods, of_people
from sequester.attacks.registry import ATTACKS, Knowledge, attack_of, chosen_attacks
from sequester.attacks.target import SoughtPerson, Target, findings_of, look_for
from sequester.domain.hierarchy import Codes
from sequester.errors import DataError
from sequester.history import History
from sequester.history.drift import bounded_by_cells
from sequester.history.label import WHOLE_ROW, Labels, Rows
from sequester.history.load import (
    Membership,
    find_members,
    histories_of,
    is_written_differently,
    points_of,
    read_rows,
)
from sequester.history.releases import read_releases
from sequester.history.seats import Seats
from sequester.policy.adversaries import ADVERSARIES
from sequester.policy.model import Policy
from sequester.policy.words import amount
from sequester.viewable import Viewable, in_report

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, repr=False)
class Audit(Viewable):
    """Who is exposed, what was tried, what it reached, and what was not tried, about which nothing is said.

    Histories are for explaining findings; `published` are those without people, where a population merges classes.
    `pods` is what the check of recorded pods came to, in numbers; None without any.
    `undecided` is what of `untried` could be tried if more were known; `unsolved` counts what was too large to be
    decided, as the notes say: an audit with either does not hold, and nothing is published with it. `belief` says how
    sure somebody without prejudice could be, where that was asked or promised. `policy` is what was asked: its
    promises, against the adversaries that were tried. `nobody` are the ids of decoys, who cannot be exposed.
    `target` is who was asked about, where that was one person: then nothing is said of anybody else.
    """

    findings: tuple[Finding, ...]
    measures: dict[str, float]
    tried: tuple[str, ...]
    notes: tuple[str, ...]
    histories: tuple[History, ...]
    published: tuple[History, ...] = ()
    untried: tuple[Untried, ...] = ()
    unsolved: int = 0
    pods: Mapping[str, Any] | None = None
    belief: tuple[Believed, ...] = ()
    nobody: frozenset[Any] = frozenset()
    policy: Policy | None = None
    target: Target | None = None

    @property
    def holds(self) -> bool:
        """Whether every attack that was asked for could be decided, and none works."""
        return not (self.findings or self.undecided or self.unsolved)

    @property
    def undecided(self) -> tuple[Untried, ...]:
        """Attacks that were asked for and lack knowledge, each with what to give."""
        return tuple(one for one in self.untried if one.give)

    @cached_property
    def exposed(self) -> Exposed:
        """How many people are exposed: in all, per attack, value and release."""
        found = Exposed.of(self.findings, nobody=self.nobody)
        # What was too large to be solved may expose more people.
        return replace(found, at_least=found.at_least or bool(self.findings and self.unsolved))

    @property
    def verdict(self) -> str:
        """What every audit begins with: what could not be decided, then who is exposed by what was tried."""
        said = [f"Undecided: {one}." for one in self.undecided]
        if self.unsolved:
            said.append(f"Undecided: {amount(self.unsolved, 'question')} too large to be solved.")
        if not said:
            return str(self.exposed)
        exposed = str(self.exposed)
        tried = f"By what was tried ({amount(len(self.tried), 'attack')}), {exposed[:1].lower()}{exposed[1:]}"
        return "\n".join((*said, tried))

    def reached(self, attack: str) -> str:
        """What an attack reached, for reading; of what comes about by chance only more than that is a number."""
        by_chance = attack_of(attack).by_chance
        if by_chance is not None and not any(finding.attack == attack for finding in self.findings):
            return by_chance
        measure = self.measures.get(attack)
        return "" if measure is None else f"{measure:.4g}"

    def required(self, attack: str) -> float | None:
        """What the policy demands of what an attack reaches; None where that is not one number."""
        bounds = {bound for history in self.histories for bound in history.bounds if bound < 1}
        bound = float(min(bounds)) if len(bounds) == 1 else None
        return None if self.policy is None else attack_of(attack).required(self.policy, bound)

    def explain(self, number: int) -> str:
        """One finding, counted from 1, as a story with the published rows it rests on. It may name people."""
        return str(self.story(number))

    def story(self, number: int) -> Story:
        """The same in parts."""
        if not 1 <= number <= len(self.findings):
            raise IndexError(f"there are {len(self.findings)} findings, counted from 1")
        finding = self.findings[number - 1]
        alone = _needs_nobody(attack_of(finding.attack), registered=not finding.people)
        alone |= finding.adversary == "neighbor" and (not finding.people or "certain" in finding.witness)
        return story_of(finding, self.published if alone and self.published else self.histories)

    def worst(self, most: int = 5) -> tuple[int, ...]:
        """The numbers of the findings to read first, counted from 1: the worst of every attack before others."""
        return worst_findings(self.findings, most=most)

    def findings_table(self) -> pa.Table:
        """All findings, one per row, for a Parquet file. They hold sensitive values and person ids: keep it private."""
        return findings_table(self.findings)

    def report(self, *, audience: Literal["internal", "public"] = "internal") -> str:
        """All of it as one HTML page that needs nothing else: who is exposed, the worst stories, what to do.

        The internal page names values and people: keep it private. The public one has neither, nor stories, and no
        number of people below k.
        """
        page: str = in_report("audit_page").audit_page(self, audience=audience)
        return page

    def to_dict(self, *, most: int | None = None) -> dict[str, Any]:
        """Plain values. Findings hold sensitive values and person ids: for the publisher, not for the public.

        `most` is how many findings are told, the first ones, by default all; `found` counts them all.
        """
        return {
            "undecided": [one.to_dict() for one in self.undecided],
            "unsolved": self.unsolved,
            "exposed": self.exposed.to_dict(),
            "holds": self.holds,
            "releases": len(self.histories[0]) if self.histories else 0,
            "tried": list(self.tried),
            "untried": [one.to_dict() for one in self.untried],
            "measures": dict(self.measures),
            "found": len(self.findings),
            "findings": [finding.to_dict() for finding in self.findings[:most]],
            "notes": list(self.notes),
            **({} if self.pods is None else {"pods": dict(self.pods)}),
            **({"belief": [one.to_dict() for one in self.belief]} if self.belief else {}),
            **({} if self.target is None else {"target": self.target.to_dict()}),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, default=str)

    def __repr__(self) -> str:
        releases = len(self.histories[0]) if self.histories else 0
        verdict = f"{len(self.findings)} findings" if self.findings else "holds" if self.holds else "undecided"
        who = f"{str(self.exposed).rstrip('.')}; " if self.findings else ""
        return f"<Audit of {releases} releases: {who}{len(self.tried)} attacks tried, {verdict}>"


def audit(  # noqa: PLR0913 - all but two by name
    releases: Sequence[Any],
    policy: Policy,
    *,
    population: Sequence[Any] | None = None,
    registered: Any | None = None,
    against: Sequence[str] | None = None,
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    show_values: bool = False,
    belief: bool = False,
    informed: bool = False,
    target: Mapping[str, str] | None = None,
    since: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Audit releases in order of publication, as files or frames with the columns as published.

    With the policy's person column in them, who is in which class is known (the publisher's view); without it only
    what follows from boxes and values; with `population`, one table of person and raw quasi-identifiers per release,
    everybody's class is found by the boxes. `registered` is one such table of everybody who may be in any release: the
    lifetime adversary then knows these people, and not who of them is where. `against` names adversaries, by default
    the policy's; `knowledge` describes one by what she knows instead. `semantics="paper"` reads every attack as printed
    in its paper. `belief` asks how sure somebody without prejudice could be, also when some people's values are known;
    `informed`, how sure a reader who has learnt from the releases how values go with quasi-identifiers, and what
    everybody's being in the table adds to that. `target` asks about one person only, by her quasi-identifiers and the
    first release that has her (`since`): which rows may be hers (`Audit.target`), to somebody who has nothing but the
    releases.
    """
    if target is not None:
        beside = {"population": population, "registered": registered, "against": against, "knowledge": knowledge}
        if given := [name for name, value in beside.items() if value is not None]:
            raise DataError(f"a target is looked for in the releases alone; leave out {', '.join(given)}")
        return _of_target(releases, policy, target, since=since, show_values=show_values)
    held, known = releases, population
    if knowledge is not None and knowledge.releases is not None:
        held = [releases[number - 1] for number in knowledge.releases]
        known = None if population is None else [population[number - 1] for number in knowledge.releases]
    read = read_releases(held, policy, population=known, registered=registered, show_values=show_values)
    members = find_members(read)
    histories, rows = read_rows(read, members)
    published, shown = None, None
    if members.rows is None and known and members.member[0] is not None:
        # With a population too, the published classes are judged as they are: knowing more is never knowing less.
        published, shown = read_rows(read, members.as_published(read))
    elif is_written_differently(read, members):
        # Who has the finer cell is known from elsewhere; each release by itself still says what it says.
        published = histories_of(read, Membership.of_nobody(read))
    told = audit_histories(
        histories,
        policy,
        rows=rows,
        published=published,
        shown=shown,
        registered=read.registered,
        against=policy.protect.against if against is None else against,
        knowledge=knowledge,
        semantics=semantics,
        progress=progress,
        belief=belief,
        informed=points_of(read, members) if informed else None,
    )
    whole = histories[0] if rows is None or rows.counted is None else rows.counted
    return _with_anybody(told, whole) if semantics == "exact" else told


def _with_anybody(told: Audit, history: History) -> Audit:
    """With what is told about people who need not exist, where nobody is known and nothing worse is said."""
    ways = {"forward", "cross", "backward"}
    worse = any(finding.attack in ways for finding in told.findings)
    if history.trajectories is not None or len(history) < 2 or worse or not ways & set(told.tried):
        return told
    from sequester.attacks.target import anybody

    found = anybody(history)
    return told if found is None else replace(told, untried=(found, *told.untried))


def _of_target(
    releases: Sequence[Any], policy: Policy, target: Mapping[str, str], *, since: int, show_values: bool
) -> Audit:
    """What the releases tell about one person."""
    read = read_releases(releases, policy, target=target, show_values=show_values)
    if not 1 <= since <= len(read):
        raise DataError(f"`since` is {since}: name the first release with the target, from 1 to {len(read)}")
    histories, rows = read_rows(read, Membership.of_nobody(read))
    whole = None if rows is None else rows.counted
    history = histories[0] if whole is None else whole
    labels = Labels.of_history(history) if whole is None or rows is None else rows.labels
    assert read.target is not None
    lo, hi = (side[:, 0] for side in read.target)
    told = np.array(bounded_by_cells(policy), np.bool_)
    asked = look_for(history, SoughtPerson(dict(target), lo, hi, told, since - 1, read.written), labels)
    findings = tuple(findings_of(asked, history, labels))
    return Audit(
        findings=findings,
        measures={"rows left": float(asked.left)},
        tried=tuple(dict.fromkeys(("forward", "cross", "backward", *(finding.attack for finding in findings)))),
        notes=(*read.notes, *asked.notes),
        histories=(history,),
        policy=policy,
        target=asked,
    )


def audit_histories(  # noqa: PLR0913 - all but two by name
    histories: Sequence[History],
    policy: Policy,
    *,
    against: Sequence[str],
    published: Sequence[History] | None = None,
    shown: Rows | None = None,
    rows: Rows | None = None,
    registered: NDArray[np.int32] | None = None,
    knowledge: Knowledge | None = None,
    semantics: Semantics = "exact",
    progress: Progress | None = None,
    seats: Seats | None = None,
    before: Audited | None = None,
    belief: bool = False,
    informed: Sequence[Codes] | None = None,
) -> Audit:
    """Try every attack on every sensitive attribute, and on whole rows.

    published   the histories for attacks that need no people, where they differ, and whole rows of these: `shown`
    rows        what rows show beside a single attribute, where that is more
    registered  (quasi-identifiers, people) codes of a registration list
    seats       the pods of all releases, as their maker recorded them: where a check finds that they prove what an
                insider's attacks ask, these are not tried, and findings leave out decoys
    before      what an earlier audit said of the first releases: with pods that hold, neither they nor single releases
                are looked at again
    informed    asks about a reader who has learnt from the releases: everybody's exact values in each release, as far
                as they are known; none where only boxes are
    """
    attacks = _chosen(against, knowledge, published)
    record = _Record(attacks, [note for history in histories for note in history.notes])
    if before is not None and before.releases >= len(histories[0]):
        before = None
    pods = None
    if seats is not None and semantics == "exact":
        pods = check_pods(histories, rows, seats, before=0 if before is None else before.releases)
    held = pods if pods is not None and pods.holds else None
    if pods is not None and held is None:
        record.notes.append(REFUSED)
    decoy = None if seats is None or len(seats.decoy) != len(histories[0].people) else seats.decoy
    beliefs = Beliefs(rows, None if held is None else held.seats)
    asked = Setting(
        policy,
        semantics,
        registered,
        labels=None if rows is None else rows.labels,
        pods=held,
        decoy=decoy if knowledge is not None and knowledge.totals else None,
        nobody=decoy,
        before=None if held is None else before,
        beliefs=beliefs,
    )
    for number, attack in enumerate(attacks):
        if progress is not None:
            progress(attack.name, number, len(attacks))
        alone = _needs_nobody(attack, registered=registered is not None)
        looked_at = histories if rows is None else attack.looks_at(histories, rows)
        plain = published or ()
        if shown is not None:
            plain = attack.looks_at(plain, shown)
        # What a neighbor learns from the published classes alone, he learns with a population too.
        again = plain if attack.adversary == "neighbor" else ()
        with log.timed("attacks", f"attack {attack.name}", adversary=attack.adversary):
            record.add(attack, asked, plain if plain and alone else looked_at, again=again)
    if rows is not None and rows.counted is None:
        record.leave_out("neighbor", WHOLE_ROW, TOO_MANY_ROWS)
    if registered is not None and not any(attack.values == "transient" for attack in attacks):
        record.notes.append("the registration list is not used: it is for breach, an attack of the lifetime adversary")
    told: tuple[Believed, ...] = ()
    named = belief or informed is not None
    if named or policy.protect.belief is not None:
        told = beliefs.tell(believable(histories, rows), known=belief, informed=informed)
    if named:
        record.answer("belief", histories, policy, told=bool(told))
    return Audit(
        findings=_distinct(record.findings),
        measures=record.measures,
        tried=tuple(record.tried),
        notes=tuple(dict.fromkeys(record.notes)),
        histories=(*histories, *(() if rows is None else (rows.people,))),
        published=(*(published or ()), *(() if shown is None else (shown.people,))),
        unsolved=record.unsolved,
        pods=None if pods is None else pods.to_dict(),
        belief=told,
        nobody=frozenset(
            [histories[0].people[one] for one in ([] if decoy is None else np.flatnonzero(decoy).tolist())]
        ),
        policy=_as_asked(policy, against),
        untried=record.left(),
    )


def _as_asked(policy: Policy, against: Sequence[str]) -> Policy:
    """The policy with the promises that were put to the test."""
    named = [one.name for one in ADVERSARIES if one.named and ("all" in against or one.name in against)]
    return policy.model_copy(update={"protect": policy.protect.model_copy(update={"against": named})})


def _chosen(
    against: Sequence[str], knowledge: Knowledge | None, published: Sequence[History] | None
) -> tuple[Attack, ...]:
    """The attacks of these adversaries, or of one with this knowledge."""
    names = chosen_attacks(against) if knowledge is None else knowledge.attacks()
    attacks = tuple(attack_of(name) for name in names)
    if not _merges(published) or not any(attack.adversary == "insider" for attack in attacks):
        return attacks
    # Insiders know what neighbors know, and attacks on whole classes cannot use people whose class is certain.
    return (*attacks, *(attack for attack in ATTACKS if attack.by_certain and attack not in attacks))


def _merges(published: Sequence[History] | None) -> bool:
    """Whether classes were taken together, so that only some people's class is certain."""
    return any(release.certain is not None for history in published or () for release in history.releases)


class _Record:
    """What attacks came to, one after the other.

    untried  why attacks had nothing to work on, and on which attributes if not on any
    """

    def __init__(self, attacks: Sequence[Attack], notes: list[str]) -> None:
        self.attacks, self.notes = attacks, notes
        self.findings: list[Finding] = []
        self.measures: dict[str, float] = {}
        self.tried: list[str] = []
        self.untried: dict[tuple[tuple[str, ...], Reason], list[str]] = {}
        self.unsolved = 0

    def add(self, attack: Attack, asked: Setting, looked_at: Sequence[History], *, again: Sequence[History]) -> None:
        """Try an attack on every history; of what is looked at `again` only findings that are new are told."""
        reasons: dict[Reason, list[str]] = {}
        for history in (*looked_at, *again):
            result = _bounded(attack, history, _try(attack, history, asked), asked)
            name = history.attribute or None
            told = [f if f.attribute else replace(f, attribute=name) for f in result.findings]
            self.findings += _untold(told, self.findings) if history in again and not _merges(again) else told
            self.notes += result.notes
            self.unsolved += result.unsolved
            if result.measure is not None:
                before = {} if asked.before is None else asked.before.measures
                known = (one.get(attack.name, result.measure) for one in (before, self.measures))
                self.measures[attack.name] = attack.worse(asked.policy)(result.measure, *known)
            elif not result.findings and history not in again:
                reasons.setdefault(attack.why_untried(history, asked.policy), []).append(history.attribute)
            if (result.measure is not None or result.findings) and attack.name not in self.tried:
                self.tried.append(attack.name)
        for why, attributes in reasons.items():
            on = () if len(attributes) == len(looked_at) else tuple(attributes)
            self.untried.setdefault((on, why), []).append(attack.name)

    def leave_out(self, adversary: str, attribute: str, why: str) -> None:
        """What attacks of an adversary were not tried on."""
        names = [attack.name for attack in self.attacks if attack.adversary == adversary]
        if names:
            self.untried[(attribute,), Reason(why)] = names

    def answer(self, name: str, histories: Sequence[History], policy: Policy, *, told: bool) -> None:
        """What was asked by name, whatever the policy promises: told beside the attacks, or why it could not be."""
        for names in self.untried.values():
            if name in names:
                names.remove(name)
        if not told and name not in self.tried:
            reason = attack_of(name).why_untried(histories[0], policy, named=True)
            self.untried.setdefault(((), reason), []).append(name)

    def left(self) -> tuple[Untried, ...]:
        """What was not tried: first what more knowledge would decide."""
        left = [
            Untried(tuple(names), reason.why, on, reason.give) for (on, reason), names in self.untried.items() if names
        ]
        return tuple(sorted(left, key=lambda one: not one.give))


def _untold(findings: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """Findings about nobody in particular that are not told of somebody already, in the same classes."""

    def key(finding: Finding) -> tuple[Any, ...]:
        return finding.attack, finding.releases, finding.attribute, finding.value, finding.classes

    known = {key(finding) for finding in told}
    return [finding for finding in findings if key(finding) not in known]


def _needs_nobody(attack: Attack, *, registered: bool) -> bool:
    """Whether an attack looks at published classes only, not at who is in them."""
    return attack.classes_only or (attack.values == "transient" and registered)


def _bounded(attack: Attack, history: History, result: Result, asked: Setting) -> Result:
    """The result without decoys and with no more findings than anybody reads; whether somebody was found stays."""
    if asked.pods is not None and result.findings:
        result = of_people(result, history, asked.pods, smallest=attack.wants_more(asked.policy))
    findings, more = keep_worst(result.findings)
    attribute = history.attribute if any(finding.value is not None for finding in findings) else ""
    return Result(
        findings, result.measure, (*result.notes, *say_more(attack.name, attribute, more)), unsolved=result.unsolved
    )


def _try(attack: Attack, history: History, asked: Setting) -> Result:
    """What an attack comes to, and what is tried besides; what pods prove is not tried."""
    if attack.values == "permanent" and not history.permanent:
        return Result()
    result = None
    if asked.pods is not None:
        result = attack.by_pods(history, asked.pods, asked.since(attack.name))
    if result is None:
        result = attack.find(history, asked)
    more = attack.besides(history, asked)
    if more is None:
        return result
    measures = [one.measure for one in (result, more) if one.measure is not None]
    return replace(
        more,
        findings=[*result.findings, *more.findings],
        measure=attack.worse(asked.policy)(measures, default=None),
        unsolved=result.unsolved + more.unsolved,
    )


def _distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Identity findings do not depend on the sensitive attribute: each is told once. Values come first."""
    seen: set[tuple[Any, ...]] = set()
    kept = []
    for finding in findings:
        about = None if finding.value is None else finding.attribute
        where = (finding.releases, finding.classes, finding.people)
        key = (finding.attack, finding.value, about, finding.required, where)
        if key not in seen:
            seen.add(key)
            kept.append(finding)
    return tuple(sorted(kept, key=lambda finding: not finding.about_value))
