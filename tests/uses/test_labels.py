"""Poisson learning: potentials, votes of neighbours, probabilities and sets."""

import numpy as np
import pytest
from registry import SEEDS, affinity, cloud
from scipy import sparse

from heatsketch import HeatGraph
from heatsketch.diffusion import degree_scaling, heat_operator
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.uses._labels import (
    TOLERANCE,
    class_probabilities,
    class_weights,
    conformal_threshold,
    label_margins,
    label_sources,
    neighbor_means,
    potentials,
)
from heatsketch.uses._links import link_weights


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
    found = potentials(W, sources, horizon=horizon)
    root = np.sqrt(W.sum(axis=1))[:, np.newaxis]
    A = W / root / root.T
    expected = np.linalg.solve(np.eye(80) - (1 - 1 / horizon) * A, sources / root)
    assert np.linalg.norm(root * found - expected) <= TOLERANCE * np.linalg.norm(expected)


def test_sources_sum_to_zero_and_weights_are_repetitions():
    labels, weights = some_labels(40), np.arange(40.0)
    sources = label_sources(labels, 4, weights)
    np.testing.assert_allclose(sources.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(sources.sum(axis=1), 0, atol=1e-12)
    assert not sources[labels < 0].any()
    repeated = label_sources(np.repeat(labels, weights.astype(int)), 4)
    starts = np.cumsum(weights.astype(int))[:-1]
    np.testing.assert_allclose(np.add.reduceat(repeated, starts)[1:], sources[2:], atol=1e-12)


# --- means and votes of neighbours -------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["degree", "symmetric"])
@pytest.mark.parametrize("exponent", [1, 8])
def test_means_are_those_of_the_affinity(normalization, exponent):
    K, block = affinity(cloud(60, 2), 0.5, n_neighbors=8), cloud(60, 4)
    powers = K.toarray() ** exponent
    means = powers @ block / powers.sum(axis=1, keepdims=True)
    A = HeatGraph.from_affinity(K, self_loops=False, normalization=normalization).operator
    np.testing.assert_allclose(neighbor_means(A, block, exponent=exponent), means, rtol=1e-12)


def test_copies_that_share_rows_vote_as_many_points():
    distinct = sparse.csr_array(affinity(cloud(20, 2), 0.5, n_neighbors=6))
    counts = np.arange(20) % 3 + 1
    K = SharedRows(distinct, np.concatenate([[0], np.cumsum(counts)]))
    plain = sparse.csr_array(np.repeat(np.repeat(distinct.toarray(), counts, 0), counts, 1))
    block = cloud(K.shape[0], 2)
    found, wanted = (
        neighbor_means(heat_operator(W, degree_scaling(W)), block, exponent=8) for W in (K, plain)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_margins_are_votes_of_labelled_neighbours(seed):
    """In the order of the points, with copies, which vote for each other."""
    X = np.vstack([cloud(90, 2, seed), np.repeat(cloud(5, 2, seed), 20, axis=0)])
    graph = HeatGraph.from_points(X, ids=np.random.default_rng(seed).permutation(len(X)))
    labels = np.random.default_rng(seed).integers(-1, 3, len(X))
    A, order = graph.operator, graph.order
    K = (A @ np.eye(len(X))) / A.s[:, np.newaxis] / A.s
    votes = np.zeros((len(X), len(X)))
    votes[np.ix_(order, order)] = K
    np.fill_diagonal(votes, 0)
    votes = votes @ (labels[:, np.newaxis] == np.arange(3))
    votes /= np.maximum(votes.sum(axis=1, keepdims=True), 1e-300)
    margins, rivals = label_margins(graph, link_weights(graph), labels, 3)
    known = np.flatnonzero(labels >= 0)
    others = votes[known]
    own = others[np.arange(len(known)), labels[known]].copy()
    others[np.arange(len(known)), labels[known]] = -1
    np.testing.assert_allclose(margins[known], own - others.max(axis=1), atol=1e-9)
    is_clear = np.ptp(np.sort(others, axis=1)[:, 1:], axis=1) > 1e-9
    np.testing.assert_array_equal(rivals[known][is_clear], others.argmax(axis=1)[is_clear])
    assert not margins[labels < 0].any()


# --- probabilities and sets --------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_probabilities_have_the_means_that_were_asked_for(seed):
    scores, priors = cloud(200, 3, seed), np.array([0.2, 0.7, 0.1])
    weights = class_weights(scores, 1.0, priors)
    found = class_probabilities(scores, 1.0, weights)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.mean(axis=0), priors, atol=1e-6)


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
