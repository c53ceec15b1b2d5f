"""The columns of a release for programs: what each is, and what the names of groups in it stand for.

It is made from the policy, the names of the columns, and the group names that the published table shows itself. What a
group holds is what the policy declares, whoever is in the table; domains that come from the data have no groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain import sets
from sequester.domain.build import declared
from sequester.domain.kinds import kind_of
from sequester.outputs import WEIGHT
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.model import Policy

MOST_VALUES = 20_000
_WRITTEN = {
    "interval": (("", "interval"),),
    "midpoint": (("", "middle"),),
    "bounds": (("_min", "min"), ("_max", "max")),
}


def columns_of(policy: Policy, table: pa.Table) -> list[dict[str, Any]]:
    """What a program needs to know of every column, in their order.

    name, role  as published
    kind        of the values, "any" where they are published as they are
    of          the attribute that it belongs to
    written     how cells say it: min or max (of two columns), interval, middle, group (names and sets of them),
                prefix, calendar, value, band, several, weight (how many people a row stands for)
    missing     whether a cell may stand for no value
    range       lowest and highest value, where the policy declares them
    groups      the values in every group that a cell names
    values      "first" where it is what a person had when she was first published
    """
    known = {column["name"]: column for column in _columns(policy)}
    columns = [dict(known[name]) for name in table.column_names]
    for column in columns:
        attribute = policy.quasi_identifiers.get(column["of"])
        if attribute is not None and (groups := _groups(policy, attribute, table[column["name"]])):
            column["groups"] = groups
    return columns


def _columns(policy: Policy) -> Iterator[dict[str, Any]]:
    """Every column that a release under this policy may have."""
    for name, attribute in policy.attributes.items():
        if (quasi := policy.quasi_identifiers.get(name)) is not None:
            yield from _quasi(policy, name, attribute.role, quasi)
        elif isinstance(attribute, Sensitive):
            several = kind_of(attribute).several
            yield {
                "name": name,
                "role": attribute.role,
                "kind": attribute.kind,
                "of": name,
                "written": "band" if attribute.bands is not None else "several" if several else "value",
                "missing": attribute.missing == "category",
                **({"separator": attribute.separator or ";"} if several else {}),
                **({"values": "first"} if attribute.values == "first" else {}),
            }
        else:
            yield {"name": name, "role": attribute.role, "kind": "any", "of": name, "written": "value", "missing": True}
    if policy.has_weights:
        yield _weight()


def _weight() -> dict[str, Any]:
    """The column that tells how many people a row stands for."""
    return {
        "name": WEIGHT,
        "role": "weight",
        "kind": "number",
        "of": WEIGHT,
        "written": "weight",
        "missing": False,
        "range": [0, 1],
    }


def _quasi(policy: Policy, name: str, role: str, attribute: QuasiIdentifier) -> Iterator[dict[str, Any]]:
    kind = kind_of(attribute)
    for end, written in _WRITTEN[policy.output.numbers] if kind.numeric else (("", kind.written),):
        yield {
            "name": f"{name}{end}",
            "role": role,
            "kind": kind.name,
            "of": name,
            "written": written,
            "missing": attribute.missing == "category",
            **({} if attribute.range is None else {"range": list(attribute.range)}),
        }


def _groups(policy: Policy, attribute: QuasiIdentifier, cells: pa.ChunkedArray) -> dict[str, list[str]]:
    """The values in every group that cells name, alone or in a set; none of a domain that is not declared."""
    hierarchy = declared(attribute, policy.path) if attribute.hierarchy is not None else None
    if hierarchy is None:
        return {}
    leaves, groups = hierarchy.names[0], {}
    for text in sorted(pc.unique(cells.cast(pa.string())).drop_null().to_pylist()):
        names = [text] if text in hierarchy.labels else next(sets.readings(text), [])
        for name in names:
            first, last = hierarchy.labels.get(name, (0, 0))
            if first < last and last - first + 1 < hierarchy.size:
                groups[name] = list(leaves[first : last + 1])
    return groups if sum(map(len, groups.values())) <= MOST_VALUES else {}
