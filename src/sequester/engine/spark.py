"""A cluster, or this machine as one: rows stay in Spark, and only counts reach whoever asks."""

from __future__ import annotations

from typing import Any

from sequester.engine.engine import Means
from sequester.errors import MissingLibrary


class SparkEngine:
    """Rows of Spark."""

    name = "spark"

    def __init__(self, room: Means, *, master: str | None, session: Any = None) -> None:
        raise MissingLibrary("tables of Spark need the extra `spark`: pip install 'sequester[spark]'")
