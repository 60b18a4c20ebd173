"""Invalid arguments of the functions of diffusion: the type of the error, and whom it names."""

import re

import numpy as np
import pytest
from registry import affinity, cloud

from heatsketch.diffusion import (
    bilipschitz_constant,
    degree_scaling,
    diffusion_coordinates,
    diffusion_distances,
    diffusion_neighbors,
    estimate_epsilon,
    exact_diffusion_distances,
    gaussian_affinity,
    gaussian_matrix,
    heat_operator,
    local_scales,
    rademacher_matrix,
    ritz_pairs,
    sketch,
    symmetric_scaling,
)
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._spectral import eigenvalue_powers
from heatsketch.exceptions import (
    AffinityError,
    DegenerateKernelError,
    DtypeError,
    HeatSketchError,
    MissingValueError,
    ScaleError,
    SpectrumError,
)
from heatsketch.graph import neighbor_graph

X = cloud(60)
D2, Y, V = neighbor_graph(X), gaussian_matrix(60, 4, seed=0), cloud(60, 7)
NEAREST = neighbor_graph(X, n_neighbors=10)
K = affinity(X, 1.0)
DENSE = heat_operator(K, symmetric_scaling(K))
PADDED = NEAREST.tobsr((2, 2)), neighbor_graph(cloud(9), n_neighbors=3).todia()


def with_entry(values, value):
    changed = values.astype(type(value)) if isinstance(value, complex) else values.copy()
    changed[3, 1] = value
    return changed


INVALID = [
    *[(gaussian_affinity, (D2,), {"epsilon": e}, HeatSketchError, "epsilon") for e in (0, None)],
    *[(gaussian_affinity, (d2,), {"epsilon": 1.0}, AffinityError, "d2") for d2 in PADDED],
    *[(local_scales, (np.ones(shape),), {}, HeatSketchError, "d2") for shape in [(0, 5), (5,)]],
    # --- the bandwidth
    (estimate_epsilon, (np.zeros((5, 5)),), {}, DegenerateKernelError, "epsilon"),
    (estimate_epsilon, (with_entry(D2, np.nan),), {}, MissingValueError, "X"),
    (estimate_epsilon, (with_entry(D2, -1),), {}, AffinityError, "X"),
    (estimate_epsilon, (PADDED[0],), {}, AffinityError, "X"),
    (estimate_epsilon, (X,), {"metric": lambda x, y: np.nan}, ScaleError, "metric"),
    (estimate_epsilon, (with_entry(X, np.nan),), {"metric": "l2"}, MissingValueError, "X"),
    (estimate_epsilon, (X[0],), {"metric": "l2"}, HeatSketchError, "X"),
    (estimate_epsilon, (X,), {"metric": "crow"}, HeatSketchError, "metric"),
    (estimate_epsilon, (0 * X,), {"metric": "cosine"}, AffinityError, "X"),
    # --- the random matrix
    *[(gaussian_matrix, (r, 2), {"seed": 0}, DtypeError, "rows") for r in ([-1], [0.5], -3, True)],
    *[(rademacher_matrix, (2, n), {"seed": 0}, DtypeError, "n_columns") for n in (True, 2.5, "2")],
    *[(gaussian_matrix, (2, n), {"seed": 0}, HeatSketchError, "n_columns") for n in (-5, 2**63)],
    (gaussian_matrix, (3, 2), {"seed": 0, "first_column": -1}, HeatSketchError, "first_column"),
    *[(gaussian_matrix, (3, 2), {"seed": 0, "dtype": t}, DtypeError, "dtype") for t in (int, "f2")],
    *[(gaussian_matrix, (3, 2), {"seed": s}, ValueError, "seed") for s in (-1, 2**128, 0.5, None)],
    # --- sketches and eigenvectors
    (sketch, (np.eye(9), Y), {"power": 3}, HeatSketchError, "A"),
    *[(sketch, (DENSE, Y), {"power": p}, SpectrumError, "power") for p in (-1, np.nan, 2.5, 1e12)],
    *[(diffusion_coordinates, (DENSE, n), {}, HeatSketchError, "n_components") for n in (0, 60)],
    *[(ritz_pairs, (DENSE, V, n), {}, HeatSketchError, "n_pairs") for n in (0, 8)],
    (eigenvalue_powers, (np.array([0.5, -0.25]), 0.5), {}, SpectrumError, "power"),
    (eigenvalue_powers, (np.array([0.5, 1e-9]), -1), {}, SpectrumError, "eigenvalue"),
    *[(scaling, (X[0],), {}, HeatSketchError, "K") for scaling in SCALINGS.values()],
    (degree_scaling, (D2 + 1j,), {}, DtypeError, "K"),
    # --- distances and their intervals
    (scale_interval, (8, 0.9), {"random_matrix": "dice"}, HeatSketchError, "random_matrix"),
    (diffusion_distances, (with_entry(Y, np.nan), [[0, 3]]), {}, MissingValueError, "Y"),
    *[
        (diffusion_distances, (Y, pairs), {}, HeatSketchError, "pairs")
        for pairs in (
            [[0, 1], [2]],
            [0, 1],
            np.zeros((2, 3), int),
            [[0.0, 1.0]],
            [[-1, 0]],
            [[0, 60]],
        )
    ],
    (exact_diffusion_distances, (DENSE,), {"power": 1.5}, HeatSketchError, "power"),
    (
        exact_diffusion_distances,
        (DENSE,),
        {"power": 1, "stationary": "forget"},
        HeatSketchError,
        "stationary",
    ),
    (
        exact_diffusion_distances,
        (DENSE,),
        {"power": 1, "weighting": "heavy"},
        HeatSketchError,
        "weighting",
    ),
    *[
        (diffusion_neighbors, (Y, rows), {"n_neighbors": 2}, HeatSketchError, "rows")
        for rows in ([-1], [60], [1.0], [True] * 60, 3, [[1, 2]])
    ],
    *[
        (diffusion_neighbors, (Y, [0]), {"n_neighbors": n}, HeatSketchError, "n_neighbors")
        for n in (0, 59)
    ],
    (bilipschitz_constant, (Y, np.zeros((60, 60))), {}, HeatSketchError, "distances"),
]


@pytest.mark.parametrize(("function", "arguments", "options", "error", "name"), INVALID)
def test_an_invalid_argument_is_named(function, arguments, options, error, name):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert re.search(rf"\b{name}\b", str(caught.value))
