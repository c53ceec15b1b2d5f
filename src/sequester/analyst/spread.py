"""Values drawn inside boxes: tables that the private one may have been, given what is published.

Every number and day has one distribution over the whole release, estimated from the boxes themselves, and every draw
also looks at the other columns of its row: numbers as normal scores of that distribution on a regression by the
others, names by their shares on such a regression. Both are fitted to what was drawn the round before, as in multiple
imputation by chained equations. Where boxes are the smallest around their people, somebody stands at each end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.analyst.decode import Measured, Words
from sequester.analyst.read import Decoded

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

TIGHT = ("mondrian", "cluster", "pods", "group", "static")
# How far what is inside boxes may lean to one side, which nobody knows. Set by trying on six waves of a panel, and held
# to seven others: docs/analyst.md.
TILT, TILT_NAMES, SHARED, ROUGH, DECOYS = 0.32, 0.7, 2.0, 0.48, 1.0
_POINTS, _BINS = 3000, 400
_ROUNDS_OF_SPREAD, _KNOTS = 1, 30
_FIT, _LEVELS, _RETRIES = 20_000, 15, 6


@dataclass(frozen=True, eq=False, repr=False)
class DrawnTables:
    """Tables that the private one may have been.

    values  by column (draws, rows), numbers as they are, names as places in `names`, NaN and -1 for no value; one row
            of draws where a column is known
    names   the values of columns of names
    keep    (draws, rows) which rows are about somebody
    days    the columns that are days since 1970
    first   the columns that have what people had when they were first published
    """

    values: Mapping[str, NDArray[Any]]
    names: Mapping[str, tuple[str, ...]]
    keep: Mask
    days: frozenset[str] = field(default_factory=frozenset)
    first: frozenset[str] = field(default_factory=frozenset)

    def of(self, name: str, draw: int) -> NDArray[Any]:
        """A column of one table."""
        tables = self.values[name]
        column: NDArray[Any] = tables[draw if len(tables) > 1 else 0]
        return column


def draw(release: Decoded, *, draws: int, seed: int) -> DrawnTables:
    """Tables that the private one may have been."""
    random = np.random.default_rng(seed)
    method = release.facts.get("method")
    named = method.get("name") if isinstance(method, Mapping) else method
    tight = named in TIGHT and (named == "pods" or release.facts.get("number") in (None, 1))
    latent: list[_Number | _Name] = []
    for name, column in release.columns.items():
        if isinstance(column, Words):
            latent.append(_Name(name, column, release.member, tight=tight))
        elif column.middle is None:
            latent.append(_Number(name, column, release.member, tight=tight))
    few = len(release) <= _FIT
    open_ = [one for one in latent if one.open]
    for one in latent:
        one.begin(random)
    for _ in range((12 if few else 3) if open_ else 0):
        _sweep(open_, latent, random)
    found: dict[str, list[Floats | NDArray[np.int32]]] = {one.name: [] for one in latent}
    for _ in range(draws):
        for _ in range(2 if few else 1):
            _sweep(open_, latent, random)
        for one in latent:
            if one.open or not found[one.name]:
                found[one.name].append(one.shown())
    return DrawnTables(
        {name: np.array(tables) for name, tables in found.items()},
        {one.name: one.leaves for one in latent if isinstance(one, _Name)},
        np.array([_somebody(release, random) for _ in range(draws)]),
        frozenset(name for name, column in release.columns.items() if isinstance(column, Measured) and column.days),
        release.first,
    )


def _sweep(open_: list[_Number | _Name], latent: list[_Number | _Name], random: np.random.Generator) -> None:
    for one in open_:
        others = [other.terms() for other in latent if other is not one]
        rows = len(one)
        one.redraw(np.column_stack([np.ones(rows), *(term for term in others if term.shape[1])]), random)


def _somebody(release: Decoded, random: np.random.Generator) -> Mask:
    """Rows that are about somebody: as many as the weight says, by lot."""
    keep = np.ones(len(release), np.bool_)
    decoys = len(release) - round(len(release) * release.weight)
    if not decoys:
        return keep
    # Decoys have some values more often than people do: which ones, nobody can tell.
    lean = np.zeros(len(release))
    for column in release.columns.values():
        if isinstance(column, Words):
            lean += (DECOYS * random.standard_normal(len(column.texts) + 1))[column.index]
    first = np.argpartition(random.exponential(size=len(release)) * np.exp(-lean), decoys - 1)[:decoys]
    keep[first] = False
    return keep


def _fitted(design: Floats, wanted: Floats, random: np.random.Generator) -> tuple[Floats, Floats]:
    """What a regression expects of every row, its coefficients drawn as they are uncertain; and what it leaves."""
    rows = np.arange(len(design)) if len(design) <= _FIT else random.choice(len(design), _FIT, replace=False)
    x, y = design[rows], wanted[rows]
    # By einsum: products this small are not worth the threads of BLAS, which wait for each other on a busy machine.
    inverse = np.linalg.inv(np.einsum("ij,ik->jk", x, x) + np.eye(x.shape[1]) * 1e-2)
    beta = inverse @ np.einsum("ij,ik->jk", x, y)
    left = y - np.einsum("ij,jk->ik", x, beta)
    spread = np.sqrt((left**2).sum(axis=0) / max(len(rows) - x.shape[1], 1) + 1e-9)
    noise = np.linalg.cholesky(inverse) @ random.standard_normal(beta.shape)
    return np.einsum("ij,jk->ik", design, beta + noise * spread), spread


class _Number:
    """A number or day that is known to lie in an interval."""

    def __init__(self, name: str, column: Measured, member: Numbers, *, tight: bool) -> None:
        self.name, self._member = name, member
        self._known = column.exact & (column.missing == 0)
        self._none = (column.missing == 2) | np.isnan(column.lo)
        there = ~self._none
        lo, hi = np.where(there, column.lo, 0.0), np.where(there, column.hi, 0.0)
        self.open = bool((there & ~self._known).any())
        ends = np.unique(np.append(lo[there], hi[there])) if there.any() else np.zeros(1)
        # Ends that are never neighbours may be those of a grid, and values lie anywhere between them.
        whole = column.whole and bool((np.diff(ends) == 1).any() or not self.open)
        self._points = whole and ends[-1] - ends[0] <= _POINTS
        self._whole, self._lo, self._hi = whole, lo, hi
        if self._points:
            self._edges = np.arange(ends[0], ends[-1] + 2) - 0.5
            step = 1.0
        else:
            gaps = np.diff(ends)
            step = float(gaps.min()) if len(gaps) else 1.0
            fine = np.linspace(ends[0], ends[-1] + (0 if len(gaps) else 1), _BINS + 1)
            self._edges = np.unique(np.concatenate([ends, fine]))
        last = len(self._edges) - 1
        if self._points:
            self._a, self._b = (lo - ends[0]).astype(np.int64), (hi - ends[0]).astype(np.int64) + 1
        else:
            self._a = np.minimum(np.searchsorted(self._edges, lo), last - 1)
            self._b = np.maximum(np.searchsorted(self._edges, hi), self._a + 1)
        self._chance = self._spread(there & (lo < hi))
        # Somebody is in the first and in the last step of every interval, where boxes are the smallest.
        self._tight = tight and self.open
        self._foot = lo + (0.5 if self._points else step)
        self._head = hi - (0.5 if self._points else step)
        self._classes = _wide(member, there & (lo < hi)) if self._tight else np.zeros(0, np.int64)
        self._value = np.where(self._known, lo, np.nan)
        self._tilt, self._rough = np.zeros(len(lo)), self._chance
        self._score = np.zeros(len(lo))

    def __len__(self) -> int:
        return len(self._lo)

    def begin(self, random: np.random.Generator) -> None:
        """Values by their distribution alone."""
        if not self.open:
            mean, spread = np.nanmean(self._value), np.nanstd(self._value)
            self._score = np.where(self._none, 0.0, (self._value - mean) / (spread or 1.0))
            return
        self._take(np.arange(len(self)), np.zeros(len(self)), 1.0, random)

    def redraw(self, design: Floats, random: np.random.Generator) -> None:
        """Values by what the other columns of a row let expect."""
        expected, spread = _fitted(design, self._score[:, None], random)
        mean, sd = expected[:, 0], float(spread[0])
        self._tilt = TILT * _leaning(design, random)
        self._rough = self._chance * np.exp(ROUGH * self._bumps(random))
        self._take(np.arange(len(self)), mean, sd, random)
        for _ in range(_RETRIES):
            rows = self._loose()
            if not len(rows):
                return
            self._take(rows, mean[rows], sd, random)
        self._pull(random)

    def terms(self) -> Floats:
        """What others are expected by."""
        return self._score[:, None]

    def shown(self) -> Floats:
        """The values now."""
        return np.where(self._none, np.nan, self._value)

    def _spread(self, there: Mask) -> Floats:
        """How likely every bin is, so that boxes together have what they have: a few rounds of expectation."""
        width = np.diff(self._edges)
        chance: Floats = width / width.sum()
        pairs, count = np.unique(np.array([self._a[there], self._b[there]]), axis=1, return_counts=True)
        for _ in range(_ROUNDS_OF_SPREAD if self.open else 0):
            below = np.append(0.0, np.cumsum(chance))
            share = count / (below[pairs[1]] - below[pairs[0]])
            change = np.zeros(len(below))
            np.add.at(change, pairs[0], share)
            np.subtract.at(change, pairs[1], share)
            chance = chance * np.cumsum(change[:-1])
            chance = 0.999 * chance / chance.sum() + 0.001 * width / width.sum()
        return chance

    def _bumps(self, random: np.random.Generator) -> Floats:
        """Where the distribution may be higher or lower than it seems: by single points, or smoothly."""
        size = len(self._chance)
        if self._points:
            return random.standard_normal(size)
        at = np.linspace(0, size - 1, _KNOTS)
        return np.interp(np.arange(size), at, random.standard_normal(_KNOTS))

    def _take(self, rows: Numbers, mean: Floats, sd: float, random: np.random.Generator) -> None:
        from scipy.special import ndtr, ndtri

        below = np.append(0.0, np.cumsum(self._rough))
        below /= below[-1]
        first, last = below[self._a[rows]], below[self._b[rows]]
        low, high = (ndtr((ndtri(side) - mean) / sd) for side in (first, last))
        luck = _tilted(random.random(len(rows)), self._tilt[rows])
        score = mean + sd * ndtri(low + (high - low) * luck)
        chance = np.where(high - low > 1e-10, ndtr(score), first + (last - first) * luck)
        chance = np.clip(chance, first, last)
        place = np.clip(np.searchsorted(below, chance, side="right") - 1, self._a[rows], self._b[rows] - 1)
        self._score[rows] = np.where(self._none[rows], mean, ndtri(np.clip(chance, 1e-9, 1 - 1e-9)))
        if self._points:
            value = self._edges[place] + 0.5
        else:
            inside = (chance - below[place]) / np.maximum(below[place + 1] - below[place], 1e-300)
            value = self._edges[place] + np.clip(inside, 0, 1) * (self._edges[place + 1] - self._edges[place])
            value = np.clip(np.round(value) if self._whole else value, self._lo[rows], self._hi[rows])
        self._value[rows] = np.where(self._known[rows], self._lo[rows], value)

    def _missed(self) -> tuple[Mask, Mask]:
        """Per class whether nobody stands at its foot, and at its head."""
        wide = np.zeros(int(self._member.max()) + 1, np.bool_)
        wide[self._classes] = True
        foot, head = wide.copy(), wide.copy()
        foot[self._member[self._value <= self._foot]] = False
        head[self._member[self._value >= self._head]] = False
        return foot, head

    def _loose(self) -> Numbers:
        """Rows of classes that do not reach to both ends of their interval."""
        if not self._tight:
            return np.zeros(0, np.int64)
        foot, head = self._missed()
        return np.flatnonzero((foot | head)[self._member])

    def _pull(self, random: np.random.Generator) -> None:
        """Somebody, by lot, is put to each end that nobody reaches."""
        order = random.permutation(len(self))
        for missed, end in zip(self._missed(), (self._lo, self._hi), strict=True):
            rows = order[missed[self._member[order]]]
            _, first = np.unique(self._member[rows], return_index=True)
            chosen = rows[first]
            inward = np.where(end[chosen] == self._lo[chosen], self._foot[chosen], self._head[chosen])
            luck = 0.0 if self._points else random.random(len(chosen))
            self._value[chosen] = end[chosen] + (inward - end[chosen]) * luck
            order = np.setdiff1d(order, chosen, assume_unique=True)


class _Name:
    """A name of which some are known only as one of several."""

    def __init__(self, name: str, column: Words, member: Numbers, *, tight: bool) -> None:
        self.name, self._member = name, member
        seen = {leaf for leaves in column.leaves if leaves is not None for leaf in leaves}
        self.leaves = tuple(sorted(seen))
        place = {leaf: at for at, leaf in enumerate(self.leaves)}
        allowed = np.ones((len(column.texts) + 1, max(len(self.leaves), 1)), np.bool_)
        for row, leaves in enumerate(column.leaves):
            if leaves is not None:
                allowed[row] = False
                allowed[row, [place[leaf] for leaf in leaves]] = True
        self._allowed, self._index = allowed, column.index
        self._none = column.index < 0
        wide = allowed.sum(axis=1) > 1
        wide[-1] = False
        self._unknown = wide[column.index] & bool(self.leaves)
        self.open = bool(self._unknown.any())
        both = allowed.sum(axis=1) == 2
        both[-1] = False
        self._classes = _wide(member, both[column.index]) if tight and self.open else np.zeros(0, np.int64)
        self._code = np.where(self._none, -1, np.argmax(allowed, axis=1)[column.index]).astype(np.int32)
        count = np.bincount(self._code[self._code >= 0], minlength=len(self.leaves))
        self._levels = np.argsort(-count, kind="stable")[1:_LEVELS]

    def __len__(self) -> int:
        return len(self._index)

    def begin(self, random: np.random.Generator) -> None:
        """Names by how often each is known."""
        if self.open:
            known = self._code[~self._unknown & ~self._none]
            share = np.bincount(known, minlength=len(self.leaves)) + 1.0
            self._take(np.flatnonzero(self._unknown), np.broadcast_to(share, (len(self), len(share))), random)

    def redraw(self, design: Floats, random: np.random.Generator) -> None:
        """Names by what the other columns of a row let expect."""
        shown = np.zeros((len(self), len(self.leaves)))
        there = np.flatnonzero(~self._none)
        shown[there, self._code[there]] = 1.0
        expected, _ = _fitted(design, shown, random)
        # Rare names are why cells are wide: in those they are not as rare as elsewhere.
        allowed = self._allowed[self._index]
        share = np.where(allowed, np.clip(expected, 1e-6, None), 0.0)
        share = share / share.sum(axis=1, keepdims=True) + allowed / allowed.sum(axis=1, keepdims=True)
        share = share * np.exp(TILT_NAMES * np.column_stack([_leaning(design, random) for _ in self.leaves]))
        self._take(np.flatnonzero(self._unknown), share, random)
        for _ in range(_RETRIES):
            rows = self._loose()
            if not len(rows):
                return
            self._take(rows, share, random)

    def terms(self) -> Floats:
        """What others are expected by."""
        terms: Floats = (self._code[:, None] == self._levels[None, :]).astype(np.float64)
        return terms

    def shown(self) -> NDArray[np.int32]:
        """The names now, as places among the values."""
        return self._code.copy()

    def _take(self, rows: Numbers, share: Floats, random: np.random.Generator) -> None:
        chance = np.where(self._allowed[self._index[rows]], share[rows], 0.0)
        below = np.cumsum(chance, axis=1)
        luck = random.random((len(rows), 1)) * below[:, -1:]
        self._code[rows] = np.minimum((below <= luck).sum(axis=1), len(self.leaves) - 1)

    def _loose(self) -> Numbers:
        """Rows of classes that show two names and have one only."""
        if not len(self._classes):
            return np.zeros(0, np.int64)
        size = int(self._member.max()) + 1
        least, most = np.full(size, len(self.leaves)), np.full(size, -1)
        np.minimum.at(least, self._member, self._code)
        np.maximum.at(most, self._member, self._code)
        alone = np.zeros(size, np.bool_)
        alone[self._classes] = (least == most)[self._classes]
        return np.flatnonzero(alone[self._member] & self._unknown)


def _leaning(design: Floats, random: np.random.Generator) -> Floats:
    """To which side the rows lean, all alike and some more by their other columns; of variance about one."""
    terms = design[:, 1:] - design[:, 1:].mean(axis=0)
    terms /= np.maximum(terms.std(axis=0), 0.1)
    toward = random.standard_normal(terms.shape[1]) * SHARED / np.sqrt(max(terms.shape[1], 1))
    return np.asarray(random.standard_normal() + np.einsum("ij,j->i", terms, toward), np.float64)


def _tilted(luck: Floats, tilt: Floats) -> Floats:
    """Numbers from 0 to 1 that lean to one side: as `luck` where nothing is tilted."""
    safe = np.where(np.abs(tilt) < 1e-6, 1e-6, np.clip(tilt, -30, 30))
    return np.asarray(np.log1p(luck * np.expm1(safe)) / safe, np.float64)


def _wide(member: Numbers, wide: Mask) -> Numbers:
    """The classes of at least two rows whose rows are all wide: those of one class are alike."""
    size = np.bincount(member)
    return np.flatnonzero((size > 1) & (np.bincount(member[wide], minlength=len(size)) == size))
