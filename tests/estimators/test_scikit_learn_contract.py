"""scikit-learn's own checks, every one of them, and the ones that it does not generate."""

import itertools

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import FOR_TRANSFORMERS

from heatsketch import DiffusionMap, HeatSketch

# What scikit-learn tries on estimators is often invalid on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning"),
    pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning"),
]

ESTIMATORS = [
    estimator(n_components=2, n_neighbors=n_neighbors, normalization=normalization)
    for estimator, n_neighbors, normalization in itertools.product(
        (HeatSketch, DiffusionMap), (None, 3), ("symmetric", "bistochastic")
    )
]


def name_of(estimator):
    parameters = estimator.get_params()
    return "-".join(
        (type(estimator).__name__, str(parameters["n_neighbors"]), parameters["normalization"])
    )


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", FOR_TRANSFORMERS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_check_that_scikit_learn_does_not_generate(estimator, check):
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_no_check_is_escaped_by_a_tag(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags.non_deterministic
    assert not tags.no_validation
    assert not tags._skip_test


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", [HeatSketch, DiffusionMap])
def test_output_columns_carry_the_name_of_the_estimator(estimator, container):
    pytest.importorskip(container)
    X = np.random.default_rng(0).normal(size=(30, 3))
    frame = estimator(3).set_output(transform=container).fit_transform(X)
    prefix = estimator.__name__.lower()
    assert list(frame.columns) == [f"{prefix}0", f"{prefix}1", f"{prefix}2"]
