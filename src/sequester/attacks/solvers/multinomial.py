"""Shares of values by features: multinomial logistic regression with a ridge, learnt from counts by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 50
_CLOSE = 1e-7


def shares(features: Floats, weights: Floats) -> Floats:
    """(rows, values) the share of every value, by features (rows, features) and weights (features, values)."""
    score = features @ weights
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score / score.sum(axis=1, keepdims=True))


def learn(features: Floats, counts: Floats, *, ridge: Floats, start: Floats | None = None) -> Floats:
    """The weights under which the counts (rows, values) are likeliest, less half the ridge times their squares.

    ridge  per feature, above 0; start  weights to begin with
    """
    wide, values = features.shape[1], counts.shape[1]
    weights = np.zeros((wide, values)) if start is None else start.copy()
    size = counts.sum(axis=1)
    loss = _loss(features, counts, ridge, weights)
    for _ in range(_STEPS):
        share = shares(features, weights)
        slope = features.T @ (size[:, None] * share - counts) + ridge[:, None] * weights
        step = np.linalg.solve(_bend(features, size, share, ridge), slope.ravel()).reshape(wide, values)
        gain = float((slope * step).sum())
        if gain < _CLOSE:
            break
        length = 1.0
        while (tried := _loss(features, counts, ridge, weights - length * step)) > loss - 0.25 * length * gain:
            length /= 2
            if length < _CLOSE:
                return weights
        weights, loss = weights - length * step, tried
    return weights


def _loss(features: Floats, counts: Floats, ridge: Floats, weights: Floats) -> float:
    score = features @ weights
    most = score.max(axis=1, keepdims=True)
    total = most[:, 0] + np.log(np.exp(score - most).sum(axis=1))
    return float(counts.sum(axis=1) @ total - (counts * score).sum() + 0.5 * (ridge[:, None] * weights**2).sum())


def _bend(features: Floats, size: Floats, share: Floats, ridge: Floats) -> Floats:
    """The second derivatives, (features x values) square."""
    wide, values = features.shape[1], share.shape[1]
    bend = np.empty((wide, values, wide, values))
    for one in range(values):
        for other in range(one, values):
            each = size * share[:, one] * ((one == other) - share[:, other])
            bend[:, one, :, other] = bend[:, other, :, one] = features.T @ (each[:, None] * features)
    return bend.reshape(wide * values, wide * values) + np.diag(np.repeat(ridge, values))
