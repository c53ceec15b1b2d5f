"""HMAC-SHA256 (RFC 2104, FIPS 180-4) of many short messages, sixteen at a time.

Sixteen messages stand side by side as lanes of the same array, so that every step of the hash is one loop over
neighbouring numbers, for which the compiler uses the widest registers that there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Places = NDArray[np.int64]

LANES = 16
BLOCK = 64
# A one after the message, and its length in bits at the end of the last block.
_PADDING = 9


class Messages(NamedTuple):
    """Messages in parts: what stands before all of them, a part of each row's own, and cells by their codes.

    own    bytes of the rows, row i from `start[i]` to `start[i + 1]`
    cells  bytes of the cells of all columns, cell c from `cell[c]` to `cell[c + 1]`
    first  per column, its cell with code 0
    codes  (columns, rows)
    """

    before: Bytes
    own: Bytes
    start: Places
    cells: Bytes
    cell: Places
    first: Places
    codes: NDArray[np.int32]


class Bench(NamedTuple):
    """Room to work in.

    text      (lanes, bytes) the messages at hand, and `quads` the same bytes by fours
    words     (16, lanes) a block of each
    state     (8, lanes), and `turned` the same while a block is mixed in
    blocks    (lanes,) blocks of each message
    inner, outer   (8,) the state after the pads of the key
    constants (64,), and `origin` (8,) where every hash begins
    """

    text: Bytes
    quads: Words
    words: Words
    state: Words
    turned: Words
    blocks: Places
    inner: Words
    outer: Words
    constants: Words
    origin: Words

    @classmethod
    def for_messages(cls, longest: int) -> Bench:
        """Room for messages of so many bytes."""
        size = -(-(longest + _PADDING) // BLOCK) * BLOCK
        text = np.zeros((LANES, size), np.uint8)
        return cls(
            text=text,
            quads=text.view("<u4"),
            words=np.zeros((16, LANES), np.uint32),
            state=np.zeros((8, LANES), np.uint32),
            turned=np.zeros((8, LANES), np.uint32),
            blocks=np.zeros(LANES, np.int64),
            inner=np.zeros(8, np.uint32),
            outer=np.zeros(8, np.uint32),
            constants=_CONSTANTS,
            origin=_ORIGIN,
        )


def _fractions(count: int, root: int) -> list[int]:
    """The first 32 bits of the fractional parts of the square or cube roots of the first primes."""
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return [_whole_root(prime << 32 * root, root) & 0xFFFFFFFF for prime in primes]


def _whole_root(number: int, root: int) -> int:
    low, high = 0, number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**root <= number else (low, middle - 1)
    return low


_CONSTANTS, _ORIGIN = (np.array(_fractions(*one), np.uint32) for one in ((64, 3), (8, 2)))


@helper
def _compress(state: Words, words: Words, turned: Words, constants: Words) -> None:
    """Mix a block into what `turned` begins with; the sums with `state` are left to the caller, lane by lane."""
    for row in range(8):
        for lane in range(LANES):
            turned[row, lane] = state[row, lane]
    for step in range(64):
        here = step & 15
        if step > 15:
            one, two, seven = (step - 15) & 15, (step - 2) & 15, (step - 7) & 15
            for lane in range(LANES):
                x, y = words[one, lane], words[two, lane]
                low = _turn(x, 7) ^ _turn(x, 18) ^ (x >> np.uint32(3))
                high = _turn(y, 17) ^ _turn(y, 19) ^ (y >> np.uint32(10))
                words[here, lane] += low + words[seven, lane] + high
        # The eight rows change their names instead of their places.
        a, b, c, d = -step & 7, (1 - step) & 7, (2 - step) & 7, (3 - step) & 7
        e, f, g, h = (4 - step) & 7, (5 - step) & 7, (6 - step) & 7, (7 - step) & 7
        constant = constants[step]
        for lane in range(LANES):
            x, y = turned[a, lane], turned[e, lane]
            chosen = (y & turned[f, lane]) ^ (~y & turned[g, lane])
            most = (x & turned[b, lane]) ^ (x & turned[c, lane]) ^ (turned[b, lane] & turned[c, lane])
            mixed = turned[h, lane] + (_turn(y, 6) ^ _turn(y, 11) ^ _turn(y, 25)) + chosen + constant
            mixed += words[here, lane]
            turned[d, lane] += mixed
            turned[h, lane] = mixed + (_turn(x, 2) ^ _turn(x, 13) ^ _turn(x, 22)) + most


@helper(inline="always")  # type: ignore[untyped-decorator]
def _turn(word: np.uint32, bits: int) -> np.uint32:
    return (word >> np.uint32(bits)) | (word << np.uint32(32 - bits))


@helper
def _load(text: Words, at: int, lane: int, words: Words) -> None:
    """The sixteen words of a block, whose bytes stand with the most significant one first."""
    for place in range(16):
        word = np.uint32(text[lane, at + place])
        word = np.uint32((word & np.uint32(0xFF00FF)) << np.uint32(8)) | np.uint32((word >> np.uint32(8)) & 0xFF00FF)
        words[place, lane] = np.uint32(word << np.uint32(16)) | np.uint32(word >> np.uint32(16))


@helper
def _write(messages: Messages, row: int, lane: int, text: Bytes) -> int:
    """Put a message together, pad it, and return its blocks."""
    before, own, cells, cell = messages.before, messages.own, messages.cells, messages.cell
    at = len(before)
    for place in range(at):
        text[lane, place] = before[place]
    for place in range(messages.start[row], messages.start[row + 1]):
        text[lane, at] = own[place]
        at += 1
    for column in range(len(messages.first)):
        code = messages.first[column] + messages.codes[column, row]
        for place in range(cell[code], cell[code + 1]):
            text[lane, at] = cells[place]
            at += 1
    blocks = (at + _PADDING + BLOCK - 1) // BLOCK
    bits = 8 * (BLOCK + at)
    text[lane, at] = 0x80
    for place in range(at + 1, blocks * BLOCK):
        text[lane, place] = 0
    for byte in range(8):
        text[lane, blocks * BLOCK - 1 - byte] = (bits >> (8 * byte)) & 0xFF
    return blocks


@helper
def _begin(state: Words, words: Words) -> None:
    for row in range(8):
        for lane in range(LANES):
            state[row, lane] = words[row]


@helper
def _after_pad(pads: Words, pad: int, bench: Bench, after: Words) -> None:
    """The state after a pad of the key, which is the same for all messages."""
    _begin(bench.state, bench.origin)
    _load(pads, 0, pad, bench.words)
    for place in range(16):
        for lane in range(LANES):
            bench.words[place, lane] = bench.words[place, pad]
    _compress(bench.state, bench.words, bench.turned, bench.constants)
    for row in range(8):
        after[row] = bench.origin[row] + bench.turned[row, 0]


@kernel
def sign_rows(messages: Messages, pads: Words, rows: Places, bench: Bench, signed: Words) -> None:
    """The hashes of the rows from `rows[0]` to `rows[1]`, as (rows, 8) words; `pads` are those of the key, (2, 16)."""
    text, quads, words, state, turned = bench.text, bench.quads, bench.words, bench.state, bench.turned
    inner, outer, blocks, constants = bench.inner, bench.outer, bench.blocks, bench.constants
    _after_pad(pads, 0, bench, inner)
    _after_pad(pads, 1, bench, outer)
    for begin in range(rows[0], rows[1], LANES):
        count, most = min(LANES, rows[1] - begin), 0
        for lane in range(LANES):
            blocks[lane] = _write(messages, begin + lane, lane, text) if lane < count else 0
            most = max(most, blocks[lane])
        _begin(state, inner)
        for block in range(most):
            for lane in range(LANES):
                # A shorter message waits for the others with whatever stands there.
                if block < blocks[lane]:
                    _load(quads, block * 16, lane, words)
            _compress(state, words, turned, constants)
            for row in range(8):
                for lane in range(LANES):
                    state[row, lane] += turned[row, lane] if block < blocks[lane] else np.uint32(0)
        for row in range(8):
            for lane in range(LANES):
                words[row, lane] = state[row, lane]
                words[row + 8, lane] = 0
        for lane in range(LANES):
            words[8, lane] = 0x80000000
            words[15, lane] = 8 * (BLOCK + 32)
        _begin(state, outer)
        _compress(state, words, turned, constants)
        for lane in range(count):
            for row in range(8):
                signed[begin + lane, row] = state[row, lane] + turned[row, lane]
