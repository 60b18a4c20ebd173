"""What every test needs: one thread of BLAS a process, the same examples on every run, Ctrl-C."""

import os
import signal

# scikit-learn skips its array-API checks without this, and scipy reads it when imported.
os.environ["SCIPY_ARRAY_API"] = "1"

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The same examples for everybody; in make nightly more of them, and new ones every time.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("ci")  # unless pytest is given --hypothesis-profile

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has its jobs in the background ignore Ctrl-C, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Leave what is marked as nightly to ``make nightly``."""
    if "HEATSKETCH_NIGHTLY" not in os.environ:
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="make nightly has it"))


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Two test processes with two BLAS threads each would fight for two cores."""
    with threadpool_limits(1):
        yield
