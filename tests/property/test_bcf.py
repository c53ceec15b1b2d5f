"""Specialization for a series: what it publishes is safe, by what the audit counts, and maximal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from chains import Chain, chains, cut_of, finer_cuts, random_cut
from sequester.attacks import intersection
from sequester.attacks.audit import audit_histories
from sequester.errors import GuaranteeError
from sequester.history import History
from sequester.methods.specialize.respecialize import edges_before, respecialize
from ways import backward, cross, forward

often = settings(max_examples=100, deadline=None)


def publish_cuts(draw: st.DrawFn, chain: Chain, *, until: int) -> None:
    """Releases by any cuts, safe or not."""
    while len(chain.history) < until:
        past, codes, guard = chain.past()
        cut = random_cut(draw, chain.taxonomies(codes))
        chain.publish(past, chain.classes_of(cut, codes, guard))


def attacked(chain: Chain, history: History) -> bool:
    return any(attack.find(history).findings for attack in (forward, cross, backward, intersection))


def printed(chain: Chain, history: History) -> bool:
    """Whether the measures as printed are at least k, of the pairs with the last release."""
    last = len(history) - 1
    for first in range(last):
        pair = History(**{**vars(history), "releases": (), "trajectories": None, "value": None})
        pair = pair.extend(history.releases[first]).extend(history.releases[last])
        for attack in (forward, backward):
            measure = attack.find(pair, semantics="paper").measure
            if measure is not None and measure < history.k:
                return False
    return True


def is_safe(chain: Chain, past, classes, *, semantics: str = "realised") -> bool:
    history = chain.extended(past, classes)
    return (
        chain.promises(past, classes)
        and not attacked(chain, history)
        and chain.diverse(history)
        and (semantics == "realised" or printed(chain, history))
    )


@pytest.mark.parametrize("semantics", ["realised", "printed"])
@often
@given(chain=chains(releases=(2, 4)), data=st.data())
def test_the_result_is_safe_and_no_safe_specialization_is_left(semantics: Any, chain: Chain, data) -> None:
    publish_cuts(data.draw, chain, until=len(chain.present) - 1)
    assume(not attacked(chain, chain.history))
    past, codes, guard = chain.past()
    try:
        classes = respecialize(past, codes, chain.domains, guard, against=["neighbor"], semantics=semantics)
    except GuaranteeError:
        top = chain.classes_of([[(0, domain.size - 1)] for domain in chain.domains], codes, guard)
        assert not is_safe(chain, past, top, semantics=semantics)
        event("nothing is safe")
        return
    event("several classes" if len(classes) > 1 else "one class")
    assert is_safe(chain, past, classes, semantics=semantics)
    taxonomies = chain.taxonomies(codes)
    for finer in finer_cuts(taxonomies, cut_of(taxonomies, classes)):
        assert not is_safe(chain, past, chain.classes_of(finer, codes, guard), semantics=semantics)


@pytest.mark.parametrize("score", ["loss", "discernibility", "loss-per-anonymity", "information-gain"])
@settings(max_examples=40, deadline=None)
@given(chain=chains(releases=(2, 5), people=(6, 24), leaving=True), retain=st.booleans())
def test_every_series_of_two_to_five_releases_passes_the_audit(score: Any, chain: Chain, retain: bool) -> None:
    published = 0
    while len(chain.history) < len(chain.present):
        past, codes, guard = chain.past(retain=retain)
        try:
            classes = respecialize(
                past, codes, chain.domains, guard, against=["neighbor"], score=score, label=chain.value[past.person]
            )
        except GuaranteeError as error:
            assert error.guarantee == "series"  # noqa: PT017 - the error ends the series
            break
        if not chain.promises(past, classes):
            assert published == 0  # the first table breaks its promise as a whole
            break
        assert (classes.lo[:, classes.member] <= codes).all()
        assert (classes.hi[:, classes.member] >= codes).all()
        if past.retained.any():
            box, last = past.first.releases[-1], past.last_class()[past.retained]
            new = classes.member[past.retained]
            assert (classes.lo[:, new] <= box.lo[:, last]).all()
            assert (classes.hi[:, new] >= box.hi[:, last]).all()
        chain.publish(past, classes)
        audit = audit_histories([chain.history], chain.policy, against=["neighbor"])
        assert [finding for finding in audit.findings if finding.attack != "row-order"] == []
        published += 1
    event(f"{published} releases")


@settings(max_examples=60, deadline=None)
@given(chain=chains(releases=(2, 4), people=(4, 12), leaving=True), data=st.data())
def test_against_insiders_too_the_audit_finds_nothing(chain: Chain, data) -> None:
    against = data.draw(st.sampled_from([["insider"], ["insider", "neighbor"]]))
    while len(chain.history) < len(chain.present):
        past, codes, guard = chain.past()
        try:
            classes = respecialize(past, codes, chain.domains, guard, against=against)
        except GuaranteeError:
            break
        if not chain.promises(past, classes):
            break
        chain.publish(past, classes)
        found = audit_histories([chain.history], chain.policy, against=against).findings
        assert [finding for finding in found if finding.attack != "row-order"] == []
    event(f"{len(chain.history)} releases")


@settings(max_examples=60, deadline=None)
@given(chain=chains(releases=(2, 3), people=(4, 14)), data=st.data())
def test_after_releases_by_local_recoding_the_audit_finds_nothing(chain: Chain, data) -> None:
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(chain.value), max_size=len(chain.value)))
    while len(chain.history) < len(chain.present) - 1:
        past, _, _ = chain.past()
        group = np.unique(np.array(labels)[past.person], return_inverse=True)[1]
        points = chain.points[past.person]
        lo = np.array([points[group == one].min(axis=0) for one in range(group.max() + 1)], np.int32).T.copy()
        hi = np.array([points[group == one].max(axis=0) for one in range(group.max() + 1)], np.int32).T.copy()
        chain.history = past.extend(group.astype(np.int32), lo, hi, order=np.arange(len(past)), name="local")[0]
    assume(not attacked(chain, chain.history))
    past, codes, guard = chain.past()
    try:
        classes = respecialize(past, codes, chain.domains, guard, against=["neighbor"])
    except GuaranteeError:
        event("nothing is safe")
        return
    event(f"nested: {edges_before(chain.history, chain.domains) is not None}, classes: {min(len(classes), 3)}")
    assert not attacked(chain, chain.extended(past, classes))
