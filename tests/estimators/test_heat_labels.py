"""Few labels, many points: laws of the classifier."""

import numpy as np
import pytest
from models import with_copies
from registry import cloud, two_blobs
from sklearn.datasets import load_digits

from heatsketch import HeatGraph, HeatLabels
from heatsketch.exceptions import DisconnectedGraphWarning, HeatSketchError


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


@pytest.mark.parametrize(("rate", "least"), [(1, 0.9), (5, 0.95)])
def test_few_labels_suffice_for_digits(rate, least):
    """Means of 20 samples are .94 and .97 (benchmarks/labels.py); LabelSpreading has .78, .93."""
    X, truth, _ = digits(rate)
    graph = HeatGraph.from_points(X)
    found = [
        np.mean(HeatLabels().fit(graph, digits(rate, seed)[2]).transduction_ == truth)
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


def test_sets_hold_the_truth_as_often_as_they_should():
    """The share in one sample has a beta distribution; ties only make it larger."""
    X, truth, _ = digits(8)
    graph, shares = HeatGraph.from_points(X), []
    for seed in range(10):
        y = digits(8, seed)[2]
        labels = HeatLabels(random_state=seed).fit(graph, y)
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
    graph, shares, sizes = HeatGraph.from_points(X), [], []
    for seed in range(20):
        y, known = np.full(300, -1), rng.permutation(300)[:60]
        y[known] = truth[known]
        labels = HeatLabels(random_state=seed).fit(graph, y)
        sets = np.zeros((240, 20), bool)
        sets[:, labels.classes_] = labels.predict_set(X[y < 0], coverage=0.8)
        shares.append(sets[np.arange(240), truth[y < 0]].mean())
        sizes.append(sets.sum(axis=1).mean())
    # The share in one sample has a beta distribution, except that there are few points.
    error = np.sqrt(0.8 * 0.2 * (1 / 22 + 1 / 240) / len(shares))
    assert np.mean(shares) >= 0.8 - 2 * error
    assert np.mean(sizes) < 10


def test_sets_are_larger_for_more_coverage_and_need_labels():
    X, _, y = digits(8)
    labels = HeatLabels().fit(X, y)
    larger, smaller = (labels.predict_set(X, coverage=coverage) for coverage in (0.9, 0.7))
    assert (larger >= smaller).all()
    assert (larger != smaller).any()
    few = HeatLabels().fit(X, digits(1)[2])
    assert len(few.held_out_) == 5
    with pytest.raises(HeatSketchError, match="coverage"):
        few.predict_set(X[:9])
    with pytest.raises(HeatSketchError, match="coverage"):
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
@pytest.mark.parametrize("points", [with_copies(0, 200), cloud(200)])
def test_suspects_are_labels_that_neighbors_outvote(points):
    X, rng = points, np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, rng.integers(0, 3, 200), -1)
    labels = HeatLabels().fit(X, y)
    A, places = labels.graph_.operator, np.argsort(labels.graph_.order)
    K = (A @ np.eye(200))[places][:, places] / np.outer(A.s[places], A.s[places])
    expected, (rows, margin, suggested) = plain_margins(K, y), labels.suspects()
    assert sorted(rows) == sorted(expected)
    np.testing.assert_allclose(margin, [expected[row] for row in rows], atol=1e-9)
    assert (np.diff(margin) >= 0).all()
    np.testing.assert_array_equal(suggested != y[rows], margin < 0)


def test_a_component_without_labels_has_no_opinion():
    X = np.vstack([two_blobs(60, gap=6), cloud(40, 2) + 100])
    y = np.full(100, -1)
    y[[0, 50]] = [0, 1]
    with (
        pytest.warns(DisconnectedGraphWarning, match="connected components"),
        pytest.warns(DisconnectedGraphWarning, match="40 of 100 rows"),
    ):
        labels = HeatLabels().fit(X, y)
    np.testing.assert_allclose(labels.label_distributions_[60:], 0.5, atol=1e-9)
    assert labels.label_distributions_[:60].max(axis=1).min() > 0.5
