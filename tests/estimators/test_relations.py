"""Relations between two embeddings, one of which follows from the other.

Fourteen of them, under points and options that hypothesis makes up; none needs to know what the
right answer is. Counts come from the profile (see ``conftest.py``): the same examples on every
change, and more of them, new every time, in ``make nightly``.
"""

import numpy as np
import pytest
from checks import tolerance
from hypothesis import assume, given
from hypothesis import strategies as st
from registry import RowBlocks, affinity, cloud

from heatsketch import HeatGraph
from heatsketch import sketch as sketch_of_graph
from heatsketch.diffusion import exact_diffusion_distances, gaussian_matrix, heat_operator, sketch
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._sketch import diffuse

N, EPSILON, COLUMNS = 40, 1.5, 6
SEED = st.integers(0, 2**32 - 1)
OPTIONS = st.fixed_dictionaries(
    {
        "power": st.integers(1, 6),
        "n_neighbors": st.sampled_from([None, 7]),
        "normalization": st.sampled_from(["symmetric", "bistochastic"]),
        "stationary": st.sampled_from(["drop", "keep"]),
        "random_matrix": st.sampled_from(["gaussian", "rademacher"]),
    }
)
# The iteration that makes A bistochastic stops at this residual, wherever rounding leads it.
STOPPED = 1e-9
pytestmark = [pytest.mark.timeout(1200), pytest.mark.untraced]


def made_of(X, options, *, k=COLUMNS, epsilon=EPSILON, seed=3, ids=None):
    of_graph = {name: options[name] for name in ("n_neighbors", "normalization")}
    graph = HeatGraph.from_points(X, weights=epsilon, ids=ids, **of_graph)
    rest = {name: value for name, value in options.items() if name not in of_graph}
    return sketch_of_graph(graph, k, random_state=seed, **rest)


def embed(X, options, **given):
    return made_of(X, options, **given).embedding


def operator(X, options):
    K = affinity(X, EPSILON, options["n_neighbors"])
    return heat_operator(K, SCALINGS[options["normalization"]](K))


def assert_close(found, wanted, rtol):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * abs(wanted).max())


def apart(X, n_neighbors):
    """Whether every neighbour is nearer than the first that is none, rounding or not."""
    if n_neighbors is None:
        return True
    d2 = np.sort(((X[:, np.newaxis] - X) ** 2).sum(axis=2), axis=1)
    return (d2[:, n_neighbors] - d2[:, n_neighbors - 1]).min() > 1e-6 * d2.max()


# --- the points ---------------------------------------------------------------------------


@given(options=OPTIONS, seed=SEED)
def test_1_permuted_rows_with_their_ids_permute_the_embedding(options, seed):
    X, order = cloud(N, seed=seed), np.random.default_rng(seed).permutation(N)
    Y = embed(X, options)
    assert_close(embed(X[order], options, ids=order), Y[order], STOPPED)


@given(options=OPTIONS, seed=SEED, length=st.floats(-1e3, 1e3))
def test_2_moved_points_have_the_same_embedding(options, seed, length):
    X = cloud(N, seed=seed)
    if apart(X, options["n_neighbors"]):
        shift = length * cloud(1, seed=seed + 1)
        assert_close(embed(X + shift, options), embed(X, options), 1e-7)


@given(options=OPTIONS, seed=SEED)
def test_3_turned_points_have_the_same_embedding(options, seed):
    X = cloud(N, seed=seed)
    turn, _ = np.linalg.qr(cloud(3, 3, seed=seed + 1))
    if apart(X, options["n_neighbors"]):
        assert_close(embed(X @ turn, options), embed(X, options), 1e-8)


@given(options=OPTIONS, seed=SEED, factor=st.floats(1e-6, 1e6))
def test_4_scaled_points_with_a_scaled_epsilon_have_the_same_embedding(options, seed, factor):
    X = cloud(N, seed=seed)
    if apart(X, options["n_neighbors"]):
        scaled = embed(factor * X, options, epsilon=EPSILON * factor**2)
        assert_close(scaled, embed(X, options), 1e-8)


@given(options=OPTIONS, seed=SEED, gap=st.floats(100, 1e4))
@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_5_a_far_component_leaves_the_first_one_alone(options, seed, gap):
    """With the stationary part kept: one direction is dropped, but two components have two."""
    options = {**options, "stationary": "keep", "weighting": "symmetric"}
    X = cloud(N, seed=seed)
    together = embed(np.vstack([X, X + gap]), options)[:N]
    assert_close(together, embed(X, options), STOPPED)


@given(options=OPTIONS, seed=SEED, copies=st.integers(2, 4))
def test_6_copies_share_what_one_point_had(options, seed, copies):
    """m copies of all points turn A into A (x) 11'/m: a sketch of the mean of their random rows."""
    X = cloud(N // 2, seed=seed)
    options = {**options, "n_neighbors": None, "stationary": "drop", "weighting": "symmetric"}
    many = np.repeat(X, copies, axis=0)
    found = embed(many, {**options, "random_matrix": "gaussian"}, seed=5)
    G = gaussian_matrix(len(many), COLUMNS, seed=5).reshape(len(X), copies, -1).mean(axis=1)
    A = operator(X, options)
    wanted = sketch(A, G, power=options["power"])
    assert_close(found, np.repeat(wanted, copies, axis=0), 1e-8)
    distances = exact_diffusion_distances(A, [[0, 1]], power=options["power"])
    shared = operator(many, options)
    less = exact_diffusion_distances(shared, [[0, copies]], power=options["power"])
    assert_close(less * np.sqrt(copies), distances, 1e-7)


# --- the random block ---------------------------------------------------------------------


@given(options=OPTIONS, small=st.integers(1, 20), seed=SEED)
def test_7_the_first_columns_of_a_wide_sketch_are_the_narrow_one(options, small, seed):
    """Of random components, since the leading directions depend on their number."""
    X = cloud(N, seed=seed)
    options = {**options, "n_leading": 0}
    wide, narrow = embed(X, options, k=20), embed(X, options, k=small)
    assert_close(wide[:, :small] * np.sqrt(20), narrow * np.sqrt(small), 1e-12)


@given(options=OPTIONS, seed=SEED, more=st.integers(1, 6))
def test_8_steps_add_up(options, seed, more):
    """On a graph to the last bit."""
    A, G = operator(cloud(N, seed=seed), options), gaussian_matrix(N, 3, seed=seed % 1000)
    once = sketch(A, G, power=options["power"] + more)
    twice = sketch(A, diffuse(A, G, power=options["power"]), power=more)
    if options["n_neighbors"] is None:
        assert_close(twice, once, 1e-12)
    else:
        np.testing.assert_array_equal(twice, once)


@given(options=OPTIONS, seed=SEED, cut=st.integers(1, 8))
def test_9_columns_know_nothing_of_each_other(options, seed, cut):
    """On a graph to the last bit: a block may be cut anywhere, and grow later.

    (Pieces of a block are strided; that they gave other bits once was found here.)
    """
    A, G = operator(cloud(N, seed=seed), options), gaussian_matrix(N, 9, seed=seed % 1000)
    whole = diffuse(A, G, power=options["power"])
    parts = [diffuse(A, part, power=options["power"]) for part in (G[:, :cut], G[:, cut:])]
    if options["n_neighbors"] is None:
        assert_close(np.hstack(parts), whole, 1e-12)
    else:
        np.testing.assert_array_equal(np.hstack(parts), whole)


@given(options=OPTIONS, seed=SEED, others=st.lists(SEED, min_size=2, max_size=2, unique=True))
def test_10_another_seed_is_another_draw_of_the_same_distances(options, seed, others):
    """Of a thousand columns, two sums of squares agree within their standard error."""
    X = cloud(N, seed=seed)
    first, second = (embed(X, options, k=1000, seed=draw) for draw in others)
    assert abs(first - second).max() > 0
    A = operator(X, options)
    kind = {"stationary": options["stationary"], "weighting": "random_walk"}
    exact = exact_diffusion_distances(A, [[0, 1]], power=options["power"], **kind)
    for Y in (first, second):
        # 6.5 standard errors: once in ten thousand million examples.
        assert abs(np.sum((Y[0] - Y[1]) ** 2) / exact[0] ** 2 - 1) < 6.5 * np.sqrt(2 / 1000)


# --- the machine --------------------------------------------------------------------------


@given(options=OPTIONS, seed=SEED)
def test_11_float32_is_nearly_float64(options, seed):
    """Each of up to six products rounds sums of forty terms."""
    X = cloud(N, seed=seed).astype(np.float32)
    assume(apart(X.astype(float), options["n_neighbors"]))
    Y, rough = embed(X.astype(float), options), embed(X, options)
    assert rough.dtype == np.float32
    assert_close(rough, Y, 10 * tolerance(np.float32, terms=N))


@given(options=OPTIONS, seed=SEED, dtype=st.sampled_from([">f8", ">f4", ">i4", ">u2"]))
def test_12_the_order_of_bytes_does_not_matter(options, seed, dtype):
    """On a graph to the last bit."""
    X = abs(100 * cloud(N, seed=seed)).astype(dtype)
    native = X.astype(X.dtype.newbyteorder("="))
    found, wanted = (embed(Z, options, epsilon=EPSILON * 1e4) for Z in (X, native))
    np.testing.assert_array_equal(found, wanted)


@given(options=OPTIONS, seed=SEED, step=st.integers(1, 3))
def test_13_the_order_in_memory_does_not_matter(options, seed, step):
    X = cloud(N, seed=seed)
    views = [np.asfortranarray(X), np.repeat(X, step, axis=1)[:, ::step], X[::-1].copy()[::-1]]
    Y = embed(X, options)
    for view in views:
        np.testing.assert_array_equal(embed(view, options), Y)


@given(options=OPTIONS, seed=SEED, n_blocks=st.integers(1, 9), data=st.data())
def test_14_chunks_do_not_matter(options, seed, n_blocks, data):
    """Neither of the affinity, nor of new rows."""
    X, new = cloud(N, seed=seed), cloud(12, seed=seed + 1)
    K = affinity(X, EPSILON)
    G = gaussian_matrix(N, 3, seed=0)
    scaling = SCALINGS[options["normalization"]]
    held = [heat_operator(form, scaling(form)) for form in (K, RowBlocks(K, n_blocks))]
    assert_close(*(sketch(A, G, power=options["power"]) for A in held), STOPPED)
    made, cut = made_of(X, options, k=3), data.draw(st.integers(1, 11))
    whole, *parts = (made.extend(made.graph.rows(some)) for some in (new, new[:cut], new[cut:]))
    parts = np.vstack(parts)
    if options["n_neighbors"] is None:
        assert_close(parts, whole, 1e-12)
    else:
        np.testing.assert_array_equal(parts, whole)
