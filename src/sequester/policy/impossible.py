"""Whether what a policy calls impossible names values that exist, and leaves everybody some that are possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.policy.phrase import closest
from sequester.policy.pod_checks import seats_of
from sequester.policy.raw import Issue, at

_MOST_NAMES = 10_000


def check_impossible(raw: Mapping[str, Any], domains: Mapping[str, Hierarchy]) -> Iterator[Issue]:
    """The rules against the hierarchies of attributes that have one; others are known only with the data."""
    rules = [(place, rule) for place, rule in enumerate(raw.get("impossible") or ()) if isinstance(rule, Mapping)]
    barred: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for place, rule in rules:
        unknown = False
        for name, text in rule.items():
            domain = domains.get(name)
            if domain is not None and codes_of(domain, str(text)) is None:
                unknown = True
                yield ("impossible", place, name), f"not a value of the attribute{_near(domain, str(text))}"
        names = [name for name in rule if at(raw, ("attributes", name, "role")) == "quasi-identifier"]
        private = [name for name in rule if name not in names]
        if unknown or len(names) != 1 or len(private) != 1 or not {names[0], private[0]} <= domains.keys():
            continue
        yield from _left(raw, domains, barred, place, names[0], private[0])


def _left(
    raw: Mapping[str, Any],
    domains: Mapping[str, Hierarchy],
    barred: dict[tuple[str, str], NDArray[np.bool_]],
    place: int,
    name: str,
    private: str,
) -> Iterator[Issue]:
    """What one more rule about these two attributes leaves possible; `barred` is (leaves, values) of rules before."""
    rule = raw["impossible"][place]
    here, there = codes_of(domains[name], str(rule[name])), codes_of(domains[private], str(rule[private]))
    if here is None or there is None:
        return
    table = barred.setdefault((name, private), np.zeros((len(here), len(there)), np.bool_))
    before = table.copy()
    table |= here[:, None] & there[None, :]
    if (table.all(axis=0) & ~before.all(axis=0)).any():
        yield ("impossible", place), f"with the rules before it nobody could have this {private}; take one of them out"
    elif (few := (~table).sum(axis=1) < seats_of(raw)).any() and (few & here).any():
        yield (
            ("impossible", place),
            f"leaves fewer values of {private} possible for somebody than the {seats_of(raw)} that a pod needs; take "
            "a rule out, or promise less",
        )


def codes_of(domain: Hierarchy, text: str) -> NDArray[np.bool_] | None:
    """Per leaf, whether it has this name or is below the node of this name; None where nothing is called so."""
    if text not in domain.labels:
        leaves = np.array([name == text for name in domain.names[0]])
        return leaves if leaves.any() else None
    first, last = domain.labels[text]
    leaf = np.arange(domain.size)
    below: NDArray[np.bool_] = (leaf >= first) & (leaf <= last)
    return below


def _near(domain: Hierarchy, text: str) -> str:
    names = list(domain.labels)
    return closest(text, sorted(names)) if len(names) <= _MOST_NAMES else ""
