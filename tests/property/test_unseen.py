"""Values that never occur together, against counting them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.ingest.encode import encode
from sequester.ingest.unseen import EXPECTED, unseen
from sequester.policy import Policy


def policy(**keys: object) -> Policy:
    attributes = {"q": {"role": "quasi-identifier"}, "r": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}}
    raw = {"version": 1, "series": "s", "attributes": attributes, "protect": {"k": 2, "confidence": 0.5}}
    return Policy.model_validate({**raw, "method": {"name": "pods"}, **keys})


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from("uvw")),
        st.sampled_from([1, 3, 20, 25, 40, 90]),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_pairs_that_never_occur_and_should_often(rows: dict[tuple[str, str, str], int], excused: bool) -> None:
    table = [{"q": q, "r": r, "s": s} for (q, r, s), count in rows.items() for _ in range(count)]
    rules = [{"q": "a", "s": "u"}, {"q": "a", "r": "x", "s": "v"}] if excused else []
    rule = policy(impossible=rules)
    expected = {}
    for name in "qr":
        ones, values = Counter(row[name] for row in table), Counter(row["s"] for row in table)
        seen = {(row[name], row["s"]) for row in table}
        pairs = {
            (one, value)
            for one in ones
            for value in values
            if (one, value) not in seen and ones[one] * values[value] >= EXPECTED * len(table)
        }
        pairs -= {("a", "u")} if excused and name == "q" else set()
        if pairs:
            expected[name, "s"] = pairs
    found = unseen(encode(pa.Table.from_pylist(table), rule), rule)
    assert {(one.quasi, one.sensitive): set(one.pairs) for one in found} == expected
    assert sum(len(one.pairs) for one in found) <= 2 * len(table) / EXPECTED
    for one in found:
        assert not any(f" {value} " in f" {one} " for pair in one.pairs for value in pair)
        again = policy(impossible=[*rules, *({one.quasi: a, "s": b} for a, b in one.pairs)])
        assert one.quasi not in {other.quasi for other in unseen(encode(pa.Table.from_pylist(table), again), again)}


def test_missing_cells_and_values_that_change_are_no_values() -> None:
    rows = [{"q": None if n % 2 else "a", "r": "x", "s": "u" if n % 2 else "v"} for n in range(400)]
    attributes = {
        "q": {"role": "quasi-identifier", "missing": "category"},
        "r": {"role": "quasi-identifier"},
        "s": {"role": "sensitive", "values": "transient", "permanent": ["u"]},
    }
    rule = policy(attributes=attributes)
    (one,) = unseen(encode(pa.Table.from_pylist(rows), rule), rule)
    assert one.pairs == (("a", "u"),)
