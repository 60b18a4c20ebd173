"""Connection to a given cluster, or to a local one on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, LocalCluster

from heatsketch.exceptions import HeatSketchError

ALLOWED_FAILURES = 100  # workers that may die while they run a task before it fails
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def processes(n_workers: int | None = None, **options: Any) -> LocalCluster:
    """Start single-threaded local workers, which bind to 127.0.0.1 only."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # any free port
        worker_dashboard_address="127.0.0.1:0",
        **options,
    )


@contextmanager
def connected(client: Any, *, allow_unencrypted: bool) -> Iterator[Client]:
    """Yield the given client, or one of a new cluster of local processes."""
    if client is None:
        local = processes()
        # By default, a worker that is killed while it restarts is not restarted after 15 seconds.
        config = dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
        with config, local, Client(local, set_as_default=False) as new, _more_failures(new):
            yield new
        return
    if not isinstance(client, Client):
        with Client(client, set_as_default=False) as new:
            _check_encrypted(new, allow_unencrypted)
            with _more_failures(new):
                yield new
        return
    _check_encrypted(client, allow_unencrypted)
    with _more_failures(client):
        yield client


@contextmanager
def _more_failures(client: Client) -> Iterator[None]:
    """Let more workers die before a task fails, since many may die in a long job."""
    before = client.run_on_scheduler(_allow_failures, ALLOWED_FAILURES)
    try:
        yield
    finally:
        client.run_on_scheduler(_allow_failures, before)


def _allow_failures(number: int, dask_scheduler: Any = None) -> int:
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, number
    return before


def _check_encrypted(client: Client, allowed: bool) -> None:
    address = client.scheduler_info()["address"]
    parts = urlsplit(address)
    if allowed or parts.scheme in {"tls", "inproc", "wss"} or parts.hostname in LOOPBACK:
        return
    raise HeatSketchError(
        f"client={address!r} is not encrypted, and anyone who can connect to a scheduler can "
        "execute code on its workers; use tls://, or allow_unencrypted=True in a trusted network."
    )
