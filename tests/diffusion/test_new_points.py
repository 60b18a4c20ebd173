"""Neighbours of new points: their intervals."""

import numpy as np
import pytest
from registry import SEEDS

from heatsketch.diffusion import diffusion_neighbors, gaussian_matrix


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_of_new_points_cover_after_the_choice(seed):
    """On average over neighbours, as for rows; three standard errors below 95 % are allowed."""
    rng = np.random.default_rng(seed)
    F, n_trials, k = rng.normal(size=(320, 40)), 60, 24
    exact = np.linalg.norm(F[300:, np.newaxis] - F[:300], axis=2)
    covered = []
    for trial in range(n_trials):
        Y = F @ gaussian_matrix(40, k, seed=1000 * seed + trial) / np.sqrt(k)
        found = diffusion_neighbors(Y[:300], Y[300:], n_neighbors=10)
        truth = np.take_along_axis(exact, found.indices, axis=1)
        covered.append(np.mean((found.low <= truth) & (truth <= found.high)))
    assert np.mean(covered) > 0.95 - 3 * np.std(covered) / np.sqrt(n_trials)
