"""A large power by Chebyshev sums, against as many plain steps."""

from functools import partial

import numpy as np
from timing import time_ratio, write

from heatsketch import HeatGraph
from heatsketch.diffusion import gaussian_matrix
from heatsketch.diffusion._sketch import diffuse

N_POINTS, N_COLUMNS, POWER = 100_000, 32, 1024


class Counting:
    """A heat operator that counts the products with blocks."""

    def __init__(self, A):
        self.A, self.count = A, 0

    def __getattr__(self, name):
        return getattr(self.A, name)

    def __matmul__(self, block):
        return self.A @ block

    def step(self, *arguments, **options):
        """Take one step, and count it."""
        self.count += 1
        return self.A.step(*arguments, **options)


def swiss_roll(dtype):
    rng = np.random.default_rng(0)
    angle, height = 1.5 * np.pi * (1 + 2 * rng.random(N_POINTS)), 21 * rng.random(N_POINTS)
    roll = np.column_stack([angle * np.cos(angle), height, angle * np.sin(angle)])
    return roll.astype(dtype)


def plain_steps(A, block):
    coefficients = A.stationary_coefficients(block)
    for _ in range(POWER):
        block, coefficients = A.step(block, coefficients)
    return block


def main():
    results = {}
    for dtype in ("float32", "float64"):
        A = HeatGraph.from_points(swiss_roll(dtype)).operator
        G = gaussian_matrix(N_POINTS, N_COLUMNS, seed=0, dtype=dtype)
        counting = Counting(A)
        Y, Z = diffuse(counting, G, power=POWER), plain_steps(A, G)
        i, j = np.random.default_rng(0).permutation(N_POINTS).reshape(2, -1)
        found, wanted = np.linalg.norm(Y[i] - Y[j], axis=1), np.linalg.norm(Z[i] - Z[j], axis=1)
        ours, theirs = partial(diffuse, A, G, power=POWER), partial(plain_steps, A, G)
        results[dtype] = {
            "products": counting.count,
            "worst relative error of 50,000 distances": float(abs(found / wanted - 1).max()),
            "time / plain steps": round(time_ratio(ours, theirs, n_pairs=3), 3),
        }
    write("powers", results)


if __name__ == "__main__":
    main()
