"""Where rows are: the few operations that touch every row of a large table, on this machine or on a cluster."""

from sequester.engine.engine import Engine, Means, engine_of

__all__ = ["Engine", "Means", "engine_of"]
