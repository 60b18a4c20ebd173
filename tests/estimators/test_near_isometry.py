"""The estimator of maps of least distortion."""

import numpy as np
import pytest
from registry import SEEDS, cloud, helix
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import FOR_TRANSFORMERS

from heatsketch import HeatSketch
from heatsketch.diffusion._distortion import (
    certified_distortion,
    least_distortion_map,
)
from heatsketch.estimators.near_isometry import NearIsometry


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_certified_has_all_pairs_of_different_points(seed, dtype):
    """Twins tens or hundreds of rounding units apart, in directions that the map shrinks."""
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


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
@parametrize_with_checks([NearIsometry()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
@pytest.mark.parametrize("check", FOR_TRANSFORMERS, ids=lambda check: check.__name__)
def test_check_that_scikit_learn_does_not_generate(check):
    check("NearIsometry", NearIsometry())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pipeline_takes_new_points(dtype):
    X = helix(400).astype(dtype)
    model = make_pipeline(HeatSketch(32, power=8, epsilon=1.0), NearIsometry(3)).fit(X[::2])
    Z, isometry = model[0].transform(X), model[1]
    Y = model.transform(X)
    assert Y.dtype == dtype and isometry.is_certified_
    assert isometry.n_pairs_ == 200 * 199 // 2
    on_training = certified_distortion(Y[::2], Z[::2]).log_distortion
    assert on_training == pytest.approx(isometry.log_distortion_, rel=1e-3)
    assert certified_distortion(Y, Z).log_distortion < 1.5 * on_training
    assert list(model.get_feature_names_out()) == [f"nearisometry{c}" for c in range(3)]


def test_no_seed_leaves_the_global_state_alone():
    X = cloud(80, 6)
    np.random.seed(5)
    before = np.random.get_state()
    models = [NearIsometry(2, random_state=None) for _ in range(2)]
    first, second = (least_seed(model, X) for model in models)
    after = np.random.get_state()
    assert before[0] == after[0] and (before[1] == after[1]).all() and before[2:] == after[2:]
    assert first != second
    np.random.seed(5)
    assert least_seed(NearIsometry(2, random_state=None), X) not in (first, second)


def least_seed(model, X):
    """Return the seed that a fit takes."""
    seeds = []

    def spy(*args, seed):
        seeds.append(seed)
        return least_distortion_map(*args, seed=seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heatsketch.estimators.near_isometry.least_distortion_map", spy)
        model.fit(X)
    return seeds[0]


def test_a_number_leads_to_the_map_that_it_always_did():
    wanted = np.random.RandomState(7).randint(2**31)
    assert least_seed(NearIsometry(2, random_state=7), cloud(80, 6)) == wanted
