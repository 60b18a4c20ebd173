"""Damaged files, at random and from the past; ``make fuzz`` has more of them."""

import os

import pytest
from fuzz_readers import CORPUS, COUNTS, LIMITS, damage, read

from heatsketch.exceptions import HeatSketchError

# Of the counts of a night, which are 1.65 million: 10,000 of them.
SHARE = float(os.environ.get("HEATSKETCH_FUZZ_SHARE", 10_000 / sum(COUNTS.values())))
FORMER = sorted(CORPUS.iterdir()) if CORPUS.is_dir() else []
pytestmark = [pytest.mark.timeout(3600), pytest.mark.untraced]


def test_damaged_files_end_in_our_errors_soon_and_in_little_memory():
    # Those that may take much memory come last: a process keeps some of it for the next.
    everything = damage(sorted(COUNTS, key=LIMITS.get), SHARE)
    assert everything.keys() == COUNTS.keys()
    for extension, found in everything.items():
        assert found["cases"] >= SHARE * COUNTS[extension] - 1, extension
        assert 0 < found["rejected"] <= found["cases"], extension
        assert found["bytes"] <= LIMITS[extension][1] + 2**20, extension


@pytest.mark.parametrize("path", FORMER, ids=lambda path: path.name)
def test_files_that_once_did_harm_are_rejected(path):
    with pytest.raises(HeatSketchError):
        read(path)
