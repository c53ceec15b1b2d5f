"""Who a row is about: ids are read in one way by everything that counts, compares or hashes people.

An id is its text without blanks around it, in Unicode's composed form (NFC): 11 of a Parquet file, 11.0 of a column of
floats and " 11" of a CSV file are one person. Numbers as text are not read: "1", "1.0" and "01" are three ids, which
`lookalikes` counts. An id of which nothing is left is nobody.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain.codec import is_text, to_text

# What a copy from a web page or the start of a file leaves around an id, unseen: byte order marks, joiners, marks of
# direction, soft hyphens.
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
# No blank of Unicode comes after the ideographic space.
_BLANK = _UNSEEN + "".join(filter(str.isspace, map(chr, range(0x3001))))
_ASCII_BLANK = "".join(filter(str.isascii, _BLANK))
# From here on neighbouring integers are one float.
_EXACT = 2.0**53

# Longer exponents are those of codes that happen to have an e among their digits.
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"
# Numbers that are not written as an integer column is: 1.0, 007, +1, 1e3, -0.
_ODD = r"^([+].*|-?0[0-9].*|-0|.*[.eE].*)$"
# An integer gets zeros before it until it has so many digits.
_WIDEST = 12


def bare(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Ids as they count: text without blanks around it and composed, whole floats as integers, all else as it is."""
    ids = _whole(ids)
    if is_text(ids.type):
        return _trimmed(ids.cast(pa.string()) if pa.types.is_string_view(ids.type) else ids)
    if pa.types.is_floating(ids.type):
        numbers = pc.cast(ids, pa.float64())
        numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
        whole = pc.and_(pc.equal(numbers, pc.floor(numbers)), pc.less(pc.abs(numbers), _EXACT))
        return pc.cast(numbers, pa.int64()) if pc.all(whole, min_count=0).as_py() else numbers
    return ids


def names(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The text by which each person is known; null for nobody."""
    plain = bare(ids)
    texts = plain.cast(pa.string()) if is_text(plain.type) else _trimmed(to_text(plain).cast(pa.string()))
    empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts) if pc.any(empty).as_py() else texts


def inexact(ids: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which ids are floats so large, or endless, that other ids may have been rounded to the same."""
    ids = _whole(ids)
    if not pa.types.is_floating(ids.type):
        return np.zeros(len(ids), np.bool_)
    numbers = pc.cast(ids, pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    rounded: NDArray[np.bool_] = np.abs(numbers) >= _EXACT
    return rounded


def lookalikes(known_as: pa.Array) -> int:
    """How many of these names are numbers written in another way than one of the others: 1 and 1.0, 007 and 7."""
    odd = _odd(known_as)
    if not len(odd):
        return 0
    read = as_integers(odd)
    counted = pc.value_counts(read)
    several = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    another = pc.and_(pc.not_equal(read, odd), pc.is_in(read, value_set=known_as))
    alike = pc.or_(another, pc.is_in(read, value_set=several))
    return int(pc.sum(alike).as_py() or 0)


def other_spellings(known_as: pa.Array) -> list[pa.Array]:
    """The same names, as far as they are numbers, as other programs write them; null where there is no such way.

    One array for each way: as an integer column does, with `.0` after them, with zeros before them.
    """
    integer = pc.match_substring_regex(known_as, "^[0-9]+$")
    whole = pc.if_else(integer, known_as, pa.scalar(None, pa.string()))
    odd = pc.and_(pc.match_substring_regex(known_as, _NUMBER), pc.match_substring_regex(known_as, _ODD))
    plain = as_integers(pc.if_else(odd, known_as, pa.scalar(None, pa.string())))
    ways = [plain, pc.binary_join_element_wise(whole, pa.scalar(".0"), "")]
    for width in range(2, _WIDEST + 1):
        short = pc.less(pc.binary_length(whole), width)
        ways.append(pc.utf8_lpad(pc.if_else(short, whole, pa.scalar(None, pa.string())), width=width, padding="0"))
    return ways


def as_integers(numbers: pa.Array) -> pa.Array:
    """Texts that are numbers, written as an integer column writes them; those with a fraction as short as possible."""
    digits = pc.match_substring_regex(numbers, r"^\+?[0-9]+$")
    stripped = pc.ascii_ltrim(numbers, characters="+0")
    digits_only = pc.if_else(pc.equal(stripped, ""), pa.scalar("0"), stripped)
    others = pc.invert(digits).fill_null(False)
    # Most ids are digits only, and patterns are slow.
    return pc.replace_with_mask(digits_only, others, _shortest(numbers.filter(others)))


def _shortest(numbers: pa.Array) -> pa.Array:
    plain = pc.match_substring_regex(numbers, r"^[+-]?[0-9]*\.?[0-9]*$")
    # Powers of ten are read as floats; of the others every digit counts, however many there are.
    powers = pc.cast(pc.if_else(plain, pa.scalar("0"), pc.ascii_ltrim(numbers, characters="+")), pa.float64())
    short_form = pc.if_else(plain, numbers, to_text(powers))
    for pattern, short in (
        (r"^\+", ""),
        (r"(\.[0-9]*?)0+$", r"\1"),
        (r"\.$", ""),
        (r"^(-?)0+([0-9])", r"\1\2"),
        (r"^(-?)\.", r"\10."),
        (r"^-0$", "0"),
    ):
        short_form = pc.replace_substring_regex(short_form, pattern, short)
    return short_form


def _odd(known_as: pa.Array) -> pa.Array:
    odd = known_as.filter(pc.match_substring_regex(known_as, _ODD).fill_null(False))
    return odd.filter(pc.match_substring_regex(odd, _NUMBER))


def _trimmed(texts: pa.Array) -> pa.Array:
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_trim(texts, characters=_ASCII_BLANK)
    return pc.utf8_trim(pc.utf8_normalize(texts, form="NFC"), characters=_BLANK)


def _whole(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of values."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if isinstance(ids, pa.ChunkedArray):
        return pa.concat_arrays(ids.chunks) if ids.num_chunks else pa.array([], ids.type)
    return ids
