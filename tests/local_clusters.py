"""Clusters of processes on this machine, which listen to nobody else."""

from distributed import LocalCluster


def processes(n_workers):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )
