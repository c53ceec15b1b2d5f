"""All findings of an audit as one table: thousands of them in a Parquet file take little room, and can be asked."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from sequester.attacks.exposed import is_certain
from sequester.attacks.finding import Finding

_TEXT = pa.dictionary(pa.int32(), pa.string())
_PLACE = pa.struct([("release", pa.int32()), ("class", pa.int32())])
SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("attack", _TEXT),
        ("adversary", _TEXT),
        ("releases", pa.list_(pa.int32())),
        ("attribute", _TEXT),
        ("value", _TEXT),
        ("required", pa.float64()),
        ("observed", pa.float64()),
        ("certain", pa.bool_()),
        ("people", pa.list_(pa.string())),
        ("classes", pa.list_(_PLACE)),
        ("witness", pa.string()),
    ]
)
"""Columns as `Finding` has them. `number` is what `Audit.explain` takes, ids of people are text, a witness is JSON."""


def findings_table(findings: Sequence[Finding]) -> pa.Table:
    """One row per finding, in their order. Holds sensitive values and person ids: for the publisher."""
    columns = {
        "number": range(1, len(findings) + 1),
        "attack": [one.attack for one in findings],
        "adversary": [one.adversary for one in findings],
        "releases": [one.releases for one in findings],
        "attribute": [one.attribute for one in findings],
        "value": [one.value for one in findings],
        "required": [one.required for one in findings],
        "observed": [one.observed for one in findings],
        "certain": [is_certain(one) for one in findings],
        "people": [[str(person) for person in one.people] for one in findings],
        "classes": [[{"release": release, "class": number} for release, number in one.classes] for one in findings],
        "witness": [json.dumps(dict(one.witness), ensure_ascii=False, default=str) for one in findings],
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)
