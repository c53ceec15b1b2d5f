"""One release of one table, with no history."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.guarantees.criterion import Outcome
from sequester.guarantees.requirement import Requirement
from sequester.ingest.encode import encode, encode_with_population
from sequester.ingest.published import PublishedClasses
from sequester.ingest.snapshot import Snapshot
from sequester.log import Progress, Stages
from sequester.methods.classes import Classes
from sequester.metrics.measure import Measurement, assess_classes
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.emit import Judged, read_back, shuffle_rows, write_table
from sequester.publish.release import Release, whose
from sequester.publish.seated import seat_table

_STAGES = ("reading", "anonymizing", "verifying", "writing values")


def anonymize(
    source: Any,
    policy: Policy,
    *,
    seed: int | None = None,
    show_values: bool = False,
    progress: Progress | None = None,
) -> Release:
    """Anonymize one table: a path, pandas, polars, pyarrow or DuckDB relation.

    seed         the row order of the release; without it the order comes from the system's random source
    show_values  let a DataError carry offending values in `Problem.values`
    progress     called with the stage, its number and how many there are
    Raises GuaranteeError when the policy's promises cannot be kept, and never returns anything weaker.
    """
    tell = Stages("publish", _STAGES, progress)
    tell(0)
    read, population = _read(source, policy, show_values=show_values)
    places = _in_its_order(read)
    snapshot = read.take(places)
    brief = Brief.of(policy, snapshot, [secrets.randbits(128) if seed is None else seed])
    tell(1)
    if brief.method.seats:
        seated = seat_table(snapshot, brief)
        records, classes, people = seated.records, seated.classes, ~seated.decoy
    else:
        records, classes, people = snapshot, _make(snapshot, brief, population), None
    tell(2)
    measured = verify(records, classes, brief.requirement, policy, population=population, people=people)
    tell(3)
    order = shuffle_rows(classes.member, seed=brief.draws[0])
    table = write_table(records, classes, order, numbers=policy.output.numbers)
    judged = Judged(records, classes, order, policy)
    read_back(table, judged)
    tell.done(rows=table.num_rows, classes=len(classes))
    member = np.empty(len(places), classes.member.dtype)
    member[places] = classes.member if people is None else classes.member[people]
    return Release(
        table=table,
        measurement=measured,
        policy=policy,
        person=read.person,
        classes=replace(classes, member=member),
        judged=judged,
        rows=whose(order, people, places),
    )


def _make(snapshot: Snapshot, brief: Brief, population: NDArray[np.int32] | None) -> Classes:
    """Classes of a table by its method, as they are printed."""
    if not brief.method.leaves_out(brief.policy.method):
        _refuse_hopeless(snapshot, brief.requirement, population)
    try:
        classes = brief.method.first(brief.task(snapshot, population=population))
    except GuaranteeError:
        # Which promise the table as a whole breaks says more than that no levels will do.
        _refuse_hopeless(snapshot, brief.requirement, population)
        raise
    return brief.printed(classes, snapshot)


def verify(
    snapshot: Snapshot,
    classes: Classes,
    requirement: Requirement,
    policy: Policy,
    *,
    population: NDArray[np.int32] | None = None,
    people: NDArray[np.bool_] | None = None,
) -> Measurement:
    """Judge classes by the definitions, with nothing of the method that made them, before anyone sees them.

    `people` are the records that are about somebody; None: all. What was lost is about them.
    """
    kept = classes.member >= 0
    member = classes.member[kept]
    for codes, lo, hi in zip(snapshot.quasi, classes.lo, classes.hi, strict=True):
        if np.any(codes[kept] < lo[member]) or np.any(codes[kept] > hi[member]):
            raise AssertionError("a class does not contain one of its records")
    measured = assess_classes(
        PublishedClasses(classes.lo, classes.hi, member.astype(np.int64), snapshot.quasi_domains),
        requirement,
        policy,
        sensitive=snapshot.sensitive[:, kept],
        suppressed=classes.suppressed + snapshot.left_out,
        quasi=snapshot.quasi,
        boxes=(classes.lo, classes.hi),
        population=population,
        people=people,
    )
    _refuse(measured.promises, "the method's result")
    return measured


def _read(source: Any, policy: Policy, *, show_values: bool) -> tuple[Snapshot, NDArray[np.int32] | None]:
    if policy.protect.k_map is None:
        return encode(source, policy, show_values=show_values), None
    people = policy.path(policy.protect.k_map.population)
    return encode_with_population(source, policy, population=people, show_values=show_values)


def _in_its_order(snapshot: Snapshot) -> NDArray[np.intp]:
    """The places of the records in an order that follows from what is in the table, whatever order they came in.

    The same table has the same classes every time, so that releases of it tell no more than one; and nobody who has not
    the table can say who comes first.
    """
    cells = np.vstack(
        [snapshot.quasi, snapshot.plain, snapshot.sensitive, *([] if snapshot.exact is None else [snapshot.exact])]
    )
    order = np.lexsort(cells[::-1])
    digest = hashlib.sha256(cells[:, order].tobytes()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32)).permutation(order)


def _refuse_hopeless(snapshot: Snapshot, requirement: Requirement, population: NDArray[np.int32] | None) -> None:
    """Every criterion is monotone: what fails for the table as one class fails for every way to cut it.

    That says nothing once records may be left out: the rest may be safe.
    """
    top = np.array([[domain.size - 1] for domain in snapshot.quasi_domains], np.int32)
    whole = np.zeros(len(snapshot), np.int32)
    boxes = (np.zeros_like(top), top)
    _refuse(
        requirement.check(whole, snapshot.sensitive, boxes=boxes, population=population), "the whole table as one class"
    )


def _refuse(outcomes: tuple[Outcome, ...], what: str) -> None:
    for broken in outcomes:
        if not broken.holds:
            view = f" of {broken.view}" if broken.view else ""
            observed = "nothing" if broken.observed is None else f"{broken.observed:.4g}"
            raise GuaranteeError(
                f"{what} does not keep the promise{view} that {broken.promise}: "
                f"required {broken.required:.4g}, found {observed}; "
                "require less, call frequent values ordinary, or collect more records. Nothing was published.",
                guarantee=broken.name,
                required=broken.required,
                observed=broken.observed,
            )
