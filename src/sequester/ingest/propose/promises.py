"""What a first policy promises, and the method that keeps it: as much as the waves can bear, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sequester.ingest.propose.numbers import share_above
from sequester.ingest.propose.people import Panel
from sequester.ingest.propose.sensitive import Private
from sequester.ingest.propose.text import percent
from sequester.ingest.propose.waves import Waves

_MANY = 0.1
_COUPLES, _THREES = 0.5, 0.67
"""What couples of different values keep, and threes of which two have the same; pods know no more than these."""
_INFERRED = 2
_LINEAGE = 8


@dataclass(frozen=True)
class _Promise:
    """What is promised about values, what that costs, and what keeps it."""

    confidence: float
    share: float
    decoys: float
    by_pods: bool

    @classmethod
    def of(cls, panel: Panel | None, protected: Sequence[Private]) -> _Promise:
        share = max((one.share for one in protected), default=0.0)
        if panel is None:
            # Of a single table every column has a bound of its own where it needs one.
            return cls(_COUPLES, share, 0.0, by_pods=False)
        if not protected:
            return cls(_COUPLES, share, 0.0, by_pods=False)
        # Beyond those that places left empty take, which the first figure is for.
        budget = 0.1 if panel.leaving >= _MANY else 0.05
        if 2 * share - 1 <= budget / 2:
            return cls(_COUPLES, share, budget, by_pods=True)
        return cls(_THREES, share, share_above(budget + max(0.0, 1.5 * share - 1), room=0.0), by_pods=True)


def promises(waves: Waves, panel: Panel | None, protected: Sequence[Private], *, person: bool) -> Iterator[str]:
    """The lines of the policy from `protect` on."""
    promise = _Promise.of(panel, protected)
    yield "protect:"
    yield from _k(min(waves.rows), several=panel is not None, by_pods=promise.by_pods)
    if protected:
        yield "  # Nobody is tied to one sensitive value with more than this. Name harmless values under `ordinary`."
        yield from _reason(promise, protected, several=panel is not None)
        yield f"  confidence: {promise.confidence:g}"
    else:
        yield "  # No column looked sensitive. Give one the role sensitive, then bound what a class says about it:"
        yield "  # confidence: 0.5"
    if panel is None:
        if person and protected:
            yield from _once_more()
        return
    if not promise.by_pods:
        yield "  # The fewest rows that anything inferred from several releases may come down to. The default, k, costs"
        yield "  # far more where people come and go."
        yield f"  inferred: {_INFERRED}"
    else:
        yield "  # What is inferred from several releases may come down to the seats of a pod, 2 rows. More, up to k,"
        yield "  # costs far more where people come and go; `confidence` holds over all releases in any case."
        yield "  # inferred: 2"
        yield "  # The most people whose values hang together: whoever knows one of them learns at most these. Fewer"
        yield "  # take more decoys."
        yield f"  lineage: {_LINEAGE}"
    yield from _method(panel, promise)


def _k(smallest: int, *, several: bool, by_pods: bool) -> Iterator[str]:
    if by_pods:
        yield "  # Every class of records that look alike has at least k rows, and half of k are people (`people`)."
    else:
        yield "  # Every class of records that look alike has at least k people."
    k = next((k for k, rows in ((5, 100), (3, 30)) if smallest >= rows), 2) if several else 5
    if k < 5:
        yield f"  # Fewer than usual: the smallest wave has {smallest:,} rows."
    yield f"  k: {k}"


def _reason(promise: _Promise, protected: Sequence[Private], *, several: bool) -> Iterator[str]:
    values, share = min(one.values for one in protected), percent(promise.share)
    if promise.confidence > _COUPLES:
        yield f"  # The commonest value has up to {share} of the rows: less than this would take many decoys,"
        yield "  # or classes of half the table. If that value is harmless, name it under `ordinary`, and write 0.5."
    elif several:
        yield f"  # {values:,} values, none with more than {share} of a wave: 0.5 can be kept, and every class then has"
        yield "  # at least 2 of them (l = 2)."
    if promise.by_pods and promise.share <= 0.3 and values > 5:
        yield "  # 0.34 could be kept, too: three people share their values then, at the price of more decoys."


def _method(panel: Panel, promise: _Promise) -> Iterator[str]:
    yield ""
    if promise.by_pods:
        yield f"# {percent(panel.leaving)} of the people of a wave are not in the next. Pods publish everybody at once,"
        yield "# whoever comes, goes or returns; where somebody left there is a row about nobody, a decoy."
        yield "method: {name: pods}"
        yield "# At most this share of the rows is about nobody, beyond what the promises cannot do without. More"
        yield "# decoys, less loss: every plan says what half and twice as many would buy."
        yield f"decoys: {promise.decoys:g}"
        return
    yield "# Where no value is protected pods have nothing to share out. Whoever cannot be hidden waits."
    yield "method: {name: mondrian}"
    yield "infeasible: hold-back"


def _once_more() -> Iterator[str]:
    """What to think about where a table will be published again and again, and values stay with people."""
    yield "  # In a series, the fewest rows that anything inferred from several releases may come down to. Default: k;"
    yield "  # by pods, the seats of a pod."
    yield "  # inferred: 2"
    yield ""
    yield "# For a series in which people come, leave and return and keep their values: everybody is published at once,"
    yield "# in groups that share their values out, beside rows about nobody. `sequester check` says what it promises."
    yield "# Better: give init all waves that you have, and it sees who leaves and what changes."
    yield "# method: {name: pods}"
