"""An operator over all pairs is stored as its points, and recomputed with the same bits."""

import pickle

import numpy as np
import pytest
from registry import cloud

from heatsketch.diffusion import degree_scaling, gaussian_affinity, heat_operator
from heatsketch.diffusion._affinity import locally_scaled
from heatsketch.diffusion._all_pairs import AllPairs, remembering_points
from heatsketch.graph._neighbors import find_neighbors
from heatsketch.graph._pairwise import DistanceTiles

X = cloud(30)
SCALES = {"one bandwidth": None, "local scales": np.linspace(0.5, 2, 30)}


def operator_of(metric="euclidean", scales=None, in_tiles=False, **options):
    """The neighbours of the points, and the operator computed from their distances."""
    neighbors, d2 = find_neighbors(X, metric=metric, **options)
    d2 = DistanceTiles(X, metric) if in_tiles else d2
    d2 = d2 if scales is None else locally_scaled(d2, scales, scales)
    K = gaussian_affinity(d2, epsilon=0.7)
    return neighbors, heat_operator(K, degree_scaling(K))


@pytest.mark.parametrize("in_tiles", [False, True])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_what_is_recomputed_has_the_same_bits(metric, scales, in_tiles):
    neighbors, A = operator_of(metric, SCALES[scales], in_tiles)
    stored = remembering_points(A, neighbors, scales=SCALES[scales], bandwidth=0.7)
    assert type(stored.matrix) is AllPairs and stored.matrix.K is A.matrix.K
    again = pickle.loads(pickle.dumps(stored))
    assert isinstance(again.matrix.K, DistanceTiles) == in_tiles
    assert (again.matrix.shape, again.matrix.dtype) == ((30, 30), X.dtype)
    np.testing.assert_array_equal(again.s, A.s)
    np.testing.assert_array_equal(again.stationary, A.stationary)
    for block in (X, X[:, 0]):
        np.testing.assert_array_equal(stored @ block, A @ block)
        np.testing.assert_array_equal(again @ block, A @ block)
        np.testing.assert_array_equal(again.matrix @ block, A.matrix @ block)


def test_pairs_are_left_out_of_pickles():
    neighbors, A = operator_of()
    stored = remembering_points(A, neighbors, scales=None, bandwidth=0.7)
    size = len(pickle.dumps(stored.matrix))
    assert "K" not in pickle.loads(pickle.dumps(stored.matrix)).__dict__
    assert size < len(pickle.dumps(A.matrix.K))


def test_other_operators_are_returned_unchanged():
    neighbors, A = operator_of()
    few, sparse_operator = operator_of(n_neighbors=5)
    for others, operator in ((few, sparse_operator), (neighbors, sparse_operator), (None, A)):
        assert remembering_points(operator, others, scales=None, bandwidth=0.7) is operator
