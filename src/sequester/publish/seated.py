"""The next release by pods: everybody in the table, at once, beside decoys for those who are missing.

Who is in the release is who is in the table, so nothing about coming and going has to be hidden by waiting. A decoy is
a person like any other in histories and ledger; only what speaks about people leaves it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of
from sequester.errors import DataError, GuaranteeError, PolicyError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.history.past import Past
from sequester.history.seats import Seats
from sequester.history.sight import permanent_part, sights_of
from sequester.ingest.encode import grades_of
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.methods.classes import Classes
from sequester.methods.method import Seated, Task
from sequester.methods.pods.task import LabelBounds, MadePods, PodTask
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.census import Census
from sequester.publish.recall import followed_by, with_current_cells, with_current_values
from sequester.publish.remedy import failing, join
from sequester.publish.roster import Lineup, Roster, past_of

# Columns with more different cells than this share of the people, of so many people at least, tell people apart.
_UNIQUE = 0.5
_FEW = 10


@dataclass(frozen=True, eq=False, repr=False)
class SeatedTable:
    """Records and decoys in classes.

    records  the rows to publish: those of the table, then decoys
    classes  their classes
    task     what they were made from
    seated   what the method made of it
    needed   decoys without which no pods are possible
    """

    records: Snapshot
    classes: Classes
    task: Task
    seated: Seated
    needed: int

    @property
    def made(self) -> MadePods:
        """The pods."""
        return self.seated.made

    @property
    def decoy(self) -> NDArray[np.bool_]:
        """Per row, whether it is about nobody."""
        return np.arange(len(self.records)) >= len(self.records) - len(self.made.decoy_label)


def _refuse_unlisted(policy: Policy) -> None:
    """Stop where blind pods would draw from what people have: a decoy would tell that somebody has its value."""
    told = (
        "blind pods draw the values of decoys from all that there can be, and only a list of them from outside the "
        "table tells nothing about it: "
    )
    problems = [
        Problem(told + "cells of several values have none", key=f"attributes.{name}.kind")
        if kind_of(attribute).several
        else Problem(told + "name them in a hierarchy", key=f"attributes.{name}.hierarchy")
        for name, attribute in policy.sensitive.items()
        if attribute.hierarchy is None and attribute.bands is None
    ]
    problems += [
        Problem(told + "a column that stays has none; say `changes: true`, or leave it out", key=f"attributes.{name}")
        for name in policy.lasting
    ]
    if problems:
        raise PolicyError(problems)


def seat_everybody(census: Census, roster: Roster, state: State, brief: Brief) -> Lineup:
    """Everybody in the table, seated beside those published before; GuaranteeError where too many hang together."""
    before = state.seats or Seats.none()
    if len(before) != state.people:
        raise PolicyError(Problem("what was published so far was not made by pods, so nobody has a seat", key="method"))
    table = seat_table(census.snapshot, brief, before=(census, before))
    records, made = table.records, table.made
    person = np.concatenate([census.number, made.decoy_person])
    past = past_of(census, records, person, state, brief, kept=np.zeros(len(person), np.bool_))
    seats = _seats(before, table, past)
    _check_lineages(seats, brief.policy)
    task = replace(table.task, past=past)
    return Lineup(roster, records, past, task, seats, table.seated, table.classes, table.needed)


def _rows_of_a_class(brief: Brief, bounds: LabelBounds, people: int) -> int:
    """Fewest rows of a class. Where more is promised of what is inferred than pods prove, classes of other pods see to
    the company of every label; those of blind ones must not look at labels, and are larger from the beginning: then few
    have to be joined."""
    k, fewest = brief.policy.protect.k, brief.policy.fewest
    if not _is_blind(brief) or fewest <= int(bounds.seats().min(initial=fewest)):
        return k
    return max(k, min(3 * fewest + 1, people))


def _is_blind(brief: Brief) -> bool:
    return brief.method.blind(brief.policy.method)


def _check_lineages(seats: Seats, policy: Policy) -> None:
    """Stop where more people hang together than is promised."""
    largest = int(np.bincount(seats.lineages()[~seats.decoy]).max(initial=0))
    if policy.linked is not None and largest > policy.linked:
        raise GuaranteeError(
            f"{largest:,} people would hang together through pods, and at most {policy.linked:,} may; allow more with "
            "protect.lineage. Nothing was published.",
            guarantee="lineage",
            required=policy.linked,
            observed=largest,
        )


def seat_table(snapshot: Snapshot, brief: Brief, *, before: tuple[Census, Seats] | None = None) -> SeatedTable:
    """The records of a table in pods and classes, beside those published before, and decoys with all their cells."""
    policy, people = brief.policy, len(snapshot)
    _refuse_few(policy, people)
    _refuse_telling(snapshot, policy)
    if _is_blind(brief):
        _refuse_unlisted(policy)
    labelled = Labelled.of(snapshot, brief, before=None if before is None else before[0])
    number = np.full(people, -1, np.int64)
    if before is not None:
        number = before[0].number
        known = number >= 0
        if (labelled.before[number[known]] != labelled.now[known]).any():
            raise AssertionError("whoever has another label than she was published with is left out before")
    seating = PodTask(
        codes=snapshot.quasi,
        domains=tuple(snapshot.quasi_domains),
        label=labelled.now,
        bounds=labelled.bounds,
        person=number,
        before=Seats.none() if before is None else before[1],
        label_before=labelled.before,
        k=_rows_of_a_class(brief, labelled.bounds, people),
        people=policy.fewest_people,
        inferred=policy.fewest,
        decoys=policy.decoys,
        lineage=policy.linked,
        barred=barred(snapshot, brief, labelled),
        seed=int(np.random.default_rng([*brief.draws, 7]).integers(1 << 62)),
    )
    task = replace(brief.task(snapshot), seating=seating)
    seated = brief.method.following(task)
    if not isinstance(seated, Seated):
        raise AssertionError("a method that seats people says who has which seat")
    classes = brief.printed(seated, snapshot)
    # Decoys have quasi-identifiers as somebody near, and the cells of their label.
    like, label = seated.made.decoy_like, seated.made.decoy_label
    records = followed_by(snapshot, snapshot.quasi[:, like], labelled.sensitive[:, label], labelled.plain[:, label])
    decoy = np.arange(len(records)) >= people
    records = with_current_cells(records, policy, decoy, classes.member, seed=brief.draws)
    records = with_current_values(records, policy, decoy, classes.member, seed=brief.draws)
    # Pods bound values that stay; what else is promised of a class is kept by larger ones.
    while len(bad := _failing(brief, classes, records, decoy)) and len(classes) > 1:
        classes = brief.printed(join(classes, records.quasi_domains, dict.fromkeys(bad.tolist())), records)
    return SeatedTable(records, classes, task, seated, max(labelled.needed, policy.protect.k - people))


def _failing(brief: Brief, classes: Classes, records: Snapshot, decoy: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The classes that do not keep what is promised of single releases, or have too few people."""
    people = np.bincount(classes.member[~decoy], minlength=len(classes))
    few = np.flatnonzero(people < brief.policy.fewest_people)
    return np.union1d(failing(brief.requirement, classes, records.sensitive), few)


def _refuse_few(policy: Policy, people: int) -> None:
    """Stop where even one class of the whole table has too few people."""
    fewest = policy.fewest_people
    if 0 < people < fewest:
        raise GuaranteeError(
            f"the table, or a part of it, has fewer than the {fewest:,} people that every class must have; collect "
            "more, or promise less with protect.people. Nothing was published.",
            guarantee="people",
            required=fewest,
            observed=people,
        )


def _seats(before: Seats, table: SeatedTable, past: Past) -> Seats:
    """Everybody's seat and pods after this release."""
    made, known = table.made, len(before)
    new = np.flatnonzero(past.person >= known)
    pod = np.full(len(past.first.people), -1, np.int32)
    pod[past.person] = made.pod
    return before.extend(table.decoy[new], made.type[new], made.seat[new], pod)


def _refuse_telling(snapshot: Snapshot, policy: Policy) -> None:
    """Stop where columns would tell decoys: nearly everybody has a cell of her own in one, or in those that stay."""
    people, names = len(snapshot), snapshot.plain_names
    if people < _FEW:
        return
    telling: list[tuple[str, ...]] = [
        (name,) for name, codes in zip(names, snapshot.plain, strict=True) if _tells(codes[None])
    ]
    lasting = [place for place, name in enumerate(names) if name in policy.lasting]
    if not telling and len(lasting) > 1 and _tells(snapshot.plain[lasting]):
        telling = [tuple(names[place] for place in lasting)]
    if telling:
        message = (
            "nearly everybody has a cell of her own{together}, and a decoy would have somebody else's: whoever sees it "
            "twice knows the decoy; make {it} an identifier, or a quasi-identifier"
        )
        raise DataError(
            Problem(
                message.format(
                    together=" in these together" if len(some) > 1 else "", it="one" if len(some) > 1 else "it"
                ),
                column=", ".join(some),
            )
            for some in telling
        )


def _tells(cells: NDArray[np.int32]) -> bool:
    return bool(len(row_groups(cells)[1]) > _UNIQUE * cells.shape[1])


Codes = NDArray[np.int32]

_MOST_LABELS = 4096
"""Every two labels are compared with each other."""


@dataclass(frozen=True, eq=False, repr=False)
class Labelled:
    """The labels of everybody published before and of the records of a table.

    before     per person published before, her label
    now        per record
    sensitive  (sensitive attributes, labels) the cells of a row with it
    plain      (insensitive columns, labels) likewise; what changes is some row's
    bounds     what is promised about labels
    """

    before: Codes
    now: Codes
    sensitive: Codes
    plain: Codes
    bounds: LabelBounds

    @classmethod
    def of(cls, snapshot: Snapshot, brief: Brief, *, before: Census | None) -> Labelled:
        """The labels of a table, and of everybody before; with labels that nobody has where there are too few."""
        policy, requirement = brief.policy, brief.requirement
        sensitive, plain, known = snapshot.sensitive, snapshot.plain, 0
        if before is not None:
            sensitive, plain = np.hstack([before.values, sensitive]), np.hstack([before.plain, plain])
            known = before.values.shape[1]
        group, first = row_groups(_cells(snapshot, policy, sensitive, plain))
        sensitive, plain = sensitive[:, first], plain[:, first]
        if brief.method.blind(policy.method):
            every = _all_values(snapshot, policy, sensitive[:, :1])
            sensitive, plain = _added(
                snapshot, policy, (sensitive, plain), every, np.repeat(plain[:, :1], every.shape[1], axis=1)
            )
        bounds = _bounds(requirement, policy, sensitive)
        if (short := _short(bounds)).any():
            count = sensitive.shape[1]
            like, others = _others(snapshot, brief, sensitive, np.flatnonzero(short), int(bounds.needs().max()))
            sensitive, plain = _added(snapshot, policy, (sensitive, plain), others, plain[:, like])
            bounds = _bounds(requirement, policy, sensitive)
            if _short(bounds)[:count].any():
                raise GuaranteeError(
                    "there are fewer values that are different than a pod must have, in the table and in what the "
                    "policy says of its columns; name more values (a hierarchy), promise less, or call frequent "
                    "values ordinary. Nothing was published.",
                    guarantee="confidence",
                )
        return cls(group[:known].astype(np.int32), group[known:].astype(np.int32), sensitive, plain, bounds)

    @property
    def needed(self) -> int:
        """Decoys without which some value would be more frequent in the release than a pod may have it."""
        people, needed = len(self.now), 0
        for row, shares in zip(self.bounds.answers, self.bounds.shares, strict=True):
            answers = row[self.now]
            count = np.bincount(answers[answers >= 0], minlength=len(shares))
            least = [-(-int(n) * share.denominator // share.numerator) for n, share in zip(count, shares, strict=True)]
            needed = max(needed, *(rows - people for rows in least))
        return needed


def barred(snapshot: Snapshot, brief: Brief, labelled: Labelled) -> NDArray[np.bool_] | None:
    """(records, labels) what the policy says cannot be; None where it says nothing. What is there can be."""
    if not brief.policy.impossible:
        return None
    labels = labelled.sensitive.shape[1]
    never = np.zeros((len(snapshot), labels), np.bool_)
    for rule in brief.policy.impossible:
        record, label = np.ones(len(snapshot), np.bool_), np.ones(labels, np.bool_)
        for name, text in rule.items():
            if name in snapshot.quasi_names:
                place = snapshot.quasi_names.index(name)
                record &= _called(snapshot.quasi_domains[place], text)[snapshot.quasi[place]]
            else:
                place = snapshot.sensitive_names.index(name)
                label &= _told(brief.requirement, place, text)[labelled.sensitive[place]]
        never |= record[:, None] & label[None, :]
    never[np.arange(len(snapshot)), labelled.now] = False
    return never


def _called(domain: Hierarchy, text: str) -> NDArray[np.bool_]:
    """Per code, whether it is the value of this name, or below the node of it."""
    code = np.arange(domain.size)
    if text in domain.labels:
        first, last = domain.labels[text]
        return (code >= first) & (code <= last)
    return np.array([name == text for name in domain.names[0]])


def _told(requirement: Requirement, place: int, text: str) -> NDArray[np.bool_]:
    """Per code of a sensitive attribute, whether it says that somebody has the value; a set has all its elements."""
    cover = requirement.sensitive[place].cover
    if cover is None or cover.apart is not None or cover.tops is not None or text not in cover.elements:
        return _called(requirement.domains[place], text)
    return cover.holds[:, cover.elements.index(text)]


def _cells(snapshot: Snapshot, policy: Policy, sensitive: Codes, plain: Codes) -> Codes:
    """(columns, rows) what stays of these cells."""
    lasting = [place for place, name in enumerate(snapshot.plain_names) if name in policy.lasting]
    lasts = np.vstack([permanent_part(policy, snapshot.sensitive_domains, sensitive), plain[lasting]])
    # Without any such column everybody has one label.
    return lasts if len(lasts) else np.zeros((1, sensitive.shape[1]), np.int32)


def _bounds(requirement: Requirement, policy: Policy, sensitive: Codes) -> LabelBounds:
    """What is promised about rows with these sensitive cells, one of each label."""
    answers, shares = [], []
    for sight in sights_of(requirement, policy, sensitive, compact=False):
        if sight.permanent and any(bound < 1 for bound in sight.bounds):
            limited = np.array([bound < 1 for bound in sight.bounds])
            answers.append(np.where(limited[sight.codes], sight.codes, -1))
            shares.append(tuple(Fraction(bound) for bound in sight.bounds))
    return LabelBounds(np.array(answers, np.int32).reshape(len(answers), sensitive.shape[1]), tuple(shares))


def _short(bounds: LabelBounds) -> NDArray[np.bool_]:
    """Per label, whether no pod of the labels there was found for it; labels with the same answers are alike."""
    if not len(bounds.answers):
        return np.zeros(len(bounds), np.bool_)
    group, first = row_groups(bounds.answers)
    kinds = LabelBounds(bounds.answers[:, first], bounds.shares)
    needs, clash = kinds.needs(), kinds.clash()
    if needs.max(initial=1) <= 2:
        return ((needs > 1) & clash.all(axis=1))[group]
    lacking = np.zeros(len(first), np.bool_)
    # Those that ask for few seats first, so that a pod need not grow.
    order = np.argsort(needs, kind="stable")
    for kind in range(len(first)):
        seats, chosen, fits = int(needs[kind]), 1, ~clash[kind]
        free = not (kinds.answers[:, kind] >= 0).any()
        while chosen < seats and fits.any():
            near = int(order[fits[order]][0])
            seats, chosen = max(seats, int(needs[near])), chosen + 1
            fits &= ~clash[near]
        lacking[kind] = chosen < seats and not free
    return lacking[group]


def _added(
    snapshot: Snapshot, policy: Policy, labels: tuple[Codes, Codes], sensitive: Codes, plain: Codes
) -> tuple[Codes, Codes]:
    """The cells of labels, and of those among more that are not there yet."""
    sensitive, plain = np.hstack([labels[0], sensitive]), np.hstack([labels[1], plain])
    kept = np.sort(row_groups(_cells(snapshot, policy, sensitive, plain))[1])
    return sensitive[:, kept], plain[:, kept]


def _all_values(snapshot: Snapshot, policy: Policy, like: Codes) -> Codes:
    """(attributes, labels) every combination of values there can be, whoever has them: what blind pods draw from.

    Were it only what people have, a decoy would tell that somebody else has its value. What changes is as in `like`.
    """
    columns = []
    for place, (name, attribute) in enumerate(policy.sensitive.items()):
        domain = snapshot.sensitive_domains[place]
        published = grades_of(attribute, domain, name) if attribute.is_graded else np.arange(domain.size)
        columns.append(np.unique(published) if attribute.stays else like[place])
    if math.prod(map(len, columns)) > _MOST_LABELS:
        raise GuaranteeError(
            f"blind pods draw from all combinations of values, and there are more than {_MOST_LABELS:,}: protect fewer "
            "columns, or leave method.blind out. Nothing was published.",
            guarantee="confidence",
        )
    return np.stack(np.meshgrid(*columns, indexing="ij")).reshape(len(columns), -1).astype(np.int32)


def _others(
    snapshot: Snapshot, brief: Brief, sensitive: Codes, short: NDArray[np.int64], seats: int
) -> tuple[NDArray[np.int64], Codes]:
    """Labels that nobody has, to share a pod with these; and which of these each is like in what is not sensitive.

    Attribute by attribute values are looked for that differ from each other, those that somebody has first.
    """
    like = np.repeat(short, seats - 1)
    cells = sensitive[:, like].copy()
    for place in range(len(sensitive)):
        apart, values = _apart(snapshot, brief, place, sensitive[place])
        for number, label in enumerate(short.tolist()):
            chosen = [int(sensitive[place, label])]
            fits = values[apart[chosen[0], values]]
            while len(chosen) < seats and len(fits):
                chosen.append(int(fits[0]))
                fits = fits[apart[chosen[-1], fits]]
            # Where there are not so many they come again: of a free value that is no matter.
            again = [chosen[at % len(chosen)] for at in range(1, seats)]
            cells[place, number * (seats - 1) : (number + 1) * (seats - 1)] = again
    return like, cells


def _apart(snapshot: Snapshot, brief: Brief, place: int, seen: Codes) -> tuple[NDArray[np.bool_], Codes]:
    """(codes, codes) whether two values of an attribute share no answer with a bound; and the values to choose from."""
    domain, policy = snapshot.sensitive_domains[place], brief.policy
    name, attribute = list(policy.sensitive.items())[place]
    every = np.zeros((len(snapshot.sensitive), domain.size), np.int32)
    every[place] = np.arange(domain.size)
    apart = ~np.eye(domain.size, dtype=np.bool_)
    for sight in sights_of(brief.requirement, policy, every, compact=False):
        if sight.permanent and sight.view.place == place:
            bounded = np.array([bound < 1 for bound in sight.bounds])[sight.codes]
            apart &= ~((sight.codes[:, None] == sight.codes[None, :]) & bounded)
    published = grades_of(attribute, domain, name) if attribute.is_graded else np.arange(domain.size)
    values = np.unique(np.append(published[: domain.size - domain.missing], seen))
    number = np.bincount(seen, minlength=domain.size)[values]
    return apart, values[np.argsort(-number, kind="stable")].astype(np.int32)
