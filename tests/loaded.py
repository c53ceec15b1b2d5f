"""Published files or frames as histories."""

from collections.abc import Sequence
from typing import Any

from sequester.history import History
from sequester.history.load import histories_of
from sequester.history.releases import read_releases
from sequester.policy import Policy


def load_histories(releases: Sequence[Any], policy: Policy, **given: Any) -> tuple[History, ...]:
    """One history per sensitive view: each attribute, their combination, or both, as the policy asks."""
    return histories_of(read_releases(releases, policy, **given))
