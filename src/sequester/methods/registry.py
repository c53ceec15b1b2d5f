"""All methods, each as a declaration; their modules are loaded when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sequester.errors import GuaranteeError, PolicyError, Problem
from sequester.history.history import History
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Seated, Task, never
from sequester.metrics.loss import ail

if TYPE_CHECKING:
    from sequester.methods.pods.task import Task as Seating

_CLUSTERED = 300_000
"""Records up to which clusters are tried beside cuts where people left."""


def _cut_once(task: Task) -> Classes:
    from sequester.methods.mondrian.cut import mondrian

    return mondrian(*task.table, cuts=_cuts(task.options))


def cut_by_gain(task: Task, *, regroup: bool = False) -> Classes:
    """The table in boxes cut by gain, whatever the method."""
    from sequester.methods.mondrian.cut import mondrian

    return mondrian(*task.table, regroup=regroup)


def _cuts(options: Any) -> Any:
    """How boxes are cut, by methods that let people choose; else by gain."""
    return getattr(options, "cuts", "gain")


def _cut_first(task: Task) -> Classes:
    from sequester.methods.mondrian.cut import mondrian

    regroup = task.options.regroups(in_series=task.past is not None)
    return mondrian(*task.table, cuts=task.options.cuts, regroup=regroup)


def _cut_next(task: Task) -> Classes:
    """Mondrian for a series; where people left, or clusters if they lose less.

    Whoever leaves a class must be hidden by others who leave it. Clusters give her place to a newcomer with the same
    values, which cuts cannot.
    """
    from sequester.methods.cluster.recluster import recluster
    from sequester.methods.mondrian.republish import republish

    regroup, shared = task.options.regroups(in_series=True), _shared(task)
    ways = [partial(republish, task.history, *task.table, cuts=task.options.cuts, regroup=regroup, **shared)]
    if regroup and _somebody_left(task) and len(task.history) <= _CLUSTERED:
        ways.append(partial(recluster, task.history, *task.table, **shared))
    found: list[Classes] = []
    for way in ways:
        try:
            found.append(way())
        except GuaranteeError as error:
            refused = error
    if not found:
        raise refused
    return min(found, key=lambda classes: ail(classes, task.domains))


def _shared(task: Task) -> dict[str, Any]:
    return {"against": task.against, "seed": task.noise, "progress": task.progress}


def _somebody_left(task: Task) -> bool:
    """Whether a person of the last release is not in this one."""
    member = task.history.first.releases[-1].member
    assert member is not None
    return int(np.count_nonzero(member >= 0)) > int(np.count_nonzero(task.history.last_class() >= 0))


def merge_next(task: Task) -> Classes:
    """Byun's merge: the last release's classes as they are, and the newcomers among themselves."""
    from sequester.methods.merge import merge

    return merge(task.history, *task.table, against=task.against, cuts=_cuts(task.options))


def _grow_next(task: Task) -> Classes:
    from sequester.methods.grow import grow

    return grow(task.history, *task.table, cuts=task.options.cuts)


def _recode_first(task: Task) -> Classes:
    from sequester.methods.full_domain.search import full_domain

    return full_domain(*task.table, loss=task.options.loss, suppression=task.options.suppression)


def _recode_next(task: Task) -> Classes:
    from sequester.methods.full_domain.search import full_domain
    from sequester.methods.series_guard.guard import SeriesGuard

    if task.options.suppression:
        message = "must be 0 in a series: whoever is left out would be seen to leave"
        raise PolicyError(Problem(message, key="method.suppression"))
    watch = SeriesGuard.of(task.history, task.codes, against=task.against)
    return full_domain(*task.table, loss=task.options.loss, watch=watch, floor=_floor(task))


def _floor(task: Task) -> tuple[int, ...]:
    """The lowest levels that cover the boxes of people who left and are kept in the release: nothing finer is known."""
    past = task.history
    last, history = past.last_class()[past.retained], past.first
    boxes = history.releases[-1]
    return tuple(
        int(domain.level_of(lo[last], hi[last]).max(initial=0))
        for domain, lo, hi in zip(history.domains, boxes.lo, boxes.hi, strict=True)
    )


def _specialize_first(task: Task) -> Classes:
    from sequester.methods.specialize.refine import label_of, specialize

    label = None if task.records is None else label_of(task.records, task.options)
    return specialize(*task.table, loss=task.options.loss, score=task.options.score, label=label)


def _specialize_next(task: Task) -> Classes:
    from sequester.methods.specialize.refine import label_of
    from sequester.methods.specialize.respecialize import respecialize

    options = task.options
    return respecialize(
        task.history,
        *task.table,
        against=task.against,
        loss=options.loss,
        score=options.score,
        label=None if task.records is None else label_of(task.records, options),
        semantics=options.semantics,
        certificate=options.certificate,
        progress=task.progress,
    )


def _new_chain(task: Task, classes: Classes, histories: tuple[History, ...]) -> tuple[str, ...]:
    """Whether newcomers would lose much less in a series of their own; only taxonomy cuts tie them to the past."""
    from sequester.methods.specialize.bcf_chain import new_chain

    chain = new_chain(task.history, classes, *task.table) if len(task.history.first) else None
    return (str(chain),) if chain is not None and chain.is_cheaper else ()


def _cluster_first(task: Task) -> Classes:
    from sequester.methods.cluster.chosen import cluster_table

    return cluster_table(*task.table, task.options)


def _cluster_next(task: Task) -> Classes:
    from sequester.methods.cluster.chosen import cluster_next

    return cluster_next(task.history, *task.table, task.options, **_shared(task))


def _group_next(task: Task) -> Classes:
    assert task.lifetime is not None
    if task.registered is not None:
        from sequester.methods.lifetime.regions import regions

        return regions(task.history, *task.table, lifetime=task.lifetime, registered=task.registered)
    if any(history.permanent for history in task.history.histories):
        from sequester.methods.lifetime.both import group_both

        return group_both(task.history, *task.table, lifetime=task.lifetime, **_shared(task))
    from sequester.methods.lifetime.group import group

    return group(task.history, *task.table, lifetime=task.lifetime)


def _spent(task: Task, classes: Classes, histories: tuple[History, ...]) -> tuple[str, ...]:
    """Whom a class must not link to a value again: spending everything blocks the future (Wong et al., Theorem 2)."""
    from sequester.methods.lifetime.budget import budget_of

    if task.lifetime is None or task.registered is not None:
        return ()
    blocked = budget_of(histories, task.history.person, task.lifetime).blocked
    if not blocked:
        return ()
    pairs = "1 pair of a person and a value" if blocked == 1 else f"{blocked:,} pairs of a person and a value"
    return (
        f"after this release {pairs} must not be linked again: what was promised is spent, and whoever has the value "
        "then is left out; look ahead to see how that goes on",
    )


def _seat(task: Task) -> Classes:
    """Everybody in pods, and pods in classes, beside decoys."""
    from sequester.methods.pods.make import make

    made = make(_seating(task))
    return Seated(made.member, made.lo, made.hi, made=made)


def _seating(task: Task) -> Seating:
    if task.seating is None:
        raise AssertionError("pods need to know what rows show beside their boxes")
    options = task.options
    one_type = options.classes == "one-type"
    return replace(task.seating, blind=options.blind, one_type=one_type, leaving=options.leaving)


def _other_decoys(task: Task, classes: Classes) -> Mapping[str, float]:
    from sequester.methods.pods.frontier import frontier

    if not isinstance(classes, Seated):
        raise AssertionError("only pods have decoys")
    return frontier(_seating(task), classes.made)


def _is_blind(options: Any) -> bool:
    return bool(options.blind)


def _suppresses(options: Any) -> bool:
    return bool(options.suppression > 0)


def _regroups(options: Any) -> bool:
    return bool(options.regroups(in_series=True))


def _asks_no_similarity(options: Any) -> bool:
    """Clusters may have to be similar, or to gain privacy: a merge would not do."""
    return bool({options.similarity, options.gain, options.weight} == {None})


def _asks_no_certificate(options: Any) -> bool:
    """Taxonomy cuts may have to bear a certificate, or every printed target: a merge would not do."""
    return not (options.certificate or options.semantics == "printed")


METHODS = {
    method.name: method
    for method in (
        Method("mondrian", _cut_first, _cut_next, together=True, regroups=_regroups),
        Method("full-domain", _recode_first, _recode_next, leaves_out=_suppresses),
        Method("specialize", _specialize_first, _specialize_next, merges=_asks_no_certificate, notes=_new_chain),
        Method("cluster", _cluster_first, _cluster_next, merges=_asks_no_similarity),
        # Of one table on its own, for comparison, both are cut.
        Method("group", _cut_once, _group_next, from_the_first=True, merges=never, repairs=None, notes=_spent),
        Method(
            "pods",
            _cut_once,
            _seat,
            from_the_first=True,
            seats=True,
            blind=_is_blind,
            merges=never,
            repairs="join",
            others=_other_decoys,
        ),
        Method("merge", _cut_once, merge_next, merges=never, together=True),
        Method("grow", _cut_once, _grow_next, together=True),
        Method("static", _cut_once, _cut_once, looks_back=False, merges=never),
    )
}


def method_named(name: str) -> Method:
    """The method with this name."""
    return METHODS[name]


def method_of(options: Any) -> Method:
    """The method that a policy's options are of."""
    return method_named(options.name)
