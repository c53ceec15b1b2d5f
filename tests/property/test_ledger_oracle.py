"""A ledger against what it stands for: a history in memory, HMAC of the standard library, counting by hand."""

from __future__ import annotations

import hashlib
import hmac
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgers import KEY, SECRET, new
from sequester.domain.hierarchy import Hierarchy
from sequester.ledger import Draft, Key, Ledger
from sequester.ledger.domains import from_json, to_json
from sequester.ledger.hashing import identify
from sequester.ledger.rows import count_cells, join_hashes, split_hashes
from series import Series, axis, series
from strategies import hierarchies


def record(ledger: Ledger, truth: Series, release: int, values: np.ndarray, numbered: list[int]) -> None:
    """Record one release of a series; people are numbered as they first come."""
    member = truth.member[release]
    new_ = [person for person in np.flatnonzero(member >= 0).tolist() if person not in numbered]
    numbered += new_
    hashes = ledger.identify(pa.array([f"p{person}" for person in new_], pa.string()))
    lo, hi = truth.boxes[release]
    quasi = tuple(f"q{index}" for index in range(len(lo)))
    entry = ledger.begin(
        Draft(
            name=f"r{release}",
            head=ledger.head,
            quasi=quasi,
            sensitive=("s",),
            domains={**{name: axis(9) for name in quasi}, "s": axis(truth.values)},
            lo=lo,
            hi=hi,
            member=member[numbered],
            values=values[None, numbered],
            newcomers=hashes,
            digests=np.zeros((0, len(new_)), np.int64),
            input_digest="",
            output_digest="",
            method="",
        )
    )
    ledger.finish(entry.number)


@given(truth=series(releases=(1, 4)), transient=st.booleans(), seed=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_a_ledger_says_what_a_history_says(truth: Series, transient: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    history = truth.history()
    numbered: list[int] = []
    values = []
    with tempfile.TemporaryDirectory() as folder, new(Path(folder) / "x.ledger") as ledger:
        for release in range(len(truth.member)):
            now = rng.integers(truth.values, size=len(truth.value)).astype(np.int32) if transient else truth.value
            values.append(now)
            record(ledger, truth, release, now, numbered)
        state = ledger.load()
        verified = ledger.verify()
        assert ledger.match(ledger.identify(pa.array([f"p{p}" for p in numbered]))).tolist() == [*range(len(numbered))]
    assert verified.holds, verified.problems
    assert history.trajectories is not None
    # The same partition into trajectories, with the same paths; the numbers depend on the order of the people.
    paths = history.trajectories.path[history.trajectories.of[numbered]]
    assert state.path[state.trajectory].tolist() == paths.tolist()
    assert len(state.path) == len(history.trajectories)
    assert state.member.tolist() == truth.member[-1][numbered].tolist()
    for release, (memory, now) in enumerate(zip(state.releases, values, strict=True)):
        member = truth.member[release]
        cells = Counter((member[p], now[p]) for p in range(len(now)) if member[p] >= 0)
        found = zip(memory.cell_class.tolist(), memory.cell_codes[0].tolist(), memory.cell_count.tolist(), strict=True)
        assert {(c, v): n for c, v, n in found} == cells
        assert all(memory.counts[0][key] == count for key, count in cells.items())
        assert memory.lo.tolist() == truth.boxes[release][0].tolist()
        assert memory.hi.tolist() == truth.boxes[release][1].tolist()
    first = np.argmax(truth.member[:, numbered] >= 0, axis=0)
    assert state.joined.tolist() == (first + 1).tolist()
    here = truth.member[-1][numbered] >= 0
    expected = [
        values[-1 if now else release][person] for person, release, now in zip(numbered, first, here, strict=True)
    ]
    assert state.values[0].tolist() == expected


@given(
    ids=st.lists(st.text(st.characters(codec="utf-8"), max_size=90), max_size=6),
    secret=st.binary(min_size=16, max_size=130),
)
@settings(max_examples=30, deadline=None)
def test_hashes_are_hmac_sha256_of_the_bare_text(ids: list[str], secret: bytes) -> None:
    bare = [text for text in map(bare_text, ids) if text]
    found = identify(pa.array([text for text in ids if bare_text(text)], pa.string()), Key(secret))
    assert found.to_pylist() == [
        hmac.new(secret, b"person\0" + text.encode(), hashlib.sha256).digest()[:16] for text in bare
    ]


def bare_text(text: str) -> str:
    """An id in composed form without what nobody sees around it, by the standard library and letter by letter."""
    letters = list(unicodedata.normalize("NFC", text))
    unseen = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
    for end in (0, -1):
        while letters and (letters[end].isspace() or letters[end] in unseen):
            letters.pop(end)
    return "".join(letters)


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\ufeff\u00a0"])
def test_nobody_has_no_hash(text: str) -> None:
    with pytest.raises(ValueError, match="a person without an id cannot be recognised"):
        identify(pa.array(["1", text]), KEY)


def test_many_hashes_stay_in_order() -> None:
    ids = [str(number) for number in range(300_000)]
    found = identify(pa.array(ids), KEY).to_pylist()
    for place in range(0, len(ids), 997):
        assert found[place] == hmac.digest(SECRET.encode(), b"person\0" + ids[place].encode(), "sha256")[:16]


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=5), st.integers(0, 5))
def test_hashes_survive_as_two_numbers(hashes: list[bytes], start: int) -> None:
    array = pa.array(hashes, pa.binary(16))[start:]
    assert join_hashes(*split_hashes(array)).to_pylist() == hashes[start:]


@given(domain=hierarchies())
@settings(max_examples=100, deadline=None)
def test_any_domain_comes_back(domain: Hierarchy) -> None:
    found = from_json(to_json(domain))
    assert (found.kind, found.names, found.missing, found.aliases) == (
        domain.kind,
        domain.names,
        domain.missing,
        domain.aliases,
    )
    assert found.position.tobytes() == domain.position.tobytes()
    assert found.leaves.dtype == domain.leaves.dtype
    np.testing.assert_array_equal(found.leaves, domain.leaves)
    assert all(np.array_equal(a, b) for a, b in zip(found.starts, domain.starts, strict=True))


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=12),
    st.integers(0, 2),
)
def test_cells_are_the_multisets_of_the_classes(people: list[tuple[int, int, int]], attributes: int) -> None:
    member = np.array([person[0] for person in people], np.int32)
    values = np.array([person[1:] for person in people], np.int32).T[:attributes]
    found = count_cells(member, values, [3, 5][:attributes])
    cells = Counter((person[0], *person[1 : 1 + attributes]) for person in people if person[0] >= 0)
    rows = [(c, *v) for c, v in zip(found["class"].tolist(), found["codes"].tolist(), strict=True)]
    assert rows == sorted(cells)
    assert found["n"].tolist() == [cells[row] for row in rows]
