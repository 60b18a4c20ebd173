"""The random stream: frozen, addressed, fast, and random."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import SEEDS
from scipy import stats

from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._random_matrix import STREAM_VERSION, Kind, random_block, stream_key

VECTORS = json.loads(Path(__file__).with_name("stream_vectors.json").read_text())
BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}

seeds = st.integers(0, 2**128 - 1)
row_ids = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20).map(
    lambda ids: np.array(ids, np.uint64)
)


def random_words(row, tile, *, kind, seed):
    """The four words of a tile of a row, from NumPy."""
    counter = tile + (row << 64) + (kind << 128) + (STREAM_VERSION << 192)
    # NumPy increments the counter before each draw.
    return np.random.Philox(key=stream_key(seed), counter=counter - 1).random_raw(4)


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
    rows = {kind: random_block(kind, n, k) for kind in Kind if kind != Kind.RADEMACHER}
    rows["seed 1"] = gaussian_matrix(n, k, seed=1)
    np.testing.assert_array_equal(rows[Kind.GAUSSIAN], gaussian_matrix(n, k, seed=0))
    for one, other in itertools.combinations(rows.values(), 2):
        assert abs(np.corrcoef(one.T, other.T)[:k, k:]).max() < 6 / np.sqrt(n)


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


def test_columns_far_out_follow_the_definition():
    first = 2**62 - 300
    block = gaussian_matrix(1, 300, seed=0, first_column=first)
    wanted = [from_definition("gaussian", 0, first + j, 0) for j in (0, 150, 299)]
    np.testing.assert_allclose(block[0, [0, 150, 299]], wanted)
