"""scikit-learn's own checks, every one of them, and the ones that it does not generate."""

import itertools

import numpy as np
import pytest
from registry import cloud
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import FOR_ALL, FOR_TRANSFORMERS

from heatsketch import DiffusionMap, HeatClustering, HeatLabels, HeatSketch, NearIsometry

# What scikit-learn tries on estimators is often invalid on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning"),
    pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
]

TRANSFORMERS = [
    HeatSketch(2, n_neighbors=None),
    HeatSketch(2, n_neighbors=3, normalization="bistochastic"),
    DiffusionMap(2, n_neighbors=3),
    DiffusionMap(2, n_neighbors=None, normalization="bistochastic"),
    NearIsometry(),
]
# Two classes named -1 and 1 are one of its checks; scikit-learn exempts LabelSpreading by name.
OTHERS = [HeatLabels(unknown=-9), HeatClustering(2)]
CHECKS = [*itertools.product(TRANSFORMERS, FOR_TRANSFORMERS), *itertools.product(OTHERS, FOR_ALL)]


@parametrize_with_checks([*TRANSFORMERS, *OTHERS])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_check_that_scikit_learn_does_not_generate(estimator, check):
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", [*TRANSFORMERS, *OTHERS])
def test_no_check_is_escaped_by_a_tag(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags.non_deterministic
    assert not tags.no_validation
    assert not tags._skip_test


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", [HeatSketch, DiffusionMap, NearIsometry])
def test_output_columns_carry_the_name_of_the_estimator(estimator, container):
    pytest.importorskip(container)
    frame = estimator(3).set_output(transform=container).fit_transform(cloud(30))
    prefix = estimator.__name__.lower()
    assert list(frame.columns) == [f"{prefix}0", f"{prefix}1", f"{prefix}2"]


@pytest.mark.parametrize("kind", [HeatSketch, DiffusionMap])
def test_a_grid_search_over_a_pipeline_chooses_parameters(kind):
    X, y = make_moons(120, noise=0.1, random_state=0)
    name = kind.__name__.lower()
    model = make_pipeline(StandardScaler(), kind(4), KNeighborsClassifier(3))
    grid = {f"{name}__n_neighbors": [5, 9], f"{name}__weights": ["local", 0.5]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9
    assert search.predict(X[:5]).shape == (5,)


def test_a_grid_search_over_labels_scores_them():
    X, y = make_moons(120, noise=0.1, random_state=0)
    search = GridSearchCV(HeatLabels(), {"n_neighbors": [5, 9]}, cv=2, error_score="raise")
    assert search.fit(X, y).best_score_ > 0.9
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
