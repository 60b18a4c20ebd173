"""The random stream: frozen, addressed, fast, and random."""

import itertools
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import SEEDS
from scipy import stats

from heatsketch import HeatSketch
from heatsketch.diffusion import estimate_epsilon, gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._bandwidth import sampled_squares
from heatsketch.diffusion._random_matrix import STREAM_VERSION, Kind, gaussians_apart, random_words
from heatsketch.exceptions import DtypeError, HeatSketchError

VECTORS = json.loads(Path(__file__).with_name("stream_vectors.json").read_text())
BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}

seeds = st.integers(0, 2**128 - 1)
row_ids = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20).map(
    lambda ids: np.array(ids, np.uint64)
)


def from_definition(kind, row, column, seed):
    """One entry, from the words of NumPy's Philox and the words of the docstring."""
    if kind == "rademacher":
        words = random_words(row, column // 256, kind=Kind.RADEMACHER, seed=seed)
        return 1.0 - 2.0 * ((int(words[column % 256 // 64]) >> (column % 64)) & 1)
    word = int(random_words(row, column // 8, kind=Kind.GAUSSIAN, seed=seed)[column % 8 // 2])
    high, low = word >> 32, word & 0xFFFFFFFF
    radius = np.sqrt(-2 * np.log((high + 0.5) / 2**32))
    angle = ((low & 0x1FFFFFFF) + 0.5) / 2**29 * np.pi / 4
    pair = [radius * np.cos(angle), radius * np.sin(angle)]
    if low >> 29 & 1:
        pair.reverse()
    return pair[column % 2] * (1 - 2 * (low >> (30 + column % 2) & 1))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['what']}-{v['seed']}")
def test_the_stream_is_frozen(vector):
    seed, rows, what = int(vector["seed"]), vector["rows"], vector["what"]
    if what == "raw":
        found = [
            f"{word:016x}"
            for row in rows
            for kind in (Kind.GAUSSIAN, Kind.RADEMACHER)
            for tile in (0, 1)
            for word in random_words(row, tile, kind=kind, seed=seed)
        ]
    else:
        name, dtype = what.split()
        block = BLOCKS[name](np.array(rows, np.uint64), 11, seed=seed, dtype=dtype)
        found = [float(value).hex() for value in block.ravel()]
    assert found == vector["values"]


def test_vectors_are_of_this_stream():
    assert {vector["stream_version"] for vector in VECTORS} == {STREAM_VERSION}


@pytest.mark.parametrize("kind", BLOCKS)
@given(rows=row_ids, first_column=st.integers(0, 600), seed=seeds)
def test_entries_follow_the_definition(kind, rows, first_column, seed):
    block = BLOCKS[kind](rows, 3, seed=seed, first_column=first_column)
    wanted = [
        [from_definition(kind, int(row), first_column + j, seed) for j in range(3)] for row in rows
    ]
    np.testing.assert_allclose(block, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data(), seed=seeds)
def test_entries_depend_on_nothing_but_seed_row_and_column(kind, dtype, data, seed):
    """Not on how many rows or columns, on chunks, on tiles, or on the order."""
    rows = data.draw(row_ids)
    n_columns = data.draw(st.integers(1, 300))
    whole = BLOCKS[kind](rows, n_columns, seed=seed, dtype=dtype)
    order = data.draw(st.permutations(range(len(rows))))
    shuffled = BLOCKS[kind](rows[order], n_columns, seed=seed, dtype=dtype)
    np.testing.assert_array_equal(shuffled, whole[order])
    cut = data.draw(st.integers(0, len(rows)))
    column = data.draw(st.integers(0, n_columns))
    parts = [
        [
            BLOCKS[kind](part, end - start, seed=seed, first_column=start, dtype=dtype)
            for start, end in ((0, column), (column, n_columns))
        ]
        for part in (rows[:cut], rows[cut:])
    ]
    np.testing.assert_array_equal(np.block(parts), whole)


def test_what_chooses_the_operator_is_not_in_a_random_matrix():
    """Else the law of distances, which is that of ``G`` for a given ``A``, would not hold."""
    n, k = 5000, 64
    rows = {kind: gaussians_apart(kind, n, k) for kind in Kind if kind != Kind.RADEMACHER}
    rows["seed 1"] = gaussian_matrix(n, k, seed=1)
    np.testing.assert_array_equal(rows[Kind.GAUSSIAN], gaussian_matrix(n, k, seed=0))
    for one, other in itertools.combinations(rows.values(), 2):
        assert abs(np.corrcoef(one.T, other.T)[:k, k:]).max() < 6 / np.sqrt(n)


def test_the_sample_for_a_bandwidth_is_not_drawn_by_the_random_matrix():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    by_matrix = sampled_squares(X, metric="euclidean", keys=gaussian_matrix(3000, 1, seed=0)[:, 0])
    chosen = HeatSketch(1, power=1, epsilon="auto", random_state=0).fit(X).epsilon_
    assert chosen != estimate_epsilon(by_matrix).epsilon


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_number_of_rows_stands_for_its_range(kind):
    np.testing.assert_array_equal(
        BLOCKS[kind](50, 9, seed=3), BLOCKS[kind](np.arange(50), 9, seed=3)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block", [*BLOCKS.values(), partial(gaussians_apart, Kind.SAMPLE)])
def test_a_block_may_have_no_rows_and_has_the_dtype_asked_for(block, dtype):
    empty = block(0, 3, seed=0, dtype=dtype)
    assert (empty.shape, empty.dtype) == ((0, 3), dtype)


def test_float32_is_rounded_float64():
    exact = gaussian_matrix(1000, 16, seed=5)
    np.testing.assert_array_equal(
        gaussian_matrix(1000, 16, seed=5, dtype=np.float32), exact.astype(np.float32)
    )


# Six standard errors: under the hypothesis one run in 5e8 would fail.
def assert_uncorrelated(a, b):
    n = a.size
    assert n >= 1_000_000
    assert abs(np.mean(a * b)) <= 6 / np.sqrt(n)
    assert abs(np.mean((a**2 - 1) * (b**2 - 1))) <= 6 * np.var(a**2) / np.sqrt(n) + 1e-12


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_neighboring_seeds_rows_and_columns_are_uncorrelated(kind, seed):
    G = BLOCKS[kind](15_700, 64, seed=seed)
    assert_uncorrelated(G, BLOCKS[kind](15_700, 64, seed=seed + 1))
    assert_uncorrelated(G, BLOCKS[kind](15_700, 64, seed=seed + 2**64))
    wide = BLOCKS[kind](15_701, 65, seed=seed)
    assert_uncorrelated(wide[:-1], wide[1:])
    assert_uncorrelated(wide[:, :-1], wide[:, 1:])


def test_the_two_kinds_are_uncorrelated():
    assert_uncorrelated(gaussian_matrix(15_700, 64, seed=0), rademacher_matrix(15_700, 64, seed=0))


@pytest.mark.parametrize("seed", SEEDS)
def test_gaussians_are_gaussian(seed):
    G = gaussian_matrix(15_625, 64, seed=seed).ravel()
    n = G.size
    assert abs(G.mean()) <= 6 / np.sqrt(n)
    assert abs(G.var() - 1) <= 6 * np.sqrt(2 / n)
    assert abs(np.mean(G**3)) <= 6 * np.sqrt(15 / n)
    assert abs(np.mean(G**4) - 3) <= 6 * np.sqrt(96 / n)
    assert stats.kstest(G, "norm").pvalue > 1e-4
    # Far out, too: each tail count is Poisson.
    for threshold in (3.0, 4.0):
        expected = 2 * n * stats.norm.sf(threshold)
        assert abs(np.sum(np.abs(G) > threshold) - expected) <= 6 * np.sqrt(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_signs_are_fair(seed):
    G = rademacher_matrix(15_625, 64, seed=seed)
    assert set(np.unique(G)) == {-1.0, 1.0}
    assert abs(G.mean()) <= 6 / np.sqrt(G.size)
    assert np.max(np.abs(G.mean(axis=0))) <= 6 / np.sqrt(len(G))


def test_numpy_global_state_is_left_alone():
    before = np.random.get_state()[1].copy()
    gaussian_matrix(100, 8, seed=0)
    rademacher_matrix(100, 8, seed=0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.untraced
def test_a_gaussian_block_costs_at_most_twice_numpys_own():
    shape, rng = (1_000_000, 32), np.random.default_rng(0)
    gaussian_matrix(10, 32, seed=0, dtype=np.float32)  # compiled before it is timed

    def seconds(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    ratios = [
        seconds(lambda: gaussian_matrix(*shape, seed=0, dtype=np.float32))
        / seconds(lambda: rng.standard_normal(shape, dtype=np.float32))
        for _ in range(5)
    ]
    assert np.median(ratios) <= 2


@pytest.mark.parametrize("rows", [[-1], [0.5], ["a"], [[1, 2]], None, -3, True])
def test_rows_that_are_no_ids_are_rejected(rows):
    with pytest.raises(DtypeError, match=r"rows=.*integers from 0"):
        gaussian_matrix(rows, 2, seed=0)


# On some platforms, such as Windows, a long double is a double.
LONG_DOUBLE = [np.longdouble] if np.dtype(np.longdouble) != np.float64 else []


@pytest.mark.parametrize("block", BLOCKS.values())
@pytest.mark.parametrize("dtype", [int, "f2", ">f4", complex, *LONG_DOUBLE])
def test_blocks_are_floats_of_two_kinds(block, dtype):
    with pytest.raises(DtypeError, match=r"dtype=.* must be float32 or float64; convert"):
        block(3, 2, seed=0, dtype=dtype)


@pytest.mark.parametrize("block", BLOCKS.values())
@pytest.mark.parametrize("name", ["n_columns", "first_column"])
def test_columns_are_counted_in_whole_numbers(block, name):
    def asked(value):
        return block(**{"rows": 3, "n_columns": 2, "first_column": 1, name: value}, seed=0)

    for value in (True, 2.5, "2", None, [2]):
        with pytest.raises(DtypeError, match=rf"{name}=.* must be an integer of at least 0"):
            asked(value)
    with pytest.raises(HeatSketchError, match=rf"{name}=-5 must be an integer of at least 0"):
        asked(-5)
    for value in (2**62, 2**63, 2**64):
        with pytest.raises(HeatSketchError, match=rf"{name}={value} .*beyond column 2\*\*62; use"):
            asked(value)
    np.testing.assert_array_equal(asked(np.uint8(250)), asked(250))


def test_columns_far_out_follow_the_definition():
    first = 2**62 - 300
    block = gaussian_matrix(1, 300, seed=0, first_column=first)
    wanted = [from_definition("gaussian", 0, first + j, 0) for j in (0, 150, 299)]
    np.testing.assert_allclose(block[0, [0, 150, 299]], wanted)


@pytest.mark.parametrize("seed", [-1, 2**128, 0.5, None, "0"])
def test_seeds_out_of_range_are_rejected(seed):
    with pytest.raises(ValueError, match=r"seed=.*integer from 0"):
        gaussian_matrix(2, 2, seed=seed)
