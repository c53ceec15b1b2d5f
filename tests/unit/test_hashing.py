"""Keyed hashes of people, against `hmac` and against what is known of HMAC-SHA256."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from sequester.errors import GuaranteeError
from sequester.ledger import hashing
from sequester.ledger.key import Key
from sequester.ledger.state import HASH
from sequester.publish.census import check_distinct

KEY = Key.of_text("a key for tests only")
LONG_KEY = Key(b"k" * 131)
"""Longer than a block: its hash is the key."""


@pytest.fixture(params=["few", "many"])
def amount(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to hash, whatever the number of rows."""
    monkeypatch.setattr(hashing, "_FEW", 0 if request.param == "many" else 10**9)
    return str(request.param)


def short(key: Key, purpose: str, texts: Sequence[bytes]) -> list[bytes]:
    return [key.sign(purpose, text)[:16] for text in texts]


def by_hand(hashes: Sequence[bytes], columns: Sequence[Sequence[str | None]], key: Key) -> list[int]:
    """Digests as they were defined when the first ledger was written."""
    numbers = []
    for person, *cells in zip(hashes, *columns, strict=True):
        parts = [b"-" if cell is None else str(len(cell.encode())).encode() + b":" + cell.encode() for cell in cells]
        signed = key.sign("digest", person + b"".join(parts))
        numbers.append(int.from_bytes(signed[:8], "little", signed=True))
    return numbers


@pytest.mark.usefixtures("amount")
@pytest.mark.parametrize("key", [KEY, LONG_KEY])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 200])
def test_people_are_hashed_as_hmac_does(count: int, key: Key) -> None:
    # Lengths around the ends of one, two and three blocks, beside each other.
    texts = [f"{row}-" + "x" * row for row in range(count)]
    assert hashing.identify(pa.array(texts, pa.string()), key).to_pylist() == short(
        key, "person", [text.encode() for text in texts]
    )


@pytest.mark.usefixtures("amount")
def test_ids_of_other_alphabets_and_parts_of_arrays_are_hashed_as_they_are_written() -> None:
    texts = ["left out", "Łódź", "東京", "é", "7", "left out"]
    ids = pa.array(texts).slice(1, 4)
    assert hashing.identify(ids, KEY).to_pylist() == short(KEY, "person", [text.encode() for text in texts[1:5]])
    assert hashing.identify(pa.chunked_array([ids, ids]), KEY).to_pylist() == 2 * hashing.identify(ids, KEY).to_pylist()


@pytest.mark.usefixtures("amount")
def test_decoys_and_former_people_have_hashes_of_their_own() -> None:
    numbers = [str(number).encode() for number in range(98, 130)]
    invented = hashing.invent(98, 32, KEY)
    assert invented.to_pylist() == short(KEY, "decoy", numbers)
    assert hashing.retire(invented, KEY).to_pylist() == short(KEY, "former", invented.to_pylist())


@pytest.mark.usefixtures("amount")
@pytest.mark.parametrize("encoded", [False, True])
def test_digests_are_those_of_whole_messages(encoded: bool) -> None:
    draws = np.random.default_rng(1)
    columns: list[list[str | None]] = [
        [None if one == 0 else "y" * int(one * one) for one in draws.integers(0, 9, 300)],
        [str(one) for one in draws.integers(0, 4, 300)],
        ["ü", *(None for _ in range(299))],
    ]
    hashes = hashing.identify(pa.array([str(row) for row in range(300)]), KEY)
    cells = [pa.array(column, pa.string()) for column in columns]
    if encoded:
        cells = [column.dictionary_encode() for column in cells]
    assert hashing.digest(hashes, cells, KEY).tolist() == by_hand(hashes.to_pylist(), columns, KEY)


@pytest.mark.usefixtures("amount")
def test_digests_without_columns_are_of_the_person() -> None:
    hashes = hashing.identify(pa.array(["1", "2"]), KEY)
    assert hashing.digest(hashes, [], KEY).tolist() == by_hand(hashes.to_pylist(), [], KEY)


def test_very_long_ids_are_hashed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_FEW", 0)
    monkeypatch.setattr(hashing, "_sign_many", None)
    texts = ["z" * 5000, "short"]
    assert hashing.identify(pa.array(texts), KEY).to_pylist() == short(KEY, "person", [t.encode() for t in texts])


def test_the_kernel_knows_the_constants_of_the_standard() -> None:
    from sequester.ledger.hash_kernels import Bench

    bench = Bench.for_messages(1)
    assert (hex(bench.constants[0]), hex(bench.constants[63])) == ("0x428a2f98", "0xc67178f2")
    assert (hex(bench.origin[0]), hex(bench.origin[7])) == ("0x6a09e667", "0x5be0cd19")


@pytest.mark.usefixtures("amount")
def test_a_known_answer() -> None:
    # RFC 4231, test case 2 has the key "Jefe", which is too short for a ledger; the pads are what counts.
    key = object.__new__(Key)
    key._secret = b"Jefe"  # type: ignore[misc]
    message = b"what do ya want for nothing?"
    signed = hashing._sign(hashing._Rows(pa.array([message.decode()] * 3)), key, b"")
    known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert [bytes(row).hex() for row in signed] == [known] * 3
    assert hmac.digest(b"Jefe", message, hashlib.sha256).hex() == known


def test_two_rows_about_one_person_are_told_from_hashes_that_share_a_half() -> None:
    half, one, other = b"h" * 8, b"1" * 8, b"2" * 8
    apart = pa.array([b"x" * 16, half + one, half + other, one + half], HASH)
    check_distinct(apart)
    check_distinct(pa.array([], HASH))
    twice = pa.concat_arrays([apart, apart])
    check_distinct(twice.slice(1, 4))
    with pytest.raises(GuaranteeError, match="two rows are about one person"):
        check_distinct(twice.slice(1, 5))
