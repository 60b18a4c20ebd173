"""What every test needs: one thread of BLAS a process, and the same examples on every run."""

import os

# scikit-learn skips its array-API checks without this, and scipy reads it when imported.
os.environ["SCIPY_ARRAY_API"] = "1"

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("ci")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Two test processes with two BLAS threads each would fight for two cores."""
    with threadpool_limits(1):
        yield
