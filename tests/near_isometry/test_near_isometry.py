"""The estimator of maps of least distortion."""

import numpy as np
import pytest
from registry import SEEDS, cloud, helix
from sklearn.pipeline import make_pipeline

from heatsketch import HeatSketch
from heatsketch.near_isometry import NearIsometry
from heatsketch.near_isometry._distortion import (
    certified_distortion,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_certified_has_all_pairs_of_different_points(seed):
    """Twins tens or hundreds of rounding units apart, in directions that the map shrinks."""
    dtype = np.float32
    Z = cloud(60, 8, seed).astype(dtype)
    units = np.repeat([30, 300], 10)[:, np.newaxis] * np.finfo(dtype).eps
    away = units * cloud(20, 8, seed + 1) * [0, 0, 0, 0, 0, 1, 1, 1]
    Z = np.vstack([Z, Z[:20] + away.astype(dtype), Z[:5]])
    Z[:, 5:] *= np.asarray(0.01, dtype)
    model = NearIsometry(3).fit(Z)
    i, j = np.triu_indices(len(Z), 1)
    between = Z[i].astype(np.float64) - Z[j]
    between = between[np.any(between != 0, axis=1)]
    stretches = np.linalg.norm(between @ model.components_.T.astype(np.float64), axis=1)
    stretches /= np.linalg.norm(between, axis=1)
    assert model.is_certified_ and model.n_pairs_ == len(between)
    wanted = np.log(stretches.max() / stretches.min())
    assert model.log_distortion_ == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pipeline_takes_new_points(dtype):
    X = helix(400).astype(dtype)
    model = make_pipeline(HeatSketch(32, power=8, weights=1.0), NearIsometry(3)).fit(X[::2])
    Z, isometry = model[0].transform(X), model[1]
    Y = model.transform(X)
    assert Y.dtype == dtype and isometry.is_certified_
    assert isometry.n_pairs_ == 200 * 199 // 2
    on_training = certified_distortion(Y[::2], Z[::2]).log_distortion
    assert on_training == pytest.approx(isometry.log_distortion_, rel=1e-3)
    assert certified_distortion(Y, Z).log_distortion < 1.5 * on_training
    assert list(model.get_feature_names_out()) == [f"nearisometry{c}" for c in range(3)]
