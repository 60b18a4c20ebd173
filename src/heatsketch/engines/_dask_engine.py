"""DaskEngine: computation on a cluster. dask is imported on first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heatsketch._core.checks import check_integer
from heatsketch.engines._base import Engine
from heatsketch.exceptions import HeatSketchError, NotStorableError


@dataclass(frozen=True, repr=False, eq=False)
class DaskEngine(Engine):
    r"""Compute distances and embeddings on a Dask cluster, for very large data.

    If the graph is the same, the embedding is bit-identical to that of :class:`LocalEngine`.
    Duplicates of a point do not share rows here, so drop them first if there are many.
    ``embedding_`` is a dask array that reads from ``storage``; only a few rows are loaded on this
    machine. The metric must be "euclidean" or "cosine", with a number of neighbours; precomputed
    matrices must be sparse. Up to ten million points, a single machine is sufficient and simpler.

    Parameters
    ----------
    client : distributed.Client, str or None, default=None
        The cluster, or the address of its scheduler; None starts processes on this machine and
        stops them after the fit.
    storage : str or path-like
        Folder that this machine and all workers can access. Results are stored there. If a fit is
        killed and started again, it continues from there.
    rows_per_block : int or "auto", default="auto"
        Number of rows that one task processes, rounded up to a multiple of 4096. "auto" makes as
        many blocks as there are workers, or more if the workers have too little memory.
    checkpoint_every : int, default=16
        Number of products after which results are written to storage. If a worker dies, the
        products after the last checkpoint are computed again.
    graph_tolerance : float, default=0.05
        As for :class:`LocalEngine`.
    allow_unencrypted : bool, default=False
        Whether to allow a network connection to the scheduler without TLS. Anyone who can connect
        to it can execute code on its workers.

    Examples
    --------
    >>> from heatsketch import DaskEngine, HeatSketch
    >>> engine = DaskEngine("tls://scheduler:8786", storage="/shared/run1")
    >>> HeatSketch(32, engine=engine).fit("/shared/points.zarr")  # doctest: +SKIP
    """

    client: Any = None
    _: KW_ONLY
    storage: Any = None
    rows_per_block: Any = "auto"
    checkpoint_every: int = 16
    graph_tolerance: float = 0.05
    allow_unencrypted: bool = False

    def __post_init__(self) -> None:
        if find_spec("distributed") is None or find_spec("dask") is None:
            raise ImportError(
                'DaskEngine needs dask; install it with: pip install "heatsketch[cluster]".'
            )
        if self.storage is None:
            raise HeatSketchError(
                "storage must be a folder that all workers can access, got None; pass its path."
            )
        if "://" in str(self.storage):
            raise HeatSketchError(
                f"storage must be a path, got {self.storage!r}; pass a folder of a file system "
                "that all workers have mounted."
            )
        check_integer("checkpoint_every", self.checkpoint_every)
        if self.rows_per_block != "auto":
            check_integer("rows_per_block", self.rows_per_block)

    def __repr__(self) -> str:
        """Show parameters that differ from their defaults, as scikit-learn does."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        chosen = (f"{name}={value!r}" for name, value, default in values if value is not default)
        return f"DaskEngine({', '.join(chosen)})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling; only addresses can be pickled."""
        if not isinstance(self.client, str | None):
            raise NotStorableError(
                f"client={self.client!r} is a connection and cannot be pickled; pass the address "
                "of the scheduler instead."
            )
        return vars(self)

    def __deepcopy__(self, memo: Any) -> DaskEngine:
        """Return the same engine, so that clones of an estimator share a cluster."""
        return self

    @contextmanager
    def working(self) -> Iterator[Engine]:
        """Connect to the cluster; nested calls share one connection."""
        from heatsketch.engines._dask._session import session

        with session(self, Path(self.storage).absolute()) as engine:
            yield engine

    def neighbors(self, X: Any, *, metric: Any, n_neighbors: int | None) -> tuple[Any, Any]:
        """Find the neighbours of each row of ``X``; distances stay on storage."""
        with self.working() as engine:
            return engine.neighbors(X, metric=metric, n_neighbors=n_neighbors)
