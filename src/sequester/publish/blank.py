"""Suppress the values that change of some records: `*` takes their place, and what stays with a person stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING
from sequester.history.past import Past
from sequester.ingest.snapshot import Snapshot
from sequester.policy.model import Policy


def blank(records: Snapshot, policy: Policy, hidden: NDArray[np.bool_]) -> Snapshot:
    """The records with `*` for every changing value of those that are hidden."""
    sensitive = records.sensitive.copy()
    for codes, name, domain in zip(sensitive, records.sensitive_names, records.sensitive_domains, strict=True):
        attribute = policy.sensitive[name]
        if attribute.values == "transient":
            stays = np.array([value in attribute.permanent for value in domain.names[0]])
            codes[hidden & ~stays[codes]] = domain.names[0].index(EVERYTHING)
    return replace(records, sensitive=sensitive)


def blank_past(past: Past, hidden: NDArray[np.bool_]) -> Past:
    """The same records beside their past."""
    values = tuple(
        value
        if history.blank is None
        else np.where(hidden & (value != (-1 if history.kept is None else history.kept)), history.blank, value).astype(
            np.int32
        )
        for history, value in zip(past.histories, past.value, strict=True)
    )
    return replace(past, value=values)
