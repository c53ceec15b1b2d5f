"""However ids are written, whoever counts as one person in validation is one person in the ledger and in the audit."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sequester.domain.people import bare, lookalikes, names
from sequester.errors import DataError
from sequester.history.load import recognize
from sequester.ingest.validate import check_people
from sequester.ledger import Key
from sequester.ledger.hashing import identify

KEY = Key.of_text("a key for tests only")
AROUND = ["", " ", "\t", "\u00a0", "\u2003", "\u3000", "\ufeff", "\u200b", " \u200b ", "\u2060\n"]
CORES = [
    "7",
    "07",
    "7.0",
    "1e3",
    "a b",
    "\u00e9",
    "e\u0301",
    "\u1e9b\u0323",
    "\uac00",
    "\u1100\u1161",
    "A\u030a",
    "\u212b",
]

written = st.builds(
    lambda before, core, after, form: before + (unicodedata.normalize(form, core) if form else core) + after,
    st.sampled_from(AROUND),
    st.one_of(st.sampled_from(CORES), st.text(st.characters(codec="utf-8"), max_size=4)),
    st.sampled_from(AROUND),
    st.sampled_from(["NFC", "NFD", None]),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(written, min_size=1, max_size=12))
@example(["\u00e9", "e\u0301 "])
@example(["\u200b \ufeff", ""])
def test_distinct_people_are_counted_compared_and_hashed_alike(ids: list[str]) -> None:
    column = pa.chunked_array([pa.array(ids, pa.string())])
    known_as = names(column)
    somebody = known_as.drop_null()
    distinct = len(somebody.unique())
    assert len(identify(somebody, KEY).unique()) == distinct
    told = {problem.message.split("(")[0]: problem.rows for problem in check_people(column, "id", tokens=("",))}
    repeated = sum(rows or 0 for message, rows in told.items() if "earlier row" in message)
    nobody = sum(rows or 0 for message, rows in told.items() if "not say who" in message)
    assert nobody == known_as.null_count
    assert repeated == len(somebody) - distinct
    kept = column.chunk(0).filter(known_as.is_valid())
    try:
        people = recognize([pa.chunked_array([kept])], column="id", names=["first"])
    except DataError:
        assert repeated
    else:
        assert len(people) == distinct == len(kept)


@settings(max_examples=50, deadline=None)
@given(written)
def test_an_id_read_twice_is_the_same_id_and_equal_hashes_are_equal_names(text: str) -> None:
    once = bare(pa.array([text]))
    assert bare(once).equals(once)
    assert once[0].as_py() == unicodedata.normalize("NFC", once[0].as_py())
    padded = bare(pa.array([f"\ufeff {text}\u200b\u2003"]))
    assert padded.equals(once)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=10))
def test_whole_numbers_are_one_person_in_columns_of_any_type(ids: list[int]) -> None:
    integers = identify(pa.array(ids, pa.int64()), KEY)
    floats = pa.array([float(one) for one in ids] + [None]).slice(0, len(ids))
    texts = pa.array([f" {one}" for one in ids])
    assert identify(floats, KEY).equals(integers)
    assert identify(texts, KEY).equals(integers)
    assert identify(texts.dictionary_encode(), KEY).equals(integers)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["1", "1.0", "01", "+1", "1e0", "10e-1", "2", "2.5", "2.50", "x", "1x"]), unique=True))
def test_numbers_written_in_two_ways_are_told_and_stay_two_people(ids: list[str]) -> None:
    known_as = names(pa.array(ids, pa.string()))
    assert len(known_as.unique()) == len(ids)
    values: dict[float, int] = {}
    for text in ids:
        if "x" not in text:
            values[float(text)] = values.get(float(text), 0) + 1
    assert bool(lookalikes(known_as)) == any(count > 1 for count in values.values())


def test_no_two_rows_of_long_numbers_are_taken_for_each_other() -> None:
    close = [f"{2**60 + step}" for step in range(4)] + [f"0{2**60 + 9}", "123e4567", "99e99999"]
    assert lookalikes(pa.array(close)) == 0
    assert np.unique(names(pa.array(close)).to_numpy(zero_copy_only=False)).size == len(close)
