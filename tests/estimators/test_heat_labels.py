"""Few labels, many points: laws of the classifier."""

import pickle

import numpy as np
import pytest
from registry import SEEDS, cloud, two_blobs
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import FOR_ALL

from heatsketch import DiffusionMap, HeatLabels, HeatSketch
from heatsketch.estimators.heat_labels import _some_labels
from heatsketch.exceptions import DisconnectedGraphWarning, HeatSketchError, RareClassWarning

IGNORED = (
    "ignore::heatsketch.exceptions.HeatSketchWarning",
    "ignore:X (has|does not have valid) feature names:UserWarning",
)


# Two classes named -1 and 1 are one of its checks; scikit-learn exempts LabelSpreading by name.
@pytest.mark.filterwarnings(*IGNORED)
@parametrize_with_checks([HeatLabels(unknown=-9)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings(*IGNORED)
@pytest.mark.parametrize("check", FOR_ALL, ids=lambda check: check.__name__)
def test_check_that_scikit_learn_does_not_generate(check):
    check("HeatLabels", HeatLabels(unknown=-9))


def digits(rate, seed=0):
    """Return images, digits, and labels of ``rate`` images of each digit."""
    X, truth = load_digits(return_X_y=True)
    rng, y = np.random.default_rng(seed), np.full(len(X), -1)
    for digit in range(10):
        some = rng.permutation(np.flatnonzero(truth == digit))[:rate]
        y[some] = digit
    return X, truth, y


def labelled(X, seed=0, n_classes=3):
    y = np.full(X.shape[0], -1)
    y[np.random.default_rng(seed).permutation(len(y))[:12]] = np.arange(12) % n_classes
    return y


def with_copies(seed):
    X = cloud(200, seed=seed)
    X[60:] = X[np.random.default_rng(seed).integers(0, 20, 140)]
    return X


# Models, and how X is made of points for them.
MODELS = {
    "default": (None, np.asarray),
    "float32": (None, lambda X: X.astype("float32")),
    "sparse": (None, lambda X: sparse.csr_array(np.maximum(X, 0.1))),
    "map": (DiffusionMap(3, n_neighbors=9), np.asarray),
    "sketch": (HeatSketch(4, n_neighbors=9, normalization="bistochastic"), np.asarray),
    "one bandwidth": (HeatSketch(4, epsilon="auto"), np.asarray),
    "cosine": (HeatSketch(4, metric="cosine"), np.asarray),
    "given graph": (
        HeatSketch(4, affinity="precomputed"),
        lambda X: sparse.csr_array(np.round(np.exp(-pairwise_distances(X)), 1)),
    ),
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("points", [with_copies, lambda seed: cloud(200, seed=seed)])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", SEEDS)
def test_training_points_keep_their_labels_and_probabilities(seed, model, points):
    graph, shape = MODELS[model]
    X = shape(points(seed))
    y = labelled(X, seed)
    labels = HeatLabels(graph).fit(X, y)
    np.testing.assert_array_equal(labels.predict_proba(X), labels.label_distributions_)
    np.testing.assert_array_equal(labels.predict(X), labels.transduction_)
    np.testing.assert_allclose(labels.label_distributions_.sum(axis=1), 1, rtol=1e-12)


def test_a_fitted_model_serves_as_a_new_one_does():
    X, _, y = digits(8)
    model = HeatSketch(8).fit(X)
    fresh = HeatLabels(HeatSketch(1, power=1)).fit(X, y)
    for labels in (HeatLabels(model).fit(X, y), HeatLabels(model).fit(None, y)):
        np.testing.assert_array_equal(labels.label_distributions_, fresh.label_distributions_)
        np.testing.assert_array_equal(labels.predict(X[:50]), fresh.predict(X[:50]))
        assert labels.n_features_in_ == 64
    assert not hasattr(clone(labels).model, "embedding_")
    again = pickle.loads(pickle.dumps(labels))
    np.testing.assert_array_equal(again.predict_set(X[:50]), labels.predict_set(X[:50]))


@pytest.mark.parametrize("change", [lambda X: X[::-1], lambda X: X[1:], lambda X: X[:, 1:]])
def test_a_model_of_other_rows_is_an_error(change):
    X = cloud(60)
    model = HeatSketch(4).fit(X)
    other = change(X)
    with pytest.raises(HeatSketchError, match="was fitted to other rows"):
        HeatLabels(model).fit(other, labelled(other))


@pytest.mark.parametrize(("rate", "least"), [(1, 0.9), (5, 0.95)])
def test_few_labels_suffice_for_digits(rate, least):
    """Means of 20 samples are .94 and .97 (benchmarks/labels.py); LabelSpreading has .78, .93."""
    X, truth, _ = digits(rate)
    model = HeatSketch(1, power=1).fit(X)
    found = [
        np.mean(HeatLabels(model).fit(None, digits(rate, seed)[2]).transduction_ == truth)
        for seed in range(6)
    ]
    assert np.mean(found) > least


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_labels_follow_long_curves():
    """Two lines without gaps, a label at one end of each: the other is hundreds of steps away."""
    along = np.linspace(0, 100, 500) + np.random.default_rng(0).uniform(-0.1, 0.1, (2, 500))
    X = np.column_stack([along.ravel(), np.repeat([0.0, 5.0], 500)])
    y = np.full(1000, -1)
    y[[0, 999]] = 0, 1  # opposite ends, so that the nearer label is mostly the wrong one
    np.testing.assert_array_equal(HeatLabels().fit(X, y).transduction_, np.repeat([0, 1], 500))


def test_labels_may_be_text_and_unknown_anything():
    X, _, y = digits(1)
    names = np.array(["", *"abcdefghij"])[y + 1]
    by_name, by_number = HeatLabels(unknown="").fit(X, names), HeatLabels().fit(X, y)
    assert by_name.classes_.tolist() == list("abcdefghij")
    np.testing.assert_array_equal(
        by_name.transduction_, np.array(list("abcdefghij"))[by_number.transduction_]
    )
    mixed = np.where(y < 0, None, names)
    np.testing.assert_array_equal(
        HeatLabels(unknown=None).fit(X, mixed).transduction_, by_name.transduction_
    )


def test_weights_count_relative_to_each_other_and_zero_is_unknown():
    X = cloud(150)
    y = labelled(X)
    plain = HeatLabels().fit(X, y)
    same = HeatLabels().fit(X, y, label_weights=np.full(150, 7.0))
    np.testing.assert_allclose(same.label_distributions_, plain.label_distributions_, atol=1e-9)
    some = np.flatnonzero(y >= 0)[:3]
    fewer, weights = y.copy(), np.ones(150)
    fewer[some], weights[some] = -1, 0
    np.testing.assert_array_equal(
        HeatLabels().fit(X, y, label_weights=weights).label_distributions_,
        HeatLabels().fit(X, fewer).label_distributions_,
    )
    heavy = HeatLabels().fit(X, y, label_weights=np.where(y == 0, 9.0, 1.0))
    assert (heavy.transduction_ == 0).sum() > (plain.transduction_ == 0).sum()


def test_probabilities_of_training_points_have_the_priors_as_means():
    X = cloud(150)
    priors = [0.6, 0.3, 0.1]
    found = HeatLabels(priors=priors).fit(X, labelled(X)).label_distributions_
    np.testing.assert_allclose(found.mean(axis=0), priors, atol=1e-6)


def test_sets_hold_the_truth_as_often_as_they_should():
    """The share in one sample has a beta distribution; ties only make it larger."""
    X, truth, _ = digits(8)
    model, shares = HeatSketch(1, power=1).fit(X), []
    for seed in range(10):
        y = digits(8, seed)[2]
        labels = HeatLabels(model, random_state=seed).fit(None, y)
        assert len(labels.held_out_) == 26
        assert (y[labels.held_out_] >= 0).all()
        sets = labels.predict_set(X[y < 0], coverage=0.8)
        shares.append(sets[np.arange(len(sets)), truth[y < 0]].mean())
    error = np.sqrt(0.8 * 0.2 / 28 / len(shares))
    assert 0.8 - 3 * error <= np.mean(shares) <= 0.8 + 1 / 27 + 3 * error


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
def test_sets_hold_the_truth_where_classes_are_rare():
    """Of 20 classes, many have one label or none; no set contains the latter."""
    rng, frequencies = np.random.default_rng(0), 1 / np.arange(1, 21)
    truth = rng.choice(20, 300, p=frequencies / frequencies.sum())
    X = rng.standard_normal((20, 10))[truth] + 0.5 * rng.standard_normal((300, 10))
    model, shares, sizes = HeatSketch(1, power=1).fit(X), [], []
    for seed in range(20):
        y, known = np.full(300, -1), rng.permutation(300)[:60]
        y[known] = truth[known]
        labels = HeatLabels(model, random_state=seed).fit(None, y)
        sets = np.zeros((240, 20), bool)
        sets[:, labels.classes_] = labels.predict_set(X[y < 0], coverage=0.8)
        shares.append(sets[np.arange(240), truth[y < 0]].mean())
        sizes.append(sets.sum(axis=1).mean())
    # The share in one sample has a beta distribution, except that there are few points.
    error = np.sqrt(0.8 * 0.2 * (1 / 22 + 1 / 240) / len(shares))
    assert np.mean(shares) >= 0.8 - 2 * error
    assert np.mean(sizes) < 10


def test_sets_hold_all_classes_where_no_smaller_set_is_sure():
    """Each class has one label: no held-out label has a class that the others know."""
    y = np.full(60, -1)
    y[:20] = np.arange(20)
    X = cloud(60)
    labels = HeatLabels().fit(X, y)
    with pytest.warns(RareClassWarning, match=r"coverage=0\.9"):
        assert labels.predict_set(X).all()


def test_classes_with_held_out_labels_only_are_in_no_set():
    """The priors of the others are relative to each other."""
    X, y = cloud(200), np.full(200, -1)
    y[:41] = [0, 1] * 20 + [2]
    model = HeatSketch(1, power=1).fit(X)
    held_out = [40 in HeatLabels(model, random_state=i).fit(None, y).held_out_ for i in range(9)]
    assert 0 < sum(held_out) < 9
    labels = HeatLabels(model, random_state=held_out.index(True), priors=[0.2, 0.4, 0.4])
    sets = labels.fit(None, y).predict_set(X)
    assert sets[:, :2].any()
    assert not sets[:, 2].any()


def test_held_out_labels_are_drawn_from_all():
    """Both labels of a class are held out by chance, not never."""
    y = np.full(60, -1)
    y[:20] = np.arange(20) // 2
    together = []
    for seed in range(500):
        held_out = _some_labels(y, seed)
        assert len(held_out) == 10
        together.append(np.mean(np.bincount(y[held_out], minlength=10) == 2))
    assert abs(np.mean(together) - 9 / 38) < 0.03


def test_sets_are_larger_for_more_coverage_and_need_labels():
    X, _, y = digits(8)
    labels = HeatLabels().fit(X, y)
    larger, smaller = (labels.predict_set(X, coverage=coverage) for coverage in (0.9, 0.7))
    assert (larger >= smaller).all()
    assert (larger != smaller).any()
    few = HeatLabels().fit(X, digits(1)[2])
    assert len(few.held_out_) == 5
    with pytest.raises(HeatSketchError, match=r"coverage=0\.9 needs 9 .* 5 are; .* 18 rows"):
        few.predict_set(X[:9])
    with pytest.raises(HeatSketchError, match=r"coverage=1\.5"):
        labels.predict_set(X, coverage=1.5)


def plain_margins(K, y):
    """Shares of the votes of labelled neighbours, row by row."""
    found = {}
    for i in np.flatnonzero(y >= 0):
        votes = np.zeros(y.max() + 1)
        for j in np.flatnonzero((K[i] > 0) & (y >= 0)):
            if j != i:
                votes[y[j]] += max(K[i, j], 0.1) ** 2
        votes /= votes.sum() or 1
        found[i] = votes[y[i]] - np.delete(votes, y[i]).max()
    return found


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("points", [with_copies, lambda seed: cloud(200, seed=seed)])
def test_suspects_are_labels_that_neighbors_outvote(points):
    X, rng = points(0), np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, rng.integers(0, 3, 200), -1)
    labels = HeatLabels().fit(X, y)
    A, places = labels.model_.heat_operator_, np.argsort(labels.model_.order_)
    K = (A @ np.eye(200))[places][:, places] / np.outer(A.s[places], A.s[places])
    expected, (rows, margin, suggested) = plain_margins(K, y), labels.suspects()
    assert sorted(rows) == sorted(expected)
    np.testing.assert_allclose(margin, [expected[row] for row in rows], atol=1e-9)
    assert (np.diff(margin) >= 0).all()
    np.testing.assert_array_equal(suggested != y[rows], margin < 0)
    again = pickle.loads(pickle.dumps(labels)).suspects()
    np.testing.assert_array_equal(again.rows, rows)


def test_wrong_labels_are_the_first_suspects():
    X, truth, _ = digits(1)
    wrong = np.random.default_rng(0).choice(len(X), 90, replace=False)
    y = truth.copy()
    y[wrong] = (y[wrong] + 1) % 10
    found = HeatLabels().fit(X, y).suspects()
    is_wrong = np.isin(found.rows[:90], wrong)
    assert is_wrong.mean() > 0.9
    assert (found.suggested == truth[found.rows])[:90][is_wrong].mean() > 0.95


def test_a_component_without_labels_has_no_opinion():
    X = np.vstack([two_blobs(60, gap=6), cloud(40, 2) + 100])
    y = np.full(100, -1)
    y[[0, 50]] = [0, 1]
    with (
        pytest.warns(DisconnectedGraphWarning, match="connected components: distances"),
        pytest.warns(DisconnectedGraphWarning, match="no label .* of 40 of 100 rows"),
    ):
        labels = HeatLabels().fit(X, y)
    np.testing.assert_allclose(labels.label_distributions_[60:], 0.5, atol=1e-9)
    assert labels.label_distributions_[:60].max(axis=1).min() > 0.5


def test_a_model_without_training_data_is_an_error(tmp_path):
    from heatsketch import load

    X = cloud(60)
    HeatSketch(4).fit(X).save(tmp_path / "model", training_data=False)
    with pytest.raises(HeatSketchError, match="needs the training data"):
        HeatLabels(load(tmp_path / "model")).fit(None, labelled(X))


@pytest.mark.parametrize(
    ("parameters", "change", "weights", "message"),
    [
        ({}, lambda y: np.full(len(y), -1), None, "has 0 known labels for 60 rows"),
        ({}, lambda y: y[1:], None, "for 60 rows of X"),
        ({}, lambda y: y, np.full(60, -1.0), "label_weights="),
        ({}, lambda y: y, np.ones(59), "label_weights="),
        ({"priors": [0.5, 0.5]}, lambda y: y, None, "must be 3 positive numbers"),
        ({"priors": [0.5, 0.5, 0.5]}, lambda y: y, None, "sum to one"),
        ({"priors": [1.0, 0.5, -0.5]}, lambda y: y, None, "positive"),
        ({"model": HeatSketch(4, n_neighbors=None)}, lambda y: y, None, "n_neighbors=15"),
    ],
)
def test_invalid_input_is_named(parameters, change, weights, message):
    X = cloud(60)
    with pytest.raises(HeatSketchError, match=message):
        HeatLabels(**parameters).fit(X, change(labelled(X)), label_weights=weights)
