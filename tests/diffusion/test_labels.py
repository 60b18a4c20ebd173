"""Poisson learning, against dense solutions of the same equations."""

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud, two_blobs
from scipy import sparse
from scipy.spatial.distance import cdist

from heatsketch import HeatLabels, HeatSketch
from heatsketch.diffusion import degree_scaling, heat_operator, poisson_learning, symmetric_scaling
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._labels import (
    TOLERANCE,
    class_probabilities,
    class_weights,
    conformal_threshold,
    label_sources,
    n_held_out,
    neighbor_means,
    potentials,
)
from heatsketch.diffusion._links import WEAKEST, link_weights
from heatsketch.exceptions import HeatSketchError
from heatsketch.testing import tolerance


def weights_of(X):
    K = np.array(affinity(X, 0.5))
    np.fill_diagonal(K, 0)
    return K


def some_labels(n, seed=0, n_classes=3):
    labels = np.full(n, -1)
    chosen = np.random.default_rng(seed).permutation(n)[:12]
    labels[chosen] = np.arange(12) % n_classes
    return labels


@pytest.mark.parametrize("horizon", [10, 400, 10_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_potentials_solve_their_equation(seed, horizon):
    """All eigenvalues have the same bound of their relative error, and so has the block."""
    W = weights_of(cloud(80, 2, seed))
    sources = label_sources(some_labels(80, seed), 3)
    found = potentials(W, sources, horizon=horizon).block
    root = np.sqrt(W.sum(axis=1))[:, np.newaxis]
    A = W / root / root.T
    expected = np.linalg.solve(np.eye(80) - (1 - 1 / horizon) * A, sources / root)
    assert np.linalg.norm(root * found - expected) <= TOLERANCE * np.linalg.norm(expected)


def test_without_a_horizon_it_is_the_poisson_equation():
    W = weights_of(circle(60))
    sources = label_sources(some_labels(60), 3)
    u = potentials(W, sources, horizon=1e7).block
    left = W.sum(axis=1)[:, np.newaxis] * u - W @ u
    assert np.linalg.norm(left - sources) <= 10 * TOLERANCE * np.linalg.norm(sources)


def test_sources_sum_to_zero_and_weights_are_repetitions():
    labels, weights = some_labels(40), np.arange(40.0)
    sources = label_sources(labels, 4, weights)
    np.testing.assert_allclose(sources.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(sources.sum(axis=1), 0, atol=1e-12)
    assert not sources[labels < 0].any()
    repeated = label_sources(np.repeat(labels, weights.astype(int)), 4)
    starts = np.cumsum(weights.astype(int))[:-1]
    np.testing.assert_allclose(np.add.reduceat(repeated, starts)[1:], sources[2:], atol=1e-12)


def test_two_groups_get_the_labels_of_their_one_example():
    X = two_blobs(200, gap=8)
    labels = np.full(200, -1)
    labels[[0, 150]] = [1, 0]
    found = poisson_learning(weights_of(X), labels).argmax(axis=1)
    np.testing.assert_array_equal(found, np.arange(200) < 100)


def test_names_of_classes_do_not_matter():
    W, labels = weights_of(cloud(80, 2)), some_labels(80)
    renamed = np.where(labels < 0, -1, 2 - labels)
    np.testing.assert_allclose(
        poisson_learning(W, renamed)[:, ::-1], poisson_learning(W, labels), atol=1e-12
    )


def test_weights_and_the_horizon_reach_the_potentials():
    W, labels, weights = weights_of(cloud(80, 2)), some_labels(80), np.arange(1.0, 81)
    found = poisson_learning(W, labels, weights=weights, horizon=30)
    wanted = potentials(W, label_sources(labels, 3, weights), horizon=30).block
    np.testing.assert_array_equal(found, wanted)


def test_one_class_alone_has_no_potential():
    found = poisson_learning(weights_of(cloud(80, 2)), np.minimum(some_labels(80), 0))
    np.testing.assert_array_equal(found, np.zeros((80, 1)))


@pytest.mark.parametrize("labels", [np.full(30, -1), np.zeros(29, int), np.zeros(30)])
def test_invalid_labels_are_an_error(labels):
    with pytest.raises(HeatSketchError, match="use -1 for unknown"):
        poisson_learning(weights_of(circle(30)), labels)


# --- links and means ---------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [degree_scaling, symmetric_scaling])
@pytest.mark.parametrize("exponent", [1, 8])
def test_links_and_means_are_those_of_the_affinity(scaling, exponent):
    K = sparse.csr_array(affinity(cloud(60, 2), 0.5, n_neighbors=8))
    A, block = heat_operator(K, scaling(K)), cloud(60, 4)
    powers = K.toarray() ** exponent
    means = powers @ block / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(neighbor_means(A, block, exponent=exponent), means, rtol=1e-12)
    weakest = WEAKEST if exponent > 1 else 0
    links = np.where(powers > 0, np.maximum(K.toarray(), weakest) ** exponent, 0)
    assert (powers < links).any() == (exponent > 1)
    np.fill_diagonal(links, 0)
    found = link_weights(A, 1 / A.s, exponent=exponent)
    np.testing.assert_allclose(found.toarray(), links, rtol=1e-12)


@pytest.mark.parametrize("exponent", [1, 8])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_only_points_without_links_keep_a_self_loop_of_weight_one(exponent, dtype):
    K = sparse.csr_array(np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]], dtype))
    A = heat_operator(K, degree_scaling(K))
    before = A.matrix.copy()
    found = link_weights(A, 1 / A.s, exponent=exponent)
    assert found.dtype == np.float64
    assert found.indices.dtype == A.matrix.indices.dtype
    expected = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(found.toarray(), expected, rtol=tolerance(dtype))
    np.testing.assert_array_equal(A.matrix.toarray(), before.toarray())


def test_labels_need_the_entries_in_memory():
    X, y = cloud(20, 2), np.where(np.arange(20) < 4, np.arange(20) % 2, -1)
    K = affinity(X, 0.5)
    distances = cdist(X, X)
    for parameters, given, remedy in [
        ({"n_neighbors": None}, X, {"n_neighbors": 15}),
        ({"metric": "precomputed", "n_neighbors": None}, distances, {"n_neighbors": 15}),
        ({"affinity": "precomputed"}, K, {}),
    ]:
        with pytest.raises(HeatSketchError, match=r"n_neighbors=15.*csr_array") as raised:
            HeatLabels(HeatSketch(2, **parameters)).fit(given, y)
        assert raised.value.parameters == {"n_neighbors": 15}
        advised = given if remedy else sparse.csr_array(np.where(K > 0.01, K, 0))
        HeatLabels(HeatSketch(2, **parameters | remedy)).fit(advised, y)


def test_a_point_of_weak_links_alone_gets_the_label_of_its_neighbor():
    """To the eighth power its affinity would be zero, and the point isolated."""
    K = sparse.csr_array(np.eye(4) + np.diag([0.5, 0.5, 1e-60], 1) + np.diag([0.5, 0.5, 1e-60], -1))
    links = link_weights(heat_operator(K, degree_scaling(K)), np.sqrt(K.sum(axis=1)), exponent=8)
    found = poisson_learning(links, [0, -1, 1, -1])
    assert found.argmax(axis=1)[3] == 1
    assert np.isfinite(found).all()


def test_copies_that_share_rows_are_as_many_points():
    distinct = sparse.csr_array(affinity(cloud(20, 2), 0.5, n_neighbors=6))
    counts = np.arange(20) % 3 + 1
    K = SharedRows(distinct, np.concatenate([[0], np.cumsum(counts)]))
    A, block = heat_operator(K, degree_scaling(K)), cloud(K.shape[0], 2)
    plain = sparse.csr_array(np.repeat(np.repeat(distinct.toarray(), counts, 0), counts, 1))
    B = heat_operator(plain, degree_scaling(plain))
    found = neighbor_means(A, block, exponent=8)
    np.testing.assert_allclose(found, neighbor_means(B, block, exponent=8), rtol=1e-12)
    # All but the self-loops of copies.
    left = link_weights(A, 1 / A.s) @ np.eye(K.shape[0])
    is_copy = np.repeat(counts, counts) > 1
    expected = link_weights(B, 1 / B.s).toarray() + np.diag(is_copy.astype(float))
    np.testing.assert_allclose(left, expected, rtol=1e-12)


# --- probabilities and sets --------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_probabilities_have_the_means_that_were_asked_for(seed):
    scores, priors = cloud(200, 3, seed), np.array([0.2, 0.7, 0.1])
    weights = class_weights(scores, 1.0, priors)
    found = class_probabilities(scores, 1.0, weights)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.mean(axis=0), priors, atol=1e-6)


def test_probabilities_of_large_scores_do_not_overflow():
    scores, weights = np.array([[1e6, 0], [0, -1e6], [-1e6, -1e6]]), np.array([1.0, 3])
    found = class_probabilities(scores, 1.0, weights)
    np.testing.assert_allclose(found, [[1, 0], [1, 0], [0.25, 0.75]])


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("n_scores", [9, 20, 99])
def test_thresholds_cover_a_new_score(n_scores, coverage):
    """With probability rank / (m + 1) exactly, for scores without ties."""
    scores = np.random.default_rng(0).uniform(size=(4000, n_scores + 1))
    found = [conformal_threshold(row[:-1], coverage) for row in scores]
    exact = np.ceil((n_scores + 1) * coverage - 1e-9) / (n_scores + 1)
    error = np.sqrt(exact * (1 - exact) / len(scores))
    assert abs(np.mean(scores[:, -1] <= found) - exact) <= 4 * error
    assert exact >= coverage


@pytest.mark.parametrize(
    ("coverage", "needed", "n_labels"),
    [(0.5, 1, 2), (0.8, 4, 8), (0.9, 9, 18), (0.95, 19, 38), (0.96, 24, 72)],
)
def test_thresholds_need_scores(coverage, needed, n_labels):
    assert conformal_threshold(np.arange(float(needed)), coverage) == needed - 1
    with pytest.raises(HeatSketchError) as caught:
        conformal_threshold(np.arange(needed - 1.0), coverage)
    assert str(caught.value) == (
        f"coverage={coverage} needs {needed} labels to be held out, and {needed - 1} are; "
        f"label at least {n_labels} rows, or use a smaller coverage."
    )
    assert caught.value.parameters == {"coverage": coverage}
    assert n_held_out(n_labels) == needed > n_held_out(n_labels - 1)
