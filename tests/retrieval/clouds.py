"""Vectors in clouds, as those of texts are, and the true nearest of them."""

import numpy as np

DIM = 32


def unit(count, seed=0):
    """Unit vectors around forty middles, float32 [count, DIM]."""
    rng = np.random.default_rng(seed)
    clouds = np.random.default_rng(99).standard_normal((40, DIM))
    vectors = clouds[rng.integers(0, 40, count)] + 0.7 * rng.standard_normal((count, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def exact(vectors, query, top_k, rows=None):
    """Rows of the nearest, the nearest first."""
    scores = vectors @ query
    if rows is not None:
        keep = np.full(len(vectors), -np.inf)
        keep[rows] = scores[rows]
        scores = keep
    return np.argsort(-scores)[:top_k]
