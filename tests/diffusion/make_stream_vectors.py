"""Write stream_vectors.json: run once, when the stream was frozen, and never again.

The raw words come from NumPy alone; the rest from the code that is being frozen, after
test_entries_follow_the_definition has compared it with the definition.
"""

import json
from pathlib import Path

import numpy as np

from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._random_matrix import STREAM_VERSION, Kind, random_words

SEEDS = (0, 1, 42, 2**32, 2**64 - 1, 2**127 + 12345)
ROWS = (0, 1, 1000, 2**40, 2**64 - 1)


def vectors():
    for seed in SEEDS:
        raw = [
            f"{word:016x}"
            for row in ROWS
            for kind in (Kind.GAUSSIAN, Kind.RADEMACHER)
            for tile in (0, 1)
            for word in random_words(row, tile, kind=kind, seed=seed)
        ]
        yield seed, "raw", raw
        for name, block, dtype in (
            ("rademacher", rademacher_matrix, "float64"),
            ("gaussian", gaussian_matrix, "float64"),
            ("gaussian", gaussian_matrix, "float32"),
        ):
            values = block(np.array(ROWS, np.uint64), 11, seed=seed, dtype=dtype)
            yield seed, f"{name} {dtype}", [float(value).hex() for value in values.ravel()]


if __name__ == "__main__":
    rows = [
        {
            "stream_version": STREAM_VERSION,
            "seed": str(seed),
            "rows": list(ROWS),
            "what": what,
            "values": values,
        }
        for seed, what, values in vectors()
    ]
    target = Path(__file__).with_name("stream_vectors.json")
    target.write_text(json.dumps(rows, indent=1) + "\n")
