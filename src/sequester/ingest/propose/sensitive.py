"""Which columns must not be learnt about a person, and which of them a first policy can protect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sequester.ingest.propose.hints import BELIEFS, ILLNESSES, KNOWN, LIVELIHOODS, words_of
from sequester.ingest.propose.kinds import is_coded
from sequester.ingest.propose.numbers import even_bands, flow, full_bands, open_flow, range_of, share_above
from sequester.ingest.propose.people import Seen, cells_of
from sequester.ingest.propose.text import counted, percent

_BEARABLE = 0.85
"""A value that so many have is no secret, and a bound above it no promise."""
_MOST_VALUES = 1000
_EMPTY = 0.5


@dataclass(frozen=True)
class Private:
    """A column that may be sensitive.

    rank    0 for illnesses, 1 for occupation and income, 2 for other private things, 3 where only its values say so
    share   of the commonest value, as published
    values  how many there are
    bands   of numbers, as YAML
    """

    seen: Seen
    rank: int
    share: float
    values: int
    bands: str = ""

    @property
    def bearable(self) -> bool:
        """Whether a bound on its values can be kept and means something."""
        look = self.seen.together
        return self.share <= _BEARABLE and 2 <= self.values <= _MOST_VALUES and look.missing <= _EMPTY * look.rows

    @property
    def settings(self) -> str:
        """As YAML, after the role."""
        kind = f", kind: number, bands: {self.bands}" if self.bands else ""
        values = f", values: {'first' if self.seen.changes else 'permanent'}"
        single = len(self.seen.waves) == 1
        bound = f", confidence: {share_above(self.share):g}" if single and self.share > 0.5 else ""
        blank = self.seen.together.missing or not single
        return f"{kind}{values}{bound}{', missing: category' if blank else ''}"


def candidate(seen: Seen, columns: Sequence[pa.ChunkedArray]) -> Private | None:
    """The column as a sensitive one, if it is named like that."""
    rank = _rank(seen)
    return None if rank is None else _candidate(seen, rank, columns)


def is_private(seen: Seen) -> bool:
    """Whether a column is named like something private."""
    return _rank(seen) is not None


def _rank(seen: Seen) -> int | None:
    # The day of a diagnosis is something that others may know; the diagnosis is not.
    if seen.together.looks in ("date", "nothing", "text"):
        return None
    words = words_of(seen.name)
    if "ind" in words and words & {"code", "cd"}:
        # Elsewhere it is an indicator, or an individual.
        words |= {"industry"}
    return next((rank for rank, hints in enumerate((ILLNESSES, LIVELIHOODS, BELIEFS)) if words & hints), None)


def skewed(seen: Seen, columns: Sequence[pa.ChunkedArray]) -> Private | None:
    """The column as a sensitive one because some of its values are common and others rare."""
    look = seen.together
    coded = is_coded(look) or look.looks == "category"
    if words_of(seen.name) & KNOWN or not coded or not 3 <= look.distinct <= _MOST_VALUES:
        return None
    found = _candidate(seen, 3, columns)
    return found if found.share >= 2 / found.values else None


def _candidate(seen: Seen, rank: int, columns: Sequence[pa.ChunkedArray]) -> Private:
    look = seen.together
    if look.looks != "number" or (is_coded(look) and not look.spellings):
        return Private(seen, rank, seen.share, look.distinct)
    low, high = range_of(look.low, look.high)
    if is_coded(look):
        # One band for every code, however it is written.
        inner = [look.low + 0.5 + n for n in range(round(look.high - look.low))]
        bands = open_flow(inner)
    elif len(seen.waves) == 1:
        edges = even_bands(low, high)
        inner, bands = edges[1:-1], flow(edges)
    else:
        _, numbers = cells_of(look, columns)
        inner = full_bands(np.zeros(0) if numbers is None else numbers[np.isfinite(numbers)], low, high)
        bands = open_flow(inner)
    return Private(seen, rank, _share(seen, columns, inner), len(inner) + 1, bands)


def _share(seen: Seen, columns: Sequence[pa.ChunkedArray], inner: Sequence[float]) -> float:
    """Of the fullest band, in the wave in which that is most."""
    shares = []
    for column in columns:
        _, numbers = cells_of(seen.together, [column])
        if numbers is None:
            continue
        places = np.where(np.isnan(numbers), len(inner) + 1, np.searchsorted(inner, numbers, side="right"))
        shares.append(np.bincount(places).max() / max(len(numbers), 1))
    return float(max(shares, default=1.0))


def chosen(candidates: Sequence[Private], most: int, *, waves: int) -> list[Private]:
    """Those that a first policy protects: what can be kept, illnesses first, values before bands of numbers.

    Of a single table something private is protected in any case: nothing is lost if that turns out to be too much.
    """
    bearable = [one for one in candidates if one.bearable]
    order = sorted(
        bearable or (candidates if waves == 1 else []),
        key=lambda one: (one.rank, bool(one.bands), one.share > 0.5, one.share > 2 / 3),
    )
    return order[:most]


def why_chosen(one: Private, *, waves: int) -> str:
    """What to think about a column that is protected."""
    named = "Named like something private." if one.rank < 3 else "Some of its values are common and others rare."
    if waves == 1:
        ask = (
            "Does a person keep the value (permanent), or may it change (transient, which needs protect.lifetime; or "
            "first: what she had first is published ever after)?"
        )
        return f"{named} {ask}{' Choose bands that mean something.' if one.bands else ''} {_ordinary(one)}".strip()
    parts = [named]
    moves = one.seen.moves
    if moves is not None and moves.changed:
        parts.append(
            f"Changes for {counted(moves.changed, 'person', 'people')} of {moves.people:,}, and a value that changes "
            "tells more with every release. `first`: what a person had in her first release is published ever after, "
            "and hidden among others; what it became is not published. To publish what it is now, use transient with "
            "protect.lifetime and method group, which needs values that few people have."
        )
    else:
        parts.append("Stays the same for everybody who is in several waves.")
    if one.bands:
        parts.append("Choose bands that mean something.")
    return " ".join([*parts, _ordinary(one)])


def _ordinary(one: Private) -> str:
    """What to do about a value that many have; it is told by its share alone."""
    if one.share <= 0.3:
        return ""
    several = len(one.seen.waves) > 1
    which, rows = "band" if one.bands else "value", "up to {} of the rows of a wave" if several else "{} of the rows"
    many = f"One {which} has {rows.format(percent(one.share))}; if it is harmless, name it: ordinary: [...]"
    return f"{many}, and a lower confidence is within reach for the others."


def why_dropped(one: Private, chosen: Sequence[Private]) -> str:
    """What to do about a column that looks private and is not published."""
    look = one.seen.together
    if not one.bearable:
        if look.missing > _EMPTY * look.rows:
            reason = "most rows have no value"
        elif one.values < 2 or one.share > _BEARABLE:
            reason = f"one value has up to {percent(one.share)} of the rows: name it under ordinary if it is harmless"
        else:
            reason = "it has too many values: publish groups of them"
        return f"Named like something private, and dropped: {reason}. Then: {{role: sensitive{one.settings}}}"
    names = " and ".join(other.seen.name for other in chosen)
    return (
        f"Named like something private, and dropped: each further column that is protected beside {names} takes more "
        f"decoys. To publish it, too: {{role: sensitive{one.settings}}}"
    )
